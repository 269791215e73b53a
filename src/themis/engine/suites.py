"""Suites: the tests that a run made up, with their outputs, written down as they are run.

A test is one context and one set: inputs that differ in nothing but the set. Its rows carry the
same number, so that anybody can see from the file alone whether the outputs of a test differ.
Writing costs no executions, and little memory: a bit for each row and a number for each test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.answers import FailureLog
from themis.engine.memory import grown
from themis.engine.replacing import Replacement
from themis.engine.suite_files import (
    GROUP_ROWS,
    Column,
    OwnColumns,
    SuiteFile,
    check_place,
    open_suite,
    suite_mistake,
)
from themis.errors import RequestError
from themis.inputs.assignments import Assignments, Places
from themis.inputs.schema import Schema
from themis.subjects.decisions import FAILED, Cells
from themis.subjects.labels import Labels, Part

Inputs = Callable[[Places, Places], NDArray[Any]]  # of cells, given by their rows and columns

UNKNOWN_FAILURE = "failed"


class Suite:
    """A file that gets every test of a run; `rows` and `tests` say how many there are so far."""

    def __init__(
        self,
        path: Path,
        schema: Schema,
        labels: Labels,
        failures: FailureLog,
        *,
        of_people: bool = False,
    ) -> None:
        self.path = path
        self.rows = 0
        self.tests = 0
        self._schema = schema
        self._labels = labels
        self._failures = failures
        failures.kinds = {}
        own = OwnColumns.beside(schema.names, output_names(labels))
        self._own = replace(own, of_people=of_people)
        self.failed = False  # whether the run did: then an earlier file stays
        self.most_of_domain = math.inf  # inputs of one that are written, by chance, whole tests
        self.holds_all = False  # whether nothing more is written down, whatever is run
        self._file, self._whole = _open(path, schema, self._own)
        self._problem: RequestError | None = None
        self.is_cut = False  # whether it could not be written to its end
        self._seen: dict[tuple[Any, ...], _Seen] = {}

    def add_table(
        self,
        stream: str,
        columns: tuple[int, ...],
        start: int,
        base: NDArray[Any],
        cells: Cells,
        inputs: Inputs,
    ) -> None:
        """Write the cells of a set's table that are known and were not written before.

        `base` are the base inputs of its rows, the first of which is number `start` of `stream`.
        """
        if self.holds_all:
            return
        known = cells >= FAILED
        seen = self._of(stream, columns, cells.shape[1])
        new = known & ~seen.cells(start, known.shape)
        row, column = np.nonzero(new)
        if not len(row):
            return
        tests = self._number(seen, start + row)
        seen.mark(start, new)
        codes = inputs(row, column)
        own = list(columns)
        is_base = (codes[:, own] == base[row][:, own]).all(axis=1)
        self._write(columns, _Rows(tests, codes, cells[row, column], is_base))

    def add_variants(
        self,
        stream: str,
        columns: tuple[int, ...],
        places: Places,
        base: NDArray[Any],
        outputs: Cells,
        row: Places,
        codes: NDArray[Any],
        cells: Cells,
    ) -> None:
        """Write variants of base inputs that change exactly these columns, and first those inputs.

        `places` are the base inputs' numbers, `row` tells for each variant which of them it is of.
        """
        known = np.flatnonzero(cells >= FAILED)
        row, codes, cells = row[known], codes[known], cells[known]
        if self.holds_all or not len(row):
            return
        seen = self._of(stream, columns, 0)
        present = np.unique(row)
        fresh = present[seen.numbers(places[present]) == 0]
        self._number(seen, places[present])
        both = np.concatenate([fresh, row])
        order = np.argsort(both, kind="stable")  # a base input comes before its variants
        codes = np.concatenate([base[fresh], codes])[order]
        cells = np.concatenate([outputs[fresh], cells])[order]
        tests = seen.numbers(places[both[order]])
        self._write(columns, _Rows(tests, codes, cells, order < len(fresh)))

    def add_domain(self, columns: tuple[int, ...], codes: NDArray[Any], cells: Cells) -> None:
        """Write the whole domain as the tests of a set, once: a test is a context.

        Without a set its inputs are in no test. No input of a domain is a base input of others.
        """
        seen = self._of("domain", columns, 0)
        if self.holds_all or seen.is_marked:
            return
        seen.is_marked = True
        if not columns:
            self.add_singles(columns, codes, cells)
            return
        keys = Assignments(self._schema, columns).contexts(codes)
        order = np.argsort(keys, kind="stable")
        first = np.diff(keys[order], prepend=-1) != 0
        if len(order) > self.most_of_domain:
            share = self.most_of_domain / len(order)
            chosen = np.random.default_rng(0).random(int(first.sum())) < share
            kept = chosen[np.cumsum(first) - 1]
            order, first = order[kept], first[kept]
        tests = self.tests + np.cumsum(first)
        self.tests += int(first.sum())
        none = np.zeros(len(order), dtype=bool)
        self._write(columns, _Rows(tests, codes[order], cells[order], none))

    def add_singles(self, columns: tuple[int, ...], codes: NDArray[Any], cells: Cells) -> None:
        """Write inputs that are in no test with others."""
        if self.holds_all:
            return
        no_test = np.zeros(len(codes), dtype=np.int64)
        self._write(columns, _Rows(no_test, codes, cells, np.ones(len(codes), dtype=bool)))

    def close(self) -> None:
        """Make the file complete; raises RequestError if something could not be written."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._give_up(error)
            self._settle()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    @property
    def is_spared(self) -> bool:
        """Whether the run failed, so that an earlier file stays."""
        return self.failed and self._whole.replaces

    def _settle(self) -> None:
        """Put the file into its place, unless what it would replace is better."""
        broken = self._whole.replaces and self._problem is not None
        if self.is_spared or broken:
            self._whole.drop()
            return
        try:
            self._whole.keep()
        except OSError as error:
            self._give_up(error)

    def _of(self, stream: str, columns: tuple[int, ...], width: int) -> _Seen:
        key = (stream, columns, width)
        if key not in self._seen:
            self._seen[key] = _Seen(width)
        return self._seen[key]

    def _number(self, seen: _Seen, places: Places) -> Places:
        """The numbers of the tests of these base inputs; new ones get the next."""
        numbers = seen.numbers(places)
        new = np.unique(places[numbers == 0])
        if len(new):
            seen.give(new, self.tests + 1)
            self.tests += len(new)
            numbers = seen.numbers(places)
        return numbers

    def _write(self, columns: tuple[int, ...], rows: _Rows) -> None:
        """Append rows; once that fails, nothing more is written, and `close` says so."""
        if self._problem is not None or not len(rows.codes):
            return
        if self._file is None:
            raise suite_mistake(self.path, "is complete", "make a new Audit for another suite")
        against = ",".join(self._schema.names[column] for column in columns)
        try:
            for first in range(0, len(rows.codes), GROUP_ROWS):
                part = rows.part(slice(first, first + GROUP_ROWS))
                self._file.write([*self._columns(against, part)])
                self.rows += len(part.codes)
        except OSError as error:
            self._give_up(error)

    def _columns(self, against: str, rows: _Rows) -> Iterator[Column]:
        """The columns of some rows, in their order."""
        tests, codes, cells, is_base = rows
        numbers = Column.of(tests, np.asarray)
        yield Column([number or None for number in numbers.values], numbers.places)
        yield Column.everywhere(against, len(codes))
        yield Column([False, True], is_base.astype(np.int64))
        for place, characteristic in enumerate(self._schema):
            yield Column.of(codes[:, place], characteristic.decode)
        for place, part in enumerate(self._labels.parts):
            own = self._labels.part_cells(place, cells)
            present, places = np.unique(own, return_inverse=True)  # FAILED is −1, the smallest
            numbers_of = [None if each == FAILED else each for each in present.tolist()]
            yield Column([_value(part, each) for each in numbers_of], places)
            yield Column([self._favourable(part, each) for each in numbers_of], places)
        yield self._kinds(codes, cells)
        if self._own.of_people:
            yield Column.everywhere(True, len(codes))

    def _favourable(self, part: Part, number: int | None) -> bool | None:
        """Whether a value is favourable; None where nothing says so."""
        says_so = not self._labels.declared or "rate" in part.output.statistics
        return bool(part.favourable[number]) if says_so and number is not None else None

    def _kinds(self, codes: NDArray[Any], cells: Cells) -> Column:
        """Why each input failed, None for those that did not."""
        kinds = np.full(len(cells), None, dtype=object)
        failed = np.flatnonzero(cells == FAILED)
        found = self._failures.kinds_of(codes[failed], self._schema)
        kinds[failed] = [kind or UNKNOWN_FAILURE for kind in found]
        values = [*dict.fromkeys(kinds.tolist())]
        return Column(values, np.array([values.index(kind) for kind in kinds], dtype=np.int64))

    def _give_up(self, error: OSError) -> None:
        problem = f"could not be written to the end: {error.strerror or error}"
        left = "left as it was" if self._whole.replaces else "not complete"  # buffers may be lost
        remedy = f"it is {left}; make room and run again"
        self._problem, self.is_cut = suite_mistake(self.path, problem, remedy), True


