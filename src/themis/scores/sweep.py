"""Sweeps: exact scores of domains that are too large to hold.

Every input is run, in pieces that hold each context with all its variants, so that the score of the
whole is the sum over the pieces. Only sums are kept, and a sample of rows to explain them; what two
characteristics change only together is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Rows, Variants
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.inputs.streams import MIXING
from themis.results.model import CausalScore, GroupScore, Measure
from themis.results.notes import Ending, ended_early
from themis.results.parts import Region
from themis.scores.early_ends import ending_early
from themis.scores.exact import Domain, rounded, summed
from themis.scores.exact_causal import Flips, Layout, Table, binned_ends, read_rows, score_of_flips
from themis.scores.exact_groups import GroupSums, score_of_sums
from themis.scores.explanations.harm import HarmTally
from themis.scores.explanations.regions import ROWS, SeenRows, sampled_regions
from themis.scores.explanations.witnesses import KEPT, FlipPool
from themis.scores.group import group_population, group_stream
from themis.settings import Settings
from themis.statistics.proportions import Interval
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, Cells
from themis.subjects.readings import FLIP

PIECE = 2**19  # cells of a piece, about; the same wherever the subject runs
MOST_TOGETHER = 2**22  # inputs, or cells, that must be looked at together, at most
SAMPLED_CELLS = 2**22  # of rows that are kept to explain a score


class FailedSweepError(Exception):
    """An execution failed, and the score of a set with bins can't be computed any more."""


def cannot_sweep(sampler: Sampler, assignments: Assignments, measure: Measure) -> str | None:
    """Why a score can't be computed piece by piece; None if it can."""
    if sampler.population.size is None:
        return "not-counted"
    if measure == "causal":
        if len(assignments.binned) > (not sampler.reading.needs_tolerances):
            return "bins"
        if assignments.holds_followers:
            return "following"
    pieces = _Pieces.of(sampler.population, assignments)
    too_wide = max(pieces.together, assignments.count) > MOST_TOGETHER
    if not too_wide and measure == "causal":
        too_wide = pieces.cells > MOST_TOGETHER
    return "too-wide" if too_wide else None


