"""Apparent scores (Def. 3.8): of the people in given rows, not of all inputs.

The rows are the population: where all that a score needs was run, it is exact and no interval is
claimed. Where executions failed or the budget ended, the ends are what the rest could still do.
Counterfactuals are made up, all assignments of the set, or they are found among the rows: those
with the same context and another assignment of the set. Where something follows the set, each row
has its own, and nothing is run beyond the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.engine.blocks import Block, first_wave
from themis.engine.memory import KEPT
from themis.engine.variants import Rows
from themis.inputs.assignments import Assignments, Places, context_keys
from themis.inputs.columns import SHARED
from themis.inputs.following import follow
from themis.inputs.keys import InputKeys, Keys, first_places, numbered, summed
from themis.results.notes import Ending, Note
from themis.scores.domain import rounded
from themis.scores.explanations.witnesses import POOL
from themis.scores.group_tally import GroupTally, members_of, scoring_rates
from themis.scores.people import PeopleRun
from themis.scores.privacy import groups_of
from themis.scores.question import Question, Scored, ending_early
from themis.scores.tally import CausalTally, Inputs, by_construction
from themis.settings import Stopping
from themis.statistics.intervals import Flags, Floats, weighted_margin
from themis.statistics.proportions import Interval, anytime_interval
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import row_states

Counterfactuals = Literal["generated", "within"]
Numbers = NDArray[np.int64]
Distances = Callable[[Cells, Cells], Floats]


def measure_people(
    run: PeopleRun, asked: Question, counterfactuals: Counterfactuals = "generated"
) -> Scored:
    """The apparent group or causal score of a set; `of_people` says whose it is."""
    assignments = Assignments(run.people.schema, asked.assignments.columns)
    sampler = run.sampler.reading_as(asked.reading)
    settings = replace(asked.settings, stopping=Stopping.CERTIFIED)  # no rule stops it
    question = Question(sampler, assignments, asked.measure, settings, run.base)
    if question.measure == "group":
        return apparent_group(run, question)
    if (known := by_construction(question)) is not None:
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
    shares = weigh(table.least, table.most, run.weights, reached)
    if assignments.binned:
        shares = _over_members(shares, table)
    sampled = assignments.binned or (tally.is_partial and tally.unknown)
    found = tally.scored(
        shares,
        people=run.codes,
        method="sampled" if sampled else "exact",
        samples=samples,
        stopped=stopped or Ending.EXHAUSTED,
        notes=(Note.of("random-members"),) if assignments.binned else (),
    )
    if not reading.averages:
        return found
    changed = np.flatnonzero(table.least > 0)
    pairs, amounts = np.stack([changed, changed], axis=1), run.weights * table.least
    return found.then(partial(replace, of_few=rests_on_few(pairs, run.heads, amounts)))


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
        people, tally = self._order[first:last], self.tally
        row = self.place[people] - block.start
        inputs = Inputs(self.run.codes[people], row, self.run.weights[people])
        own = self.question.reading.cells(self.run.answers[people])
        states = row_states(cells)
        self.least[people], self.most[people] = tally.ends(cells, states, row, own)
        rows, weights = _part(self.rows, block), self._weights[block]
        tally.pool.add_table(tally.variants, rows, cells, states, weights)
        if tallied:
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
            Block(variants, rows, cells, self.question.reading).mark_impossible()
            hits = (cells >= FAILED).sum(axis=1)
            costs = np.cumsum((cells == NOT_RUN).sum(axis=1))
            affordable = int(np.searchsorted(costs, runner.executions_left, side="right"))
            if not affordable:
                return
            stop = start + affordable
            runner.ledger.remember(int(hits[:affordable].sum()))
            rows, keys = _part(rows, slice(0, affordable)), keys[:affordable]
            cells = np.asfortranarray(cells[:affordable])
            block = Block(
                variants, rows, cells, self.question.reading, start, until_flip=start >= whole
            )
            self.run.sampler.tables.complete(block)
            self.run.sampler.tables.note(f"people {self.run.people.digest}", block)
            yield slice(start, stop), keys, cells
            start = stop


def _part(rows: Rows, block: slice) -> Rows:
    return Rows(rows.codes[block], {column: each[block] for column, each in rows.members.items()})


# Counterfactuals among the rows ------------------------------------------------------------------
def causal_within(run: PeopleRun, question: Question) -> Scored:
    """The share of rows with a counterfactual among the rows that gets another output."""
    assignments, reading = question.assignments, question.reading
    stopped = run.run(assignments, "causal")
    contexts = assignments.contexts(run.codes)
    own = assignments.own_levels(run.codes)
    levels = numbered(InputKeys.among(own).of(own))[1]
    cells, followed = reading.cells(run.answers), bool(assignments.followed)
    if followed:
        each = [_followed_pairs(run.codes, assignments, levels)]
        found = compare_pairs(each, cells, reading.distances if reading.graded else _apart)
    elif reading.graded:
        found = compare_pairs(_pairs_within(contexts, levels), cells, reading.distances)
    else:
        found = compare_within(contexts, levels, cells)
    tally = CausalTally(question, question.variants)
    tally.harm = tally.joint = None  # few rows have all counterparts: directions would mislead
    tally.is_partial = False
    flipping, pairs = np.flatnonzero(found.least > 0)[:POOL], np.empty((0, 2), dtype=np.int64)
    if len(flipping):
        if followed:
            pairs = np.stack([flipping, found.partner[flipping]], axis=1)
        else:
            pairs = find_pairs(contexts, levels, cells, flipping, reading.distances)
        tally.pool.add_pairs(run.codes[pairs[:, 0]], run.codes[pairs[:, 1]], cells[pairs])
    tally.unknown = int(run.counts[(found.most > found.least) | (cells < 0)].sum())
    note = Note.of(
        "rows-with-counterparts",
        paired=int(run.counts[found.paired].sum()),
        rows=run.people.rows,
        against=assignments.names,
        followed=assignments.followed_names or None,
    )
    scored = tally.scored(
        weigh(found.least, found.most, run.weights),
        people=run.codes,
        method="exact",
        samples=run.seen,
        stopped=stopped or Ending.EXHAUSTED,
        notes=(note,),
    )
    of_few = reading.averages and rests_on_few(pairs, run.heads, run.weights * found.least)
    return scored.then(partial(replace, counterfactuals="within", of_few=of_few))


def weigh(least: Floats, most: Floats, weights: Floats, reached: Flags | None = None) -> Interval:
    """The weighted mean at least and at most; the score is the least of those who were reached.

    No confidence is involved: the ends are what outputs that are missing could still do.
    """
    total = float(weights.sum())
    seen = total if reached is None else float(weights[reached].sum())
    if not seen:
        return Interval(0.0, 0.0, 1.0)
    low, high = float((least * weights).sum()), float((most * weights).sum())
    return Interval(*(min(rounded(each), 1.0) for each in (low / seen, low / total, high / total)))


def _apart(first: Cells, second: Cells) -> Floats:
    """1 where two outputs are known and differ."""
    apart = (first >= 0) & (second >= 0) & (first != second)
    return np.asarray(apart.astype(float))


@dataclass(frozen=True)
class Counterparts:
    """What the other rows say about each row."""

    least: Floats  # how far the farthest counterfactual is, at least: 0 to 1
    most: Floats  # and at most; more where an execution failed or was not made
    paired: Flags  # whether there is any counterfactual of it among the rows
    partner: Numbers  # the farthest, where pairs were compared one by one


def compare_within(contexts: Numbers, levels: Numbers, cells: Cells) -> Counterparts:
    """Compare distinct rows, by the numbers of their context and assignment, where 1 is apart."""
    known = cells >= 0
    labels = np.maximum(cells, 0).astype(np.int64)
    here = _pair(contexts, levels)
    same_output = _pair(contexts, labels)
    both = _pair(here, labels)

    def count(keys: Numbers, chosen: Flags) -> NDArray[Any]:
        return np.bincount(keys, chosen, minlength=len(keys))[keys].astype(np.int64)

    elsewhere = count(contexts, known) - count(here, known)
    agreeing = count(same_output, known) - count(both, known)
    unclear = count(contexts, ~known) - count(here, ~known)
    paired = elsewhere + unclear > 0
    flips = known & (elsewhere > agreeing)
    possible = flips | (paired & (~known | (unclear > 0)))
    return Counterparts(flips.astype(float), possible.astype(float), paired, np.arange(len(cells)))


def compare_pairs(
    pairs: Iterable[tuple[Places, Places]], cells: Cells, distances: Distances
) -> Counterparts:
    """Compare rows with the counterfactuals that these pairs name, by their largest distance."""
    least, partner = np.zeros(len(cells)), np.arange(len(cells))
    unclear, paired = (np.zeros(len(cells), dtype=bool) for _ in range(2))
    for rows, others in pairs:
        own, other = cells[rows], cells[others]
        apart = distances(own, other)
        np.maximum.at(least, rows, apart)
        farthest = apart == least[rows]
        partner[rows[farthest]] = others[farthest]
        unclear[rows[(own < 0) | (other < 0)]] = True
        paired[rows] = True
    return Counterparts(least, np.where(unclear, 1.0, least), paired, partner)


def _pairs_within(contexts: Numbers, levels: Numbers) -> Iterator[tuple[Places, Places]]:
    """All pairs of rows that share a context and have another assignment, both ways round."""
    order = np.argsort(contexts, kind="stable")
    where, own = contexts[order], levels[order]
    for shift in range(1, int(np.bincount(contexts).max(initial=1))):
        first = np.flatnonzero((where[shift:] == where[:-shift]) & (own[shift:] != own[:-shift]))
        yield order[first], order[first + shift]
        yield order[first + shift], order[first]


def find_pairs(
    contexts: Numbers, levels: Numbers, cells: Cells, rows: Numbers, distances: Distances
) -> Numbers:
    """Of each of these rows the pair with its farthest counterfactual; each pair once."""
    near = np.flatnonzero(np.isin(contexts, contexts[rows]))
    near = near[np.argsort(contexts[near], kind="stable")]
    starts = np.searchsorted(contexts[near], contexts[rows], side="left")
    stops = np.searchsorted(contexts[near], contexts[rows], side="right")
    pairs: dict[tuple[int, int], None] = {}
    for row, start, stop in zip(rows.tolist(), starts, stops, strict=True):
        others = near[start:stop]
        apart = distances(np.full(len(others), cells[row], cells.dtype), cells[others])
        partner = int(others[np.where(levels[others] != levels[row], apart, -1.0).argmax()])
        pairs[min(row, partner), max(row, partner)] = None
    return np.array(list(pairs), dtype=np.int64)


def rests_on_few(pairs: Numbers, heads: Floats, amounts: Floats) -> bool:
    """Whether an average of differences would tell what fewer than SHARED people get.

    It does where these make up more than half of it. `pairs` are the rows that differ from each
    other, or twice the same from what was made up; `heads` says how many people each row is, and
    `amounts` what it adds to the sum. Differences between rows that are linked count as one, of as
    many as its rarest row is. What SHARED people have may be known, and hides nothing.
    """
    if not len(pairs):
        return False
    linked = np.arange(len(heads))
    while (linked[pairs[:, 0]] != linked[pairs[:, 1]]).any():
        np.minimum.at(linked, pairs, linked[pairs].min(axis=1, keepdims=True))
    rows = np.unique(pairs)
    rarest = np.full(len(heads), np.inf)
    np.minimum.at(rarest, linked[rows], heads[rows])
    few = rarest < SHARED
    added = np.bincount(linked[rows], amounts[rows], len(heads))[few]
    people = rarest[few]
    order = np.argsort(-added / people, kind="stable")
    before = np.cumsum(people[order]) - people[order]
    counted = np.clip(SHARED - 1 - before, 0.0, people[order])  # of those who add most
    largest = float((counted * (added / people)[order]).sum())
    return largest > (0.5 + 1e-9) * float(added.sum())


def _followed_pairs(
    codes: NDArray[Any], assignments: Assignments, levels: Places
) -> tuple[Places, Places]:
    """Rows and their counterfactuals among the rows: the same as they are, but for the set.

    The other row may not have this one as its counterfactual: rows are given as they are, and may
    have followers that no change of the set leads to.
    """
    every = {leader for tie in assignments.followed for leader in tie.leaders}
    leaders = sorted(every.intersection(assignments.columns))
    each = [assignments.schema.characteristics[column] for column in leaders]
    own = np.stack([one.level_of(codes[:, c]) for one, c in zip(each, leaders, strict=True)])
    _, joint = np.unique(own, axis=1, return_inverse=True)
    found = []
    for number in range(int(joint.max()) + 1):
        targets = np.flatnonzero(joint.reshape(-1) == number)
        moved = codes.copy()
        moved[:, leaders] = codes[targets[0], leaders]
        follow(assignments.followed, codes, moved)
        found.append(_matches(moved, codes, targets, assignments.columns))
    rows, partners = np.concatenate(found, axis=1)
    others = levels[rows] != levels[partners]
    others &= assignments.schema.admits(codes[rows], codes[partners])  # as to missing values
    return rows[others], partners[others]


def _pair(first: Numbers, second: Numbers) -> Numbers:
    """A number for each pair of numbers, the same exactly for the same pair."""
    return numbered(first * (int(second.max()) + 1) + second)[1]


def _matches(
    moved: NDArray[Any], codes: NDArray[Any], targets: Places, columns: tuple[int, ...]
) -> NDArray[np.int64]:
    """Which rows, as they would be there, are in the context of which of the targets."""
    numbers = context_keys(np.concatenate([moved, codes[targets]]), columns)
    asked, there = numbers[: len(moved)], numbers[len(moved) :]
    order = np.argsort(there, kind="stable")
    start = np.searchsorted(there[order], asked, side="left")
    counts = np.searchsorted(there[order], asked, side="right") - start
    rows = np.repeat(np.arange(len(moved)), counts)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([rows, targets[order[np.repeat(start, counts) + offset]]])
