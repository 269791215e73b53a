"""Ctrl-C is for the driver alone, who ends what it has started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Within, processes are started that do not hear Ctrl-C: it is for the driver, who ends them.

    They inherit that; only the main thread can say it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
