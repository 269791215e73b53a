"""Suggestions of regions: a few conditions on the context that many flips meet, and few other rows.

How well a simple condition on one characteristic tells them is F·KL(c ‖ s): F flips, of which a
share c meets it, as a share s of all rows does. If flips had nothing to do with it, more than
ln(1/p) would be seen with a chance of at most p (Chernoff's bound). Many conditions are looked at,
so each is charged the logarithm of how many of its kind there are; what is left is evidence.

A few such conditions together are a suggestion, to be checked on other rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Value
from themis.inputs.schema import Schema
from themis.statistics.special import xlogy

LISTED = 6  # values that a condition lists at most
TABLE = 4_096  # up to this many values rows are counted by their codes
FEWEST_UNCOVERED = 5  # flips that are not covered yet
REGIONS = 3
LONGEST = 3  # conditions of a region
BEAM = 2  # ways to go on that are kept while a region grows
ENOUGH = 0.8  # of the flips: no further region is looked for
SUGGESTED_LIFT = 2.0  # flips are so many times as frequent within; a check asks for less

Floats = NDArray[np.float64]

_LEAST = 1e-300  # in place of 0, so that a ratio exists


@dataclass(frozen=True)
class Condition:
    """The codes that a column may have: from `low` to `high`, or some values, or all but some."""

    column: int
    low: int = 0
    high: int = 0
    values: tuple[int, ...] = ()
    excluded: bool = False  # the values are those that it may not have

    def holds(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which inputs meet it."""
        own = codes[:, self.column]
        if not self.values:
            return np.asarray((own >= self.low) & (own <= self.high))
        return np.isin(own, self.values, invert=self.excluded)

    def charge(self, schema: Schema) -> float:
        """The logarithm of the number of such conditions on this column."""
        size = schema.characteristics[self.column].size
        if self.values:
            count = schema.characteristics[self.column].code_count
            return math.log(2 * LISTED * math.comb(count, len(self.values)))
        if self.low > 0 and self.high < size - 1:
            return math.log(3 * size * (size + 1) / 2)
        return math.log(3 * size)

    def text(self, schema: Schema) -> str:
        """The condition as it is read: `age ≥ 40`, `education is one of HS, BA`."""
        characteristic = schema.characteristics[self.column]
        name = characteristic.name
        if self.values:
            shown = [_written(characteristic.value(code)) for code in self.values]
            if self.values == (characteristic.missing_code,):
                return f"{name} is {'not ' if self.excluded else ''}missing"
            if len(shown) == 1:
                return f"{name} {'≠' if self.excluded else '='} {shown[0]}"
            return f"{name} is {'none' if self.excluded else 'one'} of {', '.join(shown)}"
        low, high = (_written(characteristic.value(code)) for code in (self.low, self.high))
        if self.low == self.high:
            return f"{name} = {low}"
        if self.low == 0:
            return f"{name} ≤ {high}"
        return (
            f"{name} ≥ {low}"
            if self.high == characteristic.size - 1
            else f"{low} ≤ {name} ≤ {high}"
        )


def evidence(flips: float, inside: float, share: float) -> float:
    """F·KL(c ‖ s) of so many flips, a share `inside` of which lies where a `share` of rows does.

    0 where flips are not more frequent inside than outside.
    """
    if inside <= share:
        return 0.0
    outside = (1 - inside) * math.log((1 - inside) / (1 - share)) if inside < 1 else 0.0
    return flips * (inside * math.log(inside / share) + outside) if share > 0 else math.inf


def _all_evidence(inside: Floats, share: Floats) -> Floats:
    """The same of one flip, for many conditions at once."""
    share = np.maximum(share, _LEAST)
    rest = np.maximum(1.0 - inside, 0.0)
    known = xlogy(inside, inside / share) + xlogy(rest, rest / np.maximum(1.0 - share, _LEAST))
    return np.where(inside > share, known, 0.0)


@dataclass(frozen=True)
class Proposal:
    """A condition, and the shares of all flips and of all rows that meet it (and those before)."""

    condition: Condition
    inside: float
    share: float


