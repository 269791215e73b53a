"""Coming tries: which inputs a search will need next, if the set at hand is not decided before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import LookUp
from themis.engine.coming import LIKELY, FlipChances
from themis.inputs.assignments import Places
from themis.subjects.decisions import NOT_RUN

if TYPE_CHECKING:
    from themis.search.flips import FlipBook, Tries

NEAR, FAR = (
    4,
    1,
)  # looked at are a quarter more base inputs, and if that is too little, as many more
LEAST = 16  # base inputs that are looked at, at least
MORE_TRIES = 8  # of an input, at most
PROVED = 2**12  # variants looked at of inputs that are settled


def no_sets() -> Iterable[tuple[int, int]]:
    """Nothing is known of what comes."""
    return ()


class Turn(NamedTuple):
    """Open inputs that get the assignments of a set in an order, each of one of two orders."""

    mask: int
    places: Places
    orders: Places
    start: int = 0  # so many of the order were tried, or are tried now


class ComingTries:
    """What the book of a search will be asked next.

    Further tries and proofs of the inputs at hand come first, then the next base inputs under the
    same set, then the first ones under the next sets.
    """

    def __init__(self, book: FlipBook) -> None:
        self._book = book
        self.next_sets: Callable[[], Iterable[tuple[int, int]]] = no_sets  # and how many inputs
        self.chances: defaultdict[int, FlipChances] = defaultdict(FlipChances)
        self.turns: list[Turn] = []  # of the inputs at hand, the present one first
        self.settling: Places = np.empty(0, np.int64)  # inputs that are proved now
        self.settles = False  # whether those that come will be
        self._mask, self._stop = 0, 0

    def at(self, mask: int, stop: int) -> None:
        """The inputs before `stop` are tried under this set now."""
        self._mask, self._stop = mask, stop

    def __call__(self, look_up: LookUp) -> Generator[NDArray[Any]]:
        """Inputs that are likely to be needed, the nearest ones first."""
        if not self._mask:
            return
        mask, stop = self._mask, self._stop
        near = stop + max(stop // NEAR, LEAST)
        far = near + max(stop, LEAST)
        with self._book.foreseeing(far):
            for turn in self.turns:
                yield self._turn(turn)
            yield from self._proofs(mask, self.settling)
            yield from self._rows(mask, stop, near)
            for other, rows in self.next_sets():
                if other != mask:
                    yield from self._rows(other, 0, rows)
            yield from self._rows(mask, near, far)

    def _turn(self, turn: Turn) -> NDArray[Any]:
        """The next assignments in an order."""
        places = turn.places[self._book.are_open(turn.mask, turn.places)]
        orders = turn.orders[:, turn.start : turn.start + MORE_TRIES]
        if not len(places) or not orders.shape[1]:
            return self._book.sampler.base.rows(0, 0)
        tries = self._book.tries(turn.mask, orders[places % 2], places)
        return self._likely(turn.mask, tries, turn.start)

    def _rows(self, mask: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Base inputs that were not run yet, and the first tries of the others."""
        for first in range(start, stop, LEAST):
            last = min(first + LEAST, stop)
            known = self._book.base_count
            if last > known:
                yield self._book.sampler.base.rows(max(first, known), last)
            if first < min(last, known) and self._book.is_exhaustive(mask):
                yield from self._tries(mask, first, min(last, known))

    def _tries(self, mask: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """The first tries of base inputs, and if they will be settled, all."""
        places = np.arange(start, stop)
        places = places[self._book.are_open(mask, places)]
        new = self._book.unprobed(mask, places)
        for tries in self._book.first_tries(mask, new) if len(new) else ():
            yield self._likely(mask, tries)
        if self.settles and mask == self._mask and len(places):
            yield from self._proofs(mask, self._book.stays_open(mask, places))

    def _likely(self, mask: int, tries: Tries, start: int = 0) -> NDArray[Any]:
        """Those of the tries, in their order, that come before a flip with some certainty."""
        chances, each = self.chances[mask], len(tries.row) // len(tries.places)
        cells, flips = self._book.held(tries)
        opened = np.ones(len(tries.places), dtype=bool)
        chance = np.full(len(tries.places), chances.stays(start) if start else 1.0)
        chosen = []
        for number in range(each):
            place = np.arange(len(tries.places)) * each + number
            new = tries.fresh[place] & (cells[place] == NOT_RUN)
            chosen.append(place[new & opened & (chance >= LIKELY)])
            opened &= ~flips[place]
            chance[new] *= chances.stays(start + number + 1)
        likely: NDArray[Any] = tries.codes[np.concatenate(chosen)]
        return likely

    def _proofs(self, mask: int, places: Places) -> Iterator[NDArray[Any]]:
        """All variants of inputs that are settled, small parts first; few flip so late."""
        if not len(places) or self.chances[-mask].stays(1) < LIKELY:
            return
        step = max(PROVED // self._book.width(mask), 1)
        for first in range(0, len(places), step):
            tries = self._book.all_tries(mask, places[first : first + step])
            fresh = np.flatnonzero(tries.fresh)
            ranks = self._book.part_ranks(mask, tries.changed[fresh])
            yield tries.codes[fresh[np.argsort(ranks, kind="stable")]]
