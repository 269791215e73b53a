"""How many inputs must be proved not to flip, so that all the others need not be?

Most inputs that flip do so within a few tries. That one does not flip at all takes every variant
of the set. So only a random part of those that did not flip in a few tries is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlogy

from themis.statistics.intervals import Floats

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
        few, enough = -1, self.opened - self._settled
        if not self._is_enough(self.opened):
            return None
        while enough - few > 1:
            middle = (few + enough) // 2
            if self._is_enough(self._settled + middle):
                enough = middle
            else:
                few = middle
        return enough

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
