"""Columns of rows, encoded: what their values spell, their types, and how often each occurs.

A column is its distinct values, and for each row the number of its value. So what is asked of the
values is asked once per value and not once per row, and a million rows are small.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.inputs.numbers import NUMBER_LIMIT, is_number, is_whole

MISSING = -1
SHARED = 5  # people who have a value or are a group, so that naming it names nobody


class Nested(str):
    """A list or an object in a cell, as JSON: it is no value of any characteristic."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column: its distinct values, and each row's number of its value."""

    values: list[Any]
    codes: NDArray[Any]  # as few bytes as do; MISSING where there is nothing

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Any:
        """The value of a row; None where there is nothing."""
        code = self.codes[row]
        return None if code == MISSING else self.values[code]

    def tolist(self) -> list[Any]:
        """The value of each row."""
        return [self[row] for row in range(len(self))]

    def part(self, rows: Sequence[int]) -> Column:
        """Only these rows, and the values that they have."""
        codes = self.codes[rows]
        used = np.unique(codes[codes != MISSING])
        numbers = np.where(codes == MISSING, MISSING, np.searchsorted(used, codes))
        return Column([self.values[code] for code in used.tolist()], numbers)

    @property
    def missing(self) -> int:
        """How many rows have nothing here."""
        return int((self.codes == MISSING).sum())

    def counts(self) -> NDArray[np.int64]:
        """How often each value occurs."""
        return np.bincount(self.codes[self.codes != MISSING], minlength=len(self.values))


class Encoder:
    """Builds a column piece by piece; its values are numbered as they first appear."""

    def __init__(self, *, are_texts: bool = False) -> None:
        nothing = "" if are_texts else None
        self._numbers: dict[Any, int] = defaultdict(count().__next__, {nothing: MISSING})
        self._are_texts = are_texts
        self._parts: list[NDArray[Any]] = []
        self._length = 0

    def add(self, cells: Sequence[Any] | Column) -> None:
        """Append these values."""
        values = cells.values if isinstance(cells, Column) else cells
        if not self._are_texts and not _PLAIN.issuperset(map(type, values)):
            values = [*map(_key, values)]
        numbers = np.fromiter(map(self._numbers.__getitem__, values), np.int32, len(values))
        if isinstance(cells, Column):
            numbers = np.append(numbers, np.int32(MISSING))[cells.codes]
        self._append(numbers)

    def pad(self, length: int) -> None:
        """Append that nothing is there, up to this length."""
        if length > self._length:
            self._append(np.full(length - self._length, MISSING, np.int8))

    def _append(self, part: NDArray[Any]) -> None:
        self._parts.append(part.astype(np.min_scalar_type(-len(self._numbers))))
        self._length += len(part)

    def column(self) -> Column:
        """The column."""
        keys = list(self._numbers)[1:]  # without what is missing
        if not self._are_texts and tuple in {*map(type, keys)}:
            keys = [key[0] if isinstance(key, tuple) else key for key in keys]
        return Column(keys, np.concatenate(self._parts) if self._parts else np.empty(0, np.int8))


_PLAIN = {str, int, type(None)}  # and no two of them are equal


def _key(value: Any) -> Any:
    """What a value is counted by, as CSV or JSON would have it; it tells true from 1."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return (value,)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | dict | tuple | set | np.ndarray):
        return (Nested(json.dumps(value, default=str)),)
    if value != value:  # NaN, of any kind
        return None
    if isinstance(value, Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    return value if isinstance(value, float) else str(value)


def column_of(values: Any) -> Column:
    """One column of any kind."""
    plain = str(getattr(values, "dtype", "")) in _NUMBERS  # of numpy: as they are, and all there
    column = _of_numbers(np.asarray(values)) if plain else _of_objects(values)
    whole = column.missing and all(type(v) is float and v.is_integer() for v in column.values)
    if whole:  # as pandas holds whole numbers where some are missing
        return Column([int(value) for value in column.values], column.codes)
    return column


_NUMBERS = {"bool", "float32", "float64"}
_NUMBERS |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _of_numbers(numbers: NDArray[Any]) -> Column:
    values, codes = np.unique(numbers, return_inverse=True)
    if len(values) and values[-1] != values[-1]:  # NaN is sorted behind all others
        values = values[:-1]
        codes = np.where(codes == len(values), MISSING, codes)
    return Column(values.tolist(), codes)


def _of_objects(values: Any) -> Column:
    nothing = np.asarray(values.isna()) if hasattr(values, "isna") else None  # pandas knows several
    for method in ("to_list", "tolist", "to_pylist"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    encoder = Encoder()
    if nothing is not None and nothing.any():
        values = [None if gone else value for value, gone in zip(values, nothing, strict=True)]
    encoder.add(list(values))
    return encoder.column()


# Types -------------------------------------------------------------------------------------
Kind = Literal["boolean", "integer", "real", "text", "mixed", "nested"]
MOST_REAL = float(NUMBER_LIMIT**4)  # larger ones are taken as texts
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Typed:
    """The values of a column in their order, how often each occurs, and what was found odd."""

    kind: Kind
    values: list[Any]  # sorted, unless they are very many texts
    counts: list[int]
    missing: int = 0  # rows without a value
    missing_texts: tuple[str, ...] = ()  # what was taken for missing
    leading_zeros: bool = False

    @property
    def rows(self) -> int:
        """How many rows have a value."""
        return sum(self.counts)

    @property
    def is_unique(self) -> bool:
        """Whether no value comes twice."""
        return len(self.values) == self.rows

    @property
    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest number."""
        return self.values[0], self.values[-1]

    @property
    def spacing(self) -> Fraction | None:
        """The largest step that leads from each number to the others; None where it is too fine."""
        if self.kind == "integer":
            return Fraction(math.gcd(*(each - self.values[0] for each in self.values)))
        numbers = np.array(self.values)
        for unit in (10**places for places in range(10)):  # a finer step is none
            units = np.rint(numbers * unit)
            if np.abs(units).max() < 2**52 and (units / unit == numbers).all():
                steps = (units - units[0]).astype(np.int64)
                return Fraction(int(np.gcd.reduce(steps)), unit)
        return None