@dataclass(frozen=True)
class Column:
    """One characteristic of all rows, prepared for counting."""

    number: int
    characteristic: Characteristic
    values: NDArray[Any]  # codes that are counted, rising
    places: NDArray[Any]  # of each row among them

    @classmethod
    def of(cls, schema: Schema, number: int, codes: NDArray[Any]) -> Column:
        """From the codes of all rows."""
        characteristic = schema.characteristics[number]
        if characteristic.size <= TABLE:
            every = np.arange(characteristic.code_count)
            return cls(number, characteristic, every, codes[:, number])
        values, places = np.unique(codes[:, number], return_inverse=True)
        return cls(number, characteristic, values, places)

    def proposals(
        self, rows: NDArray[np.int64], flips: Floats, weights: Floats
    ) -> Iterator[Proposal]:
        """Conditions that tell the flips among these rows best.

        `flips` and `weights` hold what each of these rows counts, each with a sum of at most 1.
        """
        size, places = len(self.values), self.places[rows]
        inside = np.bincount(places, flips, minlength=size).astype(float)
        share = np.bincount(places, weights, minlength=size).astype(float)
        if not self.characteristic.ordered:
            yield from self._lists(inside, share)
            return
        there = int(np.searchsorted(self.values, self.characteristic.missing_code))
        if there:
            yield from self._ranges(inside[:there], share[:there])
        if (
            there < size
            and self.values[there] == self.characteristic.missing_code
            and (self.characteristic.missing is not None)
        ):
            missing = (self.characteristic.missing_code,)
            counted = float(inside[there]), float(share[there])
            yield Proposal(Condition(self.number, values=missing), *counted)
            others = float(inside[:there].sum()), float(share[:there].sum())
            yield Proposal(Condition(self.number, values=missing, excluded=True), *others)

    def _ranges(self, inside: Floats, share: Floats) -> Iterator[Proposal]:
        """The best "at least", the best "at most", and each with the best other end."""
        c, s = np.zeros(len(inside) + 1), np.zeros(len(share) + 1)
        np.cumsum(inside, out=c[1:])
        np.cumsum(share, out=s[1:])
        low = _best_place(c[-1] - c[:-1], s[-1] - s[:-1])
        high = _best_place(c[1:], s[1:])
        above = low + _best_place(c[low + 1 :] - c[low], s[low + 1 :] - s[low])
        below = _best_place(c[high + 1] - c[: high + 1], s[high + 1] - s[: high + 1])
        for first, last in ((low, len(inside) - 1), (0, high), (low, above), (below, high)):
            counted = float(c[last + 1] - c[first]), float(s[last + 1] - s[first])
            yield Proposal(self._range(first, last), *counted)

    def _range(self, first: int, last: int) -> Condition:
        """From one counted value to another; the outermost ones stand for the whole rest."""
        low = 0 if first == 0 else int(self.values[first])
        end = last == np.searchsorted(self.values, self.characteristic.missing_code) - 1
        high = self.characteristic.size - 1 if end else int(self.values[last])
        return Condition(self.number, low, high)

    def _lists(self, inside: Floats, share: Floats) -> Iterator[Proposal]:
        """The values with most flips for their share, one to six; or all but those with fewest."""
        occurs = np.flatnonzero(share > 0)
        order = occurs[np.argsort(-inside[occurs] / share[occurs], kind="stable")]
        c, s = np.cumsum(inside[order]), np.cumsum(share[order])
        known = _all_evidence(c, s)
        chosen = int(np.argmax(known[:LISTED])) + 1
        listed = Condition(self.number, values=self._codes(order[:chosen]))
        yield Proposal(listed, float(c[chosen - 1]), float(s[chosen - 1]))
        last = len(order) - 1
        first = max(last - LISTED, 0)
        kept = first + int(np.argmax(known[first:last])) + 1 if last else 0
        if kept > chosen:
            others = Condition(self.number, values=self._codes(order[kept:]), excluded=True)
            yield Proposal(others, float(c[kept - 1]), float(s[kept - 1]))

    def _codes(self, places: NDArray[Any]) -> tuple[int, ...]:
        return tuple(sorted(self.values[places].tolist()))


def _best_place(inside: Floats, share: Floats) -> int:
    """Where the evidence is largest; the middle one where no row tells several places apart."""
    known = _all_evidence(inside, share)
    places = np.flatnonzero(known >= known.max() - 1e-12)
    return int(places[len(places) // 2])


def _written(value: Value) -> str:
    if value is None:
        return "missing"
    return value if isinstance(value, str) else json.dumps(value)


def meets_all(conditions: Sequence[Condition], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which inputs meet all of these conditions."""
    inside = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        inside &= condition.holds(codes)
    return inside


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
    columns = [Column.of(schema, number, codes) for number in schema.free if number not in against]
    weight = np.ones(len(codes)) if weights is None else weights
    left = np.ones(len(codes), dtype=bool)
    found: list[Suggestion] = []
    while columns and len(found) < REGIONS and _worth_looking(flips, left):
        best = _left_rows(codes, flips, weight, left, columns, schema).best()
        if not best.conditions:
            break
        found.append(best)
        left &= ~meets_all(best.conditions, codes)
    return found


def _worth_looking(flips: NDArray[np.bool_], left: NDArray[np.bool_]) -> bool:
    total, rest = int(flips.sum()), int((flips & left).sum())
    return rest >= FEWEST_UNCOVERED and rest > (1 - ENOUGH) * total and not flips[left].all()


def _left_rows(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weight: Floats,
    left: NDArray[np.bool_],
    columns: Sequence[Column],
    schema: Schema,
) -> _Rows:
    flip_weights, row_weights = weight * (flips & left), weight * left
    return _Rows(
        codes,
        int((flips & left).sum()),
        flip_weights / flip_weights.sum(),
        row_weights / row_weights.sum(),
        columns,
        schema,
    )


@dataclass
class _Rows:
    """The rows that regions before left, and what each of them counts."""

    codes: NDArray[Any]
    count: int  # of flips
    flips: Floats  # their sum is 1, as is that of the weights
    weights: Floats
    columns: Sequence[Column]
    schema: Schema

    def best(self) -> Suggestion:
        """The conditions with most evidence, grown one by one, the best few ways at a time."""
        best, top, beam = Suggestion(), 0.0, [Suggestion()]
        for _ in range(LONGEST):
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
        """The suggestion with one more condition, on each other column."""
        rows = np.flatnonzero(meets_all(start.conditions, self.codes) & (self.weights > 0))
        flips, weights = self.flips[rows], self.weights[rows]
        taken = {each.column for each in start.conditions}
        for column in self.columns:
            if column.number not in taken:
                for proposal in column.proposals(rows, flips, weights):
                    yield self._valued((*start.conditions, proposal.condition), proposal)

    def _valued(self, conditions: tuple[Condition, ...], found: Proposal) -> Suggestion:
        """The conditions with their worth: the evidence for them, less what they cost."""
        kinds = math.log(LONGEST * math.comb(len(self.columns), len(conditions)))
        charge = kinds + sum(each.charge(self.schema) for each in conditions)
        worth = evidence(self.count, found.inside, found.share) - charge
        return Suggestion(conditions, charge, worth, found.inside / max(found.share, 1e-300))
