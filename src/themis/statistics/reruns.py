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
from dataclasses import dataclass

from themis.statistics.intervals import exact_ends

REPEATED = 0.5  # the largest chance that a flip of noise alone comes again


@dataclass(frozen=True)
class Division:
    """How 1 − confidence is divided before the first sample."""

    confidence: float
    noise: float = 0.1  # the part for reruns

    @property
    def sampling(self) -> float:
        """The confidence that is left for the interval."""
        return 1.0 - (1.0 - self.confidence) * (1.0 - self.noise)

    @property
    def rerun_alpha(self) -> float:
        """The chance that reruns mislead."""
        return (1.0 - self.confidence) * self.noise


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
    _, high = exact_ends(differing, reruns, alpha)
    return min(1.0, high / (1.0 - REPEATED))


def drift_ends(fewer: int, more: int, reruns: int, alpha: float) -> tuple[float, float]:
    """Ends for the expected rate less the kept one, from inputs of a group that were run again.

    `fewer` lost the favourable output when they were run again, `more` gained it. Fixed n; both
    ends hold with probability at least 1 − alpha.
    """
    if not reruns:
        return -1.0, 1.0
    lost_low, lost_high = exact_ends(fewer, reruns, alpha / 4)
    won_low, won_high = exact_ends(more, reruns, alpha / 4)
    return won_low - lost_high, won_high - lost_low
