"""Where do the flips live? A few conditions on the context that most flips meet, checked afresh.

One half of the rows suggests regions, the other half says how much of the flips they hold. When to
stop a run depends on which rows flip, never on who they are; so, given which rows flip, the people
of the second half are independent draws that the suggestion has not seen, and a fixed-n interval
holds for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.engine.sampler_trials import LEFT_SHARE
from themis.inputs.schema import Schema
from themis.results.model import Region
from themis.scores.regions_conditions import Condition, Floats, evidence, meets_all
from themis.scores.regions_suggestions import suggest_regions
from themis.statistics.intervals import clopper_pearson
from themis.subjects.readings import FLIP, UNKNOWN

ROWS = 20_000  # kept of a run
SUGGESTING = 2_000  # of them, at most
FEWEST = 20  # flips, half of which suggest
MORE_FLIPS = 3 * FEWEST  # wanted of a subject that takes whole batches
MORE_TIMES = 4  # as many rows as were sampled, at most
MORE_CELLS = 2**15
LEAST_LIFT = 1.5  # certainly; below, flips are everywhere
LEAST_COVERAGE = 0.1
MOST_UNKNOWN = 0.1  # rows that may be flips, for each that is one


# Rows from one number to another, run until they flip: their inputs, and which flip.
Run = Callable[[int, int], tuple[NDArray[Any], NDArray[np.int8]]]


@dataclass
class SeenRows:
    """The first rows of a run: their inputs, and which of them flip."""

    _codes: list[NDArray[Any]] = field(default_factory=list)
    _states: list[NDArray[np.int8]] = field(default_factory=list)
    count: int = 0

    def add(self, codes: NDArray[Any], states: NDArray[np.int8]) -> None:
        """Keep these rows, as far as there is room."""
        room = ROWS - self.count
        if room > 0:
            self._codes.append(np.array(codes[:room], order="F"))  # a copy: blocks are let go
            self._states.append(states[:room].copy())
            self.count += len(self._states[-1])

    def look_further(self, runner: Runner, run: Run, *, width: int, limit: int) -> None:
        """Run further rows where there are flips, but few, and a subject takes whole batches.

        They explain the score and are no part of it.
        """
        if runner.is_external or not runner.subject.vectorised or not self.flips:
            return
        sampled = self.count
        cells = int(min(MORE_CELLS, runner.executions_left // LEFT_SHARE))
        last = min(sampled + min(cells // width, MORE_TIMES * sampled), limit, ROWS)
        with runner.apart():
            while self.count < last and self.flips < MORE_FLIPS and not runner.out_of_time:
                self.add(*run(self.count, min(self.count + sampled, last)))

    @property
    def flips(self) -> int:
        """How many of them flip."""
        return sum(int((each == FLIP).sum()) for each in self._states)

    def table(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inputs of which it is known, and whether they flip; none if that is too few."""
        states = np.concatenate(self._states)
        known = states != UNKNOWN
        if int((~known).sum()) > MOST_UNKNOWN * self.flips:
            known[:] = False
        return np.concatenate(self._codes)[known], (states == FLIP)[known]


def sampled_regions(
    seen: SeenRows,
    schema: Schema,
    against: Sequence[int],
    confidence: float,
    *,
    fresh: NDArray[Any] | None = None,
    finite: bool = False,
) -> tuple[Region, ...]:
    """The regions that rows of a sample show; their coverages hold together with the confidence.

    A region whose flips are no more frequent than elsewhere is shown with a chance of at most
    1 − confidence. `fresh` are further inputs, not run, that tell how many people a region has.
    With `finite` the rows were drawn without replacement.
    """
    if seen.flips < FEWEST:
        return ()
    codes, flips = seen.table()
    first = np.arange(0, len(codes), 2)[:SUGGESTING]
    second = np.delete(np.arange(len(codes)), first)
    found = suggest_regions(codes[first], flips[first], None, schema, against)
    alpha = (1.0 - confidence) / max(len(found), 1)
    people = codes[second] if fresh is None or len(fresh) < len(codes) else fresh
    regions = []
    for conditions in (each.conditions for each in found):
        inside = meets_all(conditions, codes[second])[flips[second]]
        low, high = clopper_pearson(int(inside.sum()), len(inside), alpha / 2)
        if finite:
            seen_before = meets_all(conditions, codes[first])[flips[first]]
            low, high = _with_those_before(low, high, seen_before, len(inside))
        residents = meets_all(conditions, people)
        _, most = clopper_pearson(int(residents.sum()), len(residents), alpha / 2)
        if low >= LEAST_LIFT * most and inside.mean() >= LEAST_COVERAGE:
            share = float(residents.mean())
            regions.append(_region(conditions, schema, inside, (low, high), share))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def known_regions(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weights: Floats,
    schema: Schema,
    against: Sequence[int],
    confidence: float,
    *,
    order: NDArray[np.int64],
) -> tuple[Region, ...]:
    """The regions of a population that is known whole: each context with its weight.

    Nothing is estimated, so ends and coverage are the same. A region is shown where flips put at
    random would hardly ever (1 − confidence) lie as close together in any such region. `order` is
    a random order of the contexts: of very many, the first ones suggest.
    """
    part = order[: 2 * SUGGESTING]
    found = suggest_regions(codes[part], flips[part], weights[part], schema, against)
    total, all_flips = float(weights.sum()), float(weights[flips].sum())
    regions, left, charge = [], np.ones(len(codes), dtype=bool), -math.log(1.0 - confidence)
    for each in found:
        inside = meets_all(each.conditions, codes)
        charge += each.charge
        own, rest = int((flips & left).sum()), inside & left
        certain = evidence(own, int((flips & rest).sum()) / max(own, 1), rest.sum() / left.sum())
        coverage = float(weights[inside & flips].sum()) / all_flips
        share = float(weights[inside].sum()) / total
        left &= ~inside
        if certain >= charge and coverage >= max(LEAST_COVERAGE, LEAST_LIFT * share):
            ends = (round(coverage, 12), round(coverage, 12))
            regions.append(_region(each.conditions, schema, inside[flips], ends, share, coverage))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def _with_those_before(
    low: float, high: float, before: NDArray[np.bool_], others: int
) -> tuple[float, float]:
    """Ends for all flips of a finite population, of which some suggested the region.

    Those are at most this share of all flips, and what holds for the others is between the ends.
    """
    most = len(before) / (len(before) + others)
    known = float(before.mean())
    return min(low, most * known + (1 - most) * low), max(high, most * known + (1 - most) * high)


def _region(
    conditions: Sequence[Condition],
    schema: Schema,
    inside: NDArray[np.bool_],
    ends: tuple[float, float],
    share: float,
    coverage: float | None = None,
) -> Region:
    covered = float(inside.mean()) if coverage is None else coverage
    by_column = sorted(conditions, key=lambda each: each.column)
    return Region(
        conditions=tuple(each.text(schema) for each in by_column),
        coverage=covered,
        coverage_low=ends[0],
        coverage_high=ends[1],
        share=share,
        lift=covered / share if share else math.inf,
        flips=len(inside),
    )
