"""Sums of weights, right to the last digits however many they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUM_BITS = 52  # of whole numbers whose sum a float still has exactly


def summed(places: NDArray[Any], weights: NDArray[Any], count: int) -> NDArray[np.float64]:
    """The sum of the weights at each place, right to the last digits however many they are.

    What is a multiple of a small power of two is summed without any rounding, the rest by itself.
    """
    if len(weights) and weights.min() == weights.max():
        return np.bincount(places, minlength=count).astype(float) * float(weights[0])
    _, scale = math.frexp(float(weights.sum()))
    whole = np.rint(np.ldexp(weights, SUM_BITS - scale))
    rest = weights - np.ldexp(whole, scale - SUM_BITS)
    sums = np.ldexp(np.bincount(places, whole, count), scale - SUM_BITS)
    return np.asarray(sums + np.bincount(places, rest, count))
