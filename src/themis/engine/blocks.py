"""Blocks: rows of a set's table, with what is known of their cells, and the order of trying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Places
from themis.inputs.characteristics import OWN
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.subjects.readings import FLIP, Reading

MOST_WHOLE = 16  # columns that are tried at once where calls are to be few


@dataclass
class Block:
    """Consecutive rows of a set's table, their cells, and which of these are wanted."""

    variants: Variants
    rows: Rows
    cells: Cells
    reading: Reading
    start: int = 0  # the number of the first row
    active: NDArray[np.bool_] | None = None  # the columns that are wanted; None: all
    until_flip: bool = False  # a row is left as soon as two of its outputs differ

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def chosen(self) -> Places:
        """The columns that are wanted."""
        if self.active is None:
            return np.arange(self.variants.width)
        return np.flatnonzero(self.active)

    @property
    def outputs(self) -> Cells:
        """The cells as the reading sees them."""
        return self.reading.cells(self.cells)

    @cached_property
    def own(self) -> Places | None:
        """The column of each base input, where it is run first: others are compared with it."""
        first = self.reading.graded or self.variants.assignments.holds_followers
        return own_columns(self.variants, self.rows) if first else None

    def inputs(self, row: Places, column: Places) -> NDArray[Any]:
        """The inputs of these cells."""
        return self.rows.inputs(self.variants, row, column)

    def flipped(self, places: Places) -> NDArray[np.bool_]:
        """Which rows at these places flip by now, as far as they can."""
        cells = self.cells
        if len(places) < len(cells):  # column by column, like the table: rows are seen as a whole
            cells = np.take(cells.T, places, axis=1).T
        here = self.own[places] if self.own is not None and self.reading.graded else None
        flips: NDArray[np.bool_] = (
            self.reading.settled_states(self.reading.cells(cells), here) == FLIP
        )
        return flips

    def mark_impossible(self) -> None:
        """Mark the variants that a constraint forbids, or that give or take a missing value.

        They are no counterfactuals. Nor is there one with an own value where that is of some level.
        """
        self._mark_levels()
        variants, schema = self.variants, self.variants.assignments.schema
        touching = schema.touching(variants.assignments.changed)
        kept = not schema.kept_missing.keys().isdisjoint(variants.assignments.columns)
        if not (touching.constraints or kept):
            return
        open_columns = np.arange(variants.width)
        if not kept:
            open_columns = np.flatnonzero((self.cells == NOT_RUN).any(axis=0))
        changes = self.rows.all_changes(variants, open_columns)
        limits = touching if self.rows.valid else schema
        row, place = np.nonzero(~limits.admits_table(self.rows.codes, changes))
        self.cells[row, open_columns[place]] = NO_COUNTERFACTUAL  # even if it was run

    def _mark_levels(self) -> None:
        """Mark the columns for values of no level in the rows that have others."""
        assignments, levels = self.variants.assignments, self.variants.levels
        each = assignments.schema.characteristics
        if not self.variants.complete or not any(each[c].has_own for c in assignments.columns):
            return
        own = self.rows.own_levels(assignments)
        for place in np.flatnonzero((levels == OWN).any(axis=1)).tolist():
            wanted = levels[place] == OWN
            self.cells[(own[:, wanted] != OWN).any(axis=1), place] = NO_COUNTERFACTUAL


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


def waves(width: int, *, calls: bool = False) -> Iterator[NDArray[np.int64]]:
    """The columns in the order of trying: far apart first, a few and then ever more at a time.

    They grow faster where `calls` are to be few.
    """
    order = spread_order(width)
    start, size = 0, first_wave(width, vectorised=True, calls=calls)
    while start < width:
        yield order[start : start + size]
        start += size
        size = MOST_WHOLE * size if calls else min(4 * size, 256)


def first_wave(width: int, *, vectorised: bool, calls: bool = False) -> int:
    """How many columns are tried at once in the beginning.

    A subject that runs input by input gets one further column at a time: no execution is wasted
    on a row that has flipped. Where `calls` are to be few, small sets are run whole.
    """
    if calls:
        return min(width, MOST_WHOLE)
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
