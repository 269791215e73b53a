"""Apparent scores (Def. 3.8): of the people in given rows, not of all inputs.

The rows are the population: where all that a score needs was run, it is exact and no interval is
claimed. Where executions failed or the budget ended, the ends are what the rest could still do.
Counterfactuals are made up here, all assignments of the set; `within` finds them among the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import KEPT
from themis.engine.variants import Rows, first_wave, mark_impossible
from themis.inputs.assignments import Assignments
from themis.inputs.keys import Keys, first_places, summed
from themis.results.model import Measure
from themis.results.notes import Ending, Note, ended_early
from themis.scores.explanations.explaining import explained
from themis.scores.group_tally import GroupTally, members_of, scoring_rates
from themis.scores.people import PeopleRun
from themis.scores.privacy import groups_of
from themis.scores.question import Question, Scored, ending_early
from themis.scores.tally import CausalTally, Inputs, own_distances
from themis.scores.unchangeable import by_construction
from themis.scores.within import causal_within, rests_on_few, weigh
from themis.settings import Settings, Stopping
from themis.statistics.intervals import Floats, weighted_margin
from themis.statistics.proportions import Interval, anytime_interval
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN, Reading, row_states

Counterfactuals = Literal["generated", "within"]


def measure_people(
    run: PeopleRun,
    reading: Reading,
    columns: tuple[int, ...],
    measure: Measure,
    settings: Settings,
    counterfactuals: Counterfactuals = "generated",
) -> Scored:
    """The apparent group or causal score of a set of columns; `of_people` says whose it is."""
    assignments = Assignments(run.people.schema, columns)
    settings = replace(settings, stopping=Stopping.CERTIFIED)  # there is no rule that stops it
    question = Question(run.sampler.reading_as(reading), assignments, settings, run.base)
    if measure == "group":
        return apparent_group(run, question)
    if (known := by_construction(question, measure)) is not None:
        return known.then(lambda score: replace(score, counterfactuals=counterfactuals))
    if counterfactuals == "within":
        return causal_within(run, question)
    return causal_generated(run, question)


def apparent_group(run: PeopleRun, question: Question) -> Scored:
    """The spread of the groups' rates (or means) among the rows, each row with its weight.

    Groups of few people count like all others.
    """
    assignments, reading = question.assignments, question.reading
    stopped = run.run(assignments, "group") or Ending.EXHAUSTED
    run = run.part(assignments.in_groups(run.codes))
    labels, own = groups_of(assignments, run.codes)
    cells, weights = reading.cells(run.answers), np.asarray(run.weights, dtype=float)
    tally = GroupTally(reading, summed(own, weights, len(labels)))
    tally.add(own, run.answers, weights, run.counts)
    scoring = scoring_rates(reading, cells, own, len(labels), weights)
    members = members_of(run.codes, cells, own, weights)
    return tally.score(question, labels, members, stopped, scoring, of_decided=True)


def causal_generated(run: PeopleRun, question: Question) -> Scored:
    """The share of given people whose output changes when only the set is changed.

    Where outputs differ by degrees, the mean of their largest changes. Exact where every
    counterfactual was run. With bins a random member stands for each, and the interval holds with
    the stated confidence over the choice of the members.
    """
    assignments, reading = question.assignments, question.reading
    stopped = run.run(assignments, "causal")
    table = _GeneratedTable.of(run, question)
    stopped = stopped or table.fill()
    tally, reached = table.tally, table.place < table.reached
    samples = int(run.counts[reached].sum())
    tally.unknown = int(run.counts[table.most > table.least].sum())
    notes = [ended_early(stopped, samples)] if stopped else []
    shares = weigh(table.least, table.most, run.weights, reached)
    if assignments.binned:
        shares = _over_members(shares, table)
        notes.append(Note.of("random-members"))
    sampled = bool(assignments.binned or (tally.is_partial and tally.unknown))
    score = tally.score(
        shares,
        sampled=sampled,
        method="sampled" if sampled else "exact",
        samples=samples,
        stopped=stopped or Ending.EXHAUSTED,
        notes=tuple(notes),
    )
    score = explained(score, tally.pool, question.sampler, people=run.codes)
    if reading.averages:
        changed = np.flatnonzero(table.least > 0)
        pairs, amounts = np.stack([changed, changed], axis=1), run.weights * table.least
        score = replace(score, of_few=rests_on_few(pairs, run.heads, amounts))
    return Scored(score if tally.joint is None else tally.joint.explain(score), tally.pool)


def _over_members(shares: Interval, table: _GeneratedTable) -> Interval:
    """Ends that hold, with the stated confidence, over the members that might have been drawn.

    People's members are drawn independently, so the number of flips is a sum of independent
    outcomes with chances of their own. Equal chances maximise the expectation of the mixture's
    evidence (means of products, AM–GM), so its ends hold at this fixed n; with unequal weights,
    or distances, Hoeffding's inequality takes their place.
    """
    weights, confidence = table.run.weights, table.question.settings.confidence
    if (weights == weights[0]).all() and not table.question.reading.graded:
        flips, possible = int(table.least.sum()), int(table.most.sum())
        ends = anytime_interval(flips, possible, len(weights), confidence)
        return Interval(shares.score, ends.low, ends.high)
    margin = weighted_margin(weights, confidence)
    return Interval(shares.score, max(0.0, shares.low - margin), min(1.0, shares.high + margin))


@dataclass
class _GeneratedTable:
    """The table of given people, filled block by block as far as the budget goes."""

    run: PeopleRun
    question: Question
    rows: Rows
    place: NDArray[np.int64]  # each person's row
    least: Floats = field(init=False)  # each person's largest change, at least
    most: Floats = field(init=False)
    tally: CausalTally = field(init=False)
    reached: int = 0

    @classmethod
    def of(cls, run: PeopleRun, question: Question) -> _GeneratedTable:
        """A row for each context where all people in it share their variants, else for each."""
        assignments, codes = question.assignments, run.codes
        if not question.variants.complete or assignments.binned or assignments.followed:
            members = {c: run.base.members(c, 0, len(codes)) for c in assignments.binned}
            return cls(run, question, Rows(codes, members), np.arange(len(codes)))
        keys = assignments.variant_keys(codes)
        first = first_places(keys)
        number = np.empty(len(first), dtype=np.int64)
        number[keys[first]] = np.arange(len(first))
        return cls(run, question, Rows(codes, {}).take(first), number[keys])

    def __post_init__(self) -> None:
        self.least, self.most = np.zeros(len(self.place)), np.ones(len(self.place))
        self.tally = CausalTally(self.question, self.question.variants)
        if self.question.assignments.binned:  # their members are drawn, not the people's own
            self.tally.joint = None
        self._order = np.argsort(self.place, kind="stable")  # people by their rows
        self._weights = summed(self.place, self.run.weights, len(self.rows))

    def fill(self) -> Ending | None:
        """Run what is missing; gives why that ended early, if it did."""
        sampler = self.run.sampler
        fresh: list[tuple[Keys, Cells]] = []
        whole = self._whole_rows()
        try:
            with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
                for block, keys, answers in self._blocks(whole):
                    if sum(len(each) for each, _ in fresh) + answers.size <= KEPT:
                        fresh.append((keys.ravel(), answers.ravel()))
                    cells = self.question.reading.cells(answers)
                    self._take(block, cells, tallied=block.stop <= whole)
                complete = self.reached == len(self.rows) and not sampler.runner.out_of_time
                return None if complete else Ending.BUDGET
            return early.ending
        finally:
            if fresh:
                keys, answers = (np.concatenate(each) for each in zip(*fresh, strict=True))
                self.run.memory.add(keys, answers)

    def _take(self, block: slice, cells: Cells, *, tallied: bool) -> None:
        first, last = np.searchsorted(self.place[self._order], [block.start, block.stop])
        people, tally, reading = self._order[first:last], self.tally, self.question.reading
        row = self.place[people] - block.start
        states = tally.opened(row_states(cells))
        least, most = (states == FLIP)[row].astype(float), (states != CONSTANT)[row].astype(float)
        if reading.graded:
            own = reading.cells(self.run.answers[people])
            least, most = own_distances(reading, own, cells, row)
            most[(states == UNKNOWN)[row]] = 1.0
        self.least[people], self.most[people] = least, most
        rows, weights = _part(self.rows, block), self._weights[block]
        tally.pool.add_table(tally.variants, rows, cells, states, weights)
        if tallied:
            inputs = Inputs(self.run.codes[people], row, self.run.weights[people])
            tally.add_whole(rows, cells, weights, inputs)
        self.reached = block.stop
        self.run.tell(self.question.assignments, "causal", self.reached / len(self.rows))

    def _whole_rows(self) -> int:
        """How many first rows are run whole, for the direction of harm; chosen before any run."""
        width = self.question.variants.width
        if self.question.reading.graded:
            return len(self.rows)  # the largest distance needs them all
        if self.tally.harm is None:
            return 0
        vectorised = self.run.sampler.runner.traits.vectorised
        if width <= first_wave(width, vectorised=vectorised):
            return len(self.rows)
        # Executions in rows that are run whole, for the direction of harm.
        return max(4_000 // width, 10)

    def _blocks(self, whole: int) -> Iterator[tuple[slice, Keys, Cells]]:
        """Where each block lies, with the keys and answers of its cells."""
        runner, memory = self.run.sampler.runner, self.run.memory
        variants, start, count = self.question.variants, 0, len(self.rows)
        while start < count and not runner.out_of_time:
            stop = min(start + self.run.block_rows(variants.width), count)
            stop = whole if start < whole < stop else stop
            rows = _part(self.rows, slice(start, stop))
            keys = memory.keys.of_table(rows.codes, rows.all_changes(variants))
            cells = memory.look_up(keys)
            hits = (cells != NOT_RUN).sum(axis=1)
            mark_impossible(runner.schema, variants, rows, cells)
            hits = (cells >= FAILED).sum(axis=1)
            costs = np.cumsum((cells == NOT_RUN).sum(axis=1))
            affordable = int(np.searchsorted(costs, runner.executions_left, side="right"))
            if not affordable:
                return
            stop = start + affordable
            runner.ledger.remember(int(hits[:affordable].sum()))
            rows, keys = _part(rows, slice(0, affordable)), keys[:affordable]
            cells = np.asfortranarray(cells[:affordable])
            self.run.sampler.tables.complete(
                variants,
                rows,
                cells,
                self.question.reading,
                block=start,
                until_flip=start >= whole,
            )
            stream = f"people {self.run.people.digest}"
            self.run.sampler.tables.note(stream, variants, rows, start, cells)
            yield slice(start, stop), keys, cells
            start = stop


def _part(rows: Rows, block: slice) -> Rows:
    return Rows(rows.codes[block], {column: each[block] for column, each in rows.members.items()})
