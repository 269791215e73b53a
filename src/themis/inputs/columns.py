"""What the columns of rows hold: their types, their values, and how often each occurs.

Rows come in pieces, and what is found does not depend on how large these are. Of a column with very
many different values, the kind, the ends and the step are those of all rows; how often values
occur is taken from a sample of the rows, so that the memory does not grow with the file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.inputs.numbers import NUMBER_LIMIT, is_whole
from themis.inputs.row_files import Column, Table, restore_value
from themis.inputs.rows import is_missing, number_of, truth_of

Kind = Literal["boolean", "integer", "real", "text", "mixed", "nested"]

HELD = 2**20  # values that are held at most, of all columns together
LEAST_HELD = 256  # and of each column at least
FINE_PLACES = 9  # decimal places up to which a step is looked for
UNITS = 10**FINE_PLACES

_CODE = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass
class Facts:
    """What holds for all values of a column that were seen; their order does not matter."""

    rows: int = 0  # with a value
    missing: int = 0
    missing_texts: dict[str, None] = field(default_factory=dict)  # what was taken for missing
    nested: bool = False  # some values are lists or objects
    leading_zeros: bool = False
    low: Any = None  # of numbers, as far as there are no others
    high: Any = None
    spacing: int = 0  # the largest step, in 1 / UNITS, that leads from each number to the others
    too_fine: bool = False  # to look for a step
    _fits: dict[Kind, bool] = field(
        default_factory=lambda: dict.fromkeys(("boolean", "integer", "real", "text"), True)
    )
    _first: int | None = None  # a number, in 1 / UNITS

    @property
    def kind(self) -> Kind:
        """The narrowest kind that all values are of."""
        kinds = (kind for kind, fits in self._fits.items() if fits)
        return "nested" if self.nested else next(kinds, "mixed")

    def add(self, values: Sequence[Any], counts: Iterable[int], *, is_text: bool) -> None:
        """Take notice of these values; those of a file without types are read off the texts."""
        numbers = self._plain_numbers(values) if is_text and self._fits["real"] else None
        if numbers is not None:
            self.rows += sum(counts)
            self._fits["boolean"] = False
            self._fits["integer"] &= numbers.whole
            self._add_range(numbers.low, numbers.high)
            self._add_spacing(numbers.units)
            return
        kept = []
        for value, count in zip(values, counts, strict=True):
            if is_nothing(value, is_text=is_text):
                self.missing += count
                self.missing_texts[str(value)] = None
            else:
                self.rows += count
                kept.append(value)
        self._add_kept(kept, is_text=is_text)

    def _add_kept(self, values: list[Any], *, is_text: bool) -> None:
        read = [_read(value) for value in values] if is_text else values
        self.nested |= any(isinstance(value, list | dict) for value in values)
        self.leading_zeros |= any(isinstance(v, str) and _CODE.fullmatch(v) for v in values)
        self._fits = {
            "boolean": self._fits["boolean"] and all(isinstance(v, bool) for v in read),
            "integer": self._fits["integer"] and all(is_whole(value) for value in read),
            "real": self._fits["real"] and all(_is_real(value) for value in read),
            "text": self._fits["text"] and all(isinstance(value, str) for value in values),
        }
        if self._fits["real"] and read:
            self._add_range(min(read), max(read))
            exact = as_kind("real", read)
            self.too_fine |= any(int(v.as_tuple().exponent) < -FINE_PLACES for v in exact)
            if not self.too_fine:
                self._add_spacing([int(value.scaleb(FINE_PLACES)) for value in exact])

    def _plain_numbers(self, texts: Sequence[str]) -> _PlainNumbers | None:
        lines = "\n".join([*texts, ""])
        if texts and _PLAIN_INTEGERS.fullmatch(lines):
            return _PlainNumbers.of_integers(texts)
        if texts and _PLAIN_DECIMALS.fullmatch(lines):
            return _PlainNumbers.of_decimals(texts)
        return None

    def _add_range(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def _add_spacing(self, units: Sequence[int]) -> None:
        self._first = units[0] if self._first is None else self._first
        self.spacing = math.gcd(self.spacing, *(each - self._first for each in units))


_PLAIN_INTEGERS = re.compile(r"(?:-?(?:0|[1-9]\d{0,17})\n)*+", re.ASCII)
_PLAIN_DECIMALS = re.compile(r"(?:-?(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?\n)*+", re.ASCII)


@dataclass(frozen=True)
class _PlainNumbers:
    """Numbers that are written as almost all are; they are read all at once."""

    low: Any
    high: Any
    units: list[int]  # numbers, in 1 / UNITS, with the same spacing
    whole: bool

    @classmethod
    def of_integers(cls, texts: Sequence[str]) -> _PlainNumbers:
        numbers = np.array(list(map(int, texts)), dtype=np.int64)
        return cls(int(numbers.min()), int(numbers.max()), _corners(numbers, UNITS), whole=True)

    @classmethod
    def of_decimals(cls, texts: Sequence[str]) -> _PlainNumbers:
        numbers = np.array(list(map(float, texts)))  # up to 15 digits: without any rounding
        low, high = (Decimal(texts[int(place)]) for place in (numbers.argmin(), numbers.argmax()))
        millionths = np.rint(numbers * 1e6).astype(np.int64)
        return cls(low, high, _corners(millionths, UNITS // 10**6), whole=False)


def _corners(numbers: NDArray[np.int64], scale: int) -> list[int]:
    """Two numbers with the same spacing as all of these."""
    first = int(numbers[0])
    return [first * scale, (first + int(np.gcd.reduce(numbers - first))) * scale]


@dataclass(frozen=True)
class Typed:
    """The values of a column in their order, how often each occurs, and what was found odd.

    Where there are more than `most` different ones, these are the values of a sample of the rows.
    """

    kind: Kind
    values: list[Any]  # sorted; of reals: Decimal
    counts: list[int]
    facts: Facts = field(default_factory=Facts)  # of all rows
    most: int | None = None

    @property
    def is_unique(self) -> bool:
        """Whether no value comes twice; of a sample, whether none does there."""
        return len(self.values) == sum(self.counts)

    @property
    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest number."""
        low, high = as_kind(self.kind, [self.facts.low, self.facts.high])
        return low, high

    @property
    def spacing(self) -> Fraction | None:
        """The largest step that leads from each number to the others; None where it is too fine."""
        return None if self.facts.too_fine else Fraction(self.facts.spacing, UNITS)

    @property
    def number(self) -> str:
        """How many different values there are."""
        return f"{len(self.values):,}" if self.most is None else f"more than {self.most:,}"


