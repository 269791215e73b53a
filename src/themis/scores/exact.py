"""Exact scores: every input that occurs is run, and the definitions are computed as they stand."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import KEPT, Memory
from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.following import follow
from themis.inputs.keys import numbered
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import MIXING
from themis.results.model import CausalScore, Measure
from themis.results.notes import Ending
from themis.results.parts import Region
from themis.scores.causal import causal_score
from themis.scores.explanations.explaining import explained
from themis.scores.explanations.harm import HarmTally
from themis.scores.explanations.joint import JointTally
from themis.scores.explanations.regions import (
    FEWEST,
    MOST_UNKNOWN,
    SeenRows,
    directed,
    known_regions,
    losing_bits,
    sampled_regions,
)
from themis.scores.explanations.witnesses import FlipPool
from themis.settings import Settings
from themis.statistics.proportions import Interval
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading

CHUNK = 2**18
JOINT_CELLS = 2**24  # looked at to see what only two change together
JOINT_PART = 2**20  # of them at a time
DENSE_LIMIT = 2**25  # cells of a table that is built whole
MOST_SHARES = 10_000  # distinct weights of inputs that are looked at for a common denominator
LARGEST_DENOMINATOR, LARGEST_TOTAL = 10**8, 2**53
FREE_ROWS = 1_000  # rows of a binned set's table read from what was run, for people and harm


@dataclass(frozen=True)
class Domain:
    """Every input that occurs, its answer and its probability.

    Where a profile is measured, or something follows others: also inputs without weight, which are
    variants of those that occur.
    """

    codes: NDArray[Any]
    cells: Cells
    weights: NDArray[np.float64]

    @property
    def occurring(self) -> Domain:
        """Only the inputs that have a weight."""
        return self.part(self.weights > 0)

    def part(self, chosen: NDArray[np.bool_]) -> Domain:
        """Only these inputs."""
        if chosen.all():
            return self
        return Domain(self.codes[chosen], self.cells[chosen], self.weights[chosen])

    def weighted(self, schema: Schema, codes: NDArray[Any], weights: NDArray[np.float64]) -> Domain:
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
        known = Memory(keys, seen.dtype)
        known.add(keys.of(self.codes), seen)
        values = _set_values(assignments)
        touching = assignments.schema.touching(assignments.changed)
        cells = np.empty((len(base), len(values)), dtype=seen.dtype, order="F")
        for place, own in enumerate(values):
            codes = base.copy(order="F")
            codes[:, list(assignments.columns)] = own
            follow(assignments.followed, base, codes)
            cells[:, place] = known.look_up(keys.of(codes))
            cells[~touching.admits(base, codes), place] = NO_COUNTERFACTUAL
        cells[cells == NOT_RUN] = NO_COUNTERFACTUAL
        return cells


def _set_values(assignments: Assignments) -> NDArray[np.int64]:
    """All joint codes of a set's columns; of one with bins, of all their members."""
    each = [assignments.schema.characteristics[c] for c in assignments.columns]
    codes = [
        one.possible_levels(np.arange(one.possible_count))
        if one.bin_starts is None
        else np.arange(one.code_count)
        for one in each
    ]
    return np.stack([axis.ravel() for axis in np.meshgrid(*codes, indexing="ij")], axis=1)


def rounded(share: float) -> float:
    """A sum of weights without the noise of its last digits: three tenths are not above 0.3."""
    return round(float(share), 12)


