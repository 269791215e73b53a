"""Slots: one worker process after the other, and the exchanges with them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from themis.errors import SubjectError
from themis.subjects.decisions import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.processes.children import OUTPUT_LIMIT, Child, StoppedError, describe_status
from themis.subjects.processes.command_texts import last_line
from themis.subjects.processes.lines import EXCHANGE_LIMIT, Exchange, Format, write_requests

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
