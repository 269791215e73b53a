"""Counterfactuals among given rows (Def. 3.8 to the letter): nothing is run beyond the rows.

Two rows are counterfactuals of each other when they have the same context and another assignment
of the set. Where something follows the set, each row has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Assignments, Places, context_keys
from themis.inputs.columns import SHARED
from themis.inputs.following import follow
from themis.inputs.keys import InputKeys
from themis.results.notes import Ending, Note, ended_early
from themis.scores.domain import rounded
from themis.scores.explanations.explaining import explained
from themis.scores.explanations.witnesses import POOL
from themis.scores.people import PeopleRun
from themis.scores.question import Question, Scored
from themis.scores.tally import CausalTally
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import Interval
from themis.subjects.decisions import Cells

ROUNDING = 1e-9  # of what makes up just half

Numbers = NDArray[np.int64]
Distances = Callable[[Cells, Cells], Floats]


def causal_within(run: PeopleRun, question: Question) -> Scored:
    """The share of rows with a counterfactual among the rows that gets another output."""
    assignments, reading = question.assignments, question.reading
    stopped = run.run(assignments, "causal")
    contexts = assignments.contexts(run.codes)
    own = assignments.own_levels(run.codes)
    levels = np.unique(InputKeys.among(own).of(own), return_inverse=True)[1]
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
    score = tally.score(
        weigh(found.least, found.most, run.weights),
        sampled=False,
        method="exact",
        samples=run.seen,
        stopped=stopped or Ending.EXHAUSTED,
        notes=(note, ended_early(stopped, run.seen)) if stopped else (note,),
    )
    score = explained(score, tally.pool, question.sampler, people=run.codes)
    of_few = reading.averages and rests_on_few(pairs, run.heads, run.weights * found.least)
    return Scored(replace(score, counterfactuals="within", of_few=of_few), tally.pool)


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
    return largest > (0.5 + ROUNDING) * float(added.sum())


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
    keys = first * (int(second.max()) + 1) + second
    numbers: Numbers = np.unique(keys, return_inverse=True)[1]
    return numbers


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
