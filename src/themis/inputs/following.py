"""Characteristics that belong together: what follows another one, and what is derived from some.

Where a variant of an input has another level of the leader, a follower is rewritten by its table
and a derived characteristic is computed. A code without a place in the table stays as it is: what
is missing, and what only given rows have. A leader without a value changes nothing; what is derived
from it is missing, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, SchemaError, listed, suggest
from themis.inputs.characteristics import OWN, TABLE_LIMIT, Characteristic, Values
from themis.inputs.numbers import (
    mistake,
)


@dataclass(frozen=True, eq=False)
class Tie:
    """One characteristic that goes with another, or is derived from some, by their columns."""

    leaders: tuple[int, ...]
    follower: int
    leads: tuple[Characteristic, ...]
    table: NDArray[np.int64]  # level of the leaders × code of the follower, if any → its code there
    derived: bool

    def moved(self, levels: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        """The follower's codes for these levels of its leaders."""
        known = (levels >= 0) & (levels < self.table.shape[0])
        listed = codes < self.table.shape[1]
        known = known if self.derived else known & listed
        places = np.where(known, levels, 0), np.where(known & listed, codes, 0)
        return np.where(known, self.table[places], codes).astype(codes.dtype)

    def levels(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The levels of the leaders in a code matrix, as one number."""
        return self.joined([self.own_level(codes, leader) for leader in self.leaders])

    def own_level(self, codes: NDArray[Any], leader: int) -> NDArray[Any]:
        """The levels of one of the leaders in a code matrix."""
        return np.asarray(self.leads[self.leaders.index(leader)].level_of(codes[:, leader]))

    def joined(self, levels: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The number of some levels, one of each leader; OWN where one is none."""
        number: NDArray[Any] = np.zeros((), dtype=np.int64)
        known: NDArray[np.bool_] = np.ones((), dtype=bool)
        for each, leads in zip(levels, self.leads, strict=True):
            number = number * leads.levels + each
            known = known & (each >= 0) & (each < leads.levels)
        return np.where(known, number, OWN)


def rewrite(ties: Iterable[Tie], codes: NDArray[Any]) -> None:
    """Rewrite inputs, in place, for the levels that they have themselves."""
    for tie in ties:
        codes[:, tie.follower] = tie.moved(tie.levels(codes), codes[:, tie.follower])


def follow(ties: Iterable[Tie], before: NDArray[Any], after: NDArray[Any]) -> None:
    """Rewrite variants, in place, where a leader has another level than it had before."""
    for tie in ties:
        was, now = tie.levels(before), tie.levels(after)
        own = after[:, tie.follower]
        after[:, tie.follower] = np.where(was == now, own, tie.moved(now, own))


def as_drawn(ties: Iterable[Tie], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which inputs have, for each follower, a value that rewriting can give."""
    result = np.ones(len(codes), dtype=bool)
    for tie in ties:
        levels, own = tie.levels(codes), codes[:, tie.follower]
        known = (levels >= 0) & (levels < len(tie.table))
        known &= tie.derived | (own < tie.table.shape[1])
        images = tie.table[np.where(known, levels, 0)]
        result &= ~known | (images == own[:, None]).any(axis=1)
    return result


def completed(characteristics: Sequence[Characteristic]) -> list[Characteristic]:
    """The same characteristics; what is derived from one that may be missing may be, too."""
    leads = {each.name: each for each in characteristics}
    result = []
    for each in characteristics:
        own = each.leaders if isinstance(each, Values) and each.derived else ()
        gaps = [leads[name].missing for name in own if name in leads and leads[name].missing]
        if gaps and each.missing is None:
            each = replace(each, missing=gaps[0], missing_as_counterfactual=True)
        result.append(each)
    return result


# What users write ---------------------------------------------------------------------------
def ties_of(characteristics: Sequence[Characteristic]) -> tuple[Tie, ...]:
    """The ties of some characteristics; raises SchemaError, each mistake with its key."""
    columns = {each.name: column for column, each in enumerate(characteristics)}
    ties: list[Tie] = []
    mistakes: list[Mistake] = []
    for column, each in enumerate(characteristics):
        if not isinstance(each, Values) or not each.leaders:
            continue
        key, wrong = "from" if each.derived else "follows", _leader_mistakes(each, characteristics)
        if not wrong:
            leaders = tuple(columns[name] for name in each.leaders)
            leads = tuple(characteristics[leader] for leader in leaders)
            reading = _Reading(each, leads)
            table = reading.derived() if each.derived else reading.following()
            ties.append(Tie(leaders, column, leads, table, each.derived))
            key, wrong = "values" if each.derived else "as", reading.found
        mistakes += [replace(mistake, where=f"inputs.{each.name}.{key}") for mistake in wrong]
    if mistakes:
        raise SchemaError(mistakes)
    return tuple(ties)


def _leader_mistakes(each: Values, characteristics: Sequence[Characteristic]) -> list[Mistake]:
    """Why a characteristic can't follow those that it names, if so."""
    known = {other.name: other for other in characteristics}
    found = [_leader_mistake(each, name, known) for name in each.leaders]
    levels = math.prod(known[name].levels for name in each.leaders if name in known)
    if not any(found) and levels > TABLE_LIMIT:
        problem = f"{listed(each.leaders)} have {levels:,} combinations of values"
        found = [Mistake("leader", "", problem, "give them bins")]
    return [mistake for mistake in found if mistake is not None]


def _leader_mistake(
    each: Values, name: str, characteristics: Mapping[str, Characteristic]
) -> Mistake | None:
    leads = characteristics.get(name)
    known_leads = [characteristics[own] for own in each.leaders if own in characteristics]
    others = [other.name for other in characteristics.values() if not _leader_of(other)]
    code, remedy = "leader", "give it bins: what follows it goes by bin then"
    if leads is None:
        code, problem = "unknown-name", f"there is no characteristic {name!r}"
        remedy = suggest(str(name), others)
    elif leads.name == each.name:
        problem, remedy = "it can't lead itself", suggest("", others)
    elif leader := _leader_of(leads):
        how = "is derived from" if getattr(leads, "derived", False) else "follows"
        problem = f"{leads.name!r} {how} {leader!r} itself, and there are no chains"
        remedy = f"name {leader!r}, with a table for its values"
    elif leads.levels > TABLE_LIMIT:
        problem = f"{leads.name!r} has {leads.levels:,} values"
    elif each.derived and each.missing not in (None, *(k.missing for k in known_leads)):
        code, remedy = "derived-key", f"remove it, or give it to {leads.name!r}"
        problem = f"a derived one has no 'missing': it is missing where {leads.name!r} is"
    else:
        return None
    return Mistake(code, "", problem, remedy)


def _leader_of(each: Characteristic) -> str:
    return each.leaders[0] if isinstance(each, Values) and each.leaders else ""


class _Reading:
    """Reads the table of one characteristic, and finds all that is wrong with it."""

    def __init__(self, own: Values, leads: tuple[Characteristic, ...]) -> None:
        self.own = own
        self.leads = leads
        self.found: list[Mistake] = []
        self._levels = [
            {spelled(each.level_label(level)): level for level in range(each.filled_levels)}
            for each in leads
        ]
        self._values = {spelled(value): code for code, value in enumerate(own.values)}

    def derived(self) -> NDArray[np.int64]:
        """The code for each level of the leaders; to be used only if nothing was found."""
        shape = tuple(each.levels for each in self.leads)
        table = np.full((*shape, 1), self.own.missing_code, dtype=np.int64)
        lacking: dict[int, list[str]] = {}
        for levels, value in self._entries(self.own.as_ or {}, (), lacking):
            table[levels] = self.own.encode(value) or 0
        for depth, labels in lacking.items() if not self.found else ():
            shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
            names = listed([each.name for each in self.leads[: depth + 1]])
            problem = f"there is no value for {shown} of {names}"
            self._add("derived-value", problem, "give one for each")
        return table.reshape(-1, 1)

    def _entries(
        self, table: Mapping[Any, Any], above: tuple[int, ...], lacking: dict[int, list[str]]
    ) -> Iterator[tuple[tuple[int, ...], Any]]:
        """The levels of all leaders, and the value there, of a table in tables."""
        depth, told = len(above), set()
        for key, below in table.items():
            level = self._level(key, depth)
            told.add(level)
            if level is None or depth + 1 == len(self.leads):
                yield from [] if level is None else [((*above, level), below)]
            elif isinstance(below, Mapping):
                yield from self._entries(below, (*above, level), lacking)
            else:
                problem = f"{key!r} must have a table, got {below!r}"
                self._add("derived-value", problem, f"write one for {self.leads[depth + 1].name!r}")
        labels = (each.level_label(level) for each, level in zip(self.leads, above, strict=False))
        around = "".join(f"{label!r} with " for label in labels)
        for label, level in self._levels[depth].items():
            if level not in told:
                lacking.setdefault(depth, []).append(f"{around}{label!r}")

    def following(self) -> NDArray[np.int64]:
        (leads,) = self.leads
        table = np.tile(np.arange(self.own.size), (leads.levels, 1))
        for key, row in (self.own.as_ or {}).items():
            level = self._level(key)
            if not isinstance(row, Mapping):
                problem = f"{key!r} must have a table, got {row!r}"
                self._add("follows-table", problem, f'write {key} = {{ before = "after" }}')
                continue
            for before, after in row.items():
                first, second = self._code(before), self._code(after)
                if level is not None and first is not None and second is not None:
                    table[level, first] = second
        if not self.found:
            filled = table[: leads.filled_levels]
            self.found += _one_to_one_mistakes(filled, self.own, leads)
            self.found += _weight_mistakes(table, self.own)
        return table

    def _level(self, key: Any, depth: int = 0) -> int | None:
        leads = self.leads[depth]
        kind = "value" if leads.bin_starts is None else "bin"
        return self._known(self._levels[depth], key, f"no {kind} of {leads.name!r}")

    def _code(self, value: Any) -> int | None:
        return self._known(self._values, value, "none of its values")

    def _known(self, numbers: Mapping[str, int], key: Any, what: str) -> int | None:
        number = numbers.get(spelled(key))
        if number is None:
            self._add("unknown-value", f"{key!r} is {what}", suggest(str(key), list(numbers)))
        return number

    def _add(self, code: str, problem: str, remedy: str) -> None:
        mistake = Mistake(code, "", problem, remedy)
        if mistake not in self.found:
            self.found.append(mistake)


def spelled(value: Any) -> str:
    """A value as a key of a table, where all keys are text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def level_names(characteristic: Characteristic) -> list[str]:
    """The values of a characteristic, or its bins, as a key of the file is written."""
    if characteristic.levels > 1_000:  # of more nobody writes words, and nothing is checked
        return []
    labels = (characteristic.level_label(each) for each in range(characteristic.levels))
    return ["missing" if each is None else spelled(each) for each in labels]


def _one_to_one_mistakes(
    table: NDArray[np.int64], own: Values, leads: Characteristic
) -> Iterator[Mistake]:
    """For each two levels of the leader between which it does not, a value that gets lost.

    Of levels with the same row of the table only the first two are looked at.
    """
    rows, kinds = np.unique(table, axis=0, return_inverse=True)
    alike = [np.flatnonzero(kinds.reshape(-1) == kind)[:2].tolist() for kind in range(len(rows))]
    for pair in combinations(sorted(level for levels in alike for level in levels), 2):
        for start, end in (pair, pair[::-1]):
            occurring = np.unique(table[start])
            lost = occurring[table[start, table[end, occurring]] != occurring]
            if len(lost):
                first, second = (repr(leads.level_label(level)) for level in (start, end))
                problem = f"not one to one between {first} and {second} of {leads.name!r}: there "
                problem += f"and back, {own.value(int(lost[0]))!r} becomes another value"
                remedy = "write for each of the two what every value of the other becomes"
                yield Mistake("not-one-to-one", "", problem, remedy)
                break


def _weight_mistakes(table: NDArray[np.int64], own: Values) -> Iterator[Mistake]:
    """Values of weight 0, which do not occur, that others become."""
    if own.value_weights is None:
        return
    moved = np.unique(table[table != np.arange(own.size)])
    for code in moved[own.value_weights[moved] == 0].tolist():
        problem = f"others become {own.value(code)!r}, which has weight 0"
        yield Mistake("follows-weight", "", problem, "give it a weight, however small")


def plain_table(as_: Mapping[Any, Any]) -> dict[str, Any]:
    """A table as it stands in a file."""
    return {
        spelled(key): plain_table(each) if isinstance(each, Mapping) else each
        for key, each in as_.items()
    }


def derived(leader: str | Sequence[str], values: Mapping[Any, Any], **options: Any) -> Values:
    """A characteristic without freedom of its own: its value for each value of another one.

    >>> derived("sex", {"Female": "Ms", "Male": "Mr"}).values
    ('Ms', 'Mr')

    Of several others: tables in tables, in their order.
    """
    leaders = (leader,) if isinstance(leader, str) else tuple(leader)
    if not isinstance(values, Mapping):
        names = listed(leaders)
        problem = f"the values of what is derived from {names} must be a table, got {values!r}"
        remedy = f"give one for each value of {names}"
        raise SchemaError([mistake("derived-value", problem, remedy)])
    every = list(_leaves(values, len(leaders)))
    try:
        distinct = list(dict.fromkeys(every))
    except TypeError:  # one is no value, and will be refused
        distinct = every
    return Values(distinct, from_=leader, as_=dict(values), **options)


def _leaves(table: Any, depth: int) -> Iterator[Any]:
    """The values of tables in tables."""
    if depth and isinstance(table, Mapping):
        for each in table.values():
            yield from _leaves(each, depth - 1)
    else:
        yield table
