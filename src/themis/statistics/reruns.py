"""What running a finding again proves: how much of it noise may explain.

A subject that does not always decide the same shows flips that are none. A row of a causal score is
a true flip when two of its assignments have different most frequent outputs. Of a row that is none,
all assignments have the same one, so that one of any two different outputs was not the most
frequent of its input, and comes again with a chance of at most ½. So, if a share c of all flips
come out the same when their pairs are run again, at least 2c − 1 are true.

A group's rate is an expectation over its inputs and over noise. Of inputs whose first outputs are
kept (a whole domain that was run once), fresh runs tell how far the kept rate is from the expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from themis.statistics.intervals import clopper_pearson

REPEATED = 0.5  # the largest chance that a flip of noise alone comes again
CAUTION = 0.8  # of what a verdict could spare: then a few more are run again than the fewest

# How 1 − confidence is divided before the first sample: the rest is for the interval.
RERUNS_SHARE = 0.05  # that reruns mislead about a lower end
PLACEBO_SHARE = 0.05  # that the placebo misleads about an upper end
SAMPLING_SHARE = 1.0 - RERUNS_SHARE - PLACEBO_SHARE


def interval_confidence(confidence: float) -> float:
    """The confidence of an interval that shares 1 − confidence with reruns and placebo."""
    return 1.0 - SAMPLING_SHARE * (1.0 - confidence)


def fewest_reruns(alpha: float) -> int:
    """So many pairs that a finding of noise alone comes out the same with a chance ≤ alpha."""
    return math.ceil(math.log(alpha) / math.log(REPEATED))


def reruns_for(share: float, alpha: float) -> int:
    """How many pairs must come out the same, so that noise explains at most this share of flips."""
    if share >= 1.0:
        return fewest_reruns(alpha)
    kept = 1.0 - (1.0 - REPEATED) * share
    return max(fewest_reruns(alpha), math.ceil(math.log(alpha) / math.log(kept)))


def explained_by_noise(differing: int, reruns: int, alpha: float) -> float:
    """The largest share of the flips that noise may explain (fixed n: reruns planned beforehand).

    It is exceeded with probability at most alpha, whatever the noise. The pairs must be drawn at
    random from all flips, with replacement where they are few.
    """
    if not reruns:
        return 1.0
    _, high = clopper_pearson(differing, reruns, 2 * alpha)
    return min(1.0, high / (1.0 - REPEATED))


def lasts_beyond_noise(
    lasting: int, tests: int, independent: int, reruns: int, alpha: float, *, all_last: bool
) -> bool:
    """Whether tests that came out the same in every rerun are more than noise leaves.

    If no test is a true flip, it says so ever, after any number of reruns (any stopping time),
    with probability at most alpha; else the same share of those that last are none, on average.
    A flip that is noise comes out again with a chance of at most ½ in each rerun. So each test that
    lasts is evidence of 2 to the power of the reruns (the e-values of Wang and Ramdas, whatever the
    tests share); where none fell away, all of them together are. Tests that could not be run so
    often count as none that last, and as none that fell away. `independent` of those that last
    share no input.
    """
    if not lasting:
        return False
    of_each = reruns * math.log(1 / REPEATED) >= math.log(2 * tests / (alpha * lasting))
    of_all = independent * reruns >= fewest_reruns(alpha / 2)
    return of_each or (of_all and all_last)


def drift_ends(fewer: int, more: int, reruns: int, alpha: float) -> tuple[float, float]:
    """Ends for the expected rate less the kept one, from inputs of a group that were run again.

    `fewer` lost the favourable output when they were run again, `more` gained it. Fixed n; both
    ends hold with probability at least 1 − alpha.
    """
    if not reruns:
        return -1.0, 1.0
    lost_low, lost_high = clopper_pearson(fewer, reruns, alpha / 2)
    won_low, won_high = clopper_pearson(more, reruns, alpha / 2)
    return won_low - lost_high, won_high - lost_low


def expected_rates(
    rates: Sequence[tuple[float, float, float]], alpha: float
) -> list[tuple[float, float]]:
    """Ends of the expected rates that fit the rates of one run (Hoeffding's inequality).

    `rates` has the least and the largest rate of each group, and its number of inputs, which were
    all run once: of inputs with weights (Σw)² / Σw², which is what the inequality asks for. With
    probability at least 1 − alpha all expected rates are between their ends.
    """
    margin = math.log(2 * len(rates) / alpha) / 2 if rates else 0.0
    wider = [math.sqrt(margin / max(inputs, 1)) for _, _, inputs in rates]
    ends = zip(rates, wider, strict=True)
    return [(max(low - by, 0.0), min(high + by, 1.0)) for (low, high, _), by in ends]


def widest_spread(rates: Sequence[tuple[float, float, float]], alpha: float) -> float:
    """The largest spread of expected rates that fits the rates of one run, as sure as they are."""
    ends = expected_rates(rates, alpha)
    return max((high for _, high in ends), default=0.0) - min((low for low, _ in ends), default=0.0)


def exact_reruns(above: float, alpha: float, kept: float = 1.0) -> int:
    """How many inputs of each group show that rates which were not averaged are so far apart."""
    points = CAUTION * above / 2 if above > 0 else 1.0
    return math.ceil(kept * math.log(8 / alpha) / points)
