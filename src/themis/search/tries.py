"""Tries: assignments that inputs get, and what a search has at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.coming import FlipChances
from themis.engine.variants import Rows
from themis.inputs.assignments import Places


@dataclass(frozen=True)
class Tries:
    """Assignments of a set, as many for each of some inputs, and which of them were not run yet."""

    places: Places  # of the inputs
    rows: Rows
    row: Places  # for each try the input, as a place among these
    column: Places  # and the assignment
    codes: NDArray[Any]
    changed: Places  # the characteristics that it changes, as a set
    fresh: NDArray[np.bool_]
    variants: Places  # its number in the cell of those, where it is fresh


class Turn(NamedTuple):
    """Open inputs that get the assignments of a set, each in the order that is its own."""

    mask: int
    places: Places
    orders: Places
    start: int = 0  # so many of the order were tried, or are tried now


class Stretch(NamedTuple):
    """Base inputs that a set will probably need."""

    mask: int
    start: int
    stop: int
    settles: bool = False  # whether it is found out of each of them whether it flips
    late: bool = False


def _no_more() -> int:
    return 0


@dataclass
class AtHand:
    """What a search is at: for those who foresee what it will need."""

    mask: int = 0  # the set; 0: none
    stop: int = 0  # the inputs before this one are tried under it
    turn: Turn | None = None
    settling: Places = field(default_factory=lambda: np.empty(0, np.int64))  # inputs proved now
    settles: bool = False  # whether those that come will be
    end: Callable[[], int] = _no_more  # inputs before this one will probably be needed under it
    later: Callable[[], Iterable[Stretch]] = tuple  # what other sets need after it
    tried: defaultdict[int, FlipChances] = field(default_factory=lambda: defaultdict(FlipChances))
    proved: FlipChances = field(default_factory=FlipChances)  # of inputs that are settled

    def begin(self, mask: int, stop: int) -> None:
        """The inputs before `stop` are tried under this set now."""
        self.mask, self.stop = mask, stop
