"""The stopping rule of the group score: when the groups' rates are known well enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.intervals import Flags, Floats, bet_fractions, difference_upper
from themis.statistics.pairs import Bets, column_sums, pairs_of
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

    def start(self, groups: int) -> GroupState:
        """The state of a run that has seen nothing yet."""
        return GroupState(self, groups)


class GroupState:
    """What a run under `GroupRule` has counted: `add` rows, then `look`.

    Champions and active groups change only in `look`, so that the result does not depend on
    how the rows of a look were cut into batches. `active` says which groups to run next.
    """

    def __init__(self, rule: GroupRule, groups: int) -> None:
        self.rule = rule
        self.active: Flags = np.ones(groups, dtype=np.bool_)
        self.champions: tuple[int, int] | None = None  # no bet before the first look
        self.low = 0.0
        self.trials = np.zeros(groups, dtype=np.int64)
        self.favourable_low = np.zeros(groups, dtype=np.int64)
        self.favourable_high = np.zeros(groups, dtype=np.int64)
        self._bets = np.zeros(3)  # champions' rows: +1, 0, −1
        self._fractions = bet_fractions(rule.error)
        self._pairs = pairs_of(groups, Bets(rule.evidence, self._fractions))

    def add(self, favourable_low: ArrayLike, favourable_high: ArrayLike) -> None:
        """Count rows of 0/1: a row per context, a column per *active* group, in order.

        An unknown outcome is 0 in `favourable_low` and 1 in `favourable_high`.
        """
        low, high = np.asarray(favourable_low), np.asarray(favourable_high)
        assert low.shape == high.shape == (len(low), self.active.sum()), "a column per active group"
        self._pairs.add(low, high)
        certain = column_sums(low)
        self.trials[self.active] += len(low)
        self.favourable_low[self.active] += certain
        self.favourable_high[self.active] += certain if high is low else column_sums(high)
        if self.champions is not None:
            best, worst = (int(self.active[:group].sum()) for group in self.champions)
            won = np.count_nonzero((low[:, best] == 1) & (high[:, worst] == 0))
            lost = np.count_nonzero((low[:, best] == 0) & (high[:, worst] == 1))
            self._bets += (won, len(low) - won - lost, lost)

    def look(self) -> None:
        """Renew the ends, choose the champions of the next rows, and drop settled groups."""
        self._pairs.look()
        won, even, lost = self._bets
        # A lower end is minus the upper end of what was lost and won.
        end = difference_upper([lost], [even], [won], self.rule.evidence, fractions=self._fractions)
        self.low = max(self.low, -float(end[0]))
        self._choose_champions()
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the largest over all pairs, dropped groups included."""
        return self._pairs.high

    @property
    def crossed(self) -> bool:
        """Whether the ends contradict each other: the rows are no independent draws then.

        For independent rows that happens with probability at most 1 − confidence.
        """
        return self.low > self.high

    @property
    def done(self) -> bool:
        """Whether the score is known to ± error, but for outcomes that stay unknown."""
        unknown = _ambiguity(self.favourable_low, self.favourable_high, self.trials)
        return self.high - self.low <= 2.0 * self.rule.error + unknown

    def interval(self) -> Interval:
        """The observed spread of the active groups, and the ends, which are made to contain it.

        Unknown outcomes count as unfavourable in it, as they do in the groups' rates.
        """
        rates = self.favourable_low[self.active] / np.maximum(self.trials[self.active], 1)
        spread = _widest(rates, rates)
        ends = (self.low, self.high, spread)
        return Interval(spread, min(ends), max(ends))

    def group_intervals(self) -> tuple[Interval, ...]:
        """Each group's favourable rate with ends that hold jointly, at any stopping time.

        Joint over the groups, with the rule's confidence (α divided by their number). That is a
        statement of its own: this one *and* the score's hold together with 1 − 2α only.
        """
        alpha = (1.0 - self.rule.confidence) / len(self.trials)
        ends = mixture_ends(self.favourable_low, self.favourable_high, self.trials, alpha, None)
        return _rates(self.favourable_low, self.trials, *ends)

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
        self.active[before] = self._pairs.open_groups(settled)
        self.active[list(self.champions or ())] = True
        self._pairs.drop(self.active[before])


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


def _ambiguity(
    certain: NDArray[np.int64], possible: NDArray[np.int64], trials: NDArray[np.int64]
) -> float:
    """How far the spread of these groups may move, whatever the unknown outcomes are."""
    if np.array_equal(certain, possible):
        return 0.0
    low, high = certain / np.maximum(trials, 1), possible / np.maximum(trials, 1)
    return _widest(high, low) - max(0.0, _widest(low, high))


def _rates(
    successes: NDArray[np.int64], trials: NDArray[np.int64], low: Floats, high: Floats
) -> tuple[Interval, ...]:
    rates = np.divide(successes, trials, out=np.full(len(trials), math.nan), where=trials > 0)
    return tuple(
        Interval(*ends) for ends in zip(rates.tolist(), low.tolist(), high.tolist(), strict=True)
    )
