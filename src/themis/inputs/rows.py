"""Rows of people by column, from a file or a table in memory; their values as codes of a schema.

Text of a CSV stays text: the schema knows what it means.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError
from themis.events import ignore
from themis.inputs import row_files
from themis.inputs.characteristics import Characteristic, Integers, Reals, Value, Values
from themis.inputs.numbers import exact, is_number
from themis.inputs.row_files import MISSING, ReadListener, read_table

Column = NDArray[Any]  # text and mixed values as objects, with None where a value is missing
AnyColumn = Column | row_files.Column


@dataclass(frozen=True)
class GivenRows:
    """A table of people by column; `lines` are the rows' places in their file, if it has lines."""

    columns: Mapping[str, AnyColumn]
    name: str = "the table"  # of the file, for messages
    lines: NDArray[Any] | None = None
    in_file: tuple[str, ...] = ()  # all columns of the file, also those that were not read

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.in_file or tuple(self.columns)

    def __len__(self) -> int:
        places = () if self.lines is None else self.lines
        return next((len(each) for each in self.columns.values()), len(places))

    def place(self, row: int) -> int:
        """Where a row is found: its line in the file, or its number, from 1."""
        return row + 1 if self.lines is None else int(self.lines[row])


def read_rows(
    path: str | Path,
    *,
    only: Collection[str] | None = None,
    listen: ReadListener = ignore,
) -> GivenRows:
    """The rows of a file, chosen by its ending; raises RequestError when it can't be read.

    With `only`, the columns of these names.
    """
    table = read_table(path, only=only, listen=listen)
    return GivenRows(table.columns, Path(path).name, table.lines, table.names)


def rows_of(given: Any, *, only: Collection[str] | None = None) -> GivenRows:
    """The rows of what a caller has: a table of pandas, polars or Arrow, columns, dicts, a path.

    With `only`, no other columns of a file are read.
    """
    if isinstance(given, GivenRows):
        return given
    if isinstance(given, str | Path):
        return read_rows(given, only=only)
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


EXACT_FLOATS = 2**53  # below, whole numbers are floats without rounding

NO_VALUE, UNKNOWN, NO_NUMBER = "missing value", "unknown value", "not a number"
OUTSIDE, OFF_STEP, WEIGHTLESS = "out of range", "off step", "weight 0 in the schema"

MISSING_TEXTS = frozenset({"", "na", "n/a", "nan", "null", "?"})


class Nested(str):
    """What stands for a list or an object in a cell: it is no value of any characteristic."""

    __slots__ = ()


def factorise(column: AnyColumn) -> tuple[list[Any], NDArray[Any]]:
    """The distinct values of a column, and for each row the place of its value among them."""
    if isinstance(column, row_files.Column):
        return _with_missing(column)
    if column.dtype != object:
        distinct, places = np.unique(column, return_inverse=True)
        return distinct.tolist(), places
    values = column.tolist()
    try:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    except TypeError:  # lists or dictionaries in a cell: no value of any characteristic
        values = [value if value.__hash__ is not None else Nested(repr(value)) for value in values]
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return list(numbers), np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))


def _with_missing(column: row_files.Column) -> tuple[list[Any], NDArray[Any]]:
    """The values of a file's column as they first appear, and None where the first is missing."""
    missing = column.codes == MISSING
    if not missing.any():
        return column.values, column.codes
    before = column.codes[: int(missing.argmax())]
    place = int(before.max(initial=MISSING)) + 1
    moved = column.codes.astype(np.min_scalar_type(-len(column.values) - 1))
    moved += moved >= place
    moved[missing] = place
    return [*column.values[:place], None, *column.values[place:]], moved


def codes_of(characteristic: Characteristic, values: Sequence[Any]) -> NDArray[np.int64]:
    """The codes of these values, −1 where one is none of the characteristic's.

    What stands for nothing is a missing value, if there may be one.
    """
    if isinstance(characteristic, Values):
        found = (next(_matches(characteristic, value), -1) for value in values)
        codes = np.fromiter(found, np.int64, len(values))
    else:
        codes = _range_codes(characteristic, values)
    if characteristic.value_weights is not None:
        listed = (codes >= 0) & (codes < characteristic.size)
        codes[listed & (characteristic.value_weights[np.where(listed, codes, 0)] == 0)] = -1
    if characteristic.missing is not None:
        for place in np.flatnonzero(codes < 0).tolist():
            if is_missing(values[place]):
                codes[place] = characteristic.missing_code
    return codes


def reason_of(characteristic: Characteristic, value: Any) -> str:
    """Why a value without a code has none."""
    if isinstance(characteristic, Values):
        if next(_matches(characteristic, value), None) is not None:
            return WEIGHTLESS
        return NO_VALUE if is_missing(value) else UNKNOWN
    number = number_of(value)
    if number is None:
        return NO_VALUE if is_missing(value) else NO_NUMBER
    if characteristic.encode(number) is not None:
        return WEIGHTLESS
    assert isinstance(characteristic, Integers | Reals)
    inside = exact(characteristic.min) <= exact(number) <= exact(characteristic.max)
    return OFF_STEP if inside else OUTSIDE


