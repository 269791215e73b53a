"""The table: rows are contexts of base inputs, columns the assignments of a set, cells outputs.

Both scores are read off it. Outputs that one set's table holds are never executed again for
another: a variant of a subset is also a variant of every superset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming
from themis.engine.coming import ComingCells, GoingOn, flipped, learn_whole, never_tried, own_first
from themis.engine.memory import RunnerBatch, TableMemory
from themis.engine.runner import Runner
from themis.engine.variants import (
    Drawn,
    Inputs,
    Rows,
    Variants,
    base_rows,
    mark_impossible,
    spread_order,
    waves,
)
from themis.inputs.assignments import Assignments
from themis.inputs.schema import Schema
from themis.inputs.streams import MIXING, BaseInputs
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.engine.suites import Suite

FEWEST_RECALLED = 1_000  # outputs that are worth asking another set's table, if calls are the cost
MIXED, MIXED_ROWS = 2_048, 16  # cells, or rows, that are run in random order before the next ones
COLUMN_ROWS = 4_096  # from here on a column is a batch of its own


@dataclass
class _Opened:
    """Rows that are still to be run, loaded into the subject at most once."""

    places: NDArray[np.int64]  # of these rows in the whole block
    rows: Rows
    start: int | None  # of the whole block, where its rows may be drawn elsewhere
    loaded: RunnerBatch | None = None

    def batch(self, runner: Runner) -> RunnerBatch:
        """The rows as a batch whose columns can be overwritten."""
        if self.loaded is None:
            self.loaded = runner.load(self.rows.codes)
        return self.loaded

    def keep(self, alive: NDArray[np.bool_]) -> _Opened:
        """Only the rows marked here."""
        if alive.all():
            return self
        chosen = np.flatnonzero(alive)
        loaded = None if self.loaded is None else self.loaded.take(chosen)
        return _Opened(self.places[chosen], self.rows.take(chosen), self.start, loaded)


class Asked(NamedTuple):
    """Inputs that are to be run, and what is made of their answers."""

    codes: NDArray[Any]
    take: Callable[[Cells], Cells]


class Tables:
    """The tables of one run, on common base inputs, and what is known of them."""

    def __init__(self, base: BaseInputs, runner: Runner) -> None:
        self.base = base
        self.runner = runner
        self.suite: Suite | None = None
        self.memory = TableMemory(runner.schema, runner.labels.dtype)
        self.tried: defaultdict[tuple[int, ...], NDArray[np.int64]] = defaultdict(never_tried)

    @property
    def schema(self) -> Schema:
        return self.runner.schema

    def rows(
        self, assignments: Assignments, start: int, stop: int, reading: Reading | None = None
    ) -> Rows:
        """Base inputs with the members that stand for the set's bins."""
        rows = base_rows(self.base, assignments, start, stop)
        if reading is not None and reading.needs_tolerances:
            rows.tolerances = self.base.tolerances(start, stop)
        rows.start = start if self.base.is_quick else None
        return rows

    def fill(
        self,
        variants: Variants,
        start: int,
        stop: int,
        *,
        reading: Reading | None = None,
        active: NDArray[np.bool_] | None = None,
        until_flip: bool = False,
        going_on: GoingOn | None = None,
    ) -> tuple[Rows, Cells]:
        """Rows start..stop of a set's table, executing only what is not known yet.

        `active` restricts it to some columns; with `until_flip` a row is left as soon as two of
        its outputs differ (Algorithm 2, line 18). The cells hold what the reading sees.
        """
        reading = reading or Reading(self.runner.labels)
        rows, cells = self._begun(variants, start, stop, reading)
        coming = None
        if going_on is not None:
            known = partial(self.known_rows, variants, reading)
            tried = self.tried[variants.assignments.columns]
            foreseen = ComingCells(
                self.runner, self.base, known, tried, variants, reading, active, going_on
            )
            coming = foreseen.after(start, rows, cells)
        try:
            self.complete(
                variants,
                rows,
                cells,
                reading,
                block=start,
                active=active,
                until_flip=until_flip,
                coming=coming,
            )
        finally:
            self.note("base", variants, rows, start, cells)
        self._keep(variants, start, cells)
        return rows, reading.cells(cells)

    def ask(
        self,
        variants: Variants,
        start: int,
        stop: int,
        reading: Reading,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[Rows, Asked]:
        """Rows start..stop of a set's table as `fill` gives them, before anything is run."""
        rows, cells = self._begun(variants, start, stop, reading)
        mark_impossible(self.schema, variants, rows, cells)
        missing = cells == NOT_RUN
        if active is not None:
            missing &= active
        places = np.nonzero(missing)

        def take(outputs: Cells) -> Cells:
            cells[places] = outputs
            self.note("base", variants, rows, start, cells)
            self._keep(variants, start, cells)
            return reading.cells(cells)

        return rows, Asked(rows.inputs(variants, *places), take)

    def run_asked(self, asked: Sequence[Asked]) -> list[Cells]:
        """Run inputs of several tables together: what is made of their answers."""
        if not asked:
            return []
        codes = np.concatenate([each.codes for each in asked])
        order = np.arange(len(codes))
        if not self.runner.traits.vectorised:  # see _complete_mixed
            order = self.base.generator(MIXING, len(codes), len(asked)).permutation(order)
        outputs = np.full(len(codes), NOT_RUN, dtype=self.runner.labels.dtype)
        if len(codes) and self.runner.must_not_begin:
            raise BudgetEndedError
        if len(codes):
            outputs[order] = self.runner.run(codes[order])
        ends = np.cumsum([len(each.codes) for each in asked])[:-1]
        parts = zip(asked, np.split(outputs, ends), strict=True)
        return [each.take(own) for each, own in parts]

    def _begun(
        self, variants: Variants, start: int, stop: int, reading: Reading
    ) -> tuple[Rows, Cells]:
        """Rows of a table with what is known of them, which counts as remembered."""
        rows, cells = self.known_rows(variants, reading, start, stop)
        self.runner.ledger.remember(int((cells >= FAILED).sum()))
        return rows, cells

    def known_rows(
        self, variants: Variants, reading: Reading, start: int, stop: int
    ) -> tuple[Rows, Cells]:
        """Rows of a table with what the tables of all sets know of them."""
        rows = self.rows(variants.assignments, start, stop, reading)
        cells = self.empty(len(rows), variants.width)
        if variants.complete and not self.runner.remembers:
            least = FEWEST_RECALLED if self.runner.saves_calls else 0
            self.memory.recall(variants, rows.codes, start, cells, least)
        return rows, cells

    def _keep(self, variants: Variants, start: int, cells: Cells) -> None:
        """Remember rows of a table, for it and for those of other sets."""
        if variants.complete and not (self.runner.remembers or self.runner.is_aside):
            self.memory.keep(variants, start, cells)

    def empty(self, rows: int, width: int) -> Cells:
        """A table in which nothing was run."""
        return np.full((rows, width), NOT_RUN, dtype=self.runner.labels.dtype, order="F")

    def note(self, stream: str, variants: Variants, rows: Rows, start: int, cells: Cells) -> None:
        """Write what is known of these rows into the suite, if one is wanted."""
        if self.suite is not None and not self.runner.is_aside:
            columns = variants.assignments.columns

            def inputs(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[Any]:
                return rows.inputs(variants, row, column)

            self.suite.add_table(stream, columns, start, rows.codes, cells, inputs)

    def complete(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        reading: Reading,
        *,
        block: int,
        active: NDArray[np.bool_] | None = None,
        until_flip: bool = False,
        coming: Coming | None = None,
    ) -> None:
        """Execute the cells that are still missing, in place; `block` is where the rows begin.

        Idle slots of a subject may run what is `coming`.
        """
        mark_impossible(self.schema, variants, rows, cells)
        own = own_first(variants, rows, reading) if until_flip else None
        if not self.runner.traits.vectorised:
            with self.runner.ahead.looking(coming):
                self._complete_mixed(variants, rows, cells, reading, block, active, own, until_flip)
            return
        opened = _Opened(np.arange(len(rows)), rows, rows.start)
        if not until_flip:
            chosen = np.arange(variants.width) if active is None else np.flatnonzero(active)
            self._run(variants, rows, cells, opened, chosen)
            return
        if own is not None:
            self._run_cells_of(variants, rows, cells, opened.places, own)
        for places in waves(variants.width, calls=self.runner.saves_calls):
            opened = opened.keep(~flipped(cells, opened.places, reading, own))
            self._run(variants, rows, cells, opened, places)

    def _complete_mixed(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        reading: Reading,
        block: int,
        active: NDArray[np.bool_] | None,
        own: NDArray[np.int64] | None,
        until_flip: bool,
    ) -> None:
        """The same for subjects that run input by input, and may remember what came before.

        What is run when must have nothing to do with the assignment, or a subject that drifts,
        alternates or answers late would seem to discriminate. So cells are run in an order that is
        drawn from the seed and the block alone. A row is left once it flips; rows try the columns
        in the same order, each beginning elsewhere, one further column at a time. Where a row
        begins does not depend on the block: how rows are cut into blocks may depend on time.
        """
        rng = self.base.generator(MIXING, block)
        everyone = np.arange(len(rows))
        run = partial(self._run_cells_of, variants, rows, cells, rng=rng)
        tried = self.tried[variants.assignments.columns]
        order = spread_order(variants.width)
        begin = self.base.beginnings(block, block + len(rows), variants.width)
        if not until_flip:
            chosen = np.arange(variants.width) if active is None else np.flatnonzero(active)
            run(np.repeat(everyone, len(chosen)), np.tile(chosen, len(rows)))
            if active is None and self.runner.traits.external and not reading.graded:
                columns = order[(begin[:, None] + np.arange(variants.width)) % variants.width]
                learn_whole(tried, reading.cells(np.take_along_axis(cells, columns, axis=1)))
            return
        if own is not None:
            run(everyone, own)
        start, opened = 0, everyone
        while start < variants.width:
            flips = flipped(cells, opened, reading, own)
            if start:
                tried[start.bit_length()] += len(opened), flips.sum()
            opened = opened[~flips]
            step = np.arange(start, min(start + (1 if start else 2), variants.width))
            row = np.repeat(opened, len(step))
            run(row, order[(begin[row] + np.tile(step, len(opened))) % variants.width])
            start += len(step)

    def _run(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        opened: _Opened,
        places: NDArray[np.int64],
    ) -> None:
        """Execute the missing cells in the opened rows and these columns."""
        count = len(opened.places)
        if not count or not len(places):
            return
        every = count == len(rows)
        wanted = cells.T[places]  # by column, as the table is
        missing = ((wanted if every else wanted[:, opened.places]) == NOT_RUN).T
        if COLUMN_ROWS <= count <= self.runner.longest_call:
            whole = missing.all(axis=0)
            with self.runner.ending_together():
                self._run_columns(variants, cells, opened, places[whole])
            if whole.all():
                return
            missing[:, whole] = False
        row, column = np.nonzero(missing)
        self._run_cells_of(variants, rows, cells, opened.places[row], places[column])

    def _run_cells_of(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        rng: np.random.Generator | None = None,
    ) -> None:
        """Execute the missing ones of these cells, in random order where there is an `rng`."""
        missing = np.flatnonzero(cells[row, column] == NOT_RUN)
        if rng is not None:
            missing = _mixed(missing, rng, max(MIXED, MIXED_ROWS * variants.width))
        first = 0
        while first < len(missing) and not self.runner.out_of_time:
            part = missing[first : first + self.runner.batch_size]
            self.run_cells(variants, rows, cells, row[part], column[part])
            first += len(part)

    def _run_columns(
        self, variants: Variants, cells: Cells, opened: _Opened, places: NDArray[np.int64]
    ) -> None:
        """Decode the rows once, then overwrite the set's columns, assignment by assignment."""
        if self.runner.draws_elsewhere:
            self._run_columns_elsewhere(variants, cells, opened, places)
            return
        for place in places:
            if self.runner.out_of_time:
                return
            batch = opened.batch(self.runner)
            for column, codes in opened.rows.changes(variants, int(place)):
                batch.overwrite(column, codes)
            if len(opened.places) == len(cells):
                cells[:, place] = batch.run()
            else:
                cells[opened.places, place] = batch.run()

    def _run_columns_elsewhere(
        self, variants: Variants, cells: Cells, opened: _Opened, places: NDArray[np.int64]
    ) -> None:
        """Run the same columns at once: those who share the work wait less for each other."""
        if not len(places):
            return
        count = len(opened.places)
        inputs: Inputs
        if opened.start is None:
            row, column = np.tile(np.arange(count), len(places)), np.repeat(places, count)
            inputs = opened.rows.inputs(variants, row, column)
        else:
            inputs = Drawn.of(self.base, opened.start, opened.places, variants, places)
        found = self.runner.perform(inputs, call=count).reshape(len(places), count)
        rows = slice(None) if count == len(cells) else opened.places
        for place, outputs in zip(places, found, strict=True):
            cells[rows, place] = outputs

    def run_cells(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
    ) -> None:
        """Execute single cells: for few rows, or where the missing cells lie scattered."""
        cells[row, column] = self.runner.run(rows.inputs(variants, row, column))

    def known_outputs(self, codes: NDArray[Any], start: int) -> Cells:
        """The outputs of base inputs start, start + 1, … as far as they are held in memory."""
        cells = self.runner.known(codes)
        self.memory.look_up(codes, start, cells)
        return cells


def _mixed(places: NDArray[np.int64], rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """The places in random order, so many after so many: what is near stays in reach."""
    if len(places) <= size:
        return rng.permutation(places)
    parts = np.split(places, range(size, len(places), size))
    return np.concatenate([rng.permutation(part) for part in parts])
