"""What every subject is: its traits, and batches of inputs, loaded once and run many times."""

from __future__ import annotations

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, MistakesError, RequestError, SubjectError, count_of
from themis.inputs.characteristics import Codes, Value
from themis.inputs.documents import Documents
from themis.inputs.schema import Schema
from themis.subjects.decisions import (
    CulpritSearch,
    Failure,
    OutputColumns,
    WrongOutputsError,
    crash_of,
    halves,
    shortened,
)
from themis.subjects.secrets import Secrets, inherited_secrets

CostKind = Literal["calls", "executions"]

WAKE_SECONDS = 0.2  # how late an interrupt is noticed at most


class BudgetEndedError(Exception):
    """The next executions are more than the budget allows, or its time is over."""


class UnpaidError(BudgetEndedError, SubjectError):
    """A service answers nothing more until it is paid: of a measurement, the end of its budget."""


def heed(deadline: float) -> float:
    """The seconds until a deadline of the clock `time.monotonic`; BudgetEndedError once it is over.

    What is cut off by it is no failure of the subject.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise BudgetEndedError
    return left


@dataclass(frozen=True)
class Answers:
    """The raw outputs of a batch, in order, and the failures by position; what that cost."""

    outputs: Any  # a list or a one-dimensional array; anything where there is a failure
    failures: dict[int, Failure] = field(default_factory=dict)
    given: int | None = None  # inputs given to the software in all its calls; None: each once
    calls: int = 1  # of the software: function calls, programs started, requests, exchanges
    largest: tuple[int, float] = (0, 0.0)  # inputs and seconds of a call that worked, of several

    @property
    def settled(self) -> int:
        """How many inputs were answered, or failed."""
        return sum(output is not None for output in self.outputs) + len(self.failures)


@dataclass(frozen=True)
class Tokens:
    """What a language model read and wrote; `estimated` are those that nobody counted."""

    input: int = 0
    output: int = 0
    estimated: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output

    def __add__(self, more: Tokens) -> Tokens:
        return Tokens(*(getattr(self, e.name) + getattr(more, e.name) for e in fields(self)))


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost."""

    input: float
    output: float

    def cost(self, tokens: Tokens) -> float:
        """What so many tokens cost."""
        return (self.input * tokens.input + self.output * tokens.output) / 1e6


class Batch(Protocol):
    """Inputs decoded for their subject once; columns may be overwritten between runs."""

    def overwrite(self, column: int, codes: Codes | int) -> None:
        """Give all inputs these codes in one column, or all the same code."""

    def take(self, places: NDArray[np.int64]) -> Batch:
        """A batch of only these inputs; overwritten columns are undefined until overwritten."""

    def run(self) -> Answers:
        """Execute the subject on every input as it stands now."""


class CodesBatch:
    """A batch of codes that a subject turns into its own representation each time it is run."""

    def __init__(self, run: Callable[[NDArray[Any]], Answers], codes: NDArray[Any]) -> None:
        self._run, self._codes = run, codes.copy()

    def overwrite(self, column: int, codes: Codes | int) -> None:
        self._codes[:, column] = codes

    def take(self, places: NDArray[np.int64]) -> Batch:
        return CodesBatch(self._run, self._codes[places])

    def run(self) -> Answers:
        return self._run(self._codes)


class ColumnsBatch:
    """An array of values for each column, for software that takes many inputs in one call.

    `values` makes the array of one column, and `call` asks about the inputs that it gets in new
    arrays for all columns; where it fails the culprits are looked for.
    """

    def __init__(
        self,
        subject: Subject,
        codes: NDArray[Any],
        values: Callable[[int, Codes], Any],
        call: Callable[[list[Any]], Any],
    ) -> None:
        self._subject, self._values, self._call = subject, values, call
        self._length = len(codes)
        self._columns = [values(place, codes[:, place]) for place in range(codes.shape[1])]

    def overwrite(self, column: int, codes: Codes | int) -> None:
        values = self._values(column, np.atleast_1d(codes))
        self._columns[column] = values.repeat(self._length) if isinstance(codes, int) else values

    def take(self, places: NDArray[np.int64]) -> Batch:
        part = copy.copy(self)
        part._length = len(places)
        part._columns = [values[places] for values in self._columns]
        return part

    def run(self) -> Answers:
        def call(start: int, stop: int) -> Any:
            return self._call([values[start:stop] for values in self._columns])

        return isolate_failures(call, self._length, self._subject)


