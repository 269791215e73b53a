"""Which base inputs flip under which change: known once, used by every set of a search.

A cell belongs to one base input and one set T: the variants that change *exactly* the
characteristics in T. An input flips under X' when some cell with T ⊆ X' holds a flip. Cells are
disjoint, so nothing is executed twice, and a flip under a subset is a flip under every superset.
What follows a characteristic of T is part of a cell, too (`parts`).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import Rows
from themis.inputs.assignments import Places
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
from themis.inputs.streams import PROOFS
from themis.scores.explanations.witnesses import KEPT, FlipPool
from themis.search.base_inputs import FIRST_TRIES, AtHand, Tries, Turn, Wanted
from themis.search.cells import SAMPLE_TRIES, UNTRIED, CellStore, FlipCells
from themis.search.lattice import members
from themis.statistics.intervals import Flags
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

LEARNING_ROWS = 2_048  # base inputs that are run before many tries, to know what to try
RANDOM_SHARE = 0.3  # of more tries, so that more is learned than what is expected
AT_ONCE = 16  # more tries of an input in one batch, at most
COARSE = 8_192  # tries are so many at least, where calls are to be few
SOME_GROWTH = 4  # of such waves: only some inputs are tried, and many of them flip
FIRST_WAVE, WAVE_GROWTH = 32, 16  # variants of an input that are tried together, in few calls
SETTLED_AT_ONCE = 2**22  # executions, at most, that settle inputs under a set in large calls

LEAST = 16  # base inputs that are looked at together, to foresee
LIKELY = 0.7  # a try is run ahead if it is needed with at least this chance

CELLS_AT_ONCE = 2**17  # inputs built at once: memory stays flat


class _Piece(NamedTuple):
    """Variants of one cell that are to be run."""

    cell: FlipCells
    wanted: Wanted
    variants: Places


class FlipBook(CellStore):
    """The flips of common base inputs under changes of some searched characteristics."""

    def __init__(self, sampler: Sampler, columns: tuple[int, ...], *, cap: int) -> None:
        super().__init__(sampler, columns, cap=cap)
        self.at_hand = AtHand()
        self._shuffles = 0

    def in_large_calls(self, mask: int, rows: int) -> bool:
        """Whether so many inputs are settled under a set at once, however many do not flip."""
        return self.is_exhaustive(mask) and self.in_few_calls(mask, rows)

    def in_few_calls(self, mask: int, rows: int) -> bool:
        """The same, or all that can be tried is: of sets with too many assignments a few."""
        if not self.few_calls:
            return False
        each = self.proof_cost(mask) if self.is_exhaustive(mask) else SAMPLE_TRIES
        return rows * each <= SETTLED_AT_ONCE

    def states(self, mask: int, start: int, stop: int) -> NDArray[np.int8]:
        """FLIP, CONSTANT or UNKNOWN for each of these base inputs under a set."""
        self.at_hand.settles = True
        try:
            states = self.probe(mask, start, stop)
            return self.settle(mask, states, start, np.flatnonzero(states == UNTRIED))
        finally:
            self.at_hand.settles = False

    def probe(self, mask: int, start: int, stop: int) -> NDArray[np.int8]:
        """The same for little: known flips, and a few promising variants of the whole set.

        Inputs that did not flip so far stay UNTRIED.
        """
        self.at_hand.begin(mask, stop)
        self.inputs.run_until(stop)
        states, cell = self.known(mask, stop), self.cell(mask)
        places = start + np.flatnonzero(states[start:] == UNTRIED)
        if not cell.complete:
            self._advance(mask, places)
            return self.known(mask, stop)[start:]
        cell.grow(stop)
        places = places[~cell.probed[places]]
        cell.probed[places] = True
        self._try_in_order(mask, states, places, self.best_orders(mask, FIRST_TRIES))
        return states[start:]

    def probe_again(self, mask: int, states: NDArray[np.int8], budget: float) -> NDArray[np.int8]:
        """The states after more tries on the open inputs, for about this many executions.

        Tried are variants that flipped others or promise to, and some random ones.
        """
        states = states.copy()
        open_places = np.flatnonzero(states == UNTRIED)
        if not len(open_places):
            return states
        if budget >= LEARNING_ROWS / 2:
            self.inputs.run_until(LEARNING_ROWS)
        rest = RANDOM_SHARE * budget
        best = self.best_orders(mask, SAMPLE_TRIES)
        self._try_in_order(mask, states, open_places, best, budget - rest, AT_ONCE)
        anything = self.shuffled(mask, np.arange(self.cell(mask).variants.width))
        orders = self._in_turn(anything, anything)
        self._try_in_order(mask, states, open_places, orders, rest, AT_ONCE)
        return states

    def settle(
        self, mask: int, states: NDArray[np.int8], start: int, chosen: Places
    ) -> NDArray[np.int8]:
        """The states with these untried ones settled: parts are exhausted, small ones first."""
        if not len(chosen):
            return states
        stop, places = start + len(states), start + chosen
        self.at_hand.begin(mask, stop)
        if self.few_calls and self.is_exhaustive(mask):
            self.exhaust([mask], stop, places)
        for part in self.parts(mask):
            self.at_hand.settling = places
            places = self._advance(part, places)
        settled = states.copy()
        settled[chosen] = self.known(mask, stop)[start + chosen]
        self.at_hand.settling = chosen[:0]
        self._learn_flips(mask, start + chosen[settled[chosen] == FLIP])
        return settled

    def exhaust(self, masks: Iterable[int], count: int, places: Places | None = None) -> None:
        """Settle the first base inputs under all these sets, all together in a few calls.

        Only those at the `places`, where some are given.
        """
        masks, least = list(masks), FIRST_WAVE
        if masks:
            self.inputs.run_until(count)
        chosen = np.ones(count, dtype=bool)
        if places is not None:
            chosen = np.zeros(count, dtype=bool)
            chosen[places] = True
            least = max(least, COARSE // max(len(places), 1))
        while wanted := self._open_parts(masks, chosen):
            least = self._worth_a_call(wanted, least)
            self._run_wave(wanted, least)
            least *= WAVE_GROWTH if places is None else SOME_GROWTH

    def _worth_a_call(self, wanted: Sequence[tuple[int, Places]], least: int) -> int:
        """So many variants of each input, or as many as make up a call that is worth it."""
        sizes = [(len(own), self._cells[part].end) for part, own in wanted]
        widest = max(width for _, width in sizes)
        while least < widest and sum(n * min(least, width) for n, width in sizes) < COARSE:
            least *= SOME_GROWTH
        return least

    def _run_wave(self, wanted: Sequence[tuple[int, Places]], least: int) -> None:
        """Run the next variants of these inputs of cells, in pieces that fill large calls."""
        pieces, room = list[_Piece](), CELLS_AT_ONCE
        for part, places in wanted:
            cell, first = self._cells[part], 0
            orders = np.stack([self.best_order(cell, side) for side in (0, 1)])
            each = min(cell.end, 2 * max(least, int(cell.tried(places).max())))
            while first < len(places):
                some = places[first : first + max(room // each, 1)]
                first += len(some)
                piece = self._next(cell, part, some, orders, least)
                if piece is not None:
                    pieces.append(piece)
                    room -= len(piece.variants)
                if room < CELLS_AT_ONCE * 0.05:  # of them, that is left where calls are to be full
                    self._run(pieces)
                    pieces, room = [], CELLS_AT_ONCE
        if pieces:
            self._run(pieces)
        for part, places in wanted:
            self._cells[part].conclude(places)

    def _open_parts(self, masks: Iterable[int], chosen: Flags) -> list[tuple[int, Places]]:
        """The parts of these sets that are not settled for inputs that may flip, and which."""
        wanted: dict[int, Flags] = {}
        count = len(chosen)
        for mask in masks:
            may_flip = chosen & (self.known(mask, count) == UNTRIED)
            for part in self._settling(mask) if may_flip.any() else ():
                here = may_flip & (self._cells[part].state[:count] == UNTRIED)
                wanted[part] = wanted[part] | here if part in wanted else here
        return [(part, np.flatnonzero(each)) for part, each in wanted.items() if each.any()]

    def known(self, mask: int, count: int) -> NDArray[np.int8]:
        """What is known of the first inputs under a set; UNTRIED where that is not all."""
        result = np.full(count, CONSTANT, dtype=np.int8)
        flips = np.zeros(count, dtype=bool)
        for part in self._settling(mask):
            cell = self.cell(part)
            cell.grow(count)
            np.minimum(result, cell.state[:count], out=result)
        for part in self._known_parts(mask):
            if part in self._cells:
                known = self._cells[part].state[:count]
                flips[: len(known)] |= known == FLIP
        result[flips] = FLIP
        result[self.inputs.outputs[:count] < 0] = UNKNOWN  # nothing to compare with
        return result

    def pairs(self, mask: int, count: int) -> tuple[Any, Any, Any]:
        """Base inputs that flip under a set, their flipped variants, and both outputs.

        They are the first of all that flip, so that they are a random sample of them.
        """
        which = np.full(len(self.inputs.outputs), -1)  # the part under which an input flips
        parts = [part for part in self._known_parts(mask) if part in self._cells]
        for number, part in enumerate(parts):
            state = self._cells[part].state[: len(which)]
            flips = np.flatnonzero((state == FLIP) & (which[: len(state)] < 0))
            which[flips] = number
        chosen = np.flatnonzero(which >= 0)[:count]
        if not len(chosen):
            return (), (), ()
        codes = self._rows(mask, chosen).codes
        second, outputs = codes.copy(), np.empty((len(chosen), 2), np.int64)
        outputs[:, 0] = self.inputs.outputs[chosen]
        for number in np.unique(which[chosen]).tolist():
            here = np.flatnonzero(which[chosen] == number)
            cell, places = self._cells[parts[number]], chosen[here]
            rows = self._rows(parts[number], places)
            variants = cell.flip_place[places].astype(np.int64)
            second[here] = rows.inputs(cell.variants, np.arange(len(here)), variants)
            outputs[here, 1] = cell.flip_output[places]
        return codes, second, outputs

    def flips_of(self, mask: int) -> FlipPool:
        """The flips under a set that were met."""
        pool = FlipPool(self._assignments(mask), self.sampler.reading)
        first, second, outputs = self.pairs(mask, KEPT)
        if len(first):
            pool.add_pairs(first, second, outputs)
        return pool

    def shuffled(self, mask: int, places: Places) -> Places:
        """These places in a random order that is independent of all that was seen so far."""
        self._shuffles += 1  # so that no two orders share their numbers
        columns = self._assignments(mask).columns
        rng = self.sampler.base.generator(PROOFS, self._shuffles, *columns)
        return rng.permutation(places)

    def _try_in_order(
        self,
        mask: int,
        states: NDArray[np.int8],
        places: Places,
        orders: Places,
        budget: float = math.inf,
        at_once: int = 1,
    ) -> None:
        """Run variants of these open inputs, ever more at once, whatever their cells.

        No more than `at_once` of each, unless calls are to be few.

        A subject that runs input by input may remember what came before: it gets no batch of one
        assignment only, but for every other input neighbours in the order change places.
        """
        start = 0
        while start < orders.shape[1]:
            places = places[states[places] == UNTRIED]
            if not len(places) or budget <= 0:
                break
            size = min(max(start, 1), at_once)
            if self.few_calls:
                most = max(CELLS_AT_ONCE // len(places), 1)
                size = max((SOME_GROWTH - 1) * start, COARSE // len(places), 1)
                size = min(size, most)
            size = min(size, orders.shape[1] - start)
            chosen = orders[self.order_of(places), start : start + size]
            self.at_hand.turn = Turn(mask, places, orders, start + size)
            budget -= self._try_assignments(mask, chosen, places, states)
            start += size
            flips = int((states[places] == FLIP).sum())
            self.at_hand.chances[mask].learn(start, len(places), flips)
        self.at_hand.turn = None

    def best_orders(self, mask: int, count: int) -> Places:
        """The best variants for inputs of both decisions, in the order of `order_of`."""
        cell = self.cell(mask)
        return self._in_turn(*(self.best_order(cell, side)[:count] for side in (0, 1)))

    def order_of(self, places: Places) -> Places:
        """Which order each of these inputs has: that of its decision, one of two."""
        return 2 * self.inputs.sides(places) + places % 2

    def _in_turn(self, *orders: Places) -> Places:
        """Each order twice: for every other input, and for those between."""
        twice = np.repeat(np.stack(orders), 2, axis=0)
        if not self.sampler.runner.traits.vectorised:
            pairs = twice[1::2, : twice.shape[1] // 2 * 2]
            pairs[:] = pairs.reshape(len(pairs), -1, 2)[:, :, ::-1].reshape(pairs.shape)
        return twice

    def _try_assignments(
        self, mask: int, chosen: Places, places: Places, states: NDArray[np.int8]
    ) -> int:
        """Run assignments of a set, some for each of these inputs, unless it had them: how many."""
        tries = self.tries(mask, chosen, places)
        if not tries.fresh.any():
            return 0
        cell, changed, variants = self._cells[mask], tries.changed, tries.variants
        now = np.flatnonzero(tries.fresh)
        inputs = places[tries.row[now]]
        parts = np.unique(changed[now]).tolist()
        keys = {part: self._of.part(part, mask) for part in parts}
        sets = [(self._assignments(keys[part]).set_columns, changed[now] == part) for part in parts]
        wanted = Wanted(tries.rows, places, tries.row[now], tries.codes[now], sets)
        ((outputs, flips),) = self.inputs.run([wanted])
        for part, (_, here) in zip(parts, sets, strict=True):
            own = self._cells[keys[part]]
            own.failed[inputs[here & (outputs == FAILED)]] = True
            target = flips & here
            own.note_flips(inputs[target], variants[now[target]], outputs[target])
            ran = inputs[here] * own.variants.width + variants[now[here]]
            own.note_run(*np.divmod(np.unique(ran), own.variants.width))
        states[inputs[flips]] = FLIP
        np.add.at(cell.hits, (self.inputs.sides(inputs[flips]), tries.column[now[flips]]), 1)
        return len(now)

    def tries(self, mask: int, chosen: Places, places: Places) -> Tries:
        """Assignments of a set, some for each of these inputs, and which of them it had not."""
        cell = self.cell(mask)
        rows = self._rows(mask, places)
        row = np.repeat(np.arange(len(places)), chosen.shape[1])
        column = chosen.ravel()
        levels = cell.variants.levels[column]
        differs = levels != rows.own_levels(cell.variants.assignments)[row]
        differs &= levels != OWN
        changed = differs @ (1 << np.array(members(mask), dtype=np.int64))
        codes = rows.inputs(cell.variants, row, column)
        fresh = changed > 0
        schema = self._limits(cell, rows)
        if schema.constraints or schema.kept_missing:
            fresh &= schema.admits(rows.codes[row], codes)
        variants = np.zeros(len(row), np.int64)
        for part in np.unique(changed[fresh]).tolist():
            own = self.cell(self._of.part(part, mask))
            here = np.flatnonzero(fresh & (changed == part))
            own.grow(int(places.max()) + 1)
            variants[here] = own.variants.assignments.index_of(codes[here])
            fresh[here] = ~own.was_run(places[row[here]], variants[here])
        return Tries(places, rows, row, column, codes, changed, fresh, variants)

    def _advance(self, mask: int, places: Places) -> Places:
        """Run a cell of these inputs, ever more variants at a time; those that did not flip."""
        cell, left = self.cell(mask), places
        cell.grow(int(places.max(initial=-1)) + 1)
        while len(left := left[cell.state[left] == UNTRIED]):
            least = COARSE // len(left) if self.few_calls else 1
            self._run_wave([(mask, left)], max(least, 1))
        return np.asarray(places[cell.state[places] != FLIP])

    def best_order(self, cell: FlipCells, side: int) -> Places:
        """Variants that flipped others first, then those least like the decision at hand."""
        likeness = self.inputs.rates.likeness(cell.variants)
        return np.lexsort((likeness if side else -likeness, -cell.hits[side]))

    def _next(
        self, cell: FlipCells, mask: int, places: Places, orders: Places, least: int
    ) -> _Piece | None:
        """The next variants of these inputs; None if none of them is to be run."""
        rows = self._rows(mask, places)
        schema = self._limits(cell, rows)
        own = rows.own_levels(cell.variants.assignments)
        row, column = cell.next_variants(places, orders[self.inputs.sides(places)], own, least)
        codes = rows.inputs(cell.variants, row, column)
        if schema.constraints or schema.kept_missing:
            admitted = schema.admits(rows.codes[row], codes)
            cell.note_run(places[row[~admitted]], column[~admitted])
            row, column, codes = row[admitted], column[admitted], codes[admitted]
        if not len(row):
            return None
        every = [(cell.variants.assignments.set_columns, np.ones(len(row), dtype=bool))]
        return _Piece(cell, Wanted(rows, places, row, codes, every), column)

    def _limits(self, cell: FlipCells, rows: Rows) -> Schema:
        """The schema with the constraints that a variant of these inputs may break."""
        return cell.touching if rows.valid else self.sampler.runner.schema

    def _run(self, pieces: Sequence[_Piece]) -> None:
        """Execute variants of several cells together, and note the flips."""
        answers = self.inputs.run([each.wanted for each in pieces])
        for piece, (outputs, differs) in zip(pieces, answers, strict=True):
            cell, places, row = piece.cell, piece.wanted.places, piece.wanted.row
            cell.failed[places[row[outputs == FAILED]]] = True
            flips = np.flatnonzero(differs)
            first_flip = flips[np.unique(row[flips], return_index=True)[1]]
            target, variants = places[row[first_flip]], piece.variants[first_flip]
            cell.note_flips(target, variants, outputs[first_flip])
            cell.note_run(places[row], piece.variants)
            np.add.at(cell.hits, (self.inputs.sides(target), variants), 1)

    def _learn_flips(self, mask: int, places: Places) -> None:
        """Count, for inputs that were found to flip, the assignment of the set that did it."""
        cell = self.cell(mask)
        for part in self.parts(mask):
            own = self._cells[part]
            here = places[own.state[places] == FLIP]
            if part == mask or not len(here):
                continue
            rows = self._rows(part, here)
            places_of = own.flip_place[here].astype(np.int64)
            codes = rows.inputs(own.variants, np.arange(len(here)), places_of)
            variants = cell.variants.assignments.index_of(codes)
            np.add.at(cell.hits, (self.inputs.sides(here), variants), 1)

    # What comes next --------------------------------------------------------------------------
    def looking(self) -> AbstractContextManager[None]:
        """Within, nothing is at hand; idle slots may run what other sets will need."""
        self.at_hand.begin(0, 0)
        return self.inputs.looking()

    def coming(self) -> Generator[NDArray[Any]]:
        """Inputs that are likely to be needed, if the set at hand is not decided before.

        Further tries and proofs of the inputs at hand come first, then the base inputs that the
        same set will probably need, then those of the next sets.
        """
        mask, stop, inputs = self.at_hand.mask, self.at_hand.stop, self.inputs
        end = max(stop, self.at_hand.end()) if mask else 0
        with inputs.foreseeing(end):
            if mask:
                if self.at_hand.turn is not None:
                    yield self._coming_turn(self.at_hand.turn)
                yield from self._proofs(mask, self.at_hand.settling)
                yield from self._coming_rows(mask, stop, end, settles=self.at_hand.settles)
            for later, first, last in self.at_hand.later():
                if later != mask:
                    yield from self._coming_rows(later, first, last)

    def _coming_turn(self, turn: Turn) -> NDArray[Any]:
        """The next assignments in an order."""
        places = turn.places[self._are_open(turn.mask, turn.places)]
        orders = turn.orders[:, turn.start : turn.start + 8]
        if not len(places) or not orders.shape[1]:
            return self.sampler.base.rows(0, 0)
        tries = self.tries(turn.mask, orders[self.order_of(places)], places)
        return self._likely(turn.mask, tries, turn.start)

    def _coming_rows(
        self, mask: int, start: int, stop: int, *, settles: bool = False
    ) -> Iterator[NDArray[Any]]:
        """Base inputs that were not run yet, and the first tries of the others."""
        known = len(self.inputs.outputs)
        for first in range(start, stop, LEAST):
            last = min(first + LEAST, stop)
            if last > known:
                yield self.sampler.base.rows(max(first, known), last)
            if first < min(last, known) and self.is_exhaustive(mask):
                yield from self._first_tries(
                    mask, np.arange(first, min(last, known)), settles=settles
                )

    def _first_tries(self, mask: int, places: Places, *, settles: bool) -> Iterator[NDArray[Any]]:
        """The first tries of base inputs, and if they will be settled, all."""
        places = places[self._are_open(mask, places)]
        new = places[~self.cell(mask).probed[places]]
        if len(new):
            orders = self.best_orders(mask, FIRST_TRIES)
            tries = self.tries(mask, orders[self.order_of(new)], new)
            yield self._likely(mask, tries)
            cells, flips = self._held(tries)
            tried_first = flips | (tries.fresh & (cells == NOT_RUN))
            places = np.setdiff1d(places, new[np.unique(tries.row[tried_first])])
        if settles:
            yield from self._proofs(mask, places)

    def _likely(self, mask: int, tries: Tries, start: int = 0) -> NDArray[Any]:
        """Those of the tries, in their order, that come before a flip with some certainty."""
        chances, each = self.at_hand.chances[mask], len(tries.row) // len(tries.places)
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
        width = self.cell(mask).variants.width
        step = max(2**12 // width, 1)  # variants that are looked at together
        for first in range(0, len(places), step):
            some = places[first : first + step]
            tries = self.tries(mask, np.tile(np.arange(width), (len(some), 1)), some)
            yield tries.codes[tries.fresh]

    def _are_open(self, mask: int, places: Places) -> Flags:
        """Which of these base inputs are not settled under a set."""
        states = self.known(mask, int(places.max()) + 1)
        opened: Flags = states[places] == UNTRIED
        return opened

    def _held(self, tries: Tries) -> tuple[Cells, Flags]:
        """What running ahead gave for tries, NOT_RUN where nothing, and which of them are flips."""
        return self.inputs.held(tries.rows, tries.places, tries.row, tries.codes)
