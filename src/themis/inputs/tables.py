"""Tables of rows: from a file, CSV, JSON lines or Parquet, or from what a caller has.

Files are read piece by piece; what is read does not depend on how large the pieces are. Text of a
CSV stays text: the schema knows what it means.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of
from themis.events import Listener, RowsRead, ignore
from themis.inputs.columns import MISSING, Column, Encoder, column_of


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

    @property
    def word(self) -> str:
        """What a place is: a row, or a line of the file."""
        return "row" if self.lines is None else "line"

    def spelled_place(self, row: int) -> str:
        """Where a row is found, in words."""
        return f"{self.word} {self.place(row):,}"

    def part(self, rows: Sequence[int]) -> Table:
        """Only these rows."""
        chosen = {name: column.part(rows) for name, column in self.columns.items()}
        return Table(chosen, len(rows), self.name, self.is_text, names=self.names)

    def first(self, most: int) -> Table:
        """The first rows; it is told if there are more."""
        return replace(self.part(range(most)), is_cut=True) if self.length > most else self


CHUNK_CELLS = 2**18  # of a Parquet file that are read at once, …
CHUNK_ROWS = 2**12  # … and rows of text, whose cells are not known before
PARQUET_START = b"PAR1"
KINDS = {
    **{".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet"},
}
Cells: TypeAlias = Sequence[Any] | Column


def rows_of(given: Any, *, only: Collection[str] | None = None) -> Table:
    """The rows of what a caller has: a table of pandas, polars or Arrow, columns, dicts, a path.

    With `only`, no other columns of a file are read.
    """
    if isinstance(given, Table):
        return given
    return read_table(given, only=only) if isinstance(given, str | Path) else table_of(given)


def kind_of(path: Path) -> str | None:
    """What a file's name says it is: csv, jsonl or parquet; None where it says nothing."""
    return KINDS.get(path.suffix.lower())


def read_table(
    path: str | Path,
    *,
    kind: str | None = None,
    exact: bool = False,
    only: Collection[str] | None = None,
    most: int | None = None,
    listen: Listener = ignore,
) -> Table:
    """The rows of a file, by what its name or `kind` says it is; raises RequestError.

    With `only`, other columns are passed over, with `most`, further rows. In files that Themis
    wrote, read with `exact`, blanks around the names of columns are part of them, and there may be
    no rows.
    """
    path = Path(path)
    kind = kind or kind_of(path) or ("csv" if path.suffix.lower() == ".txt" else None)
    if kind is None:
        remedy = f"name a file that ends in {', '.join(KINDS)} or .txt"
        raise _mistake(path, "is of no kind that can be read", remedy)
    reading = _Reading(path, kind, exact, only, most)
    try:
        if kind == "parquet":
            _read_parquet(reading, listen)
        else:
            _read_text(reading, _csv_rows if kind == "csv" else _json_rows, listen)
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "check its name") from None
    except UnicodeDecodeError:
        line = None if kind == "parquet" else _undecodable_line(path)
        raise _mistake(path, "is not UTF-8 text", "save it as UTF-8", line) from None
    except OSError as error:
        raise _mistake(path, f"can't be read: {error.strerror or error}", "check it") from None
    if not reading.names or not (reading.length or exact):
        raise _mistake(path, "holds no rows", "name a file with a row for each person")
    return reading.table()


