"""Rates of several groups at once: ends that hold together, and how far apart they surely are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from themis.statistics.intervals import mixture_interval
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
