"""The table: rows are contexts of base inputs, columns the assignments of a set, cells outputs.

Both scores are read off it. Outputs that one set's table holds are never executed again for
another: a variant of a subset is also a variant of every superset.

The outputs of one set's table that are kept for other sets and later questions.

Outputs that are known by their inputs, in domains that are too large to be remembered whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner, RunnerBatch
from themis.engine.suites import Suite
from themis.engine.variants import (
    Rows,
    Variants,
    mark_impossible,
    own_columns,
    spread_order,
    waves,
)
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
from themis.inputs.streams import MIXING, BaseInputs
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import FLIP, Reading


class StoredRows:
    """The first rows of one set's table, in the blocks in which they came."""

    def __init__(self, assignments: Assignments, dtype: np.dtype[Any]) -> None:
        self.assignments = assignments
        self.count = 0
        self.bytes = 0
        self._starts: list[int] = []
        self._blocks: list[Cells] = []
        self._none: Cells = np.empty((0, assignments.count), dtype=dtype)

    def rows(self, start: int, stop: int) -> Cells:
        """Those of the rows start..stop that are kept: from `start` on, without a gap."""
        return np.concatenate([self._none, *self._between(start, stop)])

    def put(self, start: int, cells: Cells) -> None:
        """Keep rows from `start` on, which is at most `count`; known ones are replaced."""
        known = min(self.count - start, len(cells))
        place = 0
        for part in self._between(start, start + known):
            part[:] = cells[place : place + len(part)]
            place += len(part)
        if known < len(cells):
            self._starts.append(self.count)
            self._blocks.append(cells[known:].copy(order="F"))
            self.count += len(cells) - known
            self.bytes += self._blocks[-1].nbytes

    def _between(self, start: int, stop: int) -> Iterator[Cells]:
        """The blocks' parts that hold these rows, as views."""
        place = bisect_right(self._starts, start) - 1
        while 0 <= place < len(self._starts) and self._starts[place] < stop:
            offset = self._starts[place]
            part = self._blocks[place][max(start - offset, 0) : stop - offset]
            if len(part):
                yield part
            place += 1


COLUMN_ROWS = 4_096  # from here on a column is a batch of its own
STORE_LIMIT = 2**25  # bytes of outputs kept for other sets and later questions


@dataclass
class _Opened:
    """Rows that are still to be run, loaded into the subject at most once."""

    places: NDArray[np.int64]  # of these rows in the whole block
    rows: Rows
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
        return _Opened(self.places[chosen], self.rows.take(chosen), loaded)


