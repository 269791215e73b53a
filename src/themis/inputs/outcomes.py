"""Known outcomes of given people: a column of the rows that is no input, such as who repaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.inputs.sums import summed
from themis.inputs.tables import Column
from themis.inputs.values import floats_of, is_missing

MOST_VALUES = 100  # different outcomes; with more, a column holds numbers, or else names


@dataclass(frozen=True)
class KnownOutcomes:
    """How often each distinct person has each outcome; people without one are in none of them."""

    label: str  # the column
    values: tuple[Value, ...]  # as they stand in the rows
    weights: NDArray[np.float64]  # distinct people × values
    heads: NDArray[np.float64]  # the same in people

    @property
    def is_rare(self) -> NDArray[np.bool_]:
        """For each outcome whether fewer than SHARED people have it."""
        return np.asarray(self.heads.sum(axis=0) < SHARED)

    @property
    def shared(self) -> list[Value]:
        """The outcomes that at least SHARED people have: naming one names nobody."""
        return [v for v, rare in zip(self.values, self.is_rare, strict=True) if not rare]


@dataclass(frozen=True)
class KnownNumbers:
    """Numbers that are known of given people, such as what they cost: row by row."""

    label: str
    values: NDArray[np.float64]  # of each row that has one
    person: NDArray[np.int64]  # which distinct person it is of
    weights: NDArray[np.float64]


def numbers_of(
    label: str, column: Column, weights: NDArray[np.float64], person: NDArray[np.int64]
) -> KnownNumbers | None:
    """The numbers of some rows; None where some values of the column are none."""
    there = [value for value in column.values if not is_missing(value)]
    numbers = floats_of(column.values)
    if not there or np.isfinite(numbers).sum() < len(there):
        return None
    own = np.append(numbers, np.nan)[column.codes]
    known = np.isfinite(own)
    return KnownNumbers(label, own[known], person[known], weights[known])


def outcomes_of(
    label: str,
    column: Column,
    weights: NDArray[np.float64],
    person: NDArray[np.int64],
    *,
    is_count: bool,
) -> KnownOutcomes:
    """The outcomes of some rows, by the distinct people that they are of.

    With `is_count` weights are numbers of people.
    """
    there = [place for place, value in enumerate(column.values) if not is_missing(value)]
    number = np.full(len(column.values) + 1, -1)  # the last one is for nothing
    number[there] = np.arange(len(there))
    own = number[column.codes]
    known, shape = own >= 0, (int(person.max()) + 1, len(there))
    cells = person[known] * len(there) + own[known]

    def total(each: NDArray[np.float64]) -> NDArray[np.float64]:
        return summed(cells, each[known], shape[0] * shape[1]).reshape(shape)

    weighed = total(weights)
    heads = weighed if is_count else total(np.ones(len(weights)))
    return KnownOutcomes(label, tuple(column.values[t] for t in there), weighed, heads)


def label_mistakes(label: str, column: Column, taken: dict[str, str]) -> Iterator[Mistake]:
    """What speaks against a column as outcomes; `taken` says what other columns are."""
    if label in taken:
        yield Mistake("label", "label", f"{label!r} is {taken[label]}", "name another column")
        return
    values = [value for value in column.values if not is_missing(value)]
    if not values:
        yield Mistake("label", "label", f"{label!r} has no value in any row", "name another column")
    if len(values) > MOST_VALUES and np.isnan(floats_of(values)).any():
        problem = f"{label!r} has {len(values):,} different values, more than {MOST_VALUES}"
        remedy = "name a column with the decisions that would have been right"
        yield Mistake("label", "label", problem, remedy)
