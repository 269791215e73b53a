"""What does noise do to a causal score? Bounds from counts of inputs that were run again.

The rate of the noise, d, is the chance that the second of two runs on a random input differs from
the first. The placebo score of k assignments is the chance that one of k runs does.
"""

from __future__ import annotations

import math

from scipy.special import betaincinv


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
    """At most so often one of `runs` runs differs from the first, if the second does at this rate.

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
