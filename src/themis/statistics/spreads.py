"""When are the groups' rates known well enough? The stopping rule of the group score."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.intervals import Flags, Floats, bet_fractions, difference_upper
from themis.statistics.proportions import Interval, check_request, mixture_ends

_FIRST_CONTEXTS = 30  # the first look
_ROWS_AT_ONCE = 1 << 16  # float32 sums of so many ones are exact, and the copies stay small


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
        self._plus = np.zeros((groups, groups))  # rows with high of i = 1 and low of j = 0
        self._minus = np.zeros((groups, groups))  # rows with high of i = 0 and low of j = 1
        self._upper = np.where(np.eye(groups, dtype=np.bool_), -1.0, 1.0)
        self._bets = np.zeros(3)  # champions' rows: +1, 0, −1
        self._fractions = bet_fractions(rule.error)

    def add(self, favourable_low: ArrayLike, favourable_high: ArrayLike) -> None:
        """Count rows of 0/1: a row per context, a column per *active* group, in order.

        An unknown outcome is 0 in `favourable_low` and 1 in `favourable_high`.
        """
        low, high = np.asarray(favourable_low), np.asarray(favourable_high)
        assert low.shape == high.shape == (len(low), self.active.sum()), "a column per active group"
        for first in range(0, len(low), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            sure = low[part]
            maybe = sure if high is low else high[part]
            certain, both = _counts(sure, maybe)
            self._count(len(sure), certain, certain if maybe is sure else _sums(maybe), both)

    def look(self) -> None:
        """Renew the ends, choose the champions of the next rows, and drop settled groups."""
        running = np.ix_(self.active, self.active)
        plus, minus = self._plus[running], self._minus[running]
        upper, low = self._ends(plus, minus, int(self.trials.max(initial=0)))
        self._upper[running] = np.minimum(self._upper[running], upper)
        np.fill_diagonal(self._upper, -1.0)
        self.low = max(self.low, low)
        self._choose_champions()
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the largest over all pairs, dropped groups included."""
        return float(max(self._upper.max(initial=0.0), 0.0))

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

        With unknown outcomes the spread is the least that is certain.
        """
        certain = self.favourable_low[self.active] / np.maximum(self.trials[self.active], 1)
        possible = self.favourable_high[self.active] / np.maximum(self.trials[self.active], 1)
        spread = max(_widest(certain, possible), 0.0)
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

    def _count(
        self, rows: int, certain: NDArray[np.int64], possible: NDArray[np.int64], both: Floats
    ) -> None:
        plus, minus = possible[:, None] - both, certain[None, :] - both
        running = np.ix_(self.active, self.active)
        self._plus[running] += plus
        self._minus[running] += minus
        self.trials[self.active] += rows
        self.favourable_low[self.active] += certain
        self.favourable_high[self.active] += possible
        if self.champions is not None:
            # The certain difference of (best, worst) is minus the possible one of (worst, best).
            best, worst = (int(self.active[:group].sum()) for group in self.champions)
            won, lost = float(minus[worst, best]), float(plus[worst, best])
            self._bets += (won, rows - won - lost, lost)

    def _ends(self, plus: Floats, minus: Floats, rows: int) -> tuple[Floats, float]:
        """The upper end of each pair, and the lower end of the champions, solved for at once.

        Of many groups most pairs have equal counts. A lower end is minus the upper end of what
        was lost and won.
        """
        keys = plus.astype(np.int64) * (rows + 1) + minus.astype(np.int64)
        distinct, places = np.unique(keys, return_inverse=True)
        won, even, lost = self._bets
        plus = np.append(distinct // (rows + 1), lost)
        minus = np.append(distinct % (rows + 1), won)
        zero = rows - plus - minus
        zero[-1] = even
        ends = difference_upper(plus, zero, minus, self.rule.evidence, fractions=self._fractions)
        return np.asarray(ends[:-1][places].reshape(keys.shape)), -float(ends[-1])

    def _choose_champions(self) -> None:
        certain = self.favourable_low[:, None] - self.favourable_high[None, :]
        eligible = self.active[:, None] & self.active[None, :]
        np.fill_diagonal(eligible, val=False)
        if eligible.any():
            widest = np.where(eligible, certain, np.iinfo(np.int64).min).argmax()
            best, worst = divmod(int(widest), len(self.active))
            self.champions = best, worst

    def _drop_settled(self) -> None:
        settled = self.low + 2.0 * self.rule.error
        if self.rule.decide_below is not None:
            settled = self.rule.decide_below
        open_pairs = self._upper > settled
        self.active &= open_pairs.any(axis=0) | open_pairs.any(axis=1)
        self.active[list(self.champions or ())] = True


def _counts(low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
    """In how many rows each column of `low` holds, and how many it shares with each of `high`."""
    certain = _sums(low)
    if low.shape[1] == 2 and high is low and low.dtype == bool:  # as most runs end
        shared = np.count_nonzero(low[:, 0] & low[:, 1])
        return certain, np.array([[certain[0], shared], [shared, certain[1]]], dtype=float)
    ones = low.astype(np.float32)
    others = ones if high is low else high.astype(np.float32)
    return certain, np.asarray(others.T @ ones, dtype=float)


def _sums(flags: NDArray[Any]) -> NDArray[np.int64]:
    return np.array([np.count_nonzero(column) for column in flags.T], dtype=np.int64)


def _widest(top: Floats, bottom: Floats) -> float:
    """The largest top[i] − bottom[j] with i ≠ j, and at least 0."""
    spread = top[:, None] - bottom[None, :]
    np.fill_diagonal(spread, 0.0)
    return float(spread.max(initial=0.0))


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
