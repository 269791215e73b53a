"""The group score (Def. 3.5, 3.6): the spread of the groups' rates of favourable decisions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import in_windows
from themis.engine.sampler import COARSE_CELLS, Sampler
from themis.engine.tables import Asked, GoingOn
from themis.engine.variants import Variants
from themis.inputs.assignments import Assignments, Labels, Places
from themis.inputs.characteristics import OWN, Value
from themis.inputs.streams import BaseInputs, Branch
from themis.results.model import GroupScore
from themis.results.notes import Ending, Note
from themis.results.parts import Group
from themis.scores.group_tally import SeenCells, group_score, scoring_rates
from themis.scores.question import GroupInputs, Question, Scored, drawing_from, ending_early
from themis.statistics.groups import MOST_COMPARED, GroupRule, GroupState
from themis.statistics.intervals import Flags
from themis.statistics.proportions import Interval
from themis.statistics.reruns import interval_confidence
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN, Cells

LEAST_GROWTH = 1.5  # of the rows from look to look, and from call to call, there
KEPT_ROWS = 1_000  # whose outputs are kept, to run some of them again


@dataclass(frozen=True)
class GroupSource:
    """Rows of a group score: one input of each group."""

    run: Callable[[int, int, Flags], Cells]  # rows first..last of the active groups
    ask: Callable[[int, int, Flags], Asked]  # the same, to be run with others
    inputs: Callable[[Places, int], NDArray[Any]]  # of these rows and this group
    labels: Sequence[dict[str, Value]]  # what each group is called


def measure_group(question: Question) -> Scored:
    """The group score of a set, sampled until it is known to ± error, or the budget ends.

    Guarantee: low ≤ truth ≤ high with the stated confidence, at whatever row the run stopped.
    """
    sampler = question.sampler
    most = min(question.settings.max_assignments, MOST_COMPARED)
    question = replace(question, settings=replace(question.settings, max_assignments=most))
    settings = question.settings
    rule = GroupRule(1.0 - interval_confidence(settings.confidence), settings.error)
    rows = _MeasuredRows(question, rule)
    state, looks, stopped = rows.state, rule.looks(), Ending.BUDGET
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        step = rows.next_step(looks)
        question.tell(0, step[-1])
        while rows.advance(step):
            if state.crossed:
                stopped = Ending.INCONSISTENT
                break
            if state.done:
                stopped = Ending.ERROR_REACHED
                break
            step = rows.next_step(looks)
    if early.ending is not None:
        state.look()
        stopped = early.ending
    return Scored(rows.score(stopped), rows.finding)


class GroupRows:
    """The rows of a group score as they come; outputs of the first are kept, to run some again."""

    def __init__(self, sampler: Sampler, variants: Variants, rule: GroupRule) -> None:
        self.sampler, self.variants = sampler, variants
        self.source = group_source(sampler, variants)
        groups = len(self.source.labels)
        self.state = rule.start(groups, numbers=sampler.reading.statistic == "mean")
        self.seen = SeenCells(sampler.reading, groups)
        self.kept = np.full((KEPT_ROWS, groups), NOT_RUN, dtype=np.int32)
        self.count = 0

    def take(self, cells: Cells) -> None:
        """Count the outputs of further rows."""
        first, last, active = self.count, self.count + len(cells), self.state.active
        self.seen.add(cells, active)
        if self.state.of_numbers:
            self.state.add(*self.sampler.reading.share_ends(cells))
        else:
            self.state.add(*favourable_ends(self.sampler, cells, first, last))
        self.kept[first:last, active] = cells[: max(KEPT_ROWS - first, 0)]
        self.count = last

    @property
    def finding(self) -> GroupInputs | None:
        """Inputs of the champions, from the first rows; None before there are any."""
        sampler, state, kept = self.sampler, self.state, self.kept[: min(self.count, KEPT_ROWS)]
        if state.champions is None or not self.count:
            return None

        def draw(group: int, wanted: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
            known = np.flatnonzero(kept[:, group] != NOT_RUN)
            orders = [rng.permutation(known) for _ in range(-(-wanted // max(len(known), 1)))]
            chosen = np.concatenate(orders)[:wanted]
            return self.source.inputs(chosen, group), kept[chosen, group]

        size, again = sampler.population.size, 0.0
        if size is not None and sampler.runner.remembers:
            contexts = max(size / len(state.active), 1.0)
            again = 1.0 - contexts / self.count * -math.expm1(-self.count / contexts)
        return GroupInputs(draw, *state.champions, sampler.reading, kept=again)


class _MeasuredRows(GroupRows):
    """Rows that are counted up to each of the rule's looks."""

    def __init__(self, question: Question, rule: GroupRule) -> None:
        super().__init__(question.sampler, question.variants, rule)
        self.question = question

    def next_step(self, looks: Iterator[int]) -> list[int]:
        """The looks whose rows are run together: the next one, or where calls are few, more.

        The rule allows for any stop at any look, so that it may be asked at the last of them only.
        """
        step = [next(looks)]
        enough = self._rows_at_once()
        while step[-1] < enough:
            look = next(looks)
            if len(step) > 1 and look < LEAST_GROWTH * step[-2]:
                step.pop()  # those between cost more time than they save rows
            step.append(look)
        return step

    def _rows_at_once(self) -> float:
        """How many rows there shall be after the next call; it depends on counts alone."""
        if not self.sampler.runner.saves_calls:
            return 0
        width = int(self.state.active.sum())
        if not self.count:
            return 2**11 / width  # cells of the first call
        wanted = max(_expected(self.state, self.count), LEAST_GROWTH * self.count)
        grown = 1.4 * self.count if self.count * width < 2**17 else 0
        return max(min(wanted, COARSE_CELLS / width), grown)

    def advance(self, step: Sequence[int]) -> bool:
        """Run rows up to the last of these looks, and look at each; whether the budget held."""
        columns, target = self.state.active.copy(), step[-1]
        for first, last in self.sampler.blocks(self.count, target, int(columns.sum())):
            cells = self.source.run(first, last, columns)
            between = [look for look in step if first < look < last]
            for start, end in itertools.pairwise((first, *between, last)):
                part, active = cells[start - first : end - first], self.state.active
                if active.sum() < columns.sum():  # some were settled meanwhile
                    part = part.T[active[columns]].T  # by column, as the table is
                self.take(part)
                if end in step[:-1]:
                    self.state.look()
            self._tell(target)
        self.state.look()
        return self.count == target

    def _tell(self, target: int) -> None:
        """Report progress."""
        expected = max(target, _expected(self.state, self.count))
        # Groups that are not run may be further apart.
        ends = (self.state.low, self.state.high if self.question.variants.complete else 1.0)
        if self.question.reading.statistic == "mean" and self.sampler.population.profile:
            ends = (0.0, 1.0)  # of few people, they would tell the mean
        self.question.tell(self.count, expected, lambda: ends)

    def score(self, stopped: Ending) -> GroupScore:
        """The score with all that belongs to it."""
        question, state, seen, labels = self.question, self.state, self.seen, self.source.labels
        interval, complete = seen.spread(state.active, state.interval()), question.variants.complete
        rates = zip(seen.means(state.group_intervals()), self._above_median(), strict=True)
        groups = tuple(
            Group(values, each.score, each.low, each.high, int(trials), above_median=above)
            for values, (each, above), trials in zip(labels, rates, state.trials, strict=True)
            if trials
        )
        notes = [*seen.notes(labels, state.trials, question.settings.confidence)]
        if not complete:
            count = question.assignments.count
            notes.append(Note.of("too-many-groups", groups=count, tried=len(groups)))
            interval = Interval(interval.score, interval.low, 1.0)
        return group_score(
            question,
            groups,
            interval,
            method="sampled",
            stopped=stopped,
            samples=self.count,
            unknown=state.unknown,
            notes=tuple(notes),
            lower_bound=not complete,
            all_groups=complete,
        )

    def _above_median(self) -> list[float | None]:
        """How often each group's numbers are above the median, of the rows that are kept."""
        kept = self.kept[: min(self.count, KEPT_ROWS)]
        own = np.broadcast_to(np.arange(kept.shape[1]), kept.shape).ravel()
        return scoring_rates(self.question.reading, kept.ravel(), own, kept.shape[1])