def _open(path: Path, schema: Schema, own: OwnColumns) -> tuple[SuiteFile | None, Replacement]:
    """The file to write to, and what puts it into its place."""
    check_place(path)
    try:
        whole = Replacement(path)
    except OSError as error:
        raise suite_mistake(path, f"can't be written: {error.strerror}") from None
    try:
        return open_suite(path, whole.place, schema, own), whole
    except BaseException:
        whole.drop()
        raise


def output_names(labels: Labels) -> list[str]:
    """The names of the outputs that labels tell apart."""
    return [each.name for each in labels.outputs]


def _value(part: Part, number: int | None) -> Any:
    """The value of a number that an output's labels gave; whole numbers without a point."""
    if number is None:
        return None
    value = part.values[number]
    if isinstance(value, np.floating):
        return int(value) if value.is_integer() else float(value)
    return value


class _Rows(NamedTuple):
    """Rows of a suite: the numbers of their tests, inputs, outputs, and which are base inputs."""

    tests: Places
    codes: NDArray[Any]
    cells: Cells
    is_base: NDArray[np.bool_]

    def part(self, part: slice) -> _Rows:
        """Some of them."""
        return _Rows(self.tests[part], self.codes[part], self.cells[part], self.is_base[part])


class _Seen:
    """Which cells of one table were written, and the numbers of its tests."""

    def __init__(self, width: int) -> None:
        self.is_marked = False
        self._width = width
        self._numbers = np.zeros(0, dtype=np.int64)
        self._bits = np.zeros((0, -(-width // 8)), dtype=np.uint8)

    def numbers(self, places: Places) -> Places:
        """The number of each base input's test, 0 where there is none yet."""
        known = np.zeros(len(places), dtype=np.int64)
        inside = places < len(self._numbers)
        known[inside] = self._numbers[places[inside]]
        return known

    def give(self, places: Places, first: int) -> None:
        """Number the tests of these base inputs, in their order."""
        self._numbers = grown(self._numbers, int(places.max()) + 1)
        self._numbers[places] = np.arange(first, first + len(places))

    def cells(self, start: int, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which cells of rows from `start` were written."""
        written = np.zeros(shape, dtype=bool)
        bits = self._bits[start : start + shape[0]]
        written[: len(bits)] = np.unpackbits(bits, axis=1, count=self._width).astype(bool)
        return written

    def mark(self, start: int, new: NDArray[np.bool_]) -> None:
        """Take note that these cells are written."""
        self._bits = grown(self._bits, start + len(new))
        self._bits[start : start + len(new)] |= np.packbits(new, axis=1)
