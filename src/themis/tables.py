"""The table: rows are contexts of base inputs, columns the assignments of a set, cells outputs.

Both scores are read off it. Outputs that one set's table holds are never executed again for
another: a variant of a subset is also a variant of every superset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs import Assignments
from themis.outcomes import FAILED, NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.readings import FLIP, Reading, Tolerances
from themis.runner import Runner, RunnerBatch
from themis.schema import Schema
from themis.stored_rows import StoredRows
from themis.streams import VARIANTS, BaseInputs
from themis.suites import Suite

COLUMN_ROWS = 4_096  # from here on a column is a batch of its own
STORE_LIMIT = 2**25  # bytes of outputs kept for other sets and later questions

TRIED = 100  # assignments tried per row where not all can be
CORNERS = 32  # extreme assignments among them

OWN = -1  # in `levels`: the base input's own value, unchanged


@dataclass(frozen=True)
class Variants:
    """The columns of a set's table: all its assignments, or some where they are too many."""

    assignments: Assignments
    levels: NDArray[np.int64]  # one row per column of the table
    complete: bool  # whether these are all assignments

    @classmethod
    def of(cls, assignments: Assignments, *, limit: int, base: BaseInputs) -> Variants:
        """All assignments; where they are more than `limit`, the extreme ones and random ones.

        A sample can show that a row flips but not that it is constant, so it is kept small. Its
        first column is the base input itself.
        """
        if assignments.count <= limit:
            return all_variants(assignments)
        rng = base.generator(VARIANTS, *assignments.columns)
        each = [assignments.schema.characteristics[c] for c in assignments.columns]
        ends = (one.possible_levels(np.array([0, one.possible_count - 1])).tolist() for one in each)
        corners = np.array(list(islice(product(*ends), CORNERS)))
        drawn = assignments.random_levels(rng, 2 * limit)
        candidates = np.concatenate([corners, drawn])
        _, first = np.unique(candidates, axis=0, return_index=True)
        some = candidates[np.sort(first)[: min(limit, TRIED) - 1]]
        own = np.full((1, len(each)), OWN)
        return cls(assignments, np.concatenate([own, some]), complete=False)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.levels)


def all_variants(assignments: Assignments) -> Variants:
    """Every assignment of a set as a column, however many there are."""
    levels = assignments.levels(np.arange(assignments.count))
    return Variants(assignments, levels, complete=True)


