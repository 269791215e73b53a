"""The base inputs of a search: their outputs, and what changes of them do.

Which levels of a characteristic go with favourable decisions? It orders what is tried first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming
from themis.engine.sampler import Sampler
from themis.engine.variants import Rows, Variants
from themis.inputs.assignments import Assignments, Places
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
from themis.statistics.intervals import Flags, Floats
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells


class LevelRates:
    """The favourable rates of single levels, as seen so far; before, they count as one half."""

    def __init__(self, schema: Schema, columns: tuple[int, ...]) -> None:
        levels = {column: schema.characteristics[column].levels for column in columns}
        # Of a characteristic with more levels hardly one comes twice.
        known = {column: size for column, size in levels.items() if size <= 4_096}
        self._schema = schema
        self._favourable = {column: np.ones(size) for column, size in known.items()}
        self._total = {column: np.full(size, 2.0) for column, size in known.items()}

    def learn(self, codes: NDArray[Any], favourable: Flags) -> None:
        """Count inputs and which of them got a favourable decision."""
        for column, total in self._total.items():
            levels = self._schema.characteristics[column].level_of(codes[:, column])
            known = levels != OWN
            levels, good = levels[known], favourable[known]
            self._favourable[column] += np.bincount(levels, good, minlength=len(total))
            total += np.bincount(levels, minlength=len(total))

    def likeness(self, variants: Variants) -> Floats:
        """How much each variant is like those with favourable decisions: the sum of log odds."""
        points = np.zeros(variants.width)
        for position, column in enumerate(variants.assignments.columns):
            if column in self._total:
                rate = self._favourable[column] / self._total[column]
                points += np.log(rate / (1 - rate))[variants.by_position[position]]
        return points


# Columns, and which variants change exactly those.
ChangedColumns = tuple[tuple[int, ...], Flags]


@dataclass(frozen=True)
class Wanted:
    """Variants of base inputs that are to be run."""

    rows: Rows  # of the base inputs
    places: Places  # of these rows
    row: Places  # for each variant, of which of them it is one
    codes: NDArray[Any]
    sets: Sequence[ChangedColumns]  # for a suite: each variant changes exactly the columns of one


FIRST_TRIES = 4  # variants of the whole set tried at first


@dataclass(frozen=True)
class Tries:
    """Assignments of a set, as many for each of some inputs, and which of them were not run yet."""

    places: Places  # of the inputs
    rows: Rows
    row: Places  # for each try the input, as a place among these
    column: Places  # and the assignment
    codes: NDArray[Any]
    changed: Places  # the characteristics that it changes, as a set
    fresh: Flags
    variants: Places  # its number in the cell of those, where it is fresh


class Turn(NamedTuple):
    """Open inputs that get the assignments of a set, each in the order that is its own."""

    mask: int
    places: Places
    orders: Places
    start: int = 0  # so many of the order were tried, or are tried now


class FlipChances:
    """How often an open input of a set flips by its next try, as seen so far.

    Tries of about the same number are counted together.
    """

    def __init__(self) -> None:
        self._opened, self._flipped = np.full(64, 2), np.full(64, 1)

    def learn(self, tried: int, opened: int, flipped: int) -> None:
        """Of so many open inputs, so many had flipped after so many tries."""
        self._opened[tried.bit_length()] += opened
        self._flipped[tried.bit_length()] += flipped

    def stays(self, tried: int) -> float:
        """The chance that an input stays open by its last one of so many tries."""
        place = tried.bit_length()
        return float(1 - self._flipped[place] / self._opened[place])


@dataclass
class AtHand:
    """What a search is at: for those who foresee what it will need."""

    mask: int = 0  # the set; 0: none
    stop: int = 0  # the inputs before this one are tried under it
    turn: Turn | None = None
    settling: Places = field(default_factory=lambda: np.empty(0, np.int64))  # inputs proved now
    settles: bool = False  # whether those that come will be
    end: Callable[[], int] = int  # inputs before this one will probably be needed under it
    # The sets that come after it, and from which to which input they will probably need.
    later: Callable[[], Iterable[tuple[int, int, int]]] = tuple
    chances: defaultdict[int, FlipChances] = field(default_factory=lambda: defaultdict(FlipChances))

    def begin(self, mask: int, stop: int) -> None:
        """The inputs before `stop` are tried under this set now."""
        self.mask, self.stop = mask, stop


class SearchedInputs:
    """Common base inputs, run as far as they were needed, and variants of them."""

    def __init__(self, sampler: Sampler, columns: tuple[int, ...]) -> None:
        self.sampler = sampler
        self.coming: Coming | None = None  # what a search will need next
        self.outputs: Cells = np.empty(0, sampler.runner.labels.dtype)
        self.rates = LevelRates(sampler.population.schema, columns)  # of favourable outputs

    def run_until(self, stop: int) -> None:
        """Run the base inputs before `stop` that were not run yet."""
        start = len(self.outputs)
        if stop <= start:
            return
        runner, tables, reading = self.sampler.runner, self.sampler.tables, self.sampler.reading
        codes = self.sampler.base.rows(start, stop)
        if stop - start > runner.executions_left or runner.must_not_begin:
            raise BudgetEndedError
        with self.looking():
            answers = runner.run(codes)
        tables.memory.keep_base(start, answers)
        if tables.suite is not None:
            tables.suite.add_singles((), codes, answers)
        cells = reading.cells(answers)
        self.outputs = np.concatenate([self.outputs, cells])
        self.rates.learn(codes, reading.labels.is_favourable(cells))

    def sides(self, places: Places) -> Places:
        """The decisions on these base inputs: 1 for a favourable one."""
        return self.sampler.reading.labels.is_favourable(self.outputs[places]).astype(np.int64)

    def rows(self, assignments: Assignments, places: Places) -> Rows:
        """These base inputs, with the members that stand for the set's bins."""
        first, last = int(places.min()), int(places.max()) + 1
        rows = self.sampler.tables.rows(assignments, first, last, self.sampler.reading)
        return rows.take(places - first)

    def run(self, wanted: Sequence[Wanted]) -> list[tuple[Cells, Flags]]:
        """Execute variants of base inputs together: their outputs, and which of them are flips."""
        runner, reading = self.sampler.runner, self.sampler.reading
        codes = _joined([each.codes for each in wanted])
        if len(codes) > runner.executions_left:
            raise BudgetEndedError
        cells = np.full(len(codes), NOT_RUN, dtype=runner.labels.dtype)
        ends = np.cumsum([len(each.codes) for each in wanted])[:-1]
        first = 0
        try:
            while first < len(codes):
                if runner.out_of_time:  # then each call would have one input
                    raise BudgetEndedError
                part = slice(first, first + runner.batch_size)
                with self.looking():
                    cells[part] = runner.run(codes[part])
                first = part.stop
        finally:  # the suite gets the answers however that ends
            if self.sampler.tables.suite is not None:
                for each, part_cells in zip(wanted, np.split(cells, ends), strict=True):
                    self._write_down(each, part_cells)
        outputs = reading.cells(cells)
        own = _joined([self.outputs[each.places[each.row]] for each in wanted])
        flips = reading.differs(own, outputs, _tolerances(wanted))
        return list(zip(np.split(outputs, ends), np.split(flips, ends), strict=True))

    @contextmanager
    def foreseeing(self, stop: int) -> Iterator[None]:
        """Within, base inputs before `stop` that were run ahead are as if they were known."""
        before, start = self.outputs, len(self.outputs)
        if stop > start:
            codes = self.sampler.base.rows(start, stop)
            cells = self.sampler.reading.cells(self.sampler.runner.held(codes))
            missing = np.flatnonzero(cells == NOT_RUN)
            end = missing[0] if len(missing) else len(cells)
            self.outputs = np.concatenate([before, cells[:end]])
        try:
            yield
        finally:
            self.outputs = before

    def held(
        self, rows: Rows, places: Places, row: Places, codes: NDArray[Any]
    ) -> tuple[Cells, Flags]:
        """What running ahead gave for variants of base inputs, and which of them are flips."""
        reading = self.sampler.reading
        outputs = reading.cells(self.sampler.runner.held(codes))
        tolerances = None if rows.tolerances is None else rows.tolerances[row]
        return outputs, reading.differs(self.outputs[places[row]], outputs, tolerances)

    def looking(self) -> AbstractContextManager[None]:
        """Within, idle slots run what comes next."""
        return self.sampler.runner.ahead.looking(self.coming)

    def _write_down(self, wanted: Wanted, cells: Cells) -> None:
        suite, memory = self.sampler.tables.suite, self.sampler.tables.memory
        assert suite is not None
        own = memory.base_outputs(len(self.outputs))[wanted.places]
        stream = f"search {self.sampler.reading.place}"
        for columns, which in wanted.sets:
            row, codes = wanted.row[which], wanted.codes[which]
            suite.add_variants(
                stream, columns, wanted.places, wanted.rows.codes, own, row, codes, cells[which]
            )


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _tolerances(wanted: Sequence[Wanted]) -> NDArray[Any] | None:
    """By how much outputs may differ without being a flip, where that is drawn for each input."""
    if wanted[0].rows.tolerances is None:
        return None
    drawn = [each.rows.tolerances for each in wanted]
    return _joined([part[each.row] for part, each in zip(drawn, wanted, strict=True)])  # type: ignore[index]
