"""Events: what the engine tells those who watch it; it never prints by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Where a measurement stands."""

    measure: str
    against: tuple[str, ...]
    samples: int  # contexts or inputs measured so far
    expected: int  # at most so many will be needed
    low: float
    high: float
    executions: int


Listener: TypeAlias = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Listens to nothing."""
