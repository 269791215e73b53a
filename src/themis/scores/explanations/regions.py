"""Where the flips are: a few conditions on the context that most flips meet, checked afresh.

One half of the rows suggests regions, the other half says how much of the flips they hold. When to
stop a run depends on which rows flip, never on who they are; so, given which rows flip, the people
of the second half are independent draws that the suggestion has not seen, and a fixed-n interval
holds for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.results.parts import Region
from themis.scores.explanations.suggestions import (
    Condition,
    evidence,
    meets_all,
    suggest_regions,
)
from themis.statistics.intervals import Flags, Floats, clopper_pearson
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading

ROWS = 20_000  # kept of a run
SUGGESTING = 2_000  # of them, at most
FEWEST = 20  # flips, half of which suggest
LEAST_LIFT = 1.5  # certainly; below, flips are everywhere
LEAST_COVERAGE = 0.1
NOBODY_KNOWS = -1  # who loses
MOST_UNKNOWN = 0.1  # rows that may be flips, for each that is one


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
    find: Callable[[int, float], tuple[Region, ...]],
    confidence: float,
) -> tuple[Region, ...]:
    """The regions of each direction: those in which one loses, for the first two that do.

    `find` gets a loser and the confidence of its part; all parts hold together.
    """
    shown = losers[:2]
    own = 1.0 - (1.0 - confidence) / max(len(shown), 1)
    return tuple(
        replace(region, loses=labels(loser)) for loser in shown for region in find(loser, own)
    )


def sampled_regions(
    seen: SeenRows,
    schema: Schema,
    against: Sequence[int],
    confidence: float,
    *,
    fresh: NDArray[Any] | None = None,
    loser: int | None = None,
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
    found = suggest_regions(codes[first], flips[first], None, schema, against)
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
