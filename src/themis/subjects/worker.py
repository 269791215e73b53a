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

from themis.characteristics import Value
from themis.errors import Mistake, RequestError, suggest
from themis.outcomes import Failure
from themis.schema import Schema
from themis.subjects.base import Answers, Batch
from themis.subjects.lines import CsvLines, Format, JsonLines, write_requests
from themis.subjects.processes import Crew, work_together
from themis.subjects.programs import Program, find_program
from themis.subjects.slots import Health, Limits, Slot
from themis.subjects.texts import TextBatch, check_texts

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
        self.limits = Limits(start_seconds, timeout_seconds, recycle_after or math.inf)
        self.jobs = jobs
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
        columns = [
            [column.write(row[column.characteristic.name])] for column in self.format.columns
        ]
        data = self.format.header + write_requests(self.format, 1, columns)
        return self.program.shell_line(map(os.fsencode, self._command[1:]), data=data)

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
        self._crew, health = Crew(), Health()
        start = partial(_start, self.program, self._command[1:], self._crew)
        self._slots = [Slot(start, self.format, self.limits, health) for _ in range(self.jobs)]
        weakref.finalize(self, _close, self._slots)

    def __getstate__(self) -> dict[str, Any]:
        live = ("_crew", "_slots", "_owner")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
