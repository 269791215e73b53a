"""Observed rates: how often each category got the favourable decision, with its own values.

All tables count the same inputs, each once, so that their margins add up. No verdict rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from themis.inputs.characteristics import Value


@dataclass(frozen=True)
class Category:
    """One category and what it got; a value of None is an unknown one."""

    values: dict[str, Value]
    inputs: int  # of given people, how many
    favourable: int
    undecided: int  # without a decision; the rate is of the others
    share: float  # of all that is counted, by weight
    rate: float | None  # by weight; None where nobody has a decision, or a value is unknown
    low: float | None = None
    high: float | None = None
    ratio: float | None = None  # to the highest rate; None where there is none, or of too few
    ratio_low: float | None = None
    ratio_high: float | None = None
    few: bool = False  # too few to say anything
    people: int | None = None  # of whom inputs were drawn: how many are in it
    together: int = 1  # so many categories, of too few people each to be named


@dataclass(frozen=True)
class CategoryTable:
    """All categories of one or two characteristics, in the order of their values."""

    against: tuple[str, ...]
    categories: tuple[Category, ...]


@dataclass(frozen=True)
class Observed:
    """The observed rates of one output.

    The ends of all tables, of all outputs, hold together after a number of inputs that was fixed
    beforehand; those of everybody who was given, if they are a random sample.
    """

    population: Literal["inputs", "profile", "rows"]
    whole: bool  # every input that occurs, or everybody who was given, is counted
    inputs: int
    favourable: int
    undecided: int
    confidence: float | None  # None: nothing is estimated, or weights or noise leave no interval
    tables: tuple[CategoryTable, ...]
    too_many: tuple[tuple[str, ...], ...] = ()  # sets of more categories than a table has
    output: str | None = None
    statistic: Literal["rate", "mean"] = "rate"  # of means what is above the median is counted
    favours: str | None = None  # as of a group score
    weighted: bool = False  # inputs or people weigh differently: rates are not those of the counts
    noisy: bool = False  # the subject does not always decide the same

    def categories(self) -> Iterator[Category]:
        """Those of all tables."""
        for table in self.tables:
            yield from table.categories


def observed_of_noise(observed: Observed) -> Observed:
    """The rates of a subject that does not always decide the same, without their intervals.

    Inputs that were drawn twice share one answer, so that chance moves them together.
    """
    tables = (
        replace(table, categories=tuple(map(_endless, table.categories)))
        for table in observed.tables
    )
    return replace(observed, tables=tuple(tables), confidence=None, noisy=True)


def _endless(category: Category) -> Category:
    return replace(category, low=None, high=None, ratio_low=None, ratio_high=None)
