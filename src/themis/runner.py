"""The runner: executes the subject, never twice on one input of a small domain, and counts."""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.characteristics import Codes, Value
from themis.errors import SubjectError
from themis.outcomes import FAILED, INVALID, NOT_RUN, Cells, Failure, Labels
from themis.schema import Schema
from themis.subjects.base import Batch, Subject

MEMORY_LIMIT = 2**24  # a domain up to this size is remembered whole, one byte per input
BATCH = 65_536  # inputs run together at most
FIRST_BATCH = 16  # the same for a subject whose speed is not known yet
BATCH_SECONDS = 0.5  # a batch takes about this long
EARLY_FAILURES = 10  # this many failures above the limit end a run early


@dataclass(frozen=True)
class Budget:
    """What a run may cost."""

    max_executions: int | None = None
    max_seconds: float | None = None


@dataclass
class FailureLog:
    """The failed executions: how many of each kind, and one example of each."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[dict[str, Value], str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.counts.total()


class Runner:
    """Runs batches of inputs and gives back label numbers; counts executions and cache hits."""

    def __init__(
        self,
        subject: Subject,
        labels: Labels,
        *,
        budget: Budget | None = None,
        max_failures: float = 0.0,
    ) -> None:
        self.subject = subject
        self.schema: Schema = subject.schema
        self.labels = labels
        self.max_failures = max_failures
        self.executions = 0
        self.cache_hits = 0
        self.failures = FailureLog()
        self._seconds = 0.0
        self.start(budget or Budget())
        sizes = [each.size for each in self.schema]
        self.remembers = self.schema.size <= MEMORY_LIMIT
        self._strides = [math.prod(sizes[c + 1 :]) for c in range(len(sizes))]
        self._memory = np.full(self.schema.size if self.remembers else 0, NOT_RUN, dtype=np.int8)

    def start(self, budget: Budget) -> None:
        """Begin a measurement with a fresh budget; what is known stays known."""
        self._budget = budget
        self._started_at = self.executions
        self._deadline = time.monotonic() + (
            math.inf if budget.max_seconds is None else budget.max_seconds
        )

    @property
    def executions_left(self) -> float:
        """How many executions the budget still allows."""
        if self._budget.max_executions is None:
            return math.inf
        return self._budget.max_executions - (self.executions - self._started_at)

    @property
    def seconds_left(self) -> float:
        """How much time the budget still allows."""
        return self._deadline - time.monotonic()

    @property
    def out_of_time(self) -> bool:
        """Whether the budget's time is over."""
        return self.seconds_left <= 0

    @property
    def seconds_per_execution(self) -> float | None:
        """How long the subject takes for one input, as measured so far."""
        return self._seconds / self.executions if self.executions else None

    @property
    def batch_size(self) -> int:
        """How many inputs to run together, so that budgets and Ctrl-C are met soon."""
        if self.seconds_per_execution is None:
            return BATCH if self.subject.vectorised else FIRST_BATCH
        return min(BATCH, max(int(BATCH_SECONDS / max(self.seconds_per_execution, 1e-9)), 1))

    @property
    def fails_too_often(self) -> bool:
        """Whether more executions failed than allowed."""
        return self.failures.total > self.max_failures * self.executions

    def load(self, codes: NDArray[Any]) -> RunnerBatch:
        """A batch of inputs whose columns can be overwritten between runs."""
        if self.remembers:
            return _RememberedBatch(self, codes)
        return _PlainBatch(self, codes)

    def run(self, codes: NDArray[Any]) -> Cells:
        """The label number of each input, FAILED where the subject gave no decision."""
        return self.load(codes).run()

    def keys(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Each input's place in the domain; only for domains that are remembered."""
        keys = np.zeros(len(codes), dtype=np.int64)
        for column, stride in enumerate(self._strides):
            keys += codes[:, column].astype(np.int64) * stride
        return keys

    def execute(self, batch: Batch, input_at: Callable[[int], NDArray[Any]]) -> Cells:
        """Run a loaded batch of the subject; `input_at` gives its inputs, for failure examples."""
        started = time.perf_counter()
        answers = batch.run()
        self._seconds += time.perf_counter() - started
        cells = self.labels.number(answers.outputs)
        self.executions += len(cells)
        failed = np.flatnonzero(cells == FAILED)
        if len(failed) or answers.failures:
            cells[list(answers.failures)] = FAILED
            failed = np.flatnonzero(cells == FAILED)
            self._log(failed, answers.failures, answers.outputs, input_at)
        return cells

    def _log(
        self,
        failed: NDArray[np.int64],
        known: dict[int, Failure],
        outputs: Any,
        input_at: Callable[[int], NDArray[Any]],
    ) -> None:
        for place in failed.tolist():
            failure = known.get(place) or Failure(INVALID, f"it returned {outputs[place]!r}")
            self.failures.counts[failure.kind] += 1
            if failure.kind not in self.failures.examples:
                row = self.schema.decode_row(input_at(place))
                self.failures.examples[failure.kind] = (row, failure.message)
        if self.fails_too_often and self.failures.total >= EARLY_FAILURES:
            raise TooManyFailuresError(self.failure_message())

    def failure_message(self) -> str:
        """What failed, how often, with an example."""
        parts = []
        for kind, count in sorted(self.failures.counts.items()):
            row, message = self.failures.examples[kind]
            parts.append(
                f"{kind} in {count:,} of {self.executions:,} executions, e.g. {message} "
                f"for the input {row}"
            )
        return "the subject failed: " + "; ".join(parts)


class TooManyFailuresError(SubjectError):
    """The subject fails so often that the run was given up."""


class RunnerBatch:
    """Inputs to run, with columns that can be overwritten between runs."""

    def overwrite(self, column: int, codes: Codes | int) -> None:
        """Give all inputs these codes in one column, or all the same code."""
        raise NotImplementedError  # pragma: no cover - both kinds override it

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        """Only these inputs; columns that were overwritten must be overwritten again."""
        raise NotImplementedError  # pragma: no cover - both kinds override it

    def run(self) -> Cells:
        """The label numbers of the inputs as they stand now."""
        raise NotImplementedError  # pragma: no cover - both kinds override it


class _PlainBatch(RunnerBatch):
    """Always executes: the domain is so large that no input comes twice."""

    def __init__(self, runner: Runner, codes: NDArray[Any]) -> None:
        self._runner = runner
        self._codes = codes
        self._changes: dict[int, Codes | int] = {}
        self._batch = runner.subject.load(codes)

    def overwrite(self, column: int, codes: Codes | int) -> None:
        self._changes[column] = codes
        self._batch.overwrite(column, codes)

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        part = copy.copy(self)
        part._codes, part._changes = self._codes[places], {}
        part._batch = self._batch.take(places)
        return part

    def run(self) -> Cells:
        return self._runner.execute(self._batch, self._input_at)

    def _input_at(self, place: int) -> NDArray[Any]:
        row: NDArray[Any] = self._codes[place].copy()
        for column, codes in self._changes.items():
            row[column] = codes if isinstance(codes, int) else codes[place]
        return row


class _RememberedBatch(RunnerBatch):
    """Executes only inputs that were never run before."""

    def __init__(self, runner: Runner, codes: NDArray[Any]) -> None:
        self._runner = runner
        self._codes = codes.copy(order="F")
        self._keys = runner.keys(codes)

    def overwrite(self, column: int, codes: Codes | int) -> None:
        old = self._codes[:, column].astype(np.int64)
        self._codes[:, column] = codes
        change = self._codes[:, column].astype(np.int64) - old
        self._keys += change * self._runner._strides[column]

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        part = copy.copy(self)
        part._codes, part._keys = self._codes[places], self._keys[places]
        return part

    def run(self) -> Cells:
        runner, memory = self._runner, self._runner._memory
        cells = memory[self._keys]
        missing = np.flatnonzero(cells == NOT_RUN)
        if len(missing):
            first = _first_of_each(self._keys[missing])
            new = missing[first]
            codes = self._codes[new]
            batch = runner.subject.load(codes)
            memory[self._keys[new]] = runner.execute(batch, codes.__getitem__)
            cells[missing] = memory[self._keys[missing]]
        runner.cache_hits += len(cells) - (len(new) if len(missing) else 0)
        return cells


def _first_of_each(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places at which each distinct key stands for the first time, in order."""
    _, first = np.unique(keys, return_index=True)
    return np.sort(first)
