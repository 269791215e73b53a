"""Coming cells: those of a table that will be needed next, if the answer is not in before."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import Coming, in_windows
from themis.engine.runner import Runner
from themis.engine.variants import Rows, Variants, mark_impossible, own_columns, spread_order
from themis.inputs.assignments import Places
from themis.inputs.streams import BaseInputs
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import FLIP, Reading

LIKELY = 0.9  # a cell is run ahead if it is needed with at least this chance
STEPS = 32  # cells of a later row that are looked at


class GoingOn(NamedTuple):
    """What a table will need after the rows that are run now, if the answer is not in before."""

    whole_to: float = math.inf  # rows before this one are run whole, the others until they flip
    end: float = math.inf  # of the rows


@dataclass(frozen=True)
class ComingCells:
    """What a block of a table needs next, and then later rows."""

    runner: Runner
    base: BaseInputs
    known: Callable[[int, int], tuple[Rows, Cells]]  # rows with what is known of them
    tried: NDArray[np.int64]  # as `never_tried` has it
    variants: Variants
    reading: Reading
    active: NDArray[np.bool_] | None
    going_on: GoingOn

    def after(self, start: int, rows: Rows, cells: Cells) -> Coming:
        """What comes after what is run now of these rows, whose cells are filled meanwhile."""

        def coming() -> Generator[NDArray[Any]]:
            yield self._needed(start, rows, cells, self.variants.width)
            yield from in_windows(self._later, start + len(rows), self.going_on.end)()

        return coming

    def _later(self, start: int, stop: int) -> NDArray[Any]:
        """What is needed of rows that were not asked for yet."""
        rows, cells = self.known(start, stop)
        mark_impossible(self.runner.schema, self.variants, rows, cells)
        return self._needed(start, rows, cells, min(self.variants.width, STEPS))

    def _needed(self, start: int, rows: Rows, cells: Cells, steps: int) -> NDArray[Any]:
        """What is missing of these rows: all of those that are run whole, of others the next."""
        width = self.variants.width
        chosen = np.arange(width) if self.active is None else np.flatnonzero(self.active)
        whole = np.arange(int(min(max(self.going_on.whole_to - start, 0), len(rows))))
        row, column = np.repeat(whole, len(chosen)), np.tile(chosen, len(whole))
        if len(whole) < len(rows):
            next_row, next_column = self._next(start, rows, cells, steps)
            later = next_row >= len(whole)
            row = np.concatenate([row, next_row[later]])
            column = np.concatenate([column, next_column[later]])
        missing = cells[row, column] == NOT_RUN
        return rows.inputs(self.variants, row[missing], column[missing])

    def _next(self, start: int, rows: Rows, cells: Cells, steps: int) -> tuple[Places, Places]:
        """The next cells of each row that does not flip, by what was run ahead, and the first two.

        They are as many as are likely to be needed, in the order in which they are tried.
        """
        own, width = own_first(self.variants, rows, self.reading), self.variants.width
        begin = self.base.beginnings(start, start + len(rows), width)
        columns = spread_order(width)[(begin[:, None] + np.arange(steps)) % width]
        if own is not None:
            columns = np.concatenate([own[:, None], columns], axis=1)
        row, place = np.nonzero(np.take_along_axis(cells, columns, axis=1) == NOT_RUN)
        column, cells = columns[row, place], cells.copy()
        cells[row, column] = self.runner.held(rows.inputs(self.variants, row, column))
        opened = ~flipped(cells, np.arange(len(rows)), self.reading, own)
        missing = (np.take_along_axis(cells, columns, axis=1) == NOT_RUN) & opened[:, None]
        number = np.arange(columns.shape[1]) + (own is None)
        tries, flips = self.tried[np.frexp(number)[1]].T
        stays = np.where(missing, 1 - flips / tries, 1.0)
        likely = missing & (stays.cumprod(axis=1) / stays >= LIKELY)
        place, row = np.nonzero(likely.T)
        return row, columns[row, place]


def never_tried() -> NDArray[np.int64]:
    """How often rows still open were tried, and flipped: none yet, one cell alone never flips.

    Cells whose number in their row is as long in bits are counted together.
    """
    return np.array([(2, 0)] * 2 + [(2, 1)] * 62)


def learn_whole(tried: NDArray[np.int64], cells: Cells) -> None:
    """Take note of rows that were run whole; their cells stand in the order of trying."""
    opened = np.logical_and.accumulate(cells == cells[:, :1], axis=1).sum(axis=0)
    bits = np.frexp(np.arange(2, len(opened) + 1))[1]
    np.add.at(tried, bits, np.stack([opened[:-1], -np.diff(opened)], axis=1))


def own_first(variants: Variants, rows: Rows, reading: Reading) -> Places | None:
    """The column of each base input itself, where it is run first: others are compared with it."""
    first = reading.graded or variants.assignments.holds_followers
    return own_columns(variants, rows) if first else None


def flipped(
    cells: Cells, places: Places, reading: Reading, own: Places | None
) -> NDArray[np.bool_]:
    """Which rows of a table at these places flip by now, as far as they can."""
    seen = reading.cells(_rows_of(cells, places))
    here = own[places] if own is not None and reading.graded else None
    flips: NDArray[np.bool_] = reading.settled_states(seen, here) == FLIP
    return flips


def _rows_of(cells: Cells, places: Places) -> Cells:
    """Some rows of a table, column by column like the table: rows are looked at as a whole."""
    if len(places) == len(cells):
        return cells
    return np.take(cells.T, places, axis=1).T
