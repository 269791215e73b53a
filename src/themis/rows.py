"""Rows of people: what stands in a CSV, JSON lines or Parquet file, or in a table in memory.

Everything is kept by column. Text of a CSV stays text until somebody knows what it means: the
schema, or `read_table`, which guesses.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError

Column = NDArray[Any]  # text and mixed values as objects, with None where a value is missing

FILES = ".csv, .tsv, .jsonl, .ndjson or .parquet"


@dataclass(frozen=True)
class GivenRows:
    """A table of people by column; `lines` are the rows' places in their file, if it has lines."""

    columns: dict[str, Column]
    name: str = "the table"  # of the file, for messages
    lines: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return next((len(each) for each in self.columns.values()), 0)

    def place(self, row: int) -> int:
        """Where a row is found: its line in the file, or its number, from 1."""
        return row + 1 if self.lines is None else int(self.lines[row])


def read_table(path: str | Path) -> dict[str, Column]:
    """The columns of a file by name; columns of a CSV that hold only numbers become numbers."""
    return {name: guess_numbers(each) for name, each in read_rows(path).columns.items()}


def read_rows(path: str | Path) -> GivenRows:
    """The rows of a file, chosen by its ending; raises RequestError when it can't be read."""
    path = Path(path)
    readers: dict[str, Callable[[Path], GivenRows]] = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".txt": _read_csv,
        ".jsonl": _read_json_lines,
        ".ndjson": _read_json_lines,
        ".parquet": _read_parquet,
        ".pq": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise _mistake(path, "is of no kind that can be read", f"name a file that ends in {FILES}")
    try:
        rows = reader(path)
    except FileNotFoundError:
        raise _mistake(path, "there is no such file", "check its name") from None
    except OSError as error:
        raise _mistake(path, f"can't be read: {error.strerror}", "check its name") from None
    if not rows.columns or not len(rows):
        raise _mistake(path, "holds no rows", "name a file with a row for each person")
    return rows


def rows_of(given: Any) -> GivenRows:
    """The rows of what a caller has: a table of pandas, polars or Arrow, columns, dicts, a path."""
    if isinstance(given, GivenRows):
        return given
    if isinstance(given, str | Path):
        return read_rows(given)
    columns = _columns_of(given)
    lengths = {len(each) for each in columns.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name} {len(each):,}" for name, each in columns.items())
        raise _no_rows(f"the columns differ in length: {sizes}", "give each one value per person")
    if not lengths or not lengths.pop():
        raise _no_rows("there are no rows", "give a row for each person")
    return GivenRows(columns)


def guess_numbers(column: Column) -> Column:
    """The column as whole numbers, else as numbers, if every value that is there is one.

    Text that a number would not be written as (`007`, ` 1`, `1_000`) stays text, as do truth
    values.
    """
    if column.dtype != object:
        return column
    texts = [value for value in dict.fromkeys(column.tolist()) if value is not None]
    if not texts or not all(isinstance(text, str) for text in texts):
        return column
    for kind, parse in ((np.int64, _whole), (np.float64, _real)):
        numbers: dict[Any, Any] = {text: parse(text) for text in texts}
        if None in numbers.values():
            continue
        if kind is np.int64 and None in column:
            numbers |= {None: None}
            return objects([numbers[value] for value in column.tolist()])
        numbers[None] = math.nan
        found: Column = np.array([numbers[value] for value in column.tolist()], dtype=kind)
        return found
    return column


def objects(values: Iterable[Any]) -> Column:
    """An array of these values as they are, whatever they are."""
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


# Files ------------------------------------------------------------------------------------
def _read_csv(path: Path) -> GivenRows:
    text = _text(path)
    header = text.partition("\n")[0]
    separator = "\t" if "\t" in header else ";" if ";" in header and "," not in header else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        numbered = [(row, reader.line_num) for row in reader]
    except csv.Error as error:
        where = f"{path.name}:{reader.line_num}"
        raise _mistake(path, f"{where} is no CSV: {error}", "mend that line") from None
    starts = [1, *(last + 1 for _, last in numbered)]  # a record in quotes may take several lines
    full = [(row, start) for (row, _), start in zip(numbered, starts, strict=False) if any(row)]
    if not full:
        return GivenRows({}, path.name)
    names = [name.strip() for name in full[0][0]]
    _check_header(path, names)
    width = len(names)
    odd = [(len(row), line) for row, line in full[1:] if len(row) != width]
    if odd:
        number, line = odd[0]
        more = f" (and {len(odd) - 1:,} more lines)" if len(odd) > 1 else ""
        raise _mistake(
            path,
            f"{path.name}:{line} has {number} fields, the header has {width}{more}",
            "put fields with a separator into quotes",
        )
    by_column = zip(*(row for row, _ in full[1:]), strict=True)
    columns = {name: _missing_as_none(each) for name, each in zip(names, by_column, strict=False)}
    return GivenRows(columns, path.name, np.array([line for _, line in full[1:]], dtype=np.int64))


