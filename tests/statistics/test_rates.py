"""Rates of groups: their ends hold together, whenever one stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from themis.statistics.proportions import (
    Interval,
    association,
    joint_rates,
    ratio_of,
    sampled_rate,
    spread_of,
    sure_gap,
)

RUNS, ROWS = 200, 400
LOOKS = range(20, ROWS + 1, 20)
RATES = [0.02, 0.1, 0.1, 0.3] * 5


def _simulated(rates: list[float], confidence: float) -> Iterator[tuple[Any, Any, Any]]:
    """The groups' ends in all runs (rows) at each look; all runs are one call, which divides alpha
    among all that it gets.
    """
    rng = np.random.default_rng(14)
    counts = np.cumsum(rng.random((RUNS, ROWS, len(rates))) < rates, axis=1)
    for look in LOOKS:
        seen = counts[:, look - 1]
        found = joint_rates(seen.ravel(), np.full(seen.size, look), 1 - RUNS * (1 - confidence))
        ends = np.array([(each.low, each.high) for each in found]).reshape(*seen.shape, 2)
        yield ends[..., 0], ends[..., 1], seen


def _misses(confidence: float) -> float:
    """How often some true rate is outside at some look."""
    missed = np.zeros(RUNS, dtype=bool)
    for low, high, _ in _simulated(RATES, confidence):
        missed |= ((low > RATES) | (high < RATES)).any(axis=1)
    return float(missed.mean())


@pytest.mark.slow
def test_all_ends_hold_together_at_every_look() -> None:
    assert _misses(0.9) <= 0.1


@pytest.mark.slow
def test_a_rule_that_forgot_to_divide_would_be_noticed() -> None:
    undivided = 1 - 0.1 * len(RATES)  # each group has all of it
    assert _misses(undivided) > 0.1


def test_equal_rates_are_hardly_ever_said_to_differ() -> None:
    wrong = np.zeros(RUNS, dtype=bool)
    for low, high, _ in _simulated([0.1, 0.1, 0.1], 0.9):
        for run in range(RUNS):
            ends = zip(low[run], high[run], strict=True)
            wrong[run] |= sure_gap([Interval(0, *each) for each in ends]) > 0
    assert wrong.mean() <= 0.1


def test_rates_that_differ_are_found_and_not_overstated() -> None:
    rng = np.random.default_rng(16)
    gaps = []
    for _ in range(200):
        counts = rng.binomial(1_000, [0.05, 0.2])
        gaps.append(sure_gap(joint_rates(counts, [1_000, 1_000], 0.99)))
    assert np.mean([gap > 0 for gap in gaps]) > 0.99
    assert np.mean([gap > 0.15 for gap in gaps]) <= 0.01


# Rates at a fixed number of trials ------------------------------------------------------------
TRUE, SIZES = [0.05, 0.3, 0.3, 0.9], [15, 40, 200, 30]


def _held(alpha: float, runs: int = 1_000) -> tuple[float, float]:
    """How often all rates, and how often both their spread and their ratio, are within the ends."""
    rng = np.random.default_rng(5)
    rates = apart = 0
    for counts in rng.binomial(SIZES, TRUE, (runs, len(TRUE))).tolist():
        found = [sampled_rate(x, n, alpha) for x, n in zip(counts, SIZES, strict=True)]
        inside = [each.low <= p <= each.high for each, p in zip(found, TRUE, strict=True)]
        rates += all(inside)
        spread, ratio = spread_of(found), ratio_of(found)
        assert ratio is not None
        both = spread.low <= max(TRUE) - min(TRUE) <= spread.high
        both &= ratio.low <= min(TRUE) / max(TRUE) <= ratio.high
        apart += both
        assert both or not all(inside)  # they hold wherever the rates' ends do
    return rates / runs, apart / runs


def test_sampled_rates_hold_together_where_alpha_is_divided_and_not_else() -> None:
    for confidence in (0.8, 0.95):
        slack = 3 * np.sqrt(confidence * (1 - confidence) / 1_000)
        assert min(_held((1 - confidence) / len(TRUE))) >= confidence - slack
    rates, _ = _held(1 - 0.8)
    assert rates < 0.7  # a rule that divides nothing would be noticed


def test_the_widest_spread_is_between_two_groups_and_not_within_one() -> None:
    wide, narrow = Interval(0.5, 0.0, 1.0), Interval(0.5, 0.4, 0.6)
    assert spread_of([wide, narrow]) == Interval(0.0, 0.0, pytest.approx(0.6))


def test_association_is_1_where_one_tells_the_other_and_0_by_chance_alone() -> None:
    assert association(np.diag([30, 20, 10])) == pytest.approx(1.0)
    assert association([[10, 10], [20, 20]]) == 0.0
    assert association([[7, 3]]) == association([[0, 0], [0, 0]]) == 0.0
    assert association(np.eye(3)) == 0.0  # everybody has values that nobody else has
    rng = np.random.default_rng(6)
    tables = rng.multinomial(60, np.full(40, 1 / 40), 300).reshape(300, 2, 20)
    plain = [np.sqrt(_chi_square(each) / each.sum()) for each in tables]
    found = [association(each) for each in tables]
    assert np.mean(plain) > 0.4  # what chance alone gives without the correction
    assert np.mean(found) < 0.15
    strong = rng.multinomial(5_000, np.array([0.4, 0.1, 0.1, 0.4])).reshape(2, 2)
    assert association(strong) == pytest.approx(0.6, abs=0.05)


def _chi_square(table: Any) -> float:
    table = table[:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())
