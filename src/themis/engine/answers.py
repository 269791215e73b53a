"""Answers: numbered, several runs as one, and those that are no decision, with examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import SubjectError, count_of
from themis.inputs.assignments import Places
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Subject
from themis.subjects.decisions import (
    FAILED,
    INVALID,
    NO_DECISION,
    NOT_RUN,
    NOT_SENT,
    Cells,
    Failure,
)
from themis.subjects.labels import Labels, NumberPart
from themis.subjects.secrets import Secrets

# Runs the inputs at these places, or all, for the n-th time.
RunAgain: TypeAlias = Callable[[int, Places | None], Cells]


def run_combined(run: RunAgain, runs: int, labels: Labels) -> Cells:
    """The combined outputs of so many runs; inputs that further runs can't change are left out.

    Of three runs the third is only needed where the first two differ; a mean needs them all.
    """
    first = run(0, None)
    if runs == 1:
        return first
    seen = np.full((runs, len(first)), NOT_RUN, dtype=first.dtype)
    seen[0] = first
    for number in range(1, runs):
        places = np.flatnonzero(~_is_settled(seen[:number], runs, labels))
        if not len(places):
            break
        seen[number, places] = run(number, None if len(places) == len(first) else places)
    return combine(seen, labels)


def combine(seen: Cells, labels: Labels) -> Cells:
    """What the runs amount to, output by output; rows are runs, columns inputs.

    Unless more than half of the runs gave an answer there is none: FAILED. A run that was left out
    (NOT_RUN) must not be able to change the answer.
    """
    parts = [
        _mean(part, labels.part_cells(place, seen))
        if isinstance(part, NumberPart)
        else _most_frequent(labels.part_cells(place, seen))
        for place, part in enumerate(labels.parts)
    ]
    return labels.join(parts)


def _most_frequent(seen: NDArray[Any]) -> NDArray[Any]:
    """The most frequent label of each column; of equally frequent ones, the one seen first."""
    votes = _votes(seen)
    best = votes.max(axis=0)
    winners: NDArray[Any] = seen[0].copy()
    for cells, count in zip(seen[::-1], votes[::-1], strict=True):
        np.copyto(winners, cells, where=(count == best) & (cells >= 0))
    winners[_is_failed(seen, len(seen))] = FAILED
    return winners


def _mean(part: NumberPart, seen: NDArray[Any]) -> NDArray[Any]:
    """The mean of each column's numbers; a new one gets a number of its own."""
    failed = _is_failed(seen, len(seen))
    given = seen >= 0
    values = np.append(part.values, 0.0)[np.where(given, seen, -1)]
    means = values.sum(axis=0) / np.maximum(given.sum(axis=0), 1)
    least = values.min(axis=0, where=given, initial=np.inf)
    most = values.max(axis=0, where=given, initial=-np.inf)
    means = np.clip(means, least, most)  # rounding may lead out: three times 0.1 is above 0.3
    numbers = np.full(seen.shape[1], FAILED, dtype=seen.dtype)
    numbers[~failed] = part.number_array(means[~failed])
    return numbers


def _is_settled(seen: Cells, runs: int, labels: Labels) -> NDArray[np.bool_]:
    """Which inputs have a majority of all the runs already, of labels or of failures."""
    if 2 * len(seen) < runs:
        return np.zeros(seen.shape[1], dtype=bool)
    decided = np.ones(seen.shape[1], dtype=bool)
    for place, part in enumerate(labels.parts):
        cells = labels.part_cells(place, seen)
        decided &= not isinstance(part, NumberPart) and 2 * _votes(cells).max(axis=0) > runs
    return decided | _is_failed(seen, runs)


def _is_failed(seen: NDArray[Any], runs: int) -> NDArray[np.bool_]:
    failed: NDArray[np.bool_] = 2 * (seen == FAILED).sum(axis=0) >= runs
    return failed


def _votes(seen: NDArray[Any]) -> NDArray[np.int64]:
    """For each cell how many runs gave the same label; 0 where there is none."""
    votes = np.zeros(seen.shape, dtype=np.int64)
    for cells in seen:  # runs are few, labels may be many
        votes += (seen == cells) & (seen >= 0)
    return votes


NONE_LEFT = "no input was answered: fix the subject, or what it is given"
TABLES = (
    "no input was answered: each comes as a dictionary; a function that takes many at once, as a "
    'table, needs call = "batch" in [subject] (in Python, themis.batch)'
)
OF_TABLES = (  # what such functions say of one dictionary
    "AttributeError: 'dict' object has no attribute",
    "TypeError: string indices must be integers",
)
UNSAID = "show_rows=True shows what the subject said, which may hold values of people"
DOCUMENT = "what it said may repeat a document"


class TooManyFailuresError(SubjectError):
    """The subject fails too often to go on."""


