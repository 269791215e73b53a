"""Outcomes: what an execution yields, a decision known by its label, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import SubjectError
from themis.inputs.characteristics import Value
from themis.subjects.meanings import Meanings
from themis.subjects.spelling import Alike, Spellings

# A cell of a table is a label's number (0, 1, …) or one of these.
FAILED = -1  # executed, without a decision
NO_COUNTERFACTUAL = -2  # a constraint forbids this variant
NOT_RUN = -3

Cells = NDArray[Any]  # of whole numbers; one byte each where outputs are plain decisions

DEFAULT_FAVOURABLE: tuple[Value, ...] = (1, "1", True, "true")
LABEL_LIMIT = 100
SHOWN_TEXT = 120  # characters of an output in a message
SHOWN_ERROR = 500  # and of what was raised

CRASH = "crash"  # the subject raised, or ended badly
INVALID = "invalid output"  # it answered, but not with a decision
NO_DECISION = "no decision"  # it answered, but with a text that fits no label, or two
TIMEOUT = "timeout"  # it took too long and was ended
TRANSPORT = "transport"  # it was not reached, or had no time: says nothing about the input
NOT_SENT = "not sent"  # it was not asked, since all that it was asked just before failed


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


class Labels:
    """The distinct decisions of a subject, numbered as they appear, and which are favourable.

    An output is a decision by itself, unless `meanings` say which texts mean which.
    """

    dtype = np.dtype(np.int8)
    layout = ""  # an output is kept as it is

    def __init__(
        self,
        favourable: Iterable[Value] = DEFAULT_FAVOURABLE,
        meanings: Meanings | None = None,
    ) -> None:
        self.wanted = list(favourable)
        self.meanings = meanings
        self._numbers = _Numbers(meanings)
        self._spellings = None if meanings is not None else Spellings(self.wanted)

    @property
    def alike(self) -> Alike | None:
        """For each label the first that is spelled alike; None where none are, or labels are."""
        return None if self._spellings is None else self._spellings.alike(self._numbers.labels)

    @property
    def maybe_favourable(self) -> NDArray[np.bool_] | None:
        """For each label whether it is spelled like a favourable one, and is none; None: none."""
        if self._spellings is None:
            return None
        like = self._spellings.like_favourable(self._numbers.labels) & ~self.favourable
        return like if like.any() else None

    @property
    def labels(self) -> tuple[Value, ...]:
        """The labels seen so far; a label's number is its place."""
        return tuple(self._numbers.labels)

    @property
    def keeps_answers(self) -> bool:
        """Whether a cache must keep the answers themselves, since labels do not tell them."""
        return self.meanings is not None

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """For each label seen so far, whether it is a favourable decision."""
        wanted = self.wanted
        return np.array([label in wanted for label in self._numbers.labels], dtype=bool)

    def is_favourable(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells hold a favourable decision; cells without a decision do not."""
        wanted = np.flatnonzero(self.favourable)
        if len(wanted) == 1:
            return np.asarray(cells == wanted[0])
        table = np.zeros(256, dtype=bool)
        table[: len(self._numbers.labels)] = self.favourable
        return table[cells.astype(np.int8, copy=False).view(np.uint8)]

    def number(self, outputs: Any) -> Cells:
        """The label number of each output, FAILED where it can't be a decision.

        Takes a list or an array. Numbers must be whole: 0.73 is a probability, not a decision.
        """
        if isinstance(outputs, list):
            return self._number_objects(outputs)
        if not isinstance(outputs, np.ndarray):  # columns: several outputs, none of them declared
            return np.full(len(outputs), FAILED, dtype=np.int8)
        kind = outputs.dtype.kind
        if kind == "b":
            return self._number_two(outputs, False, True)
        if kind in "iu":
            return self._number_integers(outputs)
        if kind == "f":
            return self._number_floats(outputs)
        return self._number_objects(outputs.tolist())

    def number_stored(self, outputs: Sequence[Value]) -> Cells:
        """The numbers of outputs that were stored."""
        return self._number_objects(list(outputs))

    def stored(self, output: Any) -> Any:
        """An output as it is stored; None for what is not worth it."""
        value = output.item() if isinstance(output, np.generic) else output
        any_text = self.meanings is not None and isinstance(value, str)
        return value if any_text or is_decision(value) else None

    def as_answer(self, output: Value) -> Any:
        """An answer that holds an output that was stored."""
        return output

    def explain(self, output: Any) -> Failure:
        """Why an output is no decision."""
        if self.meanings is not None and self.stored(output) is not None:
            problem = self.meanings.problem(output)
            return Failure(NO_DECISION, f"it returned {shortened(output)} ({problem})")
        if isinstance(output, dict):
            said = f"it returned {shortened(output)}; say in [outputs] which part is measured"
            return Failure(INVALID, said)
        hint = ""
        if is_number_like(output):
            hint = "; describe it in [outputs] to measure numbers"
        shown = shortened(output)
        said = f"it returned {shown}, no decision (a text, a truth value or a whole number)"
        return Failure(INVALID, f"{said}{hint}")

    def _number_two(self, second: NDArray[np.bool_], low: Value, high: Value) -> Cells:
        """The numbers where there are at most two outputs: by far the most frequent case."""
        numbers = np.full(2, FAILED, dtype=np.int8)
        if not second.all():
            numbers[0] = self._numbers[low]
        if second.any():
            numbers[1] = self._numbers[high]
        if numbers[1] == 1 and numbers[0] < 1:
            return second.astype(np.int8)
        return np.asarray(np.where(second, numbers[1], numbers[0]))

    def _by_table(self, places: NDArray[Any], values: Sequence[Value]) -> Cells:
        present = np.bincount(places, minlength=len(values)) > 0
        table = np.full(len(values), FAILED, dtype=np.int8)
        for place in np.flatnonzero(present).tolist():
            table[place] = self._numbers[values[place]]
        cells: Cells = table[places]
        return cells

    def _number_integers(self, outputs: NDArray[Any]) -> Cells:
        if not len(outputs):
            return np.empty(0, dtype=np.int8)
        low, high = int(outputs.min()), int(outputs.max())
        if high - low <= 1:
            return self._number_two(outputs == low + 1, low, low + 1)
        if high - low < 256:
            return self._by_table((outputs - low).astype(np.uint8), range(low, high + 1))
        values, places = np.unique(outputs, return_inverse=True)
        return self._by_table(places, values.tolist())

    def _number_floats(self, outputs: NDArray[Any]) -> Cells:
        whole = np.isfinite(outputs) & (np.abs(outputs) < 2**53)
        whole[whole] = outputs[whole] == np.floor(outputs[whole])
        cells = np.full(len(outputs), FAILED, dtype=np.int8)
        cells[whole] = self._number_integers(outputs[whole].astype(np.int64))
        return cells

    def _number_objects(self, outputs: list[Any]) -> Cells:
        try:
            return self._number_bytes(outputs, np.frombuffer(bytes(outputs), dtype=np.uint8))
        except (TypeError, ValueError):  # not only truth values and small whole numbers
            pass
        try:
            return np.fromiter(map(self._numbers.__getitem__, outputs), np.int8, len(outputs))
        except TypeError:  # something unhashable among them: a list or a dictionary
            keys = [output if _is_hashable(output) else None for output in outputs]
            return np.fromiter(map(self._numbers.__getitem__, keys), np.int8, len(keys))

    def _number_bytes(self, outputs: list[Any], values: NDArray[np.uint8]) -> Cells:
        """The numbers of outputs that all fit into a byte: a tenth of the time."""
        table = np.full(256, FAILED, dtype=np.int8)
        for place in sorted(map(outputs.index, np.flatnonzero(np.bincount(values)).tolist())):
            table[values[place]] = self._numbers[outputs[place]]
        cells: Cells = table[values]
        return cells


class _Numbers(dict[Any, int]):
    """Output → number of its label; a new label gets the next one, a non-decision FAILED."""

    def __init__(self, meanings: Meanings | None) -> None:
        super().__init__()
        self.labels: list[Value] = []
        self._meanings = meanings

    def __missing__(self, output: Any) -> int:
        label = output.item() if isinstance(output, np.generic) else output
        if self._meanings is not None:
            return self._meant(self._meanings, label)
        if not is_decision(label):
            return FAILED
        if label in self and label is not output:
            return self[label]
        if len(self) >= LABEL_LIMIT:
            raise SubjectError(
                f"the subject gave more than {LABEL_LIMIT} different outputs: say in "
                "[subject.labels] which of them mean the same; if they are measurements, "
                "describe them in [outputs], or compare them with a cut-off first"
            )
        self[label] = self._place(label)
        return self[label]

    def _meant(self, meanings: Meanings, output: Any) -> int:
        found = meanings.matching(output)
        number = self._place(found[0]) if len(found) == 1 else FAILED
        if isinstance(output, str):  # 1 and true are the same key, and two texts
            self[output] = number
        return number

    def _place(self, label: Value) -> int:
        if label not in self.labels:
            self.labels.append(label)
        return self.labels.index(label)


def shortened(output: Any) -> str:
    """An output in a message: services may talk at length."""
    if isinstance(output, str) and len(output) > SHOWN_TEXT:
        return f"{output[:SHOWN_TEXT]!r}… ({len(output):,} characters)"
    return cut_text(repr(output), SHOWN_TEXT)


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


def _is_hashable(output: Any) -> bool:
    try:
        hash(output)
    except TypeError:
        return False
    return True
