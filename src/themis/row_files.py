"""Large files of rows, CSV, JSON lines and Parquet, read piece by piece into encoded columns.

A column is its distinct values, and for each row the number of its value. So what is asked of the
values is asked once per value and not once per row, and a million rows are small.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError

CHUNK = 50_000  # rows of a text file that are held as texts at once
DELIMITERS = (",", ";", "\t")
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

    @property
    def is_text(self) -> bool:
        """Whether the file knows no types, so that all values are texts."""
        return self.kind == "csv"


def kind_of(path: Path) -> str | None:
    """What a file's name says it is: csv, jsonl or parquet; None where it says nothing."""
    return KINDS.get(path.suffix.lower())


def read_table(path: str | Path, *, kind: str | None = None) -> Table:
    """The rows of a file, by what its name or `kind` says it is; raises RequestError."""
    path = Path(path)
    kind = kind or kind_of(path)
    if kind is None:
        raise _mistake(path, "is no table that can be read", f"name one of: {', '.join(KINDS)}")
    try:
        if kind == "parquet":
            return _read_parquet(path)
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return _read_csv(path, lines) if kind == "csv" else _read_json_lines(path, lines)
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "check its name") from None
    except UnicodeDecodeError:
        raise _mistake(path, "is not UTF-8 text", "save it as UTF-8") from None
    except OSError as error:
        raise _mistake(path, f"can't be read: {error.strerror or error}", "check it") from None


class Encoder:
    """Builds a column value by value, in chunks."""

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self._parts: list[NDArray[np.int32]] = []

    def add(self, values: Sequence[Any]) -> None:
        """Append these values; None and the empty text are missing."""
        part = np.fromiter(map(self._numbers.__getitem__, values), np.int32, len(values))
        self._parts.append(part)

    def column(self, restore: Callable[[Any], Any] | None = None) -> Column:
        """The column; `restore` turns what stood for a value back into it."""
        kept = [value for value, number in self._numbers.items() if number != MISSING]
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.int32)
        return Column([restore(value) for value in kept] if restore else kept, codes)


class _Numbers(dict[Any, int]):
    def __init__(self) -> None:
        super().__init__({None: MISSING, "": MISSING})

    def __missing__(self, value: Any) -> int:
        self[value] = len(self) - 2
        return self[value]


def _read_csv(path: Path, lines: Iterable[str]) -> Table:
    lines = iter(lines)
    header_line = next(lines, "")
    delimiter = max(DELIMITERS, key=header_line.count)
    reader = csv.reader(_chain(header_line, lines), delimiter=delimiter)
    try:
        header = next(reader, [])
        if not any(name.strip() for name in header):
            raise _mistake(path, "has no header", "its first line must name the columns")
        _check_names(path, header)
        encoders = [Encoder() for _ in header]
        length = 0
        for rows in _chunks(row for row in reader if row):
            wrong = next((row for row in rows if len(row) != len(header)), None)
            if wrong is not None:
                problem = (
                    f"a row has {len(wrong)} cells, but there are {len(header)} columns: "
                    f"{delimiter.join(wrong)[:60]!r}"
                )
                raise _mistake(path, problem, "put cells that contain a separator in quotes")
            for encoder, column in zip(encoders, zip(*rows, strict=True), strict=True):
                encoder.add(column)
            length += len(rows)
    except csv.Error as error:
        raise _mistake(path, f"is no CSV: {error}", "check its quotes") from None
    columns = {n: e.column() for n, e in zip(header, encoders, strict=True)}
    return Table(columns, length, "csv")


def _read_json_lines(path: Path, lines: Iterable[str]) -> Table:
    encoders: dict[str, Encoder] = {}
    length, number = 0, 0
    mistakes: list[Mistake] = []
    for chunk in _chunks(lines):
        rows = []
        for number, line in enumerate(chunk, start=number + 1):  # noqa: B020 - counts on
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("it is no object")
                rows.append(row)
            except (ValueError, RecursionError) as error:
                problem = f"is no JSON object: {error}"
                mistakes.append(_at(path, number, problem, "write one object per line"))
        if len(mistakes) > SHOWN:
            break
        _add_objects(encoders, rows, length)
        length += len(rows)
    if mistakes:
        raise RequestError(mistakes[:SHOWN])
    if not encoders:
        raise _mistake(path, "has no rows", "write one JSON object per line")
    columns = {name: encoder.column(_restore) for name, encoder in encoders.items()}
    return Table(columns, length, "jsonl")


def _add_objects(encoders: dict[str, Encoder], rows: list[dict[str, Any]], before: int) -> None:
    for row in rows:
        for name in row:
            if name not in encoders:
                encoders[name] = Encoder()
                encoders[name].add([None] * before)
    for name, encoder in encoders.items():
        encoder.add([_stand_in(row.get(name)) for row in rows])


def _stand_in(value: Any) -> Any:
    """Something hashable that tells true from 1, and the empty text from nothing."""
    if isinstance(value, bool | list | dict) or value == "":
        return (json.dumps(value),)
    return value


def _restore(value: Any) -> Any:
    return json.loads(value[0]) if isinstance(value, tuple) else value


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

    if pa.types.is_nested(column.type):
        encoder = Encoder()
        encoder.add([_stand_in(value) for value in column.to_pylist()])
        return encoder.column(_restore)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(whole, pa.ChunkedArray):  # nothing in it
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    values = [_plain(value) for value in whole.dictionary.to_pylist()]
    codes = whole.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int32)
    for place, value in enumerate(values):
        if value is None or value != value:  # not a number: nothing is there
            codes[codes == place] = MISSING
    return _compact(values, codes)


def _compact(values: list[Any], codes: NDArray[np.int32]) -> Column:
    """Only the values that occur, as they first appear."""
    present, first = np.unique(codes, return_index=True)
    order = present[np.argsort(first)]
    order = order[order != MISSING]
    table = np.full(len(values) + 1, MISSING, dtype=np.int32)
    table[order] = np.arange(len(order))
    return Column([values[place] for place in order.tolist()], table[codes])


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | None):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _check_names(path: Path, names: Sequence[str]) -> None:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        problem = f"has the column {repeated[0]!r} twice"
        raise _mistake(path, problem, "rename one")


def _at(path: Path, line: int, problem: str, remedy: str) -> Mistake:
    return Mistake("rows", "", problem, remedy, str(path), line)


def _mistake(path: Path, problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", str(path), problem, remedy)])
