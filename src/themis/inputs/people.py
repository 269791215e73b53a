"""Rows as codes of a schema: whole columns at once, and what does not fit, where and why."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import OWN, Characteristic, Integers, Reals, Value
from themis.inputs.columns import typed_values
from themis.inputs.documents import Dealt
from themis.inputs.following import rewrite
from themis.inputs.keys import InputKeys, numbered
from themis.inputs.outcomes import (
    MOST_VALUES,
    KnownNumbers,
    KnownOutcomes,
    label_mistakes,
    numbers_of,
    outcomes_of,
)
from themis.inputs.personal import SHARED
from themis.inputs.schema import Schema
from themis.inputs.sums import summed
from themis.inputs.tables import Column, Table, column_of
from themis.inputs.values import (
    OFF_STEP,
    OUTSIDE,
    UNKNOWN,
    WEIGHTLESS,
    encode_values,
    number_of,
)

Unknown = Literal["keep", "drop", "error"]

EXAMPLES = 5  # rows named for each reason
UNDERIVED = "nothing to derive it from"
BREAKS, BAD_WEIGHT = "breaks the constraint", "weight that is no number of at least 0"


@dataclass(frozen=True)
class Misfit:
    """Rows that do not fit the schema for one reason."""

    where: str  # the characteristic, or the name of the constraint
    reason: str
    rows: NDArray[np.int64]
    values: tuple[Any, ...]  # of the first few rows
    shared: tuple[bool, ...] = ()  # which of these so many rows have that one names nobody


@dataclass(frozen=True)
class People:
    """The rows that fit, each distinct one once, with the weight of all its copies."""

    schema: Schema
    codes: NDArray[Any]  # distinct rows × characteristics
    weights: NDArray[np.float64]
    counts: NDArray[np.int64]  # copies of each
    heads: NDArray[np.float64]  # people that each stands for: copies, or whole-number weights
    facts: Mapping[str, Any] = field(default_factory=dict)  # the `data` of a result
    known: KnownOutcomes | None = None  # where a column of outcomes was named
    numbers: KnownNumbers | None = None  # where they are numbers

    @property
    def are_counted(self) -> bool:
        """Whether weights are numbers of people, so that a rate is a share of so many."""
        return bool(np.array_equal(self.heads, self.weights))

    @property
    def rows(self) -> int:
        """How many rows were used, copies included."""
        return int(self.counts.sum())

    @cached_property
    def digest(self) -> str:
        """What tells these people from others."""
        parts = (self.codes, self.weights, self.counts, self.heads)
        digest = hashlib.sha256(b"".join(each.tobytes() for each in parts))
        digest.update(repr(self.schema.extra).encode())  # what the codes behind the others mean
        if self.known is not None:
            digest.update(repr((self.known.label, self.known.values)).encode())
            digest.update(self.known.weights.tobytes())
        if self.numbers is not None:
            digest.update(repr(self.numbers.label).encode() + self.numbers.values.tobytes())
            digest.update(self.numbers.person.tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.codes)


def columns_read(schema: Schema, weights: Any, label: str | None = None) -> Set[str]:
    """The names of the columns that `people_of` reads."""
    return schema.column_by_name.keys() | {e for e in (weights, label) if isinstance(e, str)}


def people_of(
    rows: Table,
    schema: Schema,
    *,
    weights: str | Sequence[float] | None = None,
    unknown: Unknown = "keep",
    label: str | None = None,
    where: str = "rows",
) -> People:
    """The rows as codes; raises RequestError for what is missing, or with "error" for misfits.

    With "keep" the people's schema has the values of the rows that it does not list, for them
    alone. `label` is a column of known outcomes.
    """
    _check(rows, schema, weights, unknown, label, where)
    schema, codes, misfits = _encode(rows, schema, keep=unknown == "keep")
    if weights is None:
        weighed, own = np.ones(len(rows)), None
    else:
        own = rows.columns[weights] if isinstance(weights, str) else column_of(weights)
        weighed, wrong = _weights(own)
        misfits += wrong
    fits = np.ones(len(rows), dtype=bool)
    for each in misfits:
        fits[each.rows] = False
    if unknown == "error" and misfits:
        raise RequestError(_as_mistake(each, rows) for each in misfits)
    weightless = int((fits & (weighed == 0)).sum())
    used = np.flatnonzero(fits & (weighed > 0))
    if not len(used):
        none = f"none of the {len(rows):,} rows fits"
        none = "the only row does not fit" if len(rows) == 1 else none
        reasons = (_as_mistake(each, rows) for each in misfits)
        raise RequestError([Mistake("no-rows", where, none, ""), *reasons])
    facts = _facts(rows, schema, misfits, weights, unknown, label)
    facts |= {"used": len(used), "dropped": int((~fits).sum())}
    facts |= {"weightless": weightless} if weightless else {}
    kept = _kept(schema, codes, used)
    facts |= {"kept": kept} if kept else {}
    people, person = _distinct(schema, codes[used], weighed[used], facts)
    if label is None:
        return people
    column = rows.columns[label]
    own = Column(column.values, column.codes[used])
    numbers, known = numbers_of(label, own, weighed[used], person), None
    if len(own.values) <= MOST_VALUES:
        known = outcomes_of(label, own, weighed[used], person, is_count=people.are_counted)
    return replace(people, known=known, numbers=numbers)


def _distinct(
    schema: Schema, codes: NDArray[Any], weights: NDArray[np.float64], facts: dict[str, Any]
) -> tuple[People, NDArray[np.int64]]:
    """The distinct rows as they first appear, with all that their copies have; which each is of."""
    first, number = numbered(InputKeys.among(codes).of(codes))
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    own = place[number]
    total, counts = summed(own, weights, len(order)), np.bincount(own)
    heads = total if (weights == np.floor(weights)).all() else counts.astype(float)
    facts["distinct"] = len(order)
    people = People(schema, np.asfortranarray(codes[first[order]]), total, counts, heads, facts)
    return people, own


# What is asked for --------------------------------------------------------------------------
def _check(
    rows: Table, schema: Schema, weights: Any, unknown: str, label: str | None, where: str
) -> None:
    mistakes = [
        _no_column(rows, name, where)
        for name in schema.names
        if name not in rows.columns
        and not (_is_derived(schema, name) or isinstance(schema[name], Dealt))
    ]
    taken = dict.fromkeys(schema.names, "a characteristic")
    if isinstance(weights, str):
        if weights not in rows.columns:
            mistakes.append(_no_column(rows, weights, "weights"))
        elif weights in taken:
            problem = f"{weights!r} is {taken[weights]}"
            mistakes.append(Mistake("weights", "weights", problem, "name another column"))
        taken[weights] = "the column of weights"
    elif weights is not None and len(weights) != len(rows):
        problem = f"{count_of(len(weights), 'weight')} for {count_of(len(rows), 'row')}"
        mistakes.append(Mistake("weights", "weights", problem, "give one for each row"))
    if label is not None and label not in rows.columns:
        mistakes.append(_no_column(rows, label, "label"))
    elif label is not None:
        mistakes += label_mistakes(label, rows.columns[label], taken)
    if unknown not in get_args(Unknown):
        problem = f"there is no way {unknown!r} to treat rows that do not fit"
        mistakes.append(Mistake("unknown", "unknown", problem, suggest(unknown, get_args(Unknown))))
    if mistakes:
        raise RequestError(mistakes)


def _no_column(rows: Table, name: str, where: str) -> Mistake:
    """That a column is not there; most often only its letters' case is another."""
    same = [each for each in rows.names if each.casefold() == name.casefold()]
    remedy = f"did you mean {same[0]!r}?" if same else suggest(name, rows.names)
    return Mistake("missing-column", where, f"{rows.name} has no column {name!r}", remedy)


