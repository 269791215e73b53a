"""What are the values of a column? Numbers, truth values, texts, and how often each occurs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from themis.inputs.numbers import NUMBER_LIMIT
from themis.inputs.row_files import Column

Kind = Literal["boolean", "integer", "real", "text", "mixed", "nested"]

MISSING_TEXTS = ("na", "n/a", "nan", "null", "?")  # in files that know no types
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Typed:
    """The values of a column in their order, how often each occurs, and what was found odd."""

    kind: Kind
    values: list[Any]  # sorted; of reals: Decimal
    counts: list[int]
    missing: int = 0
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


def type_column(column: Column, *, is_text: bool) -> Typed:
    """The column with types; those of a file without types are read off the texts."""
    counts: Counter[Any] = Counter()
    missing_texts: list[str] = []
    missing = column.missing
    for value, count in zip(column.values, column.counts().tolist(), strict=True):
        if is_text and (not value.strip() or value.strip().lower() in MISSING_TEXTS):
            missing += count
            missing_texts.append(value)
        elif isinstance(value, float) and not math.isfinite(value):
            missing += count
            missing_texts.append(str(value))
        elif isinstance(value, list | dict):
            return Typed("nested", [], [])
        else:
            counts[(type(value), value)] += count
    kind, values = _typed([value for _, value in counts], is_text=is_text)
    merged: Counter[Any] = Counter()
    for value, count in zip(values, counts.values(), strict=True):
        merged[(type(value), value)] += count  # true is not 1
    natural = kind in ("text", "mixed")
    pairs = sorted(merged.items(), key=lambda pair: _natural(pair[0][1]) if natural else pair[0][1])
    order = [value for (_, value), _ in pairs]
    return Typed(
        kind,
        order,
        [count for _, count in pairs],
        missing,
        tuple(missing_texts),
        kind == "text" and any(isinstance(v, str) and _CODE.fullmatch(v) for v in order),
    )


def _typed(values: list[Any], *, is_text: bool) -> tuple[Kind, list[Any]]:
    readers = _TEXT_READERS if is_text else _VALUE_READERS
    for kind, read in readers.items():
        found = [read(value) for value in values]
        if None not in found:
            return kind, found
    return ("text" if all(isinstance(value, str) for value in values) else "mixed"), values


def _boolean_text(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _integer_text(text: str) -> int | None:
    text = text.strip()  # of more than int() takes for blank
    return _limited(int(text)) if _INTEGER.fullmatch(text) and len(text) < 30 else None


def _real_text(text: str) -> Decimal | None:
    text = text.strip()
    if not _NUMBER.fullmatch(text) or _CODE.fullmatch(text) or len(text) > 40:
        return None
    return Decimal(text) if math.isfinite(float(text)) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: Any) -> int | None:
    return _limited(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _real(value: Any) -> Decimal | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(repr(float(value))) if is_number and abs(value) < NUMBER_LIMIT**4 else None


def _limited(number: int) -> int | None:
    return number if abs(number) <= NUMBER_LIMIT else None


_TEXT_READERS: dict[Kind, Callable[[Any], Any]] = {
    "boolean": _boolean_text,
    "integer": _integer_text,
    "real": _real_text,
}
_VALUE_READERS: dict[Kind, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "real": _real,
}


def _natural(value: Any) -> tuple[Any, ...]:
    """Texts in the order people expect: numbers inside of them count as numbers."""
    parts = re.split(r"(\d{1,15})", str(value), flags=re.ASCII)
    places = [  # every second part is a number
        (1, int(part), "") if place % 2 else (0, 0, part.lower())
        for place, part in enumerate(parts)
    ]
    return (isinstance(value, str), places, str(value))
