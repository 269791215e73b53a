"""Coming tries: which inputs a search will need next, if the set at hand is not decided before."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import LookUp
from themis.inputs.assignments import Places
from themis.search.base_inputs import FIRST_TRIES, Stretch, Tries, Turn
from themis.search.cells import UNTRIED
from themis.search.flips import FlipBook
from themis.statistics.intervals import Flags
from themis.subjects.decisions import NOT_RUN, Cells

LIKELY = 0.7  # a try is run ahead if it is needed with at least this chance
LEAST = 16  # base inputs that are looked at together


class ComingTries:
    """What the book of a search will be asked next.

    Further tries and proofs of the inputs at hand come first, then the base inputs that the same
    set will probably need, then those of the next sets.
    """

    def __init__(self, book: FlipBook) -> None:
        self._book, self._at_hand = book, book.at_hand

    def __call__(self, _: LookUp) -> Generator[NDArray[Any]]:
        """Inputs that are likely to be needed, the nearest ones first."""
        mask, stop = self._at_hand.mask, self._at_hand.stop
        with self._book.foreseeing():
            if mask:
                end = max(stop, self._at_hand.end())
                self._book.inputs.foresee(end)
                if self._at_hand.turn is not None:
                    yield self._turn(self._at_hand.turn)
                yield from self._proofs(mask, self._at_hand.settling)
                yield from self._rows(Stretch(mask, stop, end, self._at_hand.settles))
            for stretch in self._at_hand.later():
                if stretch.mask != mask:
                    yield from self._rows(stretch)

    def _turn(self, turn: Turn) -> NDArray[Any]:
        """The next assignments in an order."""
        places = turn.places[self._are_open(turn.mask, turn.places)]
        orders = turn.orders[:, turn.start : turn.start + 8]
        if not len(places) or not orders.shape[1]:
            return self._book.sampler.base.rows(0, 0)
        tries = self._book.tries(turn.mask, orders[self._book.order_of(places)], places)
        return self._likely(turn.mask, tries, turn.start)

    def _rows(self, stretch: Stretch) -> Iterator[NDArray[Any]]:
        """Base inputs that were not run yet, and the first tries of the others."""
        mask = stretch.mask
        for first in range(stretch.start, stretch.stop, LEAST):
            last = min(first + LEAST, stretch.stop)
            known = len(self._book.inputs.outputs)
            if last > known:
                yield self._book.sampler.base.rows(max(first, known), last)
            if first < min(last, known) and self._book.is_exhaustive(mask):
                yield from self._tries(stretch._replace(start=first, stop=min(last, known)))

    def _tries(self, stretch: Stretch) -> Iterator[NDArray[Any]]:
        """The first tries of base inputs, and if they will be settled, all."""
        mask, places = stretch.mask, np.arange(stretch.start, stretch.stop)
        places = places[self._are_open(mask, places)]
        new = self._unprobed(mask, places)
        if len(new):
            yield self._likely(mask, self._first_tries(mask, new))
        if len(places) and stretch.settles:
            yield from self._proofs(mask, self._stays_open(mask, places))

    def _likely(self, mask: int, tries: Tries, start: int = 0) -> NDArray[Any]:
        """Those of the tries, in their order, that come before a flip with some certainty."""
        chances, each = self._at_hand.tried[mask], len(tries.row) // len(tries.places)
        cells, flips = self._held(tries)
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
        if not len(places) or self._at_hand.proved.stays(1) < LIKELY:
            return
        width = self._book.cell(mask).variants.width
        step = max(2**12 // width, 1)  # variants looked at of inputs that are settled
        for first in range(0, len(places), step):
            some = places[first : first + step]
            tries = self._book.tries(mask, np.tile(np.arange(width), (len(some), 1)), some)
            fresh = np.flatnonzero(tries.fresh)
            ranks = self._ranks(mask, tries.changed[fresh])
            yield tries.codes[fresh[np.argsort(ranks, kind="stable")]]

    def _ranks(self, mask: int, changed: Places) -> Places:
        """Where the parts of a set stand in the order in which they are settled."""
        parts = self._book.parts(mask)
        ranks = {part: rank for rank, part in enumerate(parts)}
        own = (self._book.part_of(each, mask) for each in changed.tolist())
        return np.array([ranks.get(part, len(parts)) for part in own])

    def _are_open(self, mask: int, places: Places) -> Flags:
        """Which of these base inputs are not settled under a set."""
        states = self._book.known(mask, int(places.max()) + 1)
        opened: Flags = states[places] == UNTRIED
        return opened

    def _unprobed(self, mask: int, places: Places) -> Places:
        """Those of these inputs that have not had their first tries under a set."""
        return places[~self._book.cell(mask).probed[places]]

    def _first_tries(self, mask: int, places: Places) -> Tries:
        """The tries that these inputs will get first, if no more is learned before."""
        orders = self._book.best_orders(mask, FIRST_TRIES)
        return self._book.tries(mask, orders[self._book.order_of(places)], places)

    def _stays_open(self, mask: int, places: Places) -> Places:
        """Those of these inputs whose first tries were all run ahead, and none flips."""
        fresh = self._unprobed(mask, places)
        if not len(fresh):
            return places
        tries = self._first_tries(mask, fresh)
        cells, flips = self._held(tries)
        bad = flips | (tries.fresh & (cells == NOT_RUN))
        return np.setdiff1d(places, fresh[np.unique(tries.row[bad])])

    def _held(self, tries: Tries) -> tuple[Cells, Flags]:
        """What running ahead gave for tries, NOT_RUN where nothing, and which of them are flips."""
        return self._book.inputs.held(tries.rows, tries.places, tries.row, tries.codes)
