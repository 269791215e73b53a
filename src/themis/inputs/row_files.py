"""Files of rows, CSV, JSON lines and Parquet, read piece by piece into encoded columns.

A column is its distinct values, and for each row the number of its value. So what is asked of the
values is asked once per value and not once per row, and a million rows are small. Nothing that is
read depends on how large the pieces are.
"""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of
from themis.events import ignore

CHUNK = 50_000  # rows that are held as texts at once
CHUNK_CELLS = 2**18  # or fewer rows, with about so many cells
CHUNK_CHARACTERS = 2**23  # of JSON lines, whose cells are not known before
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


ReadListener: TypeAlias = Callable[[int, int], None]  # bytes that were read, and all


@dataclass(frozen=True)
class Column:
    """A column: its distinct values as they first appear, and each row's number of its value."""

    values: list[Any]
    codes: NDArray[Any]  # as few bytes as do; MISSING where the file has nothing

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Any:
        """The value of a row; None where the file has nothing."""
        code = self.codes[row]
        return None if code == MISSING else self.values[code]

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def tolist(self) -> list[Any]:
        """The value of each row."""
        return list(self)

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
    lines: NDArray[Any] | None = None  # where each row begins in its file, if it has lines
    names: tuple[str, ...] = ()  # of all columns of the file, also of those that were not wanted

    @property
    def is_text(self) -> bool:
        """Whether the file knows no types, so that all values are texts."""
        return self.kind == "csv"


def kind_of(path: Path) -> str | None:
    """What a file's name says it is: csv, jsonl or parquet; None where it says nothing."""
    return KINDS.get(path.suffix.lower())


def read_table(
    path: str | Path,
    *,
    kind: str | None = None,
    exact: bool = False,
    only: Collection[str] | None = None,
    listen: ReadListener = ignore,
) -> Table:
    """The rows of a file, by what its name or `kind` says it is; raises RequestError.

    With `only`, other columns are passed over. In files that Themis wrote, read with `exact`,
    blanks around the names of columns are part of them, and there may be no rows.
    """
    encoders: dict[str, Encoder] = {}
    names: dict[str, None] = {}
    lines: list[NDArray[Any]] = []
    length, kind_read = 0, ""
    for piece in read_pieces(path, kind=kind, exact=exact, only=only, listen=listen):
        for name, column in piece.columns.items():
            encoder = encoders.setdefault(name, Encoder())
            encoder.pad(length)
            encoder.add_column(column)
        names.update(dict.fromkeys(piece.names))
        length, kind_read = length + piece.length, piece.kind
        if piece.lines is not None:
            lines.append(piece.lines)
    for encoder in encoders.values():
        encoder.pad(length)
    columns = {name: encoder.column(restore_value) for name, encoder in encoders.items()}
    placed = np.concatenate(lines) if lines else None
    return Table(columns, length, kind_read, placed, tuple(names))


def read_pieces(
    path: str | Path,
    *,
    kind: str | None = None,
    exact: bool = False,
    only: Collection[str] | None = None,
    listen: ReadListener = ignore,
) -> Iterator[Table]:
    """The same piece by piece, so that no more than one of them has to be held.

    Values are such as can be counted: `restore_value` gives what they stand for. In JSON lines, a
    piece has only the columns that occur in it. Mistakes in lines are raised at the end.
    """
    path = Path(path)
    kind = kind or kind_of(path) or ("csv" if path.suffix.lower() == ".txt" else None)
    if kind is None:
        remedy = f"name a file that ends in {', '.join(KINDS)} or .txt"
        raise _mistake(path, "is of no kind that can be read", remedy)
    names, rows = 0, 0
    try:
        for piece in _pieces(path, kind, exact, only, listen):
            names, rows = names + len(piece.names), rows + piece.length
            yield piece
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "check its name") from None
    except UnicodeDecodeError:
        line = None if kind == "parquet" else _undecodable_line(path)
        raise _mistake(path, "is not UTF-8 text", "save it as UTF-8", line) from None
    except OSError as error:
        raise _mistake(path, f"can't be read: {error.strerror or error}", "check it") from None
    if not names or not (rows or exact):
        raise _mistake(path, "holds no rows", "name a file with a row for each person")


