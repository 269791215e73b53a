"""Coming cells: those of a table that will be needed next, if the answer is not in before."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming, Held, LookUp
from themis.engine.variants import Rows, Variants, mark_impossible, spread_order
from themis.inputs.assignments import Places
from themis.inputs.keys import InputKeys
from themis.subjects.decisions import NOT_RUN, Cells

LIKELY = 0.9  # a cell is run ahead if it is needed with at least this chance
WINDOW = 64  # later rows that are looked at together
WINDOWS = 64  # of them, at most


class LaterRows(NamedTuple):
    """Rows of the same stream behind those that are run now."""

    rows: Callable[[int, int], tuple[Rows, Cells]]  # with what is known of them
    end: float  # there are no rows from here on, or none that will be needed
    whole_to: float = 0  # rows before this one are run whole, the others until they flip


def in_windows(rows: Callable[[int, int], NDArray[Any]], start: int) -> Coming:
    """The inputs of later rows from `start` on, all of which are needed."""

    def coming(_: LookUp) -> Generator[NDArray[Any]]:
        for first in range(start, start + WINDOWS * WINDOW, WINDOW):
            yield rows(first, first + WINDOW)

    return coming


class FlipChances:
    """How often an open row flips by its next cell, as seen so far.

    Cells of about the same number in their rows are counted together.
    """

    def __init__(self) -> None:
        self._opened = np.full(64, 2)
        self._flipped = np.full(64, 1)

    def learn(self, tried: int, opened: int, flipped: int) -> None:
        """Of so many open rows, so many had flipped after so many cells."""
        self._opened[tried.bit_length()] += opened
        self._flipped[tried.bit_length()] += flipped

    def learn_whole(self, cells: Cells) -> None:
        """The same of rows that were run whole; their cells stand in the order of trying."""
        differs = (cells != cells[:, :1]) & (cells >= 0)
        width = cells.shape[1]
        flips = np.where(differs.any(axis=1), differs.argmax(axis=1), width)
        for tried in range(2, width + 1):
            opened, flipped = int((flips >= tried - 1).sum()), int((flips == tried - 1).sum())
            self.learn(tried, opened, flipped)

    def stays(self, tried: int) -> float:
        """The chance that a row stays open by its last one of so many cells."""
        place = tried.bit_length()
        return float(1 - self._flipped[place] / self._opened[place])


@dataclass
class ComingCells:
    """What a block of a table needs next: further cells of its open rows, and cells of later rows.

    Rows that are run until they flip try the columns in the same order, each beginning elsewhere.
    """

    variants: Variants
    keys: InputKeys
    chances: FlipChances
    start: int  # of the later rows
    later: LaterRows
    beginnings: Callable[[int, int], Places]
    chosen: Places  # columns of a row that is run whole
    rows: Rows  # of this block
    cells: Cells
    begin: Places  # where each row of this block begins
    own: Callable[[Rows], Places] | None = None  # the column that is run before all others
    opened: Places = field(default_factory=lambda: np.empty(0, np.int64))
    tried: int = 0  # cells of the opened rows, with those that are run now
    _windows: list[_Window] = field(default_factory=list)

    def __call__(self, look_up: LookUp) -> Generator[NDArray[Any]]:
        """Inputs that are likely to be needed, the nearest ones first."""
        chance, width = 1.0, self.variants.width
        order = spread_order(width)
        for tried in range(self.tried, width if len(self.opened) else 0):
            chance *= self.chances.stays(tried)
            if chance < LIKELY:
                break
            column = order[(self.begin[self.opened] + tried) % width]
            missing = self.cells[self.opened, column] == NOT_RUN
            yield self.rows.inputs(self.variants, self.opened[missing], column[missing])
        for number in range(WINDOWS):
            if self.start + number * WINDOW >= self.later.end:
                return
            if number == len(self._windows):
                self._windows.append(self._window(self.start + number * WINDOW))
            yield self._windows[number].likely(look_up, self.chances)

    def learn_whole(self) -> None:
        """Learn from the rows of this block, which were run whole."""
        width = self.variants.width
        columns = spread_order(width)[(self.begin[:, None] + np.arange(width)) % width]
        self.chances.learn_whole(np.take_along_axis(self.cells, columns, axis=1))

    def _window(self, start: int) -> _Window:
        stop = int(min(start + WINDOW, self.later.end))
        rows, cells = self.later.rows(start, stop)
        mark_impossible(self.variants.assignments.schema, self.variants, rows, cells)
        stop = start + len(rows)
        width, count = self.variants.width, len(rows)
        # Of a later row so many cells are looked at.
        order, steps = spread_order(width), np.arange(min(width, 32))
        columns = order[(self.beginnings(start, stop)[:, None] + steps) % width]
        if self.own is not None:
            columns = np.concatenate([self.own(rows)[:, None], columns], axis=1)
        row = np.repeat(np.arange(count), columns.shape[1])
        whole = np.arange(start, stop) < self.later.whole_to
        row, column = row[~whole[row]], columns.ravel()[~whole[row]]
        every = np.flatnonzero(whole)
        row = np.concatenate([np.repeat(every, len(self.chosen)), row])
        column = np.concatenate([np.tile(self.chosen, len(every)), column])
        missing = cells[row, column] == NOT_RUN
        row, column = row[missing], column[missing]
        codes = rows.inputs(self.variants, row, column)
        return _Window(codes, self.keys.of(codes).tolist(), row.tolist(), whole, count)


@dataclass
class _Window:
    """The cells of some later rows that are not known, row by row in the order of trying."""

    codes: NDArray[Any]
    keys: list[Any]
    row: list[int]
    whole: NDArray[np.bool_]
    count: int

    def likely(self, look_up: LookUp, chances: FlipChances) -> NDArray[Any]:
        """The inputs of those that are needed with some certainty, given what was run ahead."""
        held = look_up(self.keys)
        chosen: list[int] = []
        trials = [_Trial(bool(whole)) for whole in self.whole]
        for place, (row, each) in enumerate(zip(self.row, held, strict=True)):
            if trials[row].takes(each, chances):
                chosen.append(place)
        return self.codes[chosen]


class _Trial:
    """One later row as it is tried, cell by cell."""

    def __init__(self, whole: bool) -> None:
        self._chance = 1.0
        self._whole = whole
        self._tried = 0
        self._sure = True  # whether the last cell's output is known
        self._outputs: list[Any] = []

    def takes(self, held: Held | None, chances: FlipChances) -> bool:
        """Whether the next cell is to be run ahead, which is not held."""
        if self._whole:
            return held is None
        if self._tried >= 2 and not self._sure:
            self._chance *= chances.stays(self._tried)
        self._tried += 1
        self._sure = held is not None
        if held is None:
            return self._chance >= LIKELY
        if held.failure is None:
            if self._outputs and self._outputs[0] != held.output:
                self._chance = 0.0  # it flips
            self._outputs.append(held.output)
        return False
