"""What the harness adds to the price of a process: subjects of kind command and worker.

    python benchmarks/subjects.py > table.md

Every line is a ratio of two measurements of this one run, with its target beside it. CPU time
counts this process and its children. Where a measurement is repeated the quickest counts: what
slows it down is other work on the machine. Takes about half a minute.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import themis.worker
from themis import Integers, Reals, Schema
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.lines import write_requests
from themis.subjects.processes.worker import WorkerSubject

SCHEMA = Schema(
    sex=["female", "male"],
    race=["green", "purple"],
    age=Integers(18, 120),
    income=Reals(0, 200_000, step=1_000),
)
DECIDE = """
def decide(row):
    return "1" if row["race"] == "green" or float(row["income"]) > 9000 else "0"
"""
SCRIPT = (
    DECIDE
    + """
import sys
print(decide(dict(zip(("sex", "race", "age", "income"), sys.argv[1:]))))
"""
)
WORKER = (
    DECIDE
    + """
from themis_worker import serve
serve(decide)
"""
)
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int n, char **v) {
    puts(!strcmp(v[2], "green") || atof(v[4]) > 9000 ? "1" : "0");
    return 0;
}
"""
ROUNDS = 5
BATCH = 10_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        (folder / "worker.py").write_text(WORKER)
        shutil.copy(themis.worker.__file__, folder / "themis_worker.py")
        print("| what | measured | target | met |")
        print("|---|---|---|---|")
        compare_worker_with_command(folder)
        compare_command_with_loop(folder)
        compare_worker_with_pipe(folder)


def compare_worker_with_command(folder: Path) -> None:
    command = CommandSubject(SCHEMA, [sys.executable, "script.py"], cwd=folder)
    worker = WorkerSubject(SCHEMA, [sys.executable, "worker.py"], cwd=folder)
    slow = cpu_seconds(command.load(draw(100)).run) / 100

    def serve() -> None:
        for _ in range(20):
            worker.load(draw(BATCH)).run()
        worker.close()  # from here on its CPU time is known

    fast = cpu_seconds(serve) / (20 * BATCH)
    tell(
        f"Python script as worker ({fast * 1e6:.1f} µs CPU) against as command "
        f"({slow * 1e6:,.0f} µs), inputs per CPU second",
        slow / fast,
        "≥",
        1_000,
    )


def compare_command_with_loop(folder: Path) -> None:
    what = "C program as command against a `subprocess.run` loop, CPU time"
    if shutil.which("cc") is None:
        print(f"| {what} | skipped: there is no C compiler cc | ≤ 1.3 | |")
        return
    (folder / "loan.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "loan.c", "-o", "loan"], cwd=folder, check=True)
    path = str(folder / "loan")
    subject = CommandSubject(SCHEMA, [path])
    codes = draw(500)
    arguments = [list(map(str, SCHEMA.decode_row(row).values())) for row in codes]

    def loop() -> None:
        for each in arguments:
            subprocess.run([path, *each], capture_output=True)

    pairs = [(cpu_seconds(subject.load(codes).run), cpu_seconds(loop)) for _ in range(ROUNDS)]
    ours, bare = map(min, zip(*pairs, strict=True))
    tell(
        f"{what} ({ours / 500 * 1e6:,.0f} against {bare / 500 * 1e6:,.0f} µs)",
        ours / bare,
        "≤",
        1.3,
    )


def compare_worker_with_pipe(folder: Path) -> None:
    subject = WorkerSubject(SCHEMA, [sys.executable, "worker.py"], cwd=folder)
    codes = draw(BATCH)
    texts = [c.texts(codes[:, place]) for place, c in enumerate(subject.format.columns)]
    data = write_requests(subject.format, 1, texts)
    command = [sys.executable, "worker.py"]
    bare = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    for _ in range(3):
        subject.load(codes).run()
        talk(bare, data)
    pairs = [
        (wall_seconds(lambda: talk(bare, data)), wall_seconds(lambda: subject.load(codes).run()))
        for _ in range(8 * ROUNDS)
    ]
    direct, ours = map(min, zip(*pairs, strict=True))
    assert bare.stdin is not None
    bare.stdin.close()
    bare.wait()
    subject.close()
    tell(
        f"worker, batches of {BATCH:,} ({BATCH / ours / 1e3:,.0f}k inputs/s), against a bare pipe "
        f"loop ({BATCH / direct / 1e3:,.0f}k), throughput",
        direct / ours,
        "≥",
        0.6,
    )


def talk(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write the bytes and read as many lines, the shortest way that can't deadlock."""
    assert process.stdin is not None
    assert process.stdout is not None
    source, target = process.stdout.fileno(), process.stdin.fileno()
    os.set_blocking(target, False)
    os.set_blocking(source, False)
    expected, unsent = data.count(b"\n"), memoryview(data)
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(target, select.POLLOUT)
    while expected:
        for place, _ in poll.poll():
            if place == source:
                expected -= os.read(source, 65_536).count(b"\n")
            else:
                unsent = unsent[os.write(target, unsent) :]
                if not unsent:
                    poll.unregister(target)


def draw(count: int) -> Any:
    generator = np.random.default_rng(7)
    return np.column_stack([generator.integers(0, each.size, count) for each in SCHEMA])


def cpu_seconds(work: Callable[[], Any]) -> float:
    before = _cpu()
    work()
    return _cpu() - before


def wall_seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _cpu() -> float:
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def tell(what: str, ratio: float, relation: str, target: float) -> None:
    met = ratio >= target if relation == "≥" else ratio <= target
    shown = f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.2f}×"
    print(f"| {what} | {shown} | {relation} {target:,}× | {'yes' if met else 'NO'} |", flush=True)


if __name__ == "__main__":
    main()
