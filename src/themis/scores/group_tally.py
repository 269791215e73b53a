"""The one tally of a group score: what is known of each group, and the score that this makes.

Inputs come with their group, output and weight. Executions without a decision are counted by group:
such inputs leave ends, and groups that surely differ in them are named.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.inputs.keys import summed
from themis.results.model import GroupScore
from themis.results.notes import Ending, Note
from themis.results.parts import Group
from themis.scores.domain import rounded
from themis.scores.question import (
    GroupInputs,
    Members,
    Question,
    Scored,
    passes,
)
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import Interval, joint_rates, ratio_of, sure_gap
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

LISTED = 10_000  # groups of a result at most
_UPPER, _LOWER = 26, 27  # bits of a share: sums of whole numbers do not depend on their order


def members_of(codes: NDArray[Any], cells: Cells, own: NDArray[Any], weights: Floats) -> Members:
    """What draws inputs of a group by their weights, of those that have an output."""

    def draw(group: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
        inside = np.flatnonzero((own == group) & (cells >= 0))
        chosen = inside[passes(rng, weights[inside], count)]
        return codes[chosen], cells[chosen]

    return draw


class GroupTally:
    """Sums over inputs that were run once, by group; `totals` is what groups weigh, run or not."""

    def __init__(self, reading: Reading, totals: Floats) -> None:
        self.reading, self.totals = reading, totals
        # Of weights, their squares, what is favourable, may be, and failed; then of inputs.
        self._weight, self._squares, self._certain, self._possible, self._lost = (
            np.zeros(len(totals)) for _ in range(5)
        )
        self._count, self._failed = (np.zeros(len(totals)) for _ in range(2))
        self.unknown = 0

    def add(self, own: NDArray[Any], answers: Cells, weights: Floats, counts: Any = 1) -> None:
        """Count inputs of these groups, each `counts` times."""
        size, run = len(self.totals), np.flatnonzero(answers != NOT_RUN)
        counts = np.broadcast_to(counts, own.shape)[run]
        own, weights, cells = own[run], weights[run], self.reading.cells(answers[run])
        certain, possible = self.reading.share_ends(cells)
        failed = np.flatnonzero(cells == FAILED)
        self._certain += summed(own, weights * certain, size)
        self._possible += summed(own, weights * possible, size)
        self._lost += summed(own[failed], weights[failed], size)
        self._failed += np.bincount(own[failed], counts[failed], size)
        self._count += np.bincount(own, counts, size)
        self._squares += np.bincount(own, weights**2, size)
        self.unknown += int(counts[possible > certain].sum())
        self._weight += summed(own, weights, size)  # last: an interrupt leaves wider ends

    @property
    def samples(self) -> int:
        """How many inputs were counted."""
        return int(self._count.sum())

    def _ends(self) -> tuple[Floats, Floats]:
        """The least and the highest rate of each group, which must weigh something."""
        rest = np.maximum(self.totals - self._weight, 0.0)
        weight = np.where(self.totals > 0, self.totals, np.inf)
        return self._certain / weight, (self._possible + rest) / weight

    def spread(self) -> tuple[float, float]:
        """How far the groups are apart, at least and at most."""
        low, high = (each[self.totals > 0] for each in self._ends())
        least, most = rounded(low.max() - high.min()), rounded(high.max() - low.min())
        return max(0.0, least), max(0.0, most)

    def score(
        self,
        question: Question,
        labels: Sequence[dict[str, Value]],
        members: Members,
        stopped: Ending,
        scoring: Sequence[float | None] | None = None,
        *,
        of_decided: bool = False,
    ) -> Scored:
        """The group score that the sums amount to; `scoring` is what is above the median.

        Rates are of all that were run, or `of_decided`: then groups without a decision are not
        listed. Groups are listed once each has an input that was run: a ratio rests on all of them.
        """
        occurs, decided = self.totals > 0, self._weight - self._lost
        of = decided if of_decided or self.reading.statistic != "rate" else self._weight
        low, high = self._ends()
        rates = np.divide(self._certain, of, out=np.zeros(len(of)), where=of > 0)
        rates = np.clip(rates, low, high)  # an interrupt may leave a piece half counted
        some = decided if of_decided else self._weight
        places = np.flatnonzero(some > 0 if some.any() else occurs & ~np.bool_(of_decided))
        silent = int(occurs.sum()) - len(places)
        score = rounded(np.ptp(rates[places])) if len(places) else 0.0
        interval = Interval(score, score, score)  # one group is not apart from itself
        if (self.unknown or stopped.is_early) and occurs.sum() > 1:
            interval = Interval(score, *self.spread())
        groups, notes = self._listed(labels, (rates, low, high), places, scoring)
        if silent and of_decided:
            notes = (Note.of("groups-without-decision", groups=silent), *notes)
        result = group_score(
            question,
            groups if of_decided or not silent else (),
            interval,
            all_groups=not silent,
            method="exact",
            samples=self.samples,
            stopped=stopped,
            unknown=self.unknown,
            notes=(*notes, *self._undecided(labels)),
        )
        places = places[(self._count > self._failed)[places]]  # with inputs to run again
        if not len(places):
            return Scored(result)
        best, worst = (int(places[pick(rates[places])]) for pick in (np.argmax, np.argmin))
        return Scored(result, GroupInputs(members, best, worst, self.reading, kept=1.0))

    def _listed(
        self,
        labels: Sequence[dict[str, Value]],
        figures: tuple[Floats, Floats, Floats],
        places: NDArray[np.int64],
        scoring: Sequence[float | None] | None,
    ) -> tuple[tuple[Group, ...], tuple[Note, ...]]:
        """Those of the groups at these places that a result lists, and a note if that is not all.

        Of very many, those with the lowest and highest rates and ends: all that a ratio rests on.
        """
        listed, notes = places, tuple[Note, ...]()
        if len(places) > LISTED:
            ends = LISTED // 6
            orders = [places[np.argsort(each[places], kind="stable")] for each in figures]
            some = [part for order in orders for part in (order[:ends], order[-ends:])]
            listed = np.unique(np.concatenate(some))
            notes = (Note.of("groups-not-listed", groups=len(places), listed=len(listed)),)
        # How many answers a rate averages: copies share one, and heavy ones count for more.
        squares = np.where(self._squares > 0, self._squares, np.inf)
        groups = (
            Group(
                values=labels[place],
                rate=rounded(figures[0][place]),
                low=rounded(figures[1][place]),
                high=rounded(figures[2][place]),
                samples=int(self._count[place]),
                above_median=scoring[place] if scoring else None,
                runs=float(self._weight[place] ** 2 / squares[place]),
            )
            for place in listed.tolist()
        )
        return tuple(groups), notes

    def _undecided(self, labels: Sequence[dict[str, Value]]) -> Iterator[Note]:
        """How often groups got no decision; those that were not run may get none, either."""
        if self._failed.any():
            weight, seen = (np.where(w > 0, w, np.inf) for w in (self.totals, self._weight))
            rest = np.maximum(self.totals - self._weight, 0.0)
            ends = self._lost / seen, self._lost / weight, (self._lost + rest) / weight
            rates = [Interval(*each) for each in zip(*(e.tolist() for e in ends), strict=True)]
            yield from undecided_notes(labels, self._failed, self._count, rates)


class SeenCells:
    """What sampled rows hold by group: numbers, and cells without a decision."""

    def __init__(self, reading: Reading, groups: int) -> None:
        self.reading = reading
        self.undecided = np.zeros(groups, dtype=np.int64)  # by group
        self._upper, self._lower, self._counts = np.zeros((3, groups), dtype=np.int64)

    def add(self, cells: Cells, active: Flags) -> None:
        """Count rows with a column for each active group."""
        if cells.size and cells.min() < 0:
            self.undecided[active] += (cells == FAILED).sum(axis=0)
        labels = self.reading.labels
        if self.reading.statistic != "mean" or not isinstance(labels, NumberPart):
            return
        scaled = np.ldexp(labels.shares(cells), _UPPER)
        upper = np.floor(scaled)
        self._upper[active] += upper.astype(np.int64).sum(axis=0)
        self._lower[active] += np.ldexp(scaled - upper, _LOWER).astype(np.int64).sum(axis=0)
        self._counts[active] += (cells >= 0).sum(axis=0)

    def means(self, rates: Sequence[Interval]) -> tuple[Interval, ...]:
        """The groups' means with these ends, which are made to contain them; rates as they are."""
        return tuple(
            ends if mean is None else _containing(mean, ends)
            for mean, ends in zip(self._means(), rates, strict=True)
        )

    def spread(self, active: Flags, known: Interval) -> Interval:
        """How far the means of the active groups are apart, in the same way."""
        own = itertools.compress(self._means(), active)
        seen = [mean for mean in own if mean is not None]
        return _containing(max(seen) - min(seen), known) if seen else known

    def notes(
        self, labels: Sequence[dict[str, Value]], trials: NDArray[np.int64], confidence: float
    ) -> Iterator[Note]:
        """How often groups got no decision; the ends hold for all of them together."""
        rates = joint_rates(self.undecided, trials, confidence)
        yield from undecided_notes(labels, self.undecided, trials, rates, confidence)

    def _means(self) -> list[float | None]:
        sums = np.ldexp(self._upper + np.ldexp(self._lower, -_LOWER), -_UPPER).tolist()
        each = zip(sums, self._counts.tolist(), strict=True)
        return [total / count if count else None for total, count in each]


