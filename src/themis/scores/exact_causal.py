"""Exact causal scores: Definition 3.7 as it stands, of every input that occurs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.keys import numbered
from themis.inputs.population import Population
from themis.results.model import CausalScore
from themis.results.notes import Ending, ended_early
from themis.results.parts import Region
from themis.scores.causal import causal_score
from themis.scores.exact import Domain, rounded, set_values, summed
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
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading

JOINT_CELLS = 2**24  # looked at to see what only two change together
JOINT_PART = 2**20  # of them at a time
FREE_ROWS = 1_000  # rows of a binned set's table read from what was run, for people and harm


@dataclass(frozen=True)
class Flips:
    """How much of a domain flips, and what explains it."""

    share: Interval
    samples: int  # inputs
    unknown: int
    spelled: int
    pool: FlipPool
    tally: HarmTally | None
    regions: Callable[[], tuple[Region, ...]]
    some_rows: bool = False  # the tally is of a sample of its rows


def exact_causal(
    sampler: Sampler, domain: Domain, variants: Variants, settings: Settings, cost: Cost
) -> CausalScore:
    """The causal score by Definition 3.7 itself; failed executions leave an interval."""
    joint = JointTally.of(variants, sampler.reading)
    if variants.assignments.binned:
        flips = _binned_flips(sampler, domain, variants, settings.confidence)
    else:
        flips = _table_flips(sampler, domain, variants, settings.confidence, joint)
    remembers = sampler.runner.remembers
    score = score_of_flips(flips, sampler, variants.assignments, settings, cost, known=remembers)
    return score if joint is None else joint.explain(score)


def score_of_flips(
    flips: Flips,
    sampler: Sampler,
    assignments: Assignments,
    settings: Settings,
    cost: Cost,
    *,
    stopped: Ending = Ending.EXHAUSTED,
    known: bool = False,
) -> CausalScore:
    """The explained causal score that flips amount to; `known` if every output is remembered."""
    early = stopped.is_early
    score = causal_score(
        flips.share,
        against=assignments.names,
        followed=assignments.followed_names,
        settings=settings,
        cost=cost,
        pool=flips.pool,
        tally=None if early else flips.tally,
        some_rows=flips.some_rows,
        method="exact",
        samples=flips.samples,
        stopped=stopped,
        unknown=flips.unknown,
        spelled=flips.spelled,
        notes=(ended_early(stopped, settings, flips.samples),) if early else (),
        **sampler.reading.details(),
    )
    return explained(score, flips.pool, sampler, flips.regions, known=known)


def _binned_flips(sampler: Sampler, domain: Domain, variants: Variants, confidence: float) -> Flips:
    """Those of a set with one binned characteristic."""
    assignments, reading = variants.assignments, sampler.reading
    pool = FlipPool(sampler.runner.schema, reading)
    tally = HarmTally.of(assignments, reading)
    low, high = binned_ends(domain, sampler.population, assignments, reading)
    unknown, seen = int(high > low), SeenRows()
    if sampler.runner.remembers:
        seen = read_rows(sampler, variants, pool, tally)
    regions = partial(sampled_regions, seen, assignments.schema, assignments.columns, confidence)
    share = Interval(rounded(low), rounded(low), rounded(high))
    size = len(domain.cells)
    return Flips(share, size, unknown, unknown, pool, tally, regions, some_rows=True)


def _table_flips(
    sampler: Sampler,
    domain: Domain,
    variants: Variants,
    confidence: float,
    joint: JointTally | None,
) -> Flips:
    """Those of a set without bins; `joint` counts them, too."""
    assignments, reading = variants.assignments, sampler.reading
    pool = FlipPool(sampler.runner.schema, reading)
    tally = HarmTally.of(assignments, reading)
    table = Table.of(domain, assignments, reading)
    ends = table.ends(domain, variants, reading)
    table.show_to(pool, variants, ends.states, sampler.seed)
    if tally is not None:
        tally.add(table.cells, table.weights)
        if joint is not None:
            _add_inputs(joint, domain, assignments, table)
    return Flips(
        share=Interval(rounded(ends.low), rounded(ends.low), rounded(ends.high)),
        samples=len(domain.cells),
        unknown=ends.unknown,
        spelled=int(reading.spelled_rows(table.cells).sum()),
        pool=pool,
        tally=tally,
        regions=partial(_table_regions, sampler, assignments, table, ends, tally, confidence),
    )


def _table_regions(
    sampler: Sampler,
    assignments: Assignments,
    table: Table,
    ends: TableEnds,
    tally: HarmTally | None,
    confidence: float,
) -> tuple[Region, ...]:
    """Where the flips are: of each assignment that loses by itself, or of all together."""
    reading, states = sampler.reading, ends.states
    known = np.flatnonzero(states != UNKNOWN)
    if reading.graded or ends.unknown > MOST_UNKNOWN * (states == FLIP).sum():
        return ()  # of degrees, none that counts everyone who is affected alike is the answer
    schema, columns = assignments.schema, assignments.columns
    order = np.random.default_rng(sampler.seed).permutation(len(known))
    codes, weights = table.rows.take(known).codes, table.weights[known]
    bits = losing_bits(table.cells, reading)

    def find(loser: int | None, own: float) -> tuple[Region, ...]:
        flips = states[known] == FLIP
        if loser is not None and bits is not None:
            flips = (bits[known] >> loser) & 1 == 1
        return known_regions(codes, flips, weights, schema, columns, own, order=order)

    losers = [] if tally is None or bits is None else tally.losers(FEWEST)
    return directed(losers, assignments.labels, find, confidence) or find(None, confidence)


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
        weights = summed(layout.rows, domain.weights, contexts)
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

    def show_to(
        self, pool: FlipPool, variants: Variants, states: NDArray[np.int8], seed: int
    ) -> None:
        """Let a pool see its rows, which have these states, in random order."""
        order = np.random.default_rng(seed).permutation(len(self.cells))
        rows, weights = self.rows.take(order), self.weights[order]
        pool.add_table(variants, rows, self.cells[order], states[order], weights)


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
    weights = summed(place, domain.weights, contexts * size)
    return shown.reshape(contexts, size), weights.reshape(contexts, size)


def _shown_by_input(
    domain: Domain, assignments: Assignments, column: int, size: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    base, cells = domain.occurring, domain.table(assignments, domain.cells)
    member = set_values(assignments)[:, assignments.columns.index(column)]
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
