"""What the columns of rows hold: their types, their values, and how often each occurs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from themis.inputs.numbers import NUMBER_LIMIT, is_whole
from themis.inputs.tables import Column, Nested
from themis.inputs.values import is_missing, number_of, plain_numbers, truth_of

Kind = Literal["boolean", "integer", "real", "text", "mixed", "nested"]

FINE_PLACES = 9  # decimal places up to which a step is looked for

_CODE = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Typed:
    """The values of a column in their order, how often each occurs, and what was found odd."""

    kind: Kind
    values: list[Any]  # sorted
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
    nothing = {place for place, v in enumerate(column.values) if _is_nothing(v, is_text=is_text)}
    texts = tuple(str(column.values[place]) for place in nothing)
    there = [place for place in range(len(column.values)) if place not in nothing]
    values = [column.values[place] for place in there]
    counts = column.counts()
    missing = len(column) - int(counts[there].sum())
    if any(isinstance(value, Nested) for value in values):
        return Typed("nested", [], [])
    read: list[Any] = values
    if is_text:
        read = plain_numbers(values) or [_read(value) for value in values]
    kind = _kind(read, values)
    merged: Counter[Any] = Counter()
    typed = read if kind in ("boolean", "integer") else values
    typed = [float(value) for value in read] if kind == "real" else typed
    for value, count in zip(typed, counts[there].tolist(), strict=True):
        merged[type(value), value] += count  # true is not 1
    natural = kind in ("text", "mixed")
    pairs = sorted(merged.items(), key=lambda pair: _natural(pair[0][1]) if natural else pair[0][1])
    return Typed(
        kind,
        [value for (_, value), _ in pairs],
        [count for _, count in pairs],
        missing,
        texts,
        any(isinstance(value, str) and _CODE.fullmatch(value) for value in values),
    )


def _is_nothing(value: Any, *, is_text: bool) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return is_text and is_missing(value)


def _kind(read: Sequence[Any], written: Sequence[Any]) -> Kind:
    """The narrowest kind that all values are of."""
    if all(isinstance(value, bool) for value in read):
        return "boolean"
    if all(map(is_whole, read)):
        return "integer"
    if not any(isinstance(v, bool | str) or abs(v) >= NUMBER_LIMIT**4 for v in read):
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
