"""The sweep: ends every process that carries a mark in its environment.

Whatever a subject starts inherits the mark, also what leaves its group or its session and outlives
its parent. Run as a program, this waits until the process that holds its standard input has ended,
however that came about, and then sweeps. It imports nothing of Themis, so that it starts at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

ROUNDS = 50  # what is about to start something is met again
PAUSE_SECONDS = 0.01


def sweep(mark: str) -> None:
    """Kill the processes that carry the mark, until none is left.

    Where there is no /proc nothing is found: there only the groups of the subjects are ended.
    """
    for _ in range(ROUNDS):
        found = [pid for pid in _processes() if _carries(pid, mark.encode())]
        if not found:
            return
        for pid in found:
            _kill(pid, mark.encode())
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


def _kill(pid: int, mark: bytes) -> None:
    """Kill a process, and never another one that got its number meanwhile."""
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if _carries(pid, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
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
