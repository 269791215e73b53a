"""Scoring rates: how often a group's outputs, which are numbers, are above the median of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.subjects.answers import NumberPart
from themis.subjects.readings import Reading


def scoring_rates(
    reading: Reading,
    cells: NDArray[Any],
    own: NDArray[Any],
    groups: int,
    weights: NDArray[np.float64] | None = None,
) -> list[float | None]:
    """The share of each group above the median of all; None where outputs are no numbers.

    `own` is the group of each cell. Cells without an output do not count, and neither has a group
    without any a rate. The shares are of exactly these cells: no interval is claimed.
    """
    if reading.statistic != "mean" or not isinstance(reading.labels, NumberPart):
        return [None] * groups
    known = cells >= 0
    numbers, own = reading.labels.shares(cells)[known], own[known]
    weight = np.ones(len(numbers)) if weights is None else weights[known]
    if not weight.sum():
        return [None] * groups
    above = weight * (numbers > _median(numbers, weight))
    total = np.bincount(own, weight, groups)
    higher = np.bincount(own, above, groups)
    return [float(h / t) if t else None for h, t in zip(higher, total, strict=True)]


def _median(numbers: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The number that half of the weight does not exceed."""
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(weight[order])
    return float(numbers[order][np.searchsorted(reached, reached[-1] / 2)])
