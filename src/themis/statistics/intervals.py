"""Confidence ends and tail tests of a proportion, from counts alone.

Every function is pure and works on whole numpy arrays (rows never appear here, only counts).
Two kinds of guarantee occur and each docstring names its own: *any stopping time* (the ends
hold at all looks at once, so a run may end whenever it likes) and *fixed n* (a single tail
test, which gets a guarantee only from the stopping rule in `proportions` around it).

What does noise do to a causal score? Bounds from counts of inputs that were run again.

The rate of the noise, d, is the chance that the second of two runs on a random input differs from
the first. The placebo score of k assignments is the chance that one of k runs does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.special import (
    betaincc,
    betaincinv,
    betaln,
    gammaln,
    ndtri,
    xlog1py,
    xlogy,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BET_FRACTIONS = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""Shares of the largest allowed bet over which the evidence on a difference is averaged."""

_BISECTIONS = 60  # halvings of [0, 1] until the bracket is below the spacing of floats near 1
_NEWTON_STEPS = 60  # never reached: about six are needed
_LONGEST_STEP = 2.0  # of Newton's method, away from 0
_PRIOR = 0.5  # both parameters of the Beta mixture
_STIRLING_FROM = 32.0  # three terms of Stirling's series are exact to 2e-14 from here on


def normal_quantile(confidence: float) -> float:
    """The two-sided z* of the paper's margin of error: P(|Z| ≤ z*) = confidence."""
    return float(ndtri((1.0 + confidence) / 2.0))


def weighted_margin(weights: ArrayLike, confidence: float) -> float:
    """How far a weighted share of independent outcomes is from its mean, at most.

    Guarantee: fixed n. Whatever the chances of the single outcomes are, the share lies within
    this of its mean with the stated confidence (Hoeffding's inequality, both sides).
    """
    shares = np.asarray(weights, dtype=float)
    shares = shares / shares.sum()
    return math.sqrt(math.log(2.0 / (1.0 - confidence)) / 2.0 * float((shares**2).sum()))


def mixture_interval(
    successes: ArrayLike, trials: ArrayLike, alpha: ArrayLike
) -> tuple[Floats, Floats]:
    """Ends (low, high) for a proportion that hold at any stopping time with 1 − alpha.

    A value p stays inside while the Beta(½, ½) mixture of likelihoods is less than 1/alpha
    times the likelihood of p; by Ville's inequality the true p is ever left out with
    probability at most alpha. The observed proportion is never left out, and no trials give
    (0, 1). The paper has no counterpart: its margin of error holds for a fixed n only.
    """
    x, n, a = _as_floats(successes, trials, alpha)
    mixture, misses, limit = _log_mixture(x, n), n - x, -np.log(a)

    def excluded(p: Floats) -> Flags:
        return np.asarray(mixture - xlogy(x, p) - xlog1py(misses, -p) >= limit)

    observed = np.where(n > 0, x / np.maximum(n, 1.0), 0.5)
    low, high = _bisect(excluded, observed, np.stack([np.zeros_like(n), np.ones_like(n)]))
    return low, high