def _is_derived(schema: Schema, name: str) -> bool:
    """Whether a column may be left out: it is computed."""
    return any(tie.derived and schema.names[tie.follower] == name for tie in schema.ties)


def _weights(column: Column) -> tuple[NDArray[np.float64], list[Misfit]]:
    numbers = [number_of(value) for value in (*column.values, None)]
    known = np.array([math.nan if n is None or n < 0 else n for n in numbers], dtype=float)
    weights = known[column.codes]
    wrong = np.flatnonzero(np.isnan(weights))
    misfits = [_misfit("weights", BAD_WEIGHT, wrong, column)] if len(wrong) else []
    return np.nan_to_num(weights), misfits


# Encoding -----------------------------------------------------------------------------------
def _encode(
    rows: Table, schema: Schema, *, keep: bool
) -> tuple[Schema, NDArray[Any], list[Misfit]]:
    """The codes of all rows, 0 where a value does not fit, and what does not fit.

    The schema has the values to `keep` that it did not list. What is no value of such a kind, is
    missing where it may not be, or breaks a constraint still does not fit.
    """
    codes = np.zeros((len(rows), len(schema)), dtype=np.int64, order="F")
    fits = np.ones(len(rows), dtype=bool)
    misfits: list[Misfit] = []
    extra: dict[str, tuple[Value, ...]] = {}
    for position, characteristic in enumerate(schema):
        if characteristic.name not in rows.columns:
            if isinstance(characteristic, Dealt):
                codes[:, position] = np.arange(len(rows)) % characteristic.size
            continue  # else it is derived
        column = rows.columns[characteristic.name]
        if characteristic.is_open:
            known, extra[characteristic.name] = _encode_open(characteristic, column, rows.is_text)
            codes[:, position] = known[column.codes]
            continue
        encoded = encode_values(characteristic, column.values, keep=keep)
        codes[:, position] = np.maximum(encoded.codes, 0)[column.codes]
        extra[characteristic.name] = encoded.extra
        for reason, places in encoded.misfits.items():
            marked = np.zeros(len(encoded.codes), dtype=bool)
            marked[places] = True
            found = np.flatnonzero(marked[column.codes])
            if len(found):
                fits[found] = False
                misfits.append(_misfit(characteristic.name, reason, found, column))
    if any(extra.values()):
        schema = schema.with_extra(extra)
    codes = codes.astype(schema.dtype, copy=False)
    computed = [tie for tie in schema.ties if schema.names[tie.follower] not in rows.columns]
    rewrite(computed, codes)
    for tie in computed:
        unknown = np.flatnonzero(fits & (tie.levels(codes) == OWN))
        if len(unknown):
            fits[unknown] = False
            levels = {leader: tie.own_level(codes, leader)[unknown] for leader in tie.leaders}
            leader = next(leader for leader, own in levels.items() if (own == OWN).any())
            column = rows.columns[schema.names[leader]]
            misfits.append(_misfit(schema.names[tie.follower], UNDERIVED, unknown, column))
    for constraint in schema.constraints:
        by_name = {n: codes[:, schema.column_by_name[n]] for n in constraint.variables}
        broken = np.flatnonzero(fits & ~constraint.holds(by_name))
        if len(broken):
            examples = tuple(schema.decode_row(codes[row]) for row in broken[:EXAMPLES])
            shown = tuple({n: each[n] for n in constraint.variables} for each in examples)
            misfits.append(Misfit(constraint.name, BREAKS, broken, shown))
    return schema, codes, misfits


