"""Slots: one worker process after the other, and which input is to blame when one fails."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from themis.errors import SubjectError
from themis.outcomes import CRASH, INVALID, TIMEOUT, Failure
from themis.subjects.lines import EXCHANGE_LIMIT, Exchange, Format, write_requests
from themis.subjects.processes import OUTPUT_LIMIT, Child, StoppedError, describe_status
from themis.subjects.texts import last_line

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
class _Talk:
    """One exchange with one process, and why it ended early, if it did."""

    exchange: Exchange
    fresh: bool  # the process had answered nothing before
    rescued: bool = False  # its input was closed because no answer came
    failure: Failure | None = None
    errors: str = ""


class Slot:
    """A place for one worker process, which is started when it is needed.

    `settle` gives each input an outcome. When a process fails, what it answered is kept and the
    first input without an answer runs alone in a fresh process: the culprit, if answers come as
    they are made. If it is innocent the rest is halved until the culprit is alone.
    """

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

    def settle(
        self, places: Sequence[int], columns: Sequence[list[bytes]]
    ) -> list[Any] | dict[int, Any]:
        """The outputs of these inputs, or outputs and failures by place when something failed."""
        try:
            rows = _cut(columns, places)
            talk = self.talk(rows, len(places))
            if talk.exchange.complete and not talk.exchange.failures:
                self._good_row = self._good_row or [column[0] for column in rows]
                return talk.exchange.outputs
            return _Search(self, columns).go(places, talk)
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        """End the process in good order."""
        child, self._child, self._served = self._child, None, 0
        if child is not None and self._owner == os.getpid():
            with suppress(StoppedError):
                child.end(grace_seconds=CLOSE_SECONDS)

    def run_alone(self, row: list[bytes]) -> tuple[_Talk, int]:
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

    def note_failure(self, talk: _Talk) -> None:
        """Count an input that failed alone; raises when that happens all the time."""
        assert talk.failure is not None
        self._health.note_failure(talk.failure, talk.errors)

    def talk(self, rows: Sequence[Sequence[bytes]], count: int, *, alone: bool = False) -> _Talk:
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
        talk = _Talk(exchange, fresh)
        in_time = self._read_answers(self._child, talk)
        if not exchange.complete or self._child.input_closed or self._child.exited:
            self._finish(talk, in_time=in_time)
        self._adapt(count, time.monotonic() - started, talk)
        return talk

    def _read_answers(self, child: Child, talk: _Talk) -> bool:
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

    def _finish(self, talk: _Talk, *, in_time: bool) -> None:
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
        self, child: Child, talk: _Talk, status: int, *, told: bool, in_time: bool
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

    def _adapt(self, count: int, seconds: float, talk: _Talk) -> None:
        """Make the next exchange about a second long; note that there are answers at all."""
        if talk.exchange.begun:
            self._health.note_answer()
        if talk.failure is None:
            if count >= self._size and not (talk.fresh and self._health.flushes):
                fitting = min(count / max(seconds, 1e-6), self._size * GROWTH, EXCHANGE_LIMIT)
                self._size = max(1, int(fitting))
        elif talk.failure.kind == TIMEOUT:
            self._size = max(1, self._size // GROWTH)

    def _drop(self) -> None:
        """Kill the process: what it was doing is not wanted any more."""
        child, self._child, self._served = self._child, None, 0
        if child is not None:
            with suppress(StoppedError):
                child.end()


class _Search:
    """The search for the inputs to blame among those of one exchange."""

    def __init__(self, slot: Slot, columns: Sequence[list[bytes]]) -> None:
        self._slot = slot
        self._columns = columns
        self._outcomes: dict[int, Any] = {}

    def go(self, places: Sequence[int], talk: _Talk) -> dict[int, Any]:
        """The outcome of each place, an output or a failure; `talk` is the first attempt."""
        pending = self._after(places, talk, in_order=True)
        while pending:
            places, in_order = pending.pop()
            talk = self._slot.talk(_cut(self._columns, places), len(places))
            pending += self._after(places, talk, in_order=in_order)
        return self._outcomes

    def _after(
        self, places: Sequence[int], talk: _Talk, *, in_order: bool
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

    def _judge(self, place: int, talk: _Talk, *, is_alone: bool) -> bool:
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
