"""Upper ends for the differences of all ordered pairs of groups: the largest, and what is open.

Of few groups all pairs are counted. Of many, the outcomes are kept as bits, and only pairs are
counted that may matter: the numbers are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.statistics.intervals import Flags, Floats, difference_excluded, difference_upper

FEW = 128  # groups of which all pairs are counted
_ROWS_AT_ONCE = 1 << 16  # float32 sums of so many ones are exact, and the copies stay small
_PAIRS_AT_ONCE = 1 << 20
_ONES = np.array([number.bit_count() for number in range(256)], dtype=np.uint8)
_count_ones = getattr(np, "bitwise_count", _ONES.__getitem__)  # since numpy 2

Counts = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Bets:
    """What an upper end takes: the evidence, and the bets that it is averaged over."""

    evidence: float
    fractions: Sequence[float]

    def upper(self, plus: Any, minus: Any, rows: int) -> Floats:
        """The upper ends after so many rows with these counts of +1 and −1; equal ones once."""
        keys = np.asarray(plus, dtype=np.int64) * (rows + 1) + np.asarray(minus, dtype=np.int64)
        distinct, places = np.unique(keys, return_inverse=True)
        return np.asarray(self.solve(distinct, rows)[places].reshape(keys.shape))

    def solve(self, keys: Counts, rows: int) -> Floats:
        """The same of counts given as one number: `plus * (rows + 1) + minus`."""
        plus, minus = keys // (rows + 1), keys % (rows + 1)
        zero = rows - plus - minus
        return difference_upper(plus, zero, minus, self.evidence, fractions=self.fractions)


def pairs_of(groups: int, bets: Bets) -> AllPairs | CandidatePairs:
    """The pairs of so many groups, of which nothing was seen yet."""
    return AllPairs(groups, bets) if groups <= FEW else CandidatePairs(groups, bets)


class PairEnds(ABC):
    """The ends of all ordered pairs of the running groups: `add` rows, then `look`.

    The end of a pair is the least that it had at any look. What `drop` removes keeps its own.
    """

    def __init__(self, groups: int) -> None:
        self._upper = np.where(np.eye(groups, dtype=np.bool_), -1.0, 1.0)
        self._dropped = 0.0

    @abstractmethod
    def add(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Count rows of the running groups: what each is at least, and at most."""

    @abstractmethod
    def _ends(self) -> Floats:
        """The ends that the rows so far give, group by group."""

    @abstractmethod
    def _keep(self, groups: Flags) -> None:
        """Forget what was counted of all other groups."""

    def look(self) -> None:
        """Renew the ends."""
        self._upper = np.minimum(self._upper, self._ends())
        np.fill_diagonal(self._upper, -1.0)

    @property
    def high(self) -> float:
        """The largest end, also of groups that were dropped, and at least 0."""
        return float(max(self._upper.max(initial=0.0), self._dropped))

    def open_groups(self, limit: float) -> Flags:
        """Which running groups are in a pair whose end is above the limit."""
        above = self._upper > limit
        return np.asarray(above.any(axis=0) | above.any(axis=1))

    def drop(self, keep: Flags) -> None:
        """Go on with these groups alone."""
        kept = np.ix_(keep, keep)
        self._keep(keep)
        upper, self._upper = self._upper, self._upper[kept]
        upper[kept] = -1.0
        self._dropped = max(self._dropped, float(upper.max(initial=0.0)))