def mixture_bounds_without_replacement(
    successes: ArrayLike, trials: ArrayLike, population: ArrayLike, alpha: ArrayLike
) -> tuple[Floats, Floats]:
    """Ends for the share of a finite population, valid at any stopping time with 1 − alpha.

    The trials are draws without replacement from `population` items, of which an unknown
    number K are successes. K stays inside while its prior-to-posterior ratio is below 1/alpha
    for a Beta-binomial(½, ½) prior (Waudby-Smith and Ramdas, 2020); that ratio is a martingale
    under the true K. Both ends equal the exact share once trials == population.
    """
    x, n, size, a = _as_floats(successes, trials, population, alpha)
    mixture = _log_mixture(x, n) + _log_gamma_ratio(size - n + 1.0, n)

    def excluded(marked: Floats) -> Flags:
        drawn = _log_gamma_ratio(marked - x + 1.0, x)
        missed = _log_gamma_ratio(size - marked - (n - x) + 1.0, n - x)
        return np.asarray(mixture - drawn - missed >= -np.log(a))

    least, most = x, size - (n - x)
    observed = np.where(n > 0, x / np.maximum(n, 1.0), 0.5)
    likeliest = np.clip(np.floor((size + 1.0) * observed), least, most)
    low = _bisect_integers(excluded, likeliest, least - 1.0)
    return low / size, _bisect_integers(excluded, likeliest, most + 1.0) / size


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Ends (low, high) for a proportion after a fixed n: both hold with at least 1 − alpha."""
    low = betaincinv(successes, trials - successes + 1, alpha / 2) if successes else 0.0
    rest = trials - successes
    high = betaincinv(successes + 1, rest, 1.0 - alpha / 2) if rest else 1.0
    return float(low), float(high)


def bet_fractions(error: float) -> tuple[float, ...]:
    """The bets that can find the ends of a difference to ± error: 1, ½, ¼, … ≤ 1.25·error.

    A bet of fraction c never brings the two ends closer to each other than c (when D is always
    −1 or 1), so that the smallest one has to be below 2·error or a run might never end. There are
    two at least, as the first loses everything with a single 1.
    """
    fractions = [1.0, 0.5]
    while fractions[-1] > 1.25 * error * (1.0 + 1e-9):
        fractions.append(fractions[-1] / 2.0)
    return tuple(fractions)


def difference_upper(
    plus: ArrayLike,
    zero: ArrayLike,
    minus: ArrayLike,
    evidence: float,
    *,
    fractions: Sequence[float] = BET_FRACTIONS,
) -> Floats:
    """The upper end for the mean of D ∈ {−1, 0, 1}, valid at any stopping time.

    `plus`, `zero` and `minus` count the values +1, 0 and −1 (arrays: one entry a pair). The
    mean is ever above the end with probability at most 1/evidence. The end is the root in μ
    of E(μ) = evidence, where E averages, over the fractions c, the wealth
    (1−c)^plus · (1+λμ)^zero · (1+λ(1+μ))^minus, λ = c/(1−μ), of a gambler who bets on "the
    mean is below μ". With t = −ln(1−μ), ln E is convex and increasing, so that Newton's
    method stays to the right of the root: what is left of its error makes the end wider.

    Minus the upper end with `plus` and `minus` exchanged is the lower end. It stays valid when D
    comes from pairs that change, as long as each pair is chosen before its values are seen: then
    it is a lower end for the largest of the pairs' means.
    """
    up, level, down = _as_floats(plus, zero, minus)
    bounded = level + down > 0  # nothing but +1: the end is 1
    ends = np.ones(bounded.shape)
    up, level, down = (part[bounded][None, :] for part in (up, level, down))
    ends[bounded] = _solve_bet(up, level, down, evidence, np.asarray(fractions)[:, None])
    return ends


def difference_excluded(
    plus: ArrayLike,
    zero: ArrayLike,
    minus: ArrayLike,
    mean: float,
    evidence: float,
    *,
    fractions: Sequence[float] = BET_FRACTIONS,
) -> Flags:
    """Whether the upper end of `difference_upper` is at most this mean, without solving for it."""
    up, level, down = _as_floats(plus, zero, minus)
    if mean >= 1.0:
        return np.ones(up.shape, dtype=np.bool_)
    fraction = np.asarray(fractions).reshape(-1, *[1] * up.ndim)
    kept, bet = 1.0 - fraction, fraction / (1.0 - mean)
    once, twice = np.log(kept + bet), np.log(kept + 2.0 * bet)
    wealth = xlogy(up, kept) + level * once + down * twice
    top = wealth.max(axis=0)
    total = top + np.log(np.exp(wealth - top).sum(axis=0))
    return np.asarray(total >= np.log(evidence) + np.log(len(fractions)))


def binomial_inclusion(
    successes: ArrayLike, trials: ArrayLike, error: float, gamma: float
) -> Flags:
    """Whether both p̂ + error and p̂ − error are implausible at level gamma (fixed n).

    That is P(X ≤ x) ≤ gamma under p̂ + error and P(X ≥ x) ≤ gamma under p̂ − error, for the
    binomial X; an end outside (0, 1) needs no test.
    """
    x, n = _as_floats(successes, trials)
    # A tail is no less than its first term, and that takes less time.
    first = (_first_term(hits, n, error) <= gamma for hits in (x, n - x))
    result = np.asarray(np.logical_and(*first))
    for hits in (x, n - x) if result.any() else ():
        result[result] = binomial_lower_tail(hits[result], n[result], error) <= gamma
    return np.asarray(result)


def _first_term(x: Floats, n: Floats, error: float) -> Floats:
    """P(X = x), rounded down, of `binomial_lower_tail`."""
    proportion = np.minimum(x / n + error, 1.0)
    ways = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)
    chance = np.exp(ways + xlogy(x, proportion) + xlog1py(n - x, -proportion))
    return np.where(proportion < 1.0, (1.0 - 1e-6) * chance, 0.0)


def hypergeometric_inclusion(
    successes: ArrayLike, trials: ArrayLike, population: ArrayLike, error: float, gamma: float
) -> Flags:
    """`binomial_inclusion` for draws without replacement from `population` items (fixed n).

    The two tails are taken at the nearest whole numbers of successes *outside*
    population·(p̂ ± error); a number that the draws already rule out needs no test.
    """
    x, n, size = _as_floats(successes, trials, population)
    marked_high = np.floor(size * (x / n + error)) + 1.0
    marked_low = np.ceil(size * (x / n - error)) - 1.0
    above = hypergeometric_lower_tail(x, n, marked_high, size) <= gamma
    # P(X ≥ x) with K successes is P(n − X ≤ n − x) with the other size − K as successes.
    below = hypergeometric_lower_tail(n - x, n, size - marked_low, size) <= gamma
    return np.asarray(above & below)


def binomial_lower_tail(successes: ArrayLike, trials: ArrayLike, error: float) -> Floats:
    """P(X ≤ x) for X binomial with proportion x/n + error; 0 where that is 1 or more."""
    x, n = _as_floats(successes, trials)
    proportion = x / n + error
    possible = (proportion < 1.0) & (x < n)
    tail = betaincc(x + 1.0, np.where(possible, n - x, 1.0), np.minimum(proportion, 1.0))
    return np.where(possible, tail, 0.0)


def hypergeometric_lower_tail(
    successes: ArrayLike, trials: ArrayLike, marked: ArrayLike, population: ArrayLike
) -> Floats:
    """P(X ≤ x) for x at or below its mean, X successes in n draws without replacement.

    `marked` is the number of successes in the population; it need not be whole (the gamma
    function fills in). 0 where the n − x failures drawn rule that number out. The terms are
    summed downwards from x, where each is smaller than the last; those beyond 5√n are below
    e⁻⁵⁰ of the first, since the second difference of the log probabilities is at most −4/(n+2).
    """
    x, n, k, size = _as_floats(successes, trials, marked, population)
    possible = k <= size - (n - x)
    k = np.where(possible, k, size - (n - x))
    first = _log_binomial(k, x) + _log_binomial(size - k, n - x) - _log_binomial(size, n)
    longest = int(min(x.max(initial=0.0), 5.0 * np.sqrt(n.max(initial=0.0)) + 10.0))
    at = np.maximum(x[..., None] - np.arange(longest), 0.0)
    k, n, size = k[..., None], n[..., None], size[..., None]
    ratios = at * np.maximum(size - k - n + at, 0.0) / ((k - at + 1.0) * (n - at + 1.0))
    total = np.exp(first) * (1.0 + np.cumprod(ratios, axis=-1).sum(axis=-1))
    return np.where(possible, total, 0.0)


def _as_floats(*values: ArrayLike) -> tuple[Floats, ...]:
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    if all(array.shape == arrays[0].shape for array in arrays):
        return tuple(arrays)
    return tuple(np.broadcast_arrays(*arrays))


def _log_mixture(x: Floats, n: Floats) -> Floats:
    return np.asarray(betaln(_PRIOR + x, _PRIOR + n - x) - betaln(_PRIOR, _PRIOR))


def _bisect(excluded: Callable[[Floats], Flags], inside: Floats, outside: Floats) -> Floats:
    """The border between `inside` and `outside`, approached from outside (the safe side)."""
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2.0
        out = excluded(middle)
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside


def _bisect_integers(
    excluded: Callable[[Floats], Flags], inside: Floats, outside: Floats
) -> Floats:
    """The last whole number that is not excluded between `inside` and `outside`."""
    while np.any(np.abs(inside - outside) > 1.0):
        middle = np.trunc((inside + outside) / 2.0)
        out = excluded(middle)
        apart = np.abs(inside - outside) > 1.0
        inside = np.where(apart & ~out, middle, inside)
        outside = np.where(apart & out, middle, outside)
    return inside


def _solve_bet(
    up: Floats, level: Floats, down: Floats, evidence: float, fraction: Floats
) -> Floats:
    """Newton's method in t = −ln(1−μ) for ln E = ln evidence; counts of shape (1, pairs)."""
    target = np.log(evidence) + np.log(len(fraction))
    kept = 1.0 - fraction
    lost = xlogy(up, kept)  # c = 1 loses everything with the first +1
    t = _first_guess(up, level, down, np.log(evidence))
    running = np.ones(t.shape, dtype=np.bool_)  # each ends by itself, whatever is solved with it
    for _ in range(_NEWTON_STEPS):
        bet = fraction * np.exp(t)
        once = kept + bet
        twice = once + bet
        wealth = lost + level * np.log(once) + down * np.log(twice)
        top = wealth.max(axis=0)
        share = np.exp(wealth - top)
        total = share.sum(axis=0)
        slope = (share * bet * (level / once + 2.0 * down / twice)).sum(axis=0)
        # From the left of the root it may overshoot by far, so that exp overflows.
        step = np.maximum((top + np.log(total) - target) * total / slope, -_LONGEST_STEP)
        t = np.where(running, t - step, t)
        running &= np.abs(step) >= 1e-7  # the next would be below 1e-13
        if not running.any():
            break
    return np.asarray(-np.expm1(-t))


