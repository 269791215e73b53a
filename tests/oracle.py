"""The definitions by brute force, in plain Python: shares no code with the package.

A world is a list of characteristics with values, bins and weights, a set of valid inputs and a
decision for each. Everything is enumerated, so only tiny worlds are affordable. Scores of rows of
people, each with a weight, are given as their least and largest possible values, which are equal
where no execution FAILED.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Row = tuple[Any, ...]
Weighed = list[tuple[Row, float]]
Ends = tuple[float, float]  # at least, and at most
FAILED = object()


@dataclass(frozen=True)
class Variable:
    name: str
    values: tuple[Any, ...]
    bins: tuple[tuple[Any, ...], ...] | None = None  # members of each bin, in order
    weights: tuple[float, ...] | None = None

    def weight(self, value: Any) -> float:
        return 1.0 if self.weights is None else self.weights[self.values.index(value)]

    def levels(self) -> tuple[tuple[Any, ...], ...]:
        """Each level as its members of positive weight."""
        groups = self.bins or tuple((value,) for value in self.values)
        alive = (tuple(v for v in group if self.weight(v) > 0) for group in groups)
        return tuple(group for group in alive if group)


@dataclass(frozen=True)
class World:
    variables: tuple[Variable, ...]
    valid: Callable[[dict[str, Any]], bool]
    decide: Callable[[dict[str, Any]], Any]
    favourable: tuple[Any, ...] = (1, True)
    outputs: dict[Row, Any] = field(default_factory=dict)

    def row(self, values: Row) -> dict[str, Any]:
        return dict(zip((v.name for v in self.variables), values, strict=True))

    def inputs(self) -> Weighed:
        """Every input that occurs, with its probability."""
        found = []
        for values in itertools.product(*(v.values for v in self.variables)):
            weight = 1.0
            for variable, value in zip(self.variables, values, strict=True):
                weight *= variable.weight(value)
            if weight > 0 and self.valid(self.row(values)):
                found.append((values, weight))
        total = sum(weight for _, weight in found)
        return [(values, weight / total) for values, weight in found]

    @cached_property
    def occurring(self) -> set[tuple[str, Any]]:
        """Each value that occurs, with the name of its variable."""
        return {pair for values, _ in self.inputs() for pair in self.row(values).items()}

    def output(self, values: Row) -> Any:
        if values not in self.outputs:
            self.outputs[values] = self.decide(self.row(values))
        return self.outputs[values]

    def levels_of(self, row: Row, names: set[str]) -> tuple[int, ...]:
        """The level of each characteristic of the set: its value's place, or its bin's."""
        return tuple(
            next(i for i, level in enumerate(v.levels()) if value in level)
            for v, value in zip(self.variables, row, strict=True)
            if v.name in names
        )

    def context_of(self, row: Row, names: set[str]) -> Row:
        return tuple(x for v, x in zip(self.variables, row, strict=True) if v.name not in names)

    def group(self, names: set[str]) -> float:
        """Definitions 3.5 and 3.6: the spread of the rates over the assignments."""
        return group(self, self.inputs(), names)[0]

    def causal(self, names: set[str]) -> float:
        """Definition 3.7; a random member stands for each other bin, of those that occur."""
        return sum(weight * self.flip_chance(values, names) for values, weight in self.inputs())

    def flip_chance(self, own: Row, names: set[str]) -> float:
        chance = 0.0
        for options, probability in self._members(own, names):
            seen = {
                self.output(variant)
                for variant in itertools.product(*options)
                if self.valid(self.row(variant))
            }
            chance += probability * (len(seen) > 1)
        return chance

    def _members(self, own: Row, names: set[str]) -> list[tuple[list[tuple[Any, ...]], float]]:
        """Every choice of representatives: per variable its values to try, and the chance."""
        per_variable: list[list[tuple[tuple[Any, ...], float]]] = []
        for variable, value in zip(self.variables, own, strict=True):
            if variable.name not in names:
                per_variable.append([((value,), 1.0)])
                continue
            choices: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
            for level in variable.levels():
                alive = [member for member in level if (variable.name, member) in self.occurring]
                members = [value] if value in level else alive
                if not members:
                    continue  # nobody is in this bin
                total = sum(variable.weight(m) for m in members)
                choices = [
                    ((*chosen, m), p * variable.weight(m) / total)
                    for chosen, p in choices
                    for m in members
                ]
            per_variable.append(choices)
        combined = []
        for combination in itertools.product(*per_variable):
            probability = 1.0
            for _, p in combination:
                probability *= p
            combined.append(([options for options, _ in combination], probability))
        return combined


# Rows of people -------------------------------------------------------------------------------
def group(world: World, rows: Weighed, names: set[str]) -> Ends:
    """The spread of the groups' rates among the rows."""

    def ends(row: Row) -> Ends:
        output = world.output(row)
        good = output in world.favourable
        return float(good), float(good or output is FAILED)

    return _spread(world, rows, names, ends)


