"""Commands as subjects: one process for each input, which gets it as arguments or as input."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch, CodesBatch, Subject, Traits, heed
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.processes.children import (
    OUTPUT_LIMIT,
    Child,
    Crew,
    describe_status,
    work_together,
)
from themis.subjects.processes.programs import check_limits, find_program, mistake_in
from themis.subjects.processes.texts import (
    ARGUMENT_LIMIT,
    Column,
    answer_reader,
    check_texts,
    last_line,
    shorten,
    text_columns,
    write_csv,
    write_json,
    write_plain,
)
from themis.subjects.secrets import Secrets

WRITERS = {"positional": write_plain, "named": write_plain, "json": write_json, "csv": write_csv}

# An argument is a row of literal bytes and of places: the columns whose value goes there.
Argument: TypeAlias = tuple[bytes | int, ...]

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Layout:
    """How inputs reach a command: as arguments behind it, in its places, or on standard input.

    All that can't work is refused here: unknown places, characteristics that the command would
    never see, values that are too long or hold what can't be passed on.
    """

    def __init__(self, schema: Schema, command: Sequence[str], mode: str) -> None:
        self.mode = mode
        fixed = _parse_command(command, schema, mode)
        self.has_places = any(isinstance(part, int) for argument in fixed for part in argument)
        limit = None if self.feeds else ARGUMENT_LIMIT
        check_texts(schema, nul=mode == "json", limit=limit)
        self.write = WRITERS[mode]
        self.columns = [Column(each, self.write) for each in schema]
        self._arguments = fixed[1:]
        if not self.has_places:
            self._arguments += list(_added_arguments(schema, mode))
        self._names = [self.write(name) for name in schema.names]
        self._check_lengths(schema)

    @property
    def feeds(self) -> bool:
        """Whether inputs go to standard input."""
        return self.mode in ("json", "csv")

    def arguments(self, texts: Sequence[bytes]) -> list[bytes]:
        """The arguments for one input, given the text of each of its values."""
        return [
            b"".join([part if isinstance(part, bytes) else texts[part] for part in argument])
            for argument in self._arguments
        ]

    def data(self, texts: Sequence[bytes]) -> bytes:
        """One input on standard input: a JSON object or a CSV table, nothing otherwise."""
        if self.mode == "json":
            pairs = zip(self._names, texts, strict=True)
            return b"{" + b", ".join([name + b": " + text for name, text in pairs]) + b"}\n"
        if self.mode == "csv":
            return b",".join(self._names) + b"\n" + b",".join(texts) + b"\n"
        return b""

    def _check_lengths(self, schema: Schema) -> None:
        """The longest arguments, alone and together, must be within what the system passes on."""
        longest = [column.longest for column in self.columns]
        lengths = [
            sum(len(part) if isinstance(part, bytes) else longest[part] for part in argument)
            for argument in self._arguments
        ]
        environment = sum(len(name) + len(value) + 10 for name, value in os.environb.items())
        total = sum(lengths) + 9 * len(lengths) + environment + 4096
        if max(lengths, default=0) > ARGUMENT_LIMIT or total > os.sysconf("SC_ARG_MAX"):
            name = schema.names[longest.index(max(longest))]
            problem = f"with its longest value ({max(longest):,} bytes) the arguments are too long"
            remedy = 'shorten it, or use arguments = "json"'
            raise RequestError.one("unpassable-value", f"inputs.{name}", problem, remedy)


def _parse_command(command: Sequence[str], schema: Schema, mode: str) -> list[Argument]:
    """The command with the places in it; all that is wrong is raised at once."""
    mistakes: list[Mistake] = []
    if mode not in WRITERS:
        problem = f"{mode!r} is no way to pass values"
        mistakes.append(mistake_in("arguments", problem, suggest(mode, tuple(WRITERS))))
    parsed = [_parse_argument(part, schema, mistakes) for part in command]
    mistakes += _place_mistakes(parsed, schema, mode)
    if mistakes:
        raise RequestError(mistakes)
    return parsed


def _parse_argument(text: str, schema: Schema, mistakes: list[Mistake]) -> Argument:
    parts: list[bytes | int] = []
    end = 0
    for found in _BRACES.finditer(text):
        parts.append(os.fsencode(text[end : found.start()]))
        end = found.end()
        name = found[1]
        if name in schema.names:
            parts.append(schema.names.index(name))
        elif found[0] in ("{{", "}}"):
            parts.append(found[0][:1].encode())
        else:
            problem = f"{found[0]!r} in {text!r} is not the place of a characteristic"
            remedy = f"{suggest(name or '', schema.names)}, or double the brace to keep it"
            mistakes.append(mistake_in("command", problem, remedy))
    return tuple(part for part in [*parts, os.fsencode(text[end:])] if part != b"")


def _place_mistakes(parsed: Sequence[Argument], schema: Schema, mode: str) -> Iterator[Mistake]:
    places = {part for argument in parsed for part in argument if isinstance(part, int)}
    if not places:
        return
    if any(isinstance(part, int) for part in parsed[0]):
        yield mistake_in("command", "the program itself has a place", "name one program")
    if mode in ("json", "csv"):
        problem = f"the command has places, and arguments = {mode!r} asks for standard input"
        yield mistake_in("arguments", problem, "use one of them")
    missing = [name for column, name in enumerate(schema.names) if column not in places]
    if missing:
        problem = f"the command has places, but none for {missing[0]!r}, which it would never see"
        yield mistake_in("command", problem, f"add {{{missing[0]}}}")


def _added_arguments(schema: Schema, mode: str) -> Iterator[Argument]:
    """The arguments that come behind those of the command."""
    for column, name in enumerate(schema.names):
        if mode == "named":
            yield (name.encode(),)
        if mode in ("positional", "named"):
            yield (column,)


BATCH = 32  # small: the decisions of a batch are stored at its end, and a kill -9 loses them
SWEEP_SECONDS = 1.0  # between two looks for what commands left running
SWEEP_SHARE = 0.02  # of the time, at most


class CommandSubject(Subject):
    """A program that is started once for each input and prints its decision; never a shell.

    `arguments` says how an input reaches it: "positional", "named" (name value pairs), or as
    "json" or "csv" on standard input. Places such as `{race}` in the command take the values
    instead of positional or named arguments; `{{` and `}}` stand for braces. `answer` says where
    the output is: "last-line", "stdout", "exit-code", or a JSON pointer. Outputs are strings.
    `env` is added to the environment. Values that can't reach a program are refused at once.
    """

    kind = "command"

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
        self._jobs = jobs
        self.traits = Traits(external=True, batch_size=BATCH, jobs=jobs, slots=jobs)
        self.timeout_seconds = timeout_seconds
        self._command = tuple(command)
        self._answer, self._version = answer, version
        self._read = answer_reader(answer)
        check_limits(timeout_seconds=timeout_seconds, jobs=jobs)
        self._redact = self.secrets().redact  # before a text is shortened
        self.layout = Layout(schema, self._command, arguments)
        self._next_sweep = 0.0

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        details = (self.kind, self.layout.mode, self._answer, self._version)
        return self.program.fingerprint(self._command[1:], *details)

    def secrets(self) -> Secrets:
        secrets = super().secrets()
        secrets.protect_variables(self.program.extra_env or {})
        return secrets

    def reproduce(self, row: Mapping[str, Value]) -> str:
        texts = [column.text_of(row) for column in self.layout.columns]
        return self.program.shell_line(self.layout.arguments(texts), data=self.layout.data(texts))

    def run(self, codes: NDArray[Any]) -> Answers:
        """The outputs of these inputs, in order, by as many processes at once as there are jobs."""
        answers, crew = self.begin(len(codes)), Crew()
        rows = _SharedRows(zip(*text_columns(self.layout.columns, codes), strict=True))

        def work() -> None:
            for place, row in rows:
                if crew.stopped:
                    return
                heed(self.deadline)
                outcome = self.execute(row, crew)
                if isinstance(outcome, Failure):
                    answers.failures[place] = outcome
                else:
                    answers.outputs[place] = outcome

        try:
            work_together(crew, [work] * min(self._jobs, len(codes)))
        finally:
            self._sweep(now=crew.stopped)
        return self.finish(answers, calls=len(codes))

    def close(self) -> None:
        self._sweep(now=True)

    def _sweep(self, *, now: bool) -> None:
        """End what the commands left running; now and then, for all processes are looked at."""
        started = time.monotonic()
        if now or started >= self._next_sweep:
            self.program.end_descendants()
            took = time.monotonic() - started
            self._next_sweep = started + max(SWEEP_SECONDS, took / SWEEP_SHARE)

    def execute(self, texts: Sequence[bytes], crew: Crew) -> str | Failure:
        """One run of the subject: its output, or why there is none."""
        layout, started = self.layout, time.monotonic()
        child = Child(self.program, layout.arguments(texts), crew, feeds=layout.feeds)
        in_time = True
        try:
            if layout.feeds:
                child.send(layout.data(texts), last=True)
            while in_time and not (child.exited or child.overflowed):
                left = started + self.timeout_seconds - time.monotonic()
                child.step(min(left, heed(self.deadline)))
                in_time = child.exited or time.monotonic() < started + self.timeout_seconds
        finally:
            status = child.end()
        return self._outcome(child, status, in_time=in_time)

    def _outcome(self, child: Child, status: int, *, in_time: bool) -> str | Failure:
        if child.overflowed:
            start = shorten(child.output[:100].decode("utf-8", "replace"))
            much = f"it printed more than {OUTPUT_LIMIT:,} bytes"
            return Failure(INVALID, f"{much}, beginning with {start!r}", much)
        said = last_line(child.error_text(self._redact))
        behind = f": {said}" if said else ""
        if not in_time:
            late = f"no end within {count_of(self.timeout_seconds, 'second')}"
            return Failure(TIMEOUT, f"{late}{behind}", late)
        if self._answer == "exit-code" and status >= 0:
            return str(status)
        if status:
            ended = describe_status(status)
            return Failure(CRASH, f"{ended}{behind}", ended)
        try:
            return self._read(bytes(child.output))
        except ValueError as error:
            return Failure(INVALID, f"{error}{behind}")


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
