"""People: the rows of a table that fit a schema, and what is known of them beside it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Characteristic, Integers, Reals, Value
from themis.inputs.columns import (
    SHARED,
    Column,
    column_of,
    floats_of,
    is_missing,
    number_of,
    type_column,
)
from themis.inputs.documents import Dealt
from themis.inputs.encoding import EXAMPLES, Misfit, encode_rows, misfit_of, mistake_of, plain_value
from themis.inputs.guesses import guess_column
from themis.inputs.keys import InputKeys, numbered, summed
from themis.inputs.schema import Schema, characteristic_from
from themis.inputs.tables import Table, table_of

BAD_WEIGHT = "weight that is no number of at least 0"
MOST_VALUES = 100  # different outcomes; with more, a column holds numbers, or else names


@dataclass(frozen=True)
class KnownOutcomes:
    """How often each distinct person has each outcome; people without one are in none of them."""

    label: str  # the column
    values: tuple[Value, ...]  # as they stand in the rows
    weights: NDArray[np.float64]  # distinct people × values
    heads: NDArray[np.float64]  # the same in people

    @property
    def is_rare(self) -> NDArray[np.bool_]:
        """For each outcome whether fewer than SHARED people have it."""
        return np.asarray(self.heads.sum(axis=0) < SHARED)

    @property
    def shared(self) -> list[Value]:
        """The outcomes that at least SHARED people have: naming one names nobody."""
        return [v for v, rare in zip(self.values, self.is_rare, strict=True) if not rare]


@dataclass(frozen=True)
class KnownNumbers:
    """Numbers that are known of given people, such as what they cost: row by row."""

    label: str
    values: NDArray[np.float64]  # of each row that has one
    person: NDArray[np.int64]  # which distinct person it is of
    weights: NDArray[np.float64]


Unknown = Literal["keep", "drop", "error"]


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
    schema, codes, misfits = encode_rows(rows, schema, keep=unknown == "keep")
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
        raise RequestError(mistake_of(each, rows) for each in misfits)
    weightless = int((fits & (weighed == 0)).sum())
    used = np.flatnonzero(fits & (weighed > 0))
    if not len(used):
        none = f"none of the {len(rows):,} rows fits"
        none = "the only row does not fit" if len(rows) == 1 else none
        reasons = (mistake_of(each, rows) for each in misfits)
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
    numbers, known = _numbers_of(label, own, weighed[used], person), None
    if len(own.values) <= MOST_VALUES:
        known = _outcomes_of(label, own, weighed[used], person, is_count=people.are_counted)
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
    computed = {schema.names[tie.follower] for tie in schema.ties if tie.derived}
    mistakes = [
        _no_column(rows, each.name, where)
        for each in schema
        if each.name not in rows.columns.keys() | computed and not isinstance(each, Dealt)
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
        mistakes += _label_mistakes(label, rows.columns[label], taken)
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


def _weights(column: Column) -> tuple[NDArray[np.float64], list[Misfit]]:
    numbers = [number_of(value) for value in (*column.values, None)]
    known = np.array([math.nan if n is None or n < 0 else n for n in numbers], dtype=float)
    weights = known[column.codes]
    wrong = np.flatnonzero(np.isnan(weights))
    misfits = [misfit_of("weights", BAD_WEIGHT, wrong, column)] if len(wrong) else []
    return np.nan_to_num(weights), misfits


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
                examples = [
                    plain_value(each.value(code)) for code in found[chosen][:EXAMPLES].tolist()
                ]
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


def _facts(
    rows: Table,
    schema: Schema,
    misfits: Sequence[Misfit],
    weights: Any,
    unknown: str,
    label: str | None,
) -> dict[str, Any]:
    known = {*columns_read(schema, weights, label)}
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
                    {rows.word: rows.place(int(row)), "value": value}
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


# What is known of them ----------------------------------------------------------------------
def _numbers_of(
    label: str, column: Column, weights: NDArray[np.float64], person: NDArray[np.int64]
) -> KnownNumbers | None:
    """The numbers of some rows; None where some values of the column are none."""
    there = [value for value in column.values if not is_missing(value)]
    numbers = floats_of(column.values)
    if not there or np.isfinite(numbers).sum() < len(there):
        return None
    own = np.append(numbers, np.nan)[column.codes]
    known = np.isfinite(own)
    return KnownNumbers(label, own[known], person[known], weights[known])


def _outcomes_of(
    label: str,
    column: Column,
    weights: NDArray[np.float64],
    person: NDArray[np.int64],
    *,
    is_count: bool,
) -> KnownOutcomes:
    """The outcomes of some rows, by the distinct people that they are of.

    With `is_count` weights are numbers of people.
    """
    there = [place for place, value in enumerate(column.values) if not is_missing(value)]
    number = np.full(len(column.values) + 1, -1)  # the last one is for nothing
    number[there] = np.arange(len(there))
    own = number[column.codes]
    known, shape = own >= 0, (int(person.max()) + 1, len(there))
    cells = person[known] * len(there) + own[known]

    def total(each: NDArray[np.float64]) -> NDArray[np.float64]:
        return summed(cells, each[known], shape[0] * shape[1]).reshape(shape)

    weighed = total(weights)
    heads = weighed if is_count else total(np.ones(len(weights)))
    return KnownOutcomes(label, tuple(column.values[t] for t in there), weighed, heads)


def _label_mistakes(label: str, column: Column, taken: dict[str, str]) -> Iterator[Mistake]:
    """What speaks against a column as outcomes; `taken` says what other columns are."""
    if label in taken:
        yield Mistake("label", "label", f"{label!r} is {taken[label]}", "name another column")
        return
    values = [value for value in column.values if not is_missing(value)]
    if not values:
        yield Mistake("label", "label", f"{label!r} has no value in any row", "name another column")
    if len(values) > MOST_VALUES and np.isnan(floats_of(values)).any():
        problem = f"{label!r} has {len(values):,} different values, more than {MOST_VALUES}"
        remedy = "name a column with the decisions that would have been right"
        yield Mistake("label", "label", problem, remedy)


# Columns that the schema lacks: people are compared by them, no subject has them --------------
FEATURE = "sensitive_feature"  # and its number: the name of one that has none, as Fairlearn has it


def with_groups(schema: Schema, rows: Table, names: Iterable[str]) -> Schema:
    """The schema with these columns of the rows that it lacks, in the role "group".

    Their values, or bins of numbers, are those of the rows; RequestError for what can be no
    characteristic, and for what the rows lack as well.
    """
    lacking = [name for name in dict.fromkeys(names) if name not in schema.column_by_name]
    if unknown := [name for name in lacking if name not in rows.columns]:
        known = [*schema.names, *(name for name in rows.names if name not in schema.names)]
        problem = "there is no characteristic {!r}, and no column of this name in the rows".format
        raise RequestError(
            Mistake("unknown-name", "against", problem(name), suggest(name, known))
            for name in unknown
        )
    groups = {name: _group(name, rows) for name in lacking}
    return schema.extended(groups) if groups else schema


def _group(name: str, rows: Table) -> Characteristic:
    typed = type_column(rows.columns[name], is_text=rows.is_text)
    guess = guess_column(name, typed, protected=True)
    if guess.left_out:
        problem = f"{name!r} makes no groups of people: {guess.left_out}"
        raise RequestError.one("no-groups", "against", problem, "name another column")
    spec = guess.spec if isinstance(guess.spec, dict) else {"values": guess.spec}
    return characteristic_from({**spec, "protected": True, "role": "group"})


def with_features(rows: Table, features: Any) -> tuple[Table, list[str]]:
    """The rows with columns that are given beside them, and the names of these.

    A series, an array, a list, a table or a mapping of columns. One that the rows have as well must
    be the same there.
    """
    found = _features(features)
    mistakes = []
    for name, column in found.items():
        if len(column) != len(rows):
            problem = f"{count_of(len(column), 'value')} for {count_of(len(rows), 'row')}"
            mistakes.append(_mistake(name, problem, "give one for each row"))
        elif name in rows.columns and rows.columns[name].tolist() != column.tolist():
            problem = "the rows have a column of this name with other values"
            mistakes.append(_mistake(name, problem, "give it another name"))
    if mistakes:
        raise RequestError(mistakes)
    columns = {**rows.columns, **found}
    return replace(rows, columns=columns, names=(*rows.names, *found)), list(found)


def _features(given: Any) -> dict[str, Column]:
    if isinstance(given, Mapping) or hasattr(given, "columns") or hasattr(given, "column_names"):
        return dict(table_of(given).columns)
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return {f"{FEATURE}_{place}": column_of(each) for place, each in enumerate(given.T)}
    name = getattr(given, "name", None)
    return {f"{FEATURE}_0" if name is None else str(name): column_of(given)}


def _mistake(name: str, problem: str, remedy: str) -> Mistake:
    return Mistake("sensitive-features", f"sensitive_features {name!r}", problem, remedy)
