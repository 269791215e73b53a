"""Commands as subjects: one process for each input, which gets it as arguments or as input."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Traits, heed
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.processes.children import (
    OUTPUT_LIMIT,
    Child,
    Crew,
    describe_status,
    work_together,
)
from themis.subjects.processes.programs import ProgramSubject, check_limits, mistake_in
from themis.subjects.templates import (
    Part,
    Slot,
    Template,
    TemplateWriter,
    csv_parts,
    json_parts,
    uncovered,
)
from themis.subjects.texts import (
    ARGUMENT_LIMIT,
    Column,
    answer_reader,
    check_texts,
    last_line,
    shorten,
    write_csv,
    write_plain,
)

MODES = ("positional", "named", "json", "csv")


class Layout:
    """How inputs reach a command: as arguments behind it, in its places, or on standard input.

    All that can't work is refused here: unknown places, characteristics that the command would
    never see, values that are too long or hold what can't be passed on.
    """

    def __init__(self, schema: Schema, command: Sequence[str], mode: str) -> None:
        self.mode = mode
        self.feeds = mode in ("json", "csv")  # inputs go to standard input
        arguments = _parse_command(command, schema, mode)
        check_texts(schema, nul=mode == "json", limit=None if self.feeds else ARGUMENT_LIMIT)
        has_places = any(each.slots for each in arguments)
        if not (has_places or self.feeds):
            for place, each in enumerate(schema):
                arguments += [Template.of([each.name.encode()])] if mode == "named" else []
                arguments.append(Template.of([Slot(place, Column(each, write_plain))]))
        self._arguments = arguments[1:]
        self._data = Template.of(_fed(schema, mode))

    def render(self, codes: NDArray[Any]) -> Iterator[tuple[tuple[bytes, ...], bytes]]:
        """For each input the arguments, and what goes to standard input."""
        texts = [each.render(codes) for each in self._arguments]
        arguments = zip(*texts, strict=True) if texts else repeat((), len(codes))
        return zip(arguments, self._data.render(codes), strict=True)

    def render_row(self, row: Mapping[str, Value]) -> tuple[list[bytes], bytes]:
        """The same for one input that is given by name."""
        return [each.render_row(row) for each in self._arguments], self._data.render_row(row)


def _parse_command(command: Sequence[str], schema: Schema, mode: str) -> list[Template]:
    """The command with the places in it; all that is wrong is raised at once."""
    mistakes: list[Mistake] = []
    if mode not in MODES:
        problem = f"{mode!r} is no way to pass values"
        mistakes.append(mistake_in("arguments", problem, suggest(mode, MODES)))
    covered: set[int] = set()
    parsed: list[Template] = []
    for argument in command:
        writer = TemplateWriter(schema, "subject.command")
        writer.add_argument(argument)
        parsed.append(writer.template())
        mistakes += writer.mistakes
        covered |= writer.covered
    if covered:
        if parsed[0].slots:
            problem = "the program itself has a place"
            mistakes.append(mistake_in("command", problem, "name one program"))
        if mode in ("json", "csv"):
            problem = f"the command has places, and arguments = {mode!r} asks for standard input"
            mistakes.append(mistake_in("arguments", problem, "use one of them"))
        mistakes += uncovered(schema, covered, "subject.command")
    if mistakes:
        raise RequestError(mistakes)
    return parsed


def _fed(schema: Schema, mode: str) -> list[Part]:
    """One input on standard input: a JSON object or a CSV table, nothing otherwise."""
    if mode == "json":
        return [*json_parts(schema), b"\n"]
    if mode == "csv":
        return [b",".join(map(write_csv, schema.names)), b"\n", *csv_parts(schema), b"\n"]
    return []


class CommandSubject(ProgramSubject):
    """A program that is started once for each input and prints its decision; never a shell.

    `arguments` says how an input reaches it: "positional", "named" (name value pairs), or as
    "json" or "csv" on standard input. Places such as `{race}` in the command take the values
    instead of positional or named arguments, `{input}` all of them as a JSON object; `{{` and `}}`
    stand for braces. `answer` says where the output is: "last-line", "stdout", "exit-code", or a
    JSON pointer. Outputs are strings.
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
        super().__init__(schema, command, env=env, cwd=cwd, version=version)
        self._jobs = jobs
        # Small: decisions are stored at its end, and a kill -9 loses them.
        self.traits = Traits(external=True, batch_size=32, jobs=jobs, slots=jobs)
        self.timeout_seconds = timeout_seconds
        self._answer = answer
        self._read = answer_reader(answer)
        check_limits(timeout_seconds=timeout_seconds, jobs=jobs)
        self._redact = self.secrets().redact  # before a text is shortened
        self.layout = Layout(schema, self.command, arguments)
        self._next_sweep = 0.0

    @property
    def details(self) -> tuple[str, ...]:
        return self.layout.mode, self._answer

    def reproduce(self, row: Mapping[str, Value]) -> str:
        arguments, data = self.layout.render_row(row)
        return self.program.shell_line(arguments, data=data)

    def run(self, codes: NDArray[Any]) -> Answers:
        """The outputs of these inputs, in order, by as many processes at once as there are jobs."""
        answers, crew = self.begin(len(codes)), Crew()
        rows = deque(enumerate(self.layout.render(codes)))  # which threads may share

        def work() -> None:
            while rows and not crew.stopped:
                try:
                    place, (arguments, data) = rows.popleft()
                except IndexError:  # another thread took the last one
                    return
                heed(self.deadline)
                outcome = self.execute(arguments, data, crew)
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
        """End what the commands left running; at most in each second, and in 2 % of the time."""
        started = time.monotonic()
        if now or started >= self._next_sweep:
            self.program.end_descendants()
            took = time.monotonic() - started
            self._next_sweep = started + max(1.0, 50 * took)  # all processes are looked at

    def execute(self, arguments: Sequence[bytes], data: bytes, crew: Crew) -> str | Failure:
        """One run of the subject: its output, or why there is none."""
        started = time.monotonic()
        child = Child(self.program, arguments, crew, feeds=self.layout.feeds)
        in_time = True
        try:
            if self.layout.feeds:
                child.send(data, last=True)
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
