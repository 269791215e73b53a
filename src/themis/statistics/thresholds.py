"""Is a proportion above a threshold? Decides with as few samples as it takes, never estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.special import bdtr, bdtrc, xlogy

from themis.statistics.intervals import Floats
from themis.statistics.thresholds_spot_proofs import SpotProofs

Decision = Literal["above", "below", "undecided"]
Spot = Literal["none", "some", "many", "most"]  # how often spot proofs are tried

_WEIGHTS = np.log([0.4, 0.2, 0.4])  # of the three alternatives: near, half way, extreme
_LAST_TEST = 0.5  # the part of delta that the fixed test at the last sample gets, …
_SPOT_LAST_TEST = 0.25  # … and where there are spot proofs
_SPOT_PROOFS = 0.45  # the part of delta that spot proofs of "below" get
# When spot proofs are tried, in parts of `max_samples`: later where a proof is dear.
_STAGES: dict[Spot, tuple[float, ...]] = {
    "none": (),
    "some": (1 / 8, 3 / 8, 1.0),
    "many": (1 / 8, 3 / 8, 1.0, 2.0),
    "most": (1 / 8, 3 / 8, 1.0, 2.0, 4.0),
}


@dataclass(frozen=True)
class ThresholdRule:
    """Decides "above" or "below" a threshold, with an indifference zone of ± error around it.

    Guarantee, at any number of samples: a proportion of at most `floor` (threshold − error) is
    called "above" with probability at most `delta`, one of at least `ceiling` (threshold + error)
    "below" with at most `delta`. In between either answer is right.

    Two likelihood-ratio mixtures run along the stream, one against d ≤ floor and one against
    d ≥ ceiling; reaching a bar decides (Ville's inequality). At `max_samples` a fixed test
    decides what is left. With `spot`, "below" can also be reached by spot proofs at a few
    numbers of samples. delta is divided among these ways, for each of the two decisions by itself,
    since for any proportion at most one of them is an error.
    """

    threshold: float
    error: float
    delta: float
    spot: Spot = "none"

    @property
    def floor(self) -> float:
        """At or below this, "above" would be an error."""
        return max(self.threshold - self.error, self.threshold / 2)

    @property
    def ceiling(self) -> float:
        """At or above this, "below" would be an error."""
        return min(self.threshold + self.error, (1 + self.threshold) / 2)

    @property
    def max_samples(self) -> int:
        """The number of samples at which a fixed test decides."""
        return _fixed_design(self.floor, self.ceiling, self._last_delta)[0]

    def decide(self, hits: int, misses: int, unknown: int = 0) -> Decision:
        """The decision after these samples; what is unknown counts against either answer."""
        if self._evidence_above(hits, misses + unknown) >= self._bar_above:
            return "above"
        if self._evidence_below(hits + unknown, misses) >= self._bar_below:
            return "below"
        if hits + misses + unknown == self.max_samples:
            return self.decide_last(hits, unknown)
        return "undecided"

    def decide_last(self, hits: int, unknown: int = 0) -> Decision:
        """The decision of the fixed test, which sees the first `max_samples` samples only."""
        _, cut = _fixed_design(self.floor, self.ceiling, self._last_delta)
        if hits >= cut:
            return "above"
        return "below" if hits + unknown < cut else "undecided"

    def safe_steps(self, hits: int, misses: int, unknown: int = 0) -> int:
        """How many samples can be drawn at once without missing the earliest possible decision."""
        left = self.max_samples - hits - misses - unknown
        steps = np.arange(1.0, max(left, 1) + 1)
        above = self._evidence_above(hits + steps, misses + unknown)
        below = self._evidence_below(hits + unknown, misses + steps)
        crossed = (above >= self._bar_above) | (below >= self._bar_below)
        return int(steps[crossed.argmax()]) if crossed.any() else max(left, 1)

    def spot_proofs(self) -> list[SpotProofs]:
        """The tests of "below" that settle a part of the open samples, in order."""
        stages = _STAGES[self.spot]
        return [
            SpotProofs(
                self.ceiling,
                math.ceil(stage * self.max_samples),
                _SPOT_PROOFS * self.delta / len(stages),
            )
            for stage in stages
        ]

    @cached_property
    def _bar_above(self) -> float:
        return -math.log(self.delta - self._last_delta)

    @cached_property
    def _bar_below(self) -> float:
        spot = 0.0 if self.spot == "none" else _SPOT_PROOFS
        return -math.log((1 - spot) * self.delta - self._last_delta)

    @property
    def _last_delta(self) -> float:
        return (_LAST_TEST if self.spot == "none" else _SPOT_LAST_TEST) * self.delta

    def _evidence_above(self, hits: int | Floats, misses: int | Floats) -> Floats:
        """The log of the evidence against d ≤ floor."""
        return _log_ratio(hits, misses, self.floor, self._high_alternatives)

    def _evidence_below(self, hits: int | Floats, misses: int | Floats) -> Floats:
        """The log of the evidence against d ≥ ceiling."""
        return _log_ratio(hits, misses, self.ceiling, self._low_alternatives)

    @cached_property
    def _high_alternatives(self) -> Floats:
        return np.array([self.ceiling, (1 + self.ceiling) / 2, 1.0])

    @cached_property
    def _low_alternatives(self) -> Floats:
        return np.array([self.floor, self.floor / 2, 0.0])


def _log_ratio(
    hits: int | Floats, misses: int | Floats, null: float, alternatives: Floats
) -> Floats:
    """The log of the mixture of likelihood ratios of the alternatives against the null."""
    hits, misses = np.broadcast_arrays(np.asarray(hits, float), np.asarray(misses, float))
    gain = xlogy(hits[..., None], alternatives / null)
    loss = xlogy(misses[..., None], (1 - alternatives) / (1 - null))
    return np.asarray(np.logaddexp.reduce(gain + loss + _WEIGHTS, axis=-1))


@lru_cache(maxsize=4096)
def _fixed_design(floor: float, ceiling: float, delta: float) -> tuple[int, int]:
    """The least n, and the cut, at which n samples decide with both errors at most delta."""
    low, high = 0, 1
    while _cut(high, floor, ceiling, delta) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _cut(middle, floor, ceiling, delta) is None:
            low = middle
        else:
            high = middle
    cut = _cut(high, floor, ceiling, delta)
    assert cut is not None
    return high, cut


def _cut(samples: int, floor: float, ceiling: float, delta: float) -> int | None:
    """The least c with P(X ≥ c | floor) ≤ delta, if P(X < c | ceiling) ≤ delta too."""
    cuts = np.arange(1, samples + 1)
    passes = bdtrc(cuts - 1, samples, floor) <= delta
    if not passes.any():
        return None
    cut = int(cuts[passes.argmax()])
    return cut if bdtr(cut - 1, samples, ceiling) <= delta else None
