"""Files of rows, CSV, JSON lines and Parquet, read piece by piece into encoded columns.

A column is its distinct values, and for each row the number of its value. So what is asked of the
values is asked once per value and not once per row, and a million rows are small.
"""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError

CHUNK = 50_000  # rows of a text file that are held as texts at once
MISSING = -1
SHOWN = 5  # mistakes of a file that are reported; the rest is counted

PARQUET_START = b"PAR1"
KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Column:
    """A column: its distinct values as they first appear, and each row's number of its value."""

    values: list[Any]
    codes: NDArray[np.int32]  # MISSING where the file has nothing

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

    columns: dict[str, Column]
    length: int
    kind: str  # csv, jsonl or parquet
    lines: NDArray[np.int64] | None = None  # where each row begins in its file, if it has lines

    @property
    def is_text(self) -> bool:
        """Whether the file knows no types, so that all values are texts."""
        return self.kind == "csv"


def kind_of(path: Path) -> str | None:
    """What a file's name says it is: csv, jsonl or parquet; None where it says nothing."""
    return KINDS.get(path.suffix.lower())


def read_table(path: str | Path, *, kind: str | None = None, exact: bool = False) -> Table:
    """The rows of a file, by what its name or `kind` says it is; raises RequestError.

    In files that Themis wrote, read with `exact`, blanks around the names of columns are part of
    them, and there may be no rows.
    """
    path = Path(path)
    kind = kind or kind_of(path) or ("csv" if path.suffix.lower() == ".txt" else None)
    if kind is None:
        remedy = f"name a file that ends in {', '.join(KINDS)} or .txt"
        raise _mistake(path, "is of no kind that can be read", remedy)
    try:
        table = _read(path, kind, exact)
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "check its name") from None
    except UnicodeDecodeError:
        line = None if kind == "parquet" else _undecodable_line(path)
        raise _mistake(path, "is not UTF-8 text", "save it as UTF-8", line) from None
    except OSError as error:
        raise _mistake(path, f"can't be read: {error.strerror or error}", "check it") from None
    if not table.columns or not (table.length or exact):
        raise _mistake(path, "holds no rows", "name a file with a row for each person")
    return table


def _read(path: Path, kind: str, exact: bool) -> Table:
    if kind == "parquet":
        return _read_parquet(path)
    with path.open(encoding="utf-8-sig", newline="") as text:
        return _read_csv(path, text, exact) if kind == "csv" else _read_json_lines(path, text)


class Encoder:
    """Builds a column value by value, in chunks."""

    def __init__(self, missing: str | None = None) -> None:
        self._numbers: dict[Any, int] = defaultdict(count().__next__, {missing: MISSING})
        self._parts: list[NDArray[np.int32]] = []

    def add(self, values: Sequence[Any]) -> None:
        """Append these values."""
        part = np.fromiter(map(self._numbers.__getitem__, values), np.int32, len(values))
        self._parts.append(part)

    def column(self, restore: Callable[[Any], Any] | None = None) -> Column:
        """The column; `restore` turns what stood for a value back into it."""
        kept = list(self._numbers)[1:]  # without what is missing
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.int32)
        return Column([restore(value) for value in kept] if restore else kept, codes)


