"""Which base inputs flip under which change: known once, used by every set of a search.

A cell belongs to one base input and one set T: the variants that change *exactly* the
characteristics in T. An input flips under X' when some cell with T ⊆ X' holds a flip. Cells are
disjoint, so nothing is executed twice, and a flip under a subset is a flip under every superset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs import Assignments
from themis.lattice import members, subsets
from themis.outcomes import FAILED, NOT_RUN, Cells
from themis.readings import CONSTANT, FLIP, UNKNOWN
from themis.sampling import Sampler
from themis.streams import VARIANTS
from themis.tables import Rows, Variants

UNTRIED = -2  # further: not all variants of the cell were run, and none flipped

FIRST_TRIES = 4  # variants of the whole set tried at first; waves end at powers of two
SAMPLE_TRIES = 128  # variants tried where all are too many: a flip can be found, not excluded
WIDEST = 6  # sets with more characteristics are only sampled

LEARNED_LEVELS = 4_096  # of a characteristic with more, no level comes twice
CELLS_AT_ONCE = 2**17  # inputs built at once: memory stays flat

Places = NDArray[np.int64]


@dataclass
class _Cell:
    """What is known of the variants that change exactly one set of characteristics."""

    variants: Variants
    complete: bool
    state: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    tried: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    order: NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))  # −1: none yet
    failed: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    flip_place: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    flip_output: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int32))
    orders: list[Places] = field(default_factory=list)  # an input keeps the order it began with
    hits: NDArray[np.int64] = field(default_factory=lambda: np.empty((2, 0), np.int64))

    def grow(self, count: int) -> None:
        """Make room for this many base inputs."""
        more = max(count - len(self.state), 0)
        if not more:
            return
        more = max(more, len(self.state))
        for name, value in (
            ("state", UNTRIED),
            ("tried", 0),
            ("order", -1),
            ("failed", 0),
            ("flip_place", -1),
            ("flip_output", 0),
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(more, value, old.dtype)]))


class BudgetEndedError(Exception):
    """The next executions are more than the budget allows."""


class FlipBook:
    """The flips of common base inputs under changes of some searched characteristics."""

    def __init__(self, sampler: Sampler, columns: tuple[int, ...], *, cap: int) -> None:
        self.sampler = sampler
        self.columns = columns
        self.cap = cap
        self.outputs: Cells = np.empty(0, sampler.runner.labels.dtype)  # of the base inputs
        self.answers: Cells = self.outputs  # the same with all outputs, where a suite gets them
        self._cells: dict[int, _Cell] = {}
        self._counts: dict[int, int] = {}
        levels = {c: sampler.population.schema.characteristics[c].levels for c in columns}
        known = {c: size for c, size in levels.items() if size <= LEARNED_LEVELS}
        self._favourable = {c: np.ones(size) for c, size in known.items()}
        self._total = {c: np.full(size, 2.0) for c, size in known.items()}

    def states(self, mask: int, start: int, stop: int) -> NDArray[np.int8]:
        """FLIP, CONSTANT or UNKNOWN for each of these base inputs under a set."""
        states = self.probe(mask, start, stop)
        return self.settle(mask, states, start, np.flatnonzero(states == UNTRIED))

    def probe(self, mask: int, start: int, stop: int) -> NDArray[np.int8]:
        """The same for little: known flips, and a few promising variants of the whole set.

        Inputs that did not flip so far stay UNTRIED.
        """
        self._run_base(stop)
        result = np.full(stop - start, UNTRIED, dtype=np.int8)
        result[self.outputs[start:stop] < 0] = UNKNOWN  # nothing to compare with
        for part in self._parts(mask):
            if part in self._cells:
                known = self._cells[part].state[start:stop] == FLIP
                result[: len(known)][known & (result[: len(known)] == UNTRIED)] = FLIP
        exhaustive = self._cell(mask).complete
        self._advance(mask, result, start, stop, FIRST_TRIES if exhaustive else SAMPLE_TRIES)
        if not exhaustive:
            result[result == UNTRIED] = UNKNOWN
        return result

    def settle(
        self, mask: int, states: NDArray[np.int8], start: int, chosen: Places
    ) -> NDArray[np.int8]:
        """The states with these untried ones settled: parts are exhausted, small ones first."""
        if not len(chosen):
            return states
        result = np.full(len(states), CONSTANT, dtype=np.int8)
        result[chosen] = UNTRIED
        stop = start + len(states)
        unknown = np.zeros(len(states), dtype=bool)
        for part in self._parts(mask):
            self._advance(part, result, start, stop, None)
            state = self._cells[part].state[start:stop]
            assert not (state[result == UNTRIED] == UNTRIED).any(), "a cell was not exhausted"
            unknown |= state == UNKNOWN
        pending = result == UNTRIED
        result[pending] = np.where(unknown[pending], UNKNOWN, CONSTANT)
        settled = states.copy()
        settled[chosen] = result[chosen]
        return settled

    def pairs(self, mask: int, count: int) -> tuple[Any, Any, Any]:
        """Base inputs that flip under a set, their flipped variants, and both outputs."""
        first, second, outputs = [], [], []
        seen = np.zeros(len(self.outputs), dtype=bool)
        for part in self._parts(mask):
            cell = self._cells.get(part)
            if cell is None:
                continue
            state = cell.state[: len(self.outputs)]
            places = np.flatnonzero((state == FLIP) & ~seen[: len(state)])[:count]
            if len(places):
                seen[places] = True
                rows = self._rows(part, places)
                own = np.arange(len(places))
                first.append(rows.codes)
                second.append(
                    rows.inputs(cell.variants, own, cell.flip_place[places].astype(np.int64))
                )
                outputs.append(np.stack([self.outputs[places], cell.flip_output[places]], axis=1))
        if not first:
            return (), (), ()
        return np.concatenate(first), np.concatenate(second), np.concatenate(outputs)

    def is_exhaustive(self, mask: int) -> bool:
        """Whether all variants of a set are tried, so that a row can be called constant."""
        return self._cell(mask).complete

    def names(self, mask: int) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        return self._assignments(mask).names

    def _parts(self, mask: int) -> list[int]:
        """The subsets of a set, cheap ones first; of a very wide set only those that are known."""
        if mask.bit_count() > WIDEST:
            found = [part for part in self._cells if part & mask == part]
            return sorted({*found, mask}, key=lambda part: (part.bit_count(), part))
        return sorted(subsets(mask), key=lambda part: (self._count(part), part))

    def _count(self, mask: int) -> int:
        if mask not in self._counts:
            self._counts[mask] = self._assignments(mask).count
        return self._counts[mask]

    def _assignments(self, mask: int) -> Assignments:
        columns = tuple(self.columns[place] for place in members(mask))
        return Assignments(self.sampler.population.schema, columns)

    def _cell(self, mask: int) -> _Cell:
        if mask not in self._cells:
            assignments = self._assignments(mask)
            complete = assignments.count <= self.cap and mask.bit_count() <= WIDEST
            limit = self.cap if complete else 2
            variants = Variants.of(assignments, limit=limit, base=self.sampler.base)
            if not complete:
                variants = self._sampled(assignments)
            cell = _Cell(variants, complete)
            cell.hits = np.zeros((2, variants.width), np.int64)
            self._cells[mask] = cell
        return self._cells[mask]

    def _sampled(self, assignments: Assignments) -> Variants:
        """Random assignments of a set that has too many: a fixed list for all base inputs."""
        rng = self.sampler.base.generator(VARIANTS, len(assignments.columns), *assignments.columns)
        drawn = assignments.random_levels(rng, 16 * SAMPLE_TRIES)
        return Variants(assignments, drawn, complete=False)

    def _run_base(self, stop: int) -> None:
        start = len(self.outputs)
        if stop <= start:
            return
        codes = self.sampler.base.rows(start, stop)
        if stop - start > self.sampler.runner.executions_left:
            raise BudgetEndedError
        answers = self.sampler.runner.run(codes)
        self.sampler.tables.keep_base(start, answers)
        if self.sampler.tables.suite is not None:
            self.answers = np.concatenate([self.answers, answers])
            self.sampler.tables.suite.add_singles((), codes, answers)
        cells = self.sampler.reading.cells(answers)
        self.outputs = np.concatenate([self.outputs, cells])
        good = self.sampler.reading.labels.is_favourable(cells)
        schema = self.sampler.population.schema
        for column in self.columns:
            levels = schema.characteristics[column].level_of(codes[:, column])
            self._learn(column, levels, good)

    def _learn(self, column: int, levels: Any, good: NDArray[np.bool_]) -> None:
        if column not in self._total:
            return
        size = len(self._total[column])
        self._favourable[column] += np.bincount(levels, good, minlength=size)
        self._total[column] += np.bincount(levels, minlength=size)

    def _rows(self, mask: int, places: Places) -> Rows:
        assignments = self._assignments(mask)
        first, last = int(places.min()), int(places.max()) + 1
        rows = self.sampler.tables.rows(assignments, first, last, self.sampler.reading)
        return rows.take(places - first)

    def _advance(
        self, mask: int, result: NDArray[np.int8], start: int, stop: int, limit: int | None
    ) -> None:
        """Run a cell of the inputs that have not flipped yet, up to a number of variants."""
        cell = self._cell(mask)
        cell.grow(stop)
        places = start + np.flatnonzero(result == UNTRIED)
        places = places[cell.state[places] == UNTRIED]
        if limit is not None:
            places = places[cell.tried[places] < limit]
        self._begin(cell, mask, places)
        for number in np.unique(cell.order[places]):
            self._try(cell, mask, places[cell.order[places] == number], int(number), limit)
        flipped = cell.state[start:stop] == FLIP
        result[flipped & (result == UNTRIED)] = FLIP

    def _begin(self, cell: _Cell, mask: int, places: Places) -> None:
        """Give inputs that are new to the cell the best order that is known now."""
        new = places[cell.order[places] < 0]
        if not len(new):
            return
        good = self.sampler.reading.labels.is_favourable(self.outputs[new])
        for side in (0, 1):
            chosen = new[good == bool(side)]
            if len(chosen):
                cell.orders.append(self._best_order(cell, side))
                cell.order[chosen] = len(cell.orders) - 1

    def _best_order(self, cell: _Cell, side: int) -> Places:
        """Variants that flipped others first, then those least like the decision at hand."""
        points = np.zeros(cell.variants.width)
        for position, column in enumerate(cell.variants.assignments.columns):
            if column not in self._total:
                continue
            rate = self._favourable[column] / self._total[column]
            points += np.log(rate / (1 - rate))[cell.variants.levels[:, position]]
        points = points if side else -points
        return np.lexsort((points, -cell.hits[side]))

    def _try(self, cell: _Cell, mask: int, places: Places, number: int, limit: int | None) -> None:
        """Try variants in one order, ever more at a time, until each input flips or is done."""
        order = cell.orders[number]
        end = len(order) if cell.complete else min(len(order), SAMPLE_TRIES)
        for place, size in _waves(end if limit is None else min(limit, end)):
            now = places[(cell.state[places] == UNTRIED) & (cell.tried[places] == place)]
            rows = max(CELLS_AT_ONCE // size, 1)
            for first in range(0, len(now), rows):
                part = now[first : first + rows]
                self._wave(cell, mask, part, order[place : place + size])
                cell.tried[part] = place + size
        over = places[(cell.tried[places] >= end) & (cell.state[places] == UNTRIED)]
        certain = ~cell.failed[over] & cell.complete
        cell.state[over] = np.where(certain, CONSTANT, UNKNOWN)

    def _wave(self, cell: _Cell, mask: int, places: Places, chosen: Places) -> None:
        """Execute these variants of these inputs, and note the flips."""
        runner = self.sampler.runner
        rows = self._rows(mask, places)
        own = rows.own_levels(cell.variants.assignments)
        differs = cell.variants.levels[chosen][None] != own[:, None, :]
        allowed = differs.all(axis=2) if cell.complete else differs.any(axis=2)
        row, column = np.nonzero(allowed)
        codes = rows.inputs(cell.variants, row, chosen[column])
        if runner.schema.constraints:
            valid = runner.schema.valid(codes)
            row, column, codes = row[valid], column[valid], codes[valid]
        if not len(row):
            return
        if len(codes) > runner.executions_left or runner.out_of_time:
            raise BudgetEndedError
        reading = self.sampler.reading
        cells = reading.cells(self._run(cell, places, rows.codes, row, codes))
        base = self.outputs[places[row]]
        failed = cells == FAILED
        cell.failed[places[row[failed]]] = True
        tolerances = None if rows.tolerances is None else rows.tolerances[row]
        flips = np.flatnonzero(reading.differs(base, cells, tolerances))
        first_flip = flips[np.unique(row[flips], return_index=True)[1]]
        target = places[row[first_flip]]
        cell.state[target] = FLIP
        cell.flip_place[target] = chosen[column[first_flip]]
        cell.flip_output[target] = cells[first_flip]
        good = reading.labels.is_favourable(cells)
        sides = reading.labels.is_favourable(base[first_flip]).astype(int)
        np.add.at(cell.hits, (sides, chosen[column[first_flip]]), 1)
        for position, changed in enumerate(cell.variants.assignments.columns):
            self._learn(changed, cell.variants.levels[chosen[column], position], good)

    def _run(
        self, cell: _Cell, places: Places, base: NDArray[Any], row: Places, codes: NDArray[Any]
    ) -> Cells:
        """The answers of variants, batch by batch; the suite gets them however that ends."""
        runner, suite = self.sampler.runner, self.sampler.tables.suite
        cells = np.full(len(codes), NOT_RUN, dtype=runner.labels.dtype)
        first = 0
        try:
            while first < len(codes):
                part = slice(first, first + runner.batch_size)
                cells[part] = runner.run(codes[part])
                first = part.stop
        finally:
            if suite is not None:
                columns = cell.variants.assignments.columns
                own = self.answers[places]
                stream = f"search {self.sampler.reading.place}"
                suite.add_variants(stream, columns, places, base, own, row, codes, cells)
        return cells


def _waves(end: int) -> Iterator[tuple[int, int]]:
    """Where each wave of variants begins and how many it has: 1, 1, 2, 4, … up to `end`."""
    place, size = 0, 1
    while place < end:
        step = min(size, end - place)
        yield place, step
        size = place + step
        place += step
