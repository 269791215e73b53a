"""Rows of people: what stands in a file, or in a table in memory.

Everything is kept by column. Text of a CSV stays text: the schema knows what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError
from themis.inputs.row_files import MISSING, read_table

Column = NDArray[Any]  # text and mixed values as objects, with None where a value is missing


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


def read_rows(path: str | Path) -> GivenRows:
    """The rows of a file, chosen by its ending; raises RequestError when it can't be read."""
    table = read_table(path)
    assert MISSING == -1  # so that the last of the values is what stands for it
    columns = {name: objects([*c.values, None])[c.codes] for name, c in table.columns.items()}
    return GivenRows(columns, Path(path).name, table.lines)


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


def objects(values: Iterable[Any]) -> Column:
    """An array of these values as they are, whatever they are."""
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


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


def _no_rows(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("rows", "rows", problem, remedy)])
