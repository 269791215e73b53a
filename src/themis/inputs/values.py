"""Values of rows as codes of a characteristic: what they spell, and why some do not fit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Integers, Reals, Value, Values
from themis.inputs.numbers import NUMBER_LIMIT, is_number
from themis.inputs.tables import Nested

Floats = NDArray[np.float64]

EXACT_FLOATS = 2**50  # multiples of a step below so many are computed without rounding

NO_VALUE, UNKNOWN, NO_NUMBER = "missing value", "unknown value", "not a number"
OUTSIDE, OFF_STEP, WEIGHTLESS = "out of range", "off step", "weight 0 in the schema"

MISSING_TEXTS = frozenset({"", "na", "n/a", "nan", "null", "?"})


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
    exact = _are_exact(characteristic, numbers)
    codes = np.full(len(numbers), -1, dtype=np.int64)
    codes[inside & exact] = guess[inside & exact]
    found = np.flatnonzero(codes >= 0)
    codes[found[characteristic.column(codes[found]) != numbers[found]]] = -1
    for place in np.flatnonzero(~exact & ~np.isnan(numbers)).tolist():  # as it is written
        code = characteristic.encode(number_of(values[place]))
        codes[place] = -1 if code is None else code
    return codes


def _are_exact(characteristic: Characteristic, numbers: Floats) -> NDArray[np.bool_]:
    """Which numbers are computed with as they are written; NaN is none."""
    assert isinstance(characteristic, Integers | Reals)
    with np.errstate(invalid="ignore", over="ignore"):
        exact: NDArray[np.bool_] = np.abs(numbers) * 10.0**characteristic.digits < EXACT_FLOATS
    return exact


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


def spellings(value: Any) -> Iterator[Any]:
    """A value, and all that it may be another way to write of: 1 of "1", true of "True"."""
    if value is None:
        yield ""
        return
    yield value
    if isinstance(value, str):
        text = value.strip()
        yield text
        if (truth := truth_of(text)) is not None:
            yield truth
        elif (number := number_of(text)) is not None:
            yield number
    elif isinstance(value, bool):
        yield from (str(value), str(value).lower())
    elif is_number(value):
        yield str(value)
        if float(value).is_integer():
            yield str(int(value))


def number_of(value: Any) -> int | float | None:
    """The finite number that a value is or spells, if it does."""
    if is_number(value):
        number: int | float = value
        return number
    if not isinstance(value, str):
        return None
    for kind in (int, float):
        try:
            number = kind(value.strip().replace("_", " "))
        except ValueError:
            continue
        if is_number(number):
            return number
    return None


# As almost all are written. A loop over a million texts that looks at each takes seconds.
_PLAIN_NUMBER = r"(?:-(?!0\n))?(?:0|[1-9]\d{0,14})(?:\.\d{1,20})?(?:e[+-]?\d\d?)?\n"
_PLAIN_NUMBERS = re.compile(rf"(?:{_PLAIN_NUMBER})++", re.ASCII)


def plain_numbers(values: Sequence[Any]) -> NDArray[Any] | None:
    """The numbers that these are or spell, whole ones if all are; None if each is to be read."""
    kinds = {*map(type, values)}
    if kinds <= {int, float}:
        numbers = np.array(values)
        whole = numbers.dtype == int and (np.abs(numbers) <= NUMBER_LIMIT).all()
        return numbers if whole or numbers.dtype == float else None
    text = "\n".join([*values, ""]) if kinds == {str} else ""
    if not _PLAIN_NUMBERS.fullmatch(text):
        return None
    return np.array([*map(float if "." in text or "e" in text else int, values)])


def floats_of(values: Sequence[Any]) -> Floats:
    """The finite number that each value is or spells, NaN where it is none."""
    numbers = plain_numbers(values)
    if numbers is None:
        numbers = np.full(len(values), math.nan)
        there = np.flatnonzero(~are_missing(values)).tolist()
        found = [values[place] for place in there]
        plain = plain_numbers(found)
        read = [number_of(value) for value in found] if plain is None else plain
        numbers[there] = np.array(read, dtype=float)
    return np.where(np.isfinite(numbers), numbers, math.nan)


def truth_of(text: str) -> bool | None:
    """The truth value that a text spells, if it does."""
    return {"true": True, "false": False}.get(text.strip().lower())


def favourable_text(values: Iterable[Value]) -> str:
    """What counts as favourable, whatever the order and the type of truth values."""
    texts = (str(each).lower() if isinstance(each, bool) else str(each) for each in values)
    return ", ".join(sorted({*texts}))


def is_missing(value: Any) -> bool:
    """Whether this stands for nothing."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING_TEXTS
    return value is None or bool(value != value)


def are_missing(values: Sequence[Any]) -> NDArray[np.bool_]:
    """Which values stand for nothing."""
    if {*map(type, values)} == {str}:  # most often, and then quickly
        trimmed = map(str.lower, map(str.strip, values))
        return np.fromiter(map(MISSING_TEXTS.__contains__, trimmed), bool, len(values))
    return np.fromiter(map(is_missing, values), bool, len(values))