def means(world: World, rows: Weighed, names: set[str], number: Callable[[Row], Any]) -> Ends:
    """The spread of the groups' means of a number from 0 to 10."""

    def ends(row: Row) -> Ends:
        output = number(row)
        return (0.0, 1.0) if output is FAILED else (output / 10, output / 10)

    return _spread(world, rows, names, ends)


def _spread(world: World, rows: Weighed, names: set[str], ends: Callable[[Row], Ends]) -> Ends:
    groups: dict[Any, Weighed] = {}
    for row, weight in rows:
        groups.setdefault(world.levels_of(row, names), []).append((row, weight))
    if len(groups) == 1:  # whatever the rate is, there is no other
        return 0.0, 0.0
    lows, highs = zip(*(_mean(own, ends) for own in groups.values()), strict=True)
    return max(0.0, max(lows) - min(highs)), max(highs) - min(lows)


def _mean(rows: Weighed, ends: Callable[[Row], Ends]) -> Ends:
    total = sum(weight for _, weight in rows)
    each = [(ends(row), weight) for row, weight in rows]
    low, high = (sum(own[end] * weight for own, weight in each) / total for end in (0, 1))
    return low, high


def others_within(world: World, rows: Weighed, row: Row, names: set[str]) -> list[Row]:
    """The rows that differ from this one only in the set."""
    context, levels = world.context_of(row, names), world.levels_of(row, names)
    return [
        other
        for other, _ in rows
        if world.context_of(other, names) == context and world.levels_of(other, names) != levels
    ]


def variants_of(world: World, row: Row, names: set[str]) -> list[Row]:
    """All admissible assignments of a row; only for sets without bins."""
    options = [
        [value for level in v.levels() for value in level] if v.name in names else [x]
        for v, x in zip(world.variables, row, strict=True)
    ]
    return [each for each in itertools.product(*options) if world.valid(world.row(each))]


def causal_within(world: World, rows: Weighed, names: set[str]) -> Ends:
    """Definition 3.8 to the letter: another row that differs only in the set, another output."""

    def ends(row: Row) -> Ends:
        own = world.output(row)
        outputs = [world.output(other) for other in others_within(world, rows, row, names)]
        if own is not FAILED and any(o is not FAILED and o != own for o in outputs):
            return 1.0, 1.0
        return 0.0, float(bool(outputs) and (own is FAILED or FAILED in outputs))

    return _mean(rows, ends)


def causal_generated(world: World, rows: Weighed, names: set[str]) -> Ends:
    """All admissible assignments of each row."""

    def ends(row: Row) -> Ends:
        outputs = [world.output(variant) for variant in variants_of(world, row, names)]
        flips = len({output for output in outputs if output is not FAILED}) > 1
        return float(flips), float(flips or FAILED in outputs)

    return _mean(rows, ends)


def distance(
    world: World, rows: Weighed, names: set[str], number: Callable[[Row], Any], *, within: bool
) -> Ends:
    """The mean of the largest change of a number from 0 to 10, made up or among the rows."""

    def ends(row: Row) -> Ends:
        found = others_within(world, rows, row, names) if within else variants_of(world, row, names)
        own, outputs = number(row), [number(other) for other in found]
        known = [each for each in outputs if each is not FAILED and own is not FAILED]
        least = max((abs(each - own) / 10 for each in known), default=0.0)
        return least, 1.0 if len(known) < len(outputs) else least

    return _mean(rows, ends)
