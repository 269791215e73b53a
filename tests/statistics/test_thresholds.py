"""Deciding against a threshold: the error is at most delta, computed over all sample paths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from themis.statistics.thresholds import Spot, SpotProofs, ThresholdRule


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


# Proofs of a part of the open inputs: evidence has a mean of at most 1, over all outcomes --------
CEILING = 0.6


def mean_evidence(rows: int, found: float, settled: int, *, fair: bool = True) -> float:
    """The mean of the evidence at the ceiling; each flip is found by tries with some chance.

    Unless `fair`, constant inputs are settled before flips: a sample that is not random.
    """
    test, total = SpotProofs(CEILING, rows, 0.05), 0.0
    for flips in range(rows + 1):
        for hits in range(flips + 1):
            chance = stats.binom.pmf(flips, rows, CEILING) * stats.binom.pmf(hits, flips, found)
            opened, left = rows - hits, flips - hits
            count = min(settled, opened)
            for drawn in range(min(left, count) + 1):
                part = stats.hypergeom.pmf(drawn, opened, left, count)
                if not fair:
                    part = float(drawn == max(0, count - (opened - left)))
                if chance * part > 0:
                    sample = test.start(hits, opened)
                    sample.settle(count, drawn)
                    total += chance * part * math.exp(sample.evidence()[1].min())
    return total


@pytest.mark.parametrize("found", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("settled", [0, 3, 8])
def test_evidence_has_a_mean_of_at_most_one(found: float, settled: int) -> None:
    assert mean_evidence(12, found, settled) <= 1 + 1e-9


def test_proofs_of_inputs_that_are_not_drawn_at_random_would_be_noticed() -> None:
    assert mean_evidence(20, 0.5, 8, fair=False) > 2


def ends_below(rng: np.random.Generator, test: SpotProofs, share: float, found: float) -> bool:
    """Whether a run ends in "below": blocks are settled, and in between tries find some flips."""
    flips = int(rng.binomial(test.rows, share))
    hits = int(rng.binomial(flips, found))
    opened, left = test.rows - hits, flips - hits
    sample = test.start(hits, opened)
    while opened and sample.needed() is not None:
        count = int(rng.integers(1, opened + 1))
        drawn = int(rng.hypergeometric(left, opened - left, count))
        sample.settle(count, drawn)
        opened, left = opened - count, left - drawn
        if sample.done:
            return True
        if rng.random() < 0.5:
            more = int(rng.binomial(left, found))
            sample.found(more)
            opened, left = opened - more, left - more
    return sample.done


@pytest.mark.parametrize("found", [0.3, 0.9])
def test_a_share_at_the_ceiling_is_called_below_at_most_as_often_as_stated(found: float) -> None:
    rng = np.random.default_rng(7)
    test = SpotProofs(CEILING, 60, 0.3)
    wrong = sum(ends_below(rng, test, CEILING, found) for _ in range(600))
    assert wrong / 600 <= 0.3


@pytest.mark.parametrize("spot", ["none", "some", "many", "most"])
def test_the_ways_to_below_share_one_error(spot: Spot) -> None:
    rule = ThresholdRule(0.75, 0.05, 0.01, spot)
    tests = rule.spot_proofs()
    sequential = math.exp(-rule._bar_below)
    assert sequential + rule._last_delta + sum(each.delta for each in tests) <= 0.01 + 1e-12
    assert math.exp(-rule._bar_above) + rule._last_delta <= 0.01 + 1e-12
    assert [each.rows for each in tests] == sorted({each.rows for each in tests})
