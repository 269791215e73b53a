"""Python functions as subjects: of a dictionary, of keyword arguments, or of a whole table."""

from __future__ import annotations

import copy
import hashlib
import inspect
import math
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Codes
from themis.inputs.schema import Schema
from themis.subjects.base import (
    Answers,
    Batch,
    BudgetEndedError,
    Subject,
    Traits,
    crash_of,
    heed,
    isolate_failures,
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
        self.fill = _filler(schema.names)
        self.latest: weakref.ref[_RowBatch] | None = None  # the batch that uses these dictionaries:
        self.dictionaries: list[dict[str, Any]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(RowFunction, keywords=self._keywords)
        return made, (self.function, self.schema), {"structured": self.structured}

    def load(self, codes: NDArray[Any]) -> Batch:
        return _RowBatch(self, codes)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)


class _RowBatch:
    """Inputs as dictionaries that are never handed over themselves: a subject may change its own.

    So they can be filled again for another batch once this one is gone, in half the time in which
    new ones are made.
    """

    def __init__(self, subject: RowFunction, codes: NDArray[Any]) -> None:
        self._subject = subject
        self._fixed: dict[str, Any] = {}  # values that all inputs get in the next run
        if subject.latest is not None and subject.latest() is not None:
            subject.dictionaries = []  # those are in use
        subject.latest, owned = weakref.ref(self), subject.dictionaries
        empty = dict.fromkeys(subject.schema.names)
        owned += [empty.copy() for _ in range(len(codes) - len(owned))]
        self._rows = owned[: len(codes)]
        columns = (each.decode(codes[:, c]).tolist() for c, each in enumerate(subject.schema))
        subject.fill(self._rows, *columns)

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._rows = [self._rows[place].copy() for place in places.tolist()]
        part._fixed = {}
        return part

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        name = characteristic.name
        if isinstance(codes, int):
            self._fixed[name] = characteristic.value(codes)
            return
        self._fixed.pop(name, None)
        for row, value in zip(self._rows, characteristic.decode(codes).tolist(), strict=True):
            row[name] = value

    def run(self) -> Answers:
        outputs: list[Any] = []
        failures: dict[int, Failure] = {}
        rows = _until(self._subject.deadline, self._rows)
        while True:
            try:
                self._call(rows, outputs)
                return Answers(outputs, failures, calls=len(outputs))
            except (BudgetEndedError, KeyboardInterrupt):
                self._subject.unfinished = Answers(outputs, failures)
                raise
            except (Exception, SystemExit) as error:
                # What was computed before the error is kept; go on behind the culprit.
                failures[len(outputs)] = crash_of(error)
                outputs.append(None)

    def _call(self, rows: Iterator[dict[str, Any]], outputs: list[Any]) -> None:
        """Call the subject with a fresh dictionary each time."""
        call, add = self._subject.call, outputs.append
        if len(self._fixed) == 1:  # as most runs have it: an item is quicker than an update
            ((name, value),) = self._fixed.items()
            for row in rows:
                row[name] = value
                add(call(row.copy()))
        else:
            for row in rows:
                add(call(row | self._fixed))


def _until(deadline: float, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows one by one; BudgetEndedError instead of the next one once the deadline is over."""
    return iter(rows) if math.isinf(deadline) else (row for row in rows if heed(deadline))


def _filler(names: tuple[str, ...]) -> Callable[..., None]:
    """A function of dictionaries and columns that puts each row's values under these names.

    Compiled once for all rows: items with constant keys are set in a third of the time of
    `row.update(zip(names, values))`.
    """
    columns = ", ".join(f"c{place}" for place in range(len(names)))
    values = ", ".join(f"v{place}" for place in range(len(names)))
    items = "; ".join(f"row[{name!r}] = v{place}" for place, name in enumerate(names))
    scope: dict[str, Any] = {}
    exec(
        f"def fill(rows, {columns}):\n for row, {values} in zip(rows, {columns}):\n  {items}", scope
    )
    fill: Callable[..., None] = scope["fill"]
    return fill


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
        return _TableBatch(self, codes)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)


class _TableBatch:
    def __init__(self, subject: BatchFunction, codes: NDArray[Any]) -> None:
        self._subject = subject
        self._length = len(codes)
        self._columns: dict[str, NDArray[Any]] = {}
        for column in range(codes.shape[1]):
            self.overwrite(column, codes[:, column])

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._length = len(places)
        part._columns = {name: values[places] for name, values in self._columns.items()}
        return part

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        if isinstance(codes, int):
            values = characteristic.column(np.array([codes])).repeat(self._length)
        else:
            values = characteristic.column(codes)
        values.flags.writeable = False  # other assignments share the other columns
        self._columns[characteristic.name] = values

    def run(self) -> Answers:
        def call(start: int, stop: int) -> Any:
            if stop - start == self._length:
                return self._subject.function(InputTable(dict(self._columns), self._length))
            part = {name: values[start:stop] for name, values in self._columns.items()}
            return self._subject.function(InputTable(part, stop - start))

        return isolate_failures(call, self._length)


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
