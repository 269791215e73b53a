"""Whether a proportion is above a threshold: decided with few samples, and not estimated.

How many inputs must be proved not to flip, so that all the others need not be?

Most inputs that flip do so within a few tries. That one does not flip at all takes every variant
of the set. So only a random part of those that did not flip in a few tries is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.statistics.intervals import Floats, least_enough
from themis.statistics.special import bdtr, bdtrc, betaln, gammaln, xlogy

# Asked with the possible numbers of flips and the log of the evidence against each.
Enough: TypeAlias = Callable[[NDArray[np.int64], Floats], bool]

_DISTANCES = np.array([1.5, 3.0, 6.0])  # of the alternatives from the ceiling, in deviations
_NO_FLIP = 0.7  # the weight of the alternative that none of the open inputs flips
_PRIOR = (1.0, 8.0)  # otherwise their share of flips is thought to be beta distributed


@dataclass(frozen=True)
class SpotProofs:
    """A test that a proportion is below `ceiling`, from `rows` inputs and proofs of a part.

    Of `rows` inputs, a number fixed before anything is seen, some are known to flip and some
    not to. The others are open; a random part of them is settled. How it came about which are
    open does not matter, as long as what is settled next is drawn afterwards, independently.

    Guarantee: with a proportion of at least `ceiling` the evidence ever reaches `bar` with
    probability at most `delta`, however many open inputs are settled. For let R be the true number
    of flips among the open inputs. The likelihood ratio of all flips, known ones + R, has a mean
    of at most 1, since `rows` was fixed. Given the inputs, the likelihood ratio of the settled
    ones (draws without replacement from inputs of which R flip) is a martingale that starts at 1.
    So is the product given the inputs, times the first ratio; by Ville's inequality it ever
    reaches 1/delta with probability at most delta. R is unknown, so the least product over
    all R that are possible counts.
    """

    ceiling: float
    rows: int
    delta: float

    @property
    def bar(self) -> float:
        """The evidence that is enough for "below"."""
        return -math.log(self.delta)

    def start(self, hits: int, opened: int) -> SpotSample:
        """The test with so many known flips (and unknown inputs) and so many open ones."""
        log = self.of_rows[hits : hits + opened + 1]
        return SpotSample(hits, log, lambda _, evidence: evidence.min(initial=np.inf) >= self.bar)

    def needed(self, hits: int, opened: int) -> int | None:
        """How many must be settled if none of them flips; None if even all are not enough."""
        return self.start(hits, opened).needed()

    @cached_property
    def of_rows(self) -> Floats:
        """For each number of flips among all inputs the log of a mixture of likelihood ratios."""
        ceiling, flips = self.ceiling, np.arange(self.rows + 1)[:, None]
        deviation = math.sqrt(ceiling * (1 - ceiling) / self.rows)
        alternatives = np.maximum(ceiling - _DISTANCES * deviation, 0.0)
        gain = xlogy(flips, alternatives / ceiling)
        loss = xlogy(self.rows - flips, (1 - alternatives) / (1 - ceiling))
        return np.asarray(np.logaddexp.reduce(gain + loss, axis=1) - math.log(len(_DISTANCES)))


class SpotSample:
    """What settled open inputs say of the number of all flips, known and open ones.

    `evidence` has, for each number of flips among the open inputs (0, 1, …), the log of what
    speaks against it from the start; `enough` is asked with the possible numbers of all flips and
    the evidence against each.
    """

    def __init__(self, hits: int, evidence: Floats, enough: Enough) -> None:
        self.opened = len(evidence) - 1  # still
        self._left = np.arange(len(evidence))  # how many of them flip: all that is possible
        self._hits = hits  # known besides
        self._log = evidence
        self._enough = enough
        self._settled = self._flips = 0  # since inputs were last found by trying

    @property
    def done(self) -> bool:
        """Whether it is enough."""
        return self._is_enough(self._settled)

    def evidence(self) -> tuple[NDArray[np.int64], Floats]:
        """The possible numbers of all flips, and the log of the evidence against each."""
        return self._with_sample(self._settled)

    def settle(self, count: int, flips: int) -> None:
        """Note that so many open inputs, drawn at random, were settled, and how many flip."""
        self._settled += count
        self._flips += flips

    def found(self, flips: int) -> None:
        """Note that so many of the open inputs were found to flip, not by drawing them."""
        totals, log = self._with_sample(self._settled)
        self._hits += self._flips + flips
        self.opened -= self._settled + flips
        left = totals - self._hits
        possible = (left >= 0) & (left <= self.opened)
        self._left, self._log = left[possible], log[possible]
        self._settled = self._flips = 0

    def needed(self) -> int | None:
        """How many more must be settled if none of them flips; None if even all are not enough."""
        if not self._is_enough(self.opened):
            return None
        most = self.opened - self._settled
        return least_enough(-1, most, lambda more: self._is_enough(self._settled + more))

    def _is_enough(self, settled: int) -> bool:
        """Whether it would be, with so many settled and no further flips among them."""
        return self._enough(*self._with_sample(settled))

    def _with_sample(self, settled: int) -> tuple[NDArray[np.int64], Floats]:
        flips, constant = self._flips, settled - self._flips
        first, second = _PRIOR
        spread = float(betaln(first + flips, second + constant) - betaln(first, second))
        chances = [math.log(1 - _NO_FLIP) + spread, *[math.log(_NO_FLIP)] * (not flips)]
        alternative = float(np.logaddexp.reduce(chances))
        possible = (self._left >= flips) & (self.opened - self._left >= constant)
        left = self._left[possible]
        chance = _log_falling(left, flips) + _log_falling(self.opened - left, constant)
        chance -= _log_falling(self.opened, settled)
        return self._hits + left, self._log[possible] + alternative - chance


def _log_falling(number: int | NDArray[np.int64], count: int) -> Floats:
    """The log of number · (number − 1) · … with `count` factors."""
    return np.asarray(gammaln(number + 1.0) - gammaln(number - count + 1.0))


Decision = Literal["above", "below", "undecided"]
Spot = Literal["none", "some", "many", "most"]  # how often spot proofs are tried

_WEIGHTS = np.log([0.4, 0.2, 0.4])  # of the three alternatives: near, half way, extreme
_SPOT_WEIGHTS = np.log([0.2, 0.2, 0.2, 0.1, 0.3])  # the same with two inside the zone before them
_SPOT_PROOFS = 0.45  # the part of delta that spot proofs of "below" get
# When spot proofs are tried, in parts of `max_samples`: later where a proof is expensive.
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

    At a threshold of 0 the floor is 0: one hit proves "above". At 1 the ceiling is 1: one miss
    proves "below". What is left to chance is only the other answer.
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
    def half_zone(self) -> float:
        """Half the width of the zone; narrower than the error near 0 and 1."""
        return min(self.error, round((self.ceiling - self.floor) / 2, 12))

    def decide_ends(self, low: float, high: float) -> Decision:
        """The decision of an interval: where both ends are on one side of the zone's other end."""
        if low > self.floor:
            return "above"
        return "below" if high < self.ceiling else "undecided"

    @property
    def one_decides(self) -> bool:
        """Whether one sample can decide: a hit at a threshold of 0, a miss at 1."""
        return self.floor == 0.0 or self.ceiling == 1.0

    @property
    def max_samples(self) -> int:
        """The number of samples at which a fixed test decides."""
        return _fixed_design(self.floor, self.ceiling, self._last_delta)[0]

    @property
    def rows_without_hits(self) -> int:
        """The number of samples that decide "below" if none of them is a hit."""
        enough = (n for n in range(1, self.max_samples) if self.decide(0, n) == "below")
        return next(enough, self.max_samples)

    def decide(self, hits: int, misses: int, unknown: int = 0) -> Decision:
        """The decision after these samples; what is unknown counts against either answer."""
        if self.shows_above(hits, misses + unknown):
            return "above"
        if self._evidence_below(hits + unknown, misses) >= self._bar_below:
            return "below"
        if hits + misses + unknown == self.max_samples:
            return self.decide_last(hits, unknown)
        return "undecided"

    def shows_above(self, hits: int, others: int) -> bool:
        """Whether so many hits are enough for "above", whatever the others are."""
        return bool(self._evidence_above(hits, others) >= self._bar_above)

    def decide_last(self, hits: int, unknown: int = 0) -> Decision:
        """The decision of the fixed test, which sees the first `max_samples` samples only."""
        _, cut = _fixed_design(self.floor, self.ceiling, self._last_delta)
        if hits >= cut:
            return "above"
        return "below" if hits + unknown < cut else "undecided"

    def safe_steps(self, hits: int, misses: int, unknown: int = 0) -> int:
        """How many samples can be drawn at once without missing the earliest possible decision."""
        left = max(self.max_samples - hits - misses - unknown, 1)
        first, last = 0, min(1_024, left)  # samples that are looked ahead first
        while first < left:  # in ever larger parts: mostly the first is enough
            steps = np.arange(first + 1.0, last + 1)
            above = self._evidence_above(hits + steps, misses + unknown)
            below = self._evidence_below(hits + unknown, misses + steps)
            crossed = (above >= self._bar_above) | (below >= self._bar_below)
            if crossed.any():
                return int(steps[crossed.argmax()])
            first, last = last, min(8 * last, left)
        return left

    def likely_samples(self, hits: int, misses: int) -> int:
        """How many samples a decision takes in all, if they go on like this: a guess."""
        seen = hits + misses
        if not seen:
            return self.safe_steps(0, 0)
        sizes = np.geomspace(seen, max(self.max_samples, seen), 128)
        above = self._evidence_above(hits * sizes / seen, misses * sizes / seen)
        below = self._evidence_below(hits * sizes / seen, misses * sizes / seen)
        crossed = (above >= self._bar_above) | (below >= self._bar_below)
        return math.ceil(float(sizes[crossed.argmax() if crossed.any() else -1]))

    def spot_proofs(self) -> list[SpotProofs]:
        """The tests of "below" that settle a part of the open samples, in order.

        Against a proportion of 1 a single one is enough, so that none are planned.
        """
        stages = _STAGES[self.spot] if self.ceiling < 1.0 else ()
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
        """The part of the fixed test at the last sample."""
        return (0.5 if self.spot == "none" else 0.25) * self.delta

    def _evidence_above(self, hits: int | Floats, misses: int | Floats) -> Floats:
        """The log of the evidence against d ≤ floor."""
        weights = _WEIGHTS if self.spot == "none" else _SPOT_WEIGHTS
        return _log_ratio(hits, misses, self.floor, self._high_alternatives, weights)

    def _evidence_below(self, hits: int | Floats, misses: int | Floats) -> Floats:
        """The log of the evidence against d ≥ ceiling."""
        return _log_ratio(hits, misses, self.ceiling, self._low_alternatives, _WEIGHTS)

    @cached_property
    def _high_alternatives(self) -> Floats:
        far = [self.ceiling, (1 + self.ceiling) / 2, 1.0]
        near = [] if self.spot == "none" else [0.25, 0.5]
        return np.array([self.floor + part * (self.ceiling - self.floor) for part in near] + far)

    @cached_property
    def _low_alternatives(self) -> Floats:
        return np.array([self.floor, self.floor / 2, 0.0])


