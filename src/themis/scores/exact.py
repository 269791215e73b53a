"""Exact scores: the definitions as they stand, of every input that occurs, piece by piece.

Only sums are kept, and a sample of rows to explain them; of a domain that was held, its table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.keys import summed
from themis.results.notes import Ending
from themis.results.parts import Region
from themis.scores.domain import Domain, Layout, Pieces, rounded
from themis.scores.explanations.regions import (
    FEWEST,
    MOST_UNKNOWN,
    ROWS,
    SeenRows,
    directed,
    known_regions,
    losing_bits,
    sampled_regions,
)
from themis.scores.explanations.witnesses import KEPT, FlipPool
from themis.scores.group import group_stream
from themis.scores.group_tally import GroupTally, members_of, scoring_rates
from themis.scores.question import Members, Question, Scored, ending_early
from themis.scores.tally import CausalTally, Inputs
from themis.statistics.intervals import Floats
from themis.statistics.proportions import Interval
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading, row_states

States = NDArray[np.int8]  # of the rows of a table


def exact_causal(question: Question, pieces: Pieces) -> Scored:
    """The causal score by Definition 3.7 itself; failed executions and an early end leave ends."""
    flips = _Flips(question, pieces)
    with ending_early(keeps_interrupts=question.sampler.keep_on_interrupt) as early:
        for piece in pieces.run():
            flips.add(piece)
            question.tell(flips.samples, pieces.size, flips.ends)
    held = pieces.domain
    return flips.score((held and held.ended) or early.ending or Ending.EXHAUSTED)


def exact_group(question: Question, pieces: Pieces) -> Scored:
    """The group score by Definitions 3.5 and 3.6; failed executions and an early end leave ends."""
    assignments, reading, held = question.assignments, question.reading, pieces.domain
    totals = pieces.group_weights()
    tally = GroupTally(reading, totals)
    with ending_early(keeps_interrupts=question.sampler.keep_on_interrupt) as early:
        for piece in pieces.run():
            inputs = piece.in_groups(assignments)
            own = assignments.index_of(inputs.codes)
            tally.add(own, inputs.cells, inputs.weights)
            question.tell(tally.samples, pieces.size, tally.spread)
    members: Members = partial(_drawn_members, question)
    scoring = None
    if held is not None:
        cells = reading.cells(inputs.cells)
        scoring = scoring_rates(reading, cells, own, len(totals), inputs.weights)
        members = members_of(inputs.codes, cells, own, inputs.weights)
    stopped = (held and held.ended) or early.ending or Ending.EXHAUSTED
    labels = assignments.labels_of(np.arange(assignments.count))
    return tally.score(question, labels, members, stopped, scoring)


def _drawn_members(
    question: Question, group: int, count: int, rng: np.random.Generator
) -> tuple[NDArray[Any], Cells]:
    """So many random inputs of a group of a domain that was not held."""
    sampler, variants = question.sampler, question.every
    stream = group_stream(sampler, variants, group)
    assert stream is not None
    codes = stream.rows(0, count)
    return codes, question.reading.cells(sampler.runner.repeat(codes, again=0))


class _Flips:
    """What pieces say of the causal score of a set."""

    def __init__(self, question: Question, pieces: Pieces) -> None:
        self._question, self._pieces = question, pieces
        self._low = self._high = self._weight = 0.0
        self._whole = self._whole_low = 0.0  # weight of rows that were run whole, and what flips
        self.samples = 0
        seed, width = question.sampler.seed, question.assignments.count
        rng = np.random.default_rng(seed)
        kept = max(2**22 // width, 1)  # so that those kept to explain the score have few cells
        self._flipping = SomeFlips(min(KEPT, kept), rng)
        self._rows = _SomeRows(ROWS, rng)
        self._table: tuple[Table, States] | None = None  # of a domain that is held
        self._tally = CausalTally(question, question.every)
        # In so many cells it is looked for what only two change together.
        if pieces.size * width > 2**24:
            self._tally.joint = None

    def add(self, piece: Domain) -> None:
        """Count a piece."""
        question, tally = self._question, self._tally
        table = Table.of(piece, question.assignments, question.reading, self._pieces.layout(piece))
        base = piece.occurring if question.assignments.schema.ties else piece
        inputs = Inputs(base.codes, table.places, base.weights)
        states, whole = row_states(table.cells), ~(table.cells == NOT_RUN).any(axis=1)
        tally.unknown += int(((states == UNKNOWN) & whole).sum())
        rows, weights = np.arange(len(states)), table.weights  # a row says all of its inputs,
        if question.reading.graded:  # or each is as far as it is
            rows, weights = table.places, base.weights
        ends = tally.ends(table.cells, states, rows, question.reading.cells(base.cells))
        low, high = (weights * each for each in ends)
        whole = whole[rows]
        self._low, self._high = self._low + float(low.sum()), self._high + float(high.sum())
        self._whole_low += float(low[whole].sum())
        self._whole += float(weights[whole].sum())
        if question.reading.graded:  # a row flips that differs at least a little
            own = own_columns(question.every, table.rows)
            states = question.reading.row_states(table.cells, own, np.zeros(len(own)))
        self._flipping.add(table, states)
        tally.add_whole(table.rows, table.cells, table.weights, inputs)
        if self._pieces.domain is not None:
            self._table = table, states
        else:
            self._rows.add(table, states)
        self._weight += float(piece.weights.sum())
        self.samples += int((piece.cells != NOT_RUN).sum())

    @property
    def _is_whole(self) -> bool:
        return self.samples == self._pieces.size

    def ends(self) -> tuple[float, float]:
        """The score at least and at most: what was not run yet may flip."""
        rest = 0.0 if self._is_whole else max(1.0 - self._weight, 0.0)
        return rounded(self._low), rounded(self._high + rest)

    def score(self, stopped: Ending) -> Scored:
        """What they amount to; observed is the share of those all of whose variants were run."""
        question, tally, (low, high) = self._question, self._tally, self.ends()
        seen = low if self._is_whole else self._whole_low / self._whole if self._whole else 0.0
        interval = Interval(min(max(rounded(seen), low), high), low, high)
        early = stopped.is_early
        self._flipping.put_into(tally.pool, question.every)
        if early:
            tally.harm = tally.joint = None
        held = self._pieces.domain is not None and not early
        known = held and question.sampler.runner.remembers
        regions = self._regions if not early else tuple
        how: Any = {"method": "exact", "samples": self.samples, "stopped": stopped}
        return tally.scored(interval, regions, known=known, **how)

    def _regions(self) -> tuple[Region, ...]:
        """Where the flips are: in the table, if it is held, or as a sample of all rows shows it."""
        question = self._question
        if question.reading.graded:
            return ()  # of degrees, none that counts everyone who is affected alike is the answer
        if self._table is not None:
            return self._known_regions(*self._table)
        rows, confidence = self._rows.seen(), question.settings.confidence
        return sampled_regions(rows, question.assignments, None, confidence)

    def _known_regions(self, table: Table, states: States) -> tuple[Region, ...]:
        """Those of each assignment that loses by itself, or of all together."""
        question, harm = self._question, self._tally.harm
        if (states == UNKNOWN).sum() > MOST_UNKNOWN * (states == FLIP).sum():
            return ()
        known, assignments = np.flatnonzero(states != UNKNOWN), question.assignments
        order = np.random.default_rng(question.sampler.seed).permutation(len(known))
        codes, weights = table.rows.take(known).codes, table.weights[known]
        bits = losing_bits(table.cells, question.reading)

        def find(loser: int | None, own: float) -> tuple[Region, ...]:
            flips = states[known] == FLIP
            if loser is not None and bits is not None:
                flips = (bits[known] >> loser) & 1 == 1
            return known_regions(codes, flips, weights, assignments, own, order=order)

        losers = [] if harm is None or bits is None else harm.losers(FEWEST)
        return directed(losers, assignments.labels, find, question.settings.confidence)


# Tables ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Table:
    """The whole table of a set: its contexts, its cells, the contexts' weights.

    Where something follows others each input has a row of its own.
    """

    rows: Rows
    cells: Cells
    weights: Floats
    places: NDArray[np.int64]  # the row of each input

    @classmethod
    def of(
        cls,
        domain: Domain,
        assignments: Assignments,
        reading: Reading,
        layout: Layout | None = None,
    ) -> Table:
        """The table of these inputs; `layout` is theirs, where it is known."""
        seen = reading.cells(domain.cells)
        if assignments.schema.ties:
            cells, base = domain.table(assignments, seen), domain.occurring
            return cls(Rows(base.codes, {}), cells, base.weights, np.arange(len(base.codes)))
        layout = layout or Layout.of(assignments, domain.codes)
        shape = len(layout.first), assignments.count
        cells = np.full(shape, NO_COUNTERFACTUAL, seen.dtype, order="F")
        cells[layout.rows, layout.columns] = seen
        weights = summed(layout.rows, domain.weights, len(cells))
        return cls(Rows(domain.codes[layout.first], {}), cells, weights, layout.rows)


@dataclass
class SomeFlips:
    """Random flips of all that come, each with the same chance, up to a number.

    Every flip draws a number, and those with the smallest stay.
    """

    most: int
    rng: np.random.Generator
    _kept: list[NDArray[Any]] = field(default_factory=list)  # numbers, codes, cells, weights

    def add(self, table: Table, states: States) -> None:
        """Let the rows of a table take part that flip."""
        places = np.flatnonzero((states == FLIP) & (table.weights > 0))
        drawn = self.rng.random(len(places))
        if self._kept and len(self._kept[0]) == self.most:
            near = drawn < self._kept[0][-1]
            places, drawn = places[near], drawn[near]
        if not len(places):
            return
        kept = [drawn, table.rows.codes[places], table.cells[places], table.weights[places]]
        if self._kept:
            kept = [np.concatenate(both) for both in zip(self._kept, kept, strict=True)]
        order = np.argsort(kept[0], kind="stable")[: self.most]
        self._kept = [each[order] for each in kept]

    def put_into(self, pool: FlipPool, variants: Variants) -> None:
        """Let a pool have them."""
        if self._kept:
            drawn, codes, cells, weights = self._kept
            states = np.full(len(drawn), FLIP, dtype=np.int8)
            pool.add_table(variants, Rows(np.asfortranarray(codes), {}), cells, states, weights)


@dataclass
class _SomeRows:
    """So many rows drawn by their weights, with replacement, from tables that weigh 1 together."""

    left: int
    rng: np.random.Generator
    _weight: float = 1.0  # of the tables to come
    _codes: list[NDArray[Any]] = field(default_factory=list)
    _states: list[NDArray[np.int8]] = field(default_factory=list)

    def add(self, table: Table, states: States) -> None:
        """Draw as many of a table as it weighs among those to come."""
        weight = float(table.weights.sum())
        count = self.rng.binomial(self.left, min(weight / max(self._weight, weight), 1.0))
        self._weight -= weight
        self.left -= count
        if count:
            places = self.rng.choice(len(states), count, p=table.weights / weight)
            self._codes.append(table.rows.codes[places])
            self._states.append(states[places])

    def seen(self) -> SeenRows:
        """They in random order."""
        seen = SeenRows()
        if self._codes:
            codes, states = np.concatenate(self._codes), np.concatenate(self._states)
            order = self.rng.permutation(len(states))
            seen.add(codes[order], states[order])
        return seen
