"""Tables of rows by encoded columns, and those that a caller holds in memory.

A column is its distinct values, and for each row the number of its value. So what is asked of the
values is asked once per value and not once per row, and a million rows are small. Text of a CSV
stays text: the schema knows what it means.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError

MISSING = -1


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


@dataclass(frozen=True)
class Table:
    """Rows by columns; of a CSV file all values are texts, as they are written."""

    columns: Mapping[str, Column]
    length: int
    name: str = "the table"  # of the file, for messages
    is_text: bool = False  # whether the file knows no types
    lines: NDArray[Any] | None = None  # where each row begins in its file, if it has lines
    names: tuple[str, ...] = ()  # of all columns of the file, also of those that were not wanted
    is_cut: bool = False  # whether the file has more rows

    def __len__(self) -> int:
        return self.length

    def place(self, row: int) -> int:
        """Where a row is found: its line in the file, or its number, from 1."""
        return row + 1 if self.lines is None else int(self.lines[row])

    def part(self, rows: Sequence[int]) -> Table:
        """Only these rows."""
        chosen = {name: column.part(rows) for name, column in self.columns.items()}
        return Table(chosen, len(rows), self.name, self.is_text, names=self.names)

    def first(self, most: int) -> Table:
        """The first rows; it is told if there are more."""
        return replace(self.part(range(most)), is_cut=True) if self.length > most else self


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


# Tables in memory ---------------------------------------------------------------------------
def table_of(given: Any) -> Table:
    """The rows of a table of pandas, polars or Arrow, of columns, or of dictionaries."""
    columns = {str(name): column_of(values) for name, values in _columns_of(given).items()}
    lengths = {len(each) for each in columns.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name} {len(each):,}" for name, each in columns.items())
        raise _no_rows(f"the columns differ in length: {sizes}", "give each one value per person")
    if not lengths or lengths == {0}:
        raise _no_rows("there are no rows", "give a row for each person")
    return Table(columns, lengths.pop(), names=tuple(columns))


def _columns_of(given: Any) -> Mapping[Any, Any]:
    if hasattr(given, "collect") and not hasattr(given, "iloc"):  # a lazy frame of polars
        given = given.collect()
    if isinstance(given, Mapping):
        return given
    if hasattr(given, "__arrow_c_stream__") and not hasattr(given, "columns"):
        import pyarrow

        given = pyarrow.table(given)
    if hasattr(given, "column_names"):  # Arrow
        return {name: given.column(name) for name in given.column_names}
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):  # pandas, polars
        return {name: given[name] for name in given.columns}
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | np.ndarray):
        records = list(given)
        if all(isinstance(each, Mapping) for each in records):
            names = dict.fromkeys(name for record in records for name in record)
            return {name: [record.get(name) for record in records] for name in names}
    raise _no_rows(
        f"{type(given).__name__} can't be read as rows",
        "give a table of pandas, polars or Arrow, a list of dictionaries, or a path",
    )


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


def _no_rows(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", "rows", problem, remedy)])