def type_column(column: Column, *, is_text: bool) -> Typed:
    """The column with types; those of a file without types are read off the texts."""
    facts = Facts(missing=column.missing)
    counts = column.counts().tolist()
    facts.add(column.values, counts, is_text=is_text)
    return _typed(facts, column.values, counts, is_text=is_text)


def typed_values(values: Any) -> Typed:
    """A column in memory with types: None or NaN where nothing is there."""
    plain = values.tolist()
    try:
        counts = Counter(value for value in plain if value is not None and value == value)
    except TypeError:  # lists or dictionaries
        return Typed("nested", [], [])
    whole = counts and all(isinstance(v, float) and v.is_integer() for v in counts)
    missing = len(plain) - counts.total()
    if whole and missing:  # as pandas holds whole numbers where some are missing
        counts = Counter({int(value): count for value, count in counts.items()})
    facts = Facts(missing=missing)
    facts.add(list(counts), counts.values(), is_text=False)
    return _typed(facts, list(counts), list(counts.values()), is_text=False)


def _typed(
    facts: Facts,
    values: Sequence[Any],
    counts: Sequence[int],
    *,
    is_text: bool,
    most: int | None = None,
) -> Typed:
    kind = facts.kind
    if kind == "nested":
        return Typed(kind, [], [])
    natural = kind in ("text", "mixed")
    there = [not is_nothing(value, is_text=is_text) for value in values]
    kept = list(compress(values, there))
    read = as_kind(kind, [_read(value) for value in kept] if is_text and not natural else kept)
    merged: Counter[Any] = Counter()
    for value, count in zip(read, compress(counts, there), strict=True):
        merged[(type(value), value)] += count  # true is not 1
    pairs = sorted(merged.items(), key=lambda pair: _natural(pair[0][1]) if natural else pair[0][1])
    ordered = [value for (_, value), _ in pairs]
    return Typed(kind, ordered, [count for _, count in pairs], facts, most)


