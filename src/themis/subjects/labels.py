"""Labels: the distinct answers of a subject, numbered as they appear, output by output.

A cell of a table holds the number of an answer. What one output is in it stands in a column of
its own here, so that several outputs are read off the same executions. Where no output is declared
the whole answer is one, a decision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import count_of
from themis.subjects.decisions import (
    FAILED,
    INVALID,
    NO_COUNTERFACTUAL,
    NO_DECISION,
    NOT_RUN,
    Cells,
    Failure,
    is_number_like,
    shortened,
)
from themis.subjects.label_parts import (
    RECORD_LIMIT,
    LabelPart,
    Part,
    part_of,
    too_many,
)
from themis.subjects.outputs import Output, find_part


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
        undeclared = LabelPart(decision or Output(), is_decision=True)
        self.parts: tuple[Part, ...] = tuple(map(part_of, outputs)) or (undeclared,)
        self.outputs = tuple(part.output for part in self.parts)
        self.dtype = np.dtype(np.int32 if outputs else np.int8)
        self._is_whole = len(self.parts) == 1 and self.outputs[0].at is None
        # Whether each output is the answer itself, of which more than one thing is measured.
        self.is_plain = not any(each.at is not None or each.numeric for each in self.outputs)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._columns = [np.empty(0, np.int32) for _ in self.parts]

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
        if not self.declared:
            return _no_decision(self.parts[0], answer)
        for place, part in enumerate(self.parts):
            output = part.output
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

    def _column(self, outputs: OutputColumns, part: Part) -> Cells:
        column = outputs.at(part.output.at)
        if column is None:
            return np.full(len(outputs), FAILED, dtype=np.int32)
        if column.dtype == object:
            return part.number(column.tolist())
        return part.number_array(column)

    def _values(self, answer: Any) -> Iterator[Any]:
        """Each output of an answer of any shape; None where there is none."""
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
            raise too_many(RECORD_LIMIT)
        return number

    def _refresh(self) -> None:
        known = len(self._columns[0])
        new = list(self._numbers)[known:] if len(self._numbers) > known else []
        if new:
            rows = np.array(new, dtype=np.int32)
            self._columns = [
                np.concatenate([column, rows[:, k]]) for k, column in enumerate(self._columns)
            ]


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


def _parsed(answer: Any, at: str | int | None) -> Any:
    """A text that must have parts is read as JSON."""
    return json.loads(answer) if at is not None and isinstance(answer, str) else answer
