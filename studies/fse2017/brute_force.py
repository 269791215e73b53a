"""A large plain sample that checks the scores, with numpy alone and none of Themis' code.

Definitions 3.5 and 3.7 as they stand: draw people uniformly, give each of them every value of the
set in turn, and look at all decisions.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from .machines import Stored

BLOCK = 20_000
Z = 3.29  # 99.9 % of a normal distribution lie within ± 3.29 deviations


@dataclass(frozen=True)
class Truth:
    """Scores from a plain sample, with the margin that 99.9 % of such samples keep."""

    people: int
    group: float
    group_margin: float
    causal: float
    causal_margin: float


def plain_scores(stored: Stored, against: tuple[str, ...], people: int, seed: int) -> Truth:
    """The group and the causal score of a set, counted on so many random people."""
    rng = np.random.default_rng(seed)
    places = [stored.names.index(name) for name in against]
    assignments = list(itertools.product(*(range(stored.sizes[place]) for place in places)))
    accepted = np.zeros(len(assignments))
    flips = 0
    for start in range(0, people, BLOCK):
        number = min(BLOCK, people - start)
        columns = [rng.integers(0, size, number) for size in stored.sizes]
        some, every = np.zeros(number, dtype=bool), np.ones(number, dtype=bool)
        for which, values in enumerate(assignments):
            for place, value in zip(places, values, strict=True):
                columns[place] = np.full(number, value)
            decisions = stored.machine.decide(columns)
            accepted[which] += decisions.sum()
            some |= decisions
            every &= decisions
        flips += int((some & ~every).sum())
    rates, causal = accepted / people, flips / people
    # Two rates on the same people: their difference varies no more than people who flip.
    spread = math.sqrt(max(causal, 1 / people) / people)
    # Of many equal groups the most extreme are looked at: the margin grows with their number.
    pairs = len(assignments) * (len(assignments) - 1) / 2
    return Truth(
        people=people,
        group=float(rates.max() - rates.min()),
        group_margin=(Z + math.sqrt(2 * math.log(pairs))) * spread,
        causal=causal,
        causal_margin=Z * spread,
    )
