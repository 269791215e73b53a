"""Workers as subjects: processes that stay alive and answer line by line.

Slots: one worker process after the other, and the exchanges with them.

Culprits: which inputs are to blame when a worker fails.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, SubjectError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch, Subject, Traits
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.processes.children import (
    OUTPUT_LIMIT,
    Child,
    Crew,
    StoppedError,
    describe_status,
    work_together,
)
from themis.subjects.processes.lines import (
    EXCHANGE_LIMIT,
    CsvLines,
    Exchange,
    Format,
    JsonLines,
    write_requests,
)
from themis.subjects.processes.programs import Program, check_limits, find_program
from themis.subjects.processes.texts import TextBatch, check_texts, last_line

FIRST_SIZE = 128  # inputs in the first exchange; later ones take about a second
GROWTH = 16
GRACE_SECONDS = 0.5  # for answers that were held back until the input ended
CLOSE_SECONDS = 1.0  # for a worker whose input has ended to end, too

# This many inputs in a row, each alone in a fresh process, without one answer, end the run.
FAILED_STARTS = {CRASH: 5, INVALID: 5, TIMEOUT: 3}
FAILED_LATER = 1_000


@dataclass(frozen=True)
class Limits:
    """How long a worker may take, and how many inputs it may get."""

    start_seconds: float
    timeout_seconds: float
    recycle_after: float


class Health:
    """What is known of a worker's processes together: whether they answer at all, and flush."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answered = False
        self._in_a_row = 0
        self.flushes = True

    def note_answer(self) -> None:
        self._answered = True
        self._in_a_row = 0

    def note_failure(self, failure: Failure, errors: str) -> None:
        """Count an input that failed in a fresh process; too many in a row are no coincidence."""
        with self._lock:
            self._in_a_row += 1
            limit = FAILED_LATER if self._answered else FAILED_STARTS[failure.kind]
            if self._in_a_row < limit:
                return
        tail = " | ".join(errors.splitlines()[-5:])
        said = f"; the end of its standard error: {tail[-600:]}" if tail else ""
        raise SubjectError(
            f"the worker failed on {limit} inputs in a row, each in a fresh process: "
            f"{failure.message}{said}"
        )


@dataclass
class Talk:
    """One exchange with one process, and why it ended early, if it did."""

    exchange: Exchange
    fresh: bool  # the process had answered nothing before
    rescued: bool = False  # its input was closed because no answer came
    failure: Failure | None = None
    errors: str = ""


