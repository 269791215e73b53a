"""Found sets are explained: whom it happens to, who loses, and what only two together change.

What explains them is run together, so that few calls and few rounds are enough for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Rows, Variants
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Account, Region
from themis.scores.explanations.explaining import Unexplained, explained_together
from themis.scores.explanations.harm import WIDTH_LIMIT, Ends, HarmTally
from themis.scores.explanations.joint import JointTally
from themis.scores.explanations.regions import sampled_regions
from themis.scores.question import ending_early
from themis.scores.tally import harm_fields, share_ends
from themis.search.estimates import Measured, flips_of
from themis.search.flips import FlipBook
from themis.subjects.decisions import NOT_RUN, Cells

HARM_EXECUTIONS = 300  # at most, on whole rows of a found set, for the direction of harm
HARM_SHARE = 0.1  # of what the run has executed so far, at most
HARM_ROWS = 8  # at least


class _Tallies(NamedTuple):
    """Who loses, and of two characteristics what only both change: from the same few rows."""

    harm: HarmTally | None = None
    joint: JointTally | None = None
    asked: int = 0  # executions, unless they were known


def explain_found(
    sampler: Sampler, book: FlipBook, sets: Sequence[tuple[Measured, CausalScore]]
) -> list[CausalScore]:
    """The scores with what explains them; nothing is run where one of them was interrupted."""
    cost = Cost(sampler.runner)
    may_run = all(score.stopped is not Ending.INTERRUPTED for _, score in sets)
    tallies = [_Tallies()] * len(sets)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early, book.looking():
        if may_run:
            tallies = _tallies(sampler, [measured for measured, _ in sets])
    parts = [
        _shown(sampler, book, measured, score, tally.harm)
        for (measured, score), tally in zip(sets, tallies, strict=True)
    ]
    if not may_run:
        return [each.score for each in parts]
    if early.ending is Ending.INTERRUPTED:
        return [replace(each.score, stopped=early.ending) for each in parts]
    with book.looking():
        found = explained_together(parts, sampler)
    asked = [tally.asked + each.executions for tally, each in zip(tallies, found, strict=True)]
    part = min(cost.spent.explanations / max(sum(asked), 1), 1.0)  # what a cache held is not run
    return [
        _finished(score, measured, tally.joint, int(part * own))
        for (measured, _), tally, (score, _), own in zip(sets, tallies, found, asked, strict=True)
    ]


def _shown(
    sampler: Sampler, book: FlipBook, measured: Measured, score: CausalScore, harm: HarmTally | None
) -> Unexplained:
    """A score with pairs as they were drawn, and who loses."""
    pool, settings, seen = flips_of(sampler, book, measured.mask), measured.settings, measured.seen
    score = replace(score, witnesses=pool.choose(), **harm_fields(harm, _ends(measured)))
    schema, columns = sampler.population.schema, measured.assignments.columns

    def regions() -> tuple[Region, ...]:
        fresh = sampler.unseen(seen.count)
        return sampled_regions(seen.rows, schema, columns, settings.confidence, fresh=fresh)

    return Unexplained(score, pool, regions)


def _finished(
    score: CausalScore, measured: Measured, joint: JointTally | None, executions: int
) -> CausalScore:
    """An explained score with what is only joint, and with all that it took."""
    account = (score.account or Account()) + Account(explanations=executions)
    score = replace(score, executions=account.total, account=account)
    return score if joint is None else joint.explain(score, _ends(measured))


def _ends(measured: Measured) -> Ends:
    return share_ends(measured.settings)


def _tallies(sampler: Sampler, sets: Sequence[Measured]) -> list[_Tallies]:
    """What a few whole rows of each set tell, as far as the budget goes."""
    runner, reading = sampler.runner, sampler.reading
    allowed = min(HARM_SHARE * runner.asked, HARM_EXECUTIONS)
    left = 0.0 if runner.out_of_time else runner.executions_left
    planned: dict[int, tuple[Variants, int, int]] = {}  # and from which row to which
    for each in sets:
        width = each.assignments.count
        rows = min(max(int(allowed / width), HARM_ROWS), each.seen.count)
        rows = int(min(rows, left // width))
        if rows > 0 and HarmTally.fits(each.assignments, reading):
            variants = Variants.of(each.assignments, limit=WIDTH_LIMIT, base=sampler.base)
            planned[each.mask] = variants, 0, rows
            left -= rows * width
    tables = [sampler.tables.ask(*each, reading) for each in planned.values()]
    new = [int((runner.known(asked.codes) == NOT_RUN).sum()) for _, asked in tables]
    with runner.counting_as("explanations"):
        answers = sampler.tables.run_asked([asked for _, asked in tables])
    found = {
        mask: _counted(sampler, planned[mask][0], rows, cells, count)
        for mask, (rows, _), cells, count in zip(planned, tables, answers, new, strict=True)
    }
    return [found.get(each.mask, _Tallies()) for each in sets]


def _counted(
    sampler: Sampler, variants: Variants, rows: Rows, cells: Cells, asked: int
) -> _Tallies:
    harm = HarmTally(variants.assignments, sampler.reading)
    harm.add(cells)
    joint = JointTally.of(variants, sampler.reading)
    if joint is not None:
        joint.add(rows, cells)
    return _Tallies(harm, joint, asked)
