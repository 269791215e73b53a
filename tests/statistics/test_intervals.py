"""The confidence ends and tail tests against brute force, scipy.stats and exact enumeration."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from themis.statistics.intervals import (
    bet_fractions,
    binomial_inclusion,
    mixture_interval,
    weighted_margin,
)
from themis.statistics.numbers import UNIT, mean_upper


def test_no_module_here_loads_scipy_stats() -> None:
    code = (
        "import sys, themis.statistics.intervals, themis.statistics.proportions;"
        "sys.exit('scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the mixture sequence -----------------------------------------------------------------


def log_ratio(p: float, x: int, n: int) -> float:
    mixture = special.betaln(0.5 + x, 0.5 + n - x) - special.betaln(0.5, 0.5)
    return float(mixture - special.xlogy(x, p) - special.xlog1py(n - x, -p))


@given(st.data())
def test_mixture_ends_are_the_roots_of_the_likelihood_ratio(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5000))
    x = data.draw(st.integers(0, n))
    alpha = data.draw(st.floats(1e-6, 0.5))
    low, high = mixture_interval(x, n, alpha)

    def past(p: float) -> float:
        return log_ratio(p, x, n) + np.log(alpha)

    assert low <= x / n <= high
    if x > 0:
        root = optimize.brentq(past, 1e-300, x / n, xtol=1e-14)
        assert low == pytest.approx(root, abs=1e-9)
    if x < n:
        root = optimize.brentq(past, x / n, 1 - 1e-16, xtol=1e-14)
        assert high == pytest.approx(root, abs=1e-9)


def chance_that_p_is_ever_left_out(p: float, alpha: float, longest: int) -> float:
    """Exactly, over all sample paths up to `longest` trials, with a look after each."""
    alive, lost = np.ones(1), 0.0
    for n in range(1, longest + 1):
        alive = np.convolve(alive, [1 - p, p])
        low, high = mixture_interval(np.arange(n + 1), n, alpha)
        out = (p < low) | (p > high)
        lost += alive[out].sum()
        alive = np.where(out, 0.0, alive)
    return float(lost)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
@pytest.mark.slow
def test_mixture_interval_holds_at_every_look_at_once(p: float) -> None:
    assert 0.01 < chance_that_p_is_ever_left_out(p, 0.2, 300) <= 0.2


def test_a_mixture_interval_with_a_wrong_level_would_be_noticed() -> None:
    assert chance_that_p_is_ever_left_out(0.3, 0.8, 300) > 0.2


# --- differences --------------------------------------------------------------------------


BET_FRACTIONS = bet_fractions(0.05)


def difference_upper(
    plus: Any, zero: Any, minus: Any, evidence: float, bets: Any = BET_FRACTIONS
) -> Any:
    """The upper ends for means of −1, 0 and 1, which were seen so often."""
    counts = np.stack(np.broadcast_arrays(*map(np.atleast_1d, (minus, zero, plus)))).astype(float)
    return mean_upper(counts, np.array([-1.0, 0.0, 1.0]), evidence, bets) - UNIT


def evidence_below(mu: float, plus: int, zero: int, minus: int) -> float:
    """The formula as it stands in the documentation, one fraction at a time."""
    values = []
    for c in BET_FRACTIONS:
        bet = c / (1 - mu)
        values.append((1 - c) ** plus * (1 + bet * mu) ** zero * (1 + bet * (1 + mu)) ** minus)
    return float(np.mean(values))


counts = st.integers(0, 60)


@given(counts, counts, counts, st.sampled_from([2.0, 40.0, 200.0]))
def test_difference_upper_is_where_the_evidence_is_reached(
    plus: int, zero: int, minus: int, evidence: float
) -> None:
    end = float(difference_upper(plus, zero, minus, evidence)[0])
    if zero + minus == 0:
        assert end == 1.0 - UNIT
        return
    assert (plus - minus) / (plus + zero + minus) < end < 1.0
    assert np.log(evidence_below(end, plus, zero, minus)) == pytest.approx(
        np.log(evidence), abs=1e-6
    )


@pytest.mark.parametrize("error", [0.1, 0.05, 0.01, 0.003])
def test_only_bets_for_an_error_can_bring_the_ends_that_close(error: float) -> None:
    half = 10**9  # D is −1 or 1: the largest variance that there is
    high = difference_upper(half, 0, half, 40.0, bet_fractions(error))
    assert high < error  # and the lower end is its mirror image
    assert bet_fractions(error)[-1] > error / 2  # and no smaller than they need to be
    assert difference_upper(half, 0, half, 40.0) > 0.01  # those for an error of .05


def share_ever_above(evidence: float, weights: list[float], runs: int = 2000) -> float:
    """The share of runs in which the true mean is above the end at some look."""
    rng = np.random.default_rng(5)
    total, missed = np.zeros((runs, 3)), np.zeros(runs, dtype=bool)
    for n in np.unique(np.geomspace(2, 1500, 60).astype(int)):
        total += rng.multinomial(n - int(total[0].sum()), weights, size=runs)
        missed |= difference_upper(*total.T, evidence) < weights[0] - weights[2]
    return float(missed.mean())


@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.3], [0.6, 0.39, 0.01], [0.0, 0.9, 0.1]])
def test_difference_upper_holds_at_every_look_at_once(weights: list[float]) -> None:
    # At most 1/5 is allowed; three standard errors of 2,000 runs are .027.
    assert share_ever_above(5.0, weights) < 0.2 + 0.027


def test_too_little_evidence_would_be_noticed() -> None:
    assert share_ever_above(1.3, [0.2, 0.5, 0.3]) > 0.2 + 0.027


# --- tail tests ---------------------------------------------------------------------------


@given(st.data())
def test_binomial_inclusion_is_two_clopper_pearson_tails(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 2000))
    x = data.draw(st.integers(0, n))
    error = data.draw(st.sampled_from([0.01, 0.05, 0.2, 0.6]))
    gamma = data.draw(st.sampled_from([0.09, 0.0225, 0.0045]))
    above = x / n + error >= 1 or stats.binom.cdf(x, n, x / n + error) <= gamma
    below = x / n - error <= 0 or stats.binom.sf(x - 1, n, x / n - error) <= gamma
    assert bool(binomial_inclusion(x, n, error, gamma)) == (above and below)


def test_weighted_margin_holds_for_any_chances_and_a_smaller_one_would_be_noticed() -> None:
    rng = np.random.default_rng(7)
    weights = rng.pareto(2.0, 60) + 0.1
    shares = weights / weights.sum()
    margin = weighted_margin(weights, 0.9)
    for chances in (np.full(60, 0.5), rng.random(60)):
        outcomes = rng.random((4_000, 60)) < chances
        errors = np.abs(outcomes @ shares - chances @ shares)
        assert (errors > margin).mean() <= 0.1
    assert (errors > margin / 4).mean() > 0.1
