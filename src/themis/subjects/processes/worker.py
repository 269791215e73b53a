"""Workers as subjects: processes that stay alive and answer line by line."""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.errors import RequestError, SubjectError, count_of, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Traits, heed
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, CulpritSearch, Failure
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
from themis.subjects.processes.programs import Program, ProgramSubject, check_limits
from themis.subjects.texts import check_texts, last_line

FORMATS: dict[str, Callable[[Schema], Format]] = {"jsonl": JsonLines, "csv": CsvLines}

GRACE_SECONDS = 0.5  # for answers that were held back until the input ended
CLOSE_SECONDS = 1.0  # for a worker whose input has ended to end, too

# This many inputs in a row, each alone in a fresh process, without one answer, end the run.
FAILED_STARTS = {CRASH: 5, INVALID: 5, TIMEOUT: 3}


class WorkerSubject(ProgramSubject):
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
        super().__init__(schema, command, env=env, cwd=cwd, version=version)
        self._limits: dict[str, float] = {
            "start_seconds": start_seconds,
            "timeout_seconds": timeout_seconds,
            "recycle_after": math.inf if recycle_after is None else recycle_after,
        }
        self._jobs = jobs
        self.traits = Traits(external=True, batch_size=8_192, record="batch", jobs=jobs, slots=jobs)
        check_limits(**self._limits, jobs=jobs)
        if format not in FORMATS:
            problem, remedy = f"{format!r} is no format of lines", suggest(format, tuple(FORMATS))
            raise RequestError.one("subject", "subject.format", problem, remedy)
        check_texts(schema, nul=format == "jsonl")
        self.format = FORMATS[format](schema)
        self._open()

    @property
    def details(self) -> tuple[str, ...]:
        return (self.format.name,)

    def reproduce(self, row: Mapping[str, Value]) -> str:
        data = write_requests(self.format, 1, [self.format.row.render_row(row)])
        data = self.format.header + data
        return self.program.shell_line(map(os.fsencode, self.command[1:]), data=data)

    def note_answered(self) -> None:
        self._staff.note_answer()

    def close(self) -> None:
        _close(self._slots)
        if os.getpid() == self._owner:
            self.program.end_descendants()

    def run(self, codes: NDArray[Any]) -> Answers:
        """The answers to these inputs, in order, with as many processes as there are jobs."""
        if os.getpid() != self._owner:  # after a fork the processes are the parent's
            self._open()
        self._staff.crew.stopped = False
        self._staff.deadline = self.deadline
        answers = self.begin(len(codes))
        work = _Work(self.format.row.render(codes), answers, len(self._slots))
        for slot in self._slots:
            slot.given = slot.exchanges = 0
        work_together(self._staff.crew, [partial(work.do, slot) for slot in self._slots])
        given = sum(slot.given for slot in self._slots)
        return self.finish(answers, given, sum(slot.exchanges for slot in self._slots))

    def _open(self) -> None:
        self._owner = os.getpid()
        arguments = [os.fsencode(each) for each in self.command[1:]]
        redact = self.secrets().redact
        self._staff = Staff(self.program, arguments, self.format, redact, **self._limits)
        self._slots = [Slot(self._staff) for _ in range(self._jobs)]
        weakref.finalize(self, _close, self._slots)

    def __getstate__(self) -> dict[str, Any]:
        live = ("_staff", "_slots", "_owner")
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _close(slots: Sequence[Slot]) -> None:
    for slot in slots:
        slot.close()


