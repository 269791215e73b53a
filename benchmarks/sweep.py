"""The exact causal score of a small network over more than a billion inputs, at flat memory.

    python benchmarks/sweep.py [--device cpu|cuda|numpy] [--inputs 1152000000] [--threads 1]

Every input is run once; only sums are kept. `numpy` is the same network without PyTorch. Prints
seconds, inputs a second, CPU time for each input, and peak memory; ends with 1 if
the sampled interval does not hold the exact score, or a score twice as large takes more memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import themis

SIZES = {"race": 5, "sex": 2, "age": 60, "hours": 80, "education": 16, "children": 6}
HIDDEN = 16
CONTEXTS = int(np.prod(list(SIZES.values())))
SLACK_MB = 32  # by which the peak of a process may move


def schema(inputs: int) -> themis.Schema:
    """So many inputs, about: incomes are as many as are needed."""
    incomes = max(round(inputs / CONTEXTS), 1)
    return themis.Schema({name: range(size) for name, size in {**SIZES, "income": incomes}.items()})


def weights(sizes: list[int]) -> tuple[Any, Any, Any, Any]:
    """A network that looks at everything, and says yes to about half of all inputs."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=(HIDDEN, len(sizes))) / np.array(sizes)
    bias, second = rng.normal(size=HIDDEN) / 4, rng.normal(size=(1, HIDDEN))
    some = rng.integers(0, sizes, (10_000, len(sizes)))
    answers = np.maximum(some @ first.T + bias, 0.0) @ second.T
    return first, bias, second, -np.median(answers, axis=0)


def network(sizes: list[int], device: str, threads: int) -> Any:
    """The network as a subject on a device."""
    first, bias, second, shift = weights(sizes)
    if device == "numpy":

        @themis.batch
        def decide(people: themis.InputTable) -> Any:
            columns = np.stack([people[name] for name in people], axis=1)
            hidden = np.maximum(columns @ first.T + bias, 0.0)
            return (hidden @ second.T + shift)[:, 0] >= 0

        return decide
    import torch

    torch.set_num_threads(threads)
    layers = (torch.nn.Linear(len(sizes), HIDDEN), torch.nn.Linear(HIDDEN, 1))
    with torch.no_grad():
        for layer, (weight, own) in zip(layers, ((first, bias), (second, shift)), strict=True):
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(own))
    module = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    return themis.model(module, cut=0.0, device=device)


def swept(inputs: int, where: tuple[str, int], **options: Any) -> tuple[Any, float, float]:
    """The causal score against race, the seconds it took, and those of CPU time."""
    own = schema(inputs)
    subject = network([each.size for each in own], *where)
    started, cpu = time.perf_counter(), time.process_time()
    score = themis.Audit(subject, own, seed=1, **options).causal("race")
    return score, time.perf_counter() - started, time.process_time() - cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda, or numpy")
    parser.add_argument("--inputs", type=int, default=1_152_000_000, help="about so many")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    options = parser.parse_args()
    device, where = options.device, (options.device, options.threads)
    swept(100_000, where, exact=True)  # loads what is needed
    half, _, _ = swept(options.inputs // 2, where, exact=True)
    before = peak()
    score, seconds, cpu = swept(options.inputs, where, exact=True)
    sampled, _, _ = swept(options.inputs, where, confidence=0.9999, error=0.01)
    print(f"{device}: {score}")
    print(f"{half.samples:,} inputs, then {score.samples:,}: {score.method}")
    print(f"{seconds:.1f} s, {score.samples / seconds / 1e6:.2f} million inputs a second")
    print(f"{1e9 * cpu / score.samples:.0f} ns of CPU time for each input")
    print(f"peak memory {peak():.0f} MB, {peak() - before:+.0f} MB for twice as many inputs")
    if device == "cuda":
        import torch

        print(f"peak memory of the GPU {torch.cuda.max_memory_allocated() / 2**20:.0f} MB")
    print(f"sampled: {sampled}")
    held = sampled.low <= score.score <= sampled.high
    fine = held and score.method == "exact" and peak() - before < SLACK_MB
    print("met" if fine else "MISSED")
    return 0 if fine else 1


def peak() -> float:
    """Of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
