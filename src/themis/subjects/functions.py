"""Python functions as subjects: of a dictionary, of keyword arguments, or of a whole table."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Codes
from themis.inputs.schema import Schema
from themis.subjects.base import (
    Answers,
    Batch,
    BudgetEndedError,
    ColumnsBatch,
    Subject,
    Traits,
    heed,
)
from themis.subjects.decisions import Failure, crash_of


class RowFunction(Subject):
    """A function that is called once per input, with a dictionary or with keyword arguments."""

    kind = "python"

    def __init__(
        self, function: Callable[..., Any], schema: Schema, *, keywords: bool = False
    ) -> None:
        self.function, self.schema, self._keywords = function, schema, keywords

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy knows nothing of batches that were run here."""
        made = partial(RowFunction, keywords=self._keywords)
        return made, (self.function, self.schema), {"structured": self.structured}

    def load(self, codes: NDArray[Any]) -> Batch:
        def values(column: int, codes: Codes) -> NDArray[Any]:
            return self.schema.characteristics[column].decode(codes).astype(object)

        return _RowBatch(self, codes, values, self._answers)

    def fingerprint(self) -> str:
        return function_fingerprint(self.function)

    def _answers(self, columns: list[NDArray[Any]]) -> Answers:
        """The answers row by row; a dictionary is made for each: a subject may change its own."""
        outputs: list[Any] = []
        failures: dict[int, Failure] = {}
        function, keywords, is_timed = self.function, self._keywords, self.deadline < math.inf
        values = zip(*(column.tolist() for column in columns), strict=True)
        try:
            for row in map(dict, map(zip, repeat(self.schema.names), values)):
                if is_timed:
                    heed(self.deadline)
                try:
                    outputs.append(function(**row) if keywords else function(row))
                except (Exception, SystemExit) as error:
                    failures[len(outputs)] = crash_of(error)
                    outputs.append(None)
        except (BudgetEndedError, KeyboardInterrupt):
            self.unfinished = Answers(outputs, failures)
            raise
        return Answers(outputs, failures, calls=len(outputs))


class _RowBatch(ColumnsBatch):
    def run(self) -> Answers:
        answers: Answers = self._call(self._columns)
        return answers


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
