"""Which simple condition on one characteristic tells flips from the rest best?

How well a condition tells them is F·KL(c ‖ s): F flips, of which a share c meets it, as a share s
of all rows does. If flips had nothing to do with it, more than ln(1/p) would be seen with a chance
of at most p (Chernoff's bound). Many conditions are looked at, so each is charged the logarithm of
how many of its kind there are; what is left is evidence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from themis.inputs.characteristics import Characteristic, Value
from themis.inputs.schema import Schema

LISTED = 6  # values that a condition lists at most
TABLE = 4_096  # up to this many values rows are counted by their codes

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
            return math.log(2 * LISTED * math.comb(size, len(self.values)))
        if self.low > 0 and self.high < size - 1:
            return math.log(3 * size * (size + 1) / 2)
        return math.log(3 * size)

    def text(self, schema: Schema) -> str:
        """The condition as it is read: `age ≥ 40`, `education is one of HS, BA`."""
        characteristic = schema.characteristics[self.column]
        name = characteristic.name
        if self.values:
            shown = [_written(characteristic.value(code)) for code in self.values]
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
            return cls(number, characteristic, np.arange(characteristic.size), codes[:, number])
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
        if self.characteristic.ordered:
            yield from self._ranges(inside, share)
        else:
            yield from self._lists(inside, share)

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
        end = last == len(self.values) - 1
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
    return value if isinstance(value, str) else json.dumps(value)


def meets_all(conditions: Sequence[Condition], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which inputs meet all of these conditions."""
    inside = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        inside &= condition.holds(codes)
    return inside
