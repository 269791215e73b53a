"""The procedures of the 2017 paper, as printed: the baseline of every comparison."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from themis.engine.sampler import CELLS, Cost, Sampler
from themis.engine.variants import Rows, Variants, all_variants, mark_impossible, own_columns
from themis.errors import Mistake, RequestError
from themis.inputs.assignments import Assignments, set_name
from themis.results.model import CausalScore, GroupScore
from themis.results.notes import Ending, Note, ended_early
from themis.results.parts import Group
from themis.scores.accounts import common_fields
from themis.scores.explanations.witnesses import FlipPool
from themis.scores.group import favourable_ends, group_population, group_stream, labels_of
from themis.scores.group_answers import group_score
from themis.scores.spelling import with_spelling
from themis.scores.undecided import OpenCells
from themis.settings import Settings
from themis.statistics.proportions import Interval, PaperRule
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import FLIP

PAPER_ASSIGNMENTS = 2**20  # all of them are tried, so they must fit in memory

NOT_CERTIFIED = Note.of("paper-rule")


def paper_causal(sampler: Sampler, variants: Variants, settings: Settings) -> CausalScore:
    """Algorithm 2 with its own stopping rule; executes exactly what it would one by one."""
    cost = Cost(sampler.runner)
    rule = PaperRule(settings.confidence, settings.error)
    pool = FlipPool(sampler.runner.schema, sampler.reading)
    samples = flips = spelled = 0
    stopped = Ending.BUDGET
    while True:
        target = samples + rule.safe_steps(flips, samples)
        with suppress(BudgetEndedError):
            for first, last in sampler.blocks(samples, target, variants.width):
                rows, cells = algorithm_2_rows(sampler, variants, first, last)
                own = own_columns(variants, rows) if sampler.reading.graded else None
                states = sampler.reading.row_states(cells, own, rows.tolerances)
                pool.add_table(variants, rows, cells, states)
                flips += int((states == FLIP).sum())
                spelled += int(sampler.reading.spelled_rows(cells).sum())
                samples = last
                margin = rule.margin(flips, samples)
                ends = (max(0.0, flips / samples - margin), min(1.0, flips / samples + margin))
                sampler.tell(
                    "causal", variants.assignments, samples, rule.max_samples, partial(_pair, *ends)
                )
        if samples < target:
            break
        if rule.stops(flips, samples):
            stopped = Ending.ERROR_REACHED
            break
    interval = rule.interval(flips, samples) if samples else Interval(0.0, 0.0, 1.0)
    high = min(1.0, interval.high + spelled / max(samples, 1))
    early = [] if stopped.is_conclusive else [ended_early(stopped, settings, samples)]
    score = CausalScore(
        measure="causal",
        against=variants.assignments.names,
        followed=variants.assignments.followed_names,
        **common_fields(replace(interval, high=high), settings, cost),
        method="sampled",
        samples=samples,
        stopped=stopped,
        notes=(NOT_CERTIFIED, *early),
        witnesses=pool.choose(),
        **sampler.reading.details(),
    )
    return with_spelling(score, spelled, sampler.reading)


def algorithm_2_rows(
    sampler: Sampler, variants: Variants, start: int, stop: int
) -> tuple[Rows, Cells]:
    """Lines 4 to 20 for several k₀: first k₀ itself, then its variants until one differs."""
    tables = sampler.tables
    reading = sampler.reading
    rows = tables.rows(variants.assignments, start, stop, reading)
    cells = tables.empty(len(rows), variants.width)
    mark_impossible(sampler.runner.schema, variants, rows, cells)
    each = np.arange(len(rows))
    own = variants.assignments.index_of(rows.codes)
    alive = np.ones(len(rows), dtype=bool)
    try:
        tables.run_cells(variants, rows, cells, each, own)
        seen = reading.cells(cells[each, own])  # each row's output so far, unless it failed
        for place in range(variants.width):
            waiting = each[alive & (cells[:, place] == NOT_RUN)]
            for first in range(0, len(waiting), CELLS):
                part = waiting[first : first + CELLS]
                tables.run_cells(variants, rows, cells, part, np.full(len(part), place))
            pairs = np.stack([seen[waiting], reading.cells(cells[waiting, place])], axis=1)
            limits = None if rows.tolerances is None else rows.tolerances[waiting]
            states = reading.row_states(pairs, np.zeros(len(pairs), dtype=np.int64), limits)
            alive[waiting] = states != FLIP
            if not reading.graded:  # there, only the base input's own output is compared with
                seen[waiting] = np.where(pairs[:, 0] < 0, pairs[:, 1], pairs[:, 0])
            if not alive.any():
                break
    finally:
        tables.note("paper", variants, rows, start, cells)
    return rows, reading.cells(cells)


def paper_group(sampler: Sampler, variants: Variants, settings: Settings) -> GroupScore:
    """Algorithm 1: each group on inputs of its own, with the paper's stopping rule."""
    cost = Cost(sampler.runner)
    rule = PaperRule(settings.confidence, settings.error)
    groups: list[Group] = []
    opened = OpenCells(sampler.reading, variants.width)
    least, most = math.inf, -math.inf
    stopped = Ending.ERROR_REACHED
    for place in range(variants.width):
        group, finished = _paper_rate(sampler, variants, place, rule, opened)
        if group is not None:
            groups.append(group)
            least, most = min(least, group.rate), max(most, group.rate)
        if not finished:
            stopped = Ending.BUDGET
            break
        spread = max(0.0, most - least)
        ends = (max(0.0, spread - rule.error), min(1.0, spread + rule.error))
        sampler.tell(
            "group", variants.assignments, place + 1, variants.width, partial(_pair, *ends)
        )
    spread = max(0.0, most - least)
    interval = Interval(spread, max(0.0, spread - rule.error), min(1.0, spread + rule.error))
    if not stopped.is_conclusive or opened.spelled:
        interval = Interval(spread, 0.0, 1.0)
    samples = sum(each.samples for each in groups)
    early = [] if stopped.is_conclusive else [ended_early(stopped, settings, samples)]
    return group_score(
        tuple(groups),
        interval,
        settings=settings,
        cost=cost,
        against=variants.assignments.names,
        samples=samples,
        stopped=stopped,
        reading=sampler.reading,
        spelled=opened.spelled,
        notes=(NOT_CERTIFIED, *early),
    )


def _paper_rate(
    sampler: Sampler, variants: Variants, place: int, rule: PaperRule, opened: OpenCells
) -> tuple[Group | None, bool]:
    """Lines 3 to 19: one group's rate, and whether the budget let it finish."""
    population = group_population(sampler.population, variants, place)
    if population is None:
        return None, True
    stream = group_stream(sampler, variants, place, population)
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
        values=labels_of(variants, place),
        rate=interval.score,
        low=interval.low,
        high=interval.high,
        samples=samples,
    )
    return group, finished


def paper_variants(assignments: Assignments) -> Variants:
    """All assignments in the order of the values: the paper knows no cap."""
    if assignments.count > PAPER_ASSIGNMENTS:
        raise RequestError(
            [
                Mistake(
                    "too-many-assignments",
                    "stopping",
                    f"the paper's procedure tries all {assignments.count:,} assignments of "
                    f"{set_name(assignments.names)}",
                    'use stopping = "certified", or bins',
                )
            ]
        )
    return all_variants(assignments)


def _pair(low: float, high: float) -> tuple[float, float]:
    return low, high
