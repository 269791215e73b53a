"""When has enough been seen? The stopping rules, which see counts and never a subject.

* `ProportionRule` stops the causal score (the paper's Algorithm 2) with a guarantee.
* `GroupRule` stops the group score (Algorithm 1) when all groups run on the same contexts,
  `IndependentGroupsRule` when every group has contexts of its own.
* `PaperRule` is the rule that both algorithms of the paper use, kept for comparison.

A rule is a frozen description; what a run has counted so far lives in its state. A caller
draws up to the next of `looks()`, hands over counts, and asks whether it is `done`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.errors import Mistake, RequestError
from themis.intervals import (
    Flags,
    Floats,
    bet_fractions,
    binomial_inclusion,
    binomial_lower_tail,
    difference_lower,
    difference_upper,
    hypergeometric_inclusion,
    hypergeometric_lower_tail,
    mixture_bounds_without_replacement,
    mixture_interval,
    normal_quantile,
)

TAIL_SHARE = 0.45
"""The part of 1 − confidence that each tail test of `ProportionRule` gets; ½ is too much."""

_FIRST_CONTEXTS = 30  # the first look of the group rules
_ROWS_AT_ONCE = 1 << 16  # float32 sums of so many ones are exact, and the copies stay small
_LARGEST_POPULATION = 1 << 53  # beyond, whole numbers are not exact and a run sees no end


@dataclass(frozen=True)
class Interval:
    """A score and the ends between which the true score lies with the stated confidence."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class ProportionRule:
    """Stops sampling a proportion once p̂ ± error holds with `confidence`, at known looks.

    It replaces lines 21–24 of Algorithm 2. A look stops the run when p̂ + error and p̂ − error
    are both rejected by an exact tail test at level 0.45·(1 − confidence). The guarantee,
    coverage of at least `confidence` *at the stop* whatever the true proportion, is not a
    theorem: it was computed exactly, over all sample paths, for the looks given here. With
    `population`, the samples are draws without replacement from so many items.
    """

    confidence: float
    error: float
    population: int | None = None

    def __post_init__(self) -> None:
        _check_request(self.confidence, self.error)

    def looks(self) -> Iterator[int]:
        """Sample sizes at which to ask `done`: `first_look`, then 1.1 times the last one."""
        n = self.first_look
        while n < self.max_samples:
            yield n
            n = -(-11 * n // 10)
        yield self.max_samples

    @property
    def first_look(self) -> int:
        """The least sample size at which a run without any success can stop."""
        return _first_look(self._gamma, self.error, self._finite)

    @property
    def max_samples(self) -> int:
        """The least sample size at which every count stops the run.

        For a finite population it is computed with p̂ ± error not rounded to whole items, so
        that it can exceed the least size by a few.
        """
        return _max_samples(self._gamma, self.error, self._finite)

    def done(self, successes: int, trials: int) -> bool:
        """Whether the run may stop at this look."""
        if trials >= self.max_samples:
            return True
        if self._finite is None:
            return bool(binomial_inclusion(successes, trials, self.error, self._gamma))
        return bool(
            hypergeometric_inclusion(successes, trials, self._finite, self.error, self._gamma)
        )

    def interval(self, successes: int, trials: int) -> Interval:
        """p̂ with p̂ ± error, less what is impossible; only for a run that is `done`."""
        score = successes / trials
        low, high = max(0.0, score - self.error), min(1.0, score + self.error)
        if self.population is not None:
            low = max(low, successes / self.population)
            high = min(high, (self.population - trials + successes) / self.population)
        return Interval(score, low, high)

    @property
    def _gamma(self) -> float:
        return TAIL_SHARE * (1.0 - self.confidence)

    @property
    def _finite(self) -> int | None:
        known = self.population is not None and self.population <= _LARGEST_POPULATION
        return self.population if known else None


def anytime_interval(
    successes_low: int,
    successes_high: int,
    trials: int,
    confidence: float,
    *,
    population: int | None = None,
) -> Interval:
    """Ends for a proportion that hold at any stopping time, also with unknown rows.

    Use it for a run that ended early, or in which rows stayed unknown: `successes_low` counts
    the rows that are certainly successes and `successes_high` those and the unknown ones. The
    score is the certain share (not a number without trials).

    Why the pair of ends holds with 1 − α though each uses rows of its own: for the true p, the
    mixture's part with θ > p on the low rows plus its part with θ < p on the high rows is a
    nonnegative supermartingale that starts at 1, since the low rows have a mean of at most p
    and the high rows of at least p. By Ville's inequality it ever reaches 1/α with
    probability at most α. A p below the low end has mixture ≥ 1/α′ on the low rows, of which
    the part θ < p is at most 1 (θ is even further from p̂), so that 1/α′ = 1/α + 1 is enough;
    the same above the high end. So α′ = α/(1 + α) with unknown rows, and α′ = α without.
    """
    alpha = 1.0 - confidence
    low, high = _mixture_ends(successes_low, successes_high, trials, alpha, population)
    score = successes_low / trials if trials else math.nan
    return Interval(score, float(low), float(high))


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

    def __post_init__(self) -> None:
        _check_request(self.confidence, self.error)

    def looks(self) -> Iterator[int]:
        """Numbers of contexts at which to call `look`: 30, then 1.15 times the last one."""
        return _growing_looks()

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
            self._count(low[part].astype(np.float32), high[part].astype(np.float32))

    def look(self) -> None:
        """Renew the ends, choose the champions of the next rows, and drop settled groups."""
        running = np.ix_(self.active, self.active)
        plus, minus = self._plus[running], self._minus[running]
        ends = self._upper_ends(plus, minus, int(self.trials.max(initial=0)))
        self._upper[running] = np.minimum(self._upper[running], ends)
        np.fill_diagonal(self._upper, -1.0)
        won, even, lost = self._bets
        low = difference_lower(won, even, lost, self._evidence, fractions=self._fractions)
        self.low = max(self.low, float(low))
        self._choose_champions()
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the largest over all pairs, dropped groups included."""
        return max(self.low, float(self._upper.max(initial=0.0)))

    @property
    def done(self) -> bool:
        """Whether the score is known to ± error, but for outcomes that stay unknown."""
        unknown = _ambiguity(self.favourable_low, self.favourable_high, self.trials)
        return self.high - self.low <= 2.0 * self.rule.error + unknown

    def interval(self) -> Interval:
        """The certain spread of the active groups, moved where the ends require it.

        Once `done` and with no outcome unknown, the true score is within ± error of `score`
        whenever it is between the ends. With unknown outcomes only the ends are promised: they
        may be further apart than 2·error, and `score` is the least that is certain.
        """
        certain = self.favourable_low[self.active] / np.maximum(self.trials[self.active], 1)
        possible = self.favourable_high[self.active] / np.maximum(self.trials[self.active], 1)
        return _report(_widest(certain, possible), self.low, self.high, self.rule.error)

    def group_intervals(self) -> tuple[Interval, ...]:
        """Each group's favourable rate with ends that hold jointly, at any stopping time.

        Joint over the groups, with the rule's confidence (α divided by their number). That is a
        statement of its own: this one *and* the score's hold together with 1 − 2α only.
        """
        alpha = (1.0 - self.rule.confidence) / len(self.trials)
        ends = _mixture_ends(self.favourable_low, self.favourable_high, self.trials, alpha, None)
        return _rates(self.favourable_low, self.trials, *ends)

    @property
    def _evidence(self) -> float:
        return 2.0 / (1.0 - self.rule.confidence)

    def _count(self, low: NDArray[np.float32], high: NDArray[np.float32]) -> None:
        plus, minus = high.T @ (1.0 - low), (1.0 - high).T @ low
        running = np.ix_(self.active, self.active)
        self._plus[running] += plus
        self._minus[running] += minus
        self.trials[self.active] += len(low)
        self.favourable_low[self.active] += low.sum(axis=0).astype(np.int64)
        self.favourable_high[self.active] += high.sum(axis=0).astype(np.int64)
        if self.champions is not None:
            # The certain difference of (best, worst) is minus the possible one of (worst, best).
            best, worst = (int(self.active[:group].sum()) for group in self.champions)
            won, lost = float(minus[worst, best]), float(plus[worst, best])
            self._bets += (won, len(low) - won - lost, lost)

    def _upper_ends(self, plus: Floats, minus: Floats, rows: int) -> Floats:
        """The upper end of each pair; of many groups most pairs have equal counts."""
        keys = plus.astype(np.int64) * (rows + 1) + minus.astype(np.int64)
        distinct, places = np.unique(keys, return_inverse=True)
        won, lost = distinct // (rows + 1), distinct % (rows + 1)
        even = rows - won - lost
        ends = difference_upper(won, even, lost, self._evidence, fractions=self._fractions)
        return np.asarray(ends[places].reshape(plus.shape))

    def _choose_champions(self) -> None:
        certain = self.favourable_low[:, None] - self.favourable_high[None, :]
        eligible = self.active[:, None] & self.active[None, :]
        np.fill_diagonal(eligible, val=False)
        if eligible.any():
            widest = np.where(eligible, certain, np.iinfo(np.int64).min).argmax()
            best, worst = divmod(int(widest), len(self.active))
            self.champions = best, worst

    def _drop_settled(self) -> None:
        open_pairs = self._upper > self.low + 2.0 * self.rule.error
        self.active &= open_pairs.any(axis=0) | open_pairs.any(axis=1)
        self.active[list(self.champions or ())] = True


@dataclass(frozen=True)
class IndependentGroupsRule:
    """Stops the group score when each group has its own stream of contexts, at any look.

    It replaces lines 16–21 of Algorithm 1 where a context of one group may be impossible for
    another (constraints, correlated characteristics). Each group gets a mixture interval at
    α divided by the number of groups; they hold jointly at all looks with `confidence`, and
    so does what follows from them for the largest difference. Where all groups are sampled
    equally often, `GroupRule` on rows of separate draws needs about a third of the samples;
    this rule takes any numbers of samples, and its group intervals hold together with the score.
    """

    confidence: float
    error: float

    def __post_init__(self) -> None:
        _check_request(self.confidence, self.error)

    def looks(self) -> Iterator[int]:
        """Numbers of samples per active group at which to call `look`: 30, then 1.15 times."""
        return _growing_looks()

    def start(self, groups: int) -> IndependentGroupsState:
        """The state of a run that has seen nothing yet."""
        return IndependentGroupsState(self, groups)


class IndependentGroupsState:
    """What a run under `IndependentGroupsRule` has counted: `add` counts, then `look`."""

    def __init__(self, rule: IndependentGroupsRule, groups: int) -> None:
        self.rule = rule
        self.active: Flags = np.ones(groups, dtype=np.bool_)
        self.low = 0.0
        self.trials = np.zeros(groups, dtype=np.int64)
        self.favourable_low = np.zeros(groups, dtype=np.int64)
        self.favourable_high = np.zeros(groups, dtype=np.int64)
        self._lower_ends, self._upper_ends = np.zeros(groups), np.ones(groups)

    def add(self, favourable_low: ArrayLike, favourable_high: ArrayLike, trials: ArrayLike) -> None:
        """Add counts, one entry for *every* group: certain, possible, and samples drawn."""
        self.favourable_low += np.asarray(favourable_low, dtype=np.int64)
        self.favourable_high += np.asarray(favourable_high, dtype=np.int64)
        self.trials += np.asarray(trials, dtype=np.int64)

    def look(self) -> None:
        """Renew the ends and drop the groups that can't change the answer any more."""
        low, high = _mixture_ends(
            self.favourable_low, self.favourable_high, self.trials, self._alpha, None
        )
        self._lower_ends = np.maximum(self._lower_ends, low)
        self._upper_ends = np.minimum(self._upper_ends, high)
        self.low = max(self.low, _widest(self._lower_ends, self._upper_ends))
        self._drop_settled()

    @property
    def high(self) -> float:
        """The upper end: the highest upper end less the lowest lower end of another group."""
        return max(self.low, _widest(self._upper_ends, self._lower_ends))

    @property
    def done(self) -> bool:
        """Whether the score is known to ± error, but for outcomes that stay unknown."""
        unknown = _ambiguity(self.favourable_low, self.favourable_high, self.trials)
        return self.high - self.low <= 2.0 * self.rule.error + unknown

    def interval(self) -> Interval:
        """The certain spread of the groups, moved where the ends require it.

        Once `done` and with no outcome unknown, the true score is within ± error of `score`
        whenever it is between the ends. With unknown outcomes only the ends are promised: they
        may be further apart than 2·error, and `score` is the least that is certain.
        """
        certain = self.favourable_low / np.maximum(self.trials, 1)
        possible = self.favourable_high / np.maximum(self.trials, 1)
        return _report(_widest(certain, possible), self.low, self.high, self.rule.error)

    def group_intervals(self) -> tuple[Interval, ...]:
        """Each group's favourable rate; the ends hold jointly, and together with the score's."""
        return _rates(self.favourable_low, self.trials, self._lower_ends, self._upper_ends)

    @property
    def _alpha(self) -> float:
        return (1.0 - self.rule.confidence) / len(self.trials)

    def _drop_settled(self) -> None:
        """Keep the groups of the pairs that can be extreme and are not yet known well enough."""
        can_be_best = self._upper_ends > self._lower_ends.max()
        can_be_worst = self._lower_ends < self._upper_ends.min()
        spread = self._upper_ends[:, None] - self._lower_ends[None, :]
        open_pairs = can_be_best[:, None] & can_be_worst[None, :]
        open_pairs &= spread > self.low + 2.0 * self.rule.error
        np.fill_diagonal(open_pairs, val=False)
        self.active &= open_pairs.any(axis=0) | open_pairs.any(axis=1)


@dataclass(frozen=True)
class PaperRule:
    """The paper's rule: stop after sample r when z*·√(p(1−p)/r) < error (Algorithms 1 and 2).

    It is checked after every sample once r > `sampling_threshold`, and sampling ends at
    `max_samples` in any case. The paper does not state MAX_SAMPLES; the default is the least
    number at which the margin is below `error` even at p = ½, so that it cuts no run short.
    The margin is for a fixed n and a p that is not near 0 or 1; checked after every sample it
    guarantees nothing: with no success the rule stops at once and claims certainty.
    """

    confidence: float
    error: float
    sampling_threshold: int = field(default=10, kw_only=True)
    max_samples: int = field(default=0, kw_only=True)  # 0 asks for the default

    def __post_init__(self) -> None:
        _check_request(self.confidence, self.error)
        if not self.max_samples:
            enough = math.floor((self._z / (2.0 * self.error)) ** 2) + 1
            object.__setattr__(self, "max_samples", max(enough, self.sampling_threshold + 1))

    def stops(self, count: int, r: int) -> bool:
        """Whether sampling ends after sample r with `count` positive ones."""
        if r >= self.max_samples:
            return True
        return r > self.sampling_threshold and self.margin(count, r) < self.error

    def margin(self, count: int, r: int) -> float:
        """The paper's margin of error, z*·√(p(1−p)/r)."""
        p = count / r
        return self._z * math.sqrt(p * (1.0 - p) / r)

    def interval(self, count: int, r: int) -> Interval:
        """p with the margin that the paper *claims* at the stop; it has no guarantee."""
        p, margin = count / r, max(self.error, self.margin(count, r))
        return Interval(p, max(0.0, p - margin), min(1.0, p + margin))

    def safe_steps(self, count: int, r: int) -> int:
        """How many samples can be drawn at once without missing a stop; at least 1.

        Whatever the next samples are, the rule would not have stopped strictly before the last
        of them. With t more samples the margin is least when all are positive or none is, and
        each of these two margins first rises and then falls in t: a stretch of samples is safe
        when its first and its last one are. So the longest stretch is found by bisection.
        """
        first = max(1, self.sampling_threshold - r + 1)  # the first at which a stop is possible
        safe, unsafe = first - 1, max(first, self.max_samples - r)
        if not self._may_stop(count, r, first):
            while unsafe - safe > 1:
                middle = (safe + unsafe) // 2
                stop = self._may_stop(count, r, middle)
                safe, unsafe = (safe, middle) if stop else (middle, unsafe)
        return max(1, min(safe + 1, self.max_samples - r))

    def _may_stop(self, count: int, r: int, more: int) -> bool:
        return self.stops(count, r + more) or self.stops(count + more, r + more)

    @cached_property
    def _z(self) -> float:
        return normal_quantile(self.confidence)


def _check_request(confidence: float, error: float) -> None:
    mistakes = []
    if not 0.0 < confidence < 1.0:
        problem = f"the confidence must be between 0 and 1, both excluded, not {confidence}"
        mistakes.append(Mistake("bad-confidence", "confidence", problem, "0.95 is usual"))
    if not error > 0.0:
        problem = f"the error must be above 0, not {error}"
        mistakes.append(Mistake("bad-error", "error", problem, "0.05 is usual"))
    if mistakes:
        raise RequestError(mistakes)


@lru_cache(maxsize=256)
def _first_look(gamma: float, error: float, population: int | None) -> int:
    if error >= 1.0:
        return 1
    forever = math.ceil(math.log(gamma) / math.log1p(-error))
    if population is None:
        return forever
    marked = math.floor(population * error) + 1
    low, high = 0, min(forever, population)
    while high - low > 1:
        middle = (low + high) // 2
        passes = hypergeometric_lower_tail(0, middle, marked, population) <= gamma
        low, high = (low, middle) if passes else (middle, high)
    return high


@lru_cache(maxsize=256)
def _max_samples(gamma: float, error: float, population: int | None) -> int:
    """Bisection between a size that is too small and one that is enough.

    Enough is Hoeffding's size; for a finite population the size for an endless one, or all of it.
    """
    low = _first_look(gamma, error, population) - 1
    if population is None:
        high = math.ceil(-math.log(gamma) / (2.0 * error**2))
    else:
        high = min(population, _max_samples(gamma, error, None))
    high = max(high, low + 1)
    while high - low > 1:
        middle = (low + high) // 2
        passes = _largest_tail(middle, error, population) <= gamma
        low, high = (low, middle) if passes else (middle, high)
    return high


def _largest_tail(trials: int, error: float, population: int | None) -> float:
    """The largest tail over all counts; as a function of the count it rises, then falls.

    It is largest near p̂ = ½ − error, where the tested proportion has the largest variance (the
    other tail is the mirror image). A grid closes in on it, a quarter of the range at a time.
    """

    def tail(successes: NDArray[np.int64]) -> Floats:
        if population is None:
            return binomial_lower_tail(successes, trials, error)
        marked = population * (successes / trials + error)
        return hypergeometric_lower_tail(successes, trials, marked, population)

    low, high = 0, trials
    while high - low > 8:
        grid = np.linspace(low, high, 9).astype(np.int64)
        best = int(tail(grid).argmax())
        low, high = int(grid[max(best - 1, 0)]), int(grid[min(best + 1, 8)])
    return float(tail(np.arange(low, high + 1)).max())


def _growing_looks() -> Iterator[int]:
    n = _FIRST_CONTEXTS
    while True:
        yield n
        n = -(-23 * n // 20)


def _mixture_ends(
    low: ArrayLike, high: ArrayLike, trials: ArrayLike, alpha: float, population: int | None
) -> tuple[Floats, Floats]:
    """The low end of the certain counts and the high end of the possible ones, jointly at alpha.

    The proof is in the docstring of `anytime_interval`.
    """
    level = np.where(np.not_equal(low, high), alpha / (1.0 + alpha), alpha)

    def ends(successes: ArrayLike) -> tuple[Floats, Floats]:
        if population is None or population > _LARGEST_POPULATION:
            return mixture_interval(successes, trials, level)
        return mixture_bounds_without_replacement(successes, trials, population, level)

    of_certain = ends(low)
    of_possible = of_certain if np.array_equal(low, high) else ends(high)
    return of_certain[0], of_possible[1]


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


def _report(spread: float, low: float, high: float, error: float) -> Interval:
    """The spread moved into [low, high] and, if they are close enough, within error of both."""
    score = min(max(spread, low), high)
    if high - low <= 2.0 * error:
        score = min(max(score, high - error), low + error)
    return Interval(score, low, high)


def _rates(
    successes: NDArray[np.int64], trials: NDArray[np.int64], low: Floats, high: Floats
) -> tuple[Interval, ...]:
    rates = np.divide(successes, trials, out=np.full(len(trials), math.nan), where=trials > 0)
    return tuple(
        Interval(*ends) for ends in zip(rates.tolist(), low.tolist(), high.tolist(), strict=True)
    )