def _matches(characteristic: Values, value: Any) -> Iterator[int]:
    """The codes of all that a value may be another way to write of; the best first."""
    for candidate in spellings(value):
        code = characteristic.encode(candidate)
        if code is not None:
            yield code


def spellings(value: Any) -> Iterator[Any]:
    """A value, and all that it may be another way to write of: 1 of "1", true of "True"."""
    if value is None:
        yield ""
        return
    yield value
    if isinstance(value, str):
        text = value.strip()
        yield text
        if (truth := truth_of(text)) is not None:
            yield truth
        elif (number := number_of(text)) is not None:
            yield number
    elif isinstance(value, bool):
        yield from (str(value), str(value).lower())
    elif is_number(value):
        yield str(value)
        if float(value).is_integer():
            yield str(int(value))


def _range_codes(characteristic: Characteristic, values: Sequence[Any]) -> NDArray[np.int64]:
    assert isinstance(characteristic, Integers | Reals)
    numbers = [number_of(value) for value in values]
    floats = np.array([math.nan if n is None else float(n) for n in numbers])
    with np.errstate(invalid="ignore", over="ignore"):
        guess = np.rint((floats - characteristic.min) / (characteristic.step or 1))
        inside = (guess >= 0) & (guess < characteristic.size) & (np.abs(floats) < EXACT_FLOATS)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[inside] = guess[inside].astype(np.int64)
    right = np.zeros(len(values), dtype=bool)
    right[inside] = characteristic.column(codes[inside]) == floats[inside]
    for place in np.flatnonzero(~right).tolist():  # rounding decides: as it is written
        number = numbers[place]
        code = None if number is None else characteristic.encode(number)
        codes[place] = -1 if code is None else code
    return codes


def number_of(value: Any) -> int | float | None:
    """The finite number that a value is or spells, if it does."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if is_number(value):
        number: int | float = value
        return number
    if not isinstance(value, str):
        return None
    for kind in (int, float):
        try:
            number = kind(value.strip().replace("_", " "))
        except ValueError:
            continue
        if is_number(number):
            return number
    return None


def truth_of(text: str) -> bool | None:
    """The truth value that a text spells, if it does."""
    return {"true": True, "false": False}.get(text.strip().lower())


def favourable_text(values: Iterable[Value]) -> str:
    """What counts as favourable, whatever the order and the type of truth values."""
    texts = (str(each).lower() if isinstance(each, bool) else str(each) for each in values)
    return ", ".join(sorted({*texts}))


def is_missing(value: Any) -> bool:
    """Whether this stands for nothing."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING_TEXTS
    return value is None or bool(value != value)


def kept_value(characteristic: Characteristic, value: Any) -> Value:
    """A value of a row that is none of the characteristic's, as it is run; None: it can't be."""
    known = reason_of(characteristic, value) in (UNKNOWN, OUTSIDE, OFF_STEP)
    if not known or isinstance(value, Nested):
        return None
    if isinstance(characteristic, Values):
        kept: Value = _as_value(characteristic, value)
        return kept
    number = number_of(value)
    assert number is not None
    if isinstance(characteristic, Reals):
        return float(number)
    return int(number) if float(number).is_integer() else float(number)


def wider_by(characteristic: Characteristic, values: Sequence[Any]) -> Characteristic | None:
    """The characteristic with these values as well, as far as it can have them; None if not."""
    if isinstance(characteristic, Values):
        if characteristic.derived:
            return None
        more = [_as_value(characteristic, value) for value in values if not is_missing(value)]
        fresh = tuple(dict.fromkeys(value for value in more if value is not None))
        if not fresh:
            return None
        return replace(characteristic, values=(*characteristic.values, *fresh))
    assert isinstance(characteristic, Integers | Reals)
    low, high = exact(characteristic.min), exact(characteristic.max)
    step = exact(characteristic.step)
    numbers = [exact(number) for number in map(number_of, values) if number is not None]
    reached = [n for n in numbers if ((n - low) / step).denominator == 1]
    if not reached:
        return None
    first, last = min(low, *reached), max(high, *reached)
    if (first, last) == (low, high):
        return None
    if isinstance(characteristic, Integers):
        return replace(characteristic, min=int(first), max=int(last))
    return replace(characteristic, min=float(first), max=float(last))


def _as_value(characteristic: Values, value: Any) -> Any:
    """A value as one of this characteristic, of the kind that the others are; None: it can't be."""
    if characteristic.boolean:
        return None
    if characteristic.numeric:
        return number_of(value)
    if isinstance(value, str):
        return value.strip() or None
    return value if isinstance(value, bool) or is_number(value) else None
