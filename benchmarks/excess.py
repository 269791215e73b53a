"""What does an excess cost, and do its ends hold? Executions are counted; truth is known.

    python benchmarks/excess.py > table.md        # about five minutes on two cores

"Plain" is a design that knows the variance beforehand: each side is asked as often, for a fixed
number of contexts, and the interval is a normal one. The second table holds the excess of a subject
that is (nearly) certain against its causal score, both of whole audits: at most 2.5 times as many
executions are the target where at most a tenth of the inputs flip.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import themis
from themis.statistics.excess import ExcessRule, ExcessState, compare
from themis.statistics.intervals import normal_quantile

ERROR, CONFIDENCE, RUNS = 0.02, 0.99, 100
# Chances of each assignment, and the share of contexts that have them: the others are certain.
CASES: dict[str, tuple[tuple[float, ...], float]] = {
    "certain, 5 % flip": ((1.0, 0.0), 0.05),
    "0.9 for all": ((0.9, 0.9), 1.0),
    "a coin": ((0.5, 0.5), 1.0),
    "0.6 against 0.4": ((0.6, 0.4), 1.0),
    "a tenth of contexts, coins": ((0.5, 0.5), 0.1),
    "a tenth of contexts, 0.9 against 0.1": ((0.9, 0.1), 0.1),
    "five coins": ((0.5,) * 5, 1.0),
}


def main() -> None:
    """Write both tables."""
    for line in (*of_chances(), "", *beside_causal()):
        print(line, flush=True)


def of_chances() -> Iterator[str]:
    """Executions and wrong intervals, case by case."""
    yield f"| subject | excess | executions to ± {ERROR} | of a plain design | ends that miss it |"
    yield "|---|---|---|---|---|"
    for name, (chances, share) in CASES.items():
        truth = share * max((p - q) ** 2 for p in chances for q in chances)
        runs = [measured(chances, share, seed) for seed in range(RUNS)]
        wrong = sum(not low <= truth <= high for _, low, high in runs)
        executions = np.mean([executions for executions, _, _ in runs])
        plain = of_plain(chances, share)
        yield f"| {name} | {truth:.3f} | {executions:,.0f} | {plain:,.0f} | {wrong} of {RUNS} |"


def drawn(
    rng: np.random.Generator, chances: tuple[float, ...], share: float, contexts: int, times: int
) -> NDArray[np.int64]:
    """Outputs of so many contexts."""
    random = rng.random((contexts, len(chances), times)) < np.array(chances)[:, None]
    certain = rng.random((contexts, 1, 1)) < 0.5
    return np.where(rng.random((contexts, 1, 1)) < share, random, certain).astype(np.int64)


def measured(chances: tuple[float, ...], share: float, seed: int) -> tuple[int, float, float]:
    """The executions of one run, and its ends."""
    rng, executions = np.random.default_rng(seed), 0
    state = ExcessState(ExcessRule(1.0 - CONFIDENCE, ERROR), len(chances), rates=False)
    for target in state.rule.looks():
        outputs = drawn(rng, chances, share, target - state.count, state.times)
        executions += outputs.size
        state.add(outputs)
        state.look()
        if state.done:
            break
    return executions, state.interval.low, state.interval.high


def of_plain(chances: tuple[float, ...], share: float) -> float:
    """Executions of a fixed number of contexts, each side of the shown pair asked twice."""
    pair = max(((p, q) for p in chances for q in chances), key=lambda each: each[0] - each[1])
    outputs = drawn(np.random.default_rng(0), pair, share, 200_000, 2)
    variance = compare(outputs, np.array([0]), np.array([1])).excess[0].var()
    contexts = max(normal_quantile(CONFIDENCE) ** 2 * variance / ERROR**2, 30.0)
    return float(contexts * 2 * len(chances))


def beside_causal() -> Iterator[str]:
    """Executions of an excess and of a causal score, both to the same error."""
    yield "| inputs that flip | answers that are random | error | excess | causal | ratio |"
    yield "|---|---|---|---|---|---|"
    for flips in (0.0, 0.02, 0.1, 0.3):
        for noise in (0.0, 0.01):
            for error in (0.05, 0.02, 0.01):
                own = np.mean([both(flips, noise, error, seed) for seed in range(5)], axis=0)
                numbers = f"{own[0]:,.0f} | {own[1]:,.0f} | {own[0] / own[1]:.2f}"
                yield f"| {flips:.0%} | {noise:.0%} | {error} | {numbers} |"


def both(flips: float, noise: float, error: float, seed: int) -> tuple[int, int]:
    """The executions of both scores of a subject, without those that look for noise."""
    schema = themis.Schema(sex=["f", "m"], income=range(100), savings=themis.Integers(0, 10**6))
    rng = np.random.default_rng(seed)

    def decide(table: themis.InputTable) -> NDArray[np.bool_]:
        flipped = (table["savings"] % 1000 < 1000 * flips) & (table["sex"] == "m")
        usual: NDArray[np.bool_] = (table["income"] < 50) ^ flipped
        return usual ^ (rng.random(len(table)) < noise)

    audit = themis.Audit(themis.batch(decide), schema, error=error, probe=0, seed=seed)
    scores = audit.excess("sex"), audit.causal("sex")
    one, other = (0 if each.account is None else each.account.sampling for each in scores)
    return one, other


if __name__ == "__main__":
    main()
