"""Are ends for the means of numbers valid, exact in what they count, and worth it?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from themis.statistics.groups import GroupRule, GroupState
from themis.statistics.intervals import bet_fractions
from themis.statistics.numbers import Bets, Grid, MeanEnds, Tally, in_units, mean_upper
from themis.statistics.proportions import Interval, ProportionRule
from themis.statistics.reruns import interval_confidence

Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Numbers]
EVIDENCE, FRACTIONS = 400.0, bet_fractions(0.05)
GRID = Grid.around_zero(0.0125)

signed = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60).map(np.array)


def ends_of(numbers: Numbers, grid: Grid = GRID) -> float:
    tally = Tally.of_none(grid, (1,))
    tally.count(..., grid.tally(in_units(numbers)[:, None]))
    return float(mean_upper(grid.counts(tally), grid.points, EVIDENCE, FRACTIONS)[0])


@given(signed)
def test_the_numbers_themselves_are_evidence_against_every_mean_above_the_end(d: Numbers) -> None:
    end = ends_of(d)
    assert end >= d.mean()
    for mean in (end, (1 + end) / 2):
        if mean < 1:
            bets = np.array(FRACTIONS)[:, None] / (1 - mean)
            assert np.prod(1 + bets * (mean - d), axis=1).mean() >= EVIDENCE * (1 - 1e-6)


# Each draws rows with a number for each group; the truth is the largest difference of the means.


# Each draws rows with a number for each group; the truth is the largest difference of the means.
def constant(rng: np.random.Generator, rows: int) -> Numbers:
    return rng.random(rows)[:, None] / 2 + [0.1, 0.0]


def rarely_all(rng: np.random.Generator, rows: int) -> Numbers:
    """One in 30 gets everything: before it is seen there is nothing to be seen."""
    return np.stack([np.where(rng.random(rows) < 1 / 30, 1.0, 0.3), np.full(rows, 0.3)], axis=1)


def rarely_none(rng: np.random.Generator, rows: int) -> Numbers:
    """More for all but one in 30, who loses as much as the others gain."""
    return np.stack([np.where(rng.random(rows) < 1 / 30, 0.0, 0.3), np.full(rows, 0.29)], axis=1)


def apart(rng: np.random.Generator, rows: int) -> Numbers:
    return np.asarray(rng.beta(0.1, 0.5, (rows, 3)))


RUNS = 50
WORLDS: list[tuple[Draw, float, tuple[float, ...]]] = [
    (constant, 0.1, (0.35, 0.25)),
    (rarely_all, 0.7 / 30, (0.3 + 0.7 / 30, 0.3)),
    (rarely_none, 0.0, (0.29, 0.29)),
    (apart, 0.0, (1 / 6, 1 / 6, 1 / 6)),
]


def run(rule: GroupRule, draw: Draw, groups: int, seed: int) -> GroupState:
    """One run to its end."""
    rng, state, rows = np.random.default_rng(seed), rule.start(groups, numbers=True), 0
    for look in rule.looks():
        new = draw(rng, look - rows)[:, state.active]
        state.add(new, new)
        state.look()
        rows = look
        if state.done:
            break
    return state


@pytest.mark.parametrize("error", [0.1, pytest.param(0.03, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("draw", "truth", "means"), WORLDS)
def test_intervals_hold_as_often_as_stated(
    draw: Draw, truth: float, means: tuple[float, ...], error: float
) -> None:
    """Ends only come closer, so that the last ones miss the truth if any did."""
    missed = alone = 0
    for seed in range(RUNS):
        state = run(GroupRule(0.2, error), draw, len(means), seed)
        missed += not state.low <= truth <= state.high
        ends = zip(state.group_intervals(), means, strict=True)
        alone += any(not each.low <= mean <= each.high for each, mean in ends)
    assert missed <= 0.2 * RUNS
    assert alone <= 0.2 * RUNS


def test_rows_that_count_eight_times_would_be_noticed() -> None:
    def hasty(rng: np.random.Generator, rows: int) -> Numbers:
        return np.repeat(apart(rng, -(-rows // 8)), 8, axis=0)[:rows]

    states = [run(GroupRule(0.2, 0.1), hasty, 3, seed) for seed in range(100)]
    assert sum(state.low > 0 or state.crossed for state in states) > 20


def test_unknown_numbers_may_be_anything() -> None:
    rng = np.random.default_rng(4)
    numbers = constant(rng, 2000)
    unknown = rng.random(numbers.shape) < 0.1
    state = GroupRule(0.01, 0.05).start(2, numbers=True)
    low, high = np.where(unknown, 0.0, numbers), np.where(unknown, 1.0, numbers)
    for first in range(0, 2000, 500):
        state.add(low[first : first + 500], high[first : first + 500])
        state.look()
    assert state.unknown == unknown.sum()
    for chance in (0.0, 1.0):
        filled = np.where(unknown, [chance, 1 - chance], numbers).mean(axis=0)
        assert state.low <= abs(filled[0] - filled[1]) <= state.high
    means = low.mean(axis=0), high.mean(axis=0)
    for ends, least, most in zip(state.group_intervals(), *means, strict=True):
        assert ends.low < least <= most < ends.high


# One mean, of distances: as long as all are 0 or 1 the rule of proportions stops the run ----------
def mixed(rng: np.random.Generator, rows: int, *, ones: float, odd: float, value: float) -> Numbers:
    """Zeros and ones, and now and then another number: which rule stops a run is chance."""
    flips = (rng.random(rows) < ones).astype(float)
    return np.where(rng.random(rows) < odd, value, flips)


def known_mean(
    draw: Draw, seed: int, confidence: float, error: float, times: int = 1
) -> tuple[Interval, int]:
    """The mean at the end of a run, and its rows, each of which is counted so often."""
    rng, rule, seen = np.random.default_rng(seed), ProportionRule(confidence, error), 0
    means, flips = MeanEnds(interval_confidence(confidence), error), 0
    for look in rule.looks(endless=True):
        new = np.repeat(draw(rng, look - seen), times)
        means.add(new, new)
        flips, seen = flips + int((new == 1).sum()), look
        if means.are_whole and rule.done(flips, seen * times):
            return rule.interval(flips, seen * times), seen
        if not means.are_whole and means.done:
            break
    return means.interval, seen


@pytest.mark.some_slow(core=5)
@pytest.mark.parametrize(
    ("ones", "odd", "value"),
    [(0.0, 0.013, 0.5), (0.0, 0.13, 0.02), (0.1, 0.04, 0.99), (0.5, 0.013, 0.5), (0.5, 0.13, 0.02)],
)
def test_a_mean_is_known_as_often_as_stated_whichever_rule_stops_the_run(
    ones: float, odd: float, value: float
) -> None:
    draw, truth = partial(mixed, ones=ones, odd=odd, value=value), odd * value + (1 - odd) * ones
    runs = [known_mean(draw, seed, 0.8, 0.1)[0] for seed in range(100)]
    assert sum(not each.low <= truth <= each.high for each in runs) <= 0.2 * 100


def test_numbers_that_count_eight_times_in_one_mean_would_be_noticed() -> None:
    draw = partial(mixed, ones=0.3, odd=0.05, value=0.5)
    runs = [known_mean(draw, seed, 0.8, 0.1, times=8)[0] for seed in range(100)]
    assert sum(not each.low <= 0.31 <= each.high for each in runs) > 20


@pytest.mark.parametrize(("error", "most"), [(0.05, 120), (0.01, 900)])
def test_numbers_that_vary_little_take_few_rows_and_flips_no_more_than_before(
    error: float, most: int
) -> None:
    small = known_mean(lambda rng, rows: rng.random(rows) * 0.2, 1, 0.99, error)
    assert small[1] <= most
    flips = partial(mixed, ones=0.3, odd=0.0, value=0.0)
    rule, rng, seen, count = ProportionRule(0.99, error), np.random.default_rng(1), 0, 0
    for look in rule.looks():
        count, seen = count + int(flips(rng, look - seen).sum()), look
        if rule.done(count, seen):
            break
    assert known_mean(flips, 1, 0.99, error) == (rule.interval(count, seen), seen)


def test_what_a_number_may_still_be_is_between_the_ends() -> None:
    means = MeanEnds(0.9, 0.05)
    means.add(np.tile([0.2, 0.0], 500), np.tile([0.2, 1.0], 500))
    assert means.interval.low <= means.interval.score == 0.1
    assert means.interval.high >= 0.6
    assert means.done


@pytest.mark.parametrize("likely", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("points", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.25)])
def test_bets_that_follow_what_was_seen_fail_no_more_often_than_they_may(
    points: tuple[float, float], likely: float
) -> None:
    mean, failed = points[0] + likely * (points[1] - points[0]), 0.0
    for path in product((0, 1), repeat=6):  # the chance that the end is ever below, exactly
        bets, ever = Bets(GRID, 1), False
        for first in range(0, 6, 2):
            bets.count(in_units(np.array([[points[each]] for each in path[first : first + 2]])))
            ever |= float(bets.upper(2.0, FRACTIONS)[0]) < mean
            bets.choose(0, 0.05)
        failed += ever * likely ** sum(path) * (1 - likely) ** (6 - sum(path))
    assert failed <= 1 / 2.0