def is_nothing(value: Any, *, is_text: bool) -> bool:
    """Whether a value stands for a missing one."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return is_text and is_missing(value)


def as_kind(kind: Kind, values: list[Any]) -> list[Any]:
    """Values that were read, as a column of this kind has them."""
    if kind != "real":
        return values
    return [value if isinstance(value, Decimal) else Decimal(repr(value)) for value in values]


def _read(text: str) -> bool | int | Decimal | str:
    """What a text says in a file without types; one with leading zeros is no number."""
    text = text.strip()
    number = None if _CODE.fullmatch(text) else number_of(text)
    if isinstance(number, float):
        return Decimal(text)
    truth = truth_of(text)
    return truth if truth is not None else text if number is None else number


def _is_real(value: Any) -> bool:
    if isinstance(value, bool | str | list | dict):
        return False
    return isinstance(value, Decimal) or abs(value) < NUMBER_LIMIT**4


def _natural(value: Any) -> tuple[Any, ...]:
    """Texts in the order people expect: numbers inside of them count as numbers."""
    parts = re.split(r"(\d{1,15})", str(value), flags=re.ASCII)
    places = [  # every second part is a number
        (1, int(part), "") if place % 2 else (0, 0, part.lower())
        for place, part in enumerate(parts)
    ]
    return (isinstance(value, str), places, str(value))


# Piece by piece -----------------------------------------------------------------------------
class Tally:
    """Counts the values of all columns, piece by piece, in bounded memory."""

    def __init__(self) -> None:
        self.length = 0
        self._is_text = False
        self._rows = _RowSample()
        self._columns: dict[str, _ColumnTally] = {}

    def add(self, piece: Table) -> None:
        """Count the rows of a piece."""
        self._is_text = piece.is_text
        for name in piece.names:
            if name not in self._columns:
                self._columns[name] = _ColumnTally(self.length, [None] * len(self._rows))
        chosen = self._rows.choose(self.length, piece.length)
        nothing = Column([], np.full(piece.length, -1, np.int8))
        for name, tally in self._columns.items():
            tally.add(piece.columns.get(name, nothing), chosen, is_text=self._is_text)
        self.length += piece.length
        kept = self._rows.thin(self._most)
        for tally in self._columns.values():
            tally.shorten(kept, self._most, is_text=self._is_text)

    def typed(self) -> dict[str, Typed]:
        """What was found in each column."""
        most, is_text = self._most, self._is_text
        return {name: each.typed(most, is_text=is_text) for name, each in self._columns.items()}

    @property
    def _most(self) -> int:
        """How many values of a column are held: it depends on the columns of the file alone."""
        return max(HELD // max(len(self._columns), 1), LEAST_HELD)


@dataclass
class _ColumnTally:
    """The values of one column, how often each occurs; if they become too many, only facts."""

    missing: int
    sample: list[Any]  # the values of the sampled rows, None where one is missing
    counts: dict[Any, int] | None = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)  # once there are too many values

    def add(self, column: Column, chosen: NDArray[np.int64], *, is_text: bool) -> None:
        values, counts = column.values, column.counts().tolist()
        self.missing += column.missing
        known = [*values, None]
        self.sample += [known[code] for code in column.codes[chosen].tolist()]
        if self.counts is None:
            self.facts.add(_restored(values, is_text=is_text), counts, is_text=is_text)
            return
        for value, count in zip(values, counts, strict=True):
            self.counts[value] = self.counts.get(value, 0) + count

    def shorten(self, kept: Sequence[bool] | None, most: int, *, is_text: bool) -> None:
        """Keep these rows of the sample, and no more than so many values."""
        if kept is not None:
            self.sample = list(compress(self.sample, kept))
        if self.counts is not None and len(self.counts) > most:
            values = _restored(self.counts, is_text=is_text)
            self.facts.add(values, self.counts.values(), is_text=is_text)
            self.counts = None

    def typed(self, most: int, *, is_text: bool) -> Typed:
        """What was found."""
        if self.counts is not None:
            values, counts = _restored(self.counts, is_text=is_text), [*self.counts.values()]
            facts = Facts(missing=self.missing)
            facts.add(values, counts, is_text=is_text)
            return _typed(facts, values, counts, is_text=is_text)
        self.facts.missing += self.missing
        seen = Counter(value for value in self.sample if value is not None)
        values, counts = _restored(seen, is_text=is_text), [*seen.values()]
        return _typed(self.facts, values, counts, is_text=is_text, most=most)


def _restored(values: Iterable[Any], *, is_text: bool) -> list[Any]:
    """What the values of pieces stand for."""
    return list(values) if is_text else [*map(restore_value, values)]


class _RowSample:
    """Which rows of a file are sampled: those whose number, well mixed, ends with enough zeros."""

    def __init__(self) -> None:
        self._zeros = 0  # at the end of the numbers of all rows that are kept
        self._mixed = np.empty(0, np.uint64)  # of these rows

    def __len__(self) -> int:
        return len(self._mixed)

    def choose(self, start: int, count: int) -> NDArray[np.int64]:
        """The places of the rows to keep, of so many that come now."""
        mixed = _mix(np.arange(start, start + count, dtype=np.uint64))
        chosen = np.flatnonzero(self._ends(mixed))
        self._mixed = np.concatenate([self._mixed, mixed[chosen]])
        return chosen

    def thin(self, most: int) -> list[bool] | None:
        """Which of the rows are still kept so that they are not too many; None: all of them."""
        kept = np.ones(len(self), dtype=bool)
        while kept.sum() > most:
            self._zeros += 1
            kept = self._ends(self._mixed)
        if kept.all():
            return None
        self._mixed = self._mixed[kept]
        return kept.tolist()

    def _ends(self, mixed: NDArray[np.uint64]) -> NDArray[np.bool_]:
        ends: NDArray[np.bool_] = mixed & np.uint64(2**self._zeros - 1) == 0
        return ends


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Other numbers, one for each, as if at random (the finaliser of SplitMix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
