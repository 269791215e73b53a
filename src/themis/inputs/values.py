"""Values of rows as codes of a characteristic: what they spell, and why some do not fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Integers, Reals, Value, Values
from themis.inputs.numbers import is_number
from themis.inputs.tables import Nested

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
    codes = np.full(len(values) + 1, -1, dtype=np.int64)
    behind = enumerate(characteristic.extra, characteristic.first_extra)
    extra = {each: code for code, each in behind}
    misfits: dict[str, list[int]] = {}
    for place, value in enumerate([*values, None]):
        number = number_of(value) if isinstance(characteristic, Integers | Reals) else None
        code = _code(characteristic, value, number)
        is_weightless = code is not None and _is_weightless(characteristic, code)
        if code is not None and not is_weightless:
            codes[place] = code
            continue
        if characteristic.missing is not None and is_missing(value):
            codes[place] = characteristic.missing_code
            continue
        reason = WEIGHTLESS if is_weightless else _reason(characteristic, value, number)
        kept_as = _kept(characteristic, value, number) if reason in _KEPT else None
        if kept_as in extra:
            codes[place] = extra[kept_as]
        elif keep and kept_as is not None:
            codes[place] = extra[kept_as] = characteristic.first_extra + len(extra)
        else:
            misfits.setdefault(reason, []).append(place)
    return EncodedValues(codes, tuple(extra), misfits)


_KEPT = (UNKNOWN, OUTSIDE, OFF_STEP)


def _code(characteristic: Characteristic, value: Any, number: float | None) -> int | None:
    """The code of a value, or of the number that it spells."""
    if isinstance(characteristic, Integers | Reals):
        return None if number is None else characteristic.encode(number)
    found = (characteristic.encode(each) for each in spellings(value))
    return next((each for each in found if each is not None), None)


def _is_weightless(characteristic: Characteristic, code: int) -> bool:
    weights = characteristic.value_weights
    return weights is not None and code < characteristic.size and bool(weights[code] == 0)


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


def floats_of(values: Sequence[Any]) -> NDArray[np.float64]:
    """The finite number that each value is or spells, NaN where it is none."""
    numbers = map(number_of, values)
    return np.array([math.nan if each is None else each for each in numbers], dtype=float)


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
    return np.fromiter(map(is_missing, values), bool, len(values))
