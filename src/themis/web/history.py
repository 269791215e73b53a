"""The runs of a project: a folder for each in its `.themis` folder.

It has what the list of runs shows, and what a run writes itself (its events, its result), so that
it is there even if the server was killed. Several servers may share one history: a run that is not
over is held by its server and its process, and by nobody once both are gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from themis.engine.replacing import write_whole
from themis.errors import RequestError, ThemisError
from themis.results.model import Result
from themis.results.saved import read_result, result_from_dict
from themis.results.withheld import without_rows
from themis.show.reports.method import digest
from themis.show.words.verdicts import line

GONE = "The page's server was gone before it ended."
FOLDER, FILE, RESULT, HELD = "ui", "run.json", "result.json", "held"
NAME = re.compile(r"[\w-]+", re.ASCII)  # of a run, and so of its folder
KEPT = "*.html", "*.md", "*.csv"  # what an audit writes beside its result
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
        run = Run(
            name=name,
            title=title,
            command=tuple(command),
            state=state,
            began=time.time(),
            **about,
        )
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
        text = _written(result, title, rows=rows)
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


def withhold(folder: Path) -> None:
    """Leave of a saved result what documents may show; other documents of a longer one go."""
    for place in folder.rglob(RESULT):
        try:
            text = _written(read_result(place), RESULT, rows=False)
        except RequestError:
            place.unlink()
            raise
        if json.loads(text) != json.loads(place.read_bytes()):
            write_whole(place, text)
            for each in (each for pattern in KEPT for each in place.parent.glob(pattern)):
                each.unlink()


def _written(result: Result, title: str, *, rows: bool) -> bytes:
    if not rows and result.report is not None:  # whatever its file says
        result = replace(result, report=replace(result.report, rows=False))
    text = json.dumps((result if rows else without_rows(result)).to_dict(), indent=2)
    try:
        result_from_dict(json.loads(text))
    except ThemisError:
        problem = "it tells of few people, which may not be kept"
        raise RequestError.one("rows", title, problem, "start the page with --rows") from None
    return text.encode()
