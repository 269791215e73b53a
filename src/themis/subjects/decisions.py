"""Decisions: what an execution yields, a label or a failure, and whom of a batch to blame."""

from __future__ import annotations

import math
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import count_of
from themis.inputs.characteristics import Value

# A cell of a table is a label's number (0, 1, …) or one of these.
FAILED = -1  # executed, without a decision
NO_COUNTERFACTUAL = -2  # a constraint forbids this variant
NOT_RUN = -3
DECISION_LIMIT = 100  # different decisions, which fit into a byte

Cells = NDArray[Any]  # of whole numbers; one byte each where outputs are plain decisions

DEFAULT_FAVOURABLE: tuple[Value, ...] = (1, "1", True, "true")

CRASH = "crash"  # the subject raised, or ended badly
INVALID = "invalid output"  # it answered, but not with a decision
NO_DECISION = "no decision"  # it answered, but with a text that fits no label, or two
TIMEOUT = "timeout"  # it took too long and was ended
TRANSPORT = "transport"  # it was not reached, or had no time: says nothing about the input
NOT_SENT = "not sent"  # it was not asked, since all that it was asked just before failed


class CutOff(str):
    """A text that ended before it was whole, which the one who wrote it says."""

    __slots__ = ()


@dataclass(frozen=True)
class Failure:
    """Why an execution yielded no decision.

    The message may repeat what a subject said, and so values of the input; `plain` never does.
    An input that only failed together with others, not `alone`, may not be to blame. The `remedy`
    is one for failures of this sort, if there is any but to mend the subject.
    """

    kind: str
    message: str
    plain: str = field(default="", compare=False)
    alone: bool = field(default=True, compare=False)
    remedy: str = field(default="", compare=False)


def shortened(output: Any) -> str:
    """An output in a message: services may talk at length."""
    most = 120
    if isinstance(output, str) and len(output) > most:
        return f"{output[:most]!r}… ({len(output):,} characters)"
    return cut_text(repr(output), most)


def cut_text(text: str, most: int) -> str:
    """The start of a text that is longer than a message can bear, with its size."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def is_number_like(output: Any) -> bool:
    """Whether an output is a finite number, whole or not."""
    return isinstance(output, int | float | np.number) and bool(np.isfinite(output))


def is_decision(label: Any) -> bool:
    """Whether an output can be a decision: a text, a truth value, or a whole number."""
    if isinstance(label, str):
        return bool(label.strip())
    if isinstance(label, float):
        return label.is_integer()
    return isinstance(label, bool | int)


class OutputColumns:
    """The answers of a batch as columns: name or place → array."""

    def __init__(self, columns: Mapping[Any, Any], length: int) -> None:
        self.columns = {key: np.asarray(column) for key, column in columns.items()}
        self._length = length
        for key, column in self.columns.items():
            if column.shape[:1] != (length,):
                outputs = count_of(len(np.atleast_1d(column)), "output")
                inputs = count_of(length, "input")
                raise ValueError(f"the column {key!r} has {outputs} for {inputs}")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> dict[Any, Any]:
        return {key: column[[place]].tolist()[0] for key, column in self.columns.items()}

    def tolist(self) -> list[dict[Any, Any]]:
        """One dictionary for each input."""
        names = list(self.columns)
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def at(self, key: str | int | None) -> NDArray[Any] | None:
        """The column of an output; of no place, the only one."""
        if isinstance(key, str) and key.startswith("/"):
            key = key[1:]
        if key is None and len(self.columns) == 1:
            (key,) = self.columns
        return self.columns.get(key)


class WrongOutputsError(ValueError):
    """A batch of inputs got something else than one output each; nobody knows whose is whose."""


class CulpritSearch:
    """The parts of a batch to try, one after the other; those that fail are halved.

    `for part in search` gives the parts; whoever tries one that fails notes the failure for all of
    it and calls `halve` before the next. The halves come next, until culprits are alone.

    After `limit` culprits the search weighs whether most of the batch fails: it tries single
    inputs all over it. If most fail nothing is halved any more: parts that failed as a whole stay
    failed, since which of their inputs is to blame is unknown, not guessed. If not, all culprits
    are looked for, in parts that are cut so small that many of them will work.
    """

    def __init__(self, parts: Iterable[Sequence[int]], *, limit: float = 8) -> None:
        self._parts = list(parts)
        self._untried = self._parts[::-1]
        self._failed: list[Sequence[int]] = []
        self._limit = limit
        self._culprits: set[int] = set()

    def __iter__(self) -> Iterator[Sequence[int]]:
        while self._untried or self._failed:
            if self._untried:
                yield self._untried.pop()
            elif len(self._culprits) < self._limit:
                self._untried = halves(self._failed.pop())
            elif (yield from self._most_fail()):
                return
            else:
                self._limit = math.inf

    def add(self, part: Sequence[int]) -> None:
        """Try this part, too, before any others, if there is anything in it."""
        if part:
            self._untried.append(part)

    def halve(self, part: Sequence[int]) -> None:
        """Try the halves of a part that failed; an input that failed alone is a culprit."""
        if len(part) > 1:
            self._failed.append(part)
        else:
            self._culprits.add(part[0])

    def _most_fail(self) -> Generator[Sequence[int], None, bool]:
        """Whether most of the batch fails; each input that is drawn and in doubt is tried alone."""
        places = [place for part in self._parts for place in part]
        doubtful = {place for part in self._failed for place in part}
        tried = set()
        lead, clear = 0, 20  # of those that fail over those that work, among those tried alone
        for at in np.random.default_rng(len(places)).permutation(len(places)).tolist():
            if places[at] in doubtful:
                yield places[at : at + 1]
                tried.add(places[at])
            lead += 1 if places[at] in self._culprits else -1
            if abs(lead) == clear:
                break
        if lead < clear:
            failing = len(tried & self._culprits)
            size = len(tried) // failing if failing else len(places)
            failed, self._failed = self._failed, []
            for part in failed:
                for piece in _cut(part, tried, size):
                    (self.add if len(piece) < len(part) else self.halve)(piece)
        return lead == clear


def halves(part: Sequence[int]) -> list[Sequence[int]]:
    """The halves of a part, the second one first."""
    middle = len(part) // 2
    return [part[middle:], part[:middle]]


def _cut(part: Sequence[int], settled: Container[int], size: int) -> Iterator[Sequence[int]]:
    """Pieces of at most this size, without inputs of which all is known."""
    first = 0
    for at, place in enumerate([*part, None]):
        if place is None or place in settled:
            if first < at:
                yield part[first:at]
            first = at + 1
        elif at - first == size:
            yield part[first:at]
            first = at


def crash_of(error: BaseException, *, alone: bool = True) -> Failure:
    """The failure of a subject that raised: what, and in which line of which file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name, place = type(error).__name__, ""
    if trace is not None and not trace.tb_frame.f_globals.get("__name__", "").startswith("themis."):
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    said = cut_text(str(error), 500)
    message = said if isinstance(error, WrongOutputsError) else f"{name}: {said}{place}"
    return Failure(CRASH, message, f"{name}{place}", alone)
