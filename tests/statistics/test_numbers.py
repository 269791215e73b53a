"""Are ends for the means of numbers valid, exact in what they count, and worth it?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from themis.statistics.intervals import bet_fractions, difference_upper
from themis.statistics.numbers import FEW, UNIT, Grid, Tally, in_units, log_evidence, mean_upper
from themis.statistics.spreads import GroupRule, GroupState

Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Numbers]
EVIDENCE, FRACTIONS = 400.0, bet_fractions(0.05)
GRID = Grid.around_zero(0.0125)

signed = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60).map(np.array)


def ends_of(numbers: Numbers, grid: Grid = GRID) -> float:
    tally = Tally.of_none(grid, (1,))
    tally.count(..., grid.tally(in_units(numbers)[:, None]))
    return float(mean_upper(grid.counts(tally), grid.points, EVIDENCE, FRACTIONS)[0])


def test_of_minus_one_zero_and_one_the_ends_are_those_of_rates() -> None:
    counts = np.random.default_rng(1).integers(0, 60, (3, 500)).astype(float)
    ends = mean_upper(counts, np.array([-1.0, 0.0, 1.0]), EVIDENCE, FRACTIONS)
    rates = difference_upper(counts[2], counts[1], counts[0], EVIDENCE, fractions=FRACTIONS)
    assert ends == pytest.approx(np.minimum(rates + UNIT, 1.0), abs=1e-12)


@given(signed)
def test_the_numbers_themselves_are_evidence_against_every_mean_above_the_end(d: Numbers) -> None:
    end = ends_of(d)
    assert end >= d.mean()
    for mean in (end, (1 + end) / 2):
        if mean < 1:
            bets = np.array(FRACTIONS)[:, None] / (1 - mean)
            assert np.prod(1 + bets * (mean - d), axis=1).mean() >= EVIDENCE * (1 - 1e-6)


@given(signed)
def test_counts_do_not_depend_on_order_or_on_parts(d: Numbers) -> None:
    units = in_units(d)[:, None]
    whole = GRID.tally(units)
    parts = Tally.of_none(GRID, (1,))
    for part in np.array_split(units[::-1], 3):
        parts.count(..., GRID.tally(part))
    assert np.array_equal(whole.numbers, parts.numbers)
    assert np.array_equal(whole.beyond, parts.beyond)


@given(signed)
def test_numbers_of_the_other_sign_are_counted_from_the_same_tally(d: Numbers) -> None:
    tallies = []
    for tally in (
        GRID.tally(in_units(-d)[:, None]),
        GRID.opposite(GRID.tally(in_units(d)[:, None])),
    ):
        each = Tally.of_none(GRID, (1,))
        each.count(..., tally)
        tallies.append(GRID.counts(each))
    assert tallies[0] == pytest.approx(tallies[1], abs=1e-12)


def test_the_mean_on_the_grid_is_that_of_the_numbers() -> None:
    d = np.random.default_rng(2).uniform(-1, 1, 1000)
    tally = Tally.of_none(GRID, (1,))
    tally.count(..., GRID.tally(in_units(d)[:, None]))
    counts = GRID.counts(tally)[:, 0]
    assert counts.sum() == pytest.approx(1000)
    assert counts @ GRID.points / 1000 == pytest.approx(d.mean(), abs=UNIT)


# Each draws rows with a number for each group; the truth is the largest difference of the means.
def constant(rng: np.random.Generator, rows: int) -> Numbers:
    base = rng.random(rows) / 2
    return np.stack([base + 0.1, base], axis=1)


def rarely_all(rng: np.random.Generator, rows: int) -> Numbers:
    """One in 30 gets everything: before it is seen there is nothing to be seen."""
    return np.stack([np.where(rng.random(rows) < 1 / 30, 1.0, 0.3), np.full(rows, 0.3)], axis=1)


def rarely_none(rng: np.random.Generator, rows: int) -> Numbers:
    """More for all but one in 30, who loses as much as the others gain."""
    return np.stack([np.where(rng.random(rows) < 1 / 30, 0.0, 0.3), np.full(rows, 0.29)], axis=1)


def apart(rng: np.random.Generator, rows: int) -> Numbers:
    return np.asarray(rng.beta(0.1, 0.5, (rows, 3)))


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
    for seed in range(100):
        state = run(GroupRule(0.8, error), draw, len(means), seed)
        missed += not state.low <= truth <= state.high
        ends = zip(state.group_intervals(), means, strict=True)
        alone += any(not each.low <= mean <= each.high for each, mean in ends)
    assert missed <= 20
    assert alone <= 20


def hasty(rng: np.random.Generator, rows: int, *, draw: Draw) -> Numbers:
    return np.repeat(draw(rng, -(-rows // 8)), 8, axis=0)[:rows]


def test_rows_that_count_eight_times_would_be_noticed() -> None:
    draw = partial(hasty, draw=apart)
    missed = 0
    for seed in range(100):
        state = run(GroupRule(0.8, 0.1), draw, 3, seed)
        missed += state.low > 0 or state.crossed
    assert missed > 20


@pytest.mark.parametrize(("error", "times"), [(0.05, 3), (0.02, 6)])
def test_a_small_variance_takes_fewer_rows_than_random_outcomes(error: float, times: int) -> None:
    rule = GroupRule(0.99, error)
    rng, random, rows = np.random.default_rng(3), rule.start(2), 0
    for look in rule.looks():
        numbers = constant(rng, look - rows)
        flags = numbers > rng.random((len(numbers), 1))
        random.add(flags, flags)
        random.look()
        rows = look
        if random.done:
            break
    state = run(rule, constant, 2, 3)
    assert rows > times * state.trials[0]


def test_unknown_numbers_may_be_anything() -> None:
    rng = np.random.default_rng(4)
    numbers = constant(rng, 2000)
    unknown = rng.random(numbers.shape) < 0.1
    state = GroupRule(0.99, 0.05).start(2, numbers=True)
    low, high = np.where(unknown, 0.0, numbers), np.where(unknown, 1.0, numbers)
    for first in range(0, 2000, 500):
        state.add(low[first : first + 500], high[first : first + 500])
        state.look()
    assert state.unknown == unknown.sum()
    for chance in (0.0, 1.0):
        filled = np.where(unknown, [chance, 1 - chance], numbers).mean(axis=0)
        assert state.low <= abs(filled[0] - filled[1]) <= state.high
    for ends, least, most in zip(
        state.group_intervals(), low.mean(axis=0), high.mean(axis=0), strict=True
    ):
        assert ends.low < least
        assert most < ends.high


def test_groups_that_are_settled_are_not_run_on() -> None:
    def three(rng: np.random.Generator, rows: int) -> Numbers:
        base = rng.random(rows) / 4
        return np.stack([base, base + 0.1, base + rng.random(rows) / 2], axis=1)

    state = run(GroupRule(0.99, 0.02), three, 3, 5)
    assert not state.crossed
    assert state.active.sum() == 2
    assert state.trials.min() < state.trials.max()
    assert state.low <= 0.25 <= state.high


@pytest.mark.parametrize(("difference", "proven"), [(0.06, True), (0.05, True), (0.005, False)])
def test_a_proof_that_is_half_there_is_waited_for(difference: float, proven: bool) -> None:
    def alike(rng: np.random.Generator, rows: int) -> Numbers:
        base = rng.random(rows) / 2
        return np.stack([base + difference, base], axis=1)

    state = run(GroupRule(0.99, 0.05), alike, 2, 6)
    assert (state.low > 0) == proven
    assert state.trials[0] <= 320  # twice as many as without a difference


@given(signed)
def test_the_evidence_against_an_end_is_what_it_takes(d: Numbers) -> None:
    tally = Tally.of_none(GRID, (1,))
    tally.count(..., GRID.tally(in_units(d)[:, None]))
    counts = GRID.counts(tally)
    (end,) = mean_upper(counts, GRID.points, EVIDENCE, FRACTIONS)
    if end < 0.999:
        found = log_evidence(counts, GRID.points, float(end) - UNIT, FRACTIONS)
        assert found[0] == pytest.approx(np.log(EVIDENCE), abs=1e-4)


def test_many_groups_are_counted_as_outcomes() -> None:
    rule = GroupRule(0.99, 0.05)
    assert rule.start(FEW, numbers=True).of_numbers
    assert not rule.start(FEW + 1, numbers=True).of_numbers


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("error", [1e-9, 1e-6, 0.8, 0.99])
def test_ends_are_numbers_whatever_the_error_is(error: float) -> None:
    rng, state = np.random.default_rng(7), GroupRule(0.99, error).start(3, numbers=True)
    numbers = np.where(rng.random((500, 3)) < 0.3, 1.0, rng.random((500, 3)))
    for _ in range(2):
        seen = numbers[:, state.active]
        state.add(seen, seen)
        state.look()
    assert 0 <= state.low <= state.high < 0.5
    assert all(0.4 < each.low < each.score < each.high < 0.9 for each in state.group_intervals())