def _pieces(
    path: Path, kind: str, exact: bool, only: Collection[str] | None, listen: ReadListener
) -> Iterator[Table]:
    if kind == "parquet":
        yield from _parquet_pieces(path, only, listen)
        return
    encoding = encoding_of(path)
    with path.open("rb") as file, TextIOWrapper(file, encoding, newline="") as text:
        total = path.stat().st_size
        read = _csv_pieces(path, text, exact, only)
        for piece in read if kind == "csv" else _json_pieces(path, text, only):
            listen(min(file.tell(), total), total)
            yield piece


def encoding_of(path: Path) -> str:
    """UTF-8, unless the file begins with the mark of UTF-16, as spreadsheets write it."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


class Encoder:
    """Builds a column value by value, or piece by piece."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = defaultdict(count().__next__, {None: MISSING})
        self._parts: list[NDArray[Any]] = []
        self._length = 0

    def add(self, values: Sequence[Any]) -> None:
        """Append these values."""
        part = np.fromiter(map(self._numbers.__getitem__, values), np.int32, len(values))
        self._append(part)

    def add_column(self, column: Column) -> None:
        """Append a column whose values are such as can be counted."""
        numbers = [*map(self._numbers.__getitem__, column.values), MISSING]
        self._append(np.array(numbers, np.int32)[column.codes])

    def pad(self, length: int) -> None:
        """Append that nothing is there, up to this length."""
        if length > self._length:
            self._append(np.full(length - self._length, MISSING, np.int8))

    def _append(self, part: NDArray[Any]) -> None:
        self._parts.append(part.astype(np.min_scalar_type(-len(self._numbers))))
        self._length += len(part)

    def column(self, restore: Callable[[Any], Any] | None = None) -> Column:
        """The column; `restore` turns what stood for a value back into it."""
        kept = list(self._numbers)[1:]  # without what is missing
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.int8)
        return Column([restore(value) for value in kept] if restore else kept, codes)


def _encode(values: Sequence[Any], missing: Any) -> Column:
    numbers: dict[Any, int] = defaultdict(count().__next__, {missing: MISSING})
    codes = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
    return Column(list(numbers)[1:], codes)


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
            problem = f"{count_of(self.count - SHOWN, 'more line')} can't be read"
            self.shown.append(Mistake("rows", "", problem, file=str(self.path)))
        if self.count:
            raise RequestError(self.shown)


