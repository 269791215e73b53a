"""The whole domain: every input that occurs is run, for scores by the definitions themselves.

What can be held is run once for all sets. Of a larger domain, `Pieces` that hold each context with
all its variants are run one after another, so that the score of the whole is a sum over them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import KEPT, Memory
from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import follow
from themis.inputs.keys import numbered, summed
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import MIXING
from themis.results.notes import Ending
from themis.scores.question import Question, ending_early
from themis.statistics.intervals import Flags, Floats
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN, Cells

CHUNK = 2**18
DENSE_LIMIT = 2**25  # cells of a table that is built whole


@dataclass(frozen=True)
class Domain:
    """Every input that occurs, its answer and its probability.

    Where a profile is measured, or something follows others: also inputs without weight, which are
    variants of those that occur. If running them `ended` early, some are NOT_RUN.
    """

    codes: NDArray[Any]
    cells: Cells
    weights: Floats
    ended: Ending | None = None

    @property
    def occurring(self) -> Domain:
        """Only the inputs that have a weight."""
        return self.part(self.weights > 0)

    def part(self, chosen: Flags) -> Domain:
        """Only these inputs."""
        if chosen.all():
            return self
        return Domain(self.codes[chosen], self.cells[chosen], self.weights[chosen], self.ended)

    def weighted(self, schema: Schema, codes: NDArray[Any], weights: Floats) -> Domain:
        """The same with the weights of these inputs, which are in it, instead of its own."""
        keys = schema.input_keys.of
        of_all = keys(self.codes)
        order = np.argsort(of_all)
        shares = np.zeros(len(of_all))
        shares[order[np.searchsorted(of_all, keys(codes), sorter=order)]] = weights
        return replace(self, weights=shares / shares.sum())

    def table(self, assignments: Assignments, seen: Cells) -> Cells:
        """The outputs of all variants of those that occur: rows × values of the set's columns.

        `seen` are the outputs of the domain. What is not in it is no counterfactual.
        """
        base, keys = self.occurring.codes, assignments.schema.input_keys
        known = Memory(keys, np.dtype(np.int32))
        known.add(keys.of(self.codes), np.arange(len(seen), dtype=np.int32))
        values = assignments.levels(np.arange(assignments.count))  # not of bins: they are codes
        touching = assignments.schema.touching(assignments.changed)
        cells = np.empty((len(base), len(values)), dtype=seen.dtype, order="F")
        for place, own in enumerate(values):
            codes = base.copy(order="F")
            codes[:, list(assignments.columns)] = own
            follow(assignments.followed, base, codes)
            found = known.look_up(keys.of(codes))
            there = (found != NOT_RUN) & touching.admits(base, codes)
            cells[:, place] = np.where(there, seen[np.maximum(found, 0)], NO_COUNTERFACTUAL)
        return cells

    def in_groups(self, assignments: Assignments) -> Domain:
        """Those that occur and belong to a group."""
        domain = self.occurring
        return domain.part(assignments.in_groups(domain.codes))


def rounded(share: float) -> float:
    """A sum of weights without the noise of its last digits: three tenths are not above 0.3."""
    return round(float(share), 12)


def run_domain(sampler: Sampler, *, keeps_interrupts: bool) -> Domain | None:
    """Run every input that occurs and was not run yet, unless time or an interrupt ends that.

    None where nothing was run by then, or where time is left to sample. Subjects that run input by
    input get them in random order, so that what they remember of earlier ones has nothing to do
    with any characteristic.
    """
    population = sampler.population
    assert population.size is not None
    order = np.arange(population.size)
    if not sampler.runner.traits.vectorised:
        order = sampler.base.generator(MIXING).permutation(order)
    cells = _known(sampler)
    order = order[cells[order] == NOT_RUN]
    sampler.runner.ledger.remember(population.size - len(order))
    began = clock = time.monotonic()
    try:
        with ending_early(keeps_interrupts=keeps_interrupts) as early:
            for first, last in sampler.blocks(0, len(order), 1):
                for start in range(first, last, CHUNK):
                    indices = order[start : min(start + CHUNK, last)]
                    cells[indices] = sampler.runner.run(population.combinations(indices))
                now = time.monotonic()
                each = min((now - began) / last, (now - clock) / (last - first))
                if each * (len(order) - last) > sampler.runner.seconds_left:
                    break  # a cache file held the first ones: time is left to sample
                clock = now
    finally:
        run = order[cells[order] != NOT_RUN]
        if len(run) < len(order) and sampler.tables.suite is not None:
            sampler.tables.suite.add_singles((), population.combinations(run), cells[run])
    ended = early.ending
    if len(run) < len(order) and ended is not Ending.INTERRUPTED:
        if not sampler.runner.out_of_time:
            return None
        ended = Ending.BUDGET
    if ended and (cells == NOT_RUN).all():
        if ended is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        return None
    every = np.arange(population.size)
    weights = population.probabilities(every)
    return Domain(population.combinations(every), cells, weights, ended)


def count_missing(sampler: Sampler) -> int:
    """How many inputs that occur were not run yet, as far as that is remembered."""
    return int((_known(sampler) == NOT_RUN).sum())


def _known(sampler: Sampler) -> Cells:
    """The outputs of all inputs that occur, NOT_RUN where they are not known."""
    every = np.arange(sampler.population.size or 0)
    if not sampler.runner.remembers or sampler.runner.memory.is_empty:
        return np.full(len(every), NOT_RUN, dtype=sampler.runner.labels.dtype)
    parts = [
        sampler.runner.known(sampler.population.combinations(every[start : start + CHUNK]))
        for start in range(0, len(every), CHUNK)
    ]
    return np.concatenate(parts)


def can_be_exact(question: Question) -> bool:
    """Whether the definitions can be computed from the outputs of the whole domain.

    Of bins a random member stands for each, which causal scores sample.
    """
    sampler, assignments = question.sampler, question.assignments
    if question.measure == "causal" and assignments.binned:
        return False
    chosen = set(assignments.columns)
    width = math.prod(assignments.schema.code_counts[c] for c in chosen)
    if assignments.schema.ties:  # each input that occurs has variants of its own
        size = sampler.population.size or DENSE_LIMIT + 1
        return size * width <= DENSE_LIMIT and sampler.runner.schema.size <= KEPT
    blocks = sampler.population.blocks
    contexts = math.prod(b.size or 1 for b in blocks if chosen.isdisjoint(b.columns))
    return width * contexts <= DENSE_LIMIT


# Pieces ---------------------------------------------------------------------------------------
PIECE = 2**19  # cells of a piece, about; the same wherever the subject runs
MOST_TOGETHER = 2**22  # inputs, or cells, that must be looked at together, at most


def cannot_sweep(question: Question) -> str | None:
    """Why a score can't be computed piece by piece; None if it can."""
    assignments, is_causal = question.assignments, question.measure == "causal"
    if question.sampler.population.size is None:
        return "not-counted"
    if is_causal:
        if assignments.binned:
            return "bins"
        if assignments.holds_followers:
            return "following"
    pieces = Pieces.of(question.sampler, assignments)
    most = max(pieces.together, assignments.count)
    most = max(most, pieces.cells) if is_causal and most <= MOST_TOGETHER else most
    return "too-wide" if most > MOST_TOGETHER else None


