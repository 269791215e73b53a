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
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from themis.statistics.special import (
    betaincc,
    betaincinv,
    betaln,
    ndtri,
    xlog1py,
    xlogy,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_PRIOR = 0.5  # both parameters of the Beta mixture


def least_enough(few: int, enough: int, is_enough: Callable[[int], bool]) -> int:
    """The least number that is enough, by bisection: `few` is not, `enough` is, and so is more."""
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


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


def binomial_inclusion(
    successes: ArrayLike, trials: ArrayLike, error: float, gamma: float
) -> Flags:
    """Whether both p̂ + error and p̂ − error are implausible at level gamma (fixed n).

    That is P(X ≤ x) ≤ gamma under p̂ + error and P(X ≥ x) ≤ gamma under p̂ − error, for the
    binomial X; an end outside (0, 1) needs no test.
    """
    x, n = _as_floats(successes, trials)
    tails = (binomial_lower_tail(hits, n, error) for hits in (x, n - x))
    return np.asarray(np.maximum(*tails) <= gamma)


def binomial_lower_tail(successes: ArrayLike, trials: ArrayLike, error: float) -> Floats:
    """P(X ≤ x) for X binomial with proportion x/n + error; 0 where that is 1 or more."""
    x, n = _as_floats(successes, trials)
    proportion = x / n + error
    possible = (proportion < 1.0) & (x < n)
    tail = betaincc(x + 1.0, np.where(possible, n - x, 1.0), np.minimum(proportion, 1.0))
    return np.where(possible, tail, 0.0)


def _as_floats(*values: ArrayLike) -> tuple[Floats, ...]:
    arrays = [np.asarray(value, dtype=np.float64) for value in values]
    if all(array.shape == arrays[0].shape for array in arrays):
        return tuple(arrays)
    return tuple(np.broadcast_arrays(*arrays))


def _log_mixture(x: Floats, n: Floats) -> Floats:
    return np.asarray(betaln(_PRIOR + x, _PRIOR + n - x) - betaln(_PRIOR, _PRIOR))


def _bisect(excluded: Callable[[Floats], Flags], inside: Floats, outside: Floats) -> Floats:
    """The border between `inside` and `outside`, approached from outside (the safe side)."""
    # Halvings of [0, 1] until the bracket is below the spacing of floats near 1.
    for _ in range(60):
        middle = (inside + outside) / 2.0
        out = excluded(middle)
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return outside


def rate_ends(differing: int, inputs: int, confidence: float) -> tuple[float, float]:
    """Ends for the rate at which two runs differ, for a number of inputs known beforehand.

    They also hold if that is so only while nothing differs, and noise, once found, is measured with
    another number of inputs: each of the two may be wrong with probability α/2. At the first only
    the upper end matters, at the second both.
    """
    alpha = 1.0 - confidence
    return clopper_pearson(differing, inputs, alpha / 2 if differing else alpha)


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
