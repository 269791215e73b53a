"""Proving a part of the open inputs: evidence has a mean of at most 1, summed over all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from themis.statistics.thresholds import Spot, SpotProofs, ThresholdRule

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


def outcome(rng: np.random.Generator, test: SpotProofs, share: float, found: float) -> bool:
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
    wrong = sum(outcome(rng, test, CEILING, found) for _ in range(600))
    assert wrong / 600 <= 0.3


@pytest.mark.parametrize("spot", ["none", "some", "many", "most"])
def test_the_ways_to_below_share_one_error(spot: Spot) -> None:
    rule = ThresholdRule(0.75, 0.05, 0.01, spot)
    tests = rule.spot_proofs()
    sequential = math.exp(-rule._bar_below)
    assert sequential + rule._last_delta + sum(each.delta for each in tests) <= 0.01 + 1e-12
    assert math.exp(-rule._bar_above) + rule._last_delta <= 0.01 + 1e-12
    assert [each.rows for each in tests] == sorted({each.rows for each in tests})
