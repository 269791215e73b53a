"""Exact group scores: the rates of the groups, added up over every input that occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Variants
from themis.inputs.assignments import Assignments, Places
from themis.results.model import GroupScore
from themis.results.notes import Ending, Note
from themis.scores.exact import Domain, rounded, summed
from themis.scores.group import GroupInputs, passes
from themis.scores.group_answers import averaged, group_score, list_groups
from themis.scores.medians import scoring_rates
from themis.scores.undecided import exact_undecided
from themis.settings import Settings
from themis.statistics.proportions import Interval
from themis.subjects.decisions import FAILED, Cells
from themis.subjects.readings import Reading

# So many random inputs of a group, with the outputs that they had.
Members = Callable[[int, int, np.random.Generator], tuple[NDArray[Any], Cells]]


@dataclass
class GroupSums:
    """Weights and counts of inputs by their assignment, as they come."""

    assignments: Assignments
    reading: Reading
    weight: NDArray[np.float64] = field(init=False)
    squares: NDArray[np.float64] = field(init=False)  # of the weights
    certain: NDArray[np.float64] = field(init=False)  # weight of what is favourable
    possible: NDArray[np.float64] = field(init=False)  # and of what may be
    failed_weight: NDArray[np.float64] = field(init=False)
    count: NDArray[np.float64] = field(init=False)
    failed: NDArray[np.float64] = field(init=False)
    unknown: int = 0
    spelled: int = 0

    def __post_init__(self) -> None:
        sums = ("weight", "squares", "certain", "possible", "failed_weight", "count", "failed")
        for name in sums:
            setattr(self, name, np.zeros(self.assignments.count))

    def add(self, domain: Domain) -> None:
        """Count those inputs of a domain, or of a part of it, that belong to a group."""
        domain = members_of(domain, self.assignments)
        own, size = self.assignments.index_of(domain.codes), self.assignments.count
        cells, weights = self.reading.cells(domain.cells), domain.weights
        certain, possible = self.reading.share_ends(cells)
        for ends, shares in ((self.certain, certain), (self.possible, possible)):
            some = np.flatnonzero(shares)
            ends += summed(own[some], weights[some] * shares[some], size)
        self.count += np.bincount(own, minlength=size)
        self.squares += np.bincount(own, weights**2, size)
        failed = np.flatnonzero(cells == FAILED)
        self.failed_weight += summed(own[failed], weights[failed], size)
        self.failed += np.bincount(own[failed], minlength=size)
        self.unknown += int((possible > certain).sum())
        self.spelled += int(self.reading.is_spelled(cells).sum())
        self.weight += summed(own, weights, size)  # last: an interrupt leaves wider ends

    def rates(self, totals: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any], Places]:
        """The least and the highest rate of each group, and which assignments are groups.

        `totals` is what each group weighs, run or not.
        """
        present = np.flatnonzero(totals > 0)
        weight = totals[present]
        rest = np.maximum(weight - self.weight[present], 0.0)
        low = self.certain[present] / weight
        return low, (self.possible[present] + rest) / weight, present

    def spread(self, totals: NDArray[np.float64]) -> tuple[float, float]:
        """How far the groups are apart, at least and at most."""
        low, high, _ = self.rates(totals)
        least, most = rounded(low.max() - high.min()), rounded(high.max() - low.min())
        return max(0.0, least), max(0.0, most)


def exact_group(
    sampler: Sampler, domain: Domain, variants: Variants, settings: Settings, cost: Cost
) -> GroupScore:
    """The group score by Definitions 3.5 and 3.6; failed executions leave an interval."""
    assignments, reading = variants.assignments, sampler.reading
    sums = GroupSums(assignments, reading)
    sums.add(domain)
    inputs = members_of(domain, assignments)
    own, present = assignments.index_of(inputs.codes), np.flatnonzero(sums.weight > 0)

    def members(group: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
        inside = np.flatnonzero(own == present[group])
        weights = inputs.weights[inside] / inputs.weights[inside].sum()
        chosen = inside[passes(rng, weights, count)]
        return inputs.codes[chosen], reading.cells(inputs.cells[chosen])

    cells = reading.cells(inputs.cells)
    scoring = scoring_rates(reading, cells, own, assignments.count, inputs.weights)
    return score_of_sums(
        sums, members, totals=sums.weight, settings=settings, cost=cost, scoring=scoring
    )


def score_of_sums(
    sums: GroupSums,
    members: Members,
    *,
    totals: NDArray[np.float64],
    settings: Settings,
    cost: Cost,
    scoring: Sequence[float | None] = (),
    stopped: Ending = Ending.EXHAUSTED,
    notes: tuple[Note, ...] = (),
) -> GroupScore:
    """The group score that sums amount to; `totals` is what each group weighs, run or not.

    `scoring` is the share of each assignment above the median, where that is known.
    """
    low, high, present = sums.rates(totals)
    seen, none = sums.weight[present], np.zeros(len(present))
    of = seen if sums.reading.statistic == "rate" else seen - sums.failed_weight[present]
    rates = np.divide(sums.certain[present], of, out=none.copy(), where=of > 0)
    rates = np.clip(rates, low, high)  # of those run; an interrupt may leave a piece half counted
    labels, counts = sums.assignments.labels_of(present), sums.count[present]
    groups, omitted = list_groups(
        labels,
        rates,
        low,
        high,
        counts,
        places=np.arange(len(present)),
        scoring=[scoring[place] for place in present] if scoring else [None] * len(present),
        runs=averaged(seen, sums.squares[present]),
        figure=rounded,
    )
    score = rounded(rates.max() - rates.min())
    ends = sums.spread(totals)
    if not (sums.unknown or stopped.is_early) or len(present) == 1:
        ends = score, score  # one group is not apart from itself
    cost.runner.finding = GroupInputs(
        members, int(rates.argmax()), int(rates.argmin()), sums.reading, kept=1.0
    )
    shares = np.divide(sums.failed_weight[present], seen, out=none, where=seen > 0)
    return group_score(
        groups,
        Interval(score, *ends),
        settings=settings,
        cost=cost,
        against=sums.assignments.names,
        method="exact",
        samples=int(sums.count.sum()),
        stopped=stopped,
        unknown=sums.unknown,
        reading=sums.reading,
        spelled=sums.spelled,
        notes=(*notes, *omitted, *exact_undecided(labels, sums.failed[present], counts, shares)),
    )


def members_of(domain: Domain, assignments: Assignments) -> Domain:
    """Those inputs of a domain that occur and belong to a group."""
    domain = domain.occurring
    return domain.part(assignments.in_groups(domain.codes))