@dataclass
class Rows:
    """Some consecutive base inputs, with the member that stands for each bin of the set."""

    codes: NDArray[Any]
    members: dict[int, NDArray[Any]]  # column → rows × bins
    tolerances: Tolerances = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Only these rows."""
        codes = np.empty((len(places), self.codes.shape[1]), self.codes.dtype, order="F")
        for column in range(codes.shape[1]):
            codes[:, column] = self.codes[:, column][places]
        tolerances = None if self.tolerances is None else self.tolerances[places]
        return Rows(codes, {c: each[places] for c, each in self.members.items()}, tolerances)

    def codes_at(self, column: int, level: int) -> NDArray[Any] | int:
        """The codes that a level of a column means in these rows."""
        if level == OWN:
            own: NDArray[Any] = self.codes[:, column]
            return own
        if column in self.members:
            members: NDArray[Any] = self.members[column][:, level]
            return members
        return int(level)

    def own_levels(self, assignments: Assignments) -> NDArray[Any]:
        """The levels that the base inputs have themselves, one column per characteristic."""
        characteristics = assignments.schema.characteristics
        return np.stack(
            [characteristics[c].level_of(self.codes[:, c]) for c in assignments.columns], axis=1
        )

    def inputs(
        self, variants: Variants, rows: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[Any]:
        """The inputs of single cells, given by their rows and columns of the table."""
        codes = self.take(rows).codes
        for position, column in enumerate(variants.assignments.columns):
            levels = variants.levels[places, position]
            members = self.members.get(column)
            new = levels if members is None else members[rows, levels]
            codes[:, column] = np.where(levels == OWN, codes[:, column], new)
        return codes


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
            self.complete(variants, rows, cells, reading, active=active, until_flip=until_flip)
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
        active: NDArray[np.bool_] | None = None,
        until_flip: bool = False,
    ) -> None:
        """Execute the cells that are still missing, in place."""
        mark_impossible(self.schema, variants, rows, cells)
        opened = _Opened(np.arange(len(rows)), rows)
        if until_flip:
            own = None
            if reading.graded:  # distances are from the base input's own output
                own = own_columns(variants, rows)
                self._run_own(variants, rows, cells, own)
            for places in _waves(variants.width, vectorised=self.runner.subject.vectorised):
                seen = reading.cells(_rows_of(cells, opened.places))
                here = None if own is None else own[opened.places]
                states = reading.row_states(seen, here, opened.rows.tolerances)
                opened = opened.keep(states != FLIP)
                self._run(variants, rows, cells, opened, places)
        else:
            chosen = np.arange(variants.width) if active is None else np.flatnonzero(active)
            self._run(variants, rows, cells, opened, chosen)

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
        missing = (cells[:, places] if every else cells[np.ix_(opened.places, places)]) == NOT_RUN
        runner = self.runner
        by_row = not (runner.subject.vectorised or runner.is_external)
        if count >= COLUMN_ROWS or (count <= runner.batch_size and by_row):
            whole = missing.all(axis=0)
            self._run_columns(variants, cells, opened, places[whole])
            if whole.all():
                return
            missing[:, whole] = False
        row_places, column_places = np.nonzero(missing)
        first = 0
        while first < len(row_places) and not runner.out_of_time:
            part = slice(first, first + runner.batch_size)
            own = opened.places[row_places[part]]
            self.run_cells(variants, rows, cells, own, places[column_places[part]])
            first = part.stop

    def _run_own(
        self, variants: Variants, rows: Rows, cells: Cells, own: NDArray[np.int64]
    ) -> None:
        """Execute the base inputs themselves."""
        each = np.arange(len(rows))
        missing = each[cells[each, own] == NOT_RUN]
        for first in range(0, len(missing), self.runner.batch_size):
            part = missing[first : first + self.runner.batch_size]
            if self.runner.out_of_time:
                return
            self.run_cells(variants, rows, cells, part, own[part])

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


def mark_impossible(schema: Schema, variants: Variants, rows: Rows, cells: Cells) -> None:
    """Mark the variants that a constraint forbids: they are no counterfactuals."""
    names = set(variants.assignments.names)
    if not any(names.intersection(each.variables) for each in schema.constraints):
        return
    codes = rows.codes.copy(order="F")
    for place in range(variants.width):
        if (cells[:, place] != NOT_RUN).all():
            continue
        for position, column in enumerate(variants.assignments.columns):
            codes[:, column] = rows.codes_at(column, int(variants.levels[place, position]))
        forbidden = ~schema.valid(codes) & (cells[:, place] == NOT_RUN)
        cells[forbidden, place] = NO_COUNTERFACTUAL


def _rows_of(cells: Cells, places: NDArray[np.int64]) -> Cells:
    """Some rows of a table, column by column like the table: rows are looked at as a whole."""
    if len(places) == len(cells):
        return cells
    return np.take(cells.T, places, axis=1).T


def own_columns(variants: Variants, rows: Rows) -> NDArray[np.int64]:
    """The column of the table in which each base input itself stands."""
    if variants.complete:
        return variants.assignments.index_of(rows.codes)
    own = int((variants.levels == OWN).all(axis=1).argmax())
    return np.full(len(rows), own, dtype=np.int64)


def _waves(width: int, *, vectorised: bool) -> Iterator[NDArray[np.int64]]:
    """The columns in the order of trying: far apart first, a few and then ever more at a time.

    A subject that runs input by input gets one further column at a time: no execution is wasted
    on a row that has flipped.
    """
    order = spread_order(width)
    start, size = 0, first_wave(width, vectorised=vectorised)
    while start < width:
        yield order[start : start + size]
        start += size
        size = min(4 * size, 256) if vectorised else 1


def first_wave(width: int, *, vectorised: bool) -> int:
    """How many columns are tried at once in the beginning."""
    if not vectorised:
        return 2
    return width if width <= 6 else 4


def spread_order(width: int) -> NDArray[np.int64]:
    """The numbers 0 … width − 1, each as far as possible from those before it."""
    bits = max(width - 1, 1).bit_length()
    numbers = np.arange(2**bits)
    reversed_bits = np.zeros_like(numbers)
    for bit in range(bits):
        reversed_bits |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    inside = reversed_bits[reversed_bits < width]
    order = np.concatenate([[0, width - 1], inside[(inside != 0) & (inside != width - 1)]])
    return order[:width] if width > 1 else np.zeros(1, dtype=np.int64)
