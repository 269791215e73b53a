"""Where flips may be: conditions that tell rows that flip from others, to be checked on other rows.

How well a simple condition on one characteristic tells them is F·KL(c ‖ s): F flips, of which a
share c meets it, as a share s of all rows does. If flips had nothing to do with it, more than
ln(1/p) would be seen with a chance of at most p (Chernoff's bound). Many conditions are looked at,
so each is charged the logarithm of how many of its kind there are; what is left is evidence.

A few such conditions together are a suggestion. The values of all columns are counted at once,
those of one column behind those of the other: a step takes as many calls for 100 as for one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.schema import Schema
from themis.scores.explanations.conditions import Condition, meets_all
from themis.statistics.special import xlogy

LISTED = 6  # values that a condition lists at most
TABLE = 4_096  # up to this many values rows are counted by their codes
COUNTED = 2**18  # cells that are counted at once

FEWEST_UNCOVERED = 5  # flips that are not covered yet
REGIONS = 3
LONGEST = 3  # conditions of a region
BEAM = 2  # ways to go on that are kept while a region grows
ENOUGH = 0.8  # of the flips: no further region is looked for
SURELY = 4 * BEAM  # proposals of which BEAM differ: a range is proposed up to four times
SUGGESTED_LIFT = 2.0  # flips are so many times as frequent within; a check asks for less

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_LEAST = 1e-300  # in place of 0, so that a ratio exists
_SAME = 1e-12  # evidence that differs by rounding


def evidence(flips: float, inside: float, share: float) -> float:
    """F·KL(c ‖ s) of so many flips, a share `inside` of which lies where a `share` of rows does.

    0 where flips are not more frequent inside than outside.
    """
    return flips * float(_evidence(np.float64(inside), np.float64(share)))


def _evidence(inside: Any, share: Any) -> Floats:
    """The same of one flip, for many conditions at once."""
    share = np.maximum(share, _LEAST)
    rest = np.maximum(1.0 - inside, 0.0)
    known = xlogy(inside, inside / share) + xlogy(rest, rest / np.maximum(1.0 - share, _LEAST))
    return np.where(inside > share, known, 0.0)


@dataclass(frozen=True)
class Suggestion:
    """Conditions, and what is left of their evidence when their number is charged for."""

    conditions: tuple[Condition, ...] = ()
    charge: float = 0.0
    worth: float = 0.0
    lift: float = 1.0


def suggest_regions(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weights: Floats | None,
    schema: Schema,
    against: Sequence[int],
) -> list[Suggestion]:
    """Regions one after the other: each explains flips that those before it left."""
    columns = [number for number in schema.free if number not in against]
    parts = list(_parts(schema, columns, codes))
    weight = np.ones(len(codes)) if weights is None else weights
    left = np.ones(len(codes), dtype=bool)
    found: list[Suggestion] = []
    while columns and len(found) < REGIONS and _worth_looking(flips, left):
        flipping, row_weights = flips & left, weight * left
        flip_weights = weight * flipping
        shares = flip_weights / flip_weights.sum(), row_weights / row_weights.sum()
        best = _Rows(codes, int(flipping.sum()), *shares, parts, len(columns)).best()
        if not best.conditions:
            break
        found.append(best)
        left &= ~meets_all(best.conditions, codes)
    return found


def _worth_looking(flips: NDArray[np.bool_], left: NDArray[np.bool_]) -> bool:
    total, rest = int(flips.sum()), int((flips & left).sum())
    return rest >= FEWEST_UNCOVERED and rest > (1 - ENOUGH) * total and not flips[left].all()


@dataclass
class _Rows:
    """The rows that regions before left, and what each of them counts."""

    codes: NDArray[Any]
    count: int  # of flips
    flips: Floats  # their sum is 1, as is that of the weights
    weights: Floats
    parts: Sequence[_Columns]
    columns: int  # in all

    def best(self) -> Suggestion:
        """The conditions with most evidence, grown one by one, the best few ways at a time."""
        best, top, beam = Suggestion(), 0.0, [Suggestion()]
        for _ in range(min(LONGEST, self.columns)):
            grown = {frozenset(g.conditions): g for each in beam for g in self._grown(each)}
            ranked = sorted(grown.values(), key=lambda each: -each.worth)
            dense = (each for each in ranked if each.lift >= SUGGESTED_LIFT)
            best = max(best, next(dense, best), key=lambda each: each.worth)
            beam = [each for each in ranked[:BEAM] if each.worth > top]
            if not beam:
                break
            top = beam[0].worth
        return best

    def _grown(self, start: Suggestion) -> Iterator[Suggestion]:
        """The suggestion with one more condition: the best few, and the best dense one."""
        rows = np.flatnonzero(meets_all(start.conditions, self.codes) & (self.weights > 0))
        taken = [each.column for each in start.conditions]
        spent = start.charge - self._kinds(len(taken)) + self._kinds(len(taken) + 1)
        for part in self.parts:
            for proposed in part.proposals(rows, self.flips[rows], self.weights[rows]):
                charge = spent + proposed.charge
                worth = self.count * _evidence(proposed.inside, proposed.share) - charge
                for column in taken:
                    worth[proposed.columns == column] = -np.inf
                lift = proposed.inside / np.maximum(proposed.share, _LEAST)
                for each in _candidates(worth, lift):
                    conditions = (*start.conditions, proposed.condition(each))
                    counted = float(charge[each]), float(worth[each]), float(lift[each])
                    yield Suggestion(conditions, *counted)

    def _kinds(self, length: int) -> float:
        """What the choice of so many columns is charged."""
        return math.log(LONGEST * math.comb(self.columns, length)) if length else 0.0


def _candidates(worth: Floats, lift: Floats) -> Iterator[int]:
    """The best few, with what is as good as they are, and the best of those that are dense."""
    least = np.partition(worth, -SURELY)[-SURELY] if len(worth) > SURELY else -np.inf
    yield from np.flatnonzero((worth >= least) & (worth > -np.inf)).tolist()
    dense = np.where(lift >= SUGGESTED_LIFT, worth, -np.inf)
    best = int(np.argmax(dense))
    if dense[best] > -np.inf:
        yield best


@dataclass(frozen=True)
class Proposals:
    """Conditions, and the shares of all flips and of all rows that meet each (and those before)."""

    columns: Places
    inside: Floats
    share: Floats
    charge: Floats  # the logarithm of the number of such conditions
    condition: Callable[[int], Condition]


# Counting columns -----------------------------------------------------------------------------
def _parts(schema: Schema, columns: Sequence[int], codes: NDArray[Any]) -> Iterator[_Columns]:
    """All columns, as many at once as may be counted together."""
    for kind, ordered in ((_Ranges, True), (_Lists, False)):
        chosen: list[int] = []
        size = 0
        for number in columns:
            each = schema.characteristics[number]
            if each.ordered == ordered:
                own = len(codes) + min(each.code_count, max(len(codes), TABLE))
                if chosen and size + own > COUNTED:
                    yield kind(schema, chosen, codes)
                    chosen, size = [], 0
                chosen, size = [*chosen, number], size + own
        if chosen:
            yield kind(schema, chosen, codes)


class _Columns(ABC):
    """Some characteristics of all rows, whose values are counted one column behind the other."""

    def __init__(self, schema: Schema, numbers: Sequence[int], codes: NDArray[Any]) -> None:
        self.characteristics = [schema.characteristics[number] for number in numbers]
        self.numbers = np.array(numbers)
        self._codes = codes
        self._narrowed: dict[int, NDArray[Any]] = {}  # places of rows among few of many values
        values = []
        for place, each in enumerate(self.characteristics):
            if each.size <= TABLE:
                values.append(np.arange(each.code_count))
            else:
                seen, self._narrowed[place] = np.unique(
                    codes[:, numbers[place]], return_inverse=True
                )
                values.append(seen)
        self.values = np.concatenate(values)  # codes that are counted, rising for each column
        self.sizes = np.array([len(each) for each in values])
        self.starts = np.cumsum(self.sizes) - self.sizes

    @abstractmethod
    def proposals(self, rows: Places, flips: Floats, weights: Floats) -> Iterator[Proposals]:
        """Conditions that tell the flips among these rows best.

        `flips` and `weights` hold what each of these rows counts, each with a sum of at most 1.
        """

    def counted(self, rows: Places, flips: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """What the rows of each value count."""
        places = self._codes[np.ix_(rows, self.numbers)].T.astype(np.int64)
        for place, own in self._narrowed.items():
            places[place] = own[rows]
        places += self.starts[:, None]
        flat, columns = places.reshape(-1), len(self.numbers)

        def count(amounts: Floats) -> Floats:
            return np.bincount(flat, np.tile(amounts, columns), len(self.values)).astype(float)

        return count(flips), count(weights)


class _Ranges(_Columns):
    """Numbers: conditions are "at least", "at most" and "from … to", and whether it is missing."""

    @cached_property
    def _on_grid(self) -> Segments:
        """The values of each column that are numbers of its grid."""
        sizes = np.array([each.size for each in self.characteristics])
        return Segments.of(self.values < np.repeat(sizes, self.sizes), self.sizes)

    @cached_property
    def _missing(self) -> Places:
        """Where "missing" is counted."""
        codes = [-1 if each.missing is None else each.size for each in self.characteristics]
        return np.flatnonzero(self.values == np.repeat(codes, self.sizes))

    @cached_property
    def _charges(self) -> tuple[Floats, Floats]:
        """What a condition with one end, and with two, is charged on each column."""
        sizes = np.array([float(each.size) for each in self.characteristics])
        return np.log(3 * sizes), np.log(3 * sizes * (sizes + 1) / 2)

    def proposals(self, rows: Places, flips: Floats, weights: Floats) -> Iterator[Proposals]:
        inside, share = self.counted(rows, flips, weights)
        if len(self._on_grid.columns):
            yield self._best_ranges(inside[self._on_grid.places], share[self._on_grid.places])
        if len(self._missing):
            yield self._best_missing(inside, share)

    def _best_ranges(self, inside: Floats, share: Floats) -> Proposals:
        """The best "at least", the best "at most", and each with the best other end."""
        grid, (c, s) = self._on_grid, (_sums(inside), _sums(share))
        first, end, own = grid.starts, grid.ends, grid.owners
        here = np.arange(len(own))

        def best(start: Places, stop: Places) -> list[Places]:
            """Of each column the places with most evidence: up to the stop, and from the start."""
            low, high = np.concatenate([here, start[own]]), np.concatenate([stop[own], here])
            known = _evidence(np.maximum(c[high + 1] - c[low], 0.0), s[high + 1] - s[low])
            known[high < low] = -1.0
            return [grid.middle_best(each) for each in np.split(known, 2)]

        low, high = best(first, end - 1)
        below, above = best(low, high)
        lows = np.concatenate([low, first, low, below])
        highs = np.concatenate([end - 1, high, above, high])
        counted = c[highs + 1] - c[lows], s[highs + 1] - s[lows]
        at_start, at_end = lows == np.tile(first, 4), highs == np.tile(end - 1, 4)
        columns = np.tile(grid.columns, 4)
        one_end, two_ends = self._charges
        charge = np.where(at_start | at_end, one_end[columns], two_ends[columns])

        def condition(number: int) -> Condition:
            """The outermost values that were counted stand for the whole rest."""
            size = self.characteristics[columns[number]].size
            low, high = (int(self.values[grid.places[ends[number]]]) for ends in (lows, highs))
            low, high = 0 if at_start[number] else low, size - 1 if at_end[number] else high
            return Condition(int(self.numbers[columns[number]]), low, high)

        return Proposals(self.numbers[columns], *counted, charge, condition)

    def _best_missing(self, inside: Floats, share: Floats) -> Proposals:
        """That it is missing, and that it is not."""
        columns = np.searchsorted(self.starts, self._missing, side="right") - 1
        grid = [
            _sums(each)[self._missing] - _sums(each)[self.starts[columns]]
            for each in (inside, share)
        ]
        charge = [_list_charge(self.characteristics[each].code_count, 1) for each in columns]

        def condition(number: int) -> Condition:
            column, excluded = columns[number % len(columns)], number >= len(columns)
            missing = (self.characteristics[column].missing_code,)
            return Condition(int(self.numbers[column]), values=missing, excluded=excluded)

        return Proposals(
            np.tile(self.numbers[columns], 2),
            np.concatenate([inside[self._missing], grid[0]]),
            np.concatenate([share[self._missing], grid[1]]),
            np.tile(charge, 2),
            condition,
        )


class _Lists(_Columns):
    """Values without an order: conditions list some of them, or all but some."""

    @cached_property
    def _charges(self) -> Floats:
        """What a list of so many values is charged on each column."""
        counts = (each.code_count for each in self.characteristics)
        return np.array([[_list_charge(n, length) for length in range(LISTED + 1)] for n in counts])

    @cached_property
    def _listed(self) -> NDArray[np.bool_]:
        """Which values may be listed; those that only rows have would name somebody."""
        ends = [each.first_extra for each in self.characteristics]
        return np.asarray(self.values < np.repeat(ends, self.sizes))

    def proposals(self, rows: Places, flips: Floats, weights: Floats) -> Iterator[Proposals]:
        """The values with most flips for their share, one to six; or all but those with fewest."""
        inside, share = self.counted(rows, flips, weights)
        met = Segments.of(self._listed & (share > 0), self.sizes)
        if not len(met.columns):
            return
        ratio = inside[met.places] / share[met.places]
        order = met.places[np.lexsort((-ratio, met.owners))]
        c, s = _sums(inside[order]), _sums(share[order])
        first, own = met.starts, met.owners
        known = _evidence(c[1:] - c[first[own]], s[1:] - s[first[own]])
        here, last = np.arange(len(order)), met.ends[own] - 1
        listed = met.first_best(np.where(here < first[own] + LISTED, known, -1.0)) + 1
        kept = met.first_best(np.where((here >= last - LISTED) & (here < last), known, -1.0)) + 1
        others = np.flatnonzero(kept > listed)
        begins = np.concatenate([first, kept[others]])
        ends = np.concatenate([listed, met.ends[others]])
        columns = np.concatenate([met.columns, met.columns[others]])

        def condition(number: int) -> Condition:
            values = self.values[order[begins[number] : ends[number]]]
            excluded = number >= len(first)
            column = int(self.numbers[columns[number]])
            return Condition(column, values=tuple(sorted(values.tolist())), excluded=excluded)

        def meet(counted: Floats, sums: Floats) -> Floats:
            """What those count that meet each condition; all but some: also what no list names."""
            unnamed = np.add.reduceat(np.where(self._listed, 0.0, counted), self.starts)
            rest = sums[kept[others]] - sums[first[others]] + unnamed[met.columns[others]]
            return np.concatenate([sums[listed] - sums[first], rest])

        charge = self._charges[columns, ends - begins]
        numbers = self.numbers[columns]
        yield Proposals(numbers, meet(inside, c), meet(share, s), charge, condition)


@dataclass(frozen=True)
class Segments:
    """Some of the counted values, column by column; columns that have none of them are left out."""

    places: Places  # among all counted values
    columns: Places
    starts: Places  # of each of these columns among the places, …
    ends: Places
    owners: Places  # … and of each place the column's number here

    @classmethod
    def of(cls, chosen: NDArray[np.bool_], sizes: Places) -> Segments:
        """Those that are chosen, of columns of these sizes."""
        places = np.flatnonzero(chosen)
        column = np.repeat(np.arange(len(sizes)), sizes)[places]
        counts = np.bincount(column, minlength=len(sizes))
        columns = np.flatnonzero(counts)
        ends = np.cumsum(counts[columns])
        owners = np.repeat(np.arange(len(columns)), counts[columns])
        return cls(places, columns, ends - counts[columns], ends, owners)

    def first_best(self, known: Floats) -> Places:
        """The first place of each column with most evidence."""
        best, firsts, _ = self._best(known, 0.0)
        return np.asarray(best[firsts])

    def middle_best(self, known: Floats) -> Places:
        """The middle one of those with most evidence, which no row tells apart."""
        best, firsts, counts = self._best(known, _SAME)
        return np.asarray(best[firsts + counts // 2])

    def _best(self, known: Floats, rounding: float) -> tuple[Places, Places, Places]:
        """All places with most evidence; by column the first of them, and how many there are."""
        top = np.maximum.reduceat(known, self.starts)
        best = np.flatnonzero(known >= top[self.owners] - rounding)
        counts = np.bincount(self.owners[best], minlength=len(self.columns))
        return best, np.cumsum(counts) - counts, counts


def _sums(counted: Floats) -> Floats:
    """What the first n of them count together, from n = 0."""
    return np.concatenate([[0.0], np.cumsum(counted)])


def _list_charge(count: int, length: int) -> float:
    """The logarithm of how many lists of so many of so many values there are, or of all others."""
    return math.log(2 * LISTED * max(math.comb(count, length), 1))
