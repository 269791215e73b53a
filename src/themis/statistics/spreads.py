"""The stopping rule of the group score: when the groups' rates are known well enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.intervals import Flags, Floats, bet_fractions, difference_upper
from themis.statistics.numbers import FEW as FEW_NUMBERS
from themis.statistics.numbers import (
    UNITS,
    Grid,
    NumberPairs,
    Tally,
    in_units,
    log_evidence,
    mean_upper,
)
from themis.statistics.pairs import Bets, Counts, column_sums, pairs_of
from themis.statistics.proportions import Interval, check_request, mixture_ends

_FIRST_CONTEXTS = 30  # the first look


@dataclass(frozen=True)
class GroupRule:
    """Stops the group score once it is known to ± error with `confidence`, at any look.

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

    confidence: float
    error: float
    decide_below: float | None = None  # only whether the score is below this matters

    def __post_init__(self) -> None:
        check_request(self.confidence, self.error)

    def looks(self) -> Iterator[int]:
        """Numbers of contexts at which to call `look`: 30, then 1.15 times the last one.

        As long as even groups that never differ could not be settled, half as many again: such
        looks can only drop groups.
        """
        soonest = math.log(self.evidence) / (2.0 * self.error)
        n = _FIRST_CONTEXTS
        while True:
            yield n
            n = -(-3 * n // 2) if 1.5 * n <= soonest else -(-23 * n // 20)

    @property
    def evidence(self) -> float:
        """What either end takes: half of α is for each."""
        return 2.0 / (1.0 - self.confidence)

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
        self._seen: _Flags | _Numbers
        self._seen = _Numbers(rule, groups) if self.of_numbers else _Flags(rule, groups)

    def add(self, favourable_low: ArrayLike, favourable_high: ArrayLike) -> None:
        """Count rows of outcomes: a row per context, a column per *active* group, in order.

        An unknown outcome is 0 in `favourable_low` and 1 in `favourable_high`.
        """
        low, high = np.asarray(favourable_low), np.asarray(favourable_high)
        assert low.shape == high.shape == (len(low), self.active.sum()), "a column per active group"
        if self.of_numbers:
            same, low = high is low, in_units(low)
            high = low if same else in_units(high)
        certain, possible = self._seen.add(low, high, self.active)
        self.trials[self.active] += len(low)
        self.favourable_low[self.active] += certain
        self.favourable_high[self.active] += possible
        if self.champions is not None:
            best, worst = (int(self.active[:group].sum()) for group in self.champions)
            self._seen.bet(low[:, best], high[:, worst])

    def look(self) -> None:
        """Renew the ends, choose the champions of the next rows, and drop settled groups."""
        self._seen.pairs.look()
        self.low = max(self.low, self._seen.low_end())
        self._choose_champions()
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the largest over all pairs, dropped groups included."""
        return self._seen.pairs.high

    @property
    def crossed(self) -> bool:
        """Whether the ends contradict each other: the rows are no independent draws then.

        For independent rows that happens with probability at most 1 − confidence.
        """
        return self.low > self.high

    @property
    def done(self) -> bool:
        """Whether the score is known to ± error, but for outcomes that stay unknown.

        Of numbers, a difference that is not proven, but will be with about as many rows again, is
        waited for: all pairs may differ a little, and "none was found" would be an odd answer.
        """
        if self.rule.decide_below is None and self.low <= 0.0 and self._seen.is_nearly_proven():
            return False
        unknown = 0.0
        if not np.array_equal(self.favourable_low, self.favourable_high):
            unknown = _ambiguity(
                self._rates(self.favourable_low), self._rates(self.favourable_high)
            )
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

        Joint over the groups, with the rule's confidence (α divided by their number). That is a
        statement of its own: this one *and* the score's hold together with 1 − 2α only.
        """
        alpha = (1.0 - self.rule.confidence) / len(self.trials)
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
        best = int((self.favourable_low[groups] - _least_of_others(high)).argmax())
        high[best] = np.iinfo(np.int64).max
        self.champions = int(groups[best]), int(groups[high.argmin()])

    def _drop_settled(self) -> None:
        settled = self.low + 2.0 * self.rule.error
        if self.rule.decide_below is not None:
            settled = self.rule.decide_below
        before = self.active.copy()
        self.active[before] = self._seen.pairs.open_groups(settled)
        self.active[list(self.champions or ())] = True
        self._seen.pairs.drop(self.active[before])


def _least_of_others(numbers: NDArray[Any]) -> NDArray[Any]:
    """Of each of two or more places, the least number at the others."""
    least = int(numbers.argmin())
    others = np.full_like(numbers, numbers[least])
    others[least] = np.delete(numbers, least).min()
    return others


def _widest(top: Floats, bottom: Floats) -> float:
    """The largest top[i] − bottom[j] with i ≠ j, and at least 0."""
    if len(top) < 2:
        return 0.0
    return float(max((top - _least_of_others(bottom)).max(), 0.0))


def _ambiguity(low: Floats, high: Floats) -> float:
    """How far the spread of groups may move whose rates are at least and at most these."""
    return _widest(high, low) - max(0.0, _widest(low, high))


class _Flags:
    """What was seen of outcomes that are 0 or 1."""

    units = 1

    def __init__(self, rule: GroupRule, groups: int) -> None:
        self._bets = Bets(rule.evidence, bet_fractions(rule.error))
        self._rows = np.zeros(3, dtype=np.int64)  # of champions: +1, 0, −1
        self.pairs = pairs_of(groups, self._bets)

    def add(self, low: Counts, high: Counts, active: Flags) -> tuple[Counts, Counts]:
        """Count rows of the active groups; their sums."""
        self.pairs.add(low, high)
        certain = column_sums(low)
        return certain, certain if high is low else column_sums(high)

    def bet(self, best: Counts, worst: Counts) -> None:
        """Count rows of the champions: what the best is at least, and the worst at most."""
        won = np.count_nonzero((best == 1) & (worst == 0))
        lost = np.count_nonzero((best == 0) & (worst == 1))
        self._rows += (won, len(best) - won - lost, lost)

    def low_end(self) -> float:
        """The lower end: minus the upper end of what was lost and won."""
        won, even, lost = self._rows
        evidence, fractions = self._bets.evidence, self._bets.fractions
        return -float(difference_upper([lost], [even], [won], evidence, fractions=fractions)[0])

    def is_nearly_proven(self) -> bool:
        """Whether to wait for a proof; of rates it comes about when they are known."""
        return False

    def group_ends(
        self, low: Counts, high: Counts, trials: Counts, alpha: float
    ) -> tuple[Floats, Floats]:
        """Ends for each group's mean, each pair of them with 1 − alpha."""
        return mixture_ends(low, high, trials, alpha, None)


class _Numbers:
    """What was seen of numbers from 0 to 1, in units."""

    units = UNITS

    def __init__(self, rule: GroupRule, groups: int) -> None:
        self._evidence, self._fractions = rule.evidence, bet_fractions(rule.error)
        self.pairs = NumberPairs(groups, self._evidence, self._fractions)
        self._apart = self.pairs.grid
        self._champions = Tally.of_none(self._apart, (1,))  # how far the best is behind the worst
        self._shares = Grid.of_shares()
        self._low, self._high = (Tally.of_none(self._shares, (groups,)) for _ in range(2))

    def add(self, low: Counts, high: Counts, active: Flags) -> tuple[Counts, Counts]:
        """Count rows of the active groups; their sums."""
        self.pairs.add(low, high)
        least = self._shares.tally(low)
        self._low.count(active, least)
        self._high.count(active, least if high is low else self._shares.tally(high))
        certain = low.sum(axis=0)
        return certain, certain if high is low else high.sum(axis=0)

    def bet(self, best: Counts, worst: Counts) -> None:
        """Count rows of the champions: what the best is at least, and the worst at most."""
        self._champions.count(..., self._apart.tally((worst - best)[:, None]))

    def low_end(self) -> float:
        """The lower end: minus the upper end of how far the best is behind the worst."""
        counts = self._apart.counts(self._champions)
        return -float(mean_upper(counts, self._apart.points, self._evidence, self._fractions)[0])

    def is_nearly_proven(self) -> bool:
        """Whether half of the proof is there that the champions differ; it grows evenly."""
        counts = self._apart.counts(self._champions)
        proof = log_evidence(counts, self._apart.points, 0.0, self._fractions)
        return bool(proof[0] >= math.log(self._evidence) / 2.0)

    def group_ends(
        self, low: Counts, high: Counts, trials: Counts, alpha: float
    ) -> tuple[Floats, Floats]:
        """Ends for each group's mean, each pair of them with 1 − alpha."""
        evidence, points = 2.0 / alpha, self._shares.points
        # A lower end is 1 minus the upper end of what is missing to 1.
        missing = self._shares.counts(self._low)[::-1]
        least = 1.0 - mean_upper(missing, points, evidence, self._fractions)
        most = mean_upper(self._shares.counts(self._high), points, evidence, self._fractions)
        return least, most