def _containing(score: float, ends: Interval) -> Interval:
    return Interval(score, min(ends.low, score), max(ends.high, score))


def undecided_notes(
    labels: Sequence[dict[str, Value]],
    undecided: NDArray[Any],
    trials: NDArray[Any],
    rates: Sequence[Interval],
    confidence: float | None = None,
) -> Iterator[Note]:
    """How often each group got no decision, if that happened; apart, if they surely differ.

    Without `confidence` the rates are those of everyone.
    """
    if not undecided.any():
        return
    tried = np.flatnonzero(trials).tolist()
    each = [
        {"values": labels[place], "undecided": int(undecided[place]),
         "samples": int(trials[place]), "rate": rates[place].score,
         "low": rates[place].low, "high": rates[place].high}
        for place in tried
    ]  # fmt: skip
    gap = sure_gap([rates[place] for place in tried])
    if gap > 0:
        yield Note.of("no-decision-apart", groups=each, apart=gap, confidence=confidence)
    else:
        yield Note.of("no-decision-rates", groups=each, confidence=confidence)


def group_score(
    question: Question,
    groups: tuple[Group, ...],
    interval: Interval,
    *,
    all_groups: bool = True,
    unknown: int = 0,
    lower_bound: bool = False,
    **how: Any,
) -> GroupScore:
    """The result for these groups, with the impact ratio; `how` they were measured."""
    reading = question.reading
    ratio = None
    if reading.statistic == "rate":  # a ratio of means depends on where the scale begins
        ratio = impact_ratio(groups, all_groups=all_groups)
    return GroupScore(
        **question.fields(interval, **how),
        groups=groups,
        statistic=reading.statistic,
        favours=reading.favours,
        impact_ratio=None if ratio is None else ratio.score,
        impact_ratio_low=None if ratio is None else ratio.low,
        impact_ratio_high=None if ratio is None else ratio.high,
        unknown=unknown,
        lower_bound=lower_bound,
    )