class Tables:
    """The tables of one run, on common base inputs, and what is known of them."""

    def __init__(self, base: BaseInputs, runner: Runner) -> None:
        self.base = base
        self.runner = runner
        self.suite: Suite | None = None
        self._stored: dict[tuple[int, ...], StoredRows] = {}
        self._base: Cells = np.empty(0, dtype=runner.labels.dtype)

    @property
    def schema(self) -> Schema:
        return self.runner.schema

    def rows(
        self, assignments: Assignments, start: int, stop: int, reading: Reading | None = None
    ) -> Rows:
        """Base inputs with the members that stand for the set's bins."""
        members = {c: self.base.members(c, start, stop) for c in assignments.binned}
        tolerances = None
        if reading is not None and reading.needs_tolerances:
            tolerances = self.base.tolerances(start, stop)
        return Rows(self.base.rows(start, stop), members, tolerances)

    def fill(
        self,
        variants: Variants,
        start: int,
        stop: int,
        *,
        reading: Reading | None = None,
        active: NDArray[np.bool_] | None = None,
        until_flip: bool = False,
    ) -> tuple[Rows, Cells]:
        """Rows start..stop of a set's table, executing only what is not known yet.

        `active` restricts it to some columns; with `until_flip` a row is left as soon as two of
        its outputs differ (Algorithm 2, line 18). The cells hold what the reading sees.
        """
        reading = reading or Reading(self.runner.labels)
        rows = self.rows(variants.assignments, start, stop, reading)
        cells = self.empty(len(rows), variants.width)
        if variants.complete and not self.runner.remembers:
            self._recall(variants, rows, start, cells)
        try:
            self.complete(
                variants, rows, cells, reading, block=start, active=active, until_flip=until_flip
            )
        finally:
            self.note("base", variants, rows, start, cells)
        if variants.complete and not (self.runner.remembers or self.runner.explains):
            self._store(variants, start, cells)
        return rows, reading.cells(cells)

    def empty(self, rows: int, width: int) -> Cells:
        """A table in which nothing was run."""
        return np.full((rows, width), NOT_RUN, dtype=self.runner.labels.dtype, order="F")

    def note(self, stream: str, variants: Variants, rows: Rows, start: int, cells: Cells) -> None:
        """Write what is known of these rows into the suite, if one is wanted."""
        if self.suite is not None and not self.runner.explains:
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
    ) -> None:
        """Execute the cells that are still missing, in place; `block` is where the rows begin."""
        mark_impossible(self.schema, variants, rows, cells)
        own = None
        if until_flip and reading.graded:  # distances are from the base input's own output
            own = own_columns(variants, rows)
        if not self.runner.traits.vectorised:
            self._complete_mixed(variants, rows, cells, reading, block, active, own, until_flip)
            return
        opened = _Opened(np.arange(len(rows)), rows)
        if not until_flip:
            chosen = np.arange(variants.width) if active is None else np.flatnonzero(active)
            self._run(variants, rows, cells, opened, chosen)
            return
        if own is not None:
            self._run_cells_of(variants, rows, cells, opened.places, own)
        for places in waves(variants.width):
            opened = opened.keep(~_flipped(cells, opened.places, reading, own, opened.rows))
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
        in the same order, each beginning elsewhere, one further column at a time.
        """
        rng = self.base.generator(MIXING, block)
        everyone = np.arange(len(rows))
        if not until_flip:
            chosen = np.arange(variants.width) if active is None else np.flatnonzero(active)
            row, column = np.repeat(everyone, len(chosen)), np.tile(chosen, len(rows))
            self._run_cells_of(variants, rows, cells, row, column, rng)
            return
        if own is not None:
            self._run_cells_of(variants, rows, cells, everyone, own, rng)
        order = spread_order(variants.width)
        begin = rng.integers(variants.width, size=len(rows))
        start, opened = 0, everyone
        while start < variants.width:
            opened = opened[~_flipped(cells, opened, reading, own, rows.take(opened))]
            step = np.arange(start, min(start + (1 if start else 2), variants.width))
            row = np.repeat(opened, len(step))
            column = order[(begin[row] + np.tile(step, len(opened))) % variants.width]
            self._run_cells_of(variants, rows, cells, row, column, rng)
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
        if count >= COLUMN_ROWS:
            whole = missing.all(axis=0)
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
            missing = rng.permutation(missing)
        first = 0
        while first < len(missing) and not self.runner.out_of_time:
            part = missing[first : first + self.runner.batch_size]
            self.run_cells(variants, rows, cells, row[part], column[part])
            first += len(part)

    def _run_columns(
        self, variants: Variants, cells: Cells, opened: _Opened, places: NDArray[np.int64]
    ) -> None:
        """Decode the rows once, then overwrite the set's columns, assignment by assignment."""
        for place in places:
            if self.runner.out_of_time:
                return
            batch = opened.batch(self.runner)
            for position, column in enumerate(variants.assignments.columns):
                level = int(variants.levels[place, position])
                batch.overwrite(column, opened.rows.codes_at(column, level))
            if len(opened.places) == len(cells):
                cells[:, place] = batch.run()
            else:
                cells[opened.places, place] = batch.run()

    def run_cells(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        row_places: NDArray[np.int64],
        column_places: NDArray[np.int64],
    ) -> None:
        """Execute single cells: for few rows, or where the missing cells lie scattered."""
        codes = rows.inputs(variants, row_places, column_places)
        cells[row_places, column_places] = self.runner.run(codes)

    # What is known already ---------------------------------------------------------------
    def known_outputs(self, codes: NDArray[Any], start: int) -> Cells:
        """The outputs of base inputs start, start + 1, … as far as they are held in memory."""
        cells = self.runner.known(codes)
        base = self._base[start : start + len(codes)]
        _merge(cells[: len(base)], base)
        for stored in self._stored.values():
            known = stored.rows(start, start + len(codes))
            if len(known):
                own = stored.assignments.index_of(codes[: len(known)])
                _merge(cells[: len(known)], known[np.arange(len(known)), own])
        return cells

    def keep_base(self, start: int, cells: Cells) -> None:
        """Take note of the outputs of base inputs start, start + 1, …, unless there is a gap."""
        if start <= len(self._base):
            self._base = np.concatenate(
                [self._base[:start], cells, self._base[start + len(cells) :]]
            )

    def _recall(self, variants: Variants, rows: Rows, start: int, cells: Cells) -> None:
        stored = [each for each in self._stored.values() if start < each.count]
        if not stored:
            return
        before = int((cells != NOT_RUN).sum())
        for each in stored:
            known = each.rows(start, start + len(rows))
            _borrow(variants, rows.codes[: len(known)], each.assignments, known, cells)
        self.runner.cache_hits += int((cells >= FAILED).sum()) - before

    def _store(self, variants: Variants, start: int, cells: Cells) -> None:
        columns = variants.assignments.columns
        stored = self._stored.get(columns)
        if stored is None:
            stored = self._stored[columns] = StoredRows(variants.assignments, cells.dtype)
        used = sum(each.bytes for each in self._stored.values())
        if start <= stored.count and used + cells.nbytes < STORE_LIMIT:
            stored.put(start, cells)