def _first_guess(up: Floats, level: Floats, down: Floats, log_evidence: float) -> Floats:
    """t at the mean plus a normal margin: any start converges, a near one needs fewer steps."""
    n = up + level + down
    mean = (up - down) / n
    variance = (up + down) / n - mean**2
    margin = np.sqrt(2.0 * variance * log_evidence / n) + 2.0 * log_evidence / n
    return np.asarray(-np.log1p(-np.minimum(mean + margin, 0.99))[0])


def _log_binomial(size: Floats, chosen: Floats) -> Floats:
    return _log_gamma_ratio(size - chosen + 1.0, chosen) - np.asarray(gammaln(chosen + 1.0))


def _log_gamma_ratio(a: Floats, b: Floats) -> Floats:
    """ln Γ(a+b) − ln Γ(a), without the cancellation of two huge values when a is large."""
    large = np.maximum(a, _STIRLING_FROM)
    with_b = large + b
    series = (large - 0.5) * np.log1p(b / large) + b * (np.log(with_b) - 1.0)
    series += _stirling_rest(with_b) - _stirling_rest(large)
    small = np.minimum(a, _STIRLING_FROM)
    plain: Any = gammaln(small + b) - gammaln(small)
    return np.where(a >= _STIRLING_FROM, series, plain)