def run_domain(sampler: Sampler) -> Domain | None:
    """Run every input that occurs and was not run yet; None when the budget ends before.

    Subjects that run input by input get them in random order, so that what they remember of earlier
    ones has nothing to do with any characteristic.
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
        for first, last in sampler.blocks(0, len(order), 1):
            for start in range(first, last, CHUNK):
                indices = order[start : min(start + CHUNK, last)]
                cells[indices] = sampler.runner.run(population.combinations(indices))
            now = time.monotonic()
            each = min((now - began) / last, (now - clock) / (last - first))
            if each * (len(order) - last) > sampler.runner.seconds_left:
                break  # a cache file held the first ones: time is left to sample
            clock = now
    except BudgetEndedError:
        pass
    finally:
        run = order[cells[order] != NOT_RUN]
        if len(run) < len(order) and sampler.tables.suite is not None:
            sampler.tables.suite.add_singles((), population.combinations(run), cells[run])
    if len(run) < len(order):
        return None
    every = np.arange(population.size)
    return Domain(population.combinations(every), cells, population.probabilities(every))


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


def whole_numbers(shares: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Whole numbers in the ratio of these shares of one; None where there are no small ones."""
    distinct, places, counts = np.unique(shares, return_inverse=True, return_counts=True)
    if len(distinct) > MOST_SHARES:
        return None
    ratios = [Fraction(share).limit_denominator(LARGEST_DENOMINATOR) for share in distinct.tolist()]
    common = math.lcm(*(each.denominator for each in ratios))
    total = sum(each * count for each, count in zip(ratios, counts.tolist(), strict=True))
    if common > LARGEST_TOTAL or total != 1:
        return None
    return np.array([int(each * common) for each in ratios], dtype=np.int64)[places]


def can_be_exact(sampler: Sampler, assignments: Assignments, measure: Measure) -> bool:
    """Whether the definitions can be computed from the outputs of the whole domain.

    Bins whose members stand for them matter to causal scores alone.
    """
    if measure == "causal" and len(assignments.binned) > (not sampler.reading.needs_tolerances):
        return False  # of a graded reading not even one
    chosen = set(assignments.columns)
    if assignments.schema.ties:
        return _fits_by_input(sampler, assignments)
    width = math.prod(assignments.schema.code_counts[c] for c in chosen)
    blocks = sampler.population.blocks
    contexts = math.prod(b.size or 1 for b in blocks if chosen.isdisjoint(b.columns))
    return width * contexts <= DENSE_LIMIT


def _fits_by_input(sampler: Sampler, assignments: Assignments) -> bool:
    """Whether the table of all inputs that occur, each with its own variants, can be built."""
    size = sampler.population.size
    width = math.prod(assignments.schema.code_counts[c] for c in assignments.columns)
    if size is None:
        return False
    return size * width <= DENSE_LIMIT and sampler.runner.schema.size <= KEPT


def exact_causal(
    sampler: Sampler, domain: Domain, variants: Variants, settings: Settings, cost: Cost
) -> CausalScore:
    """The causal score by Definition 3.7 itself; failed executions leave an interval."""
    assignments = variants.assignments
    reading = sampler.reading
    pool = FlipPool(sampler.runner.schema, reading)
    tally = HarmTally(assignments, reading) if HarmTally.fits(assignments, reading) else None
    joint = JointTally.of(variants, reading)
    if assignments.binned:
        low, high = binned_ends(domain, sampler.population, assignments, reading)
        unknown = spelled = int(high > low)
        seen = SeenRows()
        if sampler.runner.remembers:
            seen = read_rows(sampler, variants, pool, tally)
    else:
        table = Table.of(domain, assignments, reading)
        ends = table.ends(domain, variants, reading)
        low, high, unknown, states = ends.low, ends.high, ends.unknown, ends.states
        rows, cells, weights = table.rows, table.cells, table.weights
        spelled = int(reading.spelled_rows(cells).sum())
        shuffled = np.random.default_rng(sampler.seed).permutation(len(cells))
        pool.add_table(
            variants, rows.take(shuffled), cells[shuffled], states[shuffled], weights[shuffled]
        )
        if tally is not None:
            tally.add(cells, weights)
            if joint is not None:
                _add_inputs(joint, domain, assignments, table)

    def regions() -> tuple[Region, ...]:
        schema, columns = assignments.schema, assignments.columns
        if assignments.binned:
            return sampled_regions(seen, schema, columns, settings.confidence)
        known = np.flatnonzero(states != UNKNOWN)
        if reading.graded or unknown > MOST_UNKNOWN * (states == FLIP).sum():
            return ()  # of degrees, none that counts everyone who is affected alike is the answer
        order = np.random.default_rng(sampler.seed).permutation(len(known))
        codes, bits = rows.take(known).codes, losing_bits(cells, reading)

        def find(loser: int | None, own: float) -> tuple[Region, ...]:
            flips = states[known] == FLIP
            if loser is not None and bits is not None:
                flips = (bits[known] >> loser) & 1 == 1
            return known_regions(codes, flips, weights[known], schema, columns, own, order=order)

        losers = [] if tally is None or bits is None else tally.losers(FEWEST)
        found = directed(losers, assignments.labels, find, settings.confidence)
        return found or find(None, settings.confidence)

    low, high = rounded(low), rounded(high)
    score = causal_score(
        Interval(low, low, high),
        against=assignments.names,
        followed=assignments.followed_names,
        settings=settings,
        cost=cost,
        pool=pool,
        tally=tally,
        method="exact",
        samples=len(domain.cells),
        stopped=Ending.EXHAUSTED,
        unknown=unknown,
        spelled=spelled,
        **reading.details(),
    )
    score = explained(score, pool, sampler, regions, known=sampler.runner.remembers)
    return score if joint is None else joint.explain(score)