@dataclass(frozen=True)
class _Pieces:
    """A population in pieces, in each of which the set has all its values.

    Blocks of characteristics that the set is in come last: they turn fastest.
    """

    population: Population
    assignments: Assignments
    together: int  # inputs that differ in those blocks only

    @classmethod
    def of(cls, population: Population, assignments: Assignments) -> _Pieces:
        changed = set(assignments.changed)
        inside = [each for each in population.blocks if not changed.isdisjoint(each.columns)]
        apart = [each for each in population.blocks if changed.isdisjoint(each.columns)]
        together = math.prod(each.size or 0 for each in inside)
        return cls(replace(population, blocks=(*apart, *inside)), assignments, together)

    @cached_property
    def size(self) -> int:
        """How many inputs there are."""
        return self.population.size or 0

    @cached_property
    def cells(self) -> int:
        """How many cells the table of so many inputs has."""
        if self.assignments.binned:
            return self.together
        rows = self.together if self.assignments.schema.ties else len(self.layout.first)
        return rows * self.assignments.count

    @cached_property
    def length(self) -> int:
        """How many inputs a piece has, all but the last."""
        times = max(PIECE // max(self.together, self.cells), 1)
        return min(times * self.together, self.size)

    @cached_property
    def layout(self) -> Layout:
        """Where those inputs stand in the set's table."""
        return Layout.of(self.assignments, self.surroundings.codes)

    def run(self, sampler: Sampler) -> Iterator[Domain]:
        """Run piece after piece, in random order: what an early end leaves is a sample of all."""
        starts = range(0, self.size, self.length)
        order = np.random.default_rng(sampler.seed).permutation(len(starts))
        for number, start in ((number, starts[number]) for number in order.tolist()):
            indices = np.arange(start, min(start + self.length, self.size))
            codes = self.population.combinations(indices)
            cells = _run_piece(sampler, codes, number)
            yield Domain(codes, cells, self.population.probabilities(indices))

    @cached_property
    def surroundings(self) -> Domain:
        """The inputs that differ in the set's blocks only, with what they weigh in those."""
        indices = np.arange(self.together)
        weights = self.population.probabilities(indices)
        none = np.empty(0, dtype=np.int64)
        return Domain(self.population.combinations(indices), none, weights / weights.sum())


def _run_piece(sampler: Sampler, codes: NDArray[Any], number: int) -> Cells:
    """The outputs of these inputs; of subjects that run input by input, in random order."""
    runner = sampler.runner
    cells = np.empty(len(codes), dtype=runner.labels.dtype)
    whole = runner.traits.vectorised and math.isinf(runner.seconds_left)
    order = None
    if not runner.traits.vectorised:
        order = sampler.base.generator(MIXING, number).permutation(len(codes))
    first = 0
    while first < len(codes):
        if runner.out_of_time:
            raise BudgetEndedError
        last = len(codes) if whole else first + runner.batch_size
        places = slice(first, last) if order is None else order[first:last]
        cells[places] = runner.run(codes[places])
        first = last
    return cells


def sweep_causal(
    sampler: Sampler, variants: Variants, settings: Settings, cost: Cost
) -> CausalScore:
    """The causal score by Definition 3.7; failed executions and an early end leave an interval.

    Raises FailedSweepError where executions failed and the set has bins.
    """
    assignments = variants.assignments
    pieces = _Pieces.of(sampler.population, assignments)
    sums = _FlipSums(sampler, variants, pieces)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        for piece in pieces.run(sampler):
            sums.add(piece)
            sampler.tell("causal", assignments, sums.samples, pieces.size, sums.ends)
    stopped = early.ending or Ending.EXHAUSTED
    flips = sums.flips(settings.confidence)
    return score_of_flips(flips, sampler, assignments, settings, cost, stopped=stopped)


def sweep_group(sampler: Sampler, variants: Variants, settings: Settings, cost: Cost) -> GroupScore:
    """The group score by Definitions 3.5 and 3.6, of groups all of whose inputs are run.

    Failed executions leave an interval, and so does an early end.
    """
    assignments, samples = variants.assignments, 0
    pieces = _Pieces.of(sampler.population, assignments)
    sums = GroupSums(assignments, sampler.reading)
    totals = _group_weights(pieces, assignments)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        for piece in pieces.run(sampler):
            sums.add(piece)
            samples += len(piece.cells)
            sampler.tell("group", assignments, samples, pieces.size, partial(sums.spread, totals))
    stopped = early.ending or Ending.EXHAUSTED
    present = np.flatnonzero(totals > 0)

    def members(group: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
        place = int(present[group])
        own = group_population(sampler.population, variants, place)
        assert own is not None
        codes = group_stream(sampler, variants, place, own).rows(0, count)
        return codes, sampler.reading.cells(sampler.runner.repeat(codes, again=0))

    return score_of_sums(
        sums,
        members,
        totals=totals if stopped.is_early else sums.weight,
        settings=settings,
        cost=cost,
        stopped=stopped,
        notes=(ended_early(stopped, settings, samples),) if stopped.is_early else (),
    )


def _group_weights(pieces: _Pieces, assignments: Assignments) -> NDArray[np.float64]:
    """What each group weighs, whatever was run of it."""
    inputs = pieces.surroundings
    inside = assignments.in_groups(inputs.codes)
    own = assignments.index_of(inputs.codes[inside])
    return summed(own, inputs.weights[inside], assignments.count)


class _FlipSums:
    """What pieces say of the causal score of a set."""

    def __init__(self, sampler: Sampler, variants: Variants, pieces: _Pieces) -> None:
        self._sampler, self._variants, self._pieces = sampler, variants, pieces
        self._low = self._high = self._weight = 0.0
        self.samples = self._unknown = self._spelled = 0
        assignments, self._reading = variants.assignments, sampler.reading
        self._tally = HarmTally.of(assignments, self._reading)
        rng = np.random.default_rng(sampler.seed)
        self._flipping = _SomeFlips(min(KEPT, max(SAMPLED_CELLS // assignments.count, 1)), rng)
        self._rows = _SomeRows(ROWS, rng)
        self._seen = SeenRows()

    def add(self, piece: Domain) -> None:
        """Count a piece."""
        if self._variants.assignments.binned:
            self._add_binned(piece)
        else:
            self._add_table(piece)
        self._weight += float(piece.weights.sum())
        self.samples += len(piece.cells)

    def ends(self) -> tuple[float, float]:
        """The score at least and at most: what was not run yet may flip."""
        rest = 0.0 if self.samples == self._pieces.size else max(1.0 - self._weight, 0.0)
        return rounded(self._low), rounded(self._high + rest)

    def flips(self, confidence: float) -> Flips:
        """What they amount to; of the share, what was observed and its ends."""
        low, high = self.ends()
        whole = self.samples == self._pieces.size
        seen = self._low if whole else self._low / self._weight if self._weight else 0.0
        seen = min(rounded(seen), high)  # an interrupt may leave a piece half counted
        return Flips(
            share=Interval(seen, low, high),
            samples=self.samples,
            unknown=self._unknown,
            spelled=self._spelled,
            pool=self._pool(),
            tally=self._tally,
            regions=partial(self._regions, confidence),
            some_rows=bool(self._variants.assignments.binned),
        )

    def _add_binned(self, piece: Domain) -> None:
        if (piece.cells == FAILED).any():
            raise FailedSweepError
        assignments = self._variants.assignments
        low, high = binned_ends(piece, self._sampler.population, assignments, self._reading)
        self._low, self._high = self._low + low, self._high + high
        self._unknown = self._spelled = int(self._high > self._low)

    def _add_table(self, piece: Domain) -> None:
        assignments, reading = self._variants.assignments, self._reading
        table = Table.of(piece, assignments, reading, self._layout(len(piece.cells)))
        ends = table.ends(piece, self._variants, reading)
        self._low, self._high = self._low + ends.low, self._high + ends.high
        self._unknown += ends.unknown
        self._spelled += int(reading.spelled_rows(table.cells).sum())
        if self._tally is not None:
            self._tally.add(table.cells, table.weights)
        self._rows.add(table, ends.states)
        self._flipping.add(table, np.flatnonzero(ends.states == FLIP))

    def _layout(self, count: int) -> Layout | None:
        if self._variants.assignments.schema.ties:
            return None
        if count == self._pieces.length:
            return self._whole
        return self._pieces.layout.repeated(count // self._pieces.together)

    @cached_property
    def _whole(self) -> Layout:
        return self._pieces.layout.repeated(self._pieces.length // self._pieces.together)

    def _pool(self) -> FlipPool:
        """Some of the flips; of a set with bins, of rows that are run for it."""
        pool = FlipPool(self._sampler.runner.schema, self._reading)
        if not self._variants.assignments.binned:
            self._flipping.put_into(pool, self._variants)
            return pool
        try:
            with self._sampler.runner.apart():
                self._seen = read_rows(self._sampler, self._variants, pool, self._tally)
        except BudgetEndedError:
            pass
        return pool

    def _regions(self, confidence: float) -> tuple[Region, ...]:
        """Where the flips are, as a sample of all rows shows it."""
        assignments = self._variants.assignments
        if self._reading.graded or self.samples < self._pieces.size:
            return ()  # of degrees, none that counts everyone who is affected alike is the answer
        seen = self._seen if assignments.binned else self._rows.seen()
        return sampled_regions(seen, assignments.schema, assignments.columns, confidence)


@dataclass
class _SomeFlips:
    """Random flips of all that come, each with the same chance, up to a number.

    Every flip draws a number, and those with the smallest stay.
    """

    most: int
    rng: np.random.Generator
    _kept: list[NDArray[Any]] = field(default_factory=list)  # numbers, codes, cells, weights

    def add(self, table: Table, places: NDArray[np.int64]) -> None:
        """Let these rows of a table take part, which flip."""
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

    def add(self, table: Table, states: NDArray[np.int8]) -> None:
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