@dataclass
class _Reading:
    """What was read of a file so far: its columns, and the lines of its rows."""

    path: Path
    kind: str
    exact: bool
    only: Collection[str] | None
    most: int | None
    lines: array[int] = field(default_factory=lambda: array("I"))
    names: dict[str, None] = field(default_factory=dict)
    length: int = 0
    encoders: dict[str, Encoder] = field(default_factory=dict)

    @property
    def asked(self) -> int | None:
        """How many rows: one more than wanted tells whether there are more."""
        return None if self.most is None else self.most + 1

    def wants(self, name: str) -> bool:
        return self.only is None or name in self.only

    def add(self, names: Iterable[str], columns: Mapping[str, Cells], length: int) -> None:
        """Append rows of these names, with the cells of the columns that are wanted."""
        self.names |= dict.fromkeys(names)
        for name, cells in columns.items():
            encoder = self.encoders.setdefault(name, Encoder(are_texts=self.kind == "csv"))
            encoder.pad(self.length)
            encoder.add(cells)
        self.length += length

    def table(self) -> Table:
        for encoder in self.encoders.values():
            encoder.pad(self.length)
        columns = {name: encoder.column() for name, encoder in self.encoders.items()}
        lines = np.array(self.lines) if self.kind != "parquet" else None
        is_text, names = self.kind == "csv", tuple(self.names)
        table = Table(columns, self.length, self.path.name, is_text, lines, names)
        return table if self.most is None else table.first(self.most)


def _read_text(
    reading: _Reading, read: Callable[[_Reading, Any], Iterator[None]], listen: Listener
) -> None:
    path = reading.path
    with path.open("rb") as file, TextIOWrapper(file, encoding_of(path), newline="") as text:
        total = path.stat().st_size
        for _ in read(reading, text):
            listen(RowsRead(min(file.tell(), total), total))


def encoding_of(path: Path) -> str:
    """UTF-8, unless the file begins with the mark of UTF-16, as spreadsheets write it."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


# CSV --------------------------------------------------------------------------------------
def _csv_rows(reading: _Reading, text: Any) -> Iterator[None]:
    """Read rows, and stop after each piece."""
    head: list[str] = []
    for line in text:
        head.append(line)
        if not line.isspace():
            break
    delimiter = _delimiter(reading.path, head[-1] if head else "")
    reader = csv.reader(chain(head, text), delimiter=delimiter, strict=True)
    records = _records(reader, reading)
    header = next(records, [])
    names = header if reading.exact else [name.strip() for name in header]
    if not any(names):
        raise _mistake(reading.path, "has no header", "its first line must name the columns")
    _check_names(reading.path, names, reading.lines.pop())
    wanted = [(place, name) for place, name in enumerate(names) if reading.wants(name)]
    reading.add(names, {name: () for _, name in wanted}, 0)
    for rows in _chunks(islice(records, reading.asked), CHUNK_ROWS):
        cells = [*zip(*rows, strict=True)]
        reading.add(names, {name: cells[place] for place, name in wanted}, len(rows))
        yield


def _delimiter(path: Path, header: str) -> str:
    """What separates the names: what is most frequent outside of quotes, in a .tsv a tab."""
    bare = re.sub('"[^"]*"', "", header)
    marks = [mark for mark in "\t,;" if mark in bare]  # if two are as frequent, the first
    return "\t" if path.suffix.lower() == ".tsv" else max(marks, key=bare.count, default=",")


def _records(reader: Any, reading: _Reading) -> Iterator[list[str]]:
    """The rows that are not blank and as wide as the first; their lines are kept."""
    line, width = 1, 0
    try:
        for row in reader:
            if any(map(str.strip, row)) or row == [""]:  # the only cell may be "", as missing
                width = width or len(row)
                if len(row) != width:
                    raise _wrong_width(reading, line, len(row), width)
                reading.lines.append(line)
                yield row
            line = reader.line_num + 1  # a row with quotes may take several lines
    except csv.Error as error:
        raise _mistake(reading.path, f"is no CSV: {error}", "check its quotes", line) from None


def _wrong_width(reading: _Reading, line: int, cells: int, width: int) -> RequestError:
    """Say how many cells a line has; what is in them is somebody's."""
    problem, remedy = f"has {cells:,} of {count_of(width, 'cell')}", "write a cell for each column"
    if cells > width:
        problem = f"has {count_of(cells, 'cell')}, the header has {width:,}"
        remedy = "put cells that contain a separator in quotes"
    return _mistake(reading.path, problem, remedy, line)