def impact_ratio(groups: Sequence[Group], *, all_groups: bool) -> Interval | None:
    """The lowest rate divided by the highest; None where no group has a favourable decision.

    If there are further groups, they may have any rate: the ratio can be as low as 0.
    """
    ratio = ratio_of([Interval(each.rate, each.low, each.high) for each in groups])
    return ratio if ratio is None or all_groups else replace(ratio, low=0.0)


def scoring_rates(
    reading: Reading,
    cells: NDArray[Any],
    own: NDArray[Any],
    groups: int,
    weights: Floats | None = None,
) -> list[float | None]:
    """The share of each group above the median of all; None where outputs are no numbers.

    `own` is the group of each cell. Cells without an output do not count, and neither has a group
    without any a rate. The shares are of exactly these cells: no interval is claimed.
    """
    known = cells >= 0
    weight = np.ones(known.sum()) if weights is None else weights[known]
    is_mean = reading.statistic == "mean" and isinstance(reading.labels, NumberPart)
    if not is_mean or not weight.sum():
        return [None] * groups
    assert isinstance(reading.labels, NumberPart)
    numbers, own = reading.labels.shares(cells)[known], own[known]
    total = summed(own, weight, groups)
    higher = summed(own, weight * above_median(numbers, weight), groups)
    return [float(h / t) if t else None for h, t in zip(higher, total, strict=True)]


def above_median(numbers: Floats, weights: Floats) -> Flags:
    """Which numbers are above the median of all of them."""
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(weights[order])
    median = float(numbers[order][np.searchsorted(reached, reached[-1] / 2)])
    return np.asarray(numbers > median)
