"""The procedures of the 2017 paper, as printed: the baseline of every comparison."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from themis.engine.sampler import CELLS, Sampler
from themis.engine.variants import Rows, Variants
from themis.errors import Mistake, RequestError
from themis.inputs.assignments import Labels, set_name
from themis.results.notes import Ending, Note
from themis.results.parts import Group
from themis.scores.group import favourable_ends, group_stream
from themis.scores.group_tally import SeenCells, group_score
from themis.scores.question import Question, Scored
from themis.scores.tally import CausalTally
from themis.statistics.proportions import Interval, PaperRule
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import FLIP

NOT_CERTIFIED = Note.of("paper-rule")


def paper_causal(question: Question) -> Scored:
    """Algorithm 2 with its own stopping rule; executes exactly what it would one by one."""
    rule = PaperRule(question.settings.confidence, question.settings.error)
    variants = paper_variants(question)
    tally, stopped = CausalTally(question, variants), Ending.BUDGET

    while True:
        target = tally.count + rule.safe_steps(tally.apart, tally.count)
        with suppress(BudgetEndedError):
            for first, last in question.sampler.blocks(tally.count, target, variants.width):
                tally.add(*algorithm_2_rows(question.sampler, variants, first, last))
                question.tell(last, rule.max_samples)
        if tally.count < target:
            break
        if rule.stops(tally.apart, tally.count):
            stopped = Ending.ERROR_REACHED
            break
    count = tally.count
    interval = rule.interval(tally.apart, count) if count else Interval(0.0, 0.0, 1.0)
    how: Any = {"method": "sampled", "samples": count, "stopped": stopped}
    return Scored(tally.score(interval, (NOT_CERTIFIED,), **how), tally.pool)


def algorithm_2_rows(
    sampler: Sampler, variants: Variants, start: int, stop: int
) -> tuple[Rows, Cells]:
    """Lines 4 to 20 for several k₀: first k₀ itself, then its variants until one differs."""
    tables = sampler.tables
    reading = sampler.reading
    block = tables.unknown(variants, start, stop, reading)
    rows, cells = block.rows, block.cells
    each = np.arange(len(rows))
    own = variants.assignments.index_of(rows.codes)
    alive = np.ones(len(rows), dtype=bool)
    try:
        tables.run_cells(block, each, own)
        seen = reading.cells(cells[each, own])  # each row's output so far, unless it failed
        for place in range(variants.width):
            waiting = each[alive & (cells[:, place] == NOT_RUN)]
            for first in range(0, len(waiting), CELLS):
                part = waiting[first : first + CELLS]
                tables.run_cells(block, part, np.full(len(part), place))
            pairs = np.stack([seen[waiting], reading.cells(cells[waiting, place])], axis=1)
            states = reading.settled_states(pairs, np.zeros(len(pairs), dtype=np.int64))
            alive[waiting] = states != FLIP
            if not reading.graded:  # there, only the base input's own output is compared with
                seen[waiting] = np.where(pairs[:, 0] < 0, pairs[:, 1], pairs[:, 0])
            if not alive.any():
                break
    finally:
        tables.note("paper", block)
    return rows, block.outputs


def paper_group(question: Question) -> Scored:
    """Algorithm 1: each group on inputs of its own, with the paper's stopping rule."""
    rule = PaperRule(question.settings.confidence, question.settings.error)
    variants = paper_variants(question)
    groups: list[Group] = []
    opened = SeenCells(question.reading, variants.width)
    stopped = Ending.ERROR_REACHED

    def interval() -> Interval:
        rates = [each.rate for each in groups]
        spread = max(rates) - min(rates) if rates else 0.0
        return Interval(spread, max(0.0, spread - rule.error), min(1.0, spread + rule.error))

    for place in range(variants.width):
        group, finished = _paper_rate(question.sampler, variants, place, rule, opened)
        groups += [] if group is None else [group]
        if not finished:
            stopped = Ending.BUDGET
            break
        question.tell(place + 1, variants.width)
    known = interval()
    if not stopped.is_conclusive:
        known = Interval(known.score, 0.0, 1.0)
    samples = sum(each.samples for each in groups)
    score = group_score(
        question,
        tuple(groups),
        known,
        method="sampled",
        samples=samples,
        stopped=stopped,
        notes=(NOT_CERTIFIED,),
    )
    return Scored(score)


def _paper_rate(
    sampler: Sampler, variants: Variants, place: int, rule: PaperRule, opened: SeenCells
) -> tuple[Group | None, bool]:
    """Lines 3 to 19: one group's rate, and whether the budget let it finish."""
    stream = group_stream(sampler, variants, place)
    if stream is None:
        return None, True
    samples = count = 0
    while True:
        target = samples + rule.safe_steps(count, samples)
        with suppress(BudgetEndedError):
            for first, last in sampler.blocks(samples, target, 1):
                cells = sampler.run_singles(variants.assignments, stream.rows(first, last))
                opened.add(cells[:, None], np.arange(variants.width) == place)
                count += int(favourable_ends(sampler, cells, first, last)[0].sum())
                samples = last
        finished = samples == target
        if not finished or rule.stops(count, samples):
            break
    if not samples:
        return None, False
    interval = rule.interval(count, samples)
    group = Group(
        values=Labels(variants.assignments, variants.levels)[place],
        rate=interval.score,
        low=interval.low,
        high=interval.high,
        samples=samples,
    )
    return group, finished


def paper_variants(question: Question) -> Variants:
    """All assignments in the order of the values: the paper knows no cap."""
    assignments = question.assignments
    if assignments.count > 2**20:  # all of them are tried, so they must fit in memory
        problem = (
            f"the paper's procedure tries all {assignments.count:,} assignments of "
            f"{set_name(assignments.names)}"
        )
        remedy = 'use stopping = "certified", or bins'
        raise RequestError([Mistake("too-many-assignments", "stopping", problem, remedy)])
    return question.every
