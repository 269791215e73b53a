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
    expected: int  # the most that will be needed
    low: float
    high: float
    executions: int


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands, after a set was decided."""

    measure: str
    against: tuple[str, ...]  # the set decided last
    decided: int
    found: int  # minimal sets above the threshold so far
    total: int  # sets in the lattice; many of them will be pruned
    executions: int


@dataclass(frozen=True)
class Activity:
    """What a run is at, read while it goes on: between two events it may do something else."""

    purpose: str  # sampling, noise or explanations
    executions: int
    planned: int | None = None  # the most executions that are left of it, where that is known


SearchListener: TypeAlias = Callable[[SearchProgress], None]

Listener: TypeAlias = Callable[[Progress], None]


def ignore(*_: object) -> None:
    """Listens to nothing."""
