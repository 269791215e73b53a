"""Workers as subjects: processes that stay alive and answer line by line."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch
from themis.subjects.decisions import Failure
from themis.subjects.processes.children import Child, Crew, work_together
from themis.subjects.processes.command_texts import TextBatch, check_texts
from themis.subjects.processes.lines import CsvLines, Format, JsonLines, write_requests
from themis.subjects.processes.programs import Program, check_limits, find_program
from themis.subjects.processes.worker_culprits import settle
from themis.subjects.processes.worker_slots import Health, Limits, Slot

FORMATS: dict[str, Callable[[Schema], Format]] = {"jsonl": JsonLines, "csv": CsvLines}


class WorkerSubject:
    """A program that reads inputs and writes answers, line by line, and stays alive.

    `start_seconds` is the time a fresh process has for its first answer, `timeout_seconds` the
    time without any answer after which it is ended, `recycle_after` the number of inputs after
    which it is started afresh. Inputs on which it dies, hangs or answers out of turn are found by
    running them alone; all others keep their answers. A program that does not flush its answers
    works, too: it is then started once for each exchange, and its input closed. Outputs are JSON
    values for "jsonl" and strings for "csv".
    """

    kind = "worker"
    vectorised = False

    def __init__(
        self,
        schema: Schema,
        command: Sequence[str],
        *,
        format: str = "jsonl",  # noqa: A002 - the key of the configuration file
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        start_seconds: float = 30.0,
        timeout_seconds: float = 10.0,
        recycle_after: int | None = None,
        jobs: int = 1,
        version: str = "",
    ) -> None:
        self.schema = schema
        self.limits = Limits(
            start_seconds, timeout_seconds, math.inf if recycle_after is None else recycle_after
        )
        self.jobs = jobs
        check_limits(start_seconds=start_seconds, timeout_seconds=timeout_seconds, jobs=jobs)
        check_limits(recycle_after=self.limits.recycle_after)
        self.program = find_program(command, cwd=cwd, env=env)
        if format not in FORMATS:
            problem = f"{format!r} is no format of lines"
            remedy = suggest(format, tuple(FORMATS))
            raise RequestError([Mistake("subject", "subject.format", problem, remedy)])
        check_texts(schema, nul=format == "jsonl")
        self.format = FORMATS[format](schema)
        self._command, self._version = tuple(command), version
        self._open()

    def load(self, codes: NDArray[Any]) -> Batch:
        return _WorkerBatch(self, codes)

    def fingerprint(self) -> str:
        details = (self.kind, self.format.name, self._version)
        return self.program.fingerprint(self._command[1:], *details)

    def reproduce(self, row: Mapping[str, Value]) -> str:
        """A line that a person can paste into a shell to run the subject on this input."""
        columns = [[column.text_of(row)] for column in self.format.columns]
        data = self.format.header + write_requests(self.format, 1, columns)
        return self.program.shell_line(map(os.fsencode, self._command[1:]), data=data)

    def note_answered(self) -> None:
        """Take note that it has answered in earlier runs: inputs that fail now are exceptions."""
        self._health.note_answer()

    def close(self) -> None:
        """End the processes; a later batch starts new ones."""
        _close(self._slots)

    def run(self, columns: Sequence[list[bytes]], length: int) -> Answers:
        """The answers to these inputs, in order, with as many processes as there are jobs."""
        if os.getpid() != self._owner:  # after a fork the processes are the parent's
            self._open()
        self._crew.reset()
        work = _Work(columns, length, self.jobs)
        work_together(self._crew, [partial(work.do, slot) for slot in self._slots])
        return Answers(work.outputs, dict(sorted(work.failures.items())))

    def _open(self) -> None:
        self._owner = os.getpid()
        self._crew, self._health = Crew(), Health()
        start = partial(_start, self.program, self._command[1:], self._crew)
        self._slots = [
            Slot(start, self.format, self.limits, self._health) for _ in range(self.jobs)
        ]
        weakref.finalize(self, _close, self._slots)

    def __getstate__(self) -> dict[str, Any]:
        live = ("_crew", "_health", "_slots", "_owner")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


class _WorkerBatch(TextBatch):
    def __init__(self, subject: WorkerSubject, codes: NDArray[Any]) -> None:
        super().__init__(subject.format.columns, codes)
        self._subject = subject

    def run(self) -> Answers:
        return self._subject.run(self.columns, self.length)


class _Work:
    """The inputs of a batch, taken in parts by several slots, and what became of them."""

    def __init__(self, columns: Sequence[list[bytes]], length: int, jobs: int) -> None:
        self._columns = columns
        self._jobs = jobs
        self._places = range(length)
        self._lock = threading.Lock()
        self.outputs: list[Any] = [None] * length
        self.failures: dict[int, Failure] = {}

    def do(self, slot: Slot) -> None:
        """Let a slot settle one part after the other until none is left."""
        while places := self._take(slot.size):
            outcomes = settle(slot, places, self._columns)
            if isinstance(outcomes, list):
                self.outputs[places.start : places.stop] = outcomes
                continue
            for place, outcome in outcomes.items():
                if isinstance(outcome, Failure):
                    self.failures[place] = outcome
                else:
                    self.outputs[place] = outcome

    def _take(self, size: int) -> range:
        with self._lock:
            fair = math.ceil(len(self._places) / self._jobs)
            part = self._places[: min(size, fair)]
            self._places = self._places[len(part) :]
        return part


def _start(program: Program, arguments: Sequence[str], crew: Crew) -> Child:
    return Child(program, [os.fsencode(argument) for argument in arguments], crew, feeds=True)


def _close(slots: Sequence[Slot]) -> None:
    for slot in slots:
        slot.close()