class AllPairs(PairEnds):
    """The ends of few groups, for outcomes that are favourable or not."""

    def __init__(self, groups: int, bets: Bets) -> None:
        super().__init__(groups)
        self._bets = bets
        self._rows = 0
        self._plus = np.zeros((groups, groups))  # rows with high of i = 1 and low of j = 0
        self._minus = np.zeros((groups, groups))  # rows with high of i = 0 and low of j = 1

    def add(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Count rows of the running groups: which are certainly, and possibly, favourable."""
        for first in range(0, len(low), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            sure, maybe = low[part], low[part] if high is low else high[part]
            certain, both = _counts(sure, maybe)
            possible = certain if maybe is sure else column_sums(maybe)
            self._plus += possible[:, None] - both
            self._minus += certain[None, :] - both
            self._rows += len(sure)

    def _ends(self) -> Floats:
        if not self._rows:
            return self._upper
        return self._bets.upper(self._plus, self._minus, self._rows)

    def _keep(self, groups: Flags) -> None:
        kept = np.ix_(groups, groups)
        self._plus, self._minus = self._plus[kept], self._minus[kept]


class CandidatePairs:
    """The same numbers of many groups, without going through all their pairs.

    Why candidates suffice: of a pair (i, j) let s = plus − minus and m = plus + minus. The wealth
    of `difference_upper` has the factor (1 − c) for a +1, 1 + λμ for a 0 and 1 + λ(1 + μ) for a −1.
    (1 − c)(1 + λ(1 + μ)) = (1 + λμ)² − λ² ≤ (1 + λμ)²: with s as it is, each further +1 and −1
    instead of two 0 makes the wealth smaller at every μ, so that it reaches the evidence at a
    larger μ, or at the same. So an end is at most that of the largest m that
    is possible. s needs no count of pairs, it is the difference of two groups' sums; and m, the
    number of rows in which high of i and low of j differ, is

    * at most min(high of i, rows − low of j) + min(low of j, rows − high of i), and
    * at most the rows in which the one or the other differs from any third row of bits (the
      triangle inequality): from what most groups had.

    A pair whose end with this m is not above a limit is not above it itself. Only the others are
    counted, from the bits, at all looks so far. With what limit: for the largest end, the largest
    among those pairs that hold an extreme group; for open groups, the limit asked for. No pair is
    left out that could matter, whatever the outcomes are: ends, stopping times and guarantee are
    those of all pairs. Groups whose outcomes were the same in all rows stand for each other.
    """

    def __init__(self, groups: int, bets: Bets) -> None:
        self._bets = bets
        self._rows = 0
        self._certain, self._possible = np.zeros((2, groups), dtype=np.int32)
        self._unusual = np.zeros((2, groups), dtype=np.int32)  # rows in which low, high are so
        self._parts: list[_Bits] = []
        self._looks: list[_Look] = []
        self._kinds = _Kinds.of([], groups)
        self._extreme: _Ends | None = None
        self._running = self._dropped = 0.0

    def add(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Count rows of the running groups: which are certainly, and possibly, favourable."""
        sure, maybe = np.asarray(low, dtype=bool), np.asarray(high, dtype=bool)
        usual = 2 * sure.sum(axis=1, keepdims=True) > sure.shape[1]
        self._unusual += np.array(
            [column_sums(sure != usual), column_sums(maybe != usual)], dtype=np.int32
        )
        self._certain += column_sums(sure).astype(np.int32)
        self._possible += column_sums(maybe).astype(np.int32)
        bits = np.packbits(sure.T, axis=1)
        self._parts.append(_Bits(bits, bits if high is low else np.packbits(maybe.T, axis=1)))
        self._rows += len(sure)

    def look(self) -> None:
        """Renew the ends."""
        if self._rows and (not self._looks or self._looks[-1].rows < self._rows):
            sums = self._certain.copy(), self._possible.copy()
            self._looks.append(_Look(self._bets, self._rows, len(self._parts), sums))
        self._kinds = _Kinds.of(self._parts, len(self._certain))
        self._extreme = self._ends(*self._extreme_pairs())
        self._running = self._largest(np.ones(len(self._certain), dtype=bool))

    @property
    def high(self) -> float:
        """The largest end, also of groups that were dropped, and at least 0."""
        if not self._looks:
            return 1.0
        return max(self._running, self._dropped)

    def open_groups(self, limit: float) -> Flags:
        """Which running groups are in a pair whose end is above the limit."""
        assert self._extreme is not None, "look first"
        closed = ~self._extreme.groups_above(limit, len(self._certain))
        for first, second in self._candidates(limit, closed):
            closed &= ~self._ends(first, second, limit).groups_above(limit, len(closed))
        return np.asarray(~closed[self._kinds.first])

    def drop(self, keep: Flags) -> None:
        """Go on with these groups alone."""
        if not keep.all():
            gone = np.zeros(len(keep), dtype=bool)
            gone[self._kinds.first[~keep]] = True
            self._dropped = max(self._dropped, self._largest(gone))
            self._certain, self._possible = self._certain[keep], self._possible[keep]
            self._unusual = self._unusual[:, keep]
            self._parts = [part.take(keep) for part in self._parts]
            for look in self._looks:
                look.keep(keep)

    def _largest(self, groups: Flags) -> float:
        """The largest end of pairs with one of these groups, and at least 0."""
        assert self._extreme is not None
        most = self._extreme.largest(groups)
        for first, second in self._candidates(most, groups):
            most = max(most, self._ends(first, second, most).largest(groups))
        return most

    def _extreme_pairs(self) -> tuple[Counts, Counts]:
        """All groups with the one that has the least, and the one that has the most with all."""
        each = self._kinds.chosen
        least = np.full(len(each), each[self._certain[each].argmin()])
        most = np.full(len(each), each[self._possible[each].argmax()])
        first, second = np.concatenate([each, most]), np.concatenate([least, each])
        return first[first != second], second[first != second]

    def _candidates(self, limit: float, groups: Flags) -> Iterator[tuple[Counts, Counts]]:
        """Pairs with one of these groups whose end may be above the limit, some at a time."""
        each, least = self._kinds.chosen, least_differing(self._bets, self._rows, limit)
        possible = np.flatnonzero(least <= self._rows)
        if not len(possible):
            return
        nearest = int(possible[0]) - self._rows  # sums that are less apart are of no such pair
        above = each[self._possible[each] - self._certain[each].min() >= nearest]
        below = each[self._possible[each].max() - self._certain[each] >= nearest]
        yield from self._grid(above[groups[above]], below, least)
        yield from self._grid(above[~groups[above]], below[groups[below]], least)

    def _grid(self, above: Counts, below: Counts, least: Counts) -> Iterator[tuple[Counts, Counts]]:
        """Of all pairs of these, those that may differ in as many rows as they have to."""
        certain, low = self._certain[below], self._unusual[0][below]
        step = max(_PAIRS_AT_ONCE // max(len(below), 1), 1)
        for start in range(0, len(above) if len(below) else 0, step):
            part = above[start : start + step]
            possible = self._possible[part, None]
            apart = possible - certain
            most = 2 * np.minimum(possible, self._rows - certain) - apart
            np.minimum(most, self._unusual[1][part, None] + low, out=most)
            row, column = np.nonzero(most >= least[apart + self._rows])
            first, second = part[row], below[column]
            yield first[first != second], second[first != second]

    def _ends(self, first: Counts, second: Counts, limit: float = -1.0) -> _Ends:
        """The ends of these pairs, each the least of all looks; only those above the limit."""
        if not self._looks:
            return _Ends(first, second, np.ones(len(first)))
        now = self._looks[-1]
        plus = np.zeros(len(first), dtype=np.int64)
        for part in self._parts:
            plus += part.favouring(first, second)
        ends = now.upper(plus, first, second)
        above = ends > limit
        first, second, ends = first[above], second[above], ends[above]
        plus, done = np.zeros(len(first), dtype=np.int64), 0
        for look in self._looks[:-1]:
            for part in self._parts[done : look.parts]:
                plus += part.favouring(first, second)
            done = look.parts
            ends = np.minimum(ends, look.upper(plus, first, second))
        return _Ends(first, second, ends)


@dataclass(frozen=True)
class _Ends:
    """The upper ends of some pairs."""

    first: Counts
    second: Counts
    ends: Floats

    def groups_above(self, limit: float, groups: int) -> Flags:
        """Which groups have an end above the limit."""
        above = self.ends > limit
        result = np.zeros(groups, dtype=bool)
        result[self.first[above]] = result[self.second[above]] = True
        return result

    def largest(self, groups: Flags) -> float:
        """The largest end of pairs with one of these groups, and at least 0."""
        chosen = groups[self.first] | groups[self.second]
        return float(self.ends[chosen].max(initial=0.0))


@dataclass(frozen=True)
class _Kinds:
    """Groups that had the same outcomes in all rows: two of each kind stand for all of it.

    What holds for a pair of two kinds, or of two of one kind, holds for all such pairs.
    """

    chosen: Counts  # at most two of each kind
    first: Counts  # of each group, the first of its kind

    @classmethod
    def of(cls, parts: Sequence[_Bits], groups: int) -> _Kinds:
        if not parts:
            return cls(np.arange(groups), np.arange(groups))
        both = [bits for part in parts for bits in part.distinct]
        bits = np.ascontiguousarray(np.concatenate(both, axis=1))
        _, first, kind = np.unique(
            bits.view(f"V{bits.shape[1]}")[:, 0], return_index=True, return_inverse=True
        )
        own = first[kind.reshape(-1)]
        others = np.flatnonzero(own != np.arange(groups))
        _, second = np.unique(own[others], return_index=True)
        return cls(np.sort(np.concatenate([first, others[second]])), own)


@dataclass(frozen=True)
class _Bits:
    """The outcomes of some rows, eight to a byte: groups × bytes."""

    low: NDArray[np.uint8]
    high: NDArray[np.uint8]

    @property
    def distinct(self) -> tuple[NDArray[np.uint8], ...]:
        return (self.low,) if self.high is self.low else (self.low, self.high)

    def take(self, keep: Flags) -> _Bits:
        low = self.low[keep]
        return _Bits(low, low if self.high is self.low else self.high[keep])

    def favouring(self, first: Counts, second: Counts) -> Counts:
        """In how many rows high of the first is 1 and low of the second 0, pair by pair."""
        step = max(_PAIRS_AT_ONCE // max(self.low.shape[1], 1), 1)
        counts = np.empty(len(first), dtype=np.int64)
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            ones = self.high[first[part]] & ~self.low[second[part]]
            _count_ones(ones).sum(axis=1, dtype=np.int64, out=counts[part])
        return counts


class _Look:
    """The upper ends at one look, each solved for once."""

    def __init__(self, bets: Bets, rows: int, parts: int, sums: tuple[Counts, Counts]) -> None:
        self._bets, self.rows, self.parts = bets, rows, parts
        self._certain, self._possible = sums
        self._keys = np.zeros(0, dtype=np.int64)
        self._values = np.zeros(0)

    def keep(self, groups: Flags) -> None:
        """Go on with these groups alone."""
        self._certain, self._possible = self._certain[groups], self._possible[groups]

    def upper(self, plus: Counts, first: Counts, second: Counts) -> Floats:
        """The upper ends of these pairs, given in how many rows they favour the first."""
        minus = plus - (self._possible[first] - self._certain[second])
        wanted, places = np.unique(plus * (self.rows + 1) + minus, return_inverse=True)
        new = np.setdiff1d(wanted, self._keys, assume_unique=True)
        if len(new):
            keys = np.concatenate([self._keys, new])
            values = np.concatenate([self._values, self._bets.solve(new, self.rows)])
            order = np.argsort(keys)
            self._keys, self._values = keys[order], values[order]
        return np.asarray(self._values[np.searchsorted(self._keys, wanted)][places])


def least_differing(bets: Bets, rows: int, limit: float) -> Counts:
    """From how many rows that differ on an end may be above the limit.

    One number for each difference −rows, …, rows of two groups' sums; more than `rows` where no
    end is. A pair is left out only if it is surely not above, also with an error of rounding.
    """
    apart = np.arange(-rows, rows + 1)
    low, high = np.abs(apart), np.full(len(apart), rows + 1)
    while (low < high).any():
        middle = (low + high) // 2
        plus, minus = (middle + apart) / 2, (middle - apart) / 2
        zero = np.maximum(rows - middle, 0)
        below = difference_excluded(
            plus, zero, minus, limit, bets.evidence * (1.0 + 1e-9), fractions=bets.fractions
        )
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        low = np.minimum(low, high)
    return low.astype(np.int32)


def _counts(low: NDArray[Any], high: NDArray[Any]) -> tuple[Counts, Floats]:
    """In how many rows each column of `low` holds, and how many it shares with each of `high`."""
    certain = column_sums(low)
    if low.shape[1] == 2 and high is low and low.dtype == bool:  # as most runs end
        shared = np.count_nonzero(low[:, 0] & low[:, 1])
        return certain, np.array([[certain[0], shared], [shared, certain[1]]], dtype=float)
    ones = low.astype(np.float32)
    others = ones if high is low else high.astype(np.float32)
    return certain, np.asarray(others.T @ ones, dtype=float)


def column_sums(flags: NDArray[Any]) -> Counts:
    """In how many rows each column holds."""
    if flags.shape[1] > len(flags):
        return np.asarray(np.count_nonzero(flags, axis=0), dtype=np.int64)
    return np.array([np.count_nonzero(column) for column in flags.T], dtype=np.int64)
