"""What only two characteristics together change, from rows in which every variant was run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.characteristics import Value
from themis.results.model import CausalScore
from themis.results.parts import Joint, Witness
from themis.scores.explanations.harm import WIDTH_LIMIT, Ends
from themis.scores.explanations.witnesses import FlipPool, Pairs
from themis.statistics.intervals import Flags, Floats
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import Reading


class JointTally:
    """Counts inputs that change by one of two characteristics alone, and only by both.

    It keeps the first pair that needs both.
    """

    def __init__(self, variants: Variants, reading: Reading) -> None:
        self._variants, self._reading = variants, reading
        self._weight = self._only = 0.0
        self._alone = np.zeros(2)
        self._inputs = self._only_count = 0
        self._weighted = False
        self._example: Pairs | None = None

    @staticmethod
    def of(variants: Variants, reading: Reading) -> JointTally | None:
        """A tally, where there is something to count: a set of two whose table is not too wide."""
        two = len(variants.assignments.columns) == 2
        fits = two and variants.complete and variants.assignments.count <= WIDTH_LIMIT
        return JointTally(variants, reading) if fits and not reading.graded else None

    def add(self, rows: Rows, cells: Cells, weights: Floats | None = None) -> None:
        """Count rows in which every assignment was tried; a row is its base input."""
        own, each = own_columns(self._variants, rows), np.arange(len(rows))
        clear = ~((cells == FAILED) | (cells == NOT_RUN)).any(axis=1) & (cells[each, own] >= 0)
        table = cells.reshape(len(cells), *self._variants.assignments.shape)
        first, second = np.unravel_index(own, self._variants.assignments.shape)
        alone = np.stack([_varies(table, 1)[each, second], _varies(table, 2)[each, first]])
        only = clear & _varies(cells, 1) & ~alone.any(axis=0)
        weight = np.ones(len(rows)) if weights is None else weights
        self._weighted |= bool((weight != weight[:1]).any())
        self._weight += float(weight[clear].sum())
        self._alone += (alone * clear * weight).sum(axis=1)
        self._only += float(weight[only].sum())
        self._inputs += int(clear.sum())
        self._only_count += int(only.sum())
        if self._example is None and only.any():
            self._example = self._pair(rows, cells, own, np.flatnonzero(only))

    def _pair(
        self, rows: Rows, cells: Cells, own: NDArray[np.int64], places: NDArray[np.int64]
    ) -> Pairs | None:
        """An input and a variant with another output, between which each single change was run."""
        shape = self._variants.assignments.shape
        for row in places[:50].tolist():
            first, second = np.unravel_index(own[row], shape)
            table = cells[row].reshape(shape)
            needs = (table >= 0) & (table != table[first, second])
            needs &= (table[:, [second]] >= 0) & (table[[first], :] >= 0)
            if needs.any():
                other = int(np.ravel_multi_index(np.argwhere(needs)[0], shape))
                columns = np.array([own[row], other])
                inputs = rows.inputs(self._variants, np.array([row, row]), columns)
                return Pairs(inputs[None], cells[row, columns][None])
        return None

    def joint(self, ends: Ends | None = None) -> Joint | None:
        """What was counted; `ends` gives the interval of a share where inputs were sampled."""
        if not self._inputs or not self._weight:
            return None
        names = self._variants.assignments.names
        shares = (self._alone / self._weight).tolist()
        counted = None if self._weighted else self._only_count
        found = Joint(
            dict(zip(names, shares, strict=True)), self._only / self._weight, self._inputs, counted
        )
        if ends is None or self._weighted:
            return found
        low, high = ends(np.array([self._only_count]), np.array([self._inputs]))
        return replace(found, only_low=float(low[0]), only_high=float(high[0]))

    def explain(self, score: CausalScore, ends: Ends | None = None) -> CausalScore:
        """The score with what is only joint, and before its other witnesses one that shows it."""
        first = tuple(self._witness()) if score.witnesses else ()
        known = [_people(each) for each in first]
        others = (each for each in score.witnesses if _people(each) not in known)
        return replace(score, joint=self.joint(ends), witnesses=(*first, *others))

    def _witness(self) -> Iterator[Witness]:
        if self._example is not None:
            pool = FlipPool(self._variants.assignments.schema, self._reading)
            own = self._reading.labels.labels[int(self._example.outputs[0, 0])]
            for shown in pool.witnesses(self._example):
                yield replace(shown, joint=0 if shown.outputs[0] == own else 1)


def _people(witness: Witness) -> list[dict[str, Value]]:
    """The two of a pair, whoever comes first."""
    return sorted(witness.inputs, key=repr)


def _varies(table: NDArray[Any], axis: int) -> Flags:
    """Whether the known outputs along an axis are not all the same."""
    known = table >= 0
    most = np.where(known, table, -1).max(axis=axis)
    least = np.where(known, table, np.iinfo(table.dtype).max).min(axis=axis)
    varies: Flags = known.any(axis=axis) & (most > least)
    return varies
