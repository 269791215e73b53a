"""The table: rows are contexts of base inputs, columns the assignments of a set, cells outputs.

Both scores are read off it. Outputs that one set's table holds are never executed again for
another: a variant of a subset is also a variant of every superset.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming, in_windows
from themis.engine.blocks import Block, learn_whole, never_tried, spread_order, waves
from themis.engine.memory import RunnerBatch, TableMemory
from themis.engine.runner import Runner
from themis.engine.variants import Drawn, Inputs, Rows, Variants, base_rows
from themis.inputs.assignments import Assignments, Places
from themis.inputs.streams import MIXING, BaseInputs
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.engine.suites import Suite

FEWEST_RECALLED = 1_000  # outputs that are worth asking another set's table, if calls are the cost
MIXED, MIXED_ROWS = 2_048, 16  # cells, or rows, that are run in random order before the next ones
COLUMN_ROWS = 4_096  # from here on a column is a batch of its own
LIKELY = 0.9  # a cell is run ahead if it is needed with at least this chance

Flags = NDArray[np.bool_]


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


class GoingOn(NamedTuple):
    """What a table will need after the rows that are run now, if the answer is not in before."""

    whole_to: float = math.inf  # rows before this one are run whole, the others until they flip
    end: float = math.inf  # of the rows


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

    def rows(
        self, assignments: Assignments, start: int, stop: int, reading: Reading | None = None
    ) -> Rows:
        """Base inputs with the members that stand for the set's bins."""
        rows = base_rows(self.base, assignments, start, stop)
        if reading is not None and reading.needs_tolerances:
            rows.tolerances = self.base.tolerances(start, stop)
        rows.start = start if self.base.is_quick else None
        return rows

    def unknown(
        self, variants: Variants, start: int, stop: int, reading: Reading | None = None
    ) -> Block:
        """Rows of a table in which nothing was run; what can be no counterfactual is marked."""
        block = self._empty(variants, start, stop, reading or Reading(self.runner.labels))
        block.mark_impossible()
        return block

    def fill(
        self,
        variants: Variants,
        start: int,
        stop: int,
        *,
        reading: Reading | None = None,
        active: Flags | None = None,
        until_flip: bool = False,
        going_on: GoingOn | None = None,
    ) -> tuple[Rows, Cells]:
        """Rows start..stop of a set's table, executing only what is not known yet.

        `active` restricts it to some columns; with `until_flip` a row is left as soon as two of
        its outputs differ (Algorithm 2, line 18). The cells hold what the reading sees.
        """
        block = self._begun(variants, start, stop, reading or Reading(self.runner.labels))
        block.active, block.until_flip = active, until_flip
        try:
            self.complete(block, going_on)
        finally:
            self.note("base", block)
        self._keep(block)
        return block.rows, block.outputs

    def ask(
        self, variants: Variants, start: int, stop: int, reading: Reading,
        active: Flags | None = None,
    ) -> tuple[Rows, Asked]:  # fmt: skip
        """Rows start..stop of a set's table as `fill` gives them, before anything is run."""
        block = self._begun(variants, start, stop, reading)
        block.mark_impossible()
        missing = block.cells == NOT_RUN
        if active is not None:
            missing &= active
        places = np.nonzero(missing)

        def take(outputs: Cells) -> Cells:
            block.cells[places] = outputs
            self.note("base", block)
            self._keep(block)
            return block.outputs

        return block.rows, Asked(block.inputs(*places), take)

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

    def _begun(self, variants: Variants, start: int, stop: int, reading: Reading) -> Block:
        """Rows of a table with what is known of them, which counts as remembered."""
        block = self._known(variants, start, stop, reading)
        self.runner.ledger.remember(int((block.cells >= FAILED).sum()))
        return block

    def _known(self, variants: Variants, start: int, stop: int, reading: Reading) -> Block:
        """Rows of a table with what the tables of all sets know of them."""
        block = self._empty(variants, start, stop, reading)
        if variants.complete and not self.runner.remembers:
            least = FEWEST_RECALLED if self.runner.saves_calls else 0
            self.memory.recall(variants, block.rows.codes, start, block.cells, least)
        return block

    def _empty(self, variants: Variants, start: int, stop: int, reading: Reading) -> Block:
        rows = self.rows(variants.assignments, start, stop, reading)
        shape, dtype = (len(rows), variants.width), self.runner.labels.dtype
        cells = np.full(shape, NOT_RUN, dtype=dtype, order="F")
        return Block(variants, rows, cells, reading, start)

    def _keep(self, block: Block) -> None:
        """Remember rows of a table, for it and for those of other sets."""
        if block.variants.complete and not (self.runner.remembers or self.runner.is_aside):
            self.memory.keep(block.variants, block.start, block.cells)

    def note(self, stream: str, block: Block) -> None:
        """Write what is known of these rows into the suite, if one is wanted."""
        if self.suite is not None and not self.runner.is_aside:
            columns = block.variants.assignments.columns
            self.suite.add_table(
                stream, columns, block.start, block.rows.codes, block.cells, block.inputs
            )

    def complete(self, block: Block, going_on: GoingOn | None = None) -> None:
        """Execute the cells that are still missing, in place.

        Idle slots of a subject may run what it needs next, if it is told how it goes on.
        """
        coming = None if going_on is None else self._coming(block, going_on)
        block.mark_impossible()
        if not self.runner.traits.vectorised:
            with self.runner.ahead.looking(coming):
                self._complete_mixed(block)
            return
        opened = _Opened(np.arange(len(block)), block.rows, block.rows.start)
        if not block.until_flip:
            self._run(block, opened, block.chosen)
            return
        if block.own is not None:
            self._run_cells_of(block, opened.places, block.own)
        for places in waves(block.variants.width, calls=self.runner.saves_calls):
            opened = opened.keep(~block.flipped(opened.places))
            self._run(block, opened, places)

    def _complete_mixed(self, block: Block) -> None:
        """The same for subjects that run input by input, and may remember what came before.

        What is run when must have nothing to do with the assignment, or a subject that drifts,
        alternates or answers late would seem to discriminate. So cells are run in an order that is
        drawn from the seed and the block alone. A row is left once it flips; rows try the columns
        in the same order, each beginning elsewhere, one further column at a time. Where a row
        begins does not depend on the block: how rows are cut into blocks may depend on time.
        """
        rng, width = self.base.generator(MIXING, block.start), block.variants.width
        everyone = np.arange(len(block))
        run = partial(self._run_cells_of, block, rng=rng)
        tried = self.tried[block.variants.assignments.columns]
        columns = self._orders(block, width)
        if not block.until_flip:
            chosen = block.chosen
            run(np.repeat(everyone, len(chosen)), np.tile(chosen, len(block)))
            is_whole = block.active is None and self.runner.traits.external
            if is_whole and not block.reading.graded:
                in_order = np.take_along_axis(block.cells, columns, axis=1)
                learn_whole(tried, block.reading.cells(in_order))
            return
        if block.own is not None:
            run(everyone, block.own)
        start, opened = 0, everyone
        while start < width:
            flips = block.flipped(opened)
            if start:
                tried[start.bit_length()] += len(opened), flips.sum()
            opened = opened[~flips]
            stop = min(start + (1 if start else 2), width)
            run(np.repeat(opened, stop - start), columns[opened, start:stop].ravel())
            start = stop

    def _orders(self, block: Block, steps: int) -> Places:
        """The first columns in which each row is tried: rows × steps."""
        width = block.variants.width
        begin = self.base.beginnings(block.start, block.start + len(block), width)
        return np.asarray(spread_order(width)[(begin[:, None] + np.arange(steps)) % width])

    def _run(self, block: Block, opened: _Opened, places: Places) -> None:
        """Execute the missing cells in the opened rows and these columns."""
        count = len(opened.places)
        if not count or not len(places):
            return
        every = count == len(block)
        wanted = block.cells.T[places]  # by column, as the table is
        missing = ((wanted if every else wanted[:, opened.places]) == NOT_RUN).T
        if COLUMN_ROWS <= count <= self.runner.longest_call:
            whole = missing.all(axis=0)
            with self.runner.ending_together():
                self._run_columns(block, opened, places[whole])
            if whole.all():
                return
            missing[:, whole] = False
        row, column = np.nonzero(missing)
        self._run_cells_of(block, opened.places[row], places[column])

    def _run_cells_of(
        self, block: Block, row: Places, column: Places, rng: np.random.Generator | None = None
    ) -> None:
        """Execute the missing ones of these cells, in random order where there is an `rng`."""
        missing = np.flatnonzero(block.cells[row, column] == NOT_RUN)
        if rng is not None:
            missing = _mixed(missing, rng, max(MIXED, MIXED_ROWS * block.variants.width))
        first = 0
        while first < len(missing) and not self.runner.out_of_time:
            part = missing[first : first + self.runner.batch_size]
            self.run_cells(block, row[part], column[part])
            first += len(part)

    def _run_columns(self, block: Block, opened: _Opened, places: Places) -> None:
        """Decode the rows once, then overwrite the set's columns, assignment by assignment."""
        if self.runner.draws_elsewhere:
            self._run_columns_elsewhere(block, opened, places)
            return
        rows = slice(None) if len(opened.places) == len(block) else opened.places
        for place in places:
            if self.runner.out_of_time:
                return
            batch = opened.batch(self.runner)
            for column, codes in opened.rows.changes(block.variants, int(place)):
                batch.overwrite(column, codes)
            block.cells[rows, place] = batch.run()

    def _run_columns_elsewhere(self, block: Block, opened: _Opened, places: Places) -> None:
        """Run the same columns at once: those who share the work wait less for each other."""
        if not len(places):
            return
        count = len(opened.places)
        inputs: Inputs
        if opened.start is None:
            row, column = np.tile(np.arange(count), len(places)), np.repeat(places, count)
            inputs = opened.rows.inputs(block.variants, row, column)
        else:
            inputs = Drawn.of(self.base, opened.start, opened.places, block.variants, places)
        found = self.runner.perform(inputs, call=count).reshape(len(places), count)
        rows = slice(None) if count == len(block) else opened.places
        for place, outputs in zip(places, found, strict=True):
            block.cells[rows, place] = outputs

    def run_cells(self, block: Block, row: Places, column: Places) -> None:
        """Execute single cells: for few rows, or where the missing cells lie scattered."""
        block.cells[row, column] = self.runner.run(block.inputs(row, column))

    # What a table needs next, if the answer is not in before ----------------------------------
    def _coming(self, block: Block, going_on: GoingOn) -> Coming:
        """What comes after what is run now of a block, whose cells are filled meanwhile."""

        def later(start: int, stop: int) -> NDArray[Any]:
            following = self._known(block.variants, start, stop, block.reading)
            following.active = block.active
            following.mark_impossible()
            return self._needed(following, going_on, min(block.variants.width, 32))

        def coming() -> Generator[NDArray[Any]]:
            yield self._needed(block, going_on, block.variants.width)
            yield from in_windows(later, block.start + len(block), going_on.end)()

        return coming

    def _needed(self, block: Block, going_on: GoingOn, steps: int) -> NDArray[Any]:
        """What is missing of these rows: all of those that are run whole, of others the next."""
        chosen = block.chosen
        whole = np.arange(int(min(max(going_on.whole_to - block.start, 0), len(block))))
        row, column = np.repeat(whole, len(chosen)), np.tile(chosen, len(whole))
        if len(whole) < len(block):
            next_row, next_column = self._next(block, steps)
            later = next_row >= len(whole)
            row = np.concatenate([row, next_row[later]])
            column = np.concatenate([column, next_column[later]])
        missing = block.cells[row, column] == NOT_RUN
        return block.inputs(row[missing], column[missing])

    def _next(self, block: Block, steps: int) -> tuple[Places, Places]:
        """The next cells of each row that does not flip, by what was run ahead, and the first two.

        They are as many as are likely to be needed, in the order in which they are tried.
        """
        columns = self._orders(block, steps)
        if block.own is not None:
            columns = np.concatenate([block.own[:, None], columns], axis=1)
        row, place = np.nonzero(np.take_along_axis(block.cells, columns, axis=1) == NOT_RUN)
        column, held = columns[row, place], replace(block, cells=block.cells.copy())
        held.cells[row, column] = self.runner.held(block.inputs(row, column))
        opened = ~held.flipped(np.arange(len(block)))
        missing = (np.take_along_axis(held.cells, columns, axis=1) == NOT_RUN) & opened[:, None]
        number = np.arange(columns.shape[1]) + (block.own is None)
        tries, flips = self.tried[block.variants.assignments.columns][np.frexp(number)[1]].T
        stays = np.where(missing, 1 - flips / tries, 1.0)
        likely = missing & (stays.cumprod(axis=1) / stays >= LIKELY)
        place, row = np.nonzero(likely.T)
        return row, columns[row, place]

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