def group_source(sampler: Sampler, variants: Variants) -> GroupSource:
    """Where rows come from, and the groups' names.

    Where the set is independent of the rest, the groups share their contexts: differences are
    then seen with few rows. Otherwise each group has inputs of its own, and a row is one of each;
    so it is for bins whose members depend on another characteristic of the set, and for what
    follows others or leads them: not all its assignments occur.
    """
    assignments = variants.assignments
    sampler = _with_values(sampler, assignments)
    if not shares_contexts(sampler, assignments):
        return _apart(sampler, variants)
    places = _possible_places(sampler, variants)

    def wanted_of(active: Flags) -> Flags:
        wanted = np.zeros(variants.width, dtype=bool)
        wanted[places[active]] = True
        return wanted

    def paired(first: int, last: int, active: Flags) -> Cells:
        wanted = wanted_of(active)
        _, cells = sampler.tables.fill(
            variants, first, last, reading=sampler.reading, active=wanted, going_on=GoingOn()
        )
        return cells.T[wanted].T  # by column, as the table is

    def inputs(rows: Places, group: int) -> NDArray[Any]:
        every = sampler.tables.rows(assignments, 0, int(rows.max()) + 1)
        return every.inputs(variants, rows, np.full(len(rows), places[group]))

    def ask(first: int, last: int, active: Flags) -> Asked:
        wanted = wanted_of(active)
        _, asked = sampler.tables.ask(variants, first, last, sampler.reading, wanted)
        return Asked(asked.codes, lambda outputs: asked.take(outputs).T[wanted].T)

    return GroupSource(paired, ask, inputs, Labels(assignments, variants.levels[places]))


