"""Observed rates: one fixed set of inputs, counted by the categories of protected characteristics.

The inputs are first reduced to the finest categories, of which all tables are sums: so their
margins add up exactly. Which inputs are counted, and how many, is fixed before anything is run.
Then the rate of each category is a share of so many independent draws, and the ends of Clopper and
Pearson hold for all together once 1 − confidence is divided by the number of categories.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.inputs.characteristics import OWN, Characteristic, Value
from themis.inputs.keys import InputKeys, numbered, summed
from themis.inputs.schema import Schema
from themis.results.outcomes import Category, CategoryTable, Observed
from themis.scores.domain import Domain, rounded
from themis.scores.group_tally import above_median
from themis.scores.privacy import FEW
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import sampled_rate
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun

MOST = 200  # categories of a table; a larger one would hold a few inputs in each
INPUTS, FAVOURABLE, UNDECIDED, WEIGHT, WEIGHT_FAVOURABLE, WEIGHT_DECIDED = range(6)


@dataclass(frozen=True)
class Counted:
    """The inputs that are counted, with their answers."""

    schema: Schema
    codes: NDArray[Any]
    answers: Cells
    weights: Floats
    heads: Floats  # how many each input counts for
    population: Literal["inputs", "profile", "rows"]
    whole: bool
    sampled: bool = True  # whether they are, or may be, a random sample of others
    people: PeopleRun | None = None  # whom they were drawn from

    @property
    def judges_all(self) -> bool:
        """Whether no category is too small, since there are no further inputs."""
        return self.whole and self.population == "inputs"

    @property
    def is_weighted(self) -> bool:
        """Whether rates are others than those of the counts."""
        own, of_heads = (each / each.sum() for each in (self.weights, self.heads))
        return not np.allclose(own, of_heads, rtol=1e-9, atol=0.0)

    @classmethod
    def of_domain(cls, schema: Schema, domain: Domain) -> Counted:
        """Every input that occurs."""
        ones = np.ones(len(domain.codes))
        return cls(schema, domain.codes, domain.cells, domain.weights, ones, "inputs",
                   whole=True, sampled=False)  # fmt: skip

    @classmethod
    def of_people(cls, run: PeopleRun, population: Literal["profile", "rows"]) -> Counted | None:
        """Everybody who was given; None unless all of them were run."""
        answers = run.known_answers()
        if (answers == NOT_RUN).any():
            return None
        return cls(run.people.schema, run.codes, answers, run.weights, run.heads, population,
                   whole=True, sampled=run.people.are_counted)  # fmt: skip

    @classmethod
    def of_first(cls, sampler: Sampler, count: int, people: PeopleRun | None) -> Counted | None:
        """So many first base inputs; only what was not run yet is. None if the budget ends."""
        parts, runner = [], sampler.runner
        for first, last in sampler.blocks(0, count, 1):
            codes = sampler.base.rows(first, last)
            cells = sampler.tables.known_outputs(codes, first)
            missing = np.flatnonzero(cells == NOT_RUN)
            runner.ledger.remember(len(cells) - len(missing))
            cells[missing] = runner.run(codes[missing])
            sampler.tables.memory.keep_base(first, cells)
            parts.append(cells)
        if sum(map(len, parts)) < count:
            return None
        ones, population = np.ones(count), sampler.population
        return cls(population.schema, sampler.base.rows(0, count), np.concatenate(parts),
                   ones, ones, "profile" if population.profile else "inputs",
                   whole=False, people=people)  # fmt: skip


def observed_rates(
    counted: Counted,
    readings: Sequence[Reading],
    sets: Sequence[tuple[int, ...]],
    confidence: float,
) -> tuple[Observed, ...]:
    """The rates of these outputs by the categories of these sets; all intervals hold together."""
    every = tuple(sorted({column for columns in sets for column in columns}))
    finest = _Categories.among(counted.schema, counted.codes, every)
    tables = [finest.of(columns) for columns in sets]
    chosen = [each for each in tables if each.size <= MOST]
    sums = [finest.total(_figures(counted, each)) for each in readings]
    estimated = [counted.sampled and each.statistic == "rate" for each in readings]
    rates = sum(
        int(table.has_rate(table.total(each)).sum())
        for each in itertools.compress(sums, estimated)
        for table in chosen
    )
    alpha = (1.0 - confidence) / max(rates, 1)
    return tuple(
        Observed(
            **_totals(counted, own),
            confidence=confidence if has_ends else None,
            tables=tuple(
                each.counted(counted, own, alpha if has_ends else None) for each in chosen
            ),
            too_many=tuple(each.names for each in tables if each.size > MOST),
            output=reading.details().get("output"),
            statistic=reading.statistic,
            favours=reading.favours,
        )
        for reading, own, has_ends in zip(readings, sums, estimated, strict=True)
    )


def _totals(counted: Counted, sums: Floats) -> dict[str, Any]:
    """What all tables of an output have in common."""
    total = sums.sum(axis=0)
    return {
        "population": counted.population,
        "whole": counted.whole,
        "inputs": round(total[INPUTS]),
        "favourable": round(total[FAVOURABLE]),
        "undecided": round(total[UNDECIDED]),
        "weighted": counted.is_weighted,
    }


def _figures(counted: Counted, reading: Reading) -> Floats:
    """What each input adds to its category, a column for each figure."""
    cells, weights, heads = reading.cells(counted.answers), counted.weights, counted.heads
    good, decided = _favourable(reading, cells, weights), cells >= 0
    each = (heads, heads * good, heads * ~decided, weights, weights * good, weights * decided)
    return np.stack(each, axis=1)


@dataclass(frozen=True)
class _Categories:
    """The categories of a set among inputs, or among finer categories, and which each is in."""

    schema: Schema
    columns: tuple[int, ...]
    levels: NDArray[np.int64]  # of each category; behind all others: unknown
    own: NDArray[np.int64]

    @classmethod
    def among(cls, schema: Schema, codes: NDArray[Any], columns: tuple[int, ...]) -> _Categories:
        """Those that occur among these inputs."""
        levels = [_levels(schema.characteristics[c], codes[:, c]) for c in columns]
        return cls._numbered(schema, columns, np.stack(levels, axis=1))

    def of(self, columns: tuple[int, ...]) -> _Categories:
        """The categories of some of the columns, among these."""
        places = [self.columns.index(column) for column in columns]
        return self._numbered(self.schema, columns, self.levels[:, places])

    @classmethod
    def _numbered(
        cls, schema: Schema, columns: tuple[int, ...], levels: NDArray[np.int64]
    ) -> _Categories:
        """In the order of their levels."""
        sizes = tuple(schema.characteristics[column].filled_levels + 1 for column in columns)
        few = math.prod(sizes) < 2**62
        keys = np.ravel_multi_index(tuple(levels.T), sizes) if few else None
        first, own = numbered(InputKeys.among(levels).of(levels) if keys is None else keys)
        return cls(schema, columns, levels[first], own)

    @property
    def size(self) -> int:
        return len(self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names[column] for column in self.columns)

    def counted(self, counted: Counted, sums: Floats, alpha: float | None) -> CategoryTable:
        """The table of an output; without `alpha` its rates have no intervals."""
        return CategoryTable(self.names, tuple(_with_ratios([*self._rates(counted, sums, alpha)])))

    def total(self, figures: Floats) -> Floats:
        """The sums of each category, a column for each figure."""
        return np.stack([summed(self.own, each, self.size) for each in figures.T], axis=1)

    def has_rate(self, total: Floats) -> Flags:
        """Which categories have a rate: those that are known, and in which there is a decision."""
        unknown = [self.schema.characteristics[column].filled_levels for column in self.columns]
        known = np.asarray((self.levels < np.array(unknown)).all(axis=1))
        return known & (total[:, INPUTS] > total[:, UNDECIDED])

    def labels(self) -> Iterator[dict[str, Value]]:
        """What the categories are called."""
        each = [self.schema.characteristics[column] for column in self.columns]
        for levels in self.levels.tolist():
            yield {one.name: _label(one, level) for one, level in zip(each, levels, strict=True)}

    def _rates(self, counted: Counted, sums: Floats, alpha: float | None) -> Iterator[Category]:
        total, people = self.total(sums), _people(counted, self.columns)
        rated, whole = self.has_rate(total).tolist(), float(sums[:, WEIGHT].sum())
        for values, row, has_rate in zip(self.labels(), total.tolist(), rated, strict=True):
            inputs, favourable, undecided = (round(row[n]) for n in range(3))
            decided = inputs - undecided
            there = None if people is None else people.get(tuple(values.values()), 0)
            is_judged = counted.judges_all or min(decided, there or decided) >= FEW
            has_ends = has_rate and alpha is not None
            ends = sampled_rate(favourable, decided, alpha or 0.0) if has_ends else None
            yield Category(
                values=values,
                inputs=inputs,
                favourable=favourable,
                undecided=undecided,
                share=rounded(row[WEIGHT] / whole),
                rate=rounded(row[WEIGHT_FAVOURABLE] / row[WEIGHT_DECIDED]) if has_rate else None,
                low=None if ends is None else ends.low,
                high=None if ends is None else ends.high,
                few=not is_judged,
                people=there,
            )


def _with_ratios(categories: Sequence[Category]) -> Iterator[Category]:
    """The categories with their ratios to the highest rate of those that can be judged.

    Where the ends of rates hold together, so do those of ratios, whichever rate is the highest.
    """
    judged = [each for each in categories if each.rate is not None and not each.few]
    best = max((each.rate or 0.0 for each in judged), default=0.0)
    highest = max((each.high or 0.0 for each in judged), default=0.0)
    surely = max((each.low or 0.0 for each in judged), default=0.0)
    for each in categories:
        if each.rate is None or each.few or not best:
            yield each
            continue
        low = None if each.low is None else each.low / highest
        high = None if each.high is None else min(each.high / surely, 1.0) if surely else 1.0
        yield replace(each, ratio=rounded(each.rate / best), ratio_low=low, ratio_high=high)


def _people(counted: Counted, columns: tuple[int, ...]) -> dict[tuple[Value, ...], int] | None:
    """How many people are in each category, where inputs were drawn from them, or are they."""
    if counted.population == "inputs":
        return None
    whose = counted.people or counted  # both have codes and heads
    table = _Categories.among(counted.schema, whose.codes, columns)
    heads = table.total(whose.heads[:, None])[:, 0]
    names = (tuple(each.values()) for each in table.labels())
    return dict(zip(names, map(int, heads), strict=True))


def _levels(characteristic: Characteristic, codes: NDArray[Any]) -> NDArray[np.int64]:
    """The level of each code; no value, and one that is of no level, are behind all others."""
    levels, unknown = characteristic.level_of(codes), characteristic.filled_levels
    return np.where((levels == OWN) | (levels > unknown), unknown, levels).astype(np.int64)


def _label(characteristic: Characteristic, level: int) -> Value:
    unknown = level == characteristic.filled_levels
    return None if unknown else characteristic.level_label(level)


def _favourable(reading: Reading, cells: Cells, weights: Floats) -> Flags:
    """Which answers are favourable; of means, which are above the median of all."""
    if reading.statistic == "rate":
        return reading.labels.is_favourable(cells) & (cells >= 0)
    good = np.zeros(len(cells), dtype=bool)
    known = cells >= 0
    assert isinstance(reading.labels, NumberPart)
    if known.any():
        good[known] = above_median(reading.labels.shares(cells)[known], weights[known])
    return good
