"""The sweep: ends every process that carries a mark in its environment.

Whatever a subject starts inherits the mark, also what leaves its group or its session and outlives
its parent. Run as a program, this waits until the process that holds its standard input has ended,
however that came about, and then sweeps. It imports nothing of Themis, so that it starts at once.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

PAUSE_SECONDS = 0.01


def sweep(mark: str) -> None:
    """Kill the processes that carry the mark, until none is left.

    Where there is no /proc nothing is found: there only the groups of the subjects are ended.
    """
    for _ in range(50):  # what is about to start something is met again
        running = _processes()
        found = [pid for pid in running if _carries(pid, mark.encode())]
        if not found and not any(map(_begins, running)):
            return
        _kill(found, mark.encode())
        time.sleep(PAUSE_SECONDS)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return []


def _carries(pid: int, mark: bytes) -> bool:
    """Whether a process was started with the mark; one that has ended has no environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            return mark in file.read()
    except OSError:  # it has ended, or is somebody else's
        return False


def _begins(pid: int) -> bool:
    """Whether a process is just beginning a program: its environment is not there yet."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            if file.read(1):
                return False
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            facts = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    state, parent, started = facts[0], facts[1], int(facts[19]) / os.sysconf("SC_CLK_TCK")
    if state in b"ZX" or parent == b"2":  # ended, or a thread of the kernel
        return False
    # On a busy machine a process may take long to begin its program.
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started < 10.0


def _kill(pids: list[int], mark: bytes) -> None:
    """Kill processes, never others that got their numbers meanwhile, and wait for their end."""
    handles = []
    for pid in pids:
        with suppress(OSError):
            handles.append(os.pidfd_open(pid))
            if _carries(pid, mark):
                signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
    try:
        # What is killed ends within this time, unless the kernel holds it.
        deadline = time.monotonic() + 0.5
        for handle in handles:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(max(deadline - time.monotonic(), 0.0) * 1000)
    finally:
        for handle in handles:
            os.close(handle)


def _wait_and_sweep(mark: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    sweep(mark)
    time.sleep(PAUSE_SECONDS)  # what was being started then carries the mark only now
    sweep(mark)


if __name__ == "__main__":
    _wait_and_sweep(sys.argv[1])
