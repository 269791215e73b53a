"""Known outcomes of given people: a column of the rows that is no input, such as who repaid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake
from themis.inputs.assignments import context_keys
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.inputs.rows import AnyColumn, factorise, is_missing

MOST_VALUES = 100  # different outcomes; with more, a column holds measurements or names


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


def outcomes_of(
    label: str,
    column: AnyColumn,
    used: NDArray[np.int64],
    rows: NDArray[Any],
    weights: NDArray[np.float64],
    distinct: NDArray[Any],
    *,
    is_count: bool,
) -> KnownOutcomes:
    """The outcomes of the rows that are used, by the distinct ones among them.

    `column` is of all rows, `rows` (their codes) and `weights` of those that are used. With
    `is_count` weights are numbers of people.
    """
    values, places = factorise(column)
    there = [place for place, value in enumerate(values) if not is_missing(value)]
    number = np.full(len(values), -1)
    number[there] = np.arange(len(there))
    own, person = number[places[used]], _places_among(rows, distinct)
    shape = len(distinct), len(there)
    known = own >= 0
    cells = person[known] * len(there) + own[known]

    def total(each: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(cells, each[known], shape[0] * shape[1]).reshape(shape).astype(float)

    weighed = total(weights)
    heads = weighed if is_count else total(np.ones(len(weights)))
    return KnownOutcomes(label, tuple(map(_plain, (values[t] for t in there))), weighed, heads)


def label_mistakes(label: str, column: AnyColumn, taken: dict[str, str]) -> Iterator[Mistake]:
    """What speaks against a column as outcomes; `taken` says what other columns are."""
    if label in taken:
        yield Mistake("label", "label", f"{label!r} is {taken[label]}", "name another column")
        return
    values = [value for value in factorise(column)[0] if not is_missing(value)]
    if not values:
        yield Mistake("label", "label", f"{label!r} has no value in any row", "name another column")
    if len(values) > MOST_VALUES:
        problem = f"{label!r} has {len(values):,} different values, more than {MOST_VALUES}"
        remedy = "name a column with the decisions that would have been right"
        yield Mistake("label", "label", problem, remedy)


def _places_among(rows: NDArray[Any], distinct: NDArray[Any]) -> NDArray[np.int64]:
    """Which of the distinct inputs each row is."""
    numbers = context_keys(np.concatenate([distinct, rows]), ())
    place = np.empty(len(distinct), dtype=np.int64)
    place[numbers[: len(distinct)]] = np.arange(len(distinct))
    return place[numbers[len(distinct) :]]


def _plain(value: Any) -> Value:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float) else str(value)