@dataclass(frozen=True)
class Layout:
    """Where inputs stand in the table of a set."""

    rows: NDArray[np.int64]  # of each input
    columns: NDArray[np.int64]
    first: NDArray[np.int64]  # the input that each row begins with

    @classmethod
    def of(cls, assignments: Assignments, codes: NDArray[Any]) -> Layout:
        """Inputs with the same context share a row."""
        rows = assignments.contexts(codes)
        return cls(rows, assignments.index_of(codes), numbered(rows)[0])

    def repeated(self, times: int) -> Layout:
        """That of the same inputs in so many other surroundings, one after another."""
        each = np.arange(times)[:, None]
        return Layout(
            (each * len(self.first) + self.rows).ravel(),
            np.tile(self.columns, times),
            (each * len(self.rows) + self.first).ravel(),
        )


@dataclass(frozen=True)
class Pieces:
    """A population in pieces, in each of which a set has all its values; or a domain, as one piece.

    Blocks of characteristics that the set is in come last: they turn fastest.
    """

    sampler: Sampler
    assignments: Assignments
    population: Population
    together: int  # inputs that differ in those blocks only
    domain: Domain | None = None  # that was run already

    @classmethod
    def of(cls, sampler: Sampler, assignments: Assignments, domain: Domain | None = None) -> Pieces:
        """Those of all that a sampler draws."""
        population, changed = sampler.population, set(assignments.changed)
        inside = [each for each in population.blocks if not changed.isdisjoint(each.columns)]
        apart = [each for each in population.blocks if changed.isdisjoint(each.columns)]
        together = math.prod(each.size or 0 for each in inside)
        population = replace(population, blocks=(*apart, *inside))
        return cls(sampler, assignments, population, together, domain)

    @cached_property
    def size(self) -> int:
        """How many inputs there are."""
        return len(self.domain.codes) if self.domain is not None else self.population.size or 0

    @cached_property
    def cells(self) -> int:
        """How many cells the table of those that are together has."""
        rows = self.together if self.assignments.schema.ties else len(self._layout.first)
        return rows * self.assignments.count

    @cached_property
    def length(self) -> int:
        """How many inputs a piece has, all but the last."""
        times = max(PIECE // max(self.together, self.cells), 1)
        return min(times * self.together, self.size)

    def layout(self, piece: Domain) -> Layout:
        """Where the inputs of a piece stand in its table."""
        if self.domain is not None:
            return Layout.of(self.assignments, piece.codes)
        whole, count = self._repeated, len(piece.codes)
        contexts = count // self.together * len(self._layout.first)
        return Layout(whole.rows[:count], whole.columns[:count], whole.first[:contexts])

    def run(self) -> Iterator[Domain]:
        """Run piece after piece, in random order: what an early end leaves is a sample of all."""
        if self.domain is not None:
            yield self.domain
            return
        starts = range(0, self.size, self.length)
        order = np.random.default_rng(self.sampler.seed).permutation(len(starts))
        for number in order.tolist():
            indices = np.arange(starts[number], min(starts[number] + self.length, self.size))
            codes = self.population.combinations(indices)
            cells = _run_piece(self.sampler, codes, number)
            yield Domain(codes, cells, self.population.probabilities(indices))

    def group_weights(self) -> Floats:
        """What each assignment weighs as a group, whatever was run of it."""
        inputs = (self.domain or self._surroundings).in_groups(self.assignments)
        own = self.assignments.index_of(inputs.codes)
        return summed(own, inputs.weights, self.assignments.count)

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.assignments, self._surroundings.codes)

    @cached_property
    def _repeated(self) -> Layout:
        return self._layout.repeated(self.length // self.together)

    @cached_property
    def _surroundings(self) -> Domain:
        """The inputs that differ in the set's blocks only, with what they weigh in those."""
        indices = np.arange(self.together)
        weights = self.population.probabilities(indices)
        none_run = np.full(self.together, NOT_RUN)
        return Domain(self.population.combinations(indices), none_run, weights / weights.sum())


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