class Slot:
    """A place for one worker process, which is started when it is needed."""

    def __init__(
        self, start: Callable[[], Child], format_: Format, limits: Limits, health: Health
    ) -> None:
        self._start, self._format, self._limits, self._health = start, format_, limits, health
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._child: Child | None = None
        self._served = 0
        self._good_row: list[bytes] | None = None  # an input that was answered
        self._size = FIRST_SIZE

    @property
    def size(self) -> int:
        """How many inputs to settle at once."""
        if self._served >= self._limits.recycle_after:
            self.close()
        return int(min(self._size, self._limits.recycle_after - self._served))

    def close(self) -> None:
        """End the process in good order."""
        child, self._child, self._served = self._child, None, 0
        if child is not None and self._owner == os.getpid():
            with suppress(StoppedError):
                child.end(grace_seconds=CLOSE_SECONDS)

    def run_alone(self, row: list[bytes]) -> tuple[Talk, int]:
        """One input in a fresh process whose whole output is read; and its place in the exchange.

        An input that was answered before goes first: with it the time to start is over.
        """
        self.close()
        has_room = self._limits.recycle_after > 1
        rows = [self._good_row, row] if self._good_row and has_room else [row]
        talk = self.talk(list(zip(*rows, strict=True)), len(rows), alone=True)
        if talk.exchange.suspect == 0 and len(rows) > 1:
            self._good_row = None  # not so good, after all
            return self.run_alone(row)
        return talk, len(rows) - 1

    def note_good(self, row: list[bytes]) -> None:
        """Remember an input that was answered."""
        self._good_row = self._good_row or row

    def note_failure(self, talk: Talk) -> None:
        """Count an input that failed alone; raises when that happens all the time."""
        assert talk.failure is not None
        self._health.note_failure(talk.failure, talk.errors)

    def talk(self, rows: Sequence[Sequence[bytes]], count: int, *, alone: bool = False) -> Talk:
        """Send these inputs and read the answers; a process that failed is gone afterwards."""
        number = next(self._numbers)
        exchange = Exchange(self._format, number, count)
        data = write_requests(self._format, number, rows)
        if self._served + count > self._limits.recycle_after:
            self.close()
        fresh = self._child is None
        if self._child is None:
            self._child, self._served = self._start(), 0
            data = self._format.header + data
        self._served += count
        started = time.monotonic()
        self._child.send(data, last=alone or not self._health.flushes)
        talk = Talk(exchange, fresh)
        in_time = self._read_answers(self._child, talk)
        if not exchange.complete or self._child.input_closed or self._child.exited:
            self._finish(talk, in_time=in_time)
        self._adapt(count, time.monotonic() - started, talk)
        return talk

    def _read_answers(self, child: Child, talk: Talk) -> bool:
        """Step until all is answered, or nothing more will come; False when time ran out.

        A worker whose input has been closed is read to its end, for what it may write too much.
        """
        exchange, limits = talk.exchange, self._limits
        deadline = time.monotonic() + (
            limits.start_seconds if talk.fresh else limits.timeout_seconds
        )
        while not (child.exited or child.output_closed or child.overflowed or exchange.problem):
            if exchange.complete and not child.input_closed:
                return True
            now = time.monotonic()
            if now >= deadline:
                if child.input_closed or not child.input_sent:
                    return exchange.complete
                child.close_input()
                talk.rescued = True
                deadline = now + GRACE_SECONDS
            child.step(deadline - now)
            if lines := child.take_lines():
                exchange.take(lines)
                wait = CLOSE_SECONDS if exchange.complete else limits.timeout_seconds
                deadline = time.monotonic() + wait
        return True

    def _finish(self, talk: Talk, *, in_time: bool) -> None:
        """End a process that failed or was told to end; say why where answers are missing."""
        child, exchange = self._child, talk.exchange
        assert child is not None
        self._child = None
        told = child.input_closed
        status = child.end(grace_seconds=GRACE_SECONDS if child.output_closed else 0.0)
        exchange.take(child.take_lines())
        talk.errors = child.error_text
        if exchange.complete:
            self._health.flushes &= not talk.rescued
            return
        said = last_line(talk.errors)
        kind, message = self._reason(child, talk, status, told=told, in_time=in_time)
        talk.failure = Failure(kind, f"{message}: {said}" if said else message)

    def _reason(
        self, child: Child, talk: Talk, status: int, *, told: bool, in_time: bool
    ) -> tuple[str, str]:
        if talk.exchange.problem:
            return INVALID, talk.exchange.problem
        if child.overflowed:
            return INVALID, f"it wrote more than {OUTPUT_LIMIT:,} bytes without a line end"
        if not in_time:
            starting = talk.fresh and not talk.exchange.begun
            limits = self._limits
            seconds = limits.start_seconds if starting else limits.timeout_seconds
            return TIMEOUT, f"no answer within {seconds:g} seconds"
        if child.killed:
            return CRASH, "it closed its output"
        if status == 0:
            return INVALID if told else CRASH, "it ended with exit code 0 and gave no answer"
        return CRASH, describe_status(status)

    def _adapt(self, count: int, seconds: float, talk: Talk) -> None:
        """Make the next exchange about a second long; note that there are answers at all."""
        if talk.exchange.begun:
            self._health.note_answer()
        if talk.failure is None:
            if count >= self._size and not (talk.fresh and self._health.flushes):
                fitting = min(count / max(seconds, 1e-6), self._size * GROWTH, EXCHANGE_LIMIT)
                self._size = max(1, int(fitting))
        elif talk.failure.kind == TIMEOUT:
            self._size = max(1, self._size // GROWTH)

    def drop(self) -> None:
        """Kill the process: what it was doing is not wanted any more."""
        child, self._child, self._served = self._child, None, 0
        if child is not None:
            with suppress(StoppedError):
                child.end()


def settle(
    slot: Slot, places: Sequence[int], columns: Sequence[list[bytes]]
) -> list[Any] | dict[int, Any]:
    """The outputs of these inputs, or outputs and failures by place when something failed.

    When a process fails, what it answered is kept, and the first input without an answer runs
    alone in a fresh process: the culprit, if answers come as they are made. If it is innocent the
    rest is halved until the culprit is alone.
    """
    try:
        rows = _cut(columns, places)
        talk = slot.talk(rows, len(places))
        if talk.exchange.complete and not talk.exchange.failures:
            slot.note_good([column[0] for column in rows])
            return talk.exchange.outputs
        return _Search(slot, columns).go(places, talk)
    except BaseException:
        slot.drop()
        raise


class _Search:
    """The search for the inputs to blame among those of one exchange."""

    def __init__(self, slot: Slot, columns: Sequence[list[bytes]]) -> None:
        self._slot = slot
        self._columns = columns
        self._outcomes: dict[int, Any] = {}

    def go(self, places: Sequence[int], talk: Talk) -> dict[int, Any]:
        """The outcome of each place, an output or a failure; `talk` is the first attempt."""
        pending = self._after(places, talk, in_order=True)
        while pending:
            places, in_order = pending.pop()
            talk = self._slot.talk(_cut(self._columns, places), len(places))
            pending += self._after(places, talk, in_order=in_order)
        return self._outcomes

    def _after(
        self, places: Sequence[int], talk: Talk, *, in_order: bool
    ) -> list[tuple[Sequence[int], bool]]:
        """Keep what was answered; what to run next, the last first."""
        exchange = talk.exchange
        self._keep(places, exchange)
        missing = [places[offset] for offset in exchange.missing()]
        if not missing:
            return []
        if in_order or len(missing) == 1:
            suspect = missing[0] if exchange.suspect is None else places[exchange.suspect]
            in_order = not self._judge(suspect, talk, is_alone=len(places) == 1)
            missing.remove(suspect)
            if in_order:
                return [(missing, True)] if missing else []
        half = len(missing) // 2
        return [(part, False) for part in (missing[half:], missing[:half]) if part]

    def _judge(self, place: int, talk: Talk, *, is_alone: bool) -> bool:
        """Run a suspect alone, unless it was; whether it is answered."""
        offset = 0
        if not (is_alone and talk.fresh):
            talk, offset = self._slot.run_alone(_row(self._columns, place))
        if talk.failure is None:
            self._outcomes[place] = talk.exchange.failures.get(
                offset, talk.exchange.outputs[offset]
            )
            return True
        self._outcomes[place] = talk.failure
        self._slot.note_failure(talk)
        return False

    def _keep(self, places: Sequence[int], exchange: Exchange) -> None:
        for offset, output in exchange.answered():
            self._outcomes[places[offset]] = exchange.failures.get(offset, output)
        good = next((o for o, _ in exchange.answered() if o not in exchange.failures), None)
        if good is not None:
            self._slot.note_good(_row(self._columns, places[good]))


def _cut(columns: Sequence[list[bytes]], places: Sequence[int]) -> list[list[bytes]]:
    if isinstance(places, range):
        return [column[places.start : places.stop] for column in columns]
    return [[column[place] for place in places] for column in columns]


def _row(columns: Sequence[list[bytes]], place: int) -> list[bytes]:
    return [column[place] for column in columns]


BATCH = 8_192
FORMATS: dict[str, Callable[[Schema], Format]] = {"jsonl": JsonLines, "csv": CsvLines}


class WorkerSubject(Subject):
    """A program that reads inputs and writes answers, line by line, and stays alive.

    `start_seconds` is the time a fresh process has for its first answer, `timeout_seconds` the
    time without any answer after which it is ended, `recycle_after` the number of inputs after
    which it is started afresh. Inputs on which it dies, hangs or answers out of turn are found by
    running them alone; all others keep their answers. A program that does not flush its answers
    works, too: it is then started once for each exchange, and its input closed. Outputs are JSON
    values for "jsonl" and strings for "csv".
    """

    kind = "worker"

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
        self.traits = Traits(external=True, batch_size=BATCH, record="batch", jobs=jobs)
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
        columns = [[column.text_of(row)] for column in self.format.columns]
        data = self.format.header + write_requests(self.format, 1, columns)
        return self.program.shell_line(map(os.fsencode, self._command[1:]), data=data)

    def note_answered(self) -> None:
        self._health.note_answer()

    def close(self) -> None:
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
