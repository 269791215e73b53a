"""Ten million executions through a worker, with the cache on, and the same from the cache.

    python benchmarks/load.py [--quick]

One process measures a group score of a worker that decides lists of inputs, until the budget ends;
a second one asks the same again, and finds every batch in the cache. Memory is the peak of the
process and of its worker together; growth is from 10⁵ executions on. `--quick` runs a tenth.
Linux only: the worker reads its peak from /proc, where that of its parent is not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import themis
from themis.subjects.processes.worker import WorkerSubject

EARLY = 100_000  # executions from which on memory must stay flat
WORKER = """
from themis.worker import serve

def decide(people):
    return [
        int(person["income"] + 3 * person["years"] > (60 if person["race"] == "green" else 70))
        for person in people
    ]

serve(decide, batch=True)
with open("/proc/self/status") as status, open(__file__ + ".memory", "w") as file:
    file.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
SCHEMA = themis.Schema(
    race=["green", "purple"],
    sex=["female", "male"],
    income=range(100),
    years=range(40),
    amount=themis.Integers(1_000, 60_000),
)


def measure(folder: Path, executions: int) -> dict[str, Any]:
    """One measurement in this process; what it cost."""
    early = 0

    def listen(event: themis.Progress) -> None:
        nonlocal early
        if event.executions <= EARLY or not early:
            early = memory()

    subject = WorkerSubject(SCHEMA, [sys.executable, str(folder / "worker.py")])
    audit = themis.Audit(
        subject, SCHEMA, seed=1, error=0.0001, max_executions=executions,
        cache=folder / "cache.sqlite", listen=listen,
    )  # fmt: skip
    started = time.perf_counter()
    with audit:
        score = audit.group("race")
    seconds = time.perf_counter() - started
    own = memory()
    said = folder / "worker.py.memory"
    workers = 1024 * int(said.read_text()) if score.executions else 0
    return {
        "executions": score.executions,
        "hits": score.cache_hits,
        "seconds": seconds,
        "memory": own + workers,
        "growth": own - early,
        "score": [score.score, score.low, score.high, score.samples],
    }


def memory() -> int:
    """The peak of this process's memory in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_own_process(folder: Path, executions: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(folder), "--executions", str(executions)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def compare(executions: int) -> bool:
    """Run, run again, and print what was promised beside what was measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "worker.py").write_text(WORKER)
        first = in_own_process(folder, executions)
        size = (folder / "cache.sqlite").stat().st_size
        second = in_own_process(folder, executions)
    assert first["score"] == second["score"]
    count, again = first["executions"], second["seconds"]
    ratio = first["seconds"] / again
    rows = [
        ("executions", f"{count:,}", f"{executions:,}", count > 0.99 * executions),
        ("seconds, running", f"{first['seconds']:.1f}", "", True),
        ("executions per second", f"{count / first['seconds']:,.0f}", "", True),
        ("growth of memory, MB", f"{first['growth'] / 1e6:.1f}", "< 20", first["growth"] < 20e6),
        ("memory in all, MB", f"{first['memory'] / 1e6:.0f}", "< 150", first["memory"] < 150e6),
        ("bytes on disk per run", f"{size / count:.2f}", "≤ 2", size <= 2 * count),
        ("seconds, from the cache", f"{again:.2f}", "", True),
        ("executions, from the cache", f"{second['executions']:,}", "0", not second["executions"]),
        ("times as fast", f"{ratio:.0f}", "≥ 20", ratio >= 20),
        ("memory from the cache, MB", f"{second['memory'] / 1e6:.0f}", "< 150",
         second["memory"] < 150e6),
    ]  # fmt: skip
    print("| what | measured | target | |\n|---|---|---|---|")
    for what, measured, target, met in rows:
        print(f"| {what} | {measured} | {target} | {('met' if met else 'MISSED') * bool(target)} |")
    return all(row[-1] for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the executions")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--executions", type=int, default=10**7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(json.dumps(measure(options.folder, options.executions)))
        return 0
    return 0 if compare(10**6 if options.quick else 10**7) else 1


if __name__ == "__main__":
    sys.exit(main())