def _encode_open(
    each: Characteristic, column: Column, is_text: bool
) -> tuple[NDArray[np.int64], tuple[Value, ...]]:
    """The codes of a column's values, and of nothing, and what they mean."""
    numbers: dict[tuple[type, Value], int] = {}
    nothing, first = each.missing_code, each.first_extra
    codes = [
        nothing if value is None else numbers.setdefault((type(value), value), first + len(numbers))
        for value in [*typed_values(column, is_text=is_text), None]
    ]
    return np.array(codes, dtype=np.int64), tuple(value for _, value in numbers)


def _kept(schema: Schema, codes: NDArray[Any], used: NDArray[Any]) -> list[dict[str, Any]]:
    """The values of used rows that the schema does not list, and how many have them.

    Numbers in the range that are only off its steps stand apart.
    """
    facts: list[dict[str, Any]] = []
    for column, each in enumerate(schema):
        own = codes[used, column] if each.extra and not each.is_open else codes[:0, column]
        found, counts = np.unique(own[own >= each.first_extra], return_counts=True)
        between = _between_steps(each, found)
        for chosen, mark in ((~between, {}), (between, {"between_steps": True})):
            if chosen.any():
                examples = [_plain(each.value(code)) for code in found[chosen][:EXAMPLES].tolist()]
                rows = int(counts[chosen].sum())
                facts.append({"name": each.name, "rows": rows, "values": examples, **mark})
    return facts


