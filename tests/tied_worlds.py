"""Random tiny worlds in which characteristics belong together, and their truth by brute force.

The truth is computed from the definitions in plain Python; no code is shared with the package.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import themis

Row = dict[str, Any]
LEADER, FOLLOWER, DERIVED, FREE, OTHER = "lead", "mate", "title", "free", "other"


@dataclass(frozen=True)
class TiedWorld:
    """A leader, what follows it, what is derived from it, and others that do neither."""

    values: dict[str, tuple[Any, ...]]  # of all but the derived one
    weights: dict[str, tuple[int, ...]]
    bins: tuple[tuple[int, ...], ...] | None  # of the leader: the members of each
    table: dict[Any, dict[str, str]]  # per level of the leader
    titles: dict[Any, str] | None  # per level of the leader
    forbidden: tuple[tuple[str, Any], ...]  # all of these together are not valid
    outputs: dict[tuple[Any, ...], int]

    # As the package has it ------------------------------------------------------------------
    @cached_property
    def schema(self) -> themis.Schema:
        spec: dict[str, Any] = {}
        for name, values in self.values.items():
            options: dict[str, Any] = {"weights": list(self.weights[name])}
            if len(set(options["weights"])) == 1:
                options = {}
            if name == FOLLOWER:
                spec[name] = themis.Values(values, follows=LEADER, as_=self.table, **options)
            elif name == LEADER and self.bins is not None:
                edges = [members[0] for members in self.bins[1:]]
                spec[name] = themis.Integers(values[0], values[-1], bins=edges, **options)
            else:
                spec[name] = themis.Values(values, **options)
        if self.titles is not None:
            spec[DERIVED] = themis.derived(LEADER, self.titles)
        schema = themis.Schema(spec)
        if self.forbidden:
            parts = (f"{name} == {value!r}" for name, value in self.forbidden)
            schema = schema.where(f"not ({' and '.join(parts)})")
        return schema

    def decide(self, row: Row) -> int:
        return self.outputs[tuple(row[name] for name in self.names)]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.values, *([DERIVED] if self.titles is not None else ()))

    def audit(self, **options: Any) -> themis.Audit:
        return themis.Audit(self.decide, self.schema, seed=1, **options)

    # The definitions ------------------------------------------------------------------------
    def level(self, name: str, value: Any) -> Any:
        """A value, or what its bin is called."""
        if name == LEADER and self.bins is not None:
            own = next(members for members in self.bins if value in members)
            return own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}"
        return value

    def levels(self, name: str) -> list[tuple[Any, ...]]:
        """The members of positive weight of each level."""
        alive = [v for v, w in zip(self.values[name], self.weights[name], strict=True) if w]
        groups: dict[Any, list[Any]] = {}
        for value in alive:
            groups.setdefault(self.level(name, value), []).append(value)
        return [tuple(members) for members in groups.values()]

    def valid(self, row: Row) -> bool:
        return not self.forbidden or any(row[name] != value for name, value in self.forbidden)

    @cached_property
    def inputs(self) -> list[tuple[Row, Fraction]]:
        """What is drawn, rewritten for its own value of the leader, with its probability."""
        total: dict[tuple[Any, ...], Fraction] = {}
        for drawn in itertools.product(*self.values.values()):
            row = dict(zip(self.values, drawn, strict=True))
            weight = 1
            for name, value in row.items():
                weight *= self.weights[name][self.values[name].index(value)]
            level = self.level(LEADER, row[LEADER])
            row[FOLLOWER] = self.table.get(level, {}).get(row[FOLLOWER], row[FOLLOWER])
            if self.titles is not None:
                row[DERIVED] = self.titles[level]
            if weight and self.valid(row):
                key = tuple(row.values())
                total[key] = total.get(key, Fraction(0)) + weight
        every = sum(total.values())
        return [(dict(zip(self.names, k, strict=True)), w / every) for k, w in total.items()]

    def variant(self, row: Row, values: Row) -> Row:
        """The input with these values, and with all that follows what has changed."""
        other = {**row, **values}
        before, after = (self.level(LEADER, each[LEADER]) for each in (row, other))
        if before != after:
            if FOLLOWER not in values:
                mate = other[FOLLOWER]
                other[FOLLOWER] = self.table.get(after, {}).get(mate, mate)
            if self.titles is not None:
                other[DERIVED] = self.titles[after]
        return other

    @cached_property
    def members(self) -> list[tuple[Any, ...]]:
        """The leader's values that occur and may stand for a bin, per bin."""
        return [
            tuple(v for v in group if any(row[LEADER] == v for row, _ in self.inputs))
            for group in self.levels(LEADER)
        ]

    def flips(self, row: Row, names: tuple[str, ...]) -> Fraction:
        """The chance that changing the set changes the output of an input."""
        own = self.level(LEADER, row[LEADER])
        if LEADER not in names or self.bins is None:
            choices = [[each for group in self.levels(n) for each in group[:1]] for n in names]
            return Fraction(self._differs(row, names, choices))
        bins = [group for group in self.members if group]
        weight = dict(zip(self.values[LEADER], self.weights[LEADER], strict=True))
        chance = Fraction(0)
        others = [group for group in bins if self.level(LEADER, group[0]) != own]
        for chosen in itertools.product(*others):
            share = Fraction(1)
            for value, group in zip(chosen, others, strict=True):
                share *= Fraction(weight[value], sum(weight[each] for each in group))
            choices = [
                [row[LEADER], *chosen]
                if name == LEADER
                else [group[0] for group in self.levels(name)]
                for name in names
            ]
            chance += share * self._differs(row, names, choices)
        return chance

    def _differs(self, row: Row, names: tuple[str, ...], choices: list[list[Any]]) -> bool:
        for values in itertools.product(*choices):
            other = self.variant(row, dict(zip(names, values, strict=True)))
            if self.valid(other) and self.decide(other) != self.decide(row):
                return True
        return False

    def causal(self, names: tuple[str, ...]) -> Fraction:
        return sum((w * self.flips(row, names) for row, w in self.inputs), Fraction(0))

    def group(self, names: tuple[str, ...]) -> Fraction:
        rates: dict[Any, list[Fraction]] = {}
        for row, weight in self.inputs:
            key = tuple(self.level(name, row[name]) for name in names)
            total = rates.setdefault(key, [Fraction(0), Fraction(0)])
            total[0] += weight * self.decide(row)
            total[1] += weight
        every = [good / all_ for good, all_ in rates.values()]
        return max(every) - min(every)

    def sets(self) -> list[tuple[str, ...]]:
        free = list(self.values)
        return [s for n in range(1, len(free) + 1) for s in itertools.combinations(free, n)]

    def minimal_sets(self, measure: str, threshold: Fraction) -> set[frozenset[str]]:
        score = self.causal if measure == "causal" else self.group
        above = [frozenset(s) for s in self.sets() if score(s) >= threshold]
        return {s for s in above if not any(other < s for other in above)}

    def within(self, rows: list[Row], names: tuple[str, ...]) -> Fraction:
        """The share of rows with a counterfactual among the rows that has another output."""
        flips = 0
        for row in rows:
            for other in rows:
                values = {name: other[name] for name in names}
                changes = any(self.level(n, row[n]) != self.level(n, other[n]) for n in names)
                same = self.variant(row, values) == other
                if changes and same and self.decide(other) != self.decide(row):
                    flips += 1
                    break
        return Fraction(flips, len(rows))

    def generated(self, rows: list[Row], names: tuple[str, ...]) -> Fraction:
        return sum((self.flips(row, names) for row in rows), Fraction(0)) / len(rows)


