"""A clock that only subjects move, for time budgets that do not depend on the machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace


class Clock:
    """Seconds since nobody knows when."""

    now = 1_000.0

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@contextmanager
def fake_time() -> Iterator[Clock]:
    """Within, every module of Themis that is loaded takes this clock for the time.

    Except for subjects: real processes have real time-outs.
    """
    clock = Clock()
    told = SimpleNamespace(
        **{**vars(time), "monotonic": lambda: clock.now, "perf_counter": lambda: clock.now}
    )
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("themis.") and not name.startswith("themis.subjects.")
        if getattr(module, "time", None) is time
    ]
    for module in modules:
        vars(module)["time"] = told
    try:
        yield clock
    finally:
        for module in modules:
            vars(module)["time"] = time