# CSV --------------------------------------------------------------------------------------
def _csv_pieces(
    path: Path, text: Iterator[str], exact: bool, only: Collection[str] | None
) -> Iterator[Table]:
    head: list[str] = []
    for line in text:
        head.append(line)
        if not line.isspace():
            break
    delimiter = _delimiter(path, head[-1] if head else "")
    mistakes, lines = _Mistakes(path), array("q")
    reader = csv.reader(chain(head, text), delimiter=delimiter, strict=True)
    records = _records(reader, lines, mistakes)
    names = tuple(name if exact else name.strip() for name in next(records, []))
    mistakes.check()
    if not any(names):
        raise _mistake(path, "has no header", "its first line must name the columns")
    _check_names(path, names, lines.pop())
    wanted = [place for place, name in enumerate(names) if only is None or name in only]
    for rows in chain([[]], _chunks(records, max(min(CHUNK, CHUNK_CELLS // len(names)), 1))):
        if not mistakes.count:
            cells = list(zip(*rows, strict=True)) or [()] * len(names)
            columns = {names[place]: _encode(cells[place], "") for place in wanted}
            yield Table(columns, len(rows), "csv", _as_lines(lines), names)
        del lines[:]
    mistakes.check()


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
                    _add_width(mistakes, start, len(row), width)
                lines.append(start)
                yield row
            start = reader.line_num + 1  # a row with quotes may take several lines
    except csv.Error as error:
        mistakes.add(start, f"is no CSV: {error}", "check its quotes")


def _add_width(mistakes: _Mistakes, line: int, cells: int, width: int) -> None:
    """Say how many cells a line has; what is in them is somebody's."""
    problem, remedy = f"has {cells:,} of {count_of(width, 'cell')}", "write a cell for each column"
    if cells > width:
        problem = f"has {count_of(cells, 'cell')}, the header has {width:,}"
        remedy = "put cells that contain a separator in quotes"
    mistakes.add(line, problem, remedy)


# JSON lines -------------------------------------------------------------------------------
def _json_pieces(path: Path, text: Iterable[str], only: Collection[str] | None) -> Iterator[Table]:
    mistakes = _Mistakes(path)
    for chunk in _line_chunks(each for each in enumerate(text, 1) if not each[1].isspace()):
        rows = [_object(number, line, mistakes) for number, line in chunk]
        if not mistakes.count:
            names = tuple(dict.fromkeys(chain.from_iterable(rows)))
            columns = {n: _json_column(rows, n) for n in names if only is None or n in only}
            lines = _as_lines([number for number, _ in chunk])
            yield Table(columns, len(rows), "jsonl", lines, names)
    mistakes.check()


def _line_chunks(lines: Iterator[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    chunk: list[tuple[int, str]] = []
    held = 0
    for each in lines:
        chunk.append(each)
        held += len(each[1])
        if len(chunk) >= CHUNK or held >= CHUNK_CHARACTERS:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def _json_column(rows: Sequence[dict[str, Any]], name: str) -> Column:
    values = [row.get(name) for row in rows]
    plain = _SIMPLE.issuperset(map(type, values))
    return _encode(values if plain else [_stand_in(value) for value in values], None)


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
    except RecursionError:
        reason = " (too many parts within each other)"
    except ValueError:
        reason = " (a number with too many digits)"
    remedy = 'write one object on each line, such as {"race": "green"}'
    mistakes.add(number, f"is no JSON object{reason}", remedy)
    return {}


def _stand_in(value: Any) -> Any:
    """Something hashable that tells true from 1."""
    if isinstance(value, bool):
        return ("true",) if value else ("false",)
    if isinstance(value, list | dict):
        return (json.dumps(value, default=str),)
    return value if value is None else _plain(value)


def restore_value(value: Any) -> Any:
    """The value of a row that a value of a piece stands for."""
    return json.loads(value[0]) if isinstance(value, tuple) else value


# Parquet ----------------------------------------------------------------------------------
def _parquet_pieces(
    path: Path, only: Collection[str] | None, listen: ReadListener
) -> Iterator[Table]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        remedy = "pip install 'themis-fairness[frames]', or save it as CSV"
        raise _mistake(path, "Parquet needs pyarrow, which is not installed", remedy) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            _check_names(path, names)
            wanted = [name for name in names if only is None or name in only]
            total, read = path.stat().st_size, 0
            for batch in chain([file.schema_arrow.empty_table()], _batches(file, names, wanted)):
                columns = {name: _arrow_column(batch.column(name)) for name in wanted}
                read += batch.num_rows
                listen(total * read // max(file.metadata.num_rows, 1), total)
                yield Table(columns, batch.num_rows, "parquet", names=names)
    except pa.ArrowException as error:
        problem = f"can't be read as Parquet: {error}"
        raise _mistake(path, problem, "name another file") from None


def _batches(file: Any, names: Sequence[str], wanted: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa

    nested = any("." in name for name in names)  # these would be taken for parts of others
    rows = max(min(CHUNK, CHUNK_CELLS // len(names)), 1)
    for batch in file.iter_batches(rows, columns=None if nested else list(wanted)):
        yield pa.Table.from_batches([batch])


def _arrow_column(column: Any) -> Column:
    import pyarrow as pa

    if not len(column):
        return Column([], np.empty(0, np.int32))
    if pa.types.is_dictionary(column.type):  # it may have values that no row has
        column = column.cast(column.type.value_type)
    try:
        parts = column.dictionary_encode().unify_dictionaries().chunks
    except pa.ArrowNotImplementedError:  # lists, objects and types of other makers
        return _encode([_stand_in(value) for value in column.to_pylist()], None)
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
def _chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk


def _as_lines(lines: Sequence[int]) -> NDArray[Any]:
    """Numbers of lines, in four bytes each where these do."""
    return np.array(lines, np.uint32 if not len(lines) or lines[-1] < 2**32 else np.int64)


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
