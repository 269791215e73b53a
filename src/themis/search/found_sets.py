"""Found sets are explained: whom it happens to, who loses, and what only two together change.

What explains them is run together, so that few calls and few rounds are enough for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Variants
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Account, Region
from themis.scores.explanations.explaining import Unexplained, explained_together
from themis.scores.explanations.harm import WIDTH_LIMIT, Ends, HarmTally
from themis.scores.explanations.regions import sampled_regions
from themis.scores.question import ending_early
from themis.scores.tally import CausalTally, harm_fields, share_ends
from themis.search.estimates import Measured, flips_of
from themis.search.flips import FlipBook
from themis.subjects.decisions import NOT_RUN

HARM_EXECUTIONS = 300  # at most, on whole rows of a found set, for the direction of harm
HARM_SHARE = 0.1  # of what the run has executed so far, at most
HARM_ROWS = 8  # at least


class _Rows(NamedTuple):
    """What a few whole rows tell: who loses, and of two characteristics what only both change."""

    tally: CausalTally | None = None
    asked: int = 0  # executions, unless they were known


def explain_found(
    sampler: Sampler, book: FlipBook, sets: Sequence[tuple[Measured, CausalScore]]
) -> list[CausalScore]:
    """The scores with what explains them; nothing is run where one of them was interrupted."""
    cost = Cost(sampler.runner)
    may_run = all(score.stopped is not Ending.INTERRUPTED for _, score in sets)
    rows = [_Rows()] * len(sets)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early, book.looking():
        if may_run:
            rows = _whole_rows(sampler, [measured for measured, _ in sets])
    parts = [
        _shown(sampler, book, measured, score, tally)
        for (measured, score), (tally, _) in zip(sets, rows, strict=True)
    ]
    if not may_run:
        return [each.score for each in parts]
    if early.ending is Ending.INTERRUPTED:
        return [replace(each.score, stopped=early.ending) for each in parts]
    with book.looking():
        found = explained_together(parts, sampler)
    asked = [own + each.executions for (_, own), each in zip(rows, found, strict=True)]
    part = min(cost.spent.explanations / max(sum(asked), 1), 1.0)  # what a cache held is not run
    return [
        _finished(score, measured, tally, int(part * own))
        for (measured, _), (tally, _), (score, _), own in zip(sets, rows, found, asked, strict=True)
    ]


def _shown(
    sampler: Sampler,
    book: FlipBook,
    measured: Measured,
    score: CausalScore,
    rows: CausalTally | None,
) -> Unexplained:
    """A score with pairs as they were drawn, and who loses."""
    pool, question, seen = flips_of(sampler, book, measured.mask), measured.question, measured.seen
    harm = harm_fields(None if rows is None else rows.harm, _ends(measured))
    score = replace(score, witnesses=pool.choose(), **harm)
    schema, columns = sampler.population.schema, question.assignments.columns

    def regions() -> tuple[Region, ...]:
        fresh = sampler.unseen(seen.count)
        confidence = question.settings.confidence
        return sampled_regions(seen.rows, schema, columns, confidence, fresh=fresh)

    return Unexplained(score, pool, regions)


def _finished(
    score: CausalScore, measured: Measured, rows: CausalTally | None, executions: int
) -> CausalScore:
    """An explained score with what is only joint, and with all that it took."""
    account = (score.account or Account()) + Account(explanations=executions)
    score = replace(score, executions=account.total, account=account)
    if rows is None or rows.joint is None:
        return score
    return rows.joint.explain(score, _ends(measured))


def _ends(measured: Measured) -> Ends:
    return share_ends(measured.question.settings)


def _whole_rows(sampler: Sampler, sets: Sequence[Measured]) -> list[_Rows]:
    """What a few whole rows of each set tell, as far as the budget goes."""
    runner, reading = sampler.runner, sampler.reading
    allowed = min(HARM_SHARE * runner.asked, HARM_EXECUTIONS)
    left = 0.0 if runner.out_of_time else runner.executions_left
    planned: dict[int, tuple[CausalTally, int]] = {}
    for each in sets:
        assignments = each.question.assignments
        width = assignments.count
        count = min(max(int(allowed / width), HARM_ROWS), each.seen.count)
        count = int(min(count, left // width))
        if count > 0 and HarmTally.fits(assignments, reading):
            variants = Variants.of(assignments, limit=WIDTH_LIMIT, base=sampler.base)
            planned[each.mask] = CausalTally(each.question, variants), count
            left -= count * width
    tables = [sampler.tables.ask(t.variants, 0, n, reading) for t, n in planned.values()]
    new = [int((runner.known(asked.codes) == NOT_RUN).sum()) for _, asked in tables]
    with runner.counting_as("explanations"):
        answers = sampler.tables.run_asked([asked for _, asked in tables])
    found = dict[int, _Rows]()
    for mask, (rows, _), cells, count in zip(planned, tables, answers, new, strict=True):
        tally, _ = planned[mask]
        tally.add_whole(rows, cells)
        found[mask] = _Rows(tally, count)
    return [found.get(each.mask, _Rows()) for each in sets]
