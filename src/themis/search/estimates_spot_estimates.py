"""How many inputs flip under a set whose proofs are dear? An interval from proofs of a part.

To ± error by proving every input that does not flip in a few tries takes hundreds of proofs. It
takes far fewer where more inputs are tried, and a random part of the open ones is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.search.flips import FIRST_TRIES
from themis.search.tried_inputs import TRIES_SHARE, Counts, TriedInputs
from themis.statistics.intervals import Floats, clopper_pearson
from themis.statistics.proportions import Interval, ProportionRule
from themis.statistics.thresholds_spot_proofs import SpotSample

_PART = 0.25  # of a stage's error: for the number of flips among the open inputs


class Stage(NamedTuple):
    """A number of inputs at which the interval may be found."""

    rows: int
    alpha: float  # that it is wrong
    error: float  # half of the width that it must not exceed


@dataclass(frozen=True)
class SpotRule:
    """Knows a proportion to ± error with `confidence`, at one of three numbers of inputs.

    These are fixed before anything is seen, and each has its part of 1 − confidence. At each of
    them, three things may go wrong: the number of flips among the open inputs is outside of
    what the settled ones leave possible (the likelihood ratio of draws without replacement is a
    martingale, however many are settled), and the proportion is below or above what the number of
    all flips says (Clopper and Pearson). If none does, the interval holds.
    """

    confidence: float
    error: float

    def stages(self) -> list[Stage]:
        """A quarter, once and four times as many inputs as are enough with all proofs."""
        alpha = 1.0 - self.confidence
        most = ProportionRule(self.confidence, self.error).max_samples
        parts = ((0.25, 0.1), (1.0, 0.2), (4.0, 0.7))
        return [Stage(ceil(size * most), share * alpha, self.error) for size, share in parts]


def spot_estimate(inputs: TriedInputs, rule: SpotRule) -> Interval:
    """Try inputs and prove a part of them, at the stage that is foreseen to be the cheapest."""
    stages = rule.stages()
    while True:
        stage = stages.pop(0)
        inputs.draw(stage.rows)
        costs = [_cost(inputs, each) for each in (stage, *stages)]
        if stages and costs[0] > min(costs[1:]):
            continue
        planned = _sample(stage, inputs.counts).needed()
        inputs.try_more(inputs.open_places[:planned])
        counts = inputs.counts
        sample = _sample(stage, counts)
        if inputs.prove(sample) or not stages:
            return _interval(stage, counts, inputs.counts, sample)


def _sample(stage: Stage, counts: Counts) -> SpotSample:
    """What is to be settled at a stage: enough when the interval is as narrow as asked."""

    def enough(totals: NDArray[np.int64], evidence: Floats) -> bool:
        low, high = _ends(stage, _plausible(stage, totals, evidence), counts.unknown)
        return high - low <= 2 * stage.error

    return SpotSample(counts.hits, np.zeros(counts.untried + 1), enough)


def _interval(stage: Stage, before: Counts, after: Counts, sample: SpotSample) -> Interval:
    """The ends, and a score between them, within ± error of both where they are close enough."""
    totals, evidence = sample.evidence()
    plausible = _plausible(stage, totals, evidence)
    if after.unknown > before.unknown:  # the sample takes those that failed for flips
        plausible = np.append(plausible, after.hits)
    low, high = _ends(stage, plausible, before.unknown)
    score = min(max(float(totals[evidence.argmin()]) / stage.rows, low), high)
    if high - low <= 2 * stage.error:
        score = min(max(score, high - stage.error), low + stage.error)
    return Interval(score, low, high)


def _plausible(stage: Stage, totals: NDArray[np.int64], evidence: Floats) -> NDArray[np.int64]:
    """The numbers of flips that the settled inputs do not speak against."""
    plausible = totals[evidence < -np.log(_PART * stage.alpha)]
    return plausible if len(plausible) else totals


def _ends(stage: Stage, totals: NDArray[np.int64], unknown: int) -> tuple[float, float]:
    """The ends for a proportion, if the number of flips is one of these."""
    alpha = (1 - _PART) * stage.alpha
    low, _ = clopper_pearson(int(totals.min()), stage.rows, alpha)
    _, high = clopper_pearson(int(totals.max()) + unknown, stage.rows, alpha)
    return low, high


def _cost(inputs: TriedInputs, stage: Stage) -> float:
    """The executions that a stage takes from here, as far as they can be foreseen."""
    counts = inputs.counts.scaled(stage.rows)
    proofs = _sample(stage, counts).needed()
    if proofs is None:
        return np.inf
    cost = (stage.rows - len(inputs.states)) * (1 + FIRST_TRIES * counts.untried / counts.total)
    opened = inputs.open_places
    if proofs and len(opened):
        each = float(inputs.book.proof_costs(inputs.mask, opened).mean())
        cost += (1 + TRIES_SHARE) * proofs * each
    return cost
