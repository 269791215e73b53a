"""Found sets are explained: whom it happens to, who loses, and what only two together change.

What explains them is run together, so that few calls and few rounds are enough for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Variants
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Account, Region
from themis.scores.explanations.changes import WIDTH_LIMIT, Ends, HarmTally
from themis.scores.explanations.explaining import Unexplained, explained_together
from themis.scores.explanations.regions import sampled_regions
from themis.scores.question import ending_early
from themis.scores.tally import CausalTally, harm_fields, share_ends
from themis.search.estimates import Measured, flips_of
from themis.search.flips import FlipBook

HARM_EXECUTIONS = 300  # at most, on whole rows of a found set, for the direction of harm
HARM_SHARE = 0.1  # of what the run has executed so far, at most
HARM_ROWS = 8  # at least


def explain_found(
    sampler: Sampler, book: FlipBook, sets: Sequence[tuple[Measured, CausalScore]]
) -> list[CausalScore]:
    """The scores with what explains them; nothing is run where one of them was interrupted."""
    cost = Cost(sampler.runner)
    may_run = all(score.stopped is not Ending.INTERRUPTED for _, score in sets)
    rows: list[CausalTally | None] = [None] * len(sets)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early, book.looking():
        if may_run:
            rows = _whole_rows(sampler, [measured for measured, _ in sets])
    parts = [
        _shown(sampler, book, measured, score, tally)
        for (measured, score), tally in zip(sets, rows, strict=True)
    ]
    if not may_run:
        return [each.score for each in parts]
    if early.ending is Ending.INTERRUPTED:
        return [replace(each.score, stopped=early.ending) for each in parts]
    with book.looking():
        found = explained_together(parts, sampler)
    each = cost.spent.explanations // max(len(sets), 1)  # they were explained together
    return [
        _finished(score, measured, tally, each)
        for (measured, _), tally, score in zip(sets, rows, found, strict=True)
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

    def regions() -> tuple[Region, ...]:
        fresh = sampler.unseen(seen.count)
        confidence = question.settings.confidence
        return sampled_regions(seen.rows, question.assignments, None, confidence, fresh=fresh)

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


def _whole_rows(sampler: Sampler, sets: Sequence[Measured]) -> list[CausalTally | None]:
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
    with runner.counting_as("explanations"):
        answers = sampler.tables.run_asked([asked for _, asked in tables])
    for (tally, _), (rows, _), cells in zip(planned.values(), tables, answers, strict=True):
        tally.add_whole(rows, cells)
    return [planned[each.mask][0] if each.mask in planned else None for each in sets]
