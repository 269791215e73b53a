"""Which step suits a range of numbers, and which numbers on its grid are its ends?"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", int, Fraction)

PARTS = 1_000  # a rounded step makes at most about this many of a range


def round_step(width: Fraction) -> Fraction:
    """A step of 1, 2 or 5 times a power of ten that makes at most about PARTS of a width."""
    step = width / PARTS
    power = Fraction(10) ** math.floor(math.log10(step.numerator) - math.log10(step.denominator))
    while power > step:  # logarithms are rounded
        power /= 10
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= step)


def align(low: Number, high: Number, step: Number) -> tuple[Number, Number]:
    """The ends of a range: as they are where steps lead from one to the other, else inside of it.

    Inside, they are multiples of the step.
    """
    if (high - low) % step == 0:
        return low, high
    return -(-low // step) * step, high // step * step
