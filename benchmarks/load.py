"""Ten million executions through a worker, with the cache on, and the same from the cache.

    python benchmarks/load.py [--quick | --soak]

One process measures a group score of a worker that decides lists of inputs, until the budget ends;
a second one asks the same again, and finds every batch in the cache. Memory is the peak of the
process and of its worker together; growth is from 10⁵ executions on. `--quick` runs a tenth.

`--soak` only looks at what a process holds, and whether that grows in the second half of a run: ten
million executions of a function of tables, two of a worker without a cache. What is kept on purpose
has reached its bounds by then; the outputs for later questions may take 1 MB here instead of 32.
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
from themis.engine import memory as memory_module
from themis.subjects.processes.worker import WorkerSubject

# Subjects, executions, and by how many MB the peak may grow in the second half: a worker's varies
# with its speed. One forgotten object for each execution would be 30 MB or more.
SOAKED = (("function", 10**7, 2), ("worker", 2 * 10**6, 15))
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


def decide(table: themis.InputTable) -> Any:
    """The worker's rule, for a whole table."""
    return table["income"] + 3 * table["years"] > 60 + 10 * (table["race"] == "purple")


def soak(folder: Path, executions: int, kind: str) -> dict[str, int]:
    """How much more this process holds at the end of a measurement than half way through."""
    halfway: dict[str, int] = {}
    end: dict[str, int] = {}  # before explanations, whose memory depends on no number of runs

    def listen(event: themis.Progress) -> None:
        for held, share in ((halfway, 0.5), (end, 0.9)):
            if not held and event.executions >= share * executions:
                held.update(holdings())

    memory_module.STORE_LIMIT = 2**20
    subject: Any = themis.batch(decide)
    if kind == "worker":
        (folder / "worker.py").write_text(WORKER)
        subject = WorkerSubject(SCHEMA, [sys.executable, str(folder / "worker.py")])
    audit = themis.Audit(
        subject, SCHEMA, seed=1, error=0.0001, max_executions=executions, listen=listen
    )
    with audit:
        done = audit.causal("race").executions
    grown = {name: end[name] - held for name, held in halfway.items()}
    return {"executions": done, **grown}


def holdings() -> dict[str, int]:
    """What this process holds: memory at its peak, open files, threads and child processes."""
    tasks = list(Path("/proc/self/task").iterdir())
    children = sum(len((each / "children").read_text().split()) for each in tasks)
    files = len(list(Path("/proc/self/fd").iterdir()))
    return {"memory": memory(), "files": files, "threads": len(tasks), "processes": children}


def memory() -> int:
    """The peak of this process's memory in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_own_process(folder: Path, executions: int, *options: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(folder), "--executions", str(executions)]
    command += options
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
    return tell(rows)


def soak_all() -> bool:
    """Run both kinds of subject for long, and print how much more is held in the second half."""
    rows = []
    for kind, executions, most in SOAKED:
        with tempfile.TemporaryDirectory() as name:
            grown = in_own_process(Path(name), executions, "--soak", kind)
        done, gained = grown["executions"], grown["memory"] / 1e6
        rows += [
            (f"{kind}: executions", f"{done:,}", f"{executions:,}", done > 0.99 * executions),
            (f"{kind}: more memory, MB", f"{gained:.1f}", f"< {most}", gained < most),
        ]
        rows += [
            (f"{kind}: more {what}", f"{grown[what]}", f"≤ {most}", grown[what] <= most)
            for what, most in (("files", 0), ("threads", 2), ("processes", 0))  # some come and go
        ]
    return tell(rows)


def tell(rows: list[tuple[str, str, str, bool]]) -> bool:
    """Print what was measured beside what was promised; whether all of it is met."""
    print("| what | measured | target | |\n|---|---|---|---|")
    for what, measured, target, met in rows:
        print(f"| {what} | {measured} | {target} | {('met' if met else 'MISSED') * bool(target)} |")
    return all(row[-1] for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the executions")
    parser.add_argument("--soak", nargs="?", const="all", help="only whether what is held grows")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--executions", type=int, default=10**7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        measured = (
            soak(options.folder, options.executions, options.soak)
            if options.soak
            else measure(options.folder, options.executions)
        )
        print(json.dumps(measured))
        return 0
    if options.soak:
        return 0 if soak_all() else 1
    return 0 if compare(10**6 if options.quick else 10**7) else 1


if __name__ == "__main__":
    sys.exit(main())