@dataclass
class FailureLog:
    """The failed executions: how many of each kind, and the first input of each as an example.

    The first is that of the smallest key, so that it does not depend on what was run when; one that
    failed alone comes before those that only failed together with others.
    """

    redact: Callable[[str], str] = field(default=str, compare=False)  # takes secrets out
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[dict[str, Value], str]] = field(default_factory=dict)
    plain: dict[str, str] = field(default_factory=dict)  # what of them holds nobody's values
    personal: bool = False  # inputs are of people, and are not for messages
    unsaid: bool = False  # what the subject says may repeat a document, and is kept nowhere
    kinds: dict[Any, str] | None = None  # by key, where somebody wants to know them all
    remedies: dict[str, None] = field(default_factory=dict)  # each once, in order
    _lines: dict[Any, str] = field(default_factory=dict)  # the first of each message, by key
    _first: dict[str, Any] = field(default_factory=dict)  # the rank of each example

    @property
    def total(self) -> int:
        """How many executions failed."""
        return self.counts.total()

    @property
    def undecided(self) -> int:
        """How many of them got an answer that fits no label, or two."""
        return self.counts[NO_DECISION]

    def exceed(self, failed: float, undecided: float) -> bool:
        """Whether there are more failures, or more outputs without a decision, than these."""
        return self.total - self.undecided > failed or self.undecided > undecided

    def add(
        self,
        cells: Cells,
        answers: Answers,
        schema: Schema,
        input_at: Callable[[Any], NDArray[Any]],
        explain: Callable[[Any], Failure],
        *,
        aside: bool = False,
    ) -> None:
        """Count the failures of a batch; of one that measures nothing, only hear what is said."""
        failed = np.flatnonzero(cells == FAILED)
        if not len(failed):
            return
        keys = schema.input_keys.of(input_at(failed)).tolist()
        for place, key in zip(failed.tolist(), keys, strict=True):
            failure = answers.failures.get(place)
            failure = failure or explain(answers.outputs[place])
            said = (failure.plain or DOCUMENT) if self.unsaid else failure.message
            if len(self._lines) < 2_000:  # of more, the first
                self._lines[key] = self.redact(said.partition("\n")[0])
            if aside:
                continue
            self.counts[failure.kind] += 1
            if failure.remedy:
                self.remedies[failure.remedy] = None
            if self.kinds is not None and len(self.kinds) < 100_000:
                self.kinds[key] = failure.kind
            rank = (not failure.alone, key)
            if failure.kind not in self._first or rank < self._first[failure.kind]:
                self._first[failure.kind] = rank
                row = schema.decode_row(input_at(place))
                self.examples[failure.kind] = (row, self.redact(said))
                self.plain[failure.kind] = self.redact(failure.plain)

    def said(self) -> dict[str, str]:
        """Of each kind the first line of an example; of people, nothing that the subject said."""
        lines = {kind: self.plain[kind] if self.personal else self.examples[kind][1]
                 for kind in [*self.plain]}  # fmt: skip
        return {kind: line.partition("\n")[0][:200] for kind, line in lines.items()}

    def kinds_of(self, codes: NDArray[Any], schema: Schema) -> list[str | None]:
        """Why each of these inputs failed, if that is known."""
        return [(self.kinds or {}).get(key) for key in schema.input_keys.of(codes).tolist()]

    def lines_of(self, codes: NDArray[Any], schema: Schema) -> list[str | None]:
        """The first line of what was said of each of these inputs, if that is known."""
        return [self._lines.get(key) for key in schema.input_keys.of(codes).tolist()]

    def message(self, executions: int) -> str:
        """What failed, how often among so many inputs that were asked for, with an example."""
        ran = count_of(executions - self.counts[NOT_SENT], "execution")
        parts = [
            f"{kind} in {count:,} of {ran}{self._example(kind)}"
            for kind, count in sorted(self.counts.items())
            if kind != NOT_SENT
        ]
        if unsent := self.counts[NOT_SENT]:
            why = self.plain[NOT_SENT]
            parts.append(f"{count_of(unsent, 'further input')} not sent, since {why}")
        remedies = [*([UNSAID] if self.personal else []), *self.remedies]
        none_left = self.total >= executions  # so that no share of failures helps
        if self.undecided:
            allows = "" if none_left else ", and max_undecided allows a share without one"
            remedies.append(f"labels say which texts mean which decision{allows}")
        if self.total > self.undecided:
            share = "max_failures allows a share of failures"
            remedies.append(self._mend() if none_left else share)
        return f"the subject failed: {'; '.join(parts)}. {'; '.join(remedies)}"

    def _mend(self) -> str:
        """What to do where nothing was answered; a function of tables fails at each dictionary."""
        said = (message for _, message in self.examples.values())
        return TABLES if any(each.startswith(OF_TABLES) for each in said) else NONE_LEFT

    def _example(self, kind: str) -> str:
        """An example of what failed; of people, nothing that the subject said."""
        if self.personal:
            return f", e.g. {self.plain[kind]}" if self.plain[kind] else ""
        row, message = self.examples[kind]
        person = ", ".join(f"{name} {_shown(value)}" for name, value in row.items())
        return f", e.g. {message} for the input: {person}"

    def clean(self, error: SubjectError) -> None:
        """Take out of an error what is not for messages."""
        if (self.personal or self.unsaid) and error.plain:
            error.args = (f"{error.plain}. {UNSAID}",)
        error.args = tuple(map(self.redact, map(str, error.args)))

    def to_dict(self, subject: Subject) -> dict[str, Any]:
        """The failures as the JSON result has them; the subject may have lines for a shell."""
        found = {}
        for kind, count in sorted(self.counts.items()):
            row, message = self.examples[kind]
            found[kind] = {"count": count, "input": row, "message": message}
            line = None if kind == NOT_SENT else subject.reproduce(row)
            if line is not None:
                found[kind]["reproduce"] = line
        return found


def _shown(value: Value) -> str:
    """A value within a message, as results show it."""
    if isinstance(value, str):
        return value if value.strip() else repr(value)
    return "missing" if value is None else json.dumps(value)


def number_answers(labels: Labels, answers: Answers) -> Cells:
    """The label number of each answer, FAILED where there is none."""
    cells = labels.number(answers.outputs)
    if answers.failures:
        cells[list(answers.failures)] = FAILED
    return cells


def refuse_secrets(answers: Answers, secrets: Secrets) -> None:
    """An answer that repeats a secret is no decision: decisions are shown."""
    for place, output in enumerate(answers.outputs):
        if secrets.are_in(output):
            answers.failures[place] = Failure(INVALID, "the answer repeats a secret")
            answers.outputs[place] = None
