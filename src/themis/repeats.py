"""Repeats: does the subject decide the same when it is asked again? If not, flips may be noise.

A fair subject that flips at random with probability q shows a causal score of 1 − (1−q)^k − q^k
for k assignments. So a few of the pairs that a score rests on are run again: where noise made them,
they hardly ever come out the same. Only then is the rate of the noise worth measuring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from themis.characteristics import Value
from themis.results import CausalScore, Score
from themis.sampling import Sampler
from themis.schema import Schema
from themis.settings import Settings

PAIRS = 3  # run again for each score: noise alone repeats one with a chance of about 2q
INPUTS = 300  # run again where there is noise, to say how much

NOISE = "noise"  # why a score is inconclusive


def confirm(score: Score, sampler: Sampler, settings: Settings) -> Score:
    """The score; if its pairs do not come out the same again, less certain by what noise explains.

    Cost: at most 2 × PAIRS executions, which the result counts as repeats, where nothing is wrong.
    The rate of noise holds with the settings' confidence, at a fixed number of inputs.
    """
    if not isinstance(score, CausalScore) or not score.witnesses or settings.stopping == "paper":
        return score
    runner = sampler.runner
    pairs = score.witnesses[:PAIRS]
    codes = _encode(runner.schema, [row for pair in pairs for row in pair.inputs])
    outputs = [output for pair in pairs for output in pair.outputs]
    before = sampler.reading.labels.number(outputs)
    if not _differing(sampler, codes, before):
        return score
    inputs = sampler.base.rows(0, int(min(INPUTS, max(runner.executions_left // 2, 1))))
    before = sampler.reading.cells(runner.run(inputs))
    differing = _differing(sampler, inputs, before, anew=True)
    flip_rate = _flip_rate(differing, len(inputs), settings.confidence)
    assignments = min(sampler.assignments(runner.schema.columns_of(score.against)).count, 1_000)
    explained = 1 - (1 - flip_rate) ** assignments - flip_rate**assignments
    return replace(
        score,
        low=max(0.0, score.low - explained),
        high=min(1.0, score.high + explained),
        stopped=NOISE,
        notes=(*score.notes, _note(differing, len(inputs), explained)),
    )


def _differing(
    sampler: Sampler, codes: NDArray[Any], before: NDArray[Any], *, anew: bool = False
) -> int:
    """How many of these inputs get another output than before; those confirmed once are left."""
    runner, recall = sampler.runner, sampler.runner.recall
    if recall is not None and not anew:
        new = ~recall.confirmed(codes)
        codes, before = codes[new], before[new]
    if not len(codes) or runner.executions_left < len(codes) or runner.out_of_time:
        return 0
    after = sampler.reading.cells(runner.repeat(codes))
    same = (after == before) | ((after >= 0) & (before >= 0))
    differing = int((~same | (sampler.reading.distances(before, after) > 0)).sum())
    if recall is not None and not differing:
        recall.confirm(codes)
    return differing


def _flip_rate(differing: int, inputs: int, confidence: float) -> float:
    """At most so often an output is not the usual one: two runs differ with probability 2q(1−q)."""
    share = 1.0
    if differing < inputs:
        share = float(betaincinv(differing + 1, inputs - differing, confidence))
    return (1 - math.sqrt(max(1 - 2 * share, 0.0))) / 2


def _note(differing: int, inputs: int, explained: float) -> str:
    return (
        f"the subject does not always decide the same: {differing:,} of {inputs:,} inputs got "
        "another decision when they were run again, and so did people shown here; noise alone may "
        f"explain {100 * explained:.1f} points of this score"
    )


def _encode(schema: Schema, rows: Sequence[dict[str, Value]]) -> NDArray[Any]:
    codes = [[each.encode(row[each.name]) for each in schema] for row in rows]
    return np.array(codes, dtype=schema.dtype, order="F")
