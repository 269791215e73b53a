"""The stopping rule of the group score: when the groups' rates are known well enough."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.intervals import Flags, Floats, bet_fractions
from themis.statistics.numbers import (
    AT_ONCE,
    UNITS,
    Counts,
    Grid,
    Tally,
    in_units,
    log_evidence,
    mean_upper,
    share_ends,
)
from themis.statistics.numbers import FEW as FEW_NUMBERS
from themis.statistics.proportions import Interval, mixture_ends

MOST_COMPARED = 1_024  # groups: a look at a million pairs takes tenths of a second


@dataclass(frozen=True)
class GroupRule:
    """Stops the group score once it is known to ± error with 1 − `alpha`, at any look.

    It replaces lines 16–21 of Algorithm 1, for groups that share their contexts: a row holds
    the outcomes of all active groups in one context. The guarantee is for all looks at once:

    * high: a betting martingale per ordered pair of groups, at half of α. Only the truly extreme
      pair has to be covered, so that the number of pairs costs nothing.
    * low: one betting martingale, at the other half, on a champion pair chosen before each
      look's rows. Whichever pair it is, its mean difference is at most the score.

    Rows must be independent draws; the outcomes within a row may depend on each other in any
    way. The more they do, the fewer rows are needed, but sharing contexts is no condition: a
    row of separate draws, one per group, keeps the guarantee.
    """

    alpha: float
    error: float
    decide_below: float | None = None  # only whether the score is below this matters

    def looks(self) -> Iterator[int]:
        """Numbers of contexts at which to call `look`: 30, then 1.15 times the last one.

        As long as even groups that never differ could not be settled, half as many again: such
        looks can only drop groups.
        """
        soonest = math.log(self.evidence) / (2.0 * self.error)
        n = 30  # the first look
        while True:
            yield n
            n = -(-3 * n // 2) if 1.5 * n <= soonest else -(-23 * n // 20)

    @property
    def evidence(self) -> float:
        """What either end takes: half of α is for each."""
        return 2.0 / self.alpha

    @property
    def most_contexts(self) -> int:
        """So many contexts suffice even for groups that always get opposite outcomes.

        Those take 1.2 to 1.7 times what is doubled here (simulated).
        """
        return math.ceil(2.0 * math.log(self.evidence) / self.error**2)

    def start(self, groups: int, *, numbers: bool = False) -> GroupState:
        """The state of a run that has seen nothing yet; `numbers`: of means, not of rates."""
        return GroupState(self, groups, numbers=numbers)


class GroupState:
    """What a run under `GroupRule` has counted: `add` rows, then `look`.

    Champions and active groups change only in `look`, so that the result does not depend on
    how the rows of a look were cut into batches. `active` says which groups to run next.

    Outcomes are 0 or 1. Of few groups they may be `numbers` from 0 to 1: with the same guarantee, a
    small variance then takes fewer rows. Of more groups (`of_numbers` is false then) outcomes
    must be 0 or 1 at random, with the number as the chance of a 1.
    """

    def __init__(self, rule: GroupRule, groups: int, *, numbers: bool = False) -> None:
        self.rule = rule
        self.active: Flags = np.ones(groups, dtype=np.bool_)
        self.champions: tuple[int, int] | None = None  # no bet before the first look
        self.low = 0.0
        self.trials = np.zeros(groups, dtype=np.int64)
        self.favourable_low = np.zeros(groups, dtype=np.int64)  # sums, of numbers in units
        self.favourable_high = np.zeros(groups, dtype=np.int64)
        self.of_numbers = numbers and groups <= FEW_NUMBERS
        self._seen: Seen = (SeenNumbers if self.of_numbers else SeenFlags)(rule, groups)

    def add(self, favourable_low: ArrayLike, favourable_high: ArrayLike) -> None:
        """Count rows of outcomes: a row per context, a column per *active* group, in order.

        An unknown outcome is 0 in `favourable_low` and 1 in `favourable_high`.
        """
        low, high = np.asarray(favourable_low), np.asarray(favourable_high)
        assert low.shape == high.shape == (len(low), self.active.sum()), "a column per active group"
        if self.of_numbers:
            same, low = high is low, in_units(low)
            high = low if same else in_units(high)
        self._seen.add(low, high, self.active)
        certain = low.sum(axis=0, dtype=np.int64)
        self.trials[self.active] += len(low)
        self.favourable_low[self.active] += certain
        same = high is low
        self.favourable_high[self.active] += certain if same else high.sum(axis=0, dtype=np.int64)
        if self.champions is not None:
            best, worst = (int(self.active[:group].sum()) for group in self.champions)
            self._seen.bet(low[:, best], high[:, worst])

    def look(self) -> None:
        """Renew the ends, choose the champions of the next rows, and drop settled groups."""
        self._seen.look()
        self.low = max(self.low, self._seen.low_end())
        self._choose_champions()
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the largest over all pairs, dropped groups included."""
        return self._seen.high

    @property
    def crossed(self) -> bool:
        """Whether the ends contradict each other: the rows are no independent draws then.

        For independent rows that happens with probability at most alpha.
        """
        return self.low > self.high

    @property
    def done(self) -> bool:
        """Whether the score is known to ± error, but for outcomes that stay unknown.

        Of numbers, a difference that is not proven, but will be with about as many rows again, is
        waited for: all pairs may differ a little, and "none was found" would be an odd answer.
        """
        if self.rule.decide_below is None and self.low <= 0.0 and self._seen.waits():
            return False
        unknown = 0.0
        if not np.array_equal(self.favourable_low, self.favourable_high):
            sums = self.favourable_low, self.favourable_high
            # of those that still run: what others had when they were dropped is not proven
            unknown = _ambiguity(*(self._rates(each)[self.active] for each in sums))
        return self.high - self.low <= 2.0 * self.rule.error + unknown

    def interval(self) -> Interval:
        """The observed spread of the active groups, and the ends, which are made to contain it.

        Unknown outcomes count as unfavourable in it, as they do in the groups' rates.
        """
        rates = self._rates(self.favourable_low)[self.active]
        spread = _widest(rates, rates)
        ends = (self.low, self.high, spread)
        return Interval(spread, min(ends), max(ends))

    def group_intervals(self) -> tuple[Interval, ...]:
        """Each group's favourable rate with ends that hold jointly, at any stopping time.

        Joint over the groups, with the rule's 1 − α (α divided by their number). That is a
        statement of its own: this one *and* the score's hold together with 1 − 2α only.
        """
        alpha = self.rule.alpha / len(self.trials)
        sums = self.favourable_low, self.favourable_high
        rates = np.where(self.trials > 0, self._rates(self.favourable_low), math.nan)
        ends = (rates, *self._seen.group_ends(*sums, self.trials, alpha))
        return tuple(Interval(*each) for each in zip(*(e.tolist() for e in ends), strict=True))

    @property
    def unknown(self) -> int:
        """How many outcomes stay unknown."""
        return int((self.favourable_high - self.favourable_low).sum()) // self._seen.units

    def _rates(self, sums: NDArray[np.int64]) -> Floats:
        return np.asarray(sums / (np.maximum(self.trials, 1) * self._seen.units))

    def _choose_champions(self) -> None:
        """The pair that is furthest apart for certain; of several the first."""
        groups = np.flatnonzero(self.active)
        if len(groups) < 2:
            return
        high = self.favourable_high[groups]
        best = int((self.favourable_low[groups] - least_of_others(high)).argmax())
        high[best] = np.iinfo(np.int64).max
        self.champions = int(groups[best]), int(groups[high.argmin()])

    def _drop_settled(self) -> None:
        settled = self.low + 2.0 * self.rule.error
        if self.rule.decide_below is not None:
            # below it, not at it: an end that was dropped stays, and would never be below
            settled = math.nextafter(self.rule.decide_below, 0.0)
        before = self.active.copy()
        self.active[before] = self._seen.open_groups(settled)
        self.active[list(self.champions or ())] = True
        self._seen.drop(self.active[before])