def _missing_as_none(values: Sequence[str]) -> Column:
    column = objects(values)
    column[column == ""] = None
    return column


def _check_header(path: Path, names: Sequence[str]) -> None:
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise _mistake(
            path, f"the header has {twice[0]!r} twice", "give each column a name of its own"
        )


def _read_json_lines(path: Path) -> GivenRows:
    numbered = [(n, line) for n, line in enumerate(_text(path).split("\n"), 1) if line.strip()]
    records = []
    for number, line in numbered:
        try:
            record = json.loads(line)
        except ValueError as error:
            record = error
        if not isinstance(record, dict):
            raise _mistake(
                path,
                f"{path.name}:{number} is no JSON object: {line.strip()[:60]}",
                'write one object on each line, such as {"race": "green"}',
            )
        records.append(record)
    lines = np.array([number for number, _ in numbered], dtype=np.int64)
    return GivenRows(_from_records(records), path.name, lines)


def _read_parquet(path: Path) -> GivenRows:
    try:
        import pyarrow.parquet
    except ImportError:
        remedy = "install themis-fairness[frames]"
        raise _mistake(path, "Parquet files need pyarrow", remedy) from None
    if not path.exists():
        raise FileNotFoundError
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise _mistake(path, f"is no Parquet file: {error}", "check its name") from None
    return GivenRows(_from_arrow(table), path.name)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _mistake(
            path, f"{path.name}:{line} is not UTF-8 text", "save the file as UTF-8"
        ) from None


# Tables in memory ---------------------------------------------------------------------------
def _columns_of(given: Any) -> dict[str, Column]:
    if hasattr(given, "collect") and not hasattr(given, "iloc"):  # a lazy frame of polars
        given = given.collect()
    if isinstance(given, Mapping):
        return {str(name): column_of(values) for name, values in given.items()}
    if hasattr(given, "to_pydict") and hasattr(given, "column_names"):
        return _from_arrow(given)
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):  # pandas, polars
        return {str(name): column_of(given[name]) for name in given.columns}
    if hasattr(given, "__arrow_c_stream__"):
        import pyarrow

        return _from_arrow(pyarrow.table(given))
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | np.ndarray):
        records = list(given)
        if all(isinstance(each, Mapping) for each in records):
            return _from_records(records)
    raise _no_rows(
        f"{type(given).__name__} can't be read as rows",
        "give a table of pandas, polars or Arrow, a list of dictionaries, or a path",
    )


def column_of(values: Any) -> Column:
    """One column of any kind, with None or NaN where a value is missing."""
    missing = None
    if isinstance(values, np.ndarray):
        return objects(values.tolist()) if values.dtype.kind not in "biufO" else values
    if hasattr(values, "to_numpy") and str(getattr(values, "dtype", "")) in _PLAIN:
        plain: Column = values.to_numpy()
        return plain
    if hasattr(values, "isna"):  # pandas: there are several ways to be missing
        missing = np.asarray(values.isna())
    for method in ("to_list", "tolist", "to_pylist"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    column = objects(values)
    if missing is not None:
        column[missing] = None
    return column


_PLAIN = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_PLAIN |= {"float32", "float64"}


def _from_arrow(table: Any) -> dict[str, Column]:
    return {str(name): column_of(table.column(name)) for name in table.column_names}


def _from_records(records: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    names = dict.fromkeys(name for record in records for name in record)
    return {str(name): objects(record.get(name) for record in records) for name in names}


def _whole(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text and abs(number) < 2**62 else None


def _real(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    digits = text.lstrip("+-")
    written = text.strip() == text and "_" not in text and math.isfinite(number)
    padded = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return number if written and not padded else None


def _mistake(path: Path, problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", str(path), problem, remedy)])


def _no_rows(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", "rows", problem, remedy)])
