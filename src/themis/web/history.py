"""The runs of a project: a SQLite file in its `.themis` folder, and a folder for each run.

What a run writes itself (its events, its result) is in its folder, so that it is there even if the
server was killed; the table has what the list of runs shows. Several servers may share one history:
each run belongs to the server that began it.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from themis.engine.replacing import write_whole
from themis.errors import RequestError, ThemisError
from themis.results.model import CausalScore, Result
from themis.results.parts import Witness
from themis.results.saved import read_result, result_from_dict
from themis.results.withheld import withheld
from themis.show.reports.method import digest
from themis.show.words.verdicts import line

FOLDER, FILE, RESULT = "ui", "history.sqlite", "result.json"
State = Literal["waiting", "running", "done", "stopped", "failed", "lost", "opened"]
OVER: tuple[State, ...] = ("done", "stopped", "failed", "lost", "opened")
TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    name TEXT PRIMARY KEY, title TEXT NOT NULL, command TEXT NOT NULL, state TEXT NOT NULL,
    began REAL NOT NULL, ended REAL, verdict TEXT NOT NULL, hash TEXT NOT NULL, seed INTEGER,
    fingerprint TEXT NOT NULL, message TEXT NOT NULL, server INTEGER NOT NULL)
"""


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
    server: int = 0  # the process that began it

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in OVER

    def about(self, result: Result) -> Run:
        """The same, with what the list says of its result."""
        return replace(
            self,
            verdict=line(result),
            hash=digest(result),
            seed=result.seed,
            fingerprint=str(result.subject.get("fingerprint") or ""),
        )


COLUMNS = tuple(each.name for each in fields(Run))


class History:
    """The runs that were made in one folder of a project."""

    def __init__(self, project: Path) -> None:
        self._home = project / ".themis"
        self._folder = self._home / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._open() as table:
            table.execute("PRAGMA journal_mode = WAL")
            table.execute(TABLE)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._home / FILE, timeout=30.0)) as table, table:
            yield table

    def folder(self, run: Run) -> Path:
        """Where a run keeps its events and its result."""
        return self._folder / run.name

    def begin(self, title: str, command: Sequence[str], state: State, server: int = 0) -> Run:
        """A new run with a folder of its own."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        run = Run(
            name=name,
            title=title,
            command=tuple(command),
            state=state,
            began=time.time(),
            server=server,
        )
        self.folder(run).mkdir()
        self.keep(run)
        return run

    def keep(self, run: Run) -> Run:
        """Write down what is known of a run."""
        values = {name: getattr(run, name) for name in COLUMNS}
        values["command"] = json.dumps(run.command)
        marks = ", ".join(f":{name}" for name in COLUMNS)
        with self._open() as table:
            table.execute(
                f"INSERT OR REPLACE INTO runs ({', '.join(COLUMNS)}) VALUES ({marks})", values
            )
        return run

    def runs(self) -> list[Run]:
        """All of them, the latest first."""
        with self._open() as table:
            rows = table.execute(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY began DESC")
            return [_run(row) for row in rows]

    def find(self, name: str) -> Run | None:
        """The run of this name, if there is one."""
        with self._open() as table:
            found = table.execute(
                f"SELECT {', '.join(COLUMNS)} FROM runs WHERE name = ?", (name,)
            ).fetchone()
        return None if found is None else _run(found)

    def forget(self, run: Run) -> None:
        """Remove a run and its files."""
        with self._open() as table:
            table.execute("DELETE FROM runs WHERE name = ?", (run.name,))
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
        text = json.dumps((result if rows else _without_rows(result)).to_dict(), indent=2)
        try:
            result_from_dict(json.loads(text))
        except ThemisError:
            problem = "it tells of few people, which may not be kept"
            raise RequestError.one("rows", title, problem, "start the page with --rows") from None
        run = self.begin(title, (), "opened")
        write_whole(self.folder(run) / RESULT, text.encode())
        return self.keep(replace(run.about(result), ended=run.began))

    def end(self, run: Run, state: State, message: str = "") -> Run:
        """Write down how a run ended, with what it learned."""
        ended = replace(run, state=state, ended=time.time(), message=message)
        with suppress(ThemisError):
            if (result := self.result(run)) is not None:
                ended = ended.about(result)
        return self.keep(ended)


def _without_rows(result: Result) -> Result:
    """The result as documents may show it; of pairs of people is no more left than a few values."""
    shown = withheld(result)
    scores = tuple(
        replace(each, witnesses=tuple(pair for pair in each.witnesses if _is_whole(pair, shown)))
        if isinstance(each, CausalScore)
        else each
        for each in shown.scores
    )
    return replace(shown, scores=scores)


def _is_whole(pair: Witness, result: Result) -> bool:
    return len(pair.inputs[0]) == len(result.schema["inputs"])


def _run(row: Sequence[object]) -> Run:
    values = dict(zip(COLUMNS, row, strict=True))
    values["command"] = tuple(json.loads(str(values["command"])))
    return Run(**values)  # type: ignore[arg-type]