def type_column(column: Column, *, is_text: bool) -> Typed:
    """The column with types; those of a file without types are read off the texts."""
    nothing = are_missing(column.values) if is_text else _are_infinite(column.values)
    texts = tuple(str(column.values[place]) for place in np.flatnonzero(nothing).tolist())
    there = np.flatnonzero(~nothing).tolist()
    values = [column.values[place] for place in there]
    counts = column.counts()[there]
    missing = len(column) - int(counts.sum())
    if Nested in {*map(type, values)}:
        return Typed("nested", [], [])
    kind, read = _typed(values, is_text=is_text)
    if kind in _DTYPES:
        ordered, places = np.unique(read, return_inverse=True)
        total = np.bincount(places, counts).astype(int)
        return Typed(kind, ordered.tolist(), total.tolist(), missing, texts)
    pairs = list(zip(values, counts.tolist(), strict=True))
    if len(pairs) <= 10_000:  # more stay in the order of the rows: to sort them takes long
        pairs.sort(key=lambda pair: _natural(pair[0]))
    signed = (v for v in values if isinstance(v, str) and v[:1] in ("0", "+", "-"))
    zeros = any(map(_CODE.fullmatch, signed))
    return Typed(kind, [v for v, _ in pairs], [n for _, n in pairs], missing, texts, zeros)


_DTYPES: dict[Kind, type] = {"boolean": bool, "integer": int, "real": float}


def _are_infinite(values: Sequence[Any]) -> NDArray[np.bool_]:
    odd = (isinstance(value, float) and not math.isfinite(value) for value in values)
    return np.fromiter(odd, bool, len(values))


def _typed(values: Sequence[Any], *, is_text: bool) -> tuple[Kind, Any]:
    """The kind of these values, and what they are as such: numbers as an array."""
    numbers = plain_numbers(values) if is_text or str not in map(type, values) else None
    if numbers is not None and len(values) and np.abs(numbers).max() < MOST_REAL:
        return "integer" if numbers.dtype == int else "real", numbers
    if is_text and any(isinstance(_read(value), str) for value in values):  # most often the first
        return "text", values
    read = [_read(value) for value in values] if is_text else values
    kind = _kind(read, values)
    return kind, np.array(read, _DTYPES[kind]) if kind in _DTYPES else values


def typed_values(column: Column, *, is_text: bool) -> list[Any]:
    """The values of a column in their own order, as their kind has them; None for nothing."""
    nothing = are_missing(column.values) if is_text else _are_infinite(column.values)
    there = np.flatnonzero(~nothing).tolist()
    _, typed = _typed([column.values[place] for place in there], is_text=is_text)
    result: list[Any] = [None] * len(column.values)
    known = typed.tolist() if isinstance(typed, np.ndarray) else typed
    for place, value in zip(there, known, strict=True):
        result[place] = value
    return result


def _kind(read: Sequence[Any], written: Sequence[Any]) -> Kind:
    """The narrowest kind that all values are of."""
    if all(isinstance(value, bool) for value in read):
        return "boolean"
    if all(map(is_whole, read)):
        return "integer"
    if not any(isinstance(v, bool | str) or abs(v) >= MOST_REAL for v in read):
        return "real"
    return "text" if all(isinstance(value, str) for value in written) else "mixed"


def _read(text: str) -> bool | float | str:
    """What a text says in a file without types; one with leading zeros is no number."""
    text = text.strip()
    number = None if _CODE.fullmatch(text) else number_of(text)
    truth = truth_of(text)
    return truth if truth is not None else text if number is None else number


def _natural(value: Any) -> tuple[Any, ...]:
    """Texts in the order people expect: numbers inside of them count as numbers."""
    parts = re.split(r"(\d{1,15})", str(value), flags=re.ASCII)
    places = [  # every second part is a number
        (1, int(part), "") if place % 2 else (0, 0, part.lower())
        for place, part in enumerate(parts)
    ]
    return (isinstance(value, str), places, str(value))


# Spellings ---------------------------------------------------------------------------------
Floats = NDArray[np.float64]
MISSING_TEXTS = frozenset({"", "na", "n/a", "nan", "null", "?"})


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
