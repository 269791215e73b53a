"""Runs: each is a process of its own that writes its events and its result; one at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from themis.config.told import mark_of
from themis.errors import Exit
from themis.web.child import Told, command_line
from themis.web.history import RESULT, History, Run, State

EVENTS = "events.jsonl"
PATIENCE = 20.0  # seconds after which a run that is to end is killed
SIGNALLED = 128  # exit codes above are of commands that a signal ended
CHANGED = "The file changed while the run waited: start it again."


@dataclass
class _Own:
    """A run of this server, which holds it."""

    run: Run
    held: int
    process: subprocess.Popen[bytes] | None = None
    is_wanted: bool = True  # somebody may have stopped it before it had a process
    is_ending: bool = False


class Runs:
    """The queue of one server: it begins runs, ends them, and writes down how they ended."""

    def __init__(self, history: History, file: Path, options: Sequence[str] = ()) -> None:
        """Of runs that measure this file; the options are added to each command."""
        self.history, self._file, self._options = history, file, options
        self._waiting: deque[_Own] = deque()
        self._running: _Own | None = None
        self._change = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def add(self, title: str, command: Sequence[str], **about: Any) -> Run:
        """Put a command of `themis` into the queue."""
        run = self.history.begin(title, command, "waiting", **about)
        held = self.history.hold(run)
        assert held is not None
        with self._change:
            self._waiting.append(_Own(self.history.keep(run), held))
            self._change.notify()
        return run

    def place(self, run: Run) -> int | None:
        """How many runs are before this one; None of one that is not this server's."""
        with self._change:
            own = [self._running] if self._running else []
            names = [each.run.name for each in (*own, *self._waiting)]
        return names.index(run.name) if run.name in names else None

    def stop(self, run: Run) -> None:
        """End a run; what it learned is kept."""
        with self._change:
            for own in [each for each in self._waiting if each.run.name == run.name]:
                self._waiting.remove(own)
                self._end(own, "stopped")
            if self._running is not None and self._running.run.name == run.name:
                self._interrupt(self._running)

    def _interrupt(self, own: _Own) -> None:
        own.is_wanted = False
        if own.process is not None and not own.is_ending:
            own.is_ending = True
            own.process.send_signal(signal.SIGINT)
            killing = threading.Timer(PATIENCE, own.process.kill)
            killing.daemon = True
            killing.start()

    def _end(self, own: _Own, state: State, message: str = "") -> None:
        try:
            self.history.end(own.run, state, message)
        finally:
            os.close(own.held)

    def close(self) -> None:
        """End what runs, and begin nothing more."""
        with self._change:
            self._is_closed = True
            while self._waiting:
                self._end(self._waiting.popleft(), "stopped")
            if self._running is not None:
                self._interrupt(self._running)
            self._change.notify()
        self._thread.join(PATIENCE + 5)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                self._running = own = self._waiting.popleft()
            try:
                state, message = self._carry_out(own)
            except Exception as error:  # as of a full disk: the next run is to begin all the same
                state, message = "failed", str(error)
            with self._change, suppress(Exception):
                self._running = None
                self._end(own, state, message)

    def _carry_out(self, own: _Own) -> tuple[State, str]:
        """How a run ended, and what it said if it failed."""
        if own.run.mark and own.run.mark != mark_of(self._file.read_bytes()):
            return "failed", CHANGED
        own.run = self.history.keep(replace(own.run, state="running"))
        folder = self.history.folder(own.run)
        place = folder / "audit" if own.run.command[0] == "audit" else folder / RESULT
        places = ["--output", str(place), "--events", str(folder / EVENTS), "--quiet"]
        with Told(own.run.mark) as told:
            with self._change:
                command = [*own.run.command, str(self._file), *self._options, *places]
                kept = "" if self.history.rows else str(folder)
                line = command_line(kept, *command)
                own.process = _begin(line, self._file.parent, told, held=own.held)
                if not own.is_wanted:
                    self._interrupt(own)
            code = own.process.wait()
            return self._ending(own, code, "\n".join(told.mistakes))

    def _ending(self, own: _Own, code: int, said: str) -> tuple[State, str]:
        run = own.run
        learned = self.history.place_of(run) is not None
        if code > SIGNALLED or code == -signal.SIGINT:
            return "stopped", ""
        if code < 0:
            state = "stopped" if not own.is_wanted else self.history.without_end(run)
            return state, f"Its process was ended by signal {-code}."
        failed = code in (Exit.MISTAKE, Exit.SUBJECT_FAILED, Exit.BUG) or not learned
        return ("failed", said or f"It ended with {code}.") if failed else ("done", "")


def _begin(
    command: Sequence[str], folder: Path, told: Told, *, held: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env=told.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[held],
    )


def latest_from(place: Path) -> list[tuple[int, str]]:
    """The last line about each score and search, and of each other kind; the latest last."""
    found: dict[tuple[Any, ...], str] = {}
    end = 0
    for behind, line in lines_from(place, 0):
        end, event = behind, json.loads(line)
        about = "against" if event["event"] == "Progress" else "event"
        key = tuple(str(event.get(each)) for each in ("event", "measure", "output", about))
        found.pop(key, None)
        found[key] = line
    return [(end, line) for line in found.values()]


def lines_from(place: Path, start: int) -> Iterator[tuple[int, str]]:
    """The whole lines of a file from a byte on, each with the byte behind it."""
    with suppress(FileNotFoundError), place.open("rb") as file:
        file.seek(start)
        for read in file:
            if not read.endswith(b"\n"):
                return
            start += len(read)
            yield start, read.decode("utf-8", "replace").rstrip("\n")
