"""Events: what a run tells those who watch it, in one stream; it never prints by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Where a measurement stands. The ends hold at any time; of those that don't, 0 and 1 do."""

    measure: str
    against: tuple[str, ...]
    samples: int  # contexts or inputs measured so far
    expected: int  # the most that will be needed
    low: float
    high: float
    executions: int
    output: str | None = None  # of several


@dataclass(frozen=True)
class SearchProgress:
    """Where a search stands, after a set was decided."""

    measure: str
    against: tuple[str, ...]  # the set decided last
    decided: int
    found: int  # minimal sets above the threshold so far
    total: int  # sets in the lattice; many of them will be pruned
    executions: int
    latest: tuple[tuple[str, ...], ...] = ()  # of the sets found, the last few


@dataclass(frozen=True)
class RowsRead:
    """How much of a file of rows was read."""

    done: int  # bytes
    total: int


@dataclass(frozen=True)
class InputsReplayed:
    """How many inputs of saved tests were run."""

    done: int
    total: int


@dataclass(frozen=True)
class StepBegun:
    """A step of a whole audit begins."""

    number: int
    total: int


@dataclass(frozen=True)
class Part:
    """What one set adds to the executions: of those before it, nothing is run again."""

    name: str
    executions: int
    exact: bool  # every input will be run


FACTOR = 5  # a forecast is within this factor of what is spent then


@dataclass(frozen=True)
class Forecast:
    """What a command will cost, give or take FACTOR."""

    parts: tuple[Part, ...]
    executions: int
    calls: int
    seconds: float | None  # None: nothing was run that tells
    scores: int
    among: int = 0  # so many characteristics are searched
    search: int = 0  # what the search adds to the executions
    again: int = 0  # what is run again, to look for noise
    tokens: int = 0  # that a language model will use
    spend: float = 0.0  # what they cost, where prices are known
    guessed: bool = False  # from the texts alone: nothing was asked that tells


@dataclass(frozen=True)
class Activity:
    """What a run is at, read while it goes on: between two events it may do something else."""

    purpose: str  # sampling, noise or explanations
    executions: int
    planned: int | None = None  # the most executions that are left of it, where that is known
    failures: Mapping[str, int] = field(default_factory=dict)  # so far, by kind
    said: Mapping[str, str] = field(default_factory=dict)  # of each kind an example, in one line


@dataclass(frozen=True)
class Began:
    """The subject is ready; from now on `look` tells at any time what the run is at."""

    look: Callable[[], Activity]


Event: TypeAlias = (
    Progress | SearchProgress | RowsRead | InputsReplayed | StepBegun | Forecast | Began
)
Listener: TypeAlias = Callable[[Event], None]


def ignore(*_: object) -> None:
    """Listens to nothing."""
