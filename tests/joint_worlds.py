"""Tiny worlds in which all that a schema may say comes together, and their truth by brute force.

Values may be missing, some belong together, some are in bins, and given rows have values that the
schema does not list. The truth is computed from the definitions in plain Python; no code is shared
with the package. Which things come together is a covering array: each pair of choices occurs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import themis
from tests.simulations.counting import cover

Row = dict[str, Any]
Weighed = list[tuple[Row, float]]
LEADER, FOLLOWER, FREE, TITLE = "lead", "mate", "free", "title"
IN_SETS = (LEADER, FOLLOWER, FREE)
SETS = [each for n in (1, 2, 3) for each in itertools.combinations(IN_SETS, n)]

CHOICES: dict[str, tuple[str, ...]] = {
    LEADER: ("never", "kept", "counterfactual"),  # missing
    FOLLOWER: ("never", "kept", "counterfactual"),
    FREE: ("never", "kept", "counterfactual"),
    "bins": ("none", LEADER, FREE, "both"),
    "derived": ("no", "given", "left out"),  # in given rows
    "weights": ("even", "uneven"),
    "constraint": ("none", "follower", "missing", "leader", "derived"),
    "off grid": ("nothing", LEADER, FOLLOWER, FREE, TITLE, "all"),
}
Features = Mapping[str, str]


def covering_array(seed: int, *, off_grid: bool = True) -> list[Features]:
    """Choices such that each two of different kinds occur together in one of them."""
    return cover(CHOICES if off_grid else {**CHOICES, "off grid": ("nothing",)}, 2, seed)


@dataclass(frozen=True)
class Column:
    """A characteristic that is not derived."""

    name: str
    values: tuple[Any, ...]
    weights: tuple[float, ...]
    edge: int | None = None  # the first value of the second of two bins
    missing: float = 0.0
    counterfactual: bool = False

    def chances(self) -> Iterator[tuple[Any, float]]:
        for value, weight in zip(self.values, self.weights, strict=True):
            if weight:
                yield value, (1 - self.missing) * weight / sum(self.weights)
        if self.missing:
            yield None, self.missing

    def level(self, value: Any) -> Any:
        """What a value counts as in a set: itself, its bin, nothing, or one of its own."""
        if value is None:
            return None
        if self.edge is not None and self.values[0] <= value <= self.values[-1]:
            part = [each for each in self.values if (each >= self.edge) == (value >= self.edge)]
            if any(self.weights[self.values.index(each)] for each in part):
                return part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}"
        return value if value in self.values else ("own", value)

    def forms_a_group(self, value: Any) -> bool:
        return self.counterfactual if value is None else not isinstance(self.level(value), tuple)

    @property
    def levels(self) -> list[Any]:
        """Of the values, without "missing"."""
        return list(dict.fromkeys(map(self.level, self.values)))

    def options(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if len(set(self.weights)) > 1:
            result["weights"] = list(self.weights)
        if self.missing:
            result |= {"missing": self.missing, "missing_as_counterfactual": self.counterfactual}
        return result


@dataclass(frozen=True)
class Rule:
    """A constraint: `not (…)` of conditions that must not all be true."""

    conditions: tuple[tuple[str, Any], ...]  # a value; None: "is missing"

    @property
    def text(self) -> str:
        parts = (f"{n} is missing" if v is None else f"{n} == {v!r}" for n, v in self.conditions)
        return f"not ({' and '.join(parts)})"

    def allows(self, row: Row) -> bool:
        """A comparison with a missing value is open, and what is open is not forbidden."""
        return not all(row[name] == value for name, value in self.conditions)


@dataclass(frozen=True)
class JointWorld:
    columns: tuple[Column, ...]  # in the order of the schema; what is derived comes last
    table: dict[Any, dict[str, str]]  # per level of the leader
    titles: dict[Any, str] | None  # per level of the leader
    rule: Rule | None
    salt: int

    # As the package has it ------------------------------------------------------------------
    @cached_property
    def schema(self) -> themis.Schema:
        spec: dict[str, Any] = {}
        for each in self.columns:
            options = each.options()
            if each.name == FOLLOWER:
                options |= {"follows": LEADER, "as_": self.table}
            if each.edge is None:
                spec[each.name] = themis.Values(each.values, **options)
            else:
                first, last = each.values[0], each.values[-1]
                spec[each.name] = themis.Integers(first, last, bins=[each.edge], **options)
        if self.titles is not None:
            spec[TITLE] = themis.derived(LEADER, self.titles)
        schema = themis.Schema(spec)
        return schema if self.rule is None else schema.where(self.rule.text)

    def decide(self, row: Row) -> int:
        """A random decision, the same for 2 and 2.0."""
        values = (float(v) if isinstance(v, int | float) else v for v in row.values())
        return int(crc32(f"{self.salt} {list(values)!r}".encode()) % 3 == 0)

    def decide_table(self, people: themis.InputTable) -> list[int]:
        """The same of many at once; there, a missing number is NaN."""
        columns = [[None if v != v else v for v in people[name].tolist()] for name in self.names]
        rows = zip(*columns, strict=True)
        return [self.decide(dict(zip(self.names, row, strict=True))) for row in rows]

    def audit(self, **options: Any) -> themis.Audit:
        return themis.Audit(self.decide, self.schema, seed=1, **options)

    @cached_property
    def names(self) -> tuple[str, ...]:
        own = tuple(each.name for each in self.columns)
        return own if self.titles is None else (*own, TITLE)

    # The definitions ------------------------------------------------------------------------
    @cached_property
    def column(self) -> dict[str, Column]:
        return {each.name: each for each in self.columns}

    @cached_property
    def _outputs(self) -> dict[tuple[Any, ...], int]:
        return {}

    def output(self, row: Row) -> int:
        key = tuple(row[name] for name in self.names)
        if key not in self._outputs:
            self._outputs[key] = self.decide(dict(zip(self.names, key, strict=True)))
        return self._outputs[key]

    def valid(self, row: Row) -> bool:
        return self.rule is None or self.rule.allows(row)

    def title(self, leader: Any) -> str | None:
        """What is derived: nothing, of a leader without a value."""
        return None if leader is None else self.titles[self.column[LEADER].level(leader)]

    @cached_property
    def inputs(self) -> Weighed:
        """What is drawn, rewritten for its own leader, with its probability."""
        total: dict[tuple[Any, ...], float] = {}
        for drawn in itertools.product(*(each.chances() for each in self.columns)):
            row = {c.name: value for c, (value, _) in zip(self.columns, drawn, strict=True)}
            level = self.column[LEADER].level(row[LEADER])
            row[FOLLOWER] = self.table.get(level, {}).get(row[FOLLOWER], row[FOLLOWER])
            if self.titles is not None:
                row[TITLE] = self.title(row[LEADER])
            if self.valid(row):
                chance = 1.0
                for _, each in drawn:
                    chance *= each
                key = tuple(row[name] for name in self.names)
                total[key] = total.get(key, 0.0) + chance
        every = sum(total.values())
        return [(dict(zip(self.names, k, strict=True)), w / every) for k, w in total.items()]

    def variant(self, row: Row, values: Row) -> Row:
        """The input with these values, and with all that goes with a leader that has changed."""
        other = {**row, **values}
        before, after = (self.column[LEADER].level(each[LEADER]) for each in (row, other))
        if before == after:
            return other
        if FOLLOWER not in values:
            mate = other[FOLLOWER]
            other[FOLLOWER] = self.table.get(after, {}).get(mate, mate)
        if self.titles is not None and not isinstance(after, tuple):
            other[TITLE] = self.title(other[LEADER])
        return other

    def _choices(self, column: Column, own: Any) -> list[tuple[tuple[Any, ...], float]]:
        """What a characteristic of the set takes: one value for each level, with the chance."""
        if own is None and not column.counterfactual:
            return [((None,), 1.0)]
        levels: dict[Any, list[tuple[Any, float]]] = {}
        for value, chance in column.chances():
            occurs = column.edge is None or value in self._occurring[column.name]
            if occurs and (value is not None or column.counterfactual):
                levels.setdefault(column.level(value), []).append((value, chance))
        levels[column.level(own)] = [(own, 1.0)]
        result: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
        for members in levels.values():
            whole = sum(chance for _, chance in members)
            result = [
                ((*tried, value), p * chance / whole)
                for tried, p in result
                for value, chance in members
            ]
        return result

    @cached_property
    def _occurring(self) -> dict[str, set[Any]]:
        return {name: {row[name] for row, _ in self.inputs} for name in IN_SETS}

    def flips(self, row: Row, names: tuple[str, ...]) -> float:
        """The chance that changing the set changes the output, over the members of bins."""
        chance = 0.0
        choices = (self._choices(self.column[name], row[name]) for name in names)
        for combination in itertools.product(*choices):
            share = 1.0
            for _, each in combination:
                share *= each
            chance += share * self._differs(row, names, [tried for tried, _ in combination])
        return chance

    def _differs(self, row: Row, names: tuple[str, ...], choices: list[tuple[Any, ...]]) -> bool:
        for values in itertools.product(*choices):
            other = self.variant(row, dict(zip(names, values, strict=True)))
            if self.valid(other) and self.output(other) != self.output(row):
                return True
        return False

    def causal(self, names: tuple[str, ...], rows: Weighed | None = None) -> float:
        rows = self.inputs if rows is None else rows
        total = sum(weight for _, weight in rows)
        return sum(weight * self.flips(row, names) for row, weight in rows) / total

    def in_groups(self, row: Row, names: tuple[str, ...]) -> bool:
        return all(self.column[name].forms_a_group(row[name]) for name in names)

    def levels_of(self, row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(self.column[name].level(row[name]) for name in names)

    def group(self, names: tuple[str, ...], rows: Weighed | None = None) -> float | None:
        """The spread of those who form groups; None where nobody does."""
        totals: dict[tuple[Any, ...], list[float]] = {}
        for row, weight in self.inputs if rows is None else rows:
            if self.in_groups(row, names):
                total = totals.setdefault(self.levels_of(row, names), [0.0, 0.0])
                total[0] += weight
                total[1] += weight * self.output(row)
        rates = [good / total for total, good in totals.values()]
        return max(rates) - min(rates) if rates else None

    def within(self, names: tuple[str, ...], rows: Weighed) -> float:
        """The share of rows with a counterfactual among the rows that has another output."""
        flips = 0.0
        for row, weight in rows:
            flips += weight * any(
                self.are_counterfactuals(row, other, names)
                and self.output(row) != self.output(other)
                for other, _ in rows
            )
        return flips / sum(weight for _, weight in rows)

    def are_counterfactuals(self, row: Row, other: Row, names: tuple[str, ...]) -> bool:
        """Whether one is the other but for the set, with a value wherever that has one."""
        for name in names:
            gives = (row[name] is None) != (other[name] is None)
            if gives and not self.column[name].counterfactual:
                return False
        changes = self.levels_of(row, names) != self.levels_of(other, names)
        return changes and self.variant(row, {name: other[name] for name in names}) == other

    # Given rows -----------------------------------------------------------------------------
    def rows(self, features: Features, seed: int, count: int = 24) -> Weighed:
        """Rows as people have them: of any values, in any combination that is valid."""
        chance = random.Random(f"rows {seed}")
        found: Weighed = []
        while len(found) < count:
            row = {each.name: self._given(each, features, chance) for each in self.columns}
            if chance.random() < 0.3:
                row = dict(chance.choice(self.inputs)[0])
            if self.titles is not None and features["derived"] == "given":
                row[TITLE] = self._given_title(row, features, chance)
            elif self.titles is not None and self._can_derive(row):
                row[TITLE] = self.title(row[LEADER])
            elif self.titles is not None:
                row[TITLE] = "lost"  # a row that can't be used
            if self.valid(row):
                found.append((row, float(chance.randint(1, 3))))
        return found

    def _can_derive(self, row: Row) -> bool:
        return not isinstance(self.column[LEADER].level(row[LEADER]), tuple)

    def _given(self, column: Column, features: Features, chance: random.Random) -> Any:
        values = [value for value, _ in column.chances()]
        if features["off grid"] in (column.name, "all") and chance.random() < 0.4:
            numbers = (column.values[0] + 0.5, column.values[-1] + 9) if column.edge else ()
            return chance.choice(numbers or ("Y", "Z"))
        return chance.choice(values)

    def _given_title(self, row: Row, features: Features, chance: random.Random) -> str | None:
        if features["off grid"] in (TITLE, "all") and chance.random() < 0.3:
            return "Dr"
        if chance.random() < 0.2 or not self._can_derive(row):
            gone = (None,) if self.column[LEADER].missing else ()
            return chance.choice((*self.titles.values(), *gone))
        return self.title(row[LEADER])


def binned_columns(features: Features) -> set[str]:
    """The characteristics that have bins."""
    return {LEADER, FREE} if features["bins"] == "both" else {features["bins"]} - {"none"}


def joint_world(features: Features, seed: int) -> JointWorld:
    """A random world with these features."""
    chance = random.Random(f"world {seed}")
    uneven = features["weights"] == "uneven"
    columns = []
    for name, values in ((LEADER, "FMX"), (FOLLOWER, "abc"), (FREE, "uvw")):
        own: tuple[Any, ...] = tuple(values[: 2 if name == FREE else chance.choice((2, 3))])
        own = tuple("abc") if name == FOLLOWER else own
        binned = name in binned_columns(features)
        if binned:
            own = (20, 21, 22, 23)
        weights = [float(chance.choice((1, 2, 3))) if uneven else 1.0 for _ in own]
        if uneven and name != FOLLOWER and len(own) > 2:
            weights[chance.randrange(len(own))] = 0.0
        missing = features[name] != "never"
        columns.append(
            Column(
                name,
                own,
                tuple(weights),
                chance.choice((21, 22)) if binned else None,
                chance.choice((0.1, 0.3, 0.5)) if missing else 0.0,
                features[name] == "counterfactual",
            )
        )
    lead = columns[0]
    chance.shuffle(columns)
    titles = None
    if features["derived"] != "no":
        titles = {level: chance.choice(("Mx", "Ms", "Mr")) for level in lead.levels}
    found = JointWorld(
        tuple(columns), _table(lead.levels, chance), titles, None, chance.randint(0, 999)
    )
    rule = _rule(found, features["constraint"], chance)
    limited = JointWorld(found.columns, found.table, titles, rule, found.salt)
    return limited if limited.inputs else found


def plain_world(seed: int, *, binned: bool = False, **features: str) -> JointWorld:
    """A world with little but a follower and something derived, unless more is asked for."""
    few = dict.fromkeys(IN_SETS, "never") | {"derived": "given", "off grid": "nothing"}
    few |= {"bins": LEADER if binned else "none", "weights": ("even", "uneven")[seed % 2]}
    few |= {"constraint": "none" if seed % 3 == 0 else "follower"}
    return joint_world({**few, **features}, seed)


def _table(levels: list[Any], chance: random.Random) -> dict[Any, dict[str, str]]:
    """Some levels turn a into b, and the others b into a; c stays."""
    first = chance.randrange(len(levels))
    to_b = {level for level in levels if level == levels[first] or chance.random() < 0.3}
    return {level: {"a": "b"} if level in to_b else {"b": "a"} for level in levels}


def _rule(world: JointWorld, kind: str, chance: random.Random) -> Rule | None:
    """A constraint that reads what is asked for, if the world has it."""

    def one(name: str) -> tuple[str, Any]:
        values = [value for value, _ in world.column[name].chances() if value is not None]
        return name, chance.choice(values)

    gone = [each.name for each in world.columns if each.missing]
    if kind == "follower":
        return Rule((one(FOLLOWER), one(FREE)))
    if kind == "leader":
        return Rule((one(LEADER), one(chance.choice((FOLLOWER, FREE)))))
    if kind == "missing" and gone:
        name = chance.choice(gone)
        other = chance.choice([each for each in IN_SETS if each != name])
        return Rule(((name, None), (other, None) if other in gone else one(other)))
    if kind == "derived" and world.titles is not None:
        title = chance.choice(list(world.titles.values()))
        may_be_missing = world.column[LEADER].missing and chance.random() < 0.4
        return Rule(
            ((TITLE, None if may_be_missing else title), one(chance.choice((FOLLOWER, FREE))))
        )
    return None
