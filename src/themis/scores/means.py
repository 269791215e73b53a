"""Means of groups as they were seen: of those who have an answer, within the ends of all."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from themis.statistics.intervals import Flags
from themis.statistics.proportions import Interval
from themis.subjects.answers import NumberPart
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading

_UPPER, _LOWER = 26, 27  # bits of a share: sums of whole numbers do not depend on their order


class SeenMeans:
    """What each group's numbers add up to, as shares of the scale; what failed has none."""

    def __init__(self, reading: Reading, groups: int) -> None:
        self.reading = reading
        self._upper = np.zeros(groups, dtype=np.int64)
        self._lower = np.zeros(groups, dtype=np.int64)
        self._counts = np.zeros(groups, dtype=np.int64)

    def add(self, cells: Cells, active: Flags) -> None:
        """Count rows with a column for each active group."""
        labels = self.reading.labels
        if self.reading.statistic != "mean" or not isinstance(labels, NumberPart):
            return
        scaled = np.ldexp(labels.shares(cells), _UPPER)
        upper = np.floor(scaled)
        self._upper[active] += upper.astype(np.int64).sum(axis=0)
        self._lower[active] += np.ldexp(scaled - upper, _LOWER).astype(np.int64).sum(axis=0)
        self._counts[active] += (cells >= 0).sum(axis=0)

    def instead(self, rates: Sequence[Interval]) -> tuple[Interval, ...]:
        """The groups' means with these ends, which are made to contain them; rates as they are."""
        return tuple(
            ends if mean is None else _containing(mean, ends)
            for mean, ends in zip(self._means(), rates, strict=True)
        )

    def spread(self, active: Flags, known: Interval) -> Interval:
        """How far the means of the active groups are apart, in the same way."""
        own = itertools.compress(self._means(), active)
        seen = [mean for mean in own if mean is not None]
        return _containing(max(seen) - min(seen), known) if seen else known

    def _means(self) -> list[float | None]:
        sums = np.ldexp(self._upper + np.ldexp(self._lower, -_LOWER), -_UPPER).tolist()
        each = zip(sums, self._counts.tolist(), strict=True)
        return [total / count if count else None for total, count in each]


def _containing(score: float, ends: Interval) -> Interval:
    return Interval(score, min(ends.low, score), max(ends.high, score))
