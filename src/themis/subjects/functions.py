"""Python functions as subjects: of a dictionary, of keyword arguments, or of a whole table."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Codes
from themis.inputs.schema import Schema
from themis.subjects.base import (
    Answers,
    Batch,
    BudgetEndedError,
    ColumnsBatch,
    Subject,
    Traits,
    crash_of,
    heed,
)
from themis.subjects.decisions import Failure


class RowFunction(Subject):
    """A function that is called once per input, with a dictionary or with keyword arguments."""

    kind = "python"

    def __init__(
        self, function: Callable[..., Any], schema: Schema, *, keywords: bool = False
    ) -> None:
        self.function = function
        self.schema = schema
        self._keywords = keywords
        self.call: Callable[[dict[str, Any]], Any] = (
            (lambda row: function(**row)) if keywords else function
        )
        self.rows, self.calls = _compiled(schema.names)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(RowFunction, keywords=self._keywords)
        return made, (self.function, self.schema), {"structured": self.structured}

    def load(self, codes: NDArray[Any]) -> Batch:
        return _RowBatch(self, codes)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)


class _RowBatch:
    """Inputs as columns, of which a dictionary is made for each call: a subject may change its own.

    Those of parts of it are copies of a whole one each: that takes a fourth of the time.
    """

    def __init__(self, subject: RowFunction, codes: NDArray[Any]) -> None:
        self._subject, self._length = subject, len(codes)
        schema = subject.schema
        self._columns = {
            each.name: each.decode(codes[:, c]).tolist() for c, each in enumerate(schema)
        }
        self._rows: list[dict[str, Any]] | None = None

    def take(self, places: NDArray[np.int64]) -> Batch:
        if self._rows is None:
            self._rows = self._subject.rows(zip(*self._columns.values(), strict=True))
        rows = self._rows
        return _PartOfRows(self._subject, [rows[place] for place in places.tolist()])

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        self._columns[characteristic.name] = _values(characteristic, codes, self._length)
        self._rows = None

    def run(self) -> Answers:
        values = zip(*self._columns.values(), strict=True)
        return _called(self._subject, values, self._subject.calls)


class _PartOfRows:
    """Some of the inputs of a batch, each maybe several times, with columns of their own."""

    def __init__(self, subject: RowFunction, rows: list[dict[str, Any]]) -> None:
        self._subject, self._rows = subject, rows
        self._changes: dict[str, list[Any]] = {}

    def take(self, places: NDArray[np.int64]) -> Batch:
        return _PartOfRows(self._subject, [self._rows[place] for place in places.tolist()])

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        self._changes[characteristic.name] = _values(characteristic, codes, len(self._rows))

    def run(self) -> Answers:
        if len(self._changes) == 1:  # as most have it: an item is quicker than an update
            ((name, values),) = self._changes.items()
            return _called(
                self._subject, zip(self._rows, values, strict=True), partial(_call_copies, name)
            )
        rows = zip(self._rows, *self._changes.values(), strict=True)
        return _called(self._subject, rows, partial(_call_changed, tuple(self._changes)))


Add: TypeAlias = Callable[[Any], None]
# Calls a function with a dictionary of each of the rows, and hands over what comes back.
Calls: TypeAlias = Callable[[Callable[[dict[str, Any]], Any], Add, Iterator[Any]], None]


def _called(subject: RowFunction, rows: Iterator[Any], calls: Calls) -> Answers:
    """The answers of the subject, row by row."""
    outputs: list[Any] = []
    failures: dict[int, Failure] = {}
    rows = _until(subject.deadline, rows)
    while True:
        try:
            calls(subject.call, outputs.append, rows)
            return Answers(outputs, failures, calls=len(outputs))
        except (BudgetEndedError, KeyboardInterrupt):
            subject.unfinished = Answers(outputs, failures)
            raise
        except (Exception, SystemExit) as error:
            # What was computed before the error is kept; go on behind the culprit.
            failures[len(outputs)] = crash_of(error)
            outputs.append(None)


def _call_copies(name: str, call: Callable[..., Any], add: Add, rows: Iterator[Any]) -> None:
    """With copies of dictionaries that have another value under one name."""
    for row, value in rows:
        changed = row.copy()
        changed[name] = value
        add(call(changed))


def _call_changed(
    names: tuple[str, ...], call: Callable[..., Any], add: Add, rows: Iterator[Any]
) -> None:
    """With copies of dictionaries that have other values under some names."""
    for row, *values in rows:
        add(call(row | dict(zip(names, values, strict=True))))


def _values(characteristic: Characteristic, codes: Codes | int, length: int) -> list[Any]:
    if isinstance(codes, int):
        return [characteristic.value(codes)] * length
    values: list[Any] = characteristic.decode(codes).tolist()
    return values


def _until(deadline: float, rows: Iterator[Any]) -> Iterator[Any]:
    """The rows one by one; BudgetEndedError instead of the next one once the deadline is over."""
    return rows if math.isinf(deadline) else (row for row in rows if heed(deadline))


def _compiled(names: tuple[str, ...]) -> tuple[Callable[[Iterator[Any]], list[Any]], Calls]:
    """Two functions of rows of values: one makes a dictionary of each, one calls a function, too.

    Compiled once for these names: a literal takes half the time of `dict(zip(names, values))`.
    """
    values = ", ".join(f"v{place}" for place in range(len(names)))
    literal = ", ".join(f"{name!r}: v{place}" for place, name in enumerate(names))
    scope: dict[str, Any] = {}
    exec(
        f"def made(rows):\n return [{{{literal}}} for {values}, in rows]\n"
        f"def called(call, add, rows):\n for {values}, in rows:\n  add(call({{{literal}}}))",
        scope,
    )
    return scope["made"], scope["called"]


class InputTable:
    """Inputs as columns: `table["age"]` is a numpy array, `len(table)` the number of inputs.

    A number that may be missing is a float or NaN; in columns of other values, None is there.
    """

    def __init__(self, columns: dict[str, NDArray[Any]], length: int) -> None:
        self._columns = columns
        self._length = length

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def keys(self) -> Any:
        """The characteristics' names in schema order."""
        return self._columns.keys()

    def items(self) -> Any:
        """Names with their columns."""
        return self._columns.items()

    def to_numpy(self) -> NDArray[Any]:
        """One array, rows = inputs, columns = characteristics in schema order."""
        return np.column_stack(list(self._columns.values()))

    def to_pandas(self) -> Any:
        """A pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame(self._columns)


class BatchFunction(Subject):
    """A function of an `InputTable` that returns one output per input."""

    kind = "python"
    traits = Traits(vectorised=True, cost="calls")

    def __init__(self, function: Callable[[InputTable], Any], schema: Schema) -> None:
        self.function = function
        self.schema = schema

    def load(self, codes: NDArray[Any]) -> Batch:
        def values(column: int, codes: Codes) -> NDArray[Any]:
            return self.schema.characteristics[column].column(codes)

        return ColumnsBatch(self, codes, values, self._call)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)

    def _call(self, columns: list[NDArray[Any]]) -> Any:
        for values in columns:
            values.flags.writeable = False  # the next call shares what they show
        table = dict(zip(self.schema.names, columns, strict=True))
        return self.function(InputTable(table, len(columns[0])))


def function_fingerprint(function: Any) -> str:
    """A hash of where a function lives and of its source, where there is one."""
    target = inspect.unwrap(function)
    parts = [getattr(target, "__module__", ""), getattr(target, "__qualname__", repr(type(target)))]
    try:
        parts.append(inspect.getsource(target if hasattr(target, "__code__") else type(target)))
    except (OSError, TypeError):
        code = getattr(target, "__code__", None)
        parts.append(code.co_code.hex() if code else "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