@dataclass(frozen=True)
class Traits:
    """How a subject is best run; plain values, which may travel to another process.

    An external subject runs outside of this process. Its batches have a fixed size, so that a run
    that goes on from what a cache holds meets the very same batches, whatever the speed; and its
    decisions may be kept in a cache file, `record` says how: each input by itself, where executions
    are expensive, or whole batches, where they are many.
    """

    vectorised: bool = False  # a batch costs little more than one call
    cost: CostKind = "executions"  # what its time goes into: so many calls, or so many executions
    external: bool = False
    batch_size: int = 256  # inputs of an external subject that are run together
    record: Literal["input", "batch"] = "input"
    jobs: int | None = None  # processes that it uses at once, where it starts processes
    slots: int = 1  # executions that it makes at the same time
    by_order: bool = False  # whether columns are told apart by their order, which nobody checks
    executor: str = ""  # what runs its batches, if that is not this process
    seeded: bool = False  # whether it is told to answer the same whenever it is asked the same

    @property
    def is_one_call(self) -> bool:
        """Whether a batch is one call in this process."""
        return self.vectorised and not (self.external or self.executor)


class Subject(ABC):
    """The software under test."""

    kind: str  # is recorded and shown, and decides nothing
    traits: Traits = Traits()
    schema: Schema
    covered = "program"  # what the fingerprint is of; or "requests"
    reads_texts = False  # whether it is given the words of documents
    structured = False  # whether an output may have parts; set where outputs are declared
    deadline = math.inf  # of the batch that is run: what has not ended until then is cut off
    call_inputs: int | None = None  # of the batch that is run, where it is several calls: of each
    unfinished: Answers | None = None  # of the batch that is run, or whose run was interrupted
    ran_elsewhere = False  # whether its executor, if it has one, gave answers
    tokens: Tokens | None = None  # used so far; None: it is no language model
    prices: Prices | None = None  # of them, where they are known
    is_spent: Callable[[], bool] = staticmethod(lambda: False)  # whether tokens or money are

    def begin(self, count: int) -> Answers:
        """Answers to fill in, so that an interrupted run keeps those that have come in.

        The output is None where there is no answer yet, or a failure instead.
        """
        heed(self.deadline)
        self.unfinished = Answers([None] * count)
        return self.unfinished

    def finish(self, answers: Answers, given: int | None = None, calls: int = 1) -> Answers:
        """The answers that were filled in, with their failures in order."""
        self.unfinished = None
        return Answers(answers.outputs, dict(sorted(answers.failures.items())), given, calls)

    @abstractmethod
    def load(self, codes: NDArray[Any]) -> Batch:
        """These inputs in the subject's own representation."""

    @abstractmethod
    def fingerprint(self) -> str:
        """What the subject is, as far as it can be known: equal when results may be reused."""

    def decision_mistakes(self, favourable: tuple[Value, ...] | None) -> Iterator[Mistake]:
        """What is wrong with what counts as a decision; None: nobody said what is favourable."""
        return iter(())

    def unseen(self) -> Mapping[str, tuple[Value, ...]]:
        """The values of characteristics that it takes for unknown, as it was trained on others."""
        return {}

    def unsure_of(self) -> frozenset[str]:
        """The characteristics of which it may take values for unknown, and nobody can know it."""
        return frozenset()

    def possible_outputs(self) -> tuple[Value, ...] | None:
        """All that it can answer, where that is known before it is run."""
        return None

    def foresee(self, executions: int) -> Tokens | None:
        """The tokens that so many executions will use, as far as is known; None: it has none."""
        return None

    def reproduce(self, row: Mapping[str, Value]) -> str | None:
        """A line that a person can paste into a shell to run the subject on this input."""
        return None

    def secrets(self) -> Secrets:
        """What it knows and must not be shown in what it says."""
        secrets = Secrets()
        secrets.protect_variables(inherited_secrets())
        return secrets

    def note_answered(self) -> None:
        """Take note that it has answered in earlier runs: inputs that fail now are exceptions."""
        return

    def close(self) -> None:
        """End what it keeps alive; a later batch starts it again."""
        return