def _stirling_rest(z: Floats) -> Floats:
    return np.asarray((1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * z**2)) / z**2) / z)


def rate_ends(differing: int, inputs: int, confidence: float) -> tuple[float, float]:
    """Ends for the rate at which two runs differ, for a number of inputs known beforehand.

    They also hold if that is so only while nothing differs, and noise, once found, is measured with
    another number of inputs: each of the two may be wrong with probability α/2. At the first only
    the upper end matters, at the second both.
    """
    alpha = 1.0 - confidence
    return exact_ends(differing, inputs, alpha / 4 if differing else alpha / 2)


def exact_ends(successes: int, trials: int, tail: float) -> tuple[float, float]:
    """The ends of Clopper and Pearson (fixed n): each is wrong with probability at most `tail`."""
    low, high = 0.0, 1.0
    if successes:
        low = float(betaincinv(successes, trials - successes + 1, tail))
    if successes < trials:
        high = float(betaincinv(successes + 1, trials - successes, 1.0 - tail))
    return low, high


def placebo_at_most(rate: float, runs: int, *, two_outputs: bool) -> float:
    """The largest chance that one of `runs` runs differs from the first, if the second does so.

    Given an input and its first output, the others differ independently, each with some chance δ,
    and none does with (1−δ)ᵏ⁻¹; on average over inputs that is at least (1−d)ᵏ⁻¹, since it is
    convex in δ. With two outputs, q the rarer one, d = 2q(1−q) and it is 1 − qᵏ − (1−q)ᵏ exactly,
    which is concave in d.
    """
    if runs < 2:
        return 0.0
    if not two_outputs:
        return float(1.0 - (1.0 - rate) ** (runs - 1))
    rarer = (1.0 - math.sqrt(max(1.0 - 2.0 * rate, 0.0))) / 2.0
    return float(1.0 - rarer**runs - (1.0 - rarer) ** runs)
