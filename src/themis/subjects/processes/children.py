"""Child processes: each leads its own group, is read within bounds and leaves nothing behind."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from themis.subjects.base import WAKE_SECONDS
from themis.subjects.processes.programs import Program

OUTPUT_LIMIT = 2**20  # bytes of standard output that are held; a child that writes more is killed
ERROR_TAIL, ERROR_MARGIN = 4096, 1024  # last bytes of errors; before them a secret may be cut
TICK_SECONDS = 0.01  # how often a child is looked at where its end can't be waited for


class StoppedError(Exception):
    """The work was called off from outside; the child is dead."""


class Crew:
    """The children that are alive now, so that all of them can be killed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self.stopped = False

    def add(self, group: int) -> None:
        """Take note of a child; one that was started too late is killed."""
        with self._lock:
            self._groups.add(group)
            if self.stopped:
                kill_group(group)

    def remove(self, group: int) -> None:
        """To be called before the child is reaped: from then on its number may be another's."""
        with self._lock:
            self._groups.discard(group)

    def stop(self) -> None:
        """Kill them all; those that look after them find out and clear up."""
        with self._lock:
            self.stopped = True
            for group in self._groups:
                kill_group(group)


class Child:
    """One running process; `step` lets it proceed, `end` must be called whatever happens."""

    def __init__(
        self, program: Program, arguments: Sequence[bytes], crew: Crew, *, feeds: bool = False
    ) -> None:
        self._crew = crew
        self._process = process = program.start(arguments, feeds=feeds)
        crew.add(process.pid)
        self.output = bytearray()
        self.exited = self.overflowed = self.output_closed = False
        self.killed = False  # it had not ended by itself
        self._errors = b""
        self.unsent = memoryview(b"")  # what is not written yet
        self._closes_input = False
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdout, self._stderr = process.stdout.fileno(), process.stderr.fileno()
        self._stdin = process.stdin.fileno() if process.stdin is not None else None
        self._exit = _open_exit(process.pid)
        self._poll = select.poll()
        for place in (self._stdout, self._stderr, self._exit):
            if place is not None:
                self._poll.register(place, select.POLLIN)
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)

    def error_text(self, redact: Callable[[str], str]) -> str:
        """The end of what it wrote to standard error, without its secrets."""
        text = redact(self._errors.decode("utf-8", "replace"))
        was_cut = len(self._errors) == ERROR_TAIL + ERROR_MARGIN
        return text[ERROR_MARGIN if was_cut else 0 :].strip()

    @property
    def input_closed(self) -> bool:
        """Whether all was written and the child has been told that no more will come."""
        return self._stdin is None

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Write these bytes while stepping; `last` closes the child's input behind them."""
        self._closes_input = last
        self.unsent = memoryview(data)
        if self._stdin is not None:
            self._poll.register(self._stdin, select.POLLOUT)
            self._write()

    def close_input(self) -> None:
        """Let the child see the end of its input; what was not written is dropped."""
        if self._stdin is not None:
            assert self._process.stdin is not None
            with suppress(KeyError):
                self._poll.unregister(self._stdin)
            self._process.stdin.close()
            self._stdin = None
        self.unsent = memoryview(b"")

    def step(self, seconds: float) -> None:
        """Wait until something happens, at most so long, and write and read what is ready."""
        if self._exit is None:
            seconds = min(seconds, TICK_SECONDS)
        for place, _ in self._poll.poll(max(0, math.ceil(seconds * 1000))):
            if place == self._stdout:
                self._read_output()
            elif place == self._stderr:
                self._read_errors()
            elif place == self._stdin:
                self._write()
            else:
                self._poll.unregister(place)
                self.exited = True
        if self._exit is None and self._process.poll() is not None:
            self.exited = True

    def take_lines(self) -> bytes:
        """The complete lines that came since the last time, each with its newline."""
        cut = self.output.rfind(b"\n") + 1
        lines = bytes(self.output[:cut])
        del self.output[:cut]
        return lines

    def end(self, *, grace_seconds: float = 0.0) -> int:
        """Kill what is left of the group, read the rest, reap; the status as `Popen` gives it.

        In the grace time the child may end by itself, after its input was closed.
        """
        self.close_input()
        deadline = time.monotonic() + grace_seconds
        while not self.exited and (left := deadline - time.monotonic()) > 0:
            self.step(left)
            del self.output[OUTPUT_LIMIT:]
        self.killed = not self.exited
        self._crew.remove(self._process.pid)
        kill_group(self._process.pid)
        try:
            self._drain()
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing can be done
                self._process.wait(5.0)
        finally:
            self._close()
        if self._crew.stopped:
            raise StoppedError
        return self._process.returncode or 0

    def _drain(self) -> None:
        """Read what was written before the end; a writer that got away can't keep us here."""
        if self._exit is not None and not self.exited:
            self._poll.unregister(self._exit)
        for _ in range(256):
            ready = self._poll.poll(0)
            if not ready or self.overflowed:
                return
            for place, _ in ready:
                if place == self._stdout:
                    self._read_output()
                else:
                    self._read_errors()

    def _read_output(self) -> None:
        data = os.read(self._stdout, 2**16)
        if not data:
            self._poll.unregister(self._stdout)
            self.output_closed = True
        self.output += data
        self.overflowed = len(self.output) > OUTPUT_LIMIT

    def _read_errors(self) -> None:
        data = os.read(self._stderr, 2**16)
        if not data:
            self._poll.unregister(self._stderr)
        self._errors = (self._errors + data)[-ERROR_TAIL - ERROR_MARGIN :]

    def _write(self) -> None:
        assert self._stdin is not None
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(self._stdin, self.unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no more; what it answers to is seen from its output
            self.close_input()
            return
        self._poll.unregister(self._stdin)
        if self._closes_input:
            self.close_input()

    def _close(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if self._exit is not None:
            os.close(self._exit)


def work_together(crew: Crew, tasks: Sequence[Callable[[], Any]]) -> None:
    """Run the tasks in threads; the first error, or an interrupt, kills all children and is raised.

    Children are started in these threads only, where no signal can come between the start of a
    process and the note that it exists.
    """
    results: SimpleQueue[BaseException | None] = SimpleQueue()

    def work(task: Callable[[], Any]) -> None:
        try:
            task()
            results.put(None)
        except BaseException as error:
            crew.stop()
            results.put(error)

    threads = [threading.Thread(target=work, args=(task,), daemon=True) for task in tasks]
    try:
        for thread in threads:
            thread.start()
        # Not `join`: interrupted, it takes a thread for ended that is not (CPython before 3.13).
        errors = [_next(results) for _ in threads]
    except BaseException:
        crew.stop()
        # Not by counting results: the interrupt may have come just behind one.
        while any(thread.is_alive() for thread in threads):
            time.sleep(TICK_SECONDS)
        raise
    for error in errors:
        if error is not None and not isinstance(error, StoppedError):
            raise error


def _next(results: SimpleQueue[BaseException | None]) -> BaseException | None:
    """The next result; a signal that another thread was woken for is noticed while waiting."""
    while True:
        with suppress(Empty):
            return results.get(timeout=WAKE_SECONDS)


def kill_group(group: int) -> None:
    """Kill a process and its descendants; gone already is fine (macOS: not permitted)."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def describe_status(status: int) -> str:
    """How a process ended, in words: `exit code 3`, `killed by SIGSEGV`."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal without a name
        return f"killed by signal {-status}"


def _open_exit(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has them."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
