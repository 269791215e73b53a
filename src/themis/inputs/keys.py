"""The key of an input: a number, or a few bytes, that no other input has.

Whoever asks whether two inputs are the same, or whether one was met before, asks by this key.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD = 2**63  # up to so many keys are numbers; where there are more, they are bytes
Keys = NDArray[Any]  # numbers, or bytes of one length; their order is that of the inputs


class InputKeys:
    """The keys of inputs with so many codes in each column: 0, 1, … up to the number less one.

    Codes are the digits of a number, those of the last column count least. Where that would be too
    large, neighbouring columns make a word together, and the key is all words one after another.
    Inputs that differ only in `unseen` columns have one key.
    """

    def __init__(self, code_counts: Sequence[int], unseen: Collection[int] = ()) -> None:
        told = [1 if place in unseen else codes for place, codes in enumerate(code_counts)]
        self.count = math.prod(told)  # of all keys, exact however large
        self._places: list[tuple[int, int]] = []  # of each column: its word, and what a code counts
        word, stride = 0, 1
        for place, codes in reversed([*enumerate(told)]):
            if place in unseen:
                self._places.append((word, 0))
                continue
            if stride * max(codes, 2) > WORD:
                word, stride = word + 1, 1
            self._places.append((word, stride))
            stride *= codes
        self._places = [(word - own, stride) for own, stride in reversed(self._places)]
        self._words = word + 1
        own, strides = np.array(self._places, dtype=np.int64).reshape(-1, 2).T
        self._strides = strides.copy()
        self._starts = np.searchsorted(own, np.arange(self._words + 1)).tolist()  # of each word

    @classmethod
    def among(cls, codes: NDArray[Any]) -> InputKeys:
        """Keys that tell these inputs apart, whatever domain they are of."""
        return cls([largest + 1 for largest in codes.max(axis=0, initial=0).tolist()])

    def of(self, codes: NDArray[Any], *, without: Collection[int] = ()) -> Keys:
        """The key of each input, or of its context: what it is without some columns."""
        return self._joined(self._digits(codes, without))

    def of_table(self, codes: NDArray[Any], changes: Mapping[int, NDArray[Any]]) -> Keys:
        """The keys of all variants, inputs × variants, given the codes that change alike."""
        width = next(iter(changes.values())).shape[1]
        words = np.repeat(self._digits(codes, changes)[:, :, None], width, axis=2)
        for column, new in changes.items():
            self._add(words, column, new)
        return self._joined(words)

    def overwrite(self, keys: Keys, column: int, old: NDArray[Any], new: NDArray[Any]) -> None:
        """Turn keys that are numbers into those of the same inputs with new codes in a column."""
        keys += (new.astype(np.int64) - old) * self._places[column][1]

    def _digits(self, codes: NDArray[Any], without: Collection[int]) -> NDArray[np.int64]:
        strides = self._strides[: codes.shape[1]]
        if without:
            strides = strides * [column not in without for column in range(codes.shape[1])]
        words = np.empty((self._words, len(codes)), dtype=np.int64)
        for word, (start, stop) in enumerate(itertools.pairwise(self._starts)):
            own = slice(start, stop)
            np.einsum(
                "c,nc->n", strides[own], codes[:, own], out=words[word], dtype=np.int64,
                casting="unsafe",
            )  # fmt: skip
        return words

    def _add(self, words: NDArray[np.int64], column: int, codes: NDArray[Any]) -> None:
        word, stride = self._places[column]
        words[word] += np.multiply(codes, stride, dtype=np.int64)

    def _joined(self, words: NDArray[np.int64]) -> Keys:
        keys: Keys = words
        if len(words) > 1:
            behind = np.ascontiguousarray(np.moveaxis(words, 0, -1), dtype=">i8")
            keys = np.moveaxis(behind.view(f"S{8 * len(words)}"), -1, 0)
        one: Keys = keys[0]
        return one


def first_places(keys: Keys) -> NDArray[np.int64]:
    """The places of those that are not earlier among them, in order."""
    if (keys[1:] > keys[:-1]).all():
        return np.arange(len(keys))
    first = np.zeros(len(keys), dtype=bool)
    first[numbered(keys)[0]] = True
    return np.flatnonzero(first)


def each_once(codes: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """The places of all inputs, in parts that hold each input at most once."""
    left = np.arange(len(codes))
    keys = InputKeys.among(codes).of(codes)
    while len(left):
        first = first_places(keys[left])
        yield left[first]
        left = np.delete(left, first)


def numbered(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each key stands first, in the order of the keys, and the number of each in that order.

    Keys that are numbers, and not much larger than they are many, are counted instead of sorted.
    """
    if not _are_dense(keys):
        return np.unique(keys, return_index=True, return_inverse=True)[1:]
    places = np.full(int(keys.max()) + 1, -1, dtype=np.int64)
    places[keys[::-1]] = np.arange(len(keys))[::-1]  # the first of equal keys is written last
    there = places >= 0
    return places[there], (np.cumsum(there) - 1)[keys]


def _are_dense(keys: Keys) -> bool:
    numbers = keys.ndim == 1 and keys.dtype.kind == "i" and len(keys) > 0
    # Keys up to four times as large as they are many are counted, larger ones sorted.
    return numbers and keys.min() >= 0 and keys.max() < 4 * len(keys)


def summed(places: NDArray[Any], weights: NDArray[Any], count: int) -> NDArray[np.float64]:
    """The sum of the weights at each place, right to the last digits however many they are.

    What is a multiple of a small power of two is summed without any rounding, the rest by itself.
    """
    if len(weights) and weights.min() == weights.max():
        return np.bincount(places, minlength=count).astype(float) * float(weights[0])
    _, scale = math.frexp(float(weights.sum()))
    shift = 52 - scale  # a float has the sum of whole numbers of so many bits exactly
    whole = np.rint(np.ldexp(weights, shift))
    rest = weights - np.ldexp(whole, -shift)
    sums = np.ldexp(np.bincount(places, whole, count), -shift)
    return np.asarray(sums + np.bincount(places, rest, count))
