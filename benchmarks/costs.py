"""The CPU time of one execution, by kind of subject, and what a billion of them would take.

    python benchmarks/costs.py > table.md

CPU time of this process and its children, through the runner, so with what Themis itself takes:
other work on the machine does not count. Each subject is run once before it is measured.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scaling import SCHEMA, pipeline

import themis
import themis.worker
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.worker import WorkerSubject

WORKER = """
from themis_worker import serve
serve(lambda row: int(float(row["income"]) > 100))
"""


@themis.batch
def table_rule(people: themis.InputTable) -> Any:
    return people["income"] + people["savings"] / 10 > np.where(people["race"] == 0, 110, 125)


def row_rule(person: dict[str, Any]) -> bool:
    return bool(person["income"] + person["savings"] / 10 > (110 if person["race"] == 0 else 125))


def subjects(folder: Path) -> Iterator[tuple[str, Any, int]]:
    """Each kind with its name and how many inputs are enough to time it."""
    yield "rule on a table (numpy)", table_rule, 2_000_000
    yield "function of one input", row_rule, 300_000
    yield "one-hot pipeline, forest of 240 trees", pipeline(), 300_000
    shutil.copy(themis.worker.__file__, folder / "themis_worker.py")
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    command = [sys.executable, str(folder / "worker.py")]
    yield "worker in Python", WorkerSubject(SCHEMA, command), 30_000
    yield "command, a small program", CommandSubject(SCHEMA, ["sh", "-c", "echo 1"], jobs=1), 500
    script = [sys.executable, "-c", "print(1)"]
    yield "command, a Python script", CommandSubject(SCHEMA, script, jobs=1), 50


def cpu_seconds(act: Callable[[], Any]) -> float:
    """Of this process, and of its children that have ended by then."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(each) for each in who]
    act()
    after = [resource.getrusage(each) for each in who]
    return sum(
        b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
        for a, b in zip(before, after, strict=True)
    )


def measure(subject: Any, count: int) -> float:
    """CPU seconds for one execution."""
    audit = themis.Audit(subject, SCHEMA, seed=1)
    size = audit.sampler.base.chunk_rows

    def run(start: int, stop: int) -> None:
        for first in range(start, stop, size):
            audit.runner.run(audit.sampler.base.rows(first, min(first + size, stop)))
        audit.close()  # children count once they have ended

    begin = cpu_seconds(lambda: run(0, 10))
    return max(cpu_seconds(lambda: run(10, 10 + count)) - begin, 0.0) / count


def main() -> int:
    print("| subject | CPU time of an execution | a billion | cores for an hour |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, subject, count in subjects(Path(folder)):
            each = measure(subject, count)
            hours = 1e9 * each / 3600
            shown = f"{1e6 * each:.2g} µs" if each < 1e-3 else f"{1e3 * each:.2g} ms"
            total = f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"
            print(f"| {name} | {shown} | {total} core hours | {max(hours, 1):,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
