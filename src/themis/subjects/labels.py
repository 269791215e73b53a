"""Labels: the distinct answers of a subject, numbered as they appear, output by output.

A cell of a table holds the number of an answer. What one output is in it stands in a column of
its own here, so that several outputs are read off the same executions. Where no output is declared
the whole answer is one, a decision.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import SubjectError
from themis.inputs.characteristics import Value
from themis.subjects.decisions import (
    DECISION_LIMIT,
    DEFAULT_FAVOURABLE,
    FAILED,
    INVALID,
    NO_COUNTERFACTUAL,
    NO_DECISION,
    NOT_RUN,
    Cells,
    Failure,
    OutputColumns,
    is_decision,
    is_number_like,
    shortened,
)
from themis.subjects.outputs import Meanings, Output, find_part

RECORD_LIMIT = 2**22  # different answers with declared outputs; they are all kept


class Part:
    """The distinct values of one output, as they appeared: labels or lists.

    Texts that differ only in case, surrounding space or final punctuation are one label, unless
    the output says otherwise; if one of them is favourable, that one, else the first that was seen.
    """

    values: Any  # those seen so far; a value's number is its place
    wanted: Sequence[Value]  # the favourable ones that were named
    meanings: Meanings | None = None  # what texts mean, where that is declared
    _merged: dict[str, set[str]]  # label → the texts that were taken for it

    def __init__(self, output: Output, *, is_decision: bool = False) -> None:
        self.output, self.values = output, []
        self.wanted = list(DEFAULT_FAVOURABLE if output.favourable is None else output.favourable)
        self.meanings = None if output.labels is None else Meanings(output.labels)
        self._has_rate = is_decision or "rate" in output.statistics
        self._limit = DECISION_LIMIT if is_decision else RECORD_LIMIT
        self._dtype = np.int8 if is_decision else np.int32
        self._numbers = _Numbers(self._number)
        self._known_distances: dict[tuple[int, int], float] = {}
        plain = self.meanings is None and output.distance == "exact"
        self._merges = plain and output.similar_texts == "same"
        self._same: dict[str, Any] = {}  # text without what makes no difference → label
        self._merged = {}
        for each in self.wanted:
            if isinstance(each, str):
                self._same.setdefault(bare_text(each), each)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The values seen so far; a value's number is its place."""
        return tuple(self.values)

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """For each value seen so far, whether it is favourable."""
        found = [self._has_rate and value in self.wanted for value in self.values]
        return np.array(found, dtype=bool)

    def is_favourable(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells hold a favourable output; cells without one do not."""
        favourable = self.favourable
        if np.count_nonzero(favourable) == 1:
            return np.asarray(cells == favourable.argmax())
        found: NDArray[np.bool_] = np.append(favourable, [False] * 3)[cells]
        return found

    def merged_texts(self) -> list[tuple[str, ...]]:
        """The texts that were taken for the same, as groups."""
        return sorted(tuple(sorted(texts)) for texts in self._merged.values())

    def number_array(self, column: NDArray[Any]) -> Cells:
        """The numbers of a column's values."""
        kind = column.dtype.kind if column.ndim == 1 else ""
        if kind == "f" and self.output.distance == "exact":  # 0.73 is no decision
            whole = np.isfinite(column) & (np.abs(column) < 2**53)
            whole[whole] = column[whole] == np.floor(column[whole])
            cells = np.full(len(column), FAILED, dtype=self._dtype)
            cells[whole] = self._number_whole(column[whole].astype(np.int64))
            return cells
        if kind in ("i", "u"):
            return self._number_whole(column)
        if kind == "b":
            return self._by_table(column.view(np.uint8), [False, True])
        return self.number(column.tolist())

    def number(self, values: Sequence[Any]) -> Cells:
        """The numbers of these values, FAILED for what is no output."""
        try:
            return np.fromiter(map(self._numbers.__getitem__, values), self._dtype, len(values))
        except TypeError:  # something unhashable among them: a list or a dictionary
            return np.array([self._number_any(value) for value in values], dtype=self._dtype)

    def problem(self, value: Any) -> str | None:
        """Why a value is no output; None if it is one."""
        if self.meanings is not None:
            return self.meanings.problem(value)
        if self.output.distance == "ranking":
            return None if isinstance(value, list | tuple) else "a ranking is a list"
        if self.output.distance == "exact":
            return None if is_decision(value) else "not a decision"
        return "nothing" if value is None else None

    def stored(self, value: Any) -> Any:
        """A value as it is stored; None for what is not worth it."""
        value = _plain(value)
        if self.meanings is not None:
            return value if isinstance(value, str) or is_decision(value) else None
        return value if self.problem(value) is None else None

    def distances(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """How far values are apart, element by element; equal pairs are asked for once."""
        if self.output.distance == "exact":
            return np.asarray(first != second, dtype=np.float64)
        pairs, places = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
        apart = np.array([self._distance(one, other) for one, other in pairs.T.tolist()])
        distances: NDArray[np.float64] = apart[places.reshape(-1)]
        return distances

    def _distance(self, first: int, second: int) -> float:
        known = self._known_distances.get((first, second))
        if known is None:
            known = self._known_distances[first, second] = self._between(first, second)
        return known

    def _between(self, first: int, second: int) -> float:
        if first == second:
            return 0.0
        try:
            return self.output.between(*map(_plain, (self.values[first], self.values[second])))
        except Exception as error:
            raise SubjectError(f"outputs.{self.output.name}.distance: {error}") from error

    def _number_whole(self, column: NDArray[Any]) -> Cells:
        """The numbers of whole numbers, each different one looked at once."""
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if high - low < 256:
            return self._by_table((column - low).astype(np.uint8), range(low, high + 1))
        values, places = np.unique(column, return_inverse=True)
        return self.number(values.tolist())[places]

    def _by_table(self, places: NDArray[np.uint8], values: Sequence[Value]) -> Cells:
        table = np.full(len(values), FAILED, dtype=self._dtype)
        for place in np.flatnonzero(np.bincount(places, minlength=len(values))).tolist():
            table[place] = self._numbers[values[place]]
        cells: Cells = table[places]
        return cells

    def _number_any(self, value: Any) -> int:
        try:
            return self._numbers[value]
        except TypeError:
            if self.problem(value) is not None:
                return FAILED
        key = ("list", json.dumps(value, sort_keys=True))
        if key not in self._numbers:
            self._numbers[key] = self._new(value)
        return self._numbers[key]

    def _number(self, value: Any) -> int:
        """The number of a value that was not met yet; 1 and true are one key, and two texts."""
        value = _plain(value)
        if self.meanings is not None:
            found = self.meanings.matching(value)
            number = self._place(found[0]) if len(found) == 1 else FAILED
            if isinstance(value, str):
                self._numbers[value] = number
            return number
        if self.problem(value) is not None:
            return FAILED
        merges = self._merges and isinstance(value, str)
        self._numbers[value] = self._place(self._merge(value)) if merges else self._new(value)
        return self._numbers[value]

    def _merge(self, text: str) -> str:
        label: str = self._same.setdefault(bare_text(text), text)
        if label != text:
            self._merged.setdefault(label, {label}).add(text)
        return label

    def _place(self, label: str) -> int:
        return self.values.index(label) if label in self.values else self._new(label)

    def _new(self, value: Any) -> int:
        if len(self.values) >= self._limit:
            raise too_many(self._limit)
        self.values.append(value)
        return len(self.values) - 1


class _Numbers(dict[Any, int]):
    """Value → number; it is asked for where it is not known."""

    def __init__(self, number: Callable[[Any], int]) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, value: Any) -> int:
        return self._number(value)


class NumberPart(Part):
    """An output that is a number; the distinct ones, as they appeared."""

    def __init__(self, output: Output) -> None:
        self.output, self.wanted, self._merged = output, output.favourable or (), {}
        self.values: NDArray[np.float64] = np.empty(0)
        self._places: dict[float, int] = {}

    @property
    def labels(self) -> tuple[float, ...]:
        """The numbers seen so far, whole ones without a point."""
        return tuple(int(v) if v.is_integer() else v for v in self.values.tolist())

    @property
    def favourable(self) -> NDArray[np.bool_]:
        if self.output.cut is not None:
            return self.values > self.output.cut
        return np.isin(self.values, np.array(self.output.favourable or (), dtype=float))

    def shares(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers in cells as shares of the scale, from 0 to 1; 0 where there is none."""
        assert self.output.scale is not None
        low, high = self.output.scale
        shares = np.append((self.values - low) / (high - low), [0.0] * 3)
        return np.asarray(shares[cells])

    def number_array(self, column: NDArray[Any]) -> Cells:
        """The numbers' numbers; FAILED where one is not finite or outside of the scale."""
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            return self.number(column.tolist())
        column = column.astype(np.float64)
        good = np.isfinite(column)
        if self.output.scale is not None:
            low, high = self.output.scale
            good &= (column >= low) & (column <= high)
        result = np.full(len(column), FAILED, dtype=np.int32)
        values, inverse = np.unique(column[good], return_inverse=True)
        result[good] = self._numbers_of(values)[inverse]
        return result

    def number(self, values: Sequence[Any]) -> Cells:
        """The same for values of any kind; texts that are numbers count as such."""
        return self.number_array(np.array([_as_number(each) for each in values], dtype=float))

    def problem(self, value: Any) -> str | None:
        number = _as_number(value)
        if not np.isfinite(number):
            return "not a number"
        scale = self.output.scale
        if scale is not None and not scale[0] <= number <= scale[1]:
            return f"not between min = {scale[0]:g} and max = {scale[1]:g}"
        return None

    def stored(self, value: Any) -> float | None:
        """A number as it is stored, a whole one without a point; None for what is none."""
        if self.problem(value) is not None:
            return None
        number = _as_number(value)
        return int(number) if number.is_integer() else number

    def distances(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        if callable(self.output.distance) or self.output.distance == "exact":
            return super().distances(first, second)
        return self.output.between_numbers(self.values[first], self.values[second])

    def _distance(self, first: int, second: int) -> float:
        return self._between(first, second)  # too many to remember

    def _numbers_of(self, values: NDArray[np.float64]) -> Cells:
        """The numbers of distinct values; new ones get the next."""
        own = self._places
        numbers = [own.setdefault(value, len(own)) for value in values.tolist()]
        if len(own) > RECORD_LIMIT:
            raise too_many(RECORD_LIMIT)
        if len(own) > len(self.values):
            self.values = np.array([*own])
        return np.array(numbers, dtype=np.int32)


def part_of(output: Output) -> Part:
    """The values of an output: numbers, or labels and lists."""
    return NumberPart(output) if output.numeric else Part(output)


class Stored:
    """An answer of which only the outputs were kept."""

    def __init__(self, outputs: Sequence[Any]) -> None:
        self.outputs = outputs


class Labels:
    """The distinct answers of a subject; the place of one is its number.

    Without declared outputs an answer is one decision, of which `decision` says what is favourable
    and what texts mean.
    """

    def __init__(self, outputs: Sequence[Output] = (), decision: Output | None = None) -> None:
        self.declared = tuple(outputs)
        undeclared = Part(decision or Output(), is_decision=True)
        self.parts: tuple[Part, ...] = tuple(map(part_of, outputs)) or (undeclared,)
        self.outputs = tuple(part.output for part in self.parts)
        self.dtype = np.dtype(np.int32 if outputs else np.int8)
        self._is_whole = len(self.parts) == 1 and self.outputs[0].at is None
        # Whether each output is the answer itself, of which more than one thing is measured.
        self.is_plain = not any(each.at is not None or each.numeric for each in self.outputs)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._columns = np.empty((len(self.parts), 0), np.int32)  # of those numbers, by output

    @property
    def layout(self) -> str:
        """What is kept of an answer, as a text: stored answers of another layout don't fit."""
        places = [] if self.is_plain else [[each.at, each.numeric] for each in self.declared]
        return hashlib.sha256(json.dumps(places).encode()).hexdigest()[:8] if places else ""

    @property
    def labels(self) -> tuple[Any, ...]:
        """The answers seen so far: the one output, or a list of them."""
        if len(self.parts) == 1:
            return self.parts[0].labels
        labels = [part.labels for part in self.parts]
        return tuple([own[i] for own, i in zip(labels, key, strict=True)] for key in self._numbers)

    def number(self, outputs: Any) -> Cells:
        """The number of each answer, FAILED where an output is missing or is none."""
        if isinstance(outputs, OutputColumns):
            if not self.declared:
                return np.full(len(outputs), FAILED, dtype=self.dtype)
            return self.join([self._column(outputs, part) for part in self.parts])
        if isinstance(outputs, np.ndarray) and outputs.dtype != object:
            if self._is_whole:
                return self.parts[0].number_array(outputs)
            return np.full(len(outputs), FAILED, dtype=self.dtype)
        if self._is_whole:
            return self.parts[0].number([*outputs])
        rows = [[*self._values(answer)] for answer in outputs]
        columns = [[row[place] for row in rows] for place in range(len(self.parts))]
        return self.join(
            [part.number(column) for part, column in zip(self.parts, columns, strict=True)]
        )

    def stored(self, answer: Any) -> Any:
        """What is stored of an answer: its outputs; None unless all are there."""
        pairs = zip(self.parts, self._values(answer), strict=True)
        kept = [part.stored(value) for part, value in pairs]
        if any(each is None for each in kept):
            return None
        return kept[0] if len(kept) == 1 or self.is_plain else kept

    def as_answer(self, answer: Any) -> Any:
        """An answer that holds outputs that were stored."""
        if self._is_whole or self.is_plain:
            return answer
        return Stored([answer] if len(self.parts) == 1 else answer)

    def join(self, numbers: list[Cells]) -> Cells:
        """The numbers of whole answers from those of their outputs, in order."""
        if len(numbers) == 1:
            return numbers[0]
        whole = np.logical_and.reduce([each >= 0 for each in numbers])
        result = np.full(len(whole), FAILED, dtype=np.int32)
        table = np.stack([each[whole] for each in numbers], axis=1)
        keys = np.zeros(len(table), dtype=np.int64)
        for column in range(table.shape[1]):  # answers that agree so far have the same key
            _, own = np.unique(table[:, column], return_inverse=True)
            _, keys = np.unique(keys * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        ids = [self._number(tuple(row)) for row in table[first].tolist()]
        result[whole] = np.array(ids, dtype=np.int32)[places]
        new = [*islice(self._numbers, self._columns.shape[1], None)]
        if new:
            self._columns = np.hstack([self._columns, np.array(new, dtype=np.int32).T])
        return result

    def part_cells(self, place: int, cells: NDArray[Any]) -> NDArray[Any]:
        """What one output is in these cells."""
        if len(self.parts) == 1:
            return cells
        behind = np.array([NOT_RUN, NO_COUNTERFACTUAL, FAILED], dtype=np.int32)  # from the end
        seen: NDArray[Any] = np.append(self._columns[place], behind)[cells]
        return seen

    def explain(self, answer: Any) -> Failure:
        """Why an answer holds no output, or not all."""
        if not self.declared:
            return _no_decision(self.parts[0], answer)
        for place, part in enumerate(self.parts):
            output = part.output
            try:
                value = self._value(answer, place)
            except (LookupError, ValueError):
                said = f"it returned {shortened(answer)}, which has nothing at {output.at!r}"
                return Failure(INVALID, said)
            problem = part.problem(value)
            if problem is not None:
                named = output.labels is not None and part.stored(value) is not None
                said = f"it returned {shortened(value)} as {output.name}: {problem}"
                return Failure(NO_DECISION if named else INVALID, said)
        return Failure(INVALID, f"it returned {shortened(answer)}")

    def _column(self, outputs: OutputColumns, part: Part) -> Cells:
        column = outputs.at(part.output.at)
        if column is None:
            return np.full(len(outputs), FAILED, dtype=np.int32)
        if column.dtype == object:
            return part.number(column.tolist())
        return part.number_array(column)

    def _values(self, answer: Any) -> Iterator[Any]:
        """Each output of an answer; None where there is none."""
        for place in range(len(self.parts)):
            try:
                yield self._value(answer, place)
            except (LookupError, ValueError):
                yield None

    def _value(self, answer: Any, place: int) -> Any:
        """One output of an answer of any shape; a text that must have parts is read as JSON."""
        if isinstance(answer, Stored):
            return answer.outputs[place]
        at = self.outputs[place].at
        whole = json.loads(answer) if at is not None and isinstance(answer, str) else answer
        return find_part(whole, at)

    def _number(self, key: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number >= RECORD_LIMIT:
            raise too_many(RECORD_LIMIT)
        return number


def _no_decision(part: Part, output: Any) -> Failure:
    """Why an output is no decision, where none is declared."""
    if part.meanings is not None and part.stored(output) is not None:
        problem = part.meanings.problem(output)
        return Failure(NO_DECISION, f"it returned {shortened(output)} ({problem})")
    if isinstance(output, dict):
        said = f"it returned {shortened(output)}; say in [outputs] which part is measured"
        return Failure(INVALID, said)
    hint = "; describe it in [outputs] to measure numbers" if is_number_like(output) else ""
    said = f"it returned {shortened(output)}, no decision (a text, a truth value or a whole number)"
    return Failure(INVALID, f"{said}{hint}")


def bare_text(text: str) -> str:
    """What is left of a text without case, surrounding space and final punctuation.

    >>> [bare_text(each) for each in ("Approved.", " approved", "承認。", "<=50K", "A-", "...")]
    ['approved', 'approved', '承認', '<=50k', 'a-', '...']
    """
    folded = unicodedata.normalize("NFKC", text).casefold().strip()
    return folded.rstrip(".,;:!?…。").rstrip() or folded


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_number(value: Any) -> float:
    if value is None or isinstance(value, list | tuple | dict):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def too_many(limit: int) -> SubjectError:
    remedy = "round them, e.g. to two places"
    if limit == DECISION_LIMIT:
        remedy = (
            "say in [subject.labels] which of them mean the same; if they are measurements, "
            "describe them in [outputs], or compare them with a cut-off first"
        )
    return SubjectError(f"the subject gave more than {limit:,} different outputs: {remedy}")
