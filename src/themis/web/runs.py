"""The runs of a project: a folder for each in its `.themis` folder, and the queue of a server.

A folder has what the list of runs shows, and what a run writes itself (its events, its result), so
that it is there even if the server was killed. Several servers may share one history: a run that is
not over is held by its server and its process, and by nobody once both are gone. Each run is a
process of its own; a server begins one at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from themis.config.told import mark_of
from themis.engine.replacing import write_whole
from themis.errors import Exit, ThemisError
from themis.results.model import Result
from themis.results.saved import read_result
from themis.show.reports.method import digest
from themis.show.words.verdicts import line
from themis.web.child import RESULT, Told, command_line, text_of, withhold

GONE = "The page's server was gone before it ended."
FOLDER, FILE, HELD = "ui", "run.json", "held"
NAME = re.compile(r"[\w-]+", re.ASCII)  # of a run, and so of its folder
State = Literal["waiting", "running", "done", "stopped", "failed", "lost", "opened"]
OVER: tuple[State, ...] = ("done", "stopped", "failed", "lost", "opened")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, or one result that somebody opened."""

    name: str  # of its folder and its address
    title: str
    command: tuple[str, ...]  # of the command line, without `themis`; none of an opened result
    state: State
    began: float
    ended: float | None = None
    verdict: str = ""  # in one line
    hash: str = ""  # of the result
    seed: int | None = None
    fingerprint: str = ""
    message: str = ""  # why it failed
    mark: str = ""  # of the file that it was asked for
    expected: int = 0  # executions, where they were foreseen

    @property
    def when(self) -> str:
        """When it began, in the time of this place."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.began))

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in OVER

    @property
    def is_cut(self) -> bool:
        """Whether it ended before its end, and can be gone on with."""
        return self.state in ("stopped", "lost")

    def about(self, result: Result) -> Run:
        """The same, with what the list says of its result."""
        return replace(
            self,
            verdict=line(result),
            hash=digest(result),
            seed=result.seed,
            fingerprint=str(result.subject.get("fingerprint") or ""),
        )


class History:
    """The runs that were made in one folder of a project."""

    def __init__(self, project: Path, *, rows: bool = False) -> None:
        """With `rows` what runs learned is kept as it is; else as documents may show it."""
        self.rows = rows
        self._folder = project / ".themis" / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)

    def folder(self, run: Run) -> Path:
        """Where a run keeps its events and its result."""
        return self._folder / run.name

    def begin(self, title: str, command: Sequence[str], state: State, **about: Any) -> Run:
        """A new run with a folder of its own, which is not yet kept."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        own, began = tuple(command), time.time()
        run = Run(name=name, title=title, command=own, state=state, began=began, **about)
        self.folder(run).mkdir()
        return run

    def hold(self, run: Run) -> int | None:
        """A descriptor: until all of its copies are closed nobody else gets one.

        None where somebody has it, or the run is forgotten.
        """
        try:
            held = os.open(self.folder(run) / HELD, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        return held

    def keep(self, run: Run) -> Run:
        """Write down what is known of a run."""
        write_whole(self.folder(run) / FILE, json.dumps(asdict(run)).encode())
        return run

    def runs(self) -> list[Run]:
        """All of them: what runs, then what waits, then the latest."""
        names = (each.name for each in self._folder.iterdir())
        known = filter(None, map(self._read, names))
        runs = sorted(map(self._settled, known), key=lambda each: -each.began)
        return sorted(runs, key=lambda each: each.is_over + (each.state != "running"))

    def find(self, name: str) -> Run | None:
        """The run of this name, if there is one."""
        found = self._read(name)
        return None if found is None else self._settled(found)

    def _read(self, name: str) -> Run | None:
        if not NAME.fullmatch(name):
            return None
        try:
            found = json.loads((self._folder / name / FILE).read_bytes())
        except (OSError, ValueError):
            return None
        return Run(**{**found, "command": tuple(found["command"])})

    def _settled(self, run: Run) -> Run:
        """The run; of one that nobody holds any more it is written down how it ended."""
        if run.is_over or (held := self.hold(run)) is None:
            return run
        try:
            now = self._read(run.name) or run
            with suppress(OSError):  # of a full disk; what is there can be read
                return now if now.is_over else self.end(now, self.without_end(now), GONE)
            return now
        finally:
            os.close(held)

    def without_end(self, run: Run) -> State:
        """The state of a run that did not come to its end."""
        is_lost = run.state == "running" and self.place_of(run) is None
        return "lost" if is_lost else "stopped"

    def forget(self, run: Run) -> None:
        """Remove a run and its files."""
        shutil.rmtree(self.folder(run), ignore_errors=True)

    def place_of(self, run: Run) -> Path | None:
        """The file with what a run learned, if it learned anything; audits have a folder."""
        return next(self.folder(run).rglob(RESULT), None)

    def result(self, run: Run) -> Result | None:
        """What a run learned, if it learned anything."""
        place = self.place_of(run)
        return None if place is None else read_result(place)

    def open_result(self, title: str, result: Result, *, rows: bool = False) -> Run:
        """Keep a result that was measured elsewhere, as documents may show it unless `rows` may be.

        Raises RequestError where too little of it is left to be read again.
        """
        text = text_of(result, title, rows=rows)
        run = self.begin(title, (), "opened")
        write_whole(self.folder(run) / RESULT, text)
        return self.keep(replace(run.about(result), ended=run.began))

    def end(self, run: Run, state: State, message: str = "") -> Run:
        """Write down how a run ended, with what it learned."""
        ended = replace(run, state=state, ended=time.time(), message=message)
        try:
            if not self.rows:
                withhold(self.folder(run))
            if (result := self.result(run)) is not None:
                ended = ended.about(result)
        except ThemisError as error:  # too little of it may be kept
            ended = replace(ended, state="failed", message=f"{message}\n{error}".strip())
        return self.keep(ended)


EVENTS = "events.jsonl"
PATIENCE = 20.0  # seconds after which a run that is to end is killed
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
        if code > 128 or code == -signal.SIGINT:  # a signal ended the command
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
    for behind, text in lines_from(place, 0):
        end, event = behind, json.loads(text)
        about = "against" if event["event"] == "Progress" else "event"
        key = tuple(str(event.get(each)) for each in ("event", "measure", "output", about))
        found.pop(key, None)
        found[key] = text
    return [(end, text) for text in found.values()]


def lines_from(place: Path, start: int) -> Iterator[tuple[int, str]]:
    """The whole lines of a file from a byte on, each with the byte behind it."""
    with suppress(FileNotFoundError), place.open("rb") as file:
        file.seek(start)
        for read in file:
            if not read.endswith(b"\n"):
                return
            start += len(read)
            yield start, read.decode("utf-8", "replace").rstrip("\n")
