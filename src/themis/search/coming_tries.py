"""Coming tries: which inputs a search will need next, if the set at hand is not decided before."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Places
from themis.search.base_inputs import FIRST_TRIES, Tries, Turn
from themis.search.cells import UNTRIED
from themis.search.flips import FlipBook
from themis.statistics.intervals import Flags
from themis.subjects.decisions import NOT_RUN, Cells

LEAST = 16  # base inputs that are looked at together
TURNS = 8  # further tries that are looked at, of those at hand
LIKELY = 0.7  # a try is run ahead if it is needed with at least this chance
AT_ONCE = 2**12  # variants of inputs that are settled which are looked at together


class ComingTries:
    """What the book of a search will be asked next.

    Further tries and proofs of the inputs at hand come first, then the base inputs that the same
    set will probably need, then those of the next sets.
    """

    def __init__(self, book: FlipBook) -> None:
        self._book, self._at_hand = book, book.at_hand

    def __call__(self) -> Generator[NDArray[Any]]:
        """Inputs that are likely to be needed, the nearest ones first."""
        mask, stop, inputs = self._at_hand.mask, self._at_hand.stop, self._book.inputs
        end = max(stop, self._at_hand.end()) if mask else 0
        with inputs.foreseeing(end):
            if mask:
                if self._at_hand.turn is not None:
                    yield self._turn(self._at_hand.turn)
                yield from self._proofs(mask, self._at_hand.settling)
                yield from self._rows(mask, stop, end, settles=self._at_hand.settles)
            for later, first, last in self._at_hand.later():
                if later != mask:
                    yield from self._rows(later, first, last)

    def _turn(self, turn: Turn) -> NDArray[Any]:
        """The next assignments in an order."""
        places = turn.places[self._are_open(turn.mask, turn.places)]
        orders = turn.orders[:, turn.start : turn.start + TURNS]
        if not len(places) or not orders.shape[1]:
            return self._book.sampler.base.rows(0, 0)
        tries = self._book.tries(turn.mask, orders[self._book.order_of(places)], places)
        return self._likely(turn.mask, tries, turn.start)

    def _rows(
        self, mask: int, start: int, stop: int, *, settles: bool = False
    ) -> Iterator[NDArray[Any]]:
        """Base inputs that were not run yet, and the first tries of the others."""
        known = len(self._book.inputs.outputs)
        for first in range(start, stop, LEAST):
            last = min(first + LEAST, stop)
            if last > known:
                yield self._book.sampler.base.rows(max(first, known), last)
            if first < min(last, known) and self._book.is_exhaustive(mask):
                yield from self._tries(mask, np.arange(first, min(last, known)), settles=settles)

    def _tries(self, mask: int, places: Places, *, settles: bool) -> Iterator[NDArray[Any]]:
        """The first tries of base inputs, and if they will be settled, all."""
        places = places[self._are_open(mask, places)]
        new = places[~self._book.cell(mask).probed[places]]
        if len(new):
            orders = self._book.best_orders(mask, FIRST_TRIES)
            tries = self._book.tries(mask, orders[self._book.order_of(new)], new)
            yield self._likely(mask, tries)
            cells, flips = self._held(tries)
            tried_first = flips | (tries.fresh & (cells == NOT_RUN))
            places = np.setdiff1d(places, new[np.unique(tries.row[tried_first])])
        if settles:
            yield from self._proofs(mask, places)

    def _likely(self, mask: int, tries: Tries, start: int = 0) -> NDArray[Any]:
        """Those of the tries, in their order, that come before a flip with some certainty."""
        chances, each = self._at_hand.chances[mask], len(tries.row) // len(tries.places)
        cells, flips = (every.reshape(-1, each) for every in self._held(tries))
        new = tries.fresh.reshape(-1, each) & (cells == NOT_RUN)
        stays = [chances.stays(start + number + 1) for number in range(each)]
        chance = np.where(new, stays, 1.0).cumprod(axis=1) / np.where(new, stays, 1.0)
        chance *= chances.stays(start) if start else 1.0
        needed = new & (np.cumsum(flips, axis=1) == 0) & (chance >= LIKELY)
        codes: NDArray[Any] = tries.codes.reshape(-1, each, tries.codes.shape[1])[needed]
        return codes

    def _proofs(self, mask: int, places: Places) -> Iterator[NDArray[Any]]:
        """All variants of inputs that are settled; few of them flip so late."""
        width = self._book.cell(mask).variants.width
        step = max(AT_ONCE // width, 1)
        for first in range(0, len(places), step):
            some = places[first : first + step]
            tries = self._book.tries(mask, np.tile(np.arange(width), (len(some), 1)), some)
            yield tries.codes[tries.fresh]

    def _are_open(self, mask: int, places: Places) -> Flags:
        """Which of these base inputs are not settled under a set."""
        states = self._book.known(mask, int(places.max()) + 1)
        opened: Flags = states[places] == UNTRIED
        return opened

    def _held(self, tries: Tries) -> tuple[Cells, Flags]:
        """What running ahead gave for tries, NOT_RUN where nothing, and which of them are flips."""
        return self._book.inputs.held(tries.rows, tries.places, tries.row, tries.codes)
