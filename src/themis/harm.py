"""The direction of harm: which change of value turns favourable into unfavourable, how often."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs import Assignments
from themis.outcomes import Cells, Labels
from themis.results import Harm

WIDTH_LIMIT = 256  # sets with more assignments get no matrix of changes
SHOWN = 20


class HarmTally:
    """Counts, over whole rows of a table, what each change of assignment does to the decision."""

    def __init__(self, assignments: Assignments, labels: Labels) -> None:
        self.assignments = assignments
        self.labels = labels
        width = assignments.count
        self._lost: NDArray[np.float64] = np.zeros((width, width))
        self._known: NDArray[np.float64] = np.zeros((width, width))
        self._flipped = self._pairs = 0.0
        self.contexts = 0

    def add(self, cells: Cells, weights: NDArray[np.float64] | None = None) -> None:
        """Count rows in which every assignment was tried."""
        known = (cells >= 0).astype(np.float64)
        favourable = self.labels.is_favourable(cells).astype(np.float64)
        weight: Any = np.ones(len(cells)) if weights is None else weights
        self._lost += (favourable * weight[:, None]).T @ (known - favourable)
        self._known += (known * weight[:, None]).T @ known
        counts = np.stack([(cells == n).sum(axis=1) for n in range(len(self.labels.labels))])
        total = counts.sum(axis=0)
        pairs = total * (total - 1.0)
        same = (counts * (counts - 1.0)).sum(axis=0)
        share = np.divide(pairs - same, pairs, out=np.zeros(len(cells)), where=pairs > 0)
        self._flipped += float((share * weight).sum())
        self._pairs += float(weight.sum())
        self.contexts += len(cells)

    @property
    def flip_rate(self) -> float | None:
        """How often one change of the set, to any other assignment, changes the output."""
        return self._flipped / self._pairs if self._pairs else None

    def changes(self, count: int = SHOWN) -> tuple[Harm, ...]:
        """The changes that cost most people the favourable decision, the worst first."""
        rate = np.divide(
            self._lost, self._known, out=np.zeros_like(self._lost), where=self._known > 0
        )
        first, second = np.nonzero((rate > 0) & (rate >= rate.T))
        keep = (first < second) | (rate[first, second] > rate[second, first])
        first, second = first[keep], second[keep]
        order = np.argsort(-rate[first, second], kind="stable")[:count]
        return tuple(
            Harm(
                change_from=self.assignments.labels(int(first[place])),
                change_to=self.assignments.labels(int(second[place])),
                lost=float(rate[first[place], second[place]]),
                gained=float(rate[second[place], first[place]]),
                contexts=self.contexts,
            )
            for place in order
        )