def isolate_failures(
    call: Callable[[int, int], Any], count: int, subject: Subject | None = None
) -> Answers:
    """Run a whole-batch call; when it raises, halve the batch until the culprits are alone.

    `call(start, stop)` returns that part's outputs or raises. How often inputs are run again
    depends on how they were batched, so that no budget counts it; only the time ends it, which the
    subject has. Of an isolation that is interrupted it keeps what that cost. Where outputs are not
    one for each input all fail: a smaller part might get a number of them that fits by chance.
    """
    try:
        return Answers(_checked(call(0, count), count))
    except MistakesError:  # the user's, not the subject's
        raise
    except (Exception, SystemExit) as error:
        failures = dict.fromkeys(range(count), crash_of(error, alone=count == 1))
        if count == 1 or isinstance(error, WrongOutputsError):
            return Answers([None] * count, failures)
    isolation = _Isolation(call, failures)
    try:
        return isolation.run(math.inf if subject is None else subject.deadline)
    except BaseException:
        if subject is not None:
            subject.unfinished = Answers([], {}, isolation.given, isolation.calls)
        raise


class _Isolation:
    """A batch whose call failed, and what its parts do."""

    def __init__(self, call: Callable[[int, int], Any], failures: dict[int, Failure]) -> None:
        self._call, self._failures = call, failures
        self._outputs: list[Any] = [None] * len(failures)
        self.given, self.calls = len(failures), 1
        self._largest = (0, 0.0)

    def run(self, deadline: float) -> Answers:
        """The answers, with those failures for which inputs are to blame, as far as can be told."""
        search = CulpritSearch(halves(range(len(self._outputs)))[::-1])
        for part in search:
            heed(deadline)
            try:
                self._try(part)
            except (Exception, SystemExit) as error:
                failure = crash_of(error, alone=len(part) == 1)
                if isinstance(error, WrongOutputsError) and len(part) > 1:
                    self._failures = dict.fromkeys(range(len(self._outputs)), failure)
                    break
                self._failures |= dict.fromkeys(part, failure)
                search.halve(part)
        return Answers(self._outputs, self._failures, self.given, self.calls, self._largest)

    def _try(self, part: Sequence[int]) -> None:
        """Have a part answered, or raise."""
        start, stop = part[0], part[-1] + 1
        self.given, self.calls = self.given + len(part), self.calls + 1
        started = time.perf_counter()
        outputs = _checked(self._call(start, stop), len(part))
        self._largest = max(self._largest, (len(part), time.perf_counter() - started))
        self._outputs[start:stop] = outputs if isinstance(outputs, list) else outputs.tolist()
        for place in part:
            self._failures.pop(place)


def _checked(outputs: Any, count: int) -> Any:
    """The outputs as a list, a one-dimensional array or columns of the right length."""
    if isinstance(outputs, Mapping) or hasattr(outputs, "columns"):
        names = outputs.keys() if isinstance(outputs, Mapping) else outputs.columns
        return _columns({name: outputs[name] for name in names}, count)
    if not isinstance(outputs, list):
        array = np.asarray(outputs)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 2:
            return _columns(dict(enumerate(array.T)), count)
        if array.ndim != 1:
            raise WrongOutputsError(f"the subject returned {_named(outputs, array)}")
        outputs = array
    if len(outputs) != count:
        returned = count_of(len(outputs), "output")
        message = f"the subject returned {returned} for {count_of(count, 'input')}"
        raise WrongOutputsError(message)
    return outputs


