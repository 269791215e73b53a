"""Rows as codes of a schema: what their values spell, and what does not fit, where and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, count_of
from themis.inputs.characteristics import OWN, Characteristic, Integers, Reals, Value, Values
from themis.inputs.columns import (
    SHARED,
    Column,
    Floats,
    Nested,
    floats_of,
    is_missing,
    number_of,
    spellings,
    typed_values,
)
from themis.inputs.documents import Dealt
from themis.inputs.following import rewrite
from themis.inputs.numbers import is_number
from themis.inputs.schema import Schema
from themis.inputs.tables import Table

EXAMPLES = 5  # rows named for each reason
NO_VALUE, UNKNOWN, NO_NUMBER = "missing value", "unknown value", "not a number"
OUTSIDE, OFF_STEP, WEIGHTLESS = "out of range", "off step", "weight 0 in the schema"
UNDERIVED, BREAKS = "nothing to derive it from", "breaks the constraint"


@dataclass(frozen=True)
class Misfit:
    """Rows that do not fit the schema for one reason."""

    where: str  # the characteristic, or the name of the constraint
    reason: str
    rows: NDArray[np.int64]
    values: tuple[Any, ...]  # of the first few rows
    shared: tuple[bool, ...] = ()  # which of these so many rows have that one names nobody


@dataclass(frozen=True)
class EncodedValues:
    """Values as codes of a characteristic, −1 where one has none; the last code is of no value."""

    codes: NDArray[np.int64]
    extra: tuple[Value, ...]  # values that are kept besides those of the characteristic
    misfits: dict[str, list[int]]  # for each reason: the places of the values without a code


def encode_values(
    characteristic: Characteristic, values: Sequence[Any], *, keep: bool = False
) -> EncodedValues:
    """The codes of these values, and of nothing; those that it lacks get further ones to `keep`.

    What stands for nothing is a missing value, if there may be one.
    """
    values = [*values, None]
    numbers = None
    if not isinstance(characteristic, Values):
        numbers = np.append(floats_of(values[:-1]), math.nan)
    codes = _codes(characteristic, values, numbers)
    weightless = np.zeros(len(codes), dtype=bool)
    if characteristic.value_weights is not None:
        listed = (codes >= 0) & (codes < characteristic.size)
        weightless = listed & (characteristic.value_weights[np.where(listed, codes, 0)] == 0)
        codes[weightless] = -1
    behind = enumerate(characteristic.extra, characteristic.first_extra)
    extra = {each: code for code, each in behind}
    misfits: dict[str, list[int]] = {}
    for place in np.flatnonzero(codes < 0).tolist():
        value = values[place]
        number = None if numbers is None else number_of(value)
        if characteristic.missing is not None and is_missing(value):
            codes[place] = characteristic.missing_code
            continue
        reason = WEIGHTLESS if weightless[place] else _reason(characteristic, value, number)
        kept_as = _kept(characteristic, value, number) if reason in _KEPT else None
        if kept_as in extra:
            codes[place] = extra[kept_as]
        elif keep and kept_as is not None:
            codes[place] = extra[kept_as] = characteristic.first_extra + len(extra)
        else:
            misfits.setdefault(reason, []).append(place)
    return EncodedValues(codes, tuple(extra), misfits)


_KEPT = (UNKNOWN, OUTSIDE, OFF_STEP)


def _codes(
    characteristic: Characteristic, values: Sequence[Any], numbers: Floats | None
) -> NDArray[np.int64]:
    """The codes of these values, −1 where they have none."""
    if numbers is not None:
        return _range_codes(characteristic, values, numbers)

    def code(value: Any) -> int:
        found = (characteristic.encode(each) for each in spellings(value))
        return next((each for each in found if each is not None), -1)

    return np.fromiter(map(code, values), np.int64, len(values))


def _range_codes(
    characteristic: Characteristic, values: Sequence[Any], numbers: Floats
) -> NDArray[np.int64]:
    """The codes of all numbers at once; where rounding could decide, one by one."""
    assert isinstance(characteristic, Integers | Reals)
    with np.errstate(invalid="ignore", over="ignore"):
        guess = np.rint((numbers - characteristic.min) / (characteristic.step or 1))
        inside = (guess >= 0) & (guess < characteristic.size)
        # Fewer multiples of a step are computed without rounding; NaN is none.
        exact = np.abs(numbers) * 10.0**characteristic.digits < 2**50
    codes = np.full(len(numbers), -1, dtype=np.int64)
    codes[inside & exact] = guess[inside & exact]
    found = np.flatnonzero(codes >= 0)
    codes[found[characteristic.column(codes[found]) != numbers[found]]] = -1
    for place in np.flatnonzero(~exact & ~np.isnan(numbers)).tolist():  # as it is written
        code = characteristic.encode(number_of(values[place]))
        codes[place] = -1 if code is None else code
    return codes


def _reason(characteristic: Characteristic, value: Any, number: float | None) -> str:
    if isinstance(characteristic, Integers | Reals) and number is not None:
        return OFF_STEP if characteristic.min <= number <= characteristic.max else OUTSIDE
    if is_missing(value):
        return NO_VALUE
    return UNKNOWN if isinstance(characteristic, Values) else NO_NUMBER


def _kept(characteristic: Characteristic, value: Any, number: float | None) -> Value:
    """A value of a row that is none of the characteristic's, as it is run; None: it can't be."""
    if number is not None:
        return _number(characteristic, number)
    if isinstance(value, Nested) or characteristic.boolean:
        return None
    if characteristic.numeric:
        return number_of(value)
    if isinstance(value, str):
        return value.strip() or None
    return value if isinstance(value, bool) or is_number(value) else None


def _number(characteristic: Characteristic, number: float) -> int | float:
    whole = not isinstance(characteristic, Reals) and float(number).is_integer()
    return int(number) if whole else float(number)


# Rows ---------------------------------------------------------------------------------------
def encode_rows(
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
                misfits.append(misfit_of(characteristic.name, reason, found, column))
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
            misfits.append(misfit_of(schema.names[tie.follower], UNDERIVED, unknown, column))
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


# Saying it ----------------------------------------------------------------------------------
def misfit_of(where: str, reason: str, rows: NDArray[np.int64], column: Column) -> Misfit:
    first = [plain_value(column[row]) for row in rows[:1_000]]
    values = tuple(first[:EXAMPLES])
    return Misfit(where, reason, rows, values, tuple(first.count(v) >= SHARED for v in values))


def plain_value(value: Any) -> Any:
    """A value as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


_REMEDIES = {
    UNKNOWN: 'add it to the schema, or use unknown="keep" or "drop"',
    OUTSIDE: 'widen the range, or use unknown="keep" or "drop"',
    OFF_STEP: 'use a smaller step, or use unknown="keep" or "drop"',
    UNDERIVED: 'give the rows a column of it, or use unknown="drop"',
    BREAKS: 'fix the constraint, or use unknown="drop"',
    WEIGHTLESS: 'give it a weight, or use unknown="drop"',
}


def mistake_of(misfit: Misfit, rows: Table) -> Mistake:
    """What is wrong, with lines or rows; a value that few rows have is somebody's, and not said."""
    named = zip_longest(misfit.values, misfit.shared, fillvalue=False)
    shown = ", ".join(
        f"{f'{value!r} in ' if shared else ''}{rows.spelled_place(int(row))}"
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
