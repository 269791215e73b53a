"""Runs: each is a process of its own that writes its events and its result; one at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from themis.errors import Exit
from themis.web.history import RESULT, History, Run, State

EVENTS, SAID = "events.jsonl", "said.txt"
PATIENCE = 20.0  # seconds after which a run that is to end is killed


class Runs:
    """The queue of one server: it begins runs, ends them, and writes down how they ended."""

    def __init__(self, history: History, project: Path) -> None:
        self.history, self._project = history, project
        self._waiting: deque[Run] = deque()
        self._running: tuple[Run, subprocess.Popen[bytes]] | None = None
        self._change = threading.Condition()
        self._is_closed = False
        self._adopt()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _adopt(self) -> None:
        """Write down how the runs of servers that are gone ended."""
        for run in self.history.runs():
            if not run.is_over and not _lives(run.server):
                learned = self.history.result(run) is not None
                self.history.end(run, "stopped" if learned else "lost")

    def add(self, title: str, command: Sequence[str]) -> Run:
        """Put a command of `themis` into the queue."""
        run = self.history.begin(title, command, "waiting", os.getpid())
        with self._change:
            self._waiting.append(run)
            self._change.notify()
        return run

    def stop(self, run: Run) -> None:
        """End a run; what it learned is kept."""
        with self._change:
            if run.name in {each.name for each in self._waiting}:
                self._waiting = deque(e for e in self._waiting if e.name != run.name)
                self.history.end(run, "stopped")
            elif self._running is not None and self._running[0].name == run.name:
                self._interrupt(self._running[1])

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        threading.Timer(PATIENCE, process.kill).start()

    def close(self) -> None:
        """End what runs, and begin nothing more."""
        with self._change:
            self._is_closed = True
            for run in self._waiting:
                self.history.end(run, "stopped")
            self._waiting.clear()
            if self._running is not None:
                self._interrupt(self._running[1])
            self._change.notify()
        self._thread.join(PATIENCE + 5)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                run = self._waiting.popleft()
                process = self._begin(run)
                self._running = run, process
            code = process.wait()
            with self._change:
                self._running = None
                state, message = self._ending(run, code)
                self.history.end(run, state, message)

    def _begin(self, run: Run) -> subprocess.Popen[bytes]:
        folder = self.history.folder(run)
        self.history.keep(replace(run, state="running"))
        place = folder / "audit" if run.command[0] == "audit" else folder / RESULT
        own = ["--output", str(place), "--events", str(folder / EVENTS), "--quiet"]
        with (folder / SAID).open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "themis.web.child", *run.command, *own],
                cwd=self._project,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def _ending(self, run: Run, code: int) -> tuple[State, str]:
        """How a run ended, and what it said if it failed."""
        said = (self.history.folder(run) / SAID).read_text(encoding="utf-8", errors="replace")
        has_result = self.history.place_of(run) is not None
        if code in (Exit.INTERRUPTED, 128 + signal.SIGINT) or code < 0:
            return "stopped" if has_result else "lost", said if code < 0 else ""
        return ("done", "") if has_result else ("failed", said)


def _lives(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != 0


def lines_from(place: Path, start: int) -> Iterator[tuple[int, str]]:
    """The whole lines of a file from a byte on, each with the byte behind it."""
    with suppress(FileNotFoundError), place.open("rb") as file:
        file.seek(start)
        for read in file:
            if not read.endswith(b"\n"):
                return
            start += len(read)
            yield start, read.decode("utf-8", "replace").rstrip("\n")
