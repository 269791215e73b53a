"""Ctrl-C is for the driver alone, who ends what it has started; without it that ends itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Within, processes are started that do not hear Ctrl-C: it is for the driver, who ends them.

    They and threads that start others inherit that it is blocked. The driver hears it at the end,
    also where another thread of it, which does not block it, gets it meanwhile.
    """
    with interrupts_wait():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_wait(*numbers: signal.Signals) -> Iterator[None]:
    """Within, Ctrl-C, or these signals, are kept until the end: the work must be completed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[Any] = []
    before = {
        number: signal.signal(number, lambda *signalled: heard.append(signalled))
        for number in numbers or (signal.SIGINT,)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for signalled in heard[:1]:
            if callable(handler := before[signalled[0]]):
                handler(*signalled)


def settle_in(driver: int, end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """Make this a process of a pool: it ends with its driver, and may start processes as usual."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    multiprocessing.set_start_method("spawn", force=True)

    def end_with_driver() -> None:
        while os.getppid() == driver:
            time.sleep(1.0)
        end()

    threading.Thread(target=end_with_driver, daemon=True).start()
