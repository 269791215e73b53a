"""Commands as subjects: one process for each input."""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.processes.children import (
    OUTPUT_LIMIT,
    Child,
    Crew,
    describe_status,
    work_together,
)
from themis.subjects.processes.command_layouts import Layout
from themis.subjects.processes.command_texts import TextBatch, answer_reader, last_line, shorten
from themis.subjects.processes.programs import Program, check_limits, find_program

START_UP_RUNS = 5

_EMPTY_PROGRAMS = {"python": "-c", "pypy": "-c", "sh": "-c", "bash": "-c", "perl": "-e"}
_EMPTY_PROGRAMS |= {"ruby": "-e", "node": "-e", "Rscript": "-e"}


class CommandSubject:
    """A program that is started once for each input and prints its decision; never a shell.

    `arguments` says how an input reaches it: "positional", "named" (name value pairs), or as
    "json" or "csv" on standard input. Places such as `{race}` in the command take the values
    instead of positional or named arguments; `{{` and `}}` stand for braces. `answer` says where
    the output is: "last-line", "stdout", "exit-code", or a JSON pointer. Outputs are strings.
    `env` is added to the environment. Values that can't reach a program are refused at once.
    """

    kind = "command"
    vectorised = False

    def __init__(
        self,
        schema: Schema,
        command: Sequence[str],
        *,
        arguments: str = "positional",
        answer: str = "last-line",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_seconds: float = 10.0,
        jobs: int = 1,
        version: str = "",
    ) -> None:
        self.schema = schema
        self.program = find_program(command, cwd=cwd, env=env)
        self.jobs = jobs
        self.timeout_seconds = timeout_seconds
        self._command = tuple(command)
        self._answer, self._version = answer, version
        self._read = answer_reader(answer)
        check_limits(timeout_seconds=timeout_seconds, jobs=jobs)
        self.layout = Layout(schema, self._command, arguments)
        self._seconds = 0.0
        self._runs = 0

    def load(self, codes: NDArray[Any]) -> Batch:
        return _CommandBatch(self, codes)

    def fingerprint(self) -> str:
        details = (self.kind, self.layout.mode, self._answer, self._version)
        return self.program.fingerprint(self._command[1:], *details)

    def reproduce(self, row: Mapping[str, Value]) -> str:
        """A line that a person can paste into a shell to run the subject on this input."""
        texts = [column.text_of(row) for column in self.layout.columns]
        return self.program.shell_line(self.layout.arguments(texts), data=self.layout.data(texts))

    def start_up_share(self) -> float | None:
        """Which part of the time so far went into starting processes, from 0 to 1, at the least.

        Compares the mean run with the start of its interpreter on an empty program, or of
        `true`. What the subject itself loads is not in it, and would be saved by a worker, too.
        """
        option = _EMPTY_PROGRAMS.get(Path(self.program.path).name.rstrip("0123456789."))
        empty = self.program.path if option else shutil.which("true")
        if not self._runs or not empty:
            return None
        program = replace(self.program, path=empty)
        arguments = [option.encode(), b""] if option else []
        seconds = [_time_start(program, arguments) for _ in range(START_UP_RUNS)]
        return min(1.0, statistics.fmean(seconds) * self._runs / self._seconds)

    def execute(self, texts: Sequence[bytes], crew: Crew) -> str | Failure:
        """One run of the subject: its output, or why there is none."""
        layout, started = self.layout, time.monotonic()
        child = Child(self.program, layout.arguments(texts), crew, feeds=layout.feeds)
        in_time = True
        try:
            if layout.feeds:
                child.send(layout.data(texts), last=True)
            while in_time and not (child.exited or child.overflowed):
                child.step(started + self.timeout_seconds - time.monotonic())
                in_time = child.exited or time.monotonic() < started + self.timeout_seconds
        finally:
            status = child.end()
        self._seconds += time.monotonic() - started
        self._runs += 1
        return self._outcome(child, status, in_time=in_time)

    def _outcome(self, child: Child, status: int, *, in_time: bool) -> str | Failure:
        if child.overflowed:
            start = shorten(child.output[:100].decode("utf-8", "replace"))
            return Failure(
                INVALID, f"it printed more than {OUTPUT_LIMIT:,} bytes, beginning with {start!r}"
            )
        said = last_line(child.error_text)
        behind = f": {said}" if said else ""
        if not in_time:
            return Failure(TIMEOUT, f"no end within {self.timeout_seconds:g} seconds{behind}")
        if self._answer == "exit-code" and status >= 0:
            return str(status)
        if status:
            return Failure(CRASH, f"{describe_status(status)}{behind}")
        try:
            return self._read(bytes(child.output))
        except ValueError as error:
            return Failure(INVALID, f"{error}{behind}")


class _CommandBatch(TextBatch):
    def __init__(self, subject: CommandSubject, codes: NDArray[Any]) -> None:
        super().__init__(subject.layout.columns, codes)
        self._subject = subject

    def run(self) -> Answers:
        outputs: list[Any] = [None] * self.length
        failures: dict[int, Failure] = {}
        crew = Crew()
        rows = _SharedRows(zip(*self.columns, strict=True))

        def work() -> None:
            for place, row in rows:
                if crew.stopped:
                    return
                outcome = self._subject.execute(row, crew)
                if isinstance(outcome, Failure):
                    failures[place] = outcome
                else:
                    outputs[place] = outcome

        work_together(crew, [work] * min(self._subject.jobs, self.length))
        return Answers(outputs, dict(sorted(failures.items())))


class _SharedRows:
    """Numbered rows that several threads take in turn."""

    def __init__(self, rows: Iterable[tuple[bytes, ...]]) -> None:
        self._rows = enumerate(rows)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        while True:
            with self._lock:
                item = next(self._rows, None)
            if item is None:
                return
            yield item


def _time_start(program: Program, arguments: Sequence[bytes]) -> float:
    started = time.monotonic()
    child = Child(program, arguments, Crew())
    try:
        while not child.exited and time.monotonic() < started + 10:
            child.step(1.0)
    finally:
        child.end()
    return time.monotonic() - started
