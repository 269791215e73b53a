"""Where flips may be: conditions that tell rows that flip from others, to be checked on other rows.

How well a simple condition on one characteristic tells them is F·KL(c ‖ s): F flips, of which a
share c meets it, as a share s of all rows does. If flips had nothing to do with it, more than
ln(1/p) would be seen with a chance of at most p (Chernoff's bound). Many conditions are looked at,
so each is charged the logarithm of how many of its kind there are; what is left is evidence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Value
from themis.inputs.schema import Schema
from themis.statistics.intervals import Flags, Floats
from themis.statistics.special import xlogy

LISTED = 6  # values that a condition lists at most
LONGEST = 3  # conditions of a region

Places = NDArray[np.int64]

_LEAST = 1e-300  # in place of 0, so that a ratio exists


def evidence(inside: Any, share: Any) -> Floats:
    """KL(c ‖ s): what a flip tells if a share `inside` of them lies where a `share` of rows does.

    0 where flips are not more frequent inside than outside.
    """
    share = np.maximum(share, _LEAST)
    rest = np.maximum(1.0 - inside, 0.0)
    known = xlogy(inside, inside / share) + xlogy(rest, rest / np.maximum(1.0 - share, _LEAST))
    return np.where(inside > share, known, 0.0)


# What a region is described by -----------------------------------------------------------------
@dataclass(frozen=True)
class Condition:
    """The codes that a column may have: from `low` to `high`, or some values."""

    column: int
    low: int = 0
    high: int = 0
    values: tuple[int, ...] = ()

    def holds(self, codes: NDArray[Any]) -> Flags:
        """Which inputs meet it."""
        own = codes[:, self.column]
        if not self.values:
            return np.asarray((own >= self.low) & (own <= self.high))
        return np.isin(own, self.values)

    def text(self, schema: Schema) -> str:
        """The condition as it is read: `age ≥ 40`, `education is one of HS, BA`."""
        characteristic = schema.characteristics[self.column]
        name = characteristic.name
        if self.values:
            shown = [_written(characteristic.value(code)) for code in self.values]
            if self.values == (characteristic.missing_code,):
                return f"{name} is missing"
            return (
                f"{name} = {shown[0]}"
                if len(shown) == 1
                else f"{name} is one of {', '.join(shown)}"
            )
        low, high = (_written(characteristic.value(code)) for code in (self.low, self.high))
        if self.low == self.high:
            return f"{name} = {low}"
        if self.low == 0:
            return f"{name} ≤ {high}"
        is_last = self.high == characteristic.size - 1
        return f"{name} ≥ {low}" if is_last else f"{low} ≤ {name} ≤ {high}"


def meets_all(conditions: Sequence[Condition], codes: NDArray[Any]) -> Flags:
    """Which inputs meet all of these conditions."""
    inside = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        inside &= condition.holds(codes)
    return inside


def _written(value: Value) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


# What tells flips from other rows --------------------------------------------------------------
class Suggestion(NamedTuple):
    """Conditions, and what is left of their evidence when their number is charged for."""

    conditions: tuple[Condition, ...] = ()
    charge: float = 0.0
    worth: float = 0.0
    lift: float = 1.0


class _Proposal(NamedTuple):
    """A condition, and the shares of all flips and of all rows that meet it (and those before)."""

    condition: Condition
    inside: float
    share: float
    charge: float  # the logarithm of the number of such conditions


def suggest_regions(
    codes: NDArray[Any],
    flips: Flags,
    weights: Floats | None,
    schema: Schema,
    against: Sequence[int],
) -> list[Suggestion]:
    """Regions one after the other: each explains flips that those before it left."""
    numbers = [number for number in schema.free if number not in against]
    columns = [_Column.of(schema, number, codes) for number in numbers]
    weight = np.ones(len(codes)) if weights is None else weights
    left = np.ones(len(codes), dtype=bool)
    found: list[Suggestion] = []
    while columns and len(found) < 3 and _worth_looking(flips, left):
        best = _Rows(codes, flips & left, weight * left).best(columns)
        if not best.conditions:
            break
        found.append(best)
        left &= ~meets_all(best.conditions, codes)
    return found


def _worth_looking(flips: Flags, left: Flags) -> bool:
    total, rest = int(flips.sum()), int((flips & left).sum())
    # Fewer flips that are not covered yet are not worth a region.
    return rest >= 5 and 5 * rest >= total and not flips[left].all()  # a fifth or more


class _Rows:
    """The rows that regions before left, and what each of them counts."""

    def __init__(self, codes: NDArray[Any], flips: Flags, weights: Floats) -> None:
        self._codes, self._count = codes, int(flips.sum())
        self._flips = weights * flips / (weights * flips).sum()
        self._weights = weights / weights.sum()

    def best(self, columns: Sequence[_Column]) -> Suggestion:
        """The conditions with most evidence, grown one by one."""
        best = start = Suggestion()
        for _ in range(min(LONGEST, len(columns))):
            grown = sorted(self._grown(start, columns), key=lambda each: -each.worth)
            # Flips are twice as frequent within; a check asks for less.
            dense = (each for each in grown if each.lift >= 2.0)
            best = max(best, next(dense, best), key=lambda each: each.worth)
            if not grown or grown[0].worth <= start.worth:
                break
            start = grown[0]
        return best

    def _grown(self, start: Suggestion, columns: Sequence[_Column]) -> Iterator[Suggestion]:
        """The suggestion with one more condition."""
        rows = np.flatnonzero(meets_all(start.conditions, self._codes) & (self._weights > 0))
        flips, weights = self._flips[rows], self._weights[rows]
        taken, number = {each.column for each in start.conditions}, len(columns)
        spent = start.charge - _count_charge(number, len(taken))
        spent += _count_charge(number, len(taken) + 1)
        for column in (each for each in columns if each.number not in taken):
            for each in column.proposals(rows, flips, weights):
                charge = spent + each.charge
                worth = self._count * float(evidence(each.inside, each.share)) - charge
                lift = each.inside / max(each.share, _LEAST)
                yield Suggestion((*start.conditions, each.condition), charge, worth, lift)


def _count_charge(columns: int, length: int) -> float:
    """What the choice of so many columns is charged."""
    return math.log(LONGEST * max(math.comb(columns, length), 1)) if length else 0.0


@dataclass(frozen=True)
class _Column:
    """One characteristic of all rows."""

    number: int
    characteristic: Characteristic
    values: NDArray[Any]  # the codes that occur, rising
    places: Places  # of each row among them

    @classmethod
    def of(cls, schema: Schema, number: int, codes: NDArray[Any]) -> _Column:
        values, places = np.unique(codes[:, number], return_inverse=True)
        return cls(number, schema.characteristics[number], values, places)

    def proposals(self, rows: Places, flips: Floats, weights: Floats) -> Iterator[_Proposal]:
        """Conditions that tell the flips among these rows best.

        `flips` and `weights` hold what each of these rows counts, each with a sum of at most 1.
        """
        places, count = self.places[rows], len(self.values)
        inside = np.bincount(places, flips, count).astype(np.float64)
        share = np.bincount(places, weights, count).astype(np.float64)
        if self.characteristic.ordered:
            yield from self._ranges(inside, share)
        else:
            yield from self._lists(inside, share)

    def _ranges(self, inside: Floats, share: Floats) -> Iterator[_Proposal]:
        """The best "at least", the best "at most", each with the best other end; what is missing.

        The outermost values that occur stand for the whole rest.
        """
        size = self.characteristic.size
        end = int(np.searchsorted(self.values, size))  # behind the numbers of its grid
        c, s = _sums(inside[:end]), _sums(share[:end])

        def best(low: Any, high: Any) -> int:
            """The middle of those with most evidence, which no row tells apart."""
            known = evidence(np.maximum(c[high + 1] - c[low], 0.0), s[high + 1] - s[low])
            known = np.where(low > high, -1.0, known)
            top = np.flatnonzero(known >= known.max() - 1e-12)  # evidence that differs by rounding
            return int(top[len(top) // 2])

        if end:
            here, last = np.arange(end), end - 1
            low, high = best(here, last), best(0, here)
            for first, stop in ((low, last), (0, high), (low, best(low, here)),
                                (best(here, high), high)):  # fmt: skip
                at_start, at_end = first == 0, stop == last
                values = int(self.values[first]), int(self.values[stop])
                condition = Condition(
                    self.number, 0 if at_start else values[0], size - 1 if at_end else values[1]
                )
                ways = 3.0 * size if at_start or at_end else 3.0 * size * (size + 1) / 2
                counted = float(c[stop + 1] - c[first]), float(s[stop + 1] - s[first])
                yield _Proposal(condition, *counted, math.log(ways))
        if self.characteristic.missing is not None and size in self.values[end : end + 1]:
            yield self._listing([size], float(inside[end]), float(share[end]))

    def _lists(self, inside: Floats, share: Floats) -> Iterator[_Proposal]:
        """The values with most flips for their share, one to six.

        What only rows have is not listed: it would name somebody.
        """
        met = np.flatnonzero((self.values < self.characteristic.first_extra) & (share > 0))
        if not len(met):
            return
        order = met[np.argsort(-inside[met] / share[met], kind="stable")][:LISTED]
        c, s = _sums(inside[order]), _sums(share[order])
        listed = int(evidence(c[1:], s[1:]).argmax()) + 1
        yield self._listing(
            self.values[order[:listed]].tolist(), float(c[listed]), float(s[listed])
        )

    def _listing(self, values: list[int], inside: float, share: float) -> _Proposal:
        """These values; charged for how many lists of so many there are."""
        ways = 2 * LISTED * max(math.comb(self.characteristic.code_count, len(values)), 1)
        condition = Condition(self.number, values=tuple(sorted(values)))
        return _Proposal(condition, inside, share, math.log(ways))


def _sums(counted: Floats) -> Floats:
    """What the first n of them count together, from n = 0."""
    return np.concatenate([[0.0], np.cumsum(counted)])
