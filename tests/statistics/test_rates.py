"""Rates of groups: their ends hold together, whenever one stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from themis.statistics.proportions import Interval
from themis.statistics.rates import joint_rates, sure_gap

RUNS, ROWS = 400, 400
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


def test_a_rule_that_forgot_to_divide_would_be_noticed() -> None:
    undivided = 1 - 0.1 * len(RATES)  # each group has all of it
    assert _misses(undivided) > 0.1


def test_equal_rates_are_hardly_ever_said_to_differ() -> None:
    wrong = np.zeros(RUNS, dtype=bool)
    for low, high, _ in _simulated([0.1, 0.1, 0.1], 0.9):
        gaps = [sure_gap([Interval(0, *ends) for ends in zip(*run, strict=True)])
                for run in zip(low, high, strict=True)]  # fmt: skip
        wrong |= np.array(gaps) > 0
    assert wrong.mean() <= 0.1


def test_rates_that_differ_are_found_and_not_overstated() -> None:
    rng = np.random.default_rng(16)
    gaps = []
    for _ in range(200):
        counts = rng.binomial(1_000, [0.05, 0.2])
        gaps.append(sure_gap(joint_rates(counts, [1_000, 1_000], 0.99)))
    assert np.mean([gap > 0 for gap in gaps]) > 0.99
    assert np.mean([gap > 0.15 for gap in gaps]) <= 0.01


def test_no_trials_say_nothing() -> None:
    assert joint_rates([0], [0], 0.99) == (Interval(0.0, 0.0, 1.0),)
    assert sure_gap(()) == 0 == pytest.approx(sure_gap(joint_rates([0, 0], [0, 9], 0.9)))
