"""Rates of several groups at once: ends that hold together, and how far apart they surely are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from themis.statistics.intervals import clopper_pearson, mixture_interval
from themis.statistics.proportions import Interval


def joint_rates(counts: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[Interval, ...]:
    """Each group's rate with ends that hold for all groups together, at any stopping time.

    α is divided by the number of groups (Bonferroni), so that they may depend on each other in any
    way; the trials of one group must be independent draws. Without trials the rate is 0 of [0, 1].
    """
    x, n = np.asarray(counts, dtype=float), np.asarray(trials, dtype=float)
    low, high = mixture_interval(x, n, (1.0 - confidence) / max(len(x), 1))
    rates = np.divide(x, n, out=np.zeros(len(x)), where=n > 0)
    ends = zip(rates.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Interval(*each) for each in ends)


def sure_gap(rates: Sequence[Interval]) -> float:
    """How far the highest and the lowest rate are apart at the least; 0 where none surely are.

    Where the ends hold together, the true spread is below this with at most their chance to fail.
    """
    if not rates:
        return 0.0
    return max(0.0, max(each.low for each in rates) - min(each.high for each in rates))


def sampled_rate(successes: float, trials: float, alpha: float) -> Interval:
    """A rate with ends that hold, at this fixed number of trials, with at least 1 − alpha.

    Clopper and Pearson. If each of m such rates gets alpha / m, all hold together (Bonferroni),
    however they depend on each other; so do `spread_of` and `ratio_of` of any of them.
    """
    return Interval(successes / trials, *clopper_pearson(int(successes), int(trials), alpha))


def spread_of(rates: Sequence[Interval]) -> Interval:
    """The highest less the lowest rate, with ends that hold wherever those of all rates do."""
    points, lows = [each.score for each in rates], sorted(each.low for each in rates)
    others = (lows[int(each.low == lows[0])] for each in rates)  # the lowest end of another group
    widest = (each.high - low for each, low in zip(rates, others, strict=True))
    high = max(widest) if len(rates) > 1 else 0.0
    return Interval(max(points) - min(points), sure_gap(rates), max(0.0, high))


def ratio_of(rates: Sequence[Interval]) -> Interval | None:
    """The lowest divided by the highest rate, in the same way; None where all rates are 0."""
    points = [each.score for each in rates]
    if max(points, default=0.0) <= 0:
        return None
    highest, surely = max(each.high for each in rates), max(each.low for each in rates)
    low = min(each.low for each in rates) / highest if len(rates) > 1 else 1.0
    high = min(1.0, min(each.high for each in rates) / surely) if surely > 0 else 1.0
    return Interval(min(points) / max(points), low, high)


def association(table: ArrayLike) -> float:
    """How closely two characteristics go together, from 0 to 1: Cramér's V without its bias.

    `table` counts people by the values of the one and of the other. Bergsma's correction (2013)
    takes off what chance alone would give; where there is nothing to compare it is 0.
    """
    counts = np.asarray(table, dtype=float)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n, (rows, columns) = counts.sum(), counts.shape
    if n <= 1 or min(rows, columns) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    square = float(((counts - expected) ** 2 / expected).sum() / n)
    square = max(0.0, square - (rows - 1) * (columns - 1) / (n - 1))
    least = min(each - (each - 1) ** 2 / (n - 1) for each in (rows, columns)) - 1
    return min(1.0, float(np.sqrt(square / least))) if least > 0 else 0.0