# JSON lines -------------------------------------------------------------------------------
def _json_rows(reading: _Reading, text: Iterable[str]) -> Iterator[None]:
    """Read rows, and stop after each piece."""
    lines = (each for each in enumerate(text, 1) if not each[1].isspace())
    for chunk in _chunks(islice(lines, reading.asked), CHUNK_ROWS):
        rows = [_object(number, line, reading) for number, line in chunk]
        reading.lines.extend(number for number, _ in chunk)
        names = dict.fromkeys(chain.from_iterable(rows))
        cells = {name: [row.get(name) for row in rows] for name in filter(reading.wants, names)}
        reading.add(names, cells, len(rows))
        yield
    _check_names(reading.path, list(reading.names))


_DECODER = json.JSONDecoder()


def _object(number: int, line: str, reading: _Reading) -> dict[str, Any]:
    reason = ""
    try:
        row = _DECODER.decode(line)
        if isinstance(row, dict):
            return row
    except json.JSONDecodeError as error:
        reason = f" ({error.msg} at column {error.colno})"
    except RecursionError:
        reason = " (too many parts within each other)"
    except ValueError:
        reason = " (a number with too many digits)"
    remedy = 'write one object on each line, such as {"race": "green"}'
    raise _mistake(reading.path, f"is no JSON object{reason}", remedy, number)


# Parquet ----------------------------------------------------------------------------------
def _read_parquet(reading: _Reading, listen: Listener) -> None:
    path = reading.path
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        remedy = "pip install 'themis-fairness[frames]', or save it as CSV"
        raise _mistake(path, "Parquet needs pyarrow, which is not installed", remedy) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_names(path, names)
            wanted = [*filter(reading.wants, names)]
            reading.add(names, dict.fromkeys(wanted, ()), 0)
            nested = any("." in name for name in names)  # these would be taken for parts of others
            total, rows = path.stat().st_size, file.metadata.num_rows
            most = rows if reading.asked is None else min(reading.asked, rows)
            size = max(CHUNK_CELLS // max(len(names), 1), 1)
            for batch in file.iter_batches(size, columns=None if nested else wanted):
                part = batch[: most - reading.length]
                cells = {name: _arrow_cells(part.column(name)) for name in wanted}
                reading.add(names, cells, len(part))
                listen(RowsRead(total * reading.length // most, total))
                if reading.length == most:
                    break
    except pa.ArrowException as error:
        problem = f"can't be read as Parquet: {error}"
        raise _mistake(path, problem, "name another file") from None


def _arrow_cells(cells: Any) -> Cells:
    import pyarrow as pa

    if pa.types.is_dictionary(cells.type):  # it may have values that no row has
        cells = cells.dictionary_decode()
    try:
        encoded = cells.dictionary_encode()
    except pa.ArrowNotImplementedError:  # lists, objects and types of other makers
        values: list[Any] = cells.to_pylist()
        return values
    codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    return Column(encoded.dictionary.to_pylist(), codes)


# What they have in common -----------------------------------------------------------------
def _chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk


def _check_names(path: Path, names: Sequence[str], line: int | None = None) -> None:
    if repeated := repeated_names(names):
        problem = f"has the column {', '.join(repeated)} twice"
        raise _mistake(path, problem, "give each column a name of its own", line)


def repeated_names(names: Sequence[str]) -> list[str]:
    """The names that appear more than once, also if only in Unicode forms that look alike."""
    times = Counter(names)
    forms = Counter(unicodedata.normalize("NFC", name) for name in times)
    alike = [f"{name!r} (in Unicode forms that look alike)" for name in forms if forms[name] > 1]
    return [repr(name) for name in times if times[name] > 1] + alike


def _undecodable_line(path: Path) -> int:
    """The first line with bytes that are not UTF-8."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        return next(n for n, line in enumerate(lines, 1) if re.search("[\udc80-\udcff]", line))


def _mistake(path: Path, problem: str, remedy: str, line: int | None = None) -> RequestError:
    return RequestError([Mistake("rows", "", problem, remedy, str(path), line)])


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


def _no_rows(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", "rows", problem, remedy)])
