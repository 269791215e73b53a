"""Where flips and failures are: a few conditions that most of them meet, checked afresh.

One half of the rows suggests regions, the other half says how much of the flips they hold. When to
stop a run depends on which rows flip, never on who they are; so, given which rows flip, the people
of the second half are independent draws that the suggestion has not seen, and a fixed-n interval
holds for them.

Of failures, inputs are looked at as they come, none left out and each once: people in random order,
or the first base inputs. On the second half the interval of the share of failed inputs that meet
the condition must lie above that of the share of all inputs: both ends with the confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import LEFT_SHARE, Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED
from themis.inputs.keys import first_places
from themis.inputs.schema import Schema
from themis.results.notes import Note
from themis.results.parts import Region
from themis.scores.explanations.suggestions import (
    Condition,
    evidence,
    meets_all,
    suggest_regions,
)
from themis.statistics.intervals import Flags, Floats, clopper_pearson
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun

ROWS = 20_000  # kept of a run
SUGGESTING = 2_000  # of them, at most
FEWEST = 20  # flips, half of which suggest
LEAST_LIFT = 1.5  # certainly; below, flips are everywhere
LEAST_COVERAGE = 0.1
NOBODY_KNOWS = -1  # who loses
MOST_UNKNOWN = 0.1  # rows that may be flips, for each that is one
FEWEST_FAILED = FEWEST // 2  # failed inputs, half of which suggest

Codes = NDArray[np.int64]


@dataclass
class SeenRows:
    """The first rows of a run: their inputs, which of them flip, and who loses in them."""

    _codes: list[NDArray[Any]] = field(default_factory=list)
    _states: list[NDArray[np.int8]] = field(default_factory=list)
    _losing: list[NDArray[np.int32]] = field(default_factory=list)  # by assignment a bit
    count: int = 0

    def add(
        self,
        codes: NDArray[Any],
        states: NDArray[np.int8],
        losing: NDArray[np.int32] | None = None,
    ) -> None:
        """Keep these rows, as far as there is room."""
        room = ROWS - self.count
        if room > 0:
            losing = np.full(len(states), NOBODY_KNOWS, np.int32) if losing is None else losing
            self._codes.append(np.array(codes[:room], order="F"))  # a copy: blocks are let go
            self._states.append(states[:room].copy())
            self._losing.append(losing[:room].copy())
            self.count += len(self._states[-1])

    def table(self, loser: int | None = None) -> tuple[NDArray[Any], Flags]:
        """The inputs of which it is known, and whether they flip; none if that is too few.

        With a `loser` whether this one loses: rows are run whole up to one of them, and those
        before that tell nothing have failed.
        """
        states, losing = np.concatenate(self._states), np.concatenate(self._losing)
        known, flips, asked = states != UNKNOWN, states == FLIP, len(states)
        if loser is not None:
            known = losing != NOBODY_KNOWS
            flips = known & (losing >> loser & 1 == 1)
            asked = int(np.flatnonzero(known).max(initial=-1)) + 1
        if int((~known[:asked]).sum()) > MOST_UNKNOWN * int(flips.sum()):
            known[:] = False
        return np.concatenate(self._codes)[known], flips[known]


def losing_bits(cells: Cells, reading: Reading) -> NDArray[np.int32] | None:
    """By row a bit for each assignment that loses there: another one gets the favourable output.

    None where there are too many assignments, or nothing is favourable. Rows must have been run
    whole; one that failed in part tells nothing.
    """
    width = cells.shape[1]
    # Sets of few assignments are told apart by who loses.
    if width > 16 or not reading.has_favourable:
        return None
    good = np.asarray(reading.labels.is_favourable(cells))
    loses = (cells >= 0) & ~good & good.any(axis=1, keepdims=True)
    bits: NDArray[np.int32] = (loses * (1 << np.arange(width))).sum(axis=1).astype(np.int32)
    bits[((cells == FAILED) | (cells == NOT_RUN)).any(axis=1)] = NOBODY_KNOWS
    return bits


def directed(
    losers: Sequence[int],
    labels: Callable[[int], dict[str, Value]],
    find: Callable[[int | None, float], tuple[Region, ...]],
    confidence: float,
) -> tuple[Region, ...]:
    """The regions of each direction: those in which one loses, for the first two that do.

    `find` gets a loser and the confidence of its part; all parts hold together. Where no direction
    has a region, those of all flips together, which it finds without a loser.
    """
    shown = losers[:2]
    own = 1.0 - (1.0 - confidence) / max(len(shown), 1)
    found = tuple(
        replace(region, loses=labels(loser)) for loser in shown for region in find(loser, own)
    )
    return found or find(None, confidence)


def sampled_regions(
    seen: SeenRows,
    assignments: Assignments,
    loser: int | None,
    confidence: float,
    *,
    fresh: NDArray[Any] | None = None,
) -> tuple[Region, ...]:
    """The regions that rows of a sample show; their coverages hold together with the confidence.

    A region whose flips are no more frequent than elsewhere is shown with a chance of at most
    1 − confidence. `fresh` are further inputs, not run, that tell how many people a region has.
    With a `loser` the flips are those in which this assignment loses.
    """
    codes, flips = seen.table(loser)
    if int(flips.sum()) < FEWEST:
        return ()
    first = np.arange(0, len(codes), 2)[:SUGGESTING]
    second = np.delete(np.arange(len(codes)), first)
    schema = assignments.schema
    found = suggest_regions(codes[first], flips[first], None, schema, assignments.columns)
    alpha = (1.0 - confidence) / max(len(found), 1)
    people = codes[second] if fresh is None or len(fresh) < len(codes) else fresh
    regions = []
    for conditions in (each.conditions for each in found):
        inside = meets_all(conditions, codes[second])[flips[second]]
        low, high = clopper_pearson(int(inside.sum()), len(inside), alpha / 2)
        residents = meets_all(conditions, people)
        least, most = clopper_pearson(int(residents.sum()), len(residents), alpha / 2)
        if low >= LEAST_LIFT * most and inside.mean() >= LEAST_COVERAGE:
            region = _region(conditions, schema, inside, (low, high), residents)
            regions.append(replace(region, share_low=least, share_high=most))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def known_regions(
    codes: NDArray[Any],
    flips: Flags,
    weights: Floats,
    assignments: Assignments,
    confidence: float,
    *,
    order: NDArray[np.int64],
) -> tuple[Region, ...]:
    """The regions of a population that is known whole: each context with its weight.

    Nothing is estimated, so ends and coverage are the same. A region is shown where flips put at
    random would hardly ever (1 − confidence) lie as close together in any such region. `order` is
    a random order of the contexts: of very many, the first ones suggest.
    """
    part, schema = order[: 2 * SUGGESTING], assignments.schema
    columns = assignments.columns
    found = suggest_regions(codes[part], flips[part], weights[part], schema, columns)
    total, all_flips = float(weights.sum()), float(weights[flips].sum())
    regions, left, charge = [], np.ones(len(codes), dtype=bool), -math.log(1.0 - confidence)
    for each in found:
        inside = meets_all(each.conditions, codes)
        charge += each.charge
        own, rest = int((flips & left).sum()), inside & left
        met = int((flips & rest).sum()) / max(own, 1)
        certain = own * evidence(met, rest.sum() / left.sum())
        coverage = float(weights[inside & flips].sum()) / all_flips
        share = float(weights[inside].sum()) / total
        left &= ~inside
        if certain >= charge and coverage >= max(LEAST_COVERAGE, LEAST_LIFT * share):
            ends = (round(coverage, 12), round(coverage, 12))
            region = _region(each.conditions, schema, inside[flips], ends, inside)
            lift = coverage / share if share else None
            regions.append(replace(region, coverage=coverage, share=share, lift=lift))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def _region(
    conditions: Sequence[Condition],
    schema: Schema,
    inside: Flags,
    ends: tuple[float, float],
    residents: Flags,
) -> Region:
    covered, share = float(inside.mean()), float(residents.mean())
    by_column = sorted(conditions, key=lambda each: each.column)
    return Region(
        conditions=tuple(each.text(schema) for each in by_column),
        coverage=covered,
        coverage_low=ends[0],
        coverage_high=ends[1],
        share=share,
        lift=covered / share if share else None,
        flips=len(inside),
        inside=int(inside.sum()),
        inputs=len(residents),
        residents=int(residents.sum()),
    )


def failed_inputs(
    sampler: Sampler, run: PeopleRun | None, confidence: float, *, least: int = 0
) -> Note | None:
    """How many inputs fail, and under which condition, if one is confirmed; None where none fail.

    Explaining it takes no more executions than were asked for so far, or `least`; of a subject
    outside of this process as many as other explanations. A condition that fewer than SHARED given
    people meet is not named, nor an error that fewer of them get.
    """
    codes, cells = _looked_at(sampler, run, least)
    failed = cells == FAILED
    heads = np.ones(len(codes)) if run is None else run.heads[: len(codes)]
    if not failed.any():
        return None
    schema = sampler.population.schema
    conditions = confirmed(codes, failed, sampler, confidence)
    inside = meets_all(conditions, codes)
    if not conditions or (run is not None and heads[inside].sum() < SHARED):
        return Note.of("inputs-fail", failed=int(failed.sum()), inputs=len(codes))
    return Note.of(
        "inputs-fail",
        failed=int(failed.sum()),
        inputs=len(codes),
        conditions=[each.text(schema) for each in sorted(conditions, key=lambda e: e.column)],
        inside=int((failed & inside).sum()),
        others=int((failed & ~inside).sum()),
        residents=int(inside.sum()),
        confidence=confidence,
        text=_common_text(sampler, codes[failed & inside], heads[failed & inside]),
    )


def confirmed(
    codes: Codes, failed: Flags, sampler: Sampler, confidence: float
) -> Sequence[Condition]:
    """The conditions that most failed inputs meet, and surely more of them than of all inputs.

    Where nothing tells which fail, some are given with a chance of at most 1 − confidence.
    """
    if failed.sum() < FEWEST_FAILED:
        return ()
    first = np.arange(0, len(codes), 2)[:SUGGESTING]
    second = np.delete(np.arange(len(codes)), first)
    found = suggest_regions(codes[first], failed[first], None, sampler.population.schema, ())
    if not found:
        return ()
    inside, own = meets_all(found[0].conditions, codes[second]), failed[second]
    alpha, met = (1.0 - confidence) / 2, int((inside & own).sum())
    low, _ = clopper_pearson(met, int(own.sum()), alpha)
    _, most = clopper_pearson(int(inside.sum()), len(inside), alpha)
    # A condition that fewer than half of the failed inputs meet explains little.
    is_sure = low > most and met >= 0.5 * own.sum()
    return found[0].conditions if is_sure else ()


def _looked_at(sampler: Sampler, run: PeopleRun | None, least: int) -> tuple[Codes, Cells]:
    """The first inputs that are known, or were run for this, without a gap; and their answers."""
    runner, most = sampler.runner, sampler.trials.allowance()
    if not runner.traits.external:
        left = runner.executions_left // LEFT_SHARE
        most = int(min(max(most, runner.asked, least), left, ROWS))
    elif runner.failures.total < FEWEST_FAILED:  # each call may be expensive
        most = 0
    most = 0 if runner.out_of_time else most
    if run is None:
        codes = sampler.base.rows(0, min(max(most, SUGGESTING), ROWS))
        codes = codes[first_places(sampler.population.schema.input_keys.of(codes))]
        cells = sampler.trials.known(codes)
    else:
        codes, cells = run.codes[:ROWS], run.known_answers()[:ROWS]
    missing = np.flatnonzero(cells == NOT_RUN)
    if len(missing) and most:
        with suppress(BudgetEndedError):
            cells[missing], _ = sampler.trials.run(codes[missing], most)
    gaps = np.flatnonzero(cells == NOT_RUN)
    end = int(gaps[0]) if len(gaps) else len(cells)
    return codes[:end], cells[:end]


def _common_text(sampler: Sampler, codes: Codes, heads: Floats) -> str | None:
    """The first line of what most of these inputs fail with; of people only what several share."""
    log, counts = sampler.runner.failures, Counter[str]()
    texts = log.lines_of(codes, sampler.population.schema)
    for text, people in zip(texts, heads.tolist(), strict=True):
        counts.update({text: int(people)} if text else {})
    (text, people), *_ = counts.most_common(1) or [("", 0)]
    return text if text and (people >= SHARED or not log.personal) else None
