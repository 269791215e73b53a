"""Tiny worlds with missing values, and their scores by brute force, sharing no code with Themis.

"Missing" belongs to the context: no counterfactual gives or takes a value, unless the
characteristic says that it may. Groups are of those who have the values, unless it does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import themis

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    name: str
    values: tuple[Any, ...]
    weights: tuple[float, ...]
    bins: tuple[int, ...] = ()  # the first value of each bin but the lowest
    missing: float = 0.0
    counterfactual: bool = False

    def chances(self) -> Iterator[tuple[Any, float]]:
        for value, weight in zip(self.values, self.weights, strict=True):
            if weight:
                yield value, (1 - self.missing) * weight / sum(self.weights)
        if self.missing:
            yield None, self.missing

    def level(self, value: Any) -> Any:
        """What a value counts as in a set: itself, its bin, or nothing."""
        if value is None or not self.bins:
            return value
        return sum(value >= edge for edge in self.bins)

    def spec(self) -> themis.Values | themis.Integers:
        even = len(set(self.weights)) == 1
        options: dict[str, Any] = {"weights": None if even else self.weights}
        if self.missing:
            options["missing"] = self.missing
            options["missing_as_counterfactual"] = self.counterfactual
        if isinstance(self.values[0], str):
            return themis.Values(self.values, **options)
        bins = list(self.bins) or None
        return themis.Integers(self.values[0], self.values[-1], bins=bins, **options)


Rule = Callable[[dict[str, Any]], bool | None]  # None: nobody knows


@dataclass(frozen=True)
class World:
    columns: tuple[Column, ...]
    salt: int
    constraint: tuple[str, Rule] | None = None

    @property
    def schema(self) -> themis.Schema:
        schema = themis.Schema({each.name: each.spec() for each in self.columns})
        return schema if self.constraint is None else schema.where(self.constraint[0])

    def decide(self, row: dict[str, Any]) -> int:
        return random.Random(f"{self.salt} {list(row.values())!r}").choice((0, 0, 1))

    def named(self, row: Row) -> dict[str, Any]:
        return dict(zip((each.name for each in self.columns), row, strict=True))

    @cached_property
    def _outputs(self) -> dict[Row, int]:
        return {}

    def output(self, row: Row) -> int:
        if row not in self._outputs:
            self._outputs[row] = self.decide(self.named(row))
        return self._outputs[row]

    def is_valid(self, row: Row) -> bool:
        return self.constraint is None or self.constraint[1](self.named(row)) is not False

    def inputs(self) -> list[tuple[Row, float]]:
        """Every input that occurs, with its probability."""
        return self._inputs

    @cached_property
    def _inputs(self) -> list[tuple[Row, float]]:
        found = []
        for pairs in itertools.product(*(each.chances() for each in self.columns)):
            row, weight = tuple(value for value, _ in pairs), 1.0
            for _, chance in pairs:
                weight *= chance
            if self.is_valid(row):
                found.append((row, weight))
        total = sum(weight for _, weight in found)
        return [(row, weight / total) for row, weight in found]

    def is_group(self, row: Row, names: set[str]) -> bool:
        pairs = zip(self.columns, row, strict=True)
        return all(v is not None or c.counterfactual for c, v in pairs if c.name in names)

    def level(self, row: Row, names: set[str]) -> Row:
        pairs = zip(self.columns, row, strict=True)
        return tuple(c.level(v) for c, v in pairs if c.name in names)

    def group(self, names: set[str], rows: list[tuple[Row, float]] | None = None) -> float:
        rows = self.inputs() if rows is None else rows
        grouped = [(row, weight) for row, weight in rows if self.is_group(row, names)]
        totals: dict[Row, list[float]] = {}
        for row, weight in grouped or rows:  # where nobody has the values, "missing" is a group
            total = totals.setdefault(self.level(row, names), [0.0, 0.0])
            total[0] += weight
            total[1] += weight * self.output(row)
        rates = [good / total for total, good in totals.values()]
        return max(rates) - min(rates)

    def causal(self, names: set[str], rows: list[tuple[Row, float]] | None = None) -> float:
        rows = self.inputs() if rows is None else rows
        total = sum(weight for _, weight in rows)
        return sum(weight * self.flip_chance(row, names) for row, weight in rows) / total

    def flip_chance(self, row: Row, names: set[str]) -> float:
        """The chance that an output differs, over the members that stand for the bins."""
        choices = [
            self._choices(c, v) if c.name in names else [((v,), 1.0)]
            for c, v in zip(self.columns, row, strict=True)
        ]
        chance = 0.0
        for combination in itertools.product(*choices):
            probability = 1.0
            for _, each in combination:
                probability *= each
            variants = itertools.product(*(tried for tried, _ in combination))
            seen = {self.output(variant) for variant in variants if self.is_valid(variant)}
            chance += probability * (len(seen) > 1)
        return chance

    def _choices(self, column: Column, own: Any) -> list[tuple[tuple[Any, ...], float]]:
        """What a characteristic of the set takes: one value for each level, with the chance."""
        if own is None and not column.counterfactual:
            return [((None,), 1.0)]
        occurs = self._occurring[column.name]
        levels: dict[Any, list[tuple[Any, float]]] = {}
        for value, chance in column.chances():
            if value in occurs and (value is not None or column.counterfactual):
                levels.setdefault(column.level(value), []).append((value, chance))
        choices: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
        for level, members in levels.items():
            if level == column.level(own):
                members = [(own, 1.0)]
            whole = sum(chance for _, chance in members)
            choices = [
                ((*tried, value), p * chance / whole)
                for tried, p in choices
                for value, chance in members
            ]
        return choices

    @cached_property
    def _occurring(self) -> dict[str, set[Any]]:
        rows = [row for row, _ in self.inputs()]
        return {each.name: {row[n] for row in rows} for n, each in enumerate(self.columns)}

    def within(self, names: set[str], rows: list[tuple[Row, float]]) -> float:
        """The share of rows with a counterfactual among the rows that has another output."""
        flips = 0.0
        for row, weight in rows:
            flips += weight * any(
                self._are_counterfactuals(row, other, names)
                and self.output(row) != self.output(other)
                for other, _ in rows
            )
        return flips / sum(weight for _, weight in rows)

    def _are_counterfactuals(self, row: Row, other: Row, names: set[str]) -> bool:
        for column, one, two in zip(self.columns, row, other, strict=True):
            if column.name not in names and one != two:
                return False
            if (one is None) != (two is None) and not column.counterfactual:
                return False
        return self.level(row, names) != self.level(other, names)


RULES: list[tuple[str, Rule]] = [
    ("c0 is missing or c1 is not missing", lambda r: r["c0"] is None or r["c1"] is not None),
    ("not (c0 is missing and c1 is missing)", lambda r: not r["c0"] is r["c1"] is None),
]


def world(seed: int, *, bins: bool = True) -> World:
    """A world of two to four characteristics; the first two may be missing."""
    chance = random.Random(seed)
    columns = []
    for place in range(chance.randint(2, 3 if bins else 4)):
        size = chance.randint(2, 4)
        numbers = chance.random() < 0.5
        values = tuple(range(size)) if numbers else tuple("abcd"[:size])
        weights = tuple(chance.choice((0.0, 1.0, 2.0)) for _ in values)
        binned = bins and numbers and size > 2 and chance.random() < 0.5
        columns.append(
            Column(
                f"c{place}",
                values,
                weights if any(weights) and chance.random() < 0.5 else (1.0,) * size,
                (chance.randint(1, size - 1),) if binned else (),
                chance.choice((0.1, 0.3, 0.6)) if place < 2 or chance.random() < 0.3 else 0.0,
                chance.random() < 0.3,
            )
        )
    if sum(bool(each.bins) for each in columns) > 1:  # exact scores take one of them in a set
        columns = [replace(each, bins=() if n else each.bins) for n, each in enumerate(columns)]
    columns = [replace(each, counterfactual=each.counterfactual and each.missing > 0)
               for each in columns]  # fmt: skip
    found = World(tuple(columns), chance.randint(0, 999))
    rules = [None, *RULES, _comparison(columns[0])]
    limited = replace(found, constraint=chance.choice(rules))
    return limited if limited.inputs() else found


def _comparison(column: Column) -> tuple[str, Rule]:
    """A comparison with a value: unknown where there is none, and then not forbidden."""
    value = column.values[-1]

    def rule(row: dict[str, Any]) -> bool | None:
        return None if row[column.name] is None else row[column.name] != value

    return f"{column.name} != {value!r}", rule


def sets_of(world: World) -> list[tuple[str, ...]]:
    names = [each.name for each in world.columns]
    sizes = range(1, len(names) + 1)
    return [each for size in sizes for each in itertools.combinations(names, size)]