def _borrow(
    variants: Variants, codes: NDArray[Any], other: Assignments, known: Cells, cells: Cells
) -> None:
    """Copy the outputs that another set's table holds for the same variants of the same inputs.

    They are those in which only characteristics of both sets differ from the base input.
    """
    mine = variants.assignments
    if other.columns == mine.columns:
        _merge(cells[: len(known)], known)
        return
    both = Assignments(mine.schema, tuple(c for c in mine.columns if c in other.columns))
    own_mine, common_mine = _index_parts(mine, both, codes)
    own_other, common_other = _index_parts(other, both, codes)
    places = own_mine[:, None] + common_mine[None, :]
    values = np.take_along_axis(known, own_other[:, None] + common_other[None, :], axis=1)
    current = np.take_along_axis(cells[: len(known)], places, axis=1)
    np.put_along_axis(
        cells[: len(known)], places, np.where(current == NOT_RUN, values, current), axis=1
    )


def _merge(cells: Cells, known: Cells) -> None:
    np.copyto(cells, known, where=cells == NOT_RUN)


def _index_parts(
    whole: Assignments, part: Assignments, codes: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A table column's number as own part (outside `part`, per input) + part's (per assignment)."""
    strides = np.cumprod([1, *whole.shape[:0:-1]])[::-1]
    places = whole.places_of(codes)
    own = np.zeros(len(codes), dtype=np.int64)
    common = np.zeros(part.count, dtype=np.int64)
    grid = np.unravel_index(np.arange(part.count), part.shape) if part.columns else ()
    for position, column in enumerate(whole.columns):
        if column in part.columns:
            common += grid[part.columns.index(column)] * strides[position]
        else:
            own += places[:, position] * strides[position]
    return own, common


def _flipped(
    cells: Cells,
    places: NDArray[np.int64],
    reading: Reading,
    own: NDArray[np.int64] | None,
    rows: Rows,
) -> NDArray[np.bool_]:
    """Which rows of a table at these places flip by now; `rows` are those at the places."""
    seen = reading.cells(_rows_of(cells, places))
    here = None if own is None else own[places]
    flips: NDArray[np.bool_] = reading.row_states(seen, here, rows.tolerances) == FLIP
    return flips


def _rows_of(cells: Cells, places: NDArray[np.int64]) -> Cells:
    """Some rows of a table, column by column like the table: rows are looked at as a whole."""
    if len(places) == len(cells):
        return cells
    return np.take(cells.T, places, axis=1).T


KEPT = 2**23  # outputs kept at most
KEY_LIMIT = 2**62  # larger keys do not fit into 64 bits

_BYTE = np.dtype(np.int8)

Keys = NDArray[Any]  # an input's place in the whole domain: whole numbers, however large


class KnownOutputs:
    """The outputs of inputs that were run, found by key."""

    def __init__(self, schema: Schema, dtype: np.dtype[Any] = _BYTE) -> None:
        self._strides = schema.strides
        self._type = np.int64 if schema.size < KEY_LIMIT else object
        self._keys: Keys = np.empty(0, dtype=self._type)
        self._cells: Cells = np.empty(0, dtype=dtype)

    def keys(self, codes: NDArray[Any]) -> Keys:
        """The keys of these inputs."""
        keys: Keys = np.zeros(len(codes), dtype=self._type)
        for column in range(codes.shape[1]):
            keys += self._part(column, codes[:, column])
        return keys

    def table_keys(self, variants: Variants, rows: Rows) -> Keys:
        """The keys of all cells of a table: rows × assignments."""
        columns = variants.assignments.columns
        context = self.keys(rows.codes)
        for column in columns:
            context -= self._part(column, rows.codes[:, column])
        keys: Keys = np.repeat(context[:, None], variants.width, axis=1)
        for position, column in enumerate(columns):
            levels = variants.levels[:, position]
            members = rows.members.get(column)
            new = np.broadcast_to(levels, keys.shape) if members is None else members[:, levels]
            own = rows.codes[:, column][:, None]
            keys += self._part(column, np.where(levels[None, :] == OWN, own, new))
        return keys

    def look_up(self, keys: Keys) -> Cells:
        """The output of each input, NOT_RUN where it is not known."""
        cells: Cells = np.full(keys.shape, NOT_RUN, dtype=self._cells.dtype, order="F")
        if len(self._keys):
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            found = (self._keys[place] == keys).astype(bool)
            cells[found] = self._cells[place[found]]
        return cells

    def add(self, keys: Keys, cells: Cells) -> None:
        """Keep the outputs of these inputs; those that were not run are left out."""
        run = cells >= FAILED
        if len(self._keys) + int(run.sum()) > KEPT:
            return
        every = np.concatenate([self._keys, keys[run]])
        outputs = np.concatenate([self._cells, cells[run]])
        self._keys, first = np.unique(every, return_index=True)
        self._cells = outputs[first]

    def _part(self, column: int, codes: NDArray[Any]) -> Keys:
        """What one column contributes to the keys."""
        part: Keys = codes.astype(self._type) * self._strides[column]
        return part