def _columns(columns: Mapping[Any, Any], count: int) -> OutputColumns:
    try:
        return OutputColumns(columns, count)
    except ValueError as error:
        raise WrongOutputsError(str(error)) from None


def _named(outputs: Any, array: NDArray[Any]) -> str:
    """What came instead of a list or an array of outputs, and the remedy."""
    named = f"an array of shape {array.shape}" if array.ndim else shortened(outputs)
    return f"{named}; it must return one output for each input, in a list or an array"


def at_door(subject: Subject, schema: Schema) -> Subject:
    """The subject as inputs of this schema reach it: without what is only known of people.

    It was made for `schema.given`; RequestError for a ready-made one that was not, and where it is
    of a kind that is not given texts.
    """
    texts = [each.name for each in schema if isinstance(each, Documents)]
    if texts and not subject.reads_texts:
        problem = f"a subject of kind {subject.kind!r} is not given texts"
        remedy = 'use kind = "http", or values'
        raise RequestError.one("documents", f"inputs.{texts[0]}", problem, remedy)
    if schema.given is schema or isinstance(subject, Door):
        return subject
    if subject.schema.names != schema.given.names:
        hidden = [name for name in schema.names if name not in schema.given.names]
        problem = f"the subject was made for other characteristics than it is given: {hidden}"
        problem += " never reach it"
        raise RequestError.one("ready-made", "subject", problem, "make it for schema.given")
    return Door(subject, schema)


def _passing_on(*names: str) -> Callable[[type[Any]], Any]:
    """Lets a class pass on what belongs to the subject inside, be it an attribute or a method."""

    def put(name: str, around: Around, value: Any) -> None:
        setattr(around.inside, name, value)

    def passing(around: type[Any]) -> Any:
        for name in names:
            setattr(around, name, property(attrgetter(f"inside.{name}"), partial(put, name)))
        return around

    return passing


@_passing_on("structured", "decision_mistakes", "unseen", "unsure_of", "secrets")
@_passing_on("possible_outputs", "foresee", "reproduce", "note_answered", "close")
class Around(Subject):
    """A subject around another one, which it passes on whatever it does not do itself."""

    def __init__(self, inside: Subject) -> None:
        self.inside, self.kind, self.reads_texts = inside, inside.kind, inside.reads_texts

    def fingerprint(self) -> str:
        return self.inside.fingerprint()


@_passing_on("traits", "covered", "deadline", "call_inputs", "unfinished", "ran_elsewhere")
@_passing_on("tokens", "prices", "is_spent")
class Door(Around):
    """A subject that gets its own characteristics of inputs that have others as well."""

    def __init__(self, inside: Subject, schema: Schema) -> None:
        super().__init__(inside)
        self.schema = schema
        self._columns = [schema.column_by_name[name] for name in inside.schema.names]

    def load(self, codes: NDArray[Any]) -> Batch:
        return _Batch(self.inside.load(np.asfortranarray(codes[:, self._columns])), self._columns)

    def reproduce(self, row: Mapping[str, Value]) -> str | None:
        return self.inside.reproduce({name: row[name] for name in self.inside.schema.names})


class _Batch:
    """A batch that hears of changes in the columns that it has."""

    def __init__(self, inside: Batch, columns: list[int]) -> None:
        self._inside, self._columns = inside, columns
        self.run = inside.run

    def overwrite(self, column: int, codes: Codes | int) -> None:
        if column in self._columns:
            self._inside.overwrite(self._columns.index(column), codes)

    def take(self, places: NDArray[np.int64]) -> Batch:
        return _Batch(self._inside.take(places), self._columns)
