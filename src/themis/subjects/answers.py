"""Answer labels: the distinct answers of a subject with declared outputs, numbered as they appear.

A cell of a table holds the number of an answer. What one output is in it stands in a column of
its own here, so that several outputs are read off the same executions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import SubjectError, count_of
from themis.subjects.decisions import (
    DEFAULT_FAVOURABLE,
    FAILED,
    INVALID,
    NO_COUNTERFACTUAL,
    NO_DECISION,
    NOT_RUN,
    Failure,
    is_decision,
    shortened,
)
from themis.subjects.meanings import Meanings
from themis.subjects.outputs import Output, find_part
from themis.subjects.spelling import Alike, Spellings

RECORD_LIMIT = 2**22  # different answers; they are all kept

Numbers = NDArray[np.int32]


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


class Stored:
    """An answer of which only the outputs were kept."""

    def __init__(self, outputs: Sequence[Any]) -> None:
        self.outputs = outputs


class AnswerLabels:
    """The distinct answers of a subject; the place of one is its number."""

    dtype = np.dtype(np.int32)

    def __init__(self, outputs: Sequence[Output]) -> None:
        self.outputs = tuple(outputs)
        self.parts = tuple(part_of(each) for each in outputs)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._columns = [np.empty(0, np.int32) for _ in outputs]

    @property
    def layout(self) -> str:
        """What is kept of an answer, as a text: stored answers of another layout don't fit."""
        places = [[each.at, each.numeric] for each in self.outputs]
        return hashlib.sha256(json.dumps(places).encode()).hexdigest()[:8]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The answers seen so far: the one output, or a list of them."""
        if len(self.parts) == 1:
            return self.parts[0].labels
        labels = [part.labels for part in self.parts]
        return tuple([own[i] for own, i in zip(labels, key, strict=True)] for key in self._numbers)

    def number(self, outputs: Any) -> Numbers:
        """The number of each answer, FAILED where an output is missing or is none."""
        if isinstance(outputs, OutputColumns):
            return self.join([self._column(outputs, each) for each in self.outputs])
        if isinstance(outputs, np.ndarray) and outputs.dtype != object:
            if len(self.outputs) == 1 and self.outputs[0].at is None:
                return self.parts[0].number_array(outputs)
            return np.full(len(outputs), FAILED, dtype=np.int32)
        return self._number_answers(list(outputs))

    @property
    def keeps_answers(self) -> bool:
        """Whether a cache must keep the answers themselves, since labels do not tell them."""
        return any(output.labels is not None for output in self.outputs)

    def number_stored(self, answers: Sequence[Any]) -> Numbers:
        """The numbers of answers that were stored."""
        if len(self.parts) == 1:
            return self.parts[0].number(answers)
        columns = [[answer[k] for answer in answers] for k in range(len(self.parts))]
        pairs = zip(self.parts, columns, strict=True)
        return self.join([part.number(column) for part, column in pairs])

    def stored(self, answer: Any) -> Any:
        """What is stored of an answer: its outputs; None unless all are there."""
        pairs = zip(self.parts, self._values(answer), strict=True)
        kept = [part.stored(value) for part, value in pairs]
        if any(each is None for each in kept):
            return None
        return kept[0] if len(kept) == 1 else kept

    def as_answer(self, answer: Any) -> Any:
        """An answer that holds outputs that were stored."""
        return Stored([answer] if len(self.parts) == 1 else answer)

    def join(self, numbers: list[Numbers]) -> Numbers:
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
        self._refresh()
        return result

    def part_cells(self, place: int, cells: NDArray[Any]) -> NDArray[Any]:
        """What one output is in these cells."""
        if len(self.parts) == 1:
            return cells
        known = self._columns[place]
        own = np.empty(len(known) + 3, dtype=np.int32)
        own[:-3] = known
        own[[FAILED, NO_COUNTERFACTUAL, NOT_RUN]] = FAILED, NO_COUNTERFACTUAL, NOT_RUN
        seen: NDArray[Any] = own[cells]
        return seen

    def explain(self, answer: Any) -> Failure:
        """Why an answer holds no output, or not all."""
        for place, (output, part) in enumerate(zip(self.outputs, self.parts, strict=True)):
            try:
                value = (
                    answer.outputs[place]
                    if isinstance(answer, Stored)
                    else find_part(_parsed(answer, output.at), output.at)
                )
            except (LookupError, ValueError):
                said = f"it returned {shortened(answer)}, which has nothing at {output.at!r}"
                return Failure(INVALID, said)
            problem = part.problem(value)
            if problem is not None:
                named = output.labels is not None and part.stored(value) is not None
                said = f"it returned {shortened(value)} as {output.name}: {problem}"
                return Failure(NO_DECISION if named else INVALID, said)
        return Failure(INVALID, f"it returned {shortened(answer)}")

    def _column(self, outputs: OutputColumns, output: Output) -> Numbers:
        part = self.parts[self.outputs.index(output)]
        key: Any = output.at
        if isinstance(key, str) and key.startswith("/"):
            key = key[1:]
        if key is None and len(outputs.columns) == 1:
            (key,) = outputs.columns
        column = outputs.columns.get(key)
        if column is None and isinstance(key, str) and key.isdigit():
            column = outputs.columns.get(int(key))
        if column is None:
            return np.full(len(outputs), FAILED, dtype=np.int32)
        if column.dtype == object:
            return part.number(column.tolist())
        return part.number_array(column)

    def _number_answers(self, answers: list[Any]) -> Numbers:
        """Answers of any shape, one by one; each output is looked for in it."""
        columns: list[list[Any]] = [[] for _ in self.outputs]
        for answer in answers:
            for column, value in zip(columns, self._values(answer), strict=True):
                column.append(value)
        pairs = zip(self.parts, columns, strict=True)
        return self.join([part.number(column) for part, column in pairs])

    def _values(self, answer: Any) -> Iterator[Any]:
        if isinstance(answer, Stored):
            yield from answer.outputs
            return
        for output in self.outputs:
            try:
                yield find_part(_parsed(answer, output.at), output.at)
            except (LookupError, ValueError):
                yield None

    def _number(self, key: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number >= RECORD_LIMIT:
            raise _too_many()
        return number

    def _refresh(self) -> None:
        known = len(self._columns[0])
        new = list(self._numbers)[known:] if len(self._numbers) > known else []
        if new:
            rows = np.array(new, dtype=np.int32)
            self._columns = [
                np.concatenate([column, rows[:, k]]) for k, column in enumerate(self._columns)
            ]


class LabelPart:
    """The distinct values of one output, as they appeared."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._known_distances: dict[tuple[int, int], float] = {}
        self.wanted = list(DEFAULT_FAVOURABLE if output.favourable is None else output.favourable)
        self.meanings = None if output.labels is None else Meanings(output.labels)
        plain = output.labels is None and output.distance == "exact"
        self._spellings = Spellings(self.wanted) if plain else None

    @property
    def alike(self) -> Alike | None:
        """For each value the first that is spelled alike; None where none are, or labels are."""
        return None if self._spellings is None else self._spellings.alike(self.values)

    @property
    def maybe_favourable(self) -> NDArray[np.bool_] | None:
        """For each value whether it is spelled like a favourable one, and is none; None: none."""
        if self._spellings is None or "rate" not in self.output.statistics:
            return None
        like = self._spellings.like_favourable(self.values) & ~self.favourable
        return like if like.any() else None

    @property
    def labels(self) -> tuple[Any, ...]:
        """The values seen so far; a value's number is its place."""
        return tuple(self.values)

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """For each value seen so far, whether it is favourable."""
        if "rate" not in self.output.statistics:
            return np.zeros(len(self.values), dtype=bool)
        return np.array([value in self.wanted for value in self.values], dtype=bool)

    def is_favourable(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells hold a favourable output."""
        found: NDArray[np.bool_] = np.append(self.favourable, [False] * 3)[cells]
        return found

    def number_array(self, column: NDArray[Any]) -> Numbers:
        """The numbers of a column's values; each distinct one is looked at once."""
        values, places = np.unique(column, return_inverse=True)
        return self.number(values.tolist())[places]

    def number(self, values: Iterable[Any]) -> Numbers:
        """The numbers of these values, FAILED for what is no output."""
        return np.array([self._number(value) for value in values], dtype=np.int32)

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
        value = value.item() if isinstance(value, np.generic) else value
        if self.meanings is not None:
            return value if isinstance(value, str) or is_decision(value) else None
        return value if self.problem(value) is None else None

    def distances(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """How far values are apart, element by element; a distance is asked for once."""
        if self.output.distance == "exact":
            return np.asarray(first != second, dtype=np.float64)
        return _each_pair(self._distance, first, second)

    def _distance(self, i: int, j: int) -> float:
        if i == j:
            return 0.0
        known = self._known_distances.get((i, j))
        if known is None:
            try:
                known = self.output.between(self.values[i], self.values[j])
            except Exception as error:
                raise SubjectError(f"outputs.{self.output.name}.distance: {error}") from error
            self._known_distances[i, j] = known
        return known

    def _number(self, value: Any) -> int:
        if isinstance(value, np.generic):
            value = value.item()
        if self.meanings is not None:
            return self._meant(self.meanings, value)
        if self.problem(value) is not None:
            return FAILED
        plain = isinstance(value, str | int | float)
        key = (type(value).__name__, value if plain else json.dumps(value, sort_keys=True))
        if key not in self._numbers:
            if len(self.values) >= RECORD_LIMIT:
                raise _too_many()
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]

    def _meant(self, meanings: Meanings, value: Any) -> int:
        """The number of the label that a value fits; each text is looked at once."""
        number = self._numbers.get(value) if isinstance(value, str) else None
        if number is None:
            found = meanings.matching(value)
            if len(found) == 1 and found[0] not in self.values:
                self.values.append(found[0])
            number = self.values.index(found[0]) if len(found) == 1 else FAILED
            if isinstance(value, str):
                self._numbers[value] = number
        return number


class NumberPart:
    """The distinct numbers of one output, as they appeared."""

    alike: Alike | None = None  # numbers have no spelling
    maybe_favourable: NDArray[np.bool_] | None = None

    def __init__(self, output: Output) -> None:
        self.output = output
        self.values: NDArray[np.float64] = np.empty(0)
        self._sorted: NDArray[np.float64] = np.empty(0)
        self._places: Numbers = np.empty(0, np.int32)

    @property
    def labels(self) -> tuple[float, ...]:
        """The numbers seen so far, whole ones without a point."""
        return tuple(int(v) if v.is_integer() else v for v in self.values.tolist())

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """For each number seen so far, whether it is favourable."""
        if self.output.cut is not None:
            return self.values > self.output.cut
        return np.isin(self.values, np.array(self.output.favourable or (), dtype=float))

    def is_favourable(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Which cells hold a favourable output."""
        found: NDArray[np.bool_] = np.append(self.favourable, [False] * 3)[cells]
        return found

    def shares(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers in cells as shares of the scale, from 0 to 1; 0 where there is none."""
        assert self.output.scale is not None
        low, high = self.output.scale
        shares: NDArray[np.float64] = np.append((self.values - low) / (high - low), [0.0] * 3)[
            cells
        ]
        return shares

    def number_array(self, column: NDArray[Any]) -> Numbers:
        """The numbers' numbers; FAILED where one is not finite or outside of the scale."""
        if column.ndim != 1:
            return np.full(len(column), FAILED, dtype=np.int32)
        if column.dtype.kind not in "biuf":
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

    def number(self, values: Iterable[Any]) -> Numbers:
        """The same for values of any kind; texts that are numbers count as such."""
        return self.number_array(np.array([_as_number(each) for each in values], dtype=float))

    def problem(self, value: Any) -> str | None:
        """Why a value is no output; None if it is one."""
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
        """How far numbers are apart, element by element."""
        if self.output.distance == "exact":
            return np.asarray(first != second, dtype=np.float64)
        one, other = self.values[first], self.values[second]
        if callable(self.output.distance):
            return _each_pair(self._distance, one, other)
        return self.output.between_numbers(one, other)

    def _distance(self, first: float, second: float) -> float:
        try:
            return 0.0 if first == second else self.output.between(first, second)
        except Exception as error:
            raise SubjectError(f"outputs.{self.output.name}.distance: {error}") from error

    def _numbers_of(self, values: NDArray[np.float64]) -> Numbers:
        """The numbers of sorted distinct values; new ones get the next."""
        at = np.searchsorted(self._sorted, values)
        known = np.zeros(len(values), dtype=bool)
        inside = at < len(self._sorted)
        known[inside] = self._sorted[at[inside]] == values[inside]
        new = values[~known]
        count = len(self.values)
        if count + len(new) > RECORD_LIMIT:
            raise _too_many()
        if len(new):
            numbers = np.arange(count, count + len(new), dtype=np.int32)
            self.values = np.concatenate([self.values, new])
            self._sorted = np.insert(self._sorted, at[~known], new)
            self._places = np.insert(self._places, at[~known], numbers)
            at = np.searchsorted(self._sorted, values)
        return self._places[at]


Part = LabelPart | NumberPart


def part_of(output: Output) -> Part:
    """The values of an output: numbers, or labels and lists."""
    return NumberPart(output) if output.numeric else LabelPart(output)


def _each_pair(
    distance: Callable[[Any, Any], float], first: NDArray[Any], second: NDArray[Any]
) -> NDArray[np.float64]:
    """The distances of pairs, element by element; equal pairs are asked for once."""
    pairs, places = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
    apart = np.array([distance(one, other) for one, other in pairs.T.tolist()])
    distances: NDArray[np.float64] = apart[places.reshape(-1)]
    return distances


def _parsed(answer: Any, at: str | int | None) -> Any:
    """A text that must have parts is read as JSON."""
    return json.loads(answer) if at is not None and isinstance(answer, str) else answer


def _as_number(value: Any) -> float:
    if value is None or isinstance(value, list | tuple | dict):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _too_many() -> SubjectError:
    return SubjectError(
        f"the subject gave more than {RECORD_LIMIT:,} different outputs: "
        "round them, e.g. to two places"
    )
