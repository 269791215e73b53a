"""Batches: inputs to run, with columns that can be overwritten between runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import Memory
from themis.inputs.characteristics import Codes
from themis.subjects.base import Batch
from themis.subjects.decisions import Cells

# The input at a place of a batch, or the inputs at several places.
InputAt = Callable[[Any], NDArray[Any]]
Execute = Callable[[NDArray[Any]], Cells]  # inputs that are given as a whole


class PlainBatch:
    """Always executes: the domain is so large that no input comes twice."""

    def __init__(
        self, codes: NDArray[Any], batch: Batch, execute: Callable[[Batch, InputAt, int], Cells]
    ) -> None:
        self._codes = codes
        self._places: NDArray[np.int64] | None = None  # of these inputs among the codes
        self._changes: dict[int, Codes | int] = {}
        self._batch, self._execute = batch, execute

    def overwrite(self, column: int, codes: Codes | int) -> None:
        """Give all inputs these codes in one column, or all the same code."""
        self._changes[column] = codes
        self._batch.overwrite(column, codes)

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        """Only these inputs; columns that were overwritten must be overwritten again."""
        part = copy.copy(self)
        part._places, part._changes = places if self._places is None else self._places[places], {}
        part._batch = self._batch.take(places)
        return part

    def run(self) -> Cells:
        """The label numbers of the inputs as they stand now."""
        count = len(self._codes if self._places is None else self._places)
        return self._execute(self._batch, self._input_at, count)

    def _input_at(self, place: Any) -> NDArray[Any]:
        at = place if self._places is None else self._places[place]
        rows: NDArray[Any] = self._codes[at].copy()
        for column, codes in self._changes.items():
            rows[..., column] = codes if isinstance(codes, int) else codes[place]
        return rows


class WholeBatch:
    """Inputs that are known as a whole, so that their decisions can be looked up."""

    def __init__(self, codes: NDArray[Any], execute: Execute) -> None:
        self._codes = codes.copy(order="F")
        self._execute = execute

    def overwrite(self, column: int, codes: Codes | int) -> None:
        self._codes[:, column] = codes

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        return WholeBatch(self._codes[places], self._execute)

    def run(self) -> Cells:
        return self._execute(self._codes)


class RememberedBatch:
    """Executes only inputs that were never run before."""

    def __init__(
        self,
        codes: NDArray[Any],
        execute: Execute,
        memory: Memory,
        keeps_failures: Callable[[], bool],
    ) -> None:
        self._codes = codes.copy(order="F")
        self._keys = memory.keys.of(codes)
        self._execute, self._memory, self._keeps_failures = execute, memory, keeps_failures

    def overwrite(self, column: int, codes: Codes | int) -> None:
        old = self._codes[:, column].copy()
        self._codes[:, column] = codes
        self._memory.keys.overwrite(self._keys, column, old, self._codes[:, column])

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        part = copy.copy(self)
        part._codes, part._keys = self._codes[places], self._keys[places]
        return part

    def run(self) -> Cells:
        codes, execute = self._codes, self._execute
        return self._memory.settle(
            self._keys,
            lambda places: execute(codes if len(places) == len(codes) else codes[places]),
            keeps_failures=self._keeps_failures(),
        )


RunnerBatch: TypeAlias = PlainBatch | WholeBatch | RememberedBatch  # what a runner has loaded
