"""Python functions as subjects: of a dictionary, of keyword arguments, or of a whole table."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.characteristics import Codes
from themis.outcomes import CRASH, Failure
from themis.schema import Schema
from themis.subjects.base import Answers, Batch, isolate_failures


class RowFunction:
    """A function that is called once per input, with a dictionary or with keyword arguments."""

    kind = "python"
    vectorised = False

    def __init__(
        self, function: Callable[..., Any], schema: Schema, *, keywords: bool = False
    ) -> None:
        self.function = function
        self.schema = schema
        self.call: Callable[[dict[str, Any]], Any] = (
            (lambda row: function(**row)) if keywords else function
        )
        self.person = _dictionary_maker(schema.names)

    def load(self, codes: NDArray[Any]) -> Batch:
        return _RowBatch(self, codes)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)


class _RowBatch:
    def __init__(self, subject: RowFunction, codes: NDArray[Any]) -> None:
        self._subject = subject
        schema = subject.schema
        columns = [each.decode(codes[:, c]).tolist() for c, each in enumerate(schema)]
        self._rows = list(map(subject.person, *columns))
        self._fixed: dict[str, Any] = {}  # values that all inputs get
        self._varying: dict[str, list[Any]] = {}  # and values of their own

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._rows = [self._rows[place] for place in places.tolist()]
        part._fixed, part._varying = {}, {}
        return part

    def overwrite(self, column: int, codes: Codes | int) -> None:
        characteristic = self._subject.schema.characteristics[column]
        name = characteristic.name
        self._fixed.pop(name, None)
        self._varying.pop(name, None)
        if isinstance(codes, int):
            self._fixed[name] = characteristic.value(codes)
        else:
            self._varying[name] = characteristic.decode(codes).tolist()

    def run(self) -> Answers:
        outputs: list[Any] = []
        failures: dict[int, Failure] = {}
        inputs = self._inputs()
        while True:
            try:
                self._call(inputs, outputs)
                return Answers(outputs, failures)
            except (Exception, SystemExit) as error:
                # What was computed before the error is kept; go on behind the culprit.
                failures[len(outputs)] = Failure(CRASH, f"{type(error).__name__}: {error}")
                outputs.append(None)

    def _inputs(self) -> Iterator[dict[str, Any]]:
        """The inputs without what is fixed."""
        if not self._varying:
            return iter(self._rows)
        names = tuple(self._varying)
        changes = zip(*self._varying.values(), strict=True)
        return (
            row | dict(zip(names, values, strict=True))
            for row, values in zip(self._rows, changes, strict=True)
        )

    def _call(self, inputs: Iterator[dict[str, Any]], outputs: list[Any]) -> None:
        """Call the subject with a fresh dictionary each time: it may change what it is given."""
        call, add, fixed = self._subject.call, outputs.append, self._fixed
        for row in inputs:
            add(call(row | fixed))


def _dictionary_maker(names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """A function of values that returns them under these names.

    Compiled once for all rows: a display of constant keys is built in less than half the time of
    `dict(zip(names, values))`.
    """
    places = [f"v{place}" for place in range(len(names))]
    pairs = ", ".join(f"{name!r}: {place}" for name, place in zip(names, places, strict=True))
    made: Callable[..., dict[str, Any]] = eval(f"lambda {', '.join(places)}: {{{pairs}}}")
    return made


class InputTable:
    """Inputs as columns: `table["age"]` is a numpy array, `len(table)` the number of inputs."""

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


class BatchFunction:
    """A function of an `InputTable` that returns one output per input."""

    kind = "python"
    vectorised = True

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
            values = characteristic.decode(np.array([codes])).repeat(self._length)
        else:
            values = characteristic.decode(codes)
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