class _Mistakes:
    """The mistakes in the lines of a file: the first few, and how many more there are."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self.shown: list[Mistake] = []

    def add(self, line: int, problem: str, remedy: str) -> None:
        self.count += 1
        if self.count <= SHOWN:
            self.shown.append(Mistake("rows", "", problem, remedy, str(self.path), line))

    def check(self) -> None:
        """Raise RequestError if there are any."""
        if self.count > SHOWN:
            problem = f"{self.count - SHOWN:,} more lines can't be read"
            self.shown.append(Mistake("rows", "", problem, file=str(self.path)))
        if self.count:
            raise RequestError(self.shown)


# CSV --------------------------------------------------------------------------------------
def _read_csv(path: Path, text: Iterator[str], exact: bool) -> Table:
    head: list[str] = []
    for line in text:
        head.append(line)
        if not line.isspace():
            break
    delimiter = _delimiter(path, head[-1] if head else "")
    mistakes, lines = _Mistakes(path), array("q")
    reader = csv.reader(chain(head, text), delimiter=delimiter, strict=True)
    records = _records(reader, lines, mistakes)
    names = [name if exact else name.strip() for name in next(records, [])]
    mistakes.check()
    if not any(names):
        raise _mistake(path, "has no header", "its first line must name the columns")
    _check_names(path, names, lines.pop())
    encoders = [Encoder("") for _ in names]
    for rows in _chunks(records):
        if not mistakes.count:
            for encoder, cells in zip(encoders, zip(*rows, strict=True), strict=True):
                encoder.add(cells)
    mistakes.check()
    columns = {n: e.column() for n, e in zip(names, encoders, strict=True)}
    return Table(columns, len(lines), "csv", np.array(lines))


def _delimiter(path: Path, header: str) -> str:
    """What separates the names: what is most frequent outside of quotes, in a .tsv a tab."""
    bare = re.sub('"[^"]*"', "", header)
    marks = [mark for mark in "\t,;" if mark in bare]  # if two are as frequent, the first
    return max(marks[:1] if path.suffix.lower() == ".tsv" else marks, key=bare.count, default=",")


def _records(reader: Any, lines: array[int], mistakes: _Mistakes) -> Iterator[list[str]]:
    """The rows that are not blank; `lines` gets the line that each begins in."""
    start, width = 1, 0
    try:
        for row in reader:
            if any(map(str.strip, row)) or row == [""]:  # the only cell may be "", as missing
                width = width or len(row)
                if len(row) != width:
                    _add_width(mistakes, start, row, width, reader.dialect.delimiter)
                lines.append(start)
                yield row
            start = reader.line_num + 1  # a row with quotes may take several lines
    except csv.Error as error:
        mistakes.add(start, f"is no CSV: {error}", "check its quotes")


def _add_width(mistakes: _Mistakes, line: int, row: list[str], width: int, mark: str) -> None:
    problem, remedy = f"has {len(row):,} of {width:,} cells", "write a cell for each column"
    if len(row) > width:
        problem = f"has {len(row):,} cells, the header has {width:,}"
        remedy = "put cells that contain a separator in quotes"
    mistakes.add(line, f"{problem}: {mark.join(row)[:60]!r}", remedy)


# JSON lines -------------------------------------------------------------------------------
def _read_json_lines(path: Path, text: Iterable[str]) -> Table:
    encoders: dict[str, Encoder] = {}
    mistakes, lines = _Mistakes(path), array("q")
    for chunk in _chunks(each for each in enumerate(text, 1) if not each[1].isspace()):
        rows = [_object(number, line, mistakes) for number, line in chunk]
        if not mistakes.count:
            _add_objects(encoders, rows, before=len(lines))
            lines.extend(number for number, _ in chunk)
    mistakes.check()
    columns = {name: encoder.column(_restore) for name, encoder in encoders.items()}
    return Table(columns, len(lines), "jsonl", np.array(lines))


_DECODER = json.JSONDecoder()
_SIMPLE = {str, int, float, type(None)}  # and no two of them are equal but 1 and 1.0


def _object(number: int, line: str, mistakes: _Mistakes) -> dict[str, Any]:
    reason = ""
    try:
        row = _DECODER.decode(line)
        if isinstance(row, dict):
            return row
    except json.JSONDecodeError as error:
        reason = f" ({error.msg} at column {error.colno})"
    except (ValueError, RecursionError) as error:
        reason = f" ({error})"
    remedy = 'write one object on each line, such as {"race": "green"}'
    mistakes.add(number, f"is no JSON object{reason}: {line.strip()[:60]!r}", remedy)
    return {}


def _add_objects(encoders: dict[str, Encoder], rows: list[dict[str, Any]], before: int) -> None:
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if name not in encoders:
            encoders[name] = Encoder()
            encoders[name].add([None] * before)
    for name, encoder in encoders.items():
        values = [row.get(name) for row in rows]
        plain = _SIMPLE.issuperset(map(type, values))
        encoder.add(values if plain else [_stand_in(value) for value in values])


def _stand_in(value: Any) -> Any:
    """Something hashable that tells true from 1."""
    if isinstance(value, bool):
        return ("true",) if value else ("false",)
    if isinstance(value, list | dict):
        return (json.dumps(value, default=str),)
    return value if value is None else _plain(value)


def _restore(value: Any) -> Any:
    return json.loads(value[0]) if isinstance(value, tuple) else value


# Parquet ----------------------------------------------------------------------------------
def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        remedy = "pip install 'themis-fairness[frames]', or save it as CSV"
        raise _mistake(path, "Parquet needs pyarrow, which is not installed", remedy) from None
    try:
        data = parquet.read_table(path)
    except pa.ArrowException as error:
        problem = f"can't be read as Parquet: {error}"
        raise _mistake(path, problem, "name another file") from None
    _check_names(path, data.column_names)
    columns = {name: _arrow_column(data.column(name)) for name in data.column_names}
    return Table(columns, data.num_rows, "parquet")


def _arrow_column(column: Any) -> Column:
    import pyarrow as pa

    if not len(column):
        return Column([], np.empty(0, np.int32))
    if pa.types.is_dictionary(column.type):  # it may have values that no row has
        column = column.cast(column.type.value_type)
    try:
        parts = column.dictionary_encode().unify_dictionaries().chunks
    except pa.ArrowNotImplementedError:  # lists, objects and types of other makers
        encoder = Encoder()
        encoder.add([_stand_in(value) for value in column.to_pylist()])
        return encoder.column(_restore)
    codes = np.concatenate([part.indices.fill_null(MISSING).to_numpy() for part in parts])
    values = parts[0].dictionary.to_pylist()
    if not _SIMPLE.issuperset(map(type, values)):
        values = [_plain(value) for value in values]
    there = np.array([value is not None and value == value for value in values])  # NaN: nothing
    if there.all():
        return Column(values, codes)
    numbers = np.append(np.where(there, np.cumsum(there) - 1, MISSING), MISSING).astype(np.int32)
    return Column([v for v, ok in zip(values, there, strict=True) if ok], numbers[codes])


def _plain(value: Any) -> Any:
    """A value of Arrow as CSV or JSON would have it."""
    if isinstance(value, Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    return value if isinstance(value, str | int | float) else str(value)


# What they have in common -----------------------------------------------------------------
def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _check_names(path: Path, names: Sequence[str], line: int | None = None) -> None:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        shown = ", ".join(map(repr, repeated))
        problem, remedy = f"has the column {shown} twice", "give each column a name of its own"
        raise _mistake(path, problem, remedy, line)


def _undecodable_line(path: Path) -> int:
    """The first line with bytes that are not UTF-8."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        return next(n for n, line in enumerate(lines, 1) if re.search("[\udc80-\udcff]", line))


def _mistake(path: Path, problem: str, remedy: str, line: int | None = None) -> RequestError:
    return RequestError([Mistake("rows", "", problem, remedy, str(path), line)])
