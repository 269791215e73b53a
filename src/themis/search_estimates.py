"""Scores of the sets that a search found, from the flips that it knows already."""

from __future__ import annotations

from themis.causal import causal_score
from themis.estimation import ProportionRule, anytime_interval
from themis.explanations import explained
from themis.flips import BudgetEndedError, FlipBook
from themis.harm import WIDTH_LIMIT, HarmTally
from themis.inputs import Assignments
from themis.lattice import members
from themis.readings import FLIP, UNKNOWN
from themis.regions import SeenRows, sampled_regions
from themis.results import CausalScore
from themis.sampling import Cost, Sampler
from themis.settings import Settings
from themis.tables import Variants
from themis.witnesses import POOL, FlipPool

HARM_EXECUTIONS = 600  # at most, on whole rows of a found set, for the direction of harm
HARM_SHARE = 0.1  # of what the run has executed so far, at most
HARM_ROWS = 8  # at least


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
    rule = ProportionRule(settings.confidence, settings.error)
    flips = unknown = count = 0
    seen = SeenRows()
    stopped = "budget"
    try:
        for target in rule.looks():
            states = book.states(mask, count, target)
            seen.add(sampler.base.rows(count, target), states)
            flips += int((states == FLIP).sum())
            unknown += int((states == UNKNOWN).sum())
            count = target
            if not unknown and rule.done(flips, count):
                stopped = "error reached"
                break
        tally = _tally(sampler, assignments, rule.first_look)
    except BudgetEndedError:
        tally = None
    except KeyboardInterrupt:
        if not sampler.keep_on_interrupt:
            raise
        tally, stopped = None, "interrupted"
    if not count:
        return None
    if unknown and count == rule.max_samples:
        stopped = "error reached"  # as precisely as rows that can't be settled allow
    if stopped == "error reached" and not unknown:
        interval = rule.interval(flips, count)
    else:
        interval = anytime_interval(flips, flips + unknown, count, settings.confidence)
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
        lambda: sampled_regions(seen, schema, columns, settings.confidence, fresh=fresh),
    )


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
