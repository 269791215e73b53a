"""Proportions: rules that stop their sampling, and rates of several groups with joint ends.

* `ProportionRule` stops the causal score (the paper's Algorithm 2) with a guarantee.
* `PaperRule` is the rule that both algorithms of the paper use, kept for comparison.

A rule is a frozen description; what a run has counted so far lives in its state. A caller
draws up to the next of `looks()`, hands over counts, and asks whether it is `done`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from themis.statistics.intervals import (
    Floats,
    binomial_inclusion,
    binomial_lower_tail,
    clopper_pearson,
    least_enough,
    mixture_interval,
    normal_quantile,
)

TAIL_SHARE = 0.45
"""The part of 1 − confidence that each tail test of `ProportionRule` gets; ½ is too much."""


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
    theorem: it was computed exactly, over all sample paths, for the looks given here.

    Samples that stay unknown may be successes or not. Then the tests look at the certain and at the
    possible successes, and each end is that of its own count. For any truth only one of the ends is
    near it, so that the coverage is larger than without; it was computed in the same way.
    """

    confidence: float
    error: float

    def looks(self, coarse_to: int = 0, *, endless: bool = False) -> Iterator[int]:
        """Sample sizes at which to ask `done`: `first_look`, then 1.1 times the last one.

        Up to `coarse_to` samples eight times the last one, and 1.25 times after that, where few
        looks are worth more than few samples; it has to be chosen before the first. They end with
        `max_samples`, unless something else is also looked at: then they are `endless`.
        """
        n = self.first_look
        over, under = (5, 4) if coarse_to else (11, 10)
        while n < self.max_samples:
            yield n
            # At most eight times the rows from look to look.
            n = max(-(-over * n // under), min(8 * n, coarse_to))
        n = self.max_samples
        yield n
        while endless:
            n = -(-over * n // under)
            yield n

    @property
    def first_look(self) -> int:
        """The least sample size at which a run without any success can stop."""
        return _first_look(self._gamma, self.error)

    @property
    def max_samples(self) -> int:
        """The least sample size at which every count stops the run."""
        return _max_samples(self._gamma, self.error)

    def done(self, successes: int, trials: int, unknown: int = 0) -> bool:
        """Whether the run may stop at this look."""
        if trials >= self.max_samples:
            return True
        return all(self._passes(each, trials) for each in {successes, successes + unknown})

    def _passes(self, successes: int, trials: int) -> bool:
        return bool(binomial_inclusion(successes, trials, self.error, self._gamma))

    def interval(self, successes: int, trials: int, unknown: int = 0) -> Interval:
        """p̂ with p̂ ± error, less what is impossible; only for a run that is `done`."""
        score, possible = successes / trials, successes + unknown
        low, high = max(0.0, score - self.error), min(1.0, possible / trials + self.error)
        return Interval(score, low, high)

    @property
    def _gamma(self) -> float:
        return TAIL_SHARE * (1.0 - self.confidence)


def anytime_interval(
    successes_low: int,
    successes_high: int,
    trials: int,
    confidence: float,
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
    low, high = mixture_ends(successes_low, successes_high, trials, alpha)
    score = successes_low / trials if trials else math.nan
    return Interval(score, float(low), float(high))


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
        if not self.max_samples:
            enough = math.floor((self._z / (2.0 * self.error)) ** 2) + 1
            object.__setattr__(self, "max_samples", max(enough, self.sampling_threshold + 1))

    def stops(self, count: float, r: int) -> bool:
        """Whether sampling ends after sample r with `count` positive ones."""
        if r >= self.max_samples:
            return True
        return r > self.sampling_threshold and self.margin(count, r) < self.error

    def margin(self, count: float, r: int) -> float:
        """The paper's margin of error, z*·√(p(1−p)/r)."""
        p = count / r
        return self._z * math.sqrt(p * (1.0 - p) / r)

    def interval(self, count: float, r: int) -> Interval:
        """p with the margin that the paper *claims* at the stop; it has no guarantee."""
        p, margin = count / r, max(self.error, self.margin(count, r))
        return Interval(p, max(0.0, p - margin), min(1.0, p + margin))

    def safe_steps(self, count: float, r: int) -> int:
        """How many samples can be drawn at once without missing a stop; at least 1.

        Whatever the next samples are, the rule would not have stopped strictly before the last
        of them. With t more samples the margin is least when all are positive or none is, and
        each of these two margins first rises and then falls in t: a stretch of samples is safe
        when its first and its last one are. So the longest stretch is found by bisection.
        """
        first = max(1, self.sampling_threshold - r + 1)  # the first at which a stop is possible
        if self._may_stop(count, r, first):
            return max(1, min(first, self.max_samples - r))
        last = max(first, self.max_samples - r)
        steps = least_enough(first - 1, last, lambda more: self._may_stop(count, r, more))
        return max(1, min(steps, self.max_samples - r))

    def _may_stop(self, count: float, r: int, more: int) -> bool:
        return self.stops(count, r + more) or self.stops(count + more, r + more)

    @cached_property
    def _z(self) -> float:
        return normal_quantile(self.confidence)


@lru_cache(maxsize=256)
def _first_look(gamma: float, error: float) -> int:
    return 1 if error >= 1.0 else math.ceil(math.log(gamma) / math.log1p(-error))


@lru_cache(maxsize=256)
def _max_samples(gamma: float, error: float) -> int:
    """Bisection between a size that is too small and Hoeffding's, which is enough."""
    low = _first_look(gamma, error) - 1
    high = max(math.ceil(-math.log(gamma) / (2.0 * error**2)), low + 1)
    return least_enough(low, high, lambda trials: not _exceeds(gamma, trials, error))


def _exceeds(gamma: float, trials: int, error: float) -> bool:
    """Whether some count has a tail above gamma; as a function of the count it rises, then falls.

    It is largest near p̂ = ½ − ⅔·error (the other tail is the mirror image), which is tried first:
    what is larger than its neighbours is the largest of all. Where it is elsewhere a grid that is
    close around there is tried, and others close in on the largest: counts may be many millions.
    """
    likely = round((0.5 - error / 1.5) * trials - 1 / (12 * error))
    counts = np.array([0, *range(max(likely - 2, 1), min(likely + 2, trials) + 1)])
    tails = binomial_lower_tail(counts, trials, error)
    if tails.max() > gamma or 1 < tails.argmax() < len(counts) - 1:
        return bool(tails.max() > gamma)
    near = np.linspace(max(0.5 - 2.0 * error, 0.0), 0.5, 7) * trials
    grid = sorted({0, *near.astype(int).tolist(), trials})
    while (tails := binomial_lower_tail(grid, trials, error)).max() <= gamma:
        best = int(tails.argmax())
        beside = grid[max(best - 1, 0) : best + 2]
        if beside[-1] - beside[0] < len(beside):  # there is no count between them
            return False
        grid = sorted({*np.linspace(beside[0], beside[-1], 9).astype(int).tolist()})
    return True


def mixture_ends(
    low: ArrayLike, high: ArrayLike, trials: ArrayLike, alpha: float
) -> tuple[Floats, Floats]:
    """The low end of the certain counts and the high end of the possible ones, jointly at alpha.

    The proof is in the docstring of `anytime_interval`.
    """
    level = np.where(np.not_equal(low, high), alpha / (1.0 + alpha), alpha)
    of_certain = mixture_interval(low, trials, level)
    of_possible = of_certain
    if not np.array_equal(low, high):
        of_possible = mixture_interval(high, trials, level)
    return of_certain[0], of_possible[1]


def joint_rates(counts: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[Interval, ...]:
    """Each group's rate with ends that hold for all groups together, at any stopping time.

    α is divided by the number of groups (Bonferroni), so that they may depend on each other in any
    way; the trials of one group must be independent draws. Without trials the rate is 0 of [0, 1].
    """
    x, n = np.asarray(counts, dtype=float), np.asarray(trials, dtype=float)
    low, high = mixture_interval(x, n, (1.0 - confidence) / max(len(x), 1))
    rates = np.divide(x, n, out=np.zeros(len(x)), where=n > 0)
    ends = zip(rates.tolist(), low.tolist(), high.tolist(), strict=True)
    return tuple(Interval(*each) for each in ends)


def sure_gap(rates: Sequence[Interval]) -> float:
    """How far the highest and the lowest rate are apart at the least; 0 where none surely are.

    Where the ends hold together, the true spread is below this with at most their chance to fail.
    """
    if not rates:
        return 0.0
    return max(0.0, max(each.low for each in rates) - min(each.high for each in rates))


def sampled_rate(successes: float, trials: float, alpha: float) -> Interval:
    """A rate with ends that hold, at this fixed number of trials, with at least 1 − alpha.

    Clopper and Pearson. If each of m such rates gets alpha / m, all hold together (Bonferroni),
    however they depend on each other; so do `spread_of` and `ratio_of` of any of them.
    """
    return Interval(successes / trials, *clopper_pearson(int(successes), int(trials), alpha))


def spread_of(rates: Sequence[Interval]) -> Interval:
    """The highest less the lowest rate, with ends that hold wherever those of all rates do."""
    points, lows = [each.score for each in rates], sorted(each.low for each in rates)
    others = (lows[int(each.low == lows[0])] for each in rates)  # the lowest end of another group
    widest = (each.high - low for each, low in zip(rates, others, strict=True))
    high = max(widest) if len(rates) > 1 else 0.0
    return Interval(max(points) - min(points), sure_gap(rates), max(0.0, high))


def ratio_of(rates: Sequence[Interval]) -> Interval | None:
    """The lowest divided by the highest rate, in the same way; None where all rates are 0."""
    points = [each.score for each in rates]
    if max(points, default=0.0) <= 0:
        return None
    highest, surely = max(each.high for each in rates), max(each.low for each in rates)
    low = min(each.low for each in rates) / highest if len(rates) > 1 else 1.0
    high = min(1.0, min(each.high for each in rates) / surely) if surely > 0 else 1.0
    return Interval(min(points) / max(points), low, high)


def association(table: ArrayLike) -> float:
    """How closely two characteristics go together, from 0 to 1: Cramér's V without its bias.

    `table` counts people by the values of the one and of the other. Bergsma's correction (2013)
    takes off what chance alone would give; where there is nothing to compare it is 0.
    """
    counts = np.asarray(table, dtype=float)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n, (rows, columns) = counts.sum(), counts.shape
    if n <= 1 or min(rows, columns) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    square = float(((counts - expected) ** 2 / expected).sum() / n)
    square = max(0.0, square - (rows - 1) * (columns - 1) / (n - 1))
    least = min(each - (each - 1) ** 2 / (n - 1) for each in (rows, columns)) - 1
    return min(1.0, float(np.sqrt(square / least))) if least > 0 else 0.0