def _log_ratio(
    hits: int | Floats, misses: int | Floats, null: float, alternatives: Floats, weights: Floats
) -> Floats:
    """The log of the mixture of likelihood ratios of the alternatives against the null."""
    hits, misses = np.broadcast_arrays(np.asarray(hits, float), np.asarray(misses, float))
    if null in (0.0, 1.0):  # never a hit, never a miss: one refutes it, and nothing else does
        return np.where(misses if null else hits, np.inf, -np.inf)
    gain = xlogy(hits[..., None], alternatives / null)
    loss = xlogy(misses[..., None], (1 - alternatives) / (1 - null))
    return np.asarray(np.logaddexp.reduce(gain + loss + weights, axis=-1))


@lru_cache(maxsize=4096)
def _fixed_design(floor: float, ceiling: float, delta: float) -> tuple[int, int]:
    """The least n, and the cut, at which n samples decide with both errors at most delta."""
    low, high = 0, 1
    while _cut(high, floor, ceiling, delta) is None:
        low, high = high, 2 * high
    least = least_enough(low, high, lambda n: _cut(n, floor, ceiling, delta) is not None)
    cut = _cut(least, floor, ceiling, delta)
    assert cut is not None
    return least, cut


def _cut(samples: int, floor: float, ceiling: float, delta: float) -> int | None:
    """The least c with P(X ≥ c | floor) ≤ delta, if P(X < c | ceiling) ≤ delta too."""
    cut = least_enough(0, samples + 1, lambda c: bool(bdtrc(c - 1, samples, floor) <= delta))
    return cut if cut <= samples and bdtr(cut - 1, samples, ceiling) <= delta else None