def random_world(seed: int, *, binned: bool = False, constrained: bool = True) -> TiedWorld:
    """A world with random tables, weights, constraint and decisions."""
    rng = random.Random(seed)
    bins: tuple[tuple[int, ...], ...] | None = None
    leader: tuple[Any, ...] = tuple("FMX"[: rng.choice([2, 2, 3])])
    levels: list[Any] = list(leader)
    if binned:
        leader, bins = (20, 21, 22, 23), ((20, 21), (22,), (23,))[: rng.choice([2, 3])]
        bins = bins if len(bins) == 3 else ((20, 21), (22, 23))
        levels = [b[0] if len(b) == 1 else f"{b[0]} to {b[-1]}" for b in bins]
    mates = tuple("abcd"[: rng.choice([3, 4])])
    values = {LEADER: leader, FOLLOWER: mates, FREE: ("u", "v"), OTHER: (1, 2, 3)}
    if rng.random() < 0.3:
        del values[OTHER]
    order = list(values)
    rng.shuffle(order)
    values = {name: values[name] for name in order}
    weights = {
        name: tuple(rng.choice([1, 1, 2, 3] if rng.random() < 0.6 else [1]) for _ in each)
        for name, each in values.items()
    }
    table = _classes(rng, levels, mates)
    if len(levels) == 2 and rng.random() < 0.3:
        table = _permutation(rng, levels, mates)
    titles = {level: rng.choice("xyz") for level in levels} if rng.random() < 0.7 else None
    forbidden: tuple[tuple[str, Any], ...] = ()
    if constrained and rng.random() < 0.6:
        some = rng.sample(order, 2)
        forbidden = tuple((name, rng.choice(values[name])) for name in some)
    names = (*values, *([DERIVED] if titles is not None else ()))
    every = [*values.values(), *([sorted(set(titles.values()))] if titles is not None else [])]
    bias = rng.choice([0.1, 0.3, 0.5])
    outputs = {row: int(rng.random() < bias) for row in itertools.product(*every)}
    assert len(names) == len(every)
    world = TiedWorld(values, weights, bins, table, titles, forbidden, outputs)
    return world if world.inputs else random_world(seed + 10_000, binned=binned)


def _classes(rng: random.Random, levels: list[Any], mates: tuple[str, ...]) -> Any:
    """Values in classes; each level has one value of each class."""
    number = {mate: rng.randrange(2) for mate in mates}
    table: dict[Any, dict[str, str]] = {}
    for level in levels:
        for each in set(number.values()):
            same = [mate for mate in mates if number[mate] == each]
            own = rng.choice(same)
            table.setdefault(level, {}).update({mate: own for mate in same if mate != own})
    return {level: row for level, row in table.items() if row} or {levels[0]: {mates[0]: mates[0]}}


def _permutation(rng: random.Random, levels: list[Any], mates: tuple[str, ...]) -> Any:
    """A permutation on the way there, and its inverse on the way back."""
    there = rng.sample(mates, len(mates))
    pairs = list(zip(mates, there, strict=True))
    return {levels[0]: dict(pairs), levels[1]: {b: a for a, b in pairs}}
