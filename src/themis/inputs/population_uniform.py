"""Whole numbers that are all equally likely, many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SPARE_BITS = 4  # at most one number in 2⁴ is drawn again


def uniform_numbers(rng: np.random.Generator, size: int, count: int) -> NDArray[Any]:
    """`count` random numbers of 0, 1, …, size − 1, each exactly equally likely.

    The upper half of a product of random bits with `size`; products whose lower half is among the
    few that would favour some numbers are drawn again (Lemire, 2019). It works on whole arrays,
    with four numbers from each word of the generator where 16 bits do.
    """
    if size <= 2 ** (16 - _SPARE_BITS):
        return _multiplied(rng, size, count, np.dtype("<u2"), np.dtype(np.uint32))
    if size <= 2 ** (32 - _SPARE_BITS):
        return _multiplied(rng, size, count, np.dtype("<u4"), np.dtype(np.uint64))
    return rng.integers(0, size, size=count)


def _multiplied(
    rng: np.random.Generator,
    size: int,
    count: int,
    half: np.dtype[Any],
    whole: np.dtype[Any],
) -> NDArray[Any]:
    width = 8 * half.itemsize
    words = -(-count * width // 64)
    bits = rng.bit_generator.random_raw(words).astype("<u8", copy=False).view(half)[:count]
    numbers = bits.astype(whole)
    numbers *= whole.type(size)
    unfair = 2**width % size
    if unfair:
        again = np.flatnonzero(numbers.astype(half) < unfair)
    numbers >>= whole.type(width)
    if unfair and len(again):
        numbers[again] = _multiplied(rng, size, len(again), half, whole)
    return numbers
