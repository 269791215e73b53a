"""Scores of given people: each distinct one is run once, and compared with counterfactuals.

These are made up: all assignments of the set. `counterparts` finds them among the rows instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import KEPT, Memory, SortedOutputs
from themis.engine.sampler import CELLS, LEAST_ROWS, Cost, Sampler
from themis.engine.variants import Rows, Variants, first_wave, mark_impossible
from themis.inputs.assignments import Assignments
from themis.inputs.keys import Keys, first_places
from themis.inputs.people import People
from themis.inputs.streams import ORDER, BaseInputs
from themis.results.model import CausalScore, Measure
from themis.results.notes import Ending, Note, ended_early
from themis.scores.causal import causal_score, too_many
from themis.scores.counterparts import rests_on_few
from themis.scores.early_ends import ending_early
from themis.scores.exact import rounded
from themis.scores.explanations.explaining import explained
from themis.scores.explanations.harm import HarmTally
from themis.scores.explanations.joint import JointTally
from themis.scores.explanations.witnesses import FlipPool
from themis.settings import Settings
from themis.statistics.intervals import weighted_margin
from themis.statistics.proportions import Interval, anytime_interval
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN, Reading

ROWS_BRANCH = 3_000  # members drawn for given people are apart from those of the common stream
FIRST_LOOK = 50  # people who are run before somebody looks whether their outputs make sense


class RowInputs(BaseInputs):
    """Given people as base inputs, in the order in which they are run."""

    def __init__(self, sampler: Sampler, codes: NDArray[Any]) -> None:
        super().__init__(sampler.population, sampler.seed, branch=(ROWS_BRANCH,))
        self.codes = codes

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        return self.codes[start:stop]


class PeopleRun:
    """Given people, their weights and answers; what was run once is known for every set."""

    def __init__(self, sampler: Sampler, people: People) -> None:
        self.sampler = sampler
        self.people = people
        rng = BaseInputs(sampler.population, sampler.seed).generator(ORDER, ROWS_BRANCH)
        self.order = rng.permutation(len(people))  # a run that ends early has seen a random part
        self.base = RowInputs(sampler, np.asfortranarray(people.codes[self.order]))
        self.weights = people.weights[self.order]
        self.counts, self.heads = people.counts[self.order], people.heads[self.order]
        dtype = sampler.runner.labels.dtype
        self.answers: Cells = np.full(len(people), NOT_RUN, dtype=dtype)
        self.memory = Memory(people.schema.input_keys, dtype)

    @property
    def codes(self) -> NDArray[Any]:
        """The people in the order in which they are run."""
        return self.base.codes

    @property
    def seen(self) -> int:
        """How many rows were run, copies included."""
        return int(self.counts[self.answers != NOT_RUN].sum())

    def known_answers(self) -> Cells:
        """The answers to these people as they are, whatever they were run for; else NOT_RUN."""
        answers = self.answers.copy()
        tables, keys = self.sampler.tables, self.memory.keys
        drawn = self.sampler.base.rows(0, tables.memory.reach)
        outputs = SortedOutputs(answers.dtype)
        outputs.add(keys.of(drawn), tables.known_outputs(drawn, 0))
        for known in (self.sampler.runner.known, lambda codes: outputs.look_up(keys.of(codes))):
            missing = answers == NOT_RUN
            answers[missing] = known(self.codes[missing])
        return answers

    def part(self, chosen: NDArray[np.bool_]) -> PeopleRun:
        """Only these people, with what is known of them; nothing further is run."""
        if chosen.all():
            return self
        other = copy.copy(self)
        other.base = RowInputs(self.sampler, self.codes[chosen])
        other.weights, other.answers = self.weights[chosen], self.answers[chosen]
        other.counts, other.heads = self.counts[chosen], self.heads[chosen]
        other.order = self.order[chosen]
        return other

    def run(
        self, assignments: Assignments, measure: Measure, look: Callable[[], None] | None = None
    ) -> Ending | None:
        """Run the people as they are; gives why that ended early, if it did.

        `look` is called when the first few have been run.
        """
        runner = self.sampler.runner
        missing = np.flatnonzero(self.answers == NOT_RUN)
        runner.ledger.remember(len(self.answers) - len(missing))
        done = 0
        try:
            with ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early:
                while done < len(missing):
                    size = int(min(self.block_rows(1), runner.executions_left))
                    is_first = look is not None and not done
                    size = min(size, FIRST_LOOK) if is_first else size
                    if size < 1 or runner.out_of_time:
                        return Ending.BUDGET
                    chosen = missing[done : done + size]
                    self.answers[chosen] = runner.run(self.codes[chosen])
                    done += len(chosen)
                    self.tell(assignments, measure, 1 - (len(missing) - done) / len(self.answers))
                    if look is not None and is_first:
                        look()
        finally:
            run = missing[:done]
            self.memory.add(self.memory.keys.of(self.codes[run]), self.answers[run])
        return early.ending

    def outputs(self, codes: NDArray[Any]) -> Cells:
        """The answers to other inputs; what is known is not run again.

        Raises BudgetEndedError where the budget ends.
        """
        runner, size = self.sampler.runner, self.block_rows(1)
        runner.ledger.remember(len(codes))

        def run(places: NDArray[np.int64]) -> Cells:
            runner.ledger.remember(-len(places))
            parts = [places[start : start + size] for start in range(0, len(places), size)]
            return np.concatenate([self._affordable(codes[part]) for part in parts])

        return self.memory.settle(self.memory.keys.of(codes), run)

    def _affordable(self, codes: NDArray[Any]) -> Cells:
        runner = self.sampler.runner
        if runner.executions_left < len(codes) or runner.out_of_time:
            raise BudgetEndedError
        return runner.run(codes)

    def block_rows(self, width: int) -> int:
        """How many rows of a table to run together, so that budgets and Ctrl-C are met soon."""
        runner = self.sampler.runner
        if runner.traits.external:
            return max(runner.batch_size // width, LEAST_ROWS)
        cells = CELLS if runner.traits.vectorised else runner.batch_size
        return max(cells // width, 1)

    def tell(self, assignments: Assignments, measure: Measure, share: float) -> None:
        """Report that this share of the rows is done."""
        rows = self.people.rows
        self.sampler.tell(measure, assignments, round(share * rows), rows, lambda: (0.0, 1.0))


HARM_CELLS = 4_000  # executions in rows that are run whole, for the direction of harm


def causal_generated(
    run: PeopleRun, reading: Reading, assignments: Assignments, settings: Settings
) -> CausalScore:
    """The share of given people whose output changes when only the set is changed.

    Where outputs differ by degrees, the mean of their largest changes. Exact where every
    counterfactual was run. With bins a random member stands for each, and the interval holds with
    the stated confidence over the choice of the members.
    """
    cost = Cost(run.sampler.runner)
    stopped = run.run(assignments, "causal")
    variants = Variants.of(assignments, limit=settings.max_assignments, base=run.base)
    table = _GeneratedTable.of(run, reading, variants)
    stopped = stopped or table.fill()
    unknown = table.most > table.least
    reached = table.place < table.reached
    samples = int(run.counts[reached].sum())
    notes = [ended_early(stopped, settings, samples)] if stopped else []
    lower_bound = not variants.complete and bool(unknown.any())
    if lower_bound:
        notes.append(too_many(variants))
    shares = weigh(table.least, table.most, run.weights, reached)
    if assignments.binned:
        shares = _over_members(shares, table, settings)
        notes.append(Note.of("random-members"))
    score = causal_score(
        shares,
        settings=settings,
        cost=cost,
        pool=table.pool,
        tally=table.tally,
        against=assignments.names,
        followed=assignments.followed_names,
        method="sampled" if assignments.binned or lower_bound else "exact",
        samples=samples,
        stopped=stopped or Ending.EXHAUSTED,
        unknown=int(run.counts[unknown].sum()),
        spelled=table.spelled,
        lower_bound=lower_bound,
        notes=tuple(notes),
        **reading.details(),
    )
    score = explained(score, table.pool, run.sampler.reading_as(reading), people=run.codes)
    if reading.averages:
        changed = np.flatnonzero(table.least > 0)
        pairs, amounts = np.stack([changed, changed], axis=1), run.weights * table.least
        score = replace(score, of_few=rests_on_few(pairs, run.heads, amounts))
    return score if table.joint is None else table.joint.explain(score)


def weigh(
    least: NDArray[np.float64],
    most: NDArray[np.float64],
    weights: NDArray[np.float64],
    reached: NDArray[np.bool_] | None = None,
) -> Interval:
    """The weighted mean at least and at most; the score is the least of those who were reached.

    No confidence is involved: the ends are what outputs that are missing could still do.
    """
    total = float(weights.sum())
    seen = total if reached is None else float(weights[reached].sum())
    if not seen:
        return Interval(0.0, 0.0, 1.0)
    low, high = float(least @ weights), float(most @ weights)
    return Interval(*(min(rounded(each), 1.0) for each in (low / seen, low / total, high / total)))


def _over_members(shares: Interval, table: _GeneratedTable, settings: Settings) -> Interval:
    """Ends that hold, with the stated confidence, over the members that might have been drawn.

    People's members are drawn independently, so the number of flips is a sum of independent
    outcomes with chances of their own. Equal chances maximise the expectation of the mixture's
    evidence (means of products, AM–GM), so its ends hold at this fixed n; with unequal weights,
    or distances, Hoeffding's inequality takes their place.
    """
    weights = table.people.weights
    if (weights == weights[0]).all() and not table.reading.graded:
        flips, possible = int(table.least.sum()), int(table.most.sum())
        ends = anytime_interval(flips, possible, len(weights), settings.confidence)
        return Interval(shares.score, ends.low, ends.high)
    margin = weighted_margin(weights, settings.confidence)
    return Interval(shares.score, max(0.0, shares.low - margin), min(1.0, shares.high + margin))


@dataclass
class _GeneratedTable:
    """The table of given people, filled block by block as far as the budget goes."""

    people: PeopleRun
    reading: Reading
    variants: Variants
    rows: Rows
    place: NDArray[np.int64]  # each person's row
    least: NDArray[np.float64] = field(init=False)  # each person's largest change, at least
    most: NDArray[np.float64] = field(init=False)
    tally: HarmTally | None = field(init=False)
    joint: JointTally | None = field(init=False)
    pool: FlipPool = field(init=False)
    reached: int = 0
    spelled: int = 0  # people whose outputs differ only in spelling

    @classmethod
    def of(cls, run: PeopleRun, reading: Reading, variants: Variants) -> _GeneratedTable:
        """A row for each context where all people in it share their variants, else for each."""
        assignments, codes = variants.assignments, run.codes
        if not variants.complete or assignments.binned or assignments.followed:
            members = {c: run.base.members(c, 0, len(codes)) for c in assignments.binned}
            return cls(run, reading, variants, Rows(codes, members), np.arange(len(codes)))
        keys = assignments.variant_keys(codes)
        first = first_places(keys)
        number = np.empty(len(first), dtype=np.int64)
        number[keys[first]] = np.arange(len(first))
        return cls(run, reading, variants, Rows(codes, {}).take(first), number[keys])

    def __post_init__(self) -> None:
        assignments, whole = self.variants.assignments, self.variants.complete
        self.least, self.most = np.zeros(len(self.place)), np.ones(len(self.place))
        self.tally = HarmTally.of(assignments, self.reading) if whole else None
        binned = assignments.binned  # their members are drawn, not the people's own
        self.joint = None if binned else JointTally.of(self.variants, self.reading)
        self.pool = FlipPool(self.people.people.schema, self.reading)
        self._order = np.argsort(self.place, kind="stable")  # people by their rows
        self._weights = np.bincount(self.place, self.people.weights).astype(float)

    def fill(self) -> Ending | None:
        """Run what is missing; gives why that ended early, if it did."""
        sampler = self.people.sampler
        fresh: list[tuple[Keys, Cells]] = []
        whole = self._whole_rows()
        try:
            with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
                for block, keys, answers in self._blocks(whole):
                    if sum(len(each) for each, _ in fresh) + answers.size <= KEPT:
                        fresh.append((keys.ravel(), answers.ravel()))
                    self._take(block, self.reading.cells(answers), tallied=block.stop <= whole)
                complete = self.reached == len(self.rows) and not sampler.runner.out_of_time
                return None if complete else Ending.BUDGET
            return early.ending
        finally:
            if fresh:
                keys, answers = (np.concatenate(each) for each in zip(*fresh, strict=True))
                self.people.memory.add(keys, answers)

    def _take(self, block: slice, cells: Cells, *, tallied: bool) -> None:
        first, last = np.searchsorted(self.place[self._order], [block.start, block.stop])
        people = self._order[first:last]
        row = self.place[people] - block.start
        states = self.reading.plain_states(cells)
        self.spelled += int(self.people.counts[people][self.reading.spelled_rows(cells)[row]].sum())
        if not self.variants.complete:
            states[states == CONSTANT] = UNKNOWN  # an assignment that was not tried may flip it
        if self.reading.graded:
            self._take_distances(people, row, cells, unclear=states[row] == UNKNOWN)
        else:
            self.least[people] = states[row] == FLIP
            self.most[people] = states[row] != CONSTANT
        self.pool.add_table(
            self.variants, _part(self.rows, block), cells, states, self._weights[block]
        )
        if tallied and self.tally is not None:
            self.tally.add(cells, self._weights[block])
        if tallied and self.joint is not None:
            rows = Rows(self.people.codes[people], {})
            self.joint.add(rows, cells[row], self.people.weights[people])
        self.reached = block.stop
        self.people.tell(self.variants.assignments, "causal", self.reached / len(self.rows))

    def _take_distances(
        self,
        people: NDArray[np.int64],
        row: NDArray[np.int64],
        cells: Cells,
        *,
        unclear: NDArray[np.bool_],
    ) -> None:
        """How far each person's farthest variant is from the person's own output."""
        own = self.reading.cells(self.people.answers[people])
        missing = ((cells == FAILED) | (cells == NOT_RUN)).any(axis=1)[row] | (own < 0) | unclear
        least = np.zeros(len(people))
        for column in range(cells.shape[1]):
            least = np.maximum(least, self.reading.distances(own, cells[row, column]))
        self.least[people] = least
        self.most[people] = np.where(missing, 1.0, least)

    def _whole_rows(self) -> int:
        """How many first rows are run whole, for the direction of harm; chosen before any run."""
        width = self.variants.width
        if self.reading.graded:
            return len(self.rows)  # the largest distance needs them all
        if self.tally is None:
            return 0
        vectorised = self.people.sampler.runner.traits.vectorised
        if width <= first_wave(width, vectorised=vectorised):
            return len(self.rows)
        return max(HARM_CELLS // width, 10)

    def _blocks(self, whole: int) -> Iterator[tuple[slice, Keys, Cells]]:
        """Where each block lies, with the keys and answers of its cells."""
        runner, memory = self.people.sampler.runner, self.people.memory
        start, count = 0, len(self.rows)
        while start < count and not runner.out_of_time:
            stop = min(start + self.people.block_rows(self.variants.width), count)
            stop = whole if start < whole < stop else stop
            rows = _part(self.rows, slice(start, stop))
            keys = memory.keys.of_table(rows.codes, rows.all_changes(self.variants))
            cells = memory.look_up(keys)
            hits = (cells != NOT_RUN).sum(axis=1)
            mark_impossible(runner.schema, self.variants, rows, cells)
            hits = (cells >= FAILED).sum(axis=1)
            costs = np.cumsum((cells == NOT_RUN).sum(axis=1))
            affordable = int(np.searchsorted(costs, runner.executions_left, side="right"))
            if not affordable:
                return
            stop = start + affordable
            runner.ledger.remember(int(hits[:affordable].sum()))
            rows, keys = _part(rows, slice(0, affordable)), keys[:affordable]
            cells = np.asfortranarray(cells[:affordable])
            self.people.sampler.tables.complete(
                self.variants,
                rows,
                cells,
                self.reading,
                block=start,
                until_flip=start >= whole,
            )
            stream = f"people {self.people.people.digest}"
            self.people.sampler.tables.note(stream, self.variants, rows, start, cells)
            yield slice(start, stop), keys, cells
            start = stop


def _part(rows: Rows, block: slice) -> Rows:
    return Rows(rows.codes[block], {column: each[block] for column, each in rows.members.items()})