class _Work:
    """The inputs of a batch, taken in parts by several slots, and what became of them."""

    def __init__(self, rows: list[bytes], answers: Answers, jobs: int) -> None:
        self._rows = rows
        self._jobs = jobs
        self._places = range(len(answers.outputs))
        self._lock = threading.Lock()
        self._outputs, self._failures = answers.outputs, answers.failures

    def do(self, slot: Slot) -> None:
        """Let a slot settle one part after the other until none is left."""
        while places := self._take(slot.size):
            try:
                self._settle(places, slot)
            except BaseException:
                slot.close(grace_seconds=0.0)  # what it was doing is not wanted any more
                raise

    def _take(self, size: int) -> range:
        with self._lock:
            fair = math.ceil(len(self._places) / self._jobs)
            part = self._places[: min(size, fair)]
            self._places = self._places[len(part) :]
        return part

    def _settle(self, places: range, slot: Slot) -> None:
        """Have these inputs answered, or find those to blame where the process fails.

        Then what it answered is kept, and the first input without an answer runs alone in a fresh
        process: the culprit, if answers come as they are made. If it is innocent the rest is halved
        until the culprit is alone.
        """
        in_order = True
        search = CulpritSearch([places], limit=math.inf)
        for part in search:
            exchange = slot.new_exchange(len(part))
            try:
                slot.talk(exchange, [self._rows[place] for place in part])
            finally:  # also what was answered before the work was called off
                self._keep(part, exchange)
            missing = [part[offset] for offset in exchange.missing()]
            if missing and (in_order or len(missing) == 1):
                suspect = exchange.suspect
                place = missing[0] if suspect is None else part[suspect]
                missing.remove(place)
                in_order &= not self._is_innocent(place, exchange, slot)
            if in_order or len(missing) < 2:
                search.add(missing)
            else:
                search.halve(missing)

    def _keep(self, part: Sequence[int], exchange: Exchange) -> None:
        """Note what was answered."""
        for offset, output in exchange.answered():
            if isinstance(output, Failure):
                self._failures[part[offset]] = output
            else:
                self._outputs[part[offset]] = output

    def _is_innocent(self, place: int, exchange: Exchange, slot: Slot) -> bool:
        """Run a suspect alone in a fresh process, unless it was; whether it is answered."""
        if len(exchange.outputs) > 1 or not exchange.fresh:
            exchange = slot.run_alone(self._rows[place])
        if exchange.failure is None:
            self._keep([place], exchange)
            return True
        self._failures[place] = exchange.failure
        slot.staff.note_failure(exchange.failure, exchange.errors)
        return False


