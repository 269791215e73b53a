"""What the columns of rows hold: their types, their values, and how often each occurs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.inputs.numbers import NUMBER_LIMIT, is_whole
from themis.inputs.tables import Column, Nested
from themis.inputs.values import are_missing, number_of, plain_numbers, truth_of

Kind = Literal["boolean", "integer", "real", "text", "mixed", "nested"]

MOST_REAL = float(NUMBER_LIMIT**4)  # larger ones are taken as texts
MOST_SORTED = 10_000  # further texts stay in the order of the rows: to sort them takes long
FINE_PLACES = 9  # decimal places up to which a step is looked for

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
        for unit in (10**places for places in range(FINE_PLACES + 1)):
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
    if len(pairs) <= MOST_SORTED:
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