def shares_contexts(sampler: Sampler, assignments: Assignments) -> bool:
    """Whether the groups of a set can be compared in common contexts."""
    population = sampler.population
    paired_bins = all(population.is_independent((column,)) for column in assignments.binned)
    tied = {column for tie in population.schema.ties for column in (*tie.leaders, tie.follower)}
    return (
        tied.isdisjoint(assignments.columns)
        and paired_bins
        and population.is_independent(assignments.columns)
    )


def _with_values(sampler: Sampler, assignments: Assignments) -> Sampler:
    """The same run on those who belong to a group: who have a value wherever that is asked for."""
    population = sampler.population.with_values(assignments.columns)
    if population is None or population is sampler.population:
        return sampler
    return drawing_from(sampler, population, (Branch.VALUES, *assignments.columns))


def _apart(sampler: Sampler, variants: Variants) -> GroupSource:
    every = [group_stream(sampler, variants, place) for place in range(variants.width)]
    streams = [each for each in every if each is not None]
    levels = variants.levels[[each is not None for each in every]]

    def by_group(first: int, last: int, active: Flags) -> NDArray[Any]:
        return np.stack([each.rows(first, last) for each in itertools.compress(streams, active)])

    def own(first: int, last: int, active: Flags) -> Cells:
        def by_row(start: int, stop: int) -> NDArray[Any]:
            return np.concatenate(by_group(start, stop, active).swapaxes(0, 1))

        inputs = np.concatenate(by_group(first, last, active))
        coming = in_windows(by_row, last)
        cells = sampler.run_singles(variants.assignments, inputs, block=first, coming=coming)
        return cells.reshape(-1, last - first).T

    def ask(first: int, last: int, active: Flags) -> Asked:
        codes = np.concatenate(by_group(first, last, active))

        def take(outputs: Cells) -> Cells:
            if sampler.tables.suite is not None:
                sampler.tables.suite.add_singles(variants.assignments.columns, codes, outputs)
            return sampler.reading.cells(outputs).reshape(-1, last - first).T

        return Asked(codes, take)

    def inputs(rows: Places, group: int) -> NDArray[Any]:
        return streams[group].rows(0, int(rows.max()) + 1)[rows]

    return GroupSource(own, ask, inputs, Labels(variants.assignments, levels))


def _expected(state: GroupState, count: int) -> int:
    """About so many rows; the interval shrinks with the square root of their number."""
    shrink = ((state.high - state.low) / (2 * state.rule.error)) ** 2
    return int(min(shrink, 1e6) * count)


def _possible_places(sampler: Sampler, variants: Variants) -> NDArray[np.int64]:
    """The columns that are groups: assignments that a constraint inside the set does not forbid."""
    cells = sampler.tables.unknown(variants, 0, 1).cells
    own = (variants.levels == OWN).any(axis=1)
    return np.flatnonzero((cells[0] != NO_COUNTERFACTUAL) & ~own)


def group_stream(sampler: Sampler, variants: Variants, place: int) -> BaseInputs | None:
    """The inputs of one group, in a random order of its own; None where there are none."""
    levels, assignments = variants.levels[place], variants.assignments
    if not assignments.are_groups(levels[None]).all():
        return None
    columns = assignments.columns
    chosen = dict(zip(columns, levels.tolist(), strict=True))
    if (population := sampler.population.at_levels(chosen)) is None:
        return None
    branch = (Branch.GROUP + len(columns), *columns, place)
    many = variants.width > 64  # then each draws its inputs in small pieces
    return BaseInputs(population, sampler.seed, branch=branch, among_many=many)


def favourable_ends(
    sampler: Sampler, cells: Cells, first: int, last: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Certainly and possibly favourable, in rows first..last."""
    tolerances = None
    if sampler.reading.statistic == "mean":
        tolerances = sampler.base.tolerances(first, last)
    return sampler.reading.favourable_ends(cells, tolerances)
