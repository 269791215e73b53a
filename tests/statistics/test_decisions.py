"""Deciding against a threshold: the error is at most delta, computed over all sample paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from themis.statistics.thresholds import Spot, ThresholdRule


def outcome(rule: ThresholdRule, p: float) -> tuple[float, float, float]:
    """P(above), P(below) and the mean number of samples, by dynamic programming."""
    above = below = mean = 0.0
    alive = {0: 1.0}  # hits → probability of being undecided with so many
    for n in range(1, rule.max_samples + 1):
        step: dict[int, float] = {}
        for hits, chance in alive.items():
            step[hits] = step.get(hits, 0.0) + chance * (1 - p)
            step[hits + 1] = step.get(hits + 1, 0.0) + chance * p
        alive = {}
        for hits, chance in step.items():
            decision = rule.decide(hits, n - hits)
            if decision == "above":
                above, mean = above + chance, mean + chance * n
            elif decision == "below":
                below, mean = below + chance, mean + chance * n
            elif chance > 1e-15:
                alive[hits] = chance
        if not alive:
            break
    return above, below, mean


CASES = [(0.75, 0.05, 0.02), (0.1, 0.05, 0.05), (0.5, 0.1, 0.01), (0.03, 0.05, 0.05)]


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize(("threshold", "error", "delta"), CASES)
def test_each_error_is_at_most_delta(threshold: float, error: float, delta: float) -> None:
    rule = ThresholdRule(threshold, error, delta)
    wrong_above, _, _ = outcome(rule, rule.floor)
    _, wrong_below, _ = outcome(rule, rule.ceiling)
    assert wrong_above <= delta
    assert wrong_below <= delta


def test_a_rule_that_asks_for_too_little_evidence_would_be_noticed() -> None:
    lenient = ThresholdRule(0.75, 0.05, 0.5)
    assert outcome(lenient, lenient.floor)[0] > 0.02


@pytest.mark.parametrize("spot", ["none", "some"])
@pytest.mark.parametrize(("threshold", "error", "delta"), CASES)
def test_the_evidence_for_above_has_a_mean_of_one_where_that_is_wrong(
    threshold: float, error: float, delta: float, spot: Spot
) -> None:
    """So it ever reaches 1/δ with a chance of at most δ, however many samples are drawn."""
    rule = ThresholdRule(threshold, error, delta, spot)
    for n in (1, 50, 2_000):
        hits = np.arange(n + 1)
        chances = stats.binom.logpmf(hits, n, rule.floor)
        mean = np.exp(chances + rule._evidence_above(hits, n - hits)).sum()
        assert mean == pytest.approx(1.0, abs=1e-9)


def test_clear_cases_take_few_samples() -> None:
    rule = ThresholdRule(0.75, 0.05, 0.01)
    means = {p: outcome(rule, p)[2] for p in (0.0, 0.5, 1.0)}
    assert means[0.0] <= 6
    assert means[0.5] <= 40
    assert means[1.0] <= 25


def test_unknown_samples_never_help_either_decision() -> None:
    rule = ThresholdRule(0.5, 0.1, 0.05)
    assert rule.decide(60, 0) == "above"
    assert rule.decide(0, 60) == "below"
    assert rule.decide(0, 0, 60) == "undecided"
    assert rule.decide(30, 0, 40) == "undecided"
    assert rule.decide(0, 0, 10 * rule.max_samples) == "undecided"


@pytest.mark.parametrize("start", [(0, 0), (5, 2), (2, 9), (30, 12)])
def test_no_decision_is_missed_by_drawing_safe_steps_at_once(start: tuple[int, int]) -> None:
    rule = ThresholdRule(0.6, 0.1, 0.02)
    hits, misses = start
    steps = rule.safe_steps(hits, misses)
    assert steps >= 1
    for drawn in range(1, steps):
        for more in range(drawn + 1):
            assert rule.decide(hits + more, misses + drawn - more) == "undecided"
