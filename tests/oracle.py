"""The definitions by brute force, in plain Python: shares no code with the package.

A world is a list of characteristics with values, bins and weights, a set of valid inputs and a
decision for each. Everything is enumerated, so only tiny worlds are affordable.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Row = tuple[Any, ...]


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

    def inputs(self) -> list[tuple[Row, float]]:
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

    def group(self, names: set[str]) -> float:
        """Definitions 3.5 and 3.6: the spread of the rates over the assignments."""
        good: dict[Any, float] = {}
        total: dict[Any, float] = {}
        for values, weight in self.inputs():
            key = tuple(
                next(i for i, level in enumerate(v.levels()) if value in level)
                for v, value in zip(self.variables, values, strict=True)
                if v.name in names
            )
            total[key] = total.get(key, 0.0) + weight
            good[key] = good.get(key, 0.0) + weight * (self.output(values) in self.favourable)
        rates = [good[key] / total[key] for key in total]
        return max(rates) - min(rates)

    def causal(self, names: set[str]) -> float:
        """Definition 3.7; a random member stands for each other bin, of those that occur."""
        return sum(weight * self._flip_chance(values, names) for values, weight in self.inputs())

    def _flip_chance(self, own: Row, names: set[str]) -> float:
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
