"""Differences of numbers: ends for the means of groups, from counts on a grid.

A number between two points of a grid counts as a part of each, such that its mean stays. The wealth
of a gambler is then no more than with the number itself, as the logarithm is concave: the ends are
a little wider, and hold as they do for numbers that only take those points. Numbers are whole
multiples of `UNIT`, so that sums do not depend on the order of rows or on how they are cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.statistics.intervals import Floats, bet_fractions
from themis.statistics.proportions import Interval
from themis.statistics.special import xlogy

Counts = NDArray[np.integer[Any]]

UNITS = 1 << 30
UNIT = 1.0 / UNITS
FEW = 24  # groups of which numbers are compared: of more it would take too long
AT_ONCE = 1 << 16  # numbers: sums of so many offsets are exact as floats, and copies stay small
_SUM_BITS, _DIGITS = 42, 12  # of numbers that are added up, and of their mean
OF_CHOSEN = 0.75  # of what is bet, in the hands of who chooses; others lose ln 4 of evidence
_FARTHEST = 36.0  # beyond this, 1 − exp(−t) is 1


def in_units(shares: NDArray[Any]) -> Counts:
    """Shares of a scale, from 0 to 1, as whole multiples of `UNIT`."""
    return np.asarray(np.rint(shares * UNITS), dtype=np.int64)


@dataclass(frozen=True)
class Grid:
    """Points in rising order, the first and last of which bound all numbers."""

    points: Floats

    @classmethod
    def around_zero(cls, finest: float) -> Grid:
        """From −1 to 1: two points to each halving, down to `finest` or less, and 0."""
        halves = [1.0]
        while halves[-1] > max(finest, 2.0**-24):  # cells are many units wide
            halves.append(halves[-1] / 2.0)
        inner = [part * half for half in halves[:-1] for part in (1.0, 0.75)] + halves[-1:]
        return cls(np.array([-each for each in inner] + [0.0] + inner[::-1]))

    @classmethod
    def of_distances(cls, finest: float) -> Grid:
        """From 0 to 1: even steps, and finer ones near 0."""
        near = cls.around_zero(finest).points
        return cls(np.union1d(near[near >= 0.0], cls.of_shares().points))

    @classmethod
    def of_shares(cls, cells: int = 64) -> Grid:
        """From 0 to 1 in even steps."""
        return cls(np.arange(cells + 1) / cells)

    def tally(self, numbers: Counts) -> Tally:
        """Where the numbers of each column lie; they are in units."""
        starts, (rows, columns) = self._starts, numbers.shape
        cells = len(starts) - 1
        result = Tally.of_none(self, (columns,))
        own, step = np.arange(columns) * cells, max(AT_ONCE // max(columns, 1), 1)
        for first in range(0, rows, step):
            part = numbers[first : first + step]
            cell = np.minimum(np.searchsorted(starts, part, side="right") - 1, cells - 1)
            place, beyond = (cell + own).ravel(), (part - starts[cell]).ravel()
            result.numbers += np.bincount(place, minlength=columns * cells).reshape(columns, cells)
            sums = np.bincount(place, beyond, columns * cells).reshape(columns, cells)
            result.beyond += sums.astype(np.int64)
        return result

    def opposite(self, tally: Tally) -> Tally:
        """The same numbers with the other sign; the grid must be symmetric."""
        numbers = tally.numbers[..., ::-1]
        return Tally(numbers, numbers * np.diff(self._starts) - tally.beyond[..., ::-1])

    def counts(self, tally: Tally) -> Floats:
        """How often each point is taken, one column for each row of a tally."""
        upper = tally.beyond / np.diff(self._starts)
        counts = np.zeros((len(self.points), len(upper)))
        counts[1:] += upper.T
        counts[:-1] += (tally.numbers - upper).T
        return counts

    @cached_property
    def _starts(self) -> Counts:
        return in_units(self.points)


@dataclass
class Tally:
    """How many numbers lie in each cell of a grid, and how far beyond its start in all."""

    numbers: Counts
    beyond: Counts  # in units

    @classmethod
    def of_none(cls, grid: Grid, shape: tuple[int, ...]) -> Tally:
        """So many tallies in which nothing is counted yet."""
        return cls(*np.zeros((2, *shape, len(grid.points) - 1), dtype=np.int64))

    def count(self, places: Any, more: Tally) -> None:
        """Add what was seen at these places, each of which is named once."""
        self.numbers[places] += more.numbers
        self.beyond[places] += more.beyond

    def take(self, places: Any) -> Tally:
        """Those at these places alone."""
        return Tally(self.numbers[places], self.beyond[places])


def mean_upper(
    counts: Floats,
    points: Floats,
    evidence: float,
    fractions: Sequence[float],
    chosen: Mapping[float, Floats] | None = None,
) -> Floats:
    """The upper ends for the means of numbers of at most 1, valid at any stopping time.

    `counts` (points × pairs) says how often each point was taken. A mean is ever above its end with
    probability at most 1/evidence: the end is the root in μ of E(μ) = evidence, where E averages,
    over the fractions c, the wealth ∏ (1 + λ(μ − x)), λ = c/(1 − μ), of a gambler who bets on "the
    mean is below μ". With t = −ln(1 − μ) a factor is (1 − c) + c·(1 − x)·exp(t), so that ln E is
    convex and increasing in t. What numbers lose when they are made multiples of `UNIT` is added.

    `chosen` has the counts by a fraction that was chosen before they were seen: three quarters of
    what is bet goes to the gambler who does so, and the rest to those who stay with theirs.

    Minus the upper end of numbers of the other sign is a lower end. It stays valid when they come
    from pairs that change, as long as each pair is chosen before its numbers are seen: then it is a
    lower end for the largest of the pairs' means.
    """
    below = 1.0 - points
    rest = below > 0
    some = counts[rest].sum(axis=0) > 0
    ends = np.ones(counts.shape[1])
    if some.any():
        used = rest & counts[:, some].any(axis=1)

        def taken(each: Floats) -> _Taken:
            return _Taken(each[np.ix_(used, some)], each[~rest][:, some].sum(axis=0))

        own = {fraction: taken(each) for fraction, each in (chosen or {}).items()}
        gamblers = _Gamblers(taken(counts), below[used], fractions, own)
        t = gamblers.solve(math.log(evidence))
        ends[some] = np.where(t < _FARTHEST, np.minimum(-np.expm1(-t) + UNIT, 1.0), 1.0)
    return ends


class Bets:
    """Numbers of some pairs, each under the bet that was chosen before it was seen.

    A gambler who bets as the variance that was seen so far suggests is as rich as the best of those
    who keep to one fraction, or nearly so, where an average over them is worth less than each.
    """

    def __init__(self, grid: Grid, pairs: int) -> None:
        self._grid, self._pairs, self._fraction = grid, pairs, 0.5
        self._tallies: dict[float, Tally] = {}

    def count(self, numbers: Counts) -> None:
        """Add rows of numbers, in units: a column for each pair."""
        if self._fraction not in self._tallies:
            self._tallies[self._fraction] = Tally.of_none(self._grid, (self._pairs,))
        self._tallies[self._fraction].count(..., self._grid.tally(numbers))

    def upper(self, evidence: float, fractions: Sequence[float]) -> Floats:
        """The ends of `mean_upper`."""
        by_fraction = {each: self._grid.counts(tally) for each, tally in self._tallies.items()}
        if not by_fraction:
            return np.ones(self._pairs)
        counts = np.sum(list(by_fraction.values()), axis=0)
        return mean_upper(counts, self._grid.points, evidence, fractions, by_fraction)

    def choose(self, pair: int, error: float) -> None:
        """Choose the bet on the next rows: the best one on "this pair's mean is below it + error".

        λ = error/(variance + error²) is, nearly, what makes the wealth grow fastest.
        """
        points, seen = self._grid.points, np.zeros(len(self._grid.points))
        for tally in self._tallies.values():
            seen += self._grid.counts(tally.take([pair]))[:, 0]
        number = float(seen.sum())
        mean = float(seen @ points) / max(number, 1.0)
        variance = float(seen @ (points - mean) ** 2 + 0.25) / (number + 1.0)  # ¼ to begin with
        best = error / (variance + error**2) * max(1.0 - mean - error, error)
        steps = round(-2.0 * math.log2(best))
        self._fraction = 2.0 ** (-max(steps, 1) / 2.0)  # all of it is never bet


def share_ends(
    grid: Grid, least: Tally, most: Tally, evidence: float, fractions: Sequence[float]
) -> tuple[Floats, Floats]:
    """The ends for means of shares of 1, in tallies of what each is at least, and at most."""
    # A lower end is 1 minus the upper end of what is missing to 1.
    missing = mean_upper(grid.counts(least), 1.0 - grid.points, evidence, fractions)
    return 1.0 - missing, mean_upper(grid.counts(most), grid.points, evidence, fractions)


def log_evidence(counts: Floats, points: Floats, mean: float, fractions: Sequence[float]) -> Floats:
    """ln E(μ) of `mean_upper` at one μ below 1: what speaks against a mean of at least that."""
    fraction = np.asarray(fractions)[:, None]
    factor = 1.0 + fraction * (mean - points) / (1.0 - mean)
    wealth = xlogy(counts.T[:, None], factor).sum(axis=2)
    top = wealth.max(axis=1)
    return np.asarray(top + np.log(np.exp(wealth - top[:, None]).mean(axis=1)))


class _Taken(NamedTuple):
    """How often points below 1 were taken, and 1 itself."""

    counts: Floats
    most: Floats


class _Gamblers(NamedTuple):
    """Who bets in `mean_upper`: those who keep to a fraction, and one who chooses."""

    taken: _Taken
    below: Floats
    fractions: Sequence[float]
    chosen: Mapping[float, _Taken]

    def solve(self, log_evidence: float) -> Floats:
        """The roots in t by Newton's method; each pair ends by itself.

        It stays to the right of the root: what is left of its error makes the end wider.
        """
        t = self._first_guess(log_evidence)
        running = np.ones(t.shape, dtype=np.bool_)
        for _ in range(60):  # never reached: about six are needed
            wealth, slopes = self._wealth(t)
            top = wealth.max(axis=0)
            share = np.exp(wealth - top)
            total = share.sum(axis=0)
            slope = (share * slopes).sum(axis=0)
            # From the left of the root it may overshoot by far, so that exp overflows.
            # Newton's method goes no farther from 0 in one step.
            step = np.maximum((top + np.log(total) - log_evidence) * total / slope, -2.0)
            t = np.where(running, np.minimum(t - step, _FARTHEST), t)
            running &= (np.abs(step) >= 1e-7) & (t < _FARTHEST)
            if not running.any():
                break
        return t

    def _wealth(self, t: Floats) -> tuple[Floats, Floats]:
        """The logarithm of what each has, its share of the stakes included, and its slope in t."""
        kept = self._of_fractions(self.taken, np.asarray(self.fractions), t)
        share = 1.0 if not self.chosen else 1.0 - OF_CHOSEN
        wealth, slope = kept[0] + math.log(share / len(self.fractions)), kept[1]
        if self.chosen:
            own = [self._of_fractions(each, np.array([c]), t) for c, each in self.chosen.items()]
            one, its_slope = (sum(each) for each in zip(*own, strict=True))
            wealth = np.vstack([wealth, one + math.log(OF_CHOSEN)])
            slope = np.vstack([slope, its_slope])
        return wealth, slope

    def _of_fractions(self, taken: _Taken, fractions: Floats, t: Floats) -> tuple[Floats, Floats]:
        fraction = fractions[:, None, None]
        bet = fraction * self.below[:, None] * np.exp(t)
        factor = 1.0 - fraction + bet
        wealth = xlogy(taken.most, 1.0 - fraction[:, 0]) + (taken.counts * np.log(factor)).sum(
            axis=1
        )
        return wealth, (taken.counts * (bet / factor)).sum(axis=1)

    def _first_guess(self, log_evidence: float) -> Floats:
        """t at the mean plus a normal margin: any start converges."""
        counts, most = self.taken
        n = counts.sum(axis=0) + most
        gap = (counts * self.below[:, None]).sum(axis=0) / n
        variance = (counts * self.below[:, None] ** 2).sum(axis=0) / n - gap**2
        margin = (
            np.sqrt(2.0 * np.maximum(variance, 0.0) * log_evidence / n) + 2.0 * log_evidence / n
        )
        return np.asarray(-np.log(np.maximum(gap - margin, 0.01)))


class MeanEnds:
    """The mean of numbers from 0 to 1, with ends that hold jointly, at any stopping time.

    Half of α is for each end, as of groups. Of numbers that stay unknown the low end counts the
    least that they can be, and the high end the most.
    """

    def __init__(self, confidence: float, error: float) -> None:
        self._error, self._fractions = error, bet_fractions(error)
        self._evidence = 2.0 / (1.0 - confidence)
        self._grid = Grid.of_distances(self._fractions[-1] / 5.0)
        self._least, self._most = (Tally.of_none(self._grid, (1,)) for _ in range(2))
        self._sums, self._count = [0, 0], 0
        self._low, self._high, self._looked = 0.0, 1.0, 0
        self.are_whole = True  # all were 0 or 1

    def add(self, least: Floats, most: Floats) -> None:
        """Count numbers: what each is at least, and at most."""
        for place, (tally, each) in enumerate(((self._least, least), (self._most, most))):
            tally.count(..., self._grid.tally(in_units(each)[:, None]))
            self._sums[place] += int(np.rint(np.ldexp(each, _SUM_BITS)).astype(np.int64).sum())
        self._count += len(least)
        self.are_whole &= bool(((least == 0.0) | (least == 1.0)).all())

    @property
    def done(self) -> bool:
        """Whether the mean is known to ± error, but for numbers that stay unknown."""
        low, high = self.ends
        least, most = self._means
        return high - low <= 2.0 * self._error + most - least

    @property
    def interval(self) -> Interval:
        """The mean that was seen, and the ends, which are made to contain it."""
        score = self._means[0]
        low, high = self.ends
        return Interval(score, min(low, score), max(high, score))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends, which come closer with each look."""
        if self._looked < self._count:
            self._looked = self._count
            bets = self._evidence, self._fractions
            [low], [high] = share_ends(self._grid, self._least, self._most, *bets)
            self._low, self._high = max(self._low, float(low)), min(self._high, float(high))
        return self._low, self._high

    @property
    def _means(self) -> tuple[float, float]:
        least, most = (each / (max(self._count, 1) << _SUM_BITS) for each in self._sums)
        return round(least, _DIGITS), round(most, _DIGITS)
