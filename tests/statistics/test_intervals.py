"""The confidence ends and tail tests against brute force, scipy.stats and exact enumeration."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from themis.statistics.intervals import (
    BET_FRACTIONS,
    bet_fractions,
    binomial_inclusion,
    binomial_lower_tail,
    difference_upper,
    hypergeometric_inclusion,
    hypergeometric_lower_tail,
    mixture_bounds_without_replacement,
    mixture_interval,
    normal_quantile,
    weighted_margin,
)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_normal_quantile_leaves_half_of_the_rest_on_each_side(confidence: float) -> None:
    assert stats.norm.cdf(normal_quantile(confidence)) == pytest.approx((1 + confidence) / 2)


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


def test_mixture_ends_without_trials_are_zero_and_one() -> None:
    assert mixture_interval(0, 0, 0.05) == (0.0, 1.0)
    assert mixture_bounds_without_replacement(0, 0, 17, 0.05) == (0.0, 1.0)


def test_mixture_interval_takes_arrays_of_counts_and_of_alphas() -> None:
    low, high = mixture_interval([[0], [3]], [[10], [10]], np.array([0.05, 0.01, 0.001]))
    assert low.shape == high.shape == (2, 3)
    assert (np.diff(high, axis=1) > 0).all()
    assert low[1, 2] == mixture_interval(3, 10, 0.001)[0]


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


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3, 0.5])
@pytest.mark.slow
def test_mixture_interval_holds_at_every_look_at_once(p: float) -> None:
    assert 0.01 < chance_that_p_is_ever_left_out(p, 0.2, 300) <= 0.2


def test_a_mixture_interval_with_a_wrong_level_would_be_noticed() -> None:
    assert chance_that_p_is_ever_left_out(0.3, 0.8, 300) > 0.2


# --- without replacement ------------------------------------------------------------------


def brute_bounds(x: int, n: int, size: int, alpha: float) -> tuple[float, float]:
    """The prior-to-posterior ratio of every number of marked items."""
    marked = np.arange(size + 1)
    prior = stats.betabinom.pmf(marked, size, 0.5, 0.5)
    posterior = stats.betabinom.pmf(marked - x, size - n, 0.5 + x, 0.5 + n - x)
    inside = marked[posterior > alpha * prior]
    return float(inside[0] / size), float(inside[-1] / size)


@given(st.data())
def test_bounds_without_replacement_are_the_prior_posterior_ratio(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 300))
    n = data.draw(st.integers(1, size))
    x = data.draw(st.integers(0, n))
    alpha = data.draw(st.sampled_from([0.1997, 0.0503, 0.0101]))  # odd: no ties
    low, high = mixture_bounds_without_replacement(x, n, size, alpha)
    assert (low, high) == pytest.approx(brute_bounds(x, n, size, alpha), abs=1e-12)


@pytest.mark.parametrize("x", [0, 3, 7])
def test_bounds_are_exact_once_everything_is_drawn(x: int) -> None:
    assert mixture_bounds_without_replacement(x, 7, 7, 0.05) == (x / 7, x / 7)


def test_bounds_in_a_huge_population_are_those_with_replacement() -> None:
    x, n = np.array([0, 5, 500, 1000]), 1000
    ours = mixture_bounds_without_replacement(x, n, 10**12, 0.05)
    assert np.allclose(ours, mixture_interval(x, n, 0.05), atol=1e-7)


def chance_that_the_share_is_ever_left_out(size: int, marked: int, alpha: float) -> float:
    """Exactly, over all orders in which `size` items with `marked` successes can be drawn."""
    alive, lost = np.zeros(size + 2), 0.0
    alive[0] = 1.0
    x = np.arange(size + 2)
    for n in range(1, size + 1):
        success = np.clip((marked - x) / (size - n + 1), 0.0, 1.0)
        alive = alive * (1 - success) + np.roll(alive * success, 1)
        possible = np.arange(max(0, n - (size - marked)), min(n, marked) + 1)
        low, high = mixture_bounds_without_replacement(possible, n, size, alpha)
        out = possible[(marked / size < low - 1e-12) | (marked / size > high + 1e-12)]
        lost += alive[out].sum()
        alive[out] = 0.0
    return float(lost)


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("size", [10, 60, 200])
def test_bounds_without_replacement_hold_at_every_look_at_once(size: int) -> None:
    for marked in {0, 1, size // 10, size // 3, size // 2}:
        assert chance_that_the_share_is_ever_left_out(size, marked, 0.2) <= 0.2


@pytest.mark.slow
def test_bounds_without_replacement_with_a_wrong_level_would_be_noticed() -> None:
    assert chance_that_the_share_is_ever_left_out(200, 66, 0.2) > 0.02
    assert chance_that_the_share_is_ever_left_out(200, 66, 0.8) > 0.2


# --- differences --------------------------------------------------------------------------


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
    end = float(difference_upper(plus, zero, minus, evidence))
    if zero + minus == 0:
        assert end == 1.0
        return
    assert (plus - minus) / (plus + zero + minus) < end < 1.0
    assert np.log(evidence_below(end, plus, zero, minus)) == pytest.approx(
        np.log(evidence), abs=1e-6
    )


def test_difference_ends_of_huge_counts_stay_accurate() -> None:
    n = 10**7
    end = float(difference_upper(0, n, 0, 40.0))
    # All zeros: E is the mean of (1 + cμ/(1−μ))ⁿ, nearly that of exp(cμn).
    root = optimize.brentq(lambda t: np.mean(np.exp(np.multiply(BET_FRACTIONS, t))) - 40, 1, 9)
    assert end == pytest.approx(root / n, rel=1e-5)


@pytest.mark.parametrize("error", [0.1, 0.05, 0.01, 0.003])
def test_bets_for_an_error_can_bring_the_ends_that_close(error: float) -> None:
    half = 10**9  # D is −1 or 1: the largest variance that there is
    high = difference_upper(half, 0, half, 40.0, fractions=bet_fractions(error))
    assert high < error  # and the lower end is its mirror image
    assert bet_fractions(error)[-1] > error / 2  # and no smaller than they need to be


def test_bets_for_a_larger_error_would_never_bring_the_ends_close() -> None:
    half = 10**9
    assert difference_upper(half, 0, half, 40.0) > 0.01


def test_all_pairs_of_two_hundred_groups_are_computed_together() -> None:
    parts = np.random.default_rng(0).multinomial(900, [0.2, 0.5, 0.3], size=(200, 200))
    started = time.process_time()
    ends = difference_upper(parts[..., 0], parts[..., 1], parts[..., 2], 40.0)
    assert time.process_time() - started < 20  # about 0.03 s; one by one it takes minutes
    assert ends.shape == (200, 200)
    assert ends[3, 5] == pytest.approx(float(difference_upper(*parts[3, 5], 40.0)), abs=1e-10)


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


def test_binomial_tails_agree_with_scipy_stats() -> None:
    n = 1000
    x = np.arange(900)
    expected = stats.binom.cdf(x, n, x / n + 0.05)
    assert np.allclose(binomial_lower_tail(x, n, 0.05), expected, rtol=1e-10)


@given(st.data())
def test_hypergeometric_tails_agree_with_scipy_stats(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 10**6))
    n = data.draw(st.integers(1, min(size, 5000)))
    marked = data.draw(st.integers(0, size))
    least, mean = max(0, n - (size - marked)), n * marked // size
    x = data.draw(st.integers(min(least, mean), mean))
    expected = float(stats.hypergeom.cdf(x, size, marked, n))
    ours = float(hypergeometric_lower_tail(x, n, marked, size))
    assert ours == pytest.approx(expected, rel=1e-6, abs=1e-250)


def test_hypergeometric_tails_in_a_huge_population_are_binomial() -> None:
    x = np.arange(0, 480, 7)
    ours = hypergeometric_lower_tail(x, 1000, 5 * 10**14, 10**15)
    assert np.allclose(ours, stats.binom.cdf(x, 1000, 0.5), rtol=1e-8, atol=0)


@pytest.mark.parametrize("size", [7, 40, 150])
def test_hypergeometric_inclusion_tests_the_nearest_numbers_outside(size: int) -> None:
    error, gamma = 0.125, 0.05  # a power of two: no rounding at the border
    for n in range(1, size + 1):
        x = np.arange(n + 1)
        high = np.floor(size * (x / n + error) + 1e-9) + 1
        low = np.ceil(size * (x / n - error) - 1e-9) - 1
        above = (high > size - (n - x)) | (stats.hypergeom.cdf(x, size, high, n) <= gamma)
        below = (low < x) | (stats.hypergeom.sf(x - 1, size, low, n) <= gamma)
        ours = hypergeometric_inclusion(x, n, size, error, gamma)
        # Rounding of size·p̂ may only make the test stricter, never looser.
        assert not (ours & ~(above & below)).any()
        assert (ours == (above & below)).mean() > 0.9
    assert hypergeometric_inclusion(np.arange(size + 1), size, size, error, gamma).all()


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


def test_upper_end_of_almost_nothing_but_gains_is_found() -> None:
    ends = difference_upper([11_000, 10**6, 3], [1, 0, 1], [0, 1, 0], 200.0)
    assert np.isfinite(ends).all()
    assert (ends > [0.99, 0.99, 0.7]).all()
    assert (ends <= 1).all()