def _between_steps(each: Characteristic, codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of these values, none of which is on a step, are within the range."""
    if not isinstance(each, Integers | Reals):
        return np.zeros(len(codes), dtype=bool)
    numbers = each.decode(codes).astype(float)
    within: NDArray[np.bool_] = (each.min <= numbers) & (numbers <= each.max)
    return within


# Saying it ----------------------------------------------------------------------------------
def _misfit(where: str, reason: str, rows: NDArray[np.int64], column: Column) -> Misfit:
    first = [_plain(column[row]) for row in rows[:1_000]]
    values = tuple(first[:EXAMPLES])
    return Misfit(where, reason, rows, values, tuple(first.count(v) >= SHARED for v in values))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _facts(
    rows: Table,
    schema: Schema,
    misfits: Sequence[Misfit],
    weights: Any,
    unknown: str,
    label: str | None,
) -> dict[str, Any]:
    known = {*columns_read(schema, weights, label)}
    key = "row" if rows.lines is None else "line"
    facts: dict[str, Any] = {
        "file": rows.name,
        "rows": len(rows),
        "unknown": unknown,
        "reasons": [
            {
                "where": each.where,
                "reason": each.reason,
                "rows": len(each.rows),
                "examples": [
                    {key: rows.place(int(row)), "value": value}
                    for row, value in zip(each.rows[:EXAMPLES], each.values, strict=True)
                ],
            }
            for each in misfits
        ],
        "ignored": [name for name in rows.names if name not in known],
    }
    if weights is not None:
        facts["weights"] = weights if isinstance(weights, str) else "given"
    if label is not None:
        facts["label"] = label
    return facts


_REMEDIES = {
    UNKNOWN: 'add it to the schema, or use unknown="keep" or "drop"',
    OUTSIDE: 'widen the range, or use unknown="keep" or "drop"',
    OFF_STEP: 'use a smaller step, or use unknown="keep" or "drop"',
    UNDERIVED: 'give the rows a column of it, or use unknown="drop"',
    BREAKS: 'fix the constraint, or use unknown="drop"',
    WEIGHTLESS: 'give it a weight, or use unknown="drop"',
}


def _as_mistake(misfit: Misfit, rows: Table) -> Mistake:
    """What is wrong, with lines or rows; a value that few rows have is somebody's, and not said."""
    word = "row" if rows.lines is None else "line"
    named = zip_longest(misfit.values, misfit.shared, fillvalue=False)
    shown = ", ".join(
        f"{f'{value!r} in ' if shared else ''}{word} {rows.place(int(row)):,}"
        for row, (value, shared) in zip(misfit.rows, named, strict=False)
    )
    more = len(misfit.rows) - len(misfit.values)
    if more:
        shown += f" and {more:,} more"
    number = count_of(len(misfit.rows), "row")
    where = misfit.where
    problem = f"{misfit.reason} in {number}: {shown}"
    if misfit.reason == BREAKS:
        where, problem = f"constraint {where!r}", f"broken by {number}: {shown}"
    remedy = _REMEDIES.get(misfit.reason, 'fix the rows, or use unknown="drop"')
    return Mistake("misfit", where, problem, remedy, file=rows.name)
