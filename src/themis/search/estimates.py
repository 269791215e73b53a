"""Scores of the sets that a search found, from the flips that it knows already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Variants
from themis.inputs.assignments import Assignments
from themis.results.model import CausalScore
from themis.scores.causal import causal_score
from themis.scores.harm import WIDTH_LIMIT, HarmTally
from themis.scores.regions import SeenRows, sampled_regions
from themis.scores.witnesses import POOL, FlipPool
from themis.scores.witnesses_explanations import explained
from themis.search.base_inputs import BudgetEndedError
from themis.search.estimates_spot_estimates import SpotRule, spot_estimate
from themis.search.flips import FlipBook
from themis.search.flips_flip_cells import UNTRIED
from themis.search.lattice import members
from themis.search.tried_inputs import TriedInputs
from themis.settings import Settings
from themis.statistics.proportions import Interval, ProportionRule, anytime_interval
from themis.subjects.readings import FLIP, UNKNOWN

SPOT_COST = 256  # sets whose proofs take fewer executions prove every input
HARM_EXECUTIONS = 300  # at most, on whole rows of a found set, for the direction of harm
HARM_SHARE = 0.1  # of what the run has executed so far, at most
HARM_ROWS = 8  # at least


@dataclass
class _Found:
    """What is known of the flips under a found set."""

    interval: Interval | None = None  # once it is as narrow as asked
    seen: SeenRows = field(default_factory=SeenRows)
    count: int = 0
    flips: int = 0
    unknown: int = 0  # inputs of which it can't be known whether they flip
    opened: int = 0  # inputs that were tried, but not all their variants

    def add(self, codes: NDArray[Any], states: NDArray[np.int8]) -> None:
        """Count further inputs."""
        self.count += len(states)
        self.flips += int((states == FLIP).sum())
        self.unknown += int((states == UNKNOWN).sum())
        self.opened += int((states == UNTRIED).sum())
        self.seen.add(codes, np.where(states == UNTRIED, UNKNOWN, states).astype(np.int8))


def estimate_found(
    sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> CausalScore | None:
    """The causal score of a found set to ± error; rows that the search settled cost nothing.

    The interval holds with the stated confidence for this set by itself. None when the budget
    ends before there is anything to say.
    """
    cost = Cost(sampler.runner)
    columns = tuple(book.columns[place] for place in members(mask))
    assignments = Assignments(sampler.population.schema, columns)
    found, tally = _Found(), None
    stopped = "budget"
    dear = book.is_exhaustive(mask) and book.proof_cost(mask) >= SPOT_COST
    try:
        (_by_spot_proofs if dear else _by_all_proofs)(found, sampler, book, mask, settings)
        stopped = "error reached"  # or as precisely as rows that can't be settled allow
        tally = _tally(sampler, assignments, found.count)
    except BudgetEndedError:
        pass
    except KeyboardInterrupt:
        if not sampler.keep_on_interrupt:
            raise
        stopped = "interrupted"
    count, unknown = found.count, found.unknown
    if not count:
        return None
    interval = found.interval
    if interval is None:
        most = found.flips + unknown + found.opened
        interval = anytime_interval(found.flips, most, count, settings.confidence)
    pool = FlipPool(sampler.runner.schema, sampler.reading)
    first, second, outputs = book.pairs(mask, POOL)
    if len(first):
        pool.add_pairs(first, second, outputs)
    score = causal_score(
        interval, against=assignments.names, settings=settings, stopped=stopped, cost=cost,
        samples=count, unknown=unknown, lower_bound=unknown > 0 and not book.is_exhaustive(mask),
        pool=pool, tally=tally, notes=(), **sampler.reading.details(),
    )  # fmt: skip
    schema, fresh = sampler.population.schema, sampler.unseen(count)
    return explained(
        score,
        pool,
        sampler,
        lambda: sampled_regions(found.seen, schema, columns, settings.confidence, fresh=fresh),
    )


def _by_all_proofs(
    found: _Found, sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> None:
    """Settle every input, until the share of those that flip is known well enough."""
    rule = ProportionRule(settings.confidence, settings.error)
    for target in rule.looks():
        start = found.count
        states = book.states(mask, start, target)
        found.add(sampler.base.rows(start, target), states)
        if not found.unknown and rule.done(found.flips, target):
            found.interval = rule.interval(found.flips, target)
            return


def _by_spot_proofs(
    found: _Found, sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> None:
    """Try more inputs, and settle a random part of those that are open."""
    inputs = TriedInputs(book, mask)
    try:
        found.interval = spot_estimate(inputs, SpotRule(settings.confidence, settings.error))
    finally:
        found.add(sampler.base.rows(0, len(inputs.states)), inputs.states)


def _tally(sampler: Sampler, assignments: Assignments, most: int) -> HarmTally | None:
    if not HarmTally.fits(assignments, sampler.reading):
        return None
    tally = HarmTally(assignments, sampler.reading)
    variants = Variants.of(assignments, limit=WIDTH_LIMIT, base=sampler.base)
    allowed = min(HARM_SHARE * sampler.runner.asked, HARM_EXECUTIONS)
    rows = min(max(int(allowed / assignments.count), HARM_ROWS), most)
    for first, last in sampler.blocks(0, rows, assignments.count):
        _, cells = sampler.tables.fill(variants, first, last, reading=sampler.reading)
        tally.add(cells)
    return tally
