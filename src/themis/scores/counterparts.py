"""Counterfactuals among given rows where something follows the set: each row has its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Assignments, Places, context_keys
from themis.inputs.following import follow
from themis.scores.people import Counterparts, Distances
from themis.subjects.decisions import Cells


@dataclass(frozen=True)
class RowPairs:
    """Rows and their counterfactuals among the rows: the same as they are, but for the set.

    The other row may not have this one as its counterfactual: rows are given as they are, and may
    have followers that no change of the set leads to.
    """

    rows: Places
    partners: Places
    count: int  # of all rows

    @classmethod
    def of(cls, codes: NDArray[Any], assignments: Assignments, levels: Places) -> RowPairs:
        """All pairs; `levels` are the numbers of the rows' assignments."""
        leaders = sorted({tie.leader for tie in assignments.followed})
        each = [assignments.schema.characteristics[column] for column in leaders]
        own = np.stack([one.level_of(codes[:, c]) for one, c in zip(each, leaders, strict=True)])
        _, joint = np.unique(own, axis=1, return_inverse=True)
        found = []
        for number in range(int(joint.max()) + 1):
            targets = np.flatnonzero(joint.reshape(-1) == number)
            moved = codes.copy()
            moved[:, leaders] = codes[targets[0], leaders]
            follow(assignments.followed, codes, moved)
            found.append(_matches(moved, codes, targets, assignments.columns))
        rows, partners = np.concatenate(found, axis=1)
        others = levels[rows] != levels[partners]
        others &= assignments.schema.admits(codes[rows], codes[partners])  # as to missing values
        return cls(rows[others], partners[others], len(codes))

    def compare(self, cells: Cells, distances: Distances) -> Counterparts:
        """How far the farthest counterfactual of each row is."""
        least = np.zeros(self.count)
        unclear, paired = (np.zeros(self.count, dtype=bool) for _ in range(2))
        paired[self.rows] = True
        own, other = cells[self.rows], cells[self.partners]
        np.maximum.at(least, self.rows, distances(own, other))
        unclear[self.rows[(own < 0) | (other < 0)]] = True
        return Counterparts(least, np.where(unclear, 1.0, least), paired)

    def farthest(self, cells: Cells, rows: Places, distances: Distances) -> Places:
        """Of each of these rows the pair with its farthest counterfactual."""
        here = np.flatnonzero(np.isin(self.rows, rows))
        apart = distances(cells[self.rows[here]], cells[self.partners[here]])
        order = np.lexsort((-apart, self.rows[here]))
        first = np.unique(self.rows[here][order], return_index=True)[1]
        chosen = here[order[first]]
        return np.stack([self.rows[chosen], self.partners[chosen]], axis=1)


def _matches(
    moved: NDArray[Any], codes: NDArray[Any], targets: Places, columns: tuple[int, ...]
) -> NDArray[np.int64]:
    """Which rows, as they would be there, are in the context of which of the targets."""
    numbers = context_keys(np.concatenate([moved, codes[targets]]), columns)
    asked, there = numbers[: len(moved)], numbers[len(moved) :]
    order = np.argsort(there, kind="stable")
    start = np.searchsorted(there[order], asked, side="left")
    counts = np.searchsorted(there[order], asked, side="right") - start
    rows = np.repeat(np.arange(len(moved)), counts)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([rows, targets[order[np.repeat(start, counts) + offset]]])