@dataclass
class Staff:
    """What the processes of a worker share: how they start and how long they may take; how they do.

    They are known to answer, or not, and to flush their answers, or not, all together.
    """

    program: Program
    arguments: Sequence[bytes]
    format: Format
    redact: Callable[[str], str]  # takes secrets out of what they say
    start_seconds: float
    timeout_seconds: float
    recycle_after: float
    deadline: float = math.inf  # of the batch that is run
    flushes: bool = field(default=True, init=False)
    crew: Crew = field(default_factory=Crew, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _answered: bool = field(default=False, init=False)
    _failed_in_a_row: int = field(default=0, init=False)

    def start(self) -> Child:
        """A fresh process."""
        return Child(self.program, self.arguments, self.crew, feeds=True)

    def note_answer(self) -> None:
        """Take note that they do answer."""
        self._answered = True
        self._failed_in_a_row = 0

    def note_failure(self, failure: Failure, errors: str) -> None:
        """Count an input that failed in a fresh process; too many in a row are no coincidence."""
        with self._lock:
            self._failed_in_a_row += 1
            limit = 1_000 if self._answered else FAILED_STARTS[failure.kind]
            if self._failed_in_a_row < limit:
                return
        tail = " | ".join(errors.splitlines()[-5:])
        said = f"; the end of its standard error: {tail[-600:]}" if tail else ""
        failed = f"the worker failed on {limit} inputs in a row, each in a fresh process: "
        plain = f"{failed}{failure.plain or failure.kind}"
        raise SubjectError(f"{failed}{failure.message}{said}", plain=plain)


class Slot:
    """A place for one worker process, which is started when it is needed."""

    def __init__(self, staff: Staff) -> None:
        self.staff = staff
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._child: Child | None = None
        self._served = 0
        self.given = self.exchanges = 0  # inputs sent for one batch, in so many exchanges
        self._size = 128  # inputs in the first exchange; later ones take about a second

    @property
    def size(self) -> int:
        """How many inputs to settle at once."""
        if self._served >= self.staff.recycle_after:
            self.close()
        return int(min(self._size, self.staff.recycle_after - self._served))

    def close(self, *, grace_seconds: float = CLOSE_SECONDS) -> None:
        """End the process, unless it is a parent's; in good order, if it gets the time for it."""
        child, self._child, self._served = self._child, None, 0
        if child is not None and self._owner == os.getpid():
            with suppress(StoppedError):
                child.end(grace_seconds=grace_seconds)

    def run_alone(self, row: bytes) -> Exchange:
        """One input in a fresh process whose whole output is read."""
        self.close()
        exchange = self.new_exchange(1)
        self.talk(exchange, [row], alone=True)
        return exchange

    def new_exchange(self, count: int) -> Exchange:
        """What so many inputs will be asked in, and their answers be found in."""
        return Exchange(self.staff.format, next(self._numbers), count)

    def talk(self, exchange: Exchange, rows: Sequence[bytes], *, alone: bool = False) -> None:
        """Send these inputs and read the answers; a process that failed is gone afterwards."""
        count = len(exchange.outputs)
        data = write_requests(self.staff.format, exchange.number, rows)
        if self._served + count > self.staff.recycle_after:
            self.close()
        exchange.fresh = self._child is None
        if self._child is None:
            self._child, self._served = self.staff.start(), 0
            data = self.staff.format.header + data
        self._served += count
        self.given, self.exchanges = self.given + count, self.exchanges + 1
        started = time.monotonic()
        self._child.send(data, last=alone or not self.staff.flushes)
        in_time = self._read_answers(self._child, exchange)
        if not exchange.complete or self._child.input_closed or self._child.exited:
            self._finish(self._child, exchange, in_time=in_time)
        self._adapt(count, time.monotonic() - started, exchange)

    def _read_answers(self, child: Child, exchange: Exchange) -> bool:
        """Step until all is answered, or nothing more will come; False when time ran out.

        A worker whose input has been closed is read to its end, for what it may write too much.
        """
        staff = self.staff
        allowed = staff.start_seconds if exchange.fresh else staff.timeout_seconds
        deadline = time.monotonic() + allowed
        while not (child.exited or child.output_closed or child.overflowed or exchange.problem):
            if exchange.complete and not child.input_closed:
                return True
            now = time.monotonic()
            if now >= deadline:
                if child.input_closed or child.unsent:
                    return exchange.complete
                child.close_input()
                exchange.rescued = True
                deadline = now + GRACE_SECONDS
            child.step(min(deadline - now, heed(staff.deadline)))
            if lines := child.take_lines():
                exchange.take(lines)
                wait = CLOSE_SECONDS if exchange.complete else staff.timeout_seconds
                deadline = time.monotonic() + wait
        return True

    def _finish(self, child: Child, exchange: Exchange, *, in_time: bool) -> None:
        """End a process that failed or was told to end; say why where answers are missing."""
        self._child = None
        told = child.input_closed
        try:
            status = child.end(grace_seconds=GRACE_SECONDS if child.output_closed else 0.0)
        finally:
            exchange.take(child.take_lines())
        exchange.errors = child.error_text(self.staff.redact)
        if exchange.complete:
            self.staff.flushes &= not exchange.rescued
            return
        said = last_line(exchange.errors)
        kind, message = self._reason(child, exchange, status, told=told, in_time=in_time)
        plain = "" if exchange.problem else message
        exchange.failure = Failure(kind, f"{message}: {said}" if said else message, plain)

    def _reason(
        self, child: Child, exchange: Exchange, status: int, *, told: bool, in_time: bool
    ) -> tuple[str, str]:
        if exchange.problem:
            return INVALID, exchange.problem
        if child.overflowed:
            return INVALID, f"it wrote more than {OUTPUT_LIMIT:,} bytes without a line end"
        if not in_time:
            starting, staff = exchange.fresh and not exchange.begun, self.staff
            seconds = staff.start_seconds if starting else staff.timeout_seconds
            return TIMEOUT, f"no answer within {count_of(seconds, 'second')}"
        if child.killed:
            return CRASH, "it closed its output"
        if status == 0:
            return INVALID if told else CRASH, "it ended with exit code 0 and gave no answer"
        return CRASH, describe_status(status)

    def _adapt(self, count: int, seconds: float, exchange: Exchange) -> None:
        """Make the next exchange about a second long; note that there are answers at all."""
        if exchange.begun:
            self.staff.note_answer()
        if exchange.failure is None:
            if count >= self._size and not (exchange.fresh and self.staff.flushes):
                fitting = min(count / max(seconds, 1e-6), 16 * self._size, EXCHANGE_LIMIT)
                self._size = max(1, int(fitting))
        elif exchange.failure.kind == TIMEOUT:
            self._size = max(1, self._size // 16)