def _add_inputs(joint: JointTally, domain: Domain, assignments: Assignments, table: Table) -> None:
    """Count every input that occurs with the row of its context, unless they are too many."""
    base = domain.occurring if assignments.schema.ties else domain
    count, width = len(table.places), table.cells.shape[1]
    if count * width > JOINT_CELLS:
        return
    step = max(JOINT_PART // width, 1)
    for start in range(0, count, step):
        part = slice(start, start + step)
        cells = table.cells[table.places[part]]
        joint.add(Rows(base.codes[part], {}), cells, base.weights[part])


def _expected_distance(
    domain: Domain, keys: NDArray[np.int64], reading: Reading, cells: Cells
) -> tuple[float, float]:
    """The expected largest distance of an input's variants from its own output, at both ends.

    The keys are the rows of the table that the inputs have.
    """
    own = reading.cells(domain.cells)
    low = np.zeros(len(keys))
    unclear = own == FAILED
    for column in range(cells.shape[1]):
        others = cells[keys, column]
        low = np.maximum(low, reading.distances(own, others))
        unclear |= others == FAILED
    high = np.where(unclear, 1.0, low)
    return float(low @ domain.weights), float(high @ domain.weights)


@dataclass(frozen=True)
class Layout:
    """Where inputs stand in the table of a set without bins."""

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
class TableEnds:
    """What a table says: the weight of what flips, at least and at most, and its rows' states."""

    low: float
    high: float
    unknown: int  # rows
    states: NDArray[np.int8]  # of degrees: a row flips that differs at least a little


@dataclass(frozen=True)
class Table:
    """The whole table of a set without bins: its contexts, its cells, the contexts' weights.

    Where something follows others each input has a row of its own.
    """

    rows: Rows
    cells: Cells
    weights: NDArray[np.float64]
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
        contexts = len(layout.first)
        cells = np.full((contexts, assignments.count), NO_COUNTERFACTUAL, seen.dtype, order="F")
        cells[layout.rows, layout.columns] = seen
        weights = np.bincount(layout.rows, domain.weights, minlength=contexts).astype(float)
        return cls(Rows(domain.codes[layout.first], {}), cells, weights, layout.rows)

    def ends(self, domain: Domain, variants: Variants, reading: Reading) -> TableEnds:
        """How much of it flips; of degrees, the expected distance."""
        states = reading.plain_states(self.cells)
        unknown = int((states == UNKNOWN).sum())
        if reading.graded:
            low, high = _expected_distance(domain.occurring, self.places, reading, self.cells)
            own = own_columns(variants, self.rows)
            states = reading.row_states(self.cells, own, np.zeros(len(self.cells)))
            return TableEnds(low, high, unknown, states)
        low = float(self.weights[states == FLIP].sum())
        return TableEnds(low, low + float(self.weights[states == UNKNOWN].sum()), unknown, states)


def binned_ends(
    domain: Domain, population: Population, assignments: Assignments, reading: Reading
) -> tuple[float, float]:
    """The weight that flips of a set with one binned characteristic, at least and at most.

    They differ where outputs differ only in spelling.
    """
    seen = reading.cells(domain.cells)
    merged = reading.merged(seen)
    high = _binned_score(replace(domain, cells=seen), population, assignments)
    if merged is seen:
        return high, high
    return _binned_score(replace(domain, cells=merged), population, assignments), high


def _binned_score(domain: Domain, population: Population, assignments: Assignments) -> float:
    """The weight that flips of a set with one binned characteristic, of cells that are outputs.

    Each bin is represented by a random member, the input's own bin by its own value. An input
    keeps its output when its own value's column and those of all other bins' members show one
    label only; members are drawn independently, so that chance is a product over the bins.
    """
    (column,) = assignments.binned
    characteristic = assignments.schema.characteristics[column]
    size = assignments.schema.code_counts[column]
    shown, weights = _shown_labels(domain, assignments, column, size)
    levels = characteristic.possible_levels(np.arange(characteristic.possible_count))
    bins = [slice(*characteristic.level_range(int(level))) for level in levels if level != OWN]
    members = np.zeros(size)
    for each in bins:
        block = population.members(column, each.start, each.stop)
        if block is not None:
            members[block.combinations(np.arange(block.size or 0))[:, 0]] = block.probabilities()
    bins = [each for each in bins if members[each].any()]
    constant = 0.0
    for label in np.unique(shown[shown >= 0]).tolist():
        agrees = (shown == label) | (shown == NO_COUNTERFACTUAL)
        chance = [agrees[:, b] @ members[b] for b in bins]
        for place, own in enumerate(bins):
            others = np.prod([each for i, each in enumerate(chance) if i != place], axis=0)
            stays = (weights[:, own] * (shown[:, own] == label)).sum(axis=1)
            constant += float((stays * others).sum())
    return float(weights.sum()) - constant


_MIXED = NOT_RUN  # in `_shown_labels`: two outputs differ already for one member


def _shown_labels(
    domain: Domain, assignments: Assignments, column: int, size: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Per context and member of the binned column: the one label that its variants show.

    Where something follows others each input that occurs is a context of its own.
    """
    if assignments.schema.ties:
        return _shown_by_input(domain, assignments, column, size)
    keys = assignments.contexts(domain.codes)
    contexts = int(keys.max()) + 1
    place = keys * size + domain.codes[:, column]
    dtype = domain.cells.dtype
    largest = np.full(contexts * size, NO_COUNTERFACTUAL, dtype=dtype)
    smallest = np.full(contexts * size, np.iinfo(dtype).max, dtype=dtype)
    np.maximum.at(largest, place, domain.cells)
    np.minimum.at(smallest, place, domain.cells)
    shown = np.where((largest >= 0) & (largest != smallest), _MIXED, largest).astype(dtype)
    weights = np.bincount(place, domain.weights, minlength=contexts * size).astype(float)
    return shown.reshape(contexts, size), weights.reshape(contexts, size)


def _shown_by_input(
    domain: Domain, assignments: Assignments, column: int, size: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    base, cells = domain.occurring, domain.table(assignments, domain.cells)
    member = _set_values(assignments)[:, assignments.columns.index(column)]
    shown = np.full((len(cells), size), NO_COUNTERFACTUAL, dtype=cells.dtype)
    for code in range(size):
        labels = cells[:, member == code]
        known = np.where(labels == NO_COUNTERFACTUAL, np.iinfo(cells.dtype).max, labels)
        most, least = labels.max(axis=1), known.min(axis=1)
        shown[:, code] = np.where((most >= 0) & (most != least), _MIXED, most)
    weights = np.zeros(shown.shape)
    weights[np.arange(len(cells)), base.codes[:, column]] = base.weights
    return shown, weights


def read_rows(
    sampler: Sampler, variants: Variants, pool: FlipPool, tally: HarmTally | None
) -> SeenRows:
    """People and harm of a binned set, from rows whose outputs are mostly known by now."""
    seen = SeenRows()
    rows, cells = sampler.tables.fill(variants, 0, FREE_ROWS, reading=sampler.reading)
    states = sampler.reading.plain_states(cells)
    seen.add(rows.codes, states)
    pool.add_table(variants, rows, cells, states)
    if tally is not None:
        tally.add(cells)
    return seen