def _widest(top: Floats, bottom: Floats) -> float:
    """The largest top[i] − bottom[j] with i ≠ j, and at least 0."""
    if len(top) < 2:
        return 0.0
    return float(max((top - least_of_others(bottom)).max(), 0.0))


def _ambiguity(low: Floats, high: Floats) -> float:
    """How far the spread of groups may move whose rates are at least and at most these."""
    return _widest(high, low) - max(0.0, _widest(low, high))


def least_of_others(numbers: NDArray[Any]) -> NDArray[Any]:
    """Of each of two or more places, the least number at the others."""
    least = int(numbers.argmin())
    others = np.full_like(numbers, numbers[least])
    others[least] = np.delete(numbers, least).min()
    return others


class Seen(ABC):
    """What was seen of the running groups: an upper end for each ordered pair, and the champions.

    The end of a pair is the least that it had at any look. What `drop` removes keeps its own.
    """

    units = 1  # that make up an outcome of 1

    def __init__(self, rule: GroupRule, groups: int, grid: Grid) -> None:
        self._evidence, self._fractions = rule.evidence, bet_fractions(rule.error)
        self._grid = grid
        self._champions = Tally.of_none(grid, (1,))  # how far the best is behind the worst
        self._upper = np.where(np.eye(groups, dtype=np.bool_), -1.0, 1.0)
        self._dropped = 0.0

    @abstractmethod
    def add(self, low: Counts, high: Counts, active: Flags) -> None:
        """Count rows of the running groups, which are `active`: what each is at least and most."""

    @abstractmethod
    def _ends(self) -> Floats:
        """The ends of pairs that the rows so far give, group by group."""

    @abstractmethod
    def _keep(self, groups: Flags) -> None:
        """Forget what was counted of all other groups."""

    def bet(self, best: Counts, worst: Counts) -> None:
        """Count rows of the champions: what the best is at least, and the worst at most."""
        behind = (worst.astype(np.int64) - best) * (UNITS // self.units)
        self._champions.count(..., self._grid.tally(behind[:, None]))

    def low_end(self) -> float:
        """The lower end: minus the upper end of how far the best is behind the worst."""
        return -float(self._solve(self._grid.counts(self._champions))[0])

    def waits(self) -> bool:
        """Whether to wait for a proof; of rates it comes about when they are known."""
        return False

    def group_ends(
        self, low: Counts, high: Counts, trials: Counts, alpha: float
    ) -> tuple[Floats, Floats]:
        """Ends for each group's mean, each pair of them with 1 − alpha."""
        return mixture_ends(low, high, trials, alpha)

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

    def _solve(self, counts: Floats) -> Floats:
        return mean_upper(counts, self._grid.points, self._evidence, self._fractions)


class SeenFlags(Seen):
    """Outcomes that are favourable or not."""

    def __init__(self, rule: GroupRule, groups: int) -> None:
        super().__init__(rule, groups, Grid(np.array([-1.0, 0.0, 1.0])))
        self._rows = 0
        self._plus = np.zeros((groups, groups))  # rows with high of i = 1 and low of j = 0
        self._minus = np.zeros((groups, groups))  # rows with high of i = 0 and low of j = 1

    def add(self, low: Counts, high: Counts, active: Flags) -> None:
        for first in range(0, len(low), AT_ONCE):  # float32 sums of so many ones are exact
            sure = low[first : first + AT_ONCE].astype(np.float32)
            maybe = sure if high is low else high[first : first + AT_ONCE].astype(np.float32)
            both = np.asarray(maybe.T @ sure, dtype=float)
            self._plus += maybe.sum(axis=0, dtype=float)[:, None] - both
            self._minus += sure.sum(axis=0, dtype=float)[None, :] - both
            self._rows += len(sure)

    def _ends(self) -> Floats:
        """Equal ones are solved for once."""
        plus, minus = self._plus.astype(np.int64), self._minus.astype(np.int64)
        distinct, places = np.unique(plus * (self._rows + 1) + minus, return_inverse=True)
        most, least = distinct // (self._rows + 1), distinct % (self._rows + 1)
        ends = self._solve(np.array([least, self._rows - most - least, most], dtype=float))
        return np.asarray(ends[places].reshape(plus.shape))

    def _keep(self, groups: Flags) -> None:
        kept = np.ix_(groups, groups)
        self._plus, self._minus = self._plus[kept], self._minus[kept]


class SeenNumbers(Seen):
    """Numbers from 0 to 1, in units."""

    units = UNITS

    def __init__(self, rule: GroupRule, groups: int) -> None:
        super().__init__(rule, groups, Grid.around_zero(bet_fractions(rule.error)[-1] / 5.0))
        self._pairs = Tally.of_none(self._grid, (groups, groups))
        self._shares = Grid.of_shares()
        self._least, self._most = (Tally.of_none(self._shares, (groups,)) for _ in range(2))

    def add(self, low: Counts, high: Counts, active: Flags) -> None:
        least = self._shares.tally(low)
        self._least.count(active, least)
        self._most.count(active, least if high is low else self._shares.tally(high))
        one, other = np.triu_indices(low.shape[1], 1)
        step = max(AT_ONCE // max(len(one), 1), 1)
        for first in range(0, len(low), step):
            below, above = low[first : first + step], high[first : first + step]
            there = self._grid.tally(above[:, one] - below[:, other])
            back = self._grid.opposite(there)
            if high is not low:
                back = self._grid.tally(above[:, other] - below[:, one])
            self._pairs.count((one, other), there)
            self._pairs.count((other, one), back)

    def _ends(self) -> Floats:
        cells = self._pairs.numbers.shape[-1]
        pairs = Tally(self._pairs.numbers.reshape(-1, cells), self._pairs.beyond.reshape(-1, cells))
        return self._solve(self._grid.counts(pairs)).reshape(self._upper.shape)

    def _keep(self, groups: Flags) -> None:
        self._pairs = self._pairs.take(np.ix_(groups, groups))

    def waits(self) -> bool:
        """Whether half of the proof is there that the champions differ; it grows evenly."""
        counts = self._grid.counts(self._champions)
        proof = log_evidence(counts, self._grid.points, 0.0, self._fractions)
        return bool(proof[0] >= math.log(self._evidence) / 2.0)

    def group_ends(
        self, low: Counts, high: Counts, trials: Counts, alpha: float
    ) -> tuple[Floats, Floats]:
        return share_ends(self._shares, self._least, self._most, 2.0 / alpha, self._fractions)
