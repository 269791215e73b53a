"""Apparent scores (Def. 3.8): of the people in given rows, not of all inputs.

The rows are the population: where all that a score needs was run, it is exact and no interval is
claimed. Where executions failed or the budget ended, the ends are what the rest could still do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost
from themis.inputs.assignments import Assignments, Labels
from themis.inputs.keys import InputKeys
from themis.results.model import CausalScore, GroupScore, Measure, Score
from themis.results.notes import Ending, Note, ended_early
from themis.scores.causal import causal_score
from themis.scores.counterparts import (
    Counterparts,
    RowPairs,
    compare_within,
    find_pairs,
    measure_within,
    rests_on_few,
)
from themis.scores.exact import DIGITS, rounded
from themis.scores.explanations.explaining import explained
from themis.scores.explanations.taken_away import with_taken_away
from themis.scores.explanations.witnesses import POOL, FlipPool
from themis.scores.group import GroupInputs, passes
from themis.scores.group_answers import averaged, group_score, list_groups
from themis.scores.medians import scoring_rates
from themis.scores.people import PeopleRun, causal_generated, weigh
from themis.scores.undecided import people_undecided
from themis.scores.whose import groups_of
from themis.settings import Settings, Stopping
from themis.statistics.proportions import Interval
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading

Counterfactuals = Literal["generated", "within"]


def measure_people(
    run: PeopleRun,
    reading: Reading,
    columns: tuple[int, ...],
    measure: Measure,
    settings: Settings,
    counterfactuals: Counterfactuals = "generated",
) -> Score:
    """The apparent group or causal score of a set of columns; `of_people` says whose it is."""
    assignments = Assignments(run.people.schema, columns)
    settings = replace(settings, stopping=Stopping.CERTIFIED)  # there is no rule that stops it
    if measure == "group":
        return apparent_group(run, reading, assignments, settings)
    if counterfactuals == "within":
        return causal_within(run, reading, assignments, settings)
    return with_taken_away(
        causal_generated(run, reading, assignments, settings),
        run.sampler,
        reading,
        codes=run.codes,
        weights=run.weights,
    )


def apparent_group(
    run: PeopleRun, reading: Reading, assignments: Assignments, settings: Settings
) -> GroupScore:
    """The spread of the groups' rates (or means) among the rows, each row with its weight.

    Groups of few people count like all others.
    """
    cost = Cost(run.sampler.runner)
    stopped = run.run(assignments, "group")
    rows = _RowGroups.of(run.part(assignments.in_groups(run.codes)), reading, assignments)
    run, shown = rows.run, np.flatnonzero(rows.decided > 0)
    groups, omitted = list_groups(
        rows.labels,
        rows.rates,
        rows.low,
        rows.high,
        rows.counts,
        places=shown,
        scoring=scoring_rates(reading, rows.cells, rows.own, len(rows.labels), run.weights),
        runs=rows.runs,
    )
    if len(shown):
        best, worst = (int(shown[pick(rows.rates[shown])]) for pick in (np.argmax, np.argmin))
        cost.runner.finding = GroupInputs(rows.members, best, worst, reading, kept=1.0)
    silent = len(rows.labels) - len(shown)
    silence = [Note.of("groups-without-decision", groups=silent)] if silent else []
    score = group_score(
        groups,
        rows.spread(shown),
        settings=settings,
        cost=cost,
        reading=reading,
        against=assignments.names,
        method="exact",
        samples=run.seen,
        stopped=stopped or Ending.EXHAUSTED,
        unknown=int(run.counts[rows.is_open].sum()),
        spelled=int(run.counts[reading.is_spelled(rows.cells)].sum()),
        notes=(
            *_ended(stopped, settings, run.seen),
            *silence,
            *omitted,
            *people_undecided(rows.labels, rows.own, rows.cells, run.weights, run.counts),
        ),
    )
    return replace(score, impact_ratio_low=0.0) if silent and score.impact_ratio else score


@dataclass(frozen=True)
class _RowGroups:
    """The groups among given rows, with their rates: as seen, at least and at most."""

    run: PeopleRun
    cells: Cells  # the rows' outputs
    is_open: NDArray[np.bool_]  # whether it is not known how favourable it is
    labels: Labels
    own: NDArray[np.int64]  # each row's group
    counts: NDArray[np.float64]  # of each group: rows
    decided: NDArray[np.float64]  # the weight of those that have an output
    rates: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def runs(self) -> NDArray[np.float64]:
        """How many answers each rate averages; copies of a row share one."""
        weights, size = np.asarray(self.run.weights, dtype=float), len(self.labels)
        return averaged(
            np.bincount(self.own, weights, size), np.bincount(self.own, weights**2, size)
        )

    @classmethod
    def of(cls, run: PeopleRun, reading: Reading, assignments: Assignments) -> _RowGroups:
        labels, own = groups_of(assignments, run.codes)
        cells = reading.cells(run.answers)
        least, most = reading.share_ends(cells)

        def total(figures: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(own, figures, len(labels)).astype(float)

        counts = total(run.counts)
        weight, decided = total(run.weights), total(run.weights * (cells >= 0))
        low, high = total(run.weights * least) / weight, total(run.weights * most) / weight
        rates = np.divide(low * weight, decided, out=np.zeros(len(labels)), where=decided > 0)
        is_open = most > least
        rates, low, high = (np.round(each, DIGITS) for each in (rates, low, high))
        return cls(run, cells, is_open, labels, own, counts, decided, rates, low, high)

    def spread(self, shown: NDArray[np.int64]) -> Interval:
        """How far the groups are apart; one group is not apart from itself."""
        spread = rounded(np.ptp(self.rates[shown])) if len(shown) else 0.0
        if not self.is_open.any() or len(self.labels) < 2:
            return Interval(spread, spread, spread)
        least, most = self.low.max() - self.high.min(), self.high.max() - self.low.min()
        return Interval(spread, max(0.0, rounded(least)), rounded(most))

    def members(
        self, group: int, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[Any], Cells]:
        """So many random rows of a group that have an output, by their weights."""
        inside = np.flatnonzero((self.own == group) & (self.cells >= 0))
        chances = self.run.weights[inside] / self.run.weights[inside].sum()
        chosen = inside[passes(rng, chances, count)]
        return self.run.codes[chosen], self.cells[chosen]


def causal_within(
    run: PeopleRun, reading: Reading, assignments: Assignments, settings: Settings
) -> CausalScore:
    """The share of rows with a counterfactual among the rows that gets another output."""
    cost = Cost(run.sampler.runner)
    stopped = run.run(assignments, "causal")
    contexts = assignments.contexts(run.codes)
    own = assignments.own_levels(run.codes)
    levels = np.unique(InputKeys.among(own).of(own), return_inverse=True)[1]
    cells = reading.cells(run.answers)
    spelled = np.zeros(len(cells), dtype=bool)  # those that differ only in spelling
    followed = RowPairs.of(run.codes, assignments, levels) if assignments.followed else None

    def compare(cells: Cells) -> Counterparts:
        if followed is not None:
            return followed.compare(cells, reading.distances if reading.graded else _apart)
        if reading.graded:
            return measure_within(contexts, levels, cells, reading.distances)
        return compare_within(contexts, levels, cells)

    found = compare(cells)
    if not reading.graded:
        sure = compare(reading.merged(cells))
        spelled, found = found.least > sure.least, replace(found, least=sure.least)
    pool = FlipPool(run.people.schema, reading)
    flipping, pairs = np.flatnonzero(found.least > 0)[:POOL], np.empty((0, 2), dtype=np.int64)
    if len(flipping):
        if followed is not None:
            pairs = followed.farthest(cells, flipping, reading.distances)
        else:
            pairs = find_pairs(contexts, levels, cells, flipping, reading.distances)
        pool.add_pairs(run.codes[pairs[:, 0]], run.codes[pairs[:, 1]], cells[pairs])
    paired = int(run.counts[found.paired].sum())
    rows, against = run.people.rows, assignments.names
    note = Note.of(
        "rows-with-counterparts",
        paired=paired,
        rows=rows,
        against=against,
        followed=assignments.followed_names or None,
    )
    score = causal_score(
        weigh(found.least, found.most, run.weights),
        settings=settings,
        cost=cost,
        pool=pool,
        tally=None,  # few rows have all counterparts, so that directions would mislead
        against=assignments.names,
        followed=assignments.followed_names,
        method="exact",
        samples=run.seen,
        stopped=stopped or Ending.EXHAUSTED,
        unknown=int(run.counts[(found.most > found.least) | (cells < 0)].sum()),
        notes=(note, *_ended(stopped, settings, run.seen)),
        spelled=int(run.counts[spelled].sum()),
        **reading.details(),
    )
    score = explained(score, pool, run.sampler.reading_as(reading), people=run.codes)
    of_few = reading.averages and rests_on_few(pairs, run.heads, run.weights * found.least)
    return replace(score, counterfactuals="within", of_few=of_few)


def _apart(first: Cells, second: Cells) -> NDArray[np.float64]:
    """1 where two outputs are known and differ."""
    apart = (first >= 0) & (second >= 0) & (first != second)
    return np.asarray(apart.astype(float))


def _ended(stopped: Ending | None, settings: Settings, samples: int) -> tuple[Note, ...]:
    return (ended_early(stopped, settings, samples),) if stopped else ()
