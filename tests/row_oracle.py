"""Apparent scores by brute force, in plain Python: shares no code with the package.

Rows are tuples of values with a weight each; a failed execution is the output FAILED. Every score
is given as its least and largest possible value, which are equal where nothing failed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tests.oracle import Row, World

FAILED = object()
Weighed = list[tuple[Row, float]]


def levels_of(world: World, row: Row, names: set[str]) -> tuple[int, ...]:
    """The level of each characteristic of the set: its value's place, or its bin's."""
    return tuple(
        next(i for i, level in enumerate(v.levels()) if value in level)
        for v, value in zip(world.variables, row, strict=True)
        if v.name in names
    )


def context_of(world: World, row: Row, names: set[str]) -> Row:
    return tuple(x for v, x in zip(world.variables, row, strict=True) if v.name not in names)


def group(world: World, rows: Weighed, names: set[str]) -> tuple[float, float]:
    """The spread of the groups' rates among the rows, at least and at most."""
    low: dict[Any, float] = {}
    high: dict[Any, float] = {}
    total: dict[Any, float] = {}
    for row, weight in rows:
        key, output = levels_of(world, row, names), world.output(row)
        good = output in world.favourable
        total[key] = total.get(key, 0.0) + weight
        low[key] = low.get(key, 0.0) + weight * good
        high[key] = high.get(key, 0.0) + weight * (good or output is FAILED)
    if len(total) == 1:  # whatever the rate is, there is no other
        return 0.0, 0.0
    lows = [low[key] / total[key] for key in total]
    highs = [high[key] / total[key] for key in total]
    return max(0.0, max(lows) - min(highs)), max(highs) - min(lows)


def others_within(world: World, rows: Weighed, row: Row, names: set[str]) -> list[Row]:
    """The rows that differ from this one only in the set."""
    context, levels = context_of(world, row, names), levels_of(world, row, names)
    return [
        other
        for other, _ in rows
        if context_of(world, other, names) == context and levels_of(world, other, names) != levels
    ]


def variants_of(world: World, row: Row, names: set[str]) -> list[Row]:
    """All admissible assignments of a row; only for sets without bins."""
    options = [
        [value for level in v.levels() for value in level] if v.name in names else [x]
        for v, x in zip(world.variables, row, strict=True)
    ]
    return [each for each in itertools.product(*options) if world.valid(world.row(each))]


def causal_within(world: World, rows: Weighed, names: set[str]) -> tuple[float, float]:
    """Definition 3.8 to the letter: another row that differs only in the set, another output."""
    flips = unknown = 0.0
    for row, weight in rows:
        own = world.output(row)
        outputs = [world.output(other) for other in others_within(world, rows, row, names)]
        if own is not FAILED and any(o is not FAILED and o != own for o in outputs):
            flips += weight
        elif outputs and (own is FAILED or FAILED in outputs):
            unknown += weight
    total = sum(weight for _, weight in rows)
    return flips / total, (flips + unknown) / total


def causal_generated(world: World, rows: Weighed, names: set[str]) -> tuple[float, float]:
    """All admissible assignments of each row."""
    flips = unknown = 0.0
    for row, weight in rows:
        outputs = [world.output(variant) for variant in variants_of(world, row, names)]
        if len({output for output in outputs if output is not FAILED}) > 1:
            flips += weight
        elif FAILED in outputs:
            unknown += weight
    total = sum(weight for _, weight in rows)
    return flips / total, (flips + unknown) / total


def distance(
    world: World, rows: Weighed, names: set[str], number: Callable[[Row], Any], *, within: bool
) -> tuple[float, float]:
    """The mean of the largest change of a number from 0 to 10, made up or among the rows."""
    low = high = 0.0
    for row, weight in rows:
        others = (
            others_within(world, rows, row, names) if within else variants_of(world, row, names)
        )
        own = number(row)
        outputs = [number(other) for other in others]
        known = [each for each in outputs if each is not FAILED]
        least = 0.0
        if own is not FAILED:
            least = max((abs(each - own) / 10 for each in known), default=0.0)
        unclear = outputs and (own is FAILED or len(known) < len(outputs))
        low += weight * least
        high += weight * (1.0 if unclear else least)
    total = sum(weight for _, weight in rows)
    return low / total, high / total


def means(
    world: World, rows: Weighed, names: set[str], number: Callable[[Row], Any]
) -> tuple[float, float]:
    """The spread of the groups' means of a number from 0 to 10, at least and at most."""
    ends: dict[Any, list[float]] = {}
    for row, weight in rows:
        sums = ends.setdefault(levels_of(world, row, names), [0.0, 0.0, 0.0])
        output = number(row)
        sums[0] += weight * (0.0 if output is FAILED else output / 10)
        sums[1] += weight * (1.0 if output is FAILED else output / 10)
        sums[2] += weight
    if len(ends) == 1:
        return 0.0, 0.0
    lows = [low / total for low, _, total in ends.values()]
    highs = [high / total for _, high, total in ends.values()]
    return max(0.0, max(lows) - min(highs)), max(highs) - min(lows)
