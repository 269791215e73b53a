"""A clock that only moves when a test says so: no test depends on how fast the machine is."""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace

import pytest


class Clock:
    """Seconds since nobody knows when."""

    def __init__(self) -> None:
        self.now = 1_000.0

    @classmethod
    def put_into(cls, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> Clock:
        """A clock that these modules take for the time."""
        clock = cls()
        told = SimpleNamespace(
            **{**vars(time), "monotonic": lambda: clock.now, "perf_counter": lambda: clock.now}
        )
        for module in modules:
            monkeypatch.setattr(module, "time", told)
        return clock
