"""The cache: decisions of subjects in a file that outlives the run, whatever ends it.

One SQLite file holds the decisions of many subjects, each known by its fingerprint. Subjects whose
executions are expensive have one record for each input; those whose executions are cheap and many
have one for each batch. Only decisions are stored, never failures. What a record holds is sealed
by those who store it (`recall`): SQLite itself does not notice a flipped bit.

Several processes may read and write at the same time: each write is short, and SQLite locks the
file meanwhile.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError

FOLDER_NAME, FILE_NAME = ".themis", "cache.sqlite"
APPLICATION_ID = 0x5468656D  # "Them": how SQLite files of ours are told from others
FORMAT = 3
# Commits wait for the disk: within this time there is one at most. Half of it makes quick programs
# slower; twice as much is lost in a crash.
COMMIT_SECONDS = 0.1
KEYS_AT_ONCE = 500  # of a query, half of what the oldest SQLite takes

NO_CACHE = "is not a cache of Themis", "name another file"
OTHER_PLACE = "name another file (cache=FILE), or use cache=False"
CLEAR_REMEDY = "`themis cache clear` removes it, cache=False does without"
# Besides SQLITE_CORRUPT, what our own orders meet in a damaged file only.
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
)
_TABLES = (
    "CREATE TABLE subjects (number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, "
    "kind TEXT NOT NULL, last_used TEXT NOT NULL)",
    "CREATE TABLE records (key BLOB PRIMARY KEY, subject INTEGER NOT NULL, "
    "decided INTEGER NOT NULL, sealed BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)
_SUBJECTS = (
    "SELECT fingerprint, kind, last_used, "
    "(SELECT cast(total(decided) AS INTEGER) FROM records WHERE subject = subjects.number) "
    "FROM subjects ORDER BY last_used DESC, number DESC"
)
_OF_PARENTS: list[sqlite3.Connection | None] = []  # of forked processes: neither used nor closed


def default_path(folder: Path) -> Path:
    """Where the cache of a configuration file in this folder is."""
    return folder / FOLDER_NAME / FILE_NAME


class Cache:
    """An open cache file.

    Raises RequestError when the file can't be used or written; what was stored before stays. A
    crash loses what was stored in the last moment before it, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._pending: dict[bytes, tuple[bytes, int, int, bytes]] = {}
        self._committed = -math.inf
        self._owner = os.getpid()
        self._open()

    def number_of(self, fingerprint: str, kind: str) -> int:
        """The number of a subject, which is used now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write(
            "INSERT INTO subjects (fingerprint, kind, last_used) VALUES (?, ?, ?) "
            "ON CONFLICT (fingerprint) DO UPDATE SET last_used = excluded.last_used",
            [(fingerprint, kind, now)],
        )
        rows = self._read("SELECT number FROM subjects WHERE fingerprint = ?", (fingerprint,))
        if not rows:
            raise unusable(self.path, "is damaged: what was stored is not found", CLEAR_REMEDY)
        number: int = rows[0][0]
        return number

    def holds(self, subject: int) -> bool:
        """Whether anything of a subject is stored."""
        return bool(self._read("SELECT 1 FROM records WHERE subject = ? LIMIT 1", (subject,)))

    def find(self, keys: Sequence[bytes]) -> dict[bytes, object]:
        """What is stored under those keys that are known; anything where the file is damaged."""
        found: dict[bytes, object] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            places = ",".join("?" * len(part))
            found |= self._read(f"SELECT key, sealed FROM records WHERE key IN ({places})", part)
        pending = self._pending
        return found | {key: pending[key][-1] for key in keys if key in pending}

    def put(self, subject: int, records: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Store records of a subject: their keys, how many decisions they hold, and the text.

        They are durable at the next commit.
        """
        self._open()
        self._pending |= {key: (key, subject, count, text) for key, count, text in records}

    def commit(self, *, now: bool = False) -> None:
        """Make durable what was stored, unless that was done a moment ago."""
        if self._pending and (now or time.monotonic() - self._committed >= COMMIT_SECONDS):
            pending, self._pending = self._pending, {}
            try:
                rows = [*pending.values()]
                self._write("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", rows)
            except KeyboardInterrupt:  # after an error it would fail again, at the exit
                self._pending = pending
                raise
            self._committed = time.monotonic()

    def close(self) -> None:
        """Make durable what was stored; a later use opens the file again."""
        self._leave_to_parent()
        try:
            self.commit(now=True)
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave_to_parent(self) -> None:
        """In a forked process: what is open is the parent's, and must not be touched."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            _OF_PARENTS.append(self._connection)
            self._connection, self._pending = None, {}

    def _open(self) -> sqlite3.Connection:
        self._leave_to_parent()
        if self._connection is None:
            _refuse_others(self.path)
            try:
                _make_folder(self.path.parent)
            except OSError as error:
                problem = f"can't be written: {error.strerror}"
                raise unusable(self.path, problem, OTHER_PLACE) from error
            with self._closed_on_error():
                self._connection = _connect(self.path)
                _prepare(self._connection, self.path)
        assert self._connection is not None
        return self._connection

    def _read(self, order: str, values: Sequence[object]) -> list[Any]:
        connection = self._open()
        with self._closed_on_error():
            return connection.execute(order, values).fetchall()

    def _write(self, order: str, rows: Sequence[Sequence[object]]) -> None:
        """Change the file, and wait for the disk."""
        connection = self._open()
        with self._closed_on_error():
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(order, rows)
            connection.execute("COMMIT")

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Within, an error or Ctrl-C undoes what was not committed, and closes the file."""
        try:
            with explained(self.path):
                yield
        except BaseException:
            if self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            self._disconnect()
            raise


@dataclass(frozen=True)
class CachedSubject:
    """What a cache holds of one subject."""

    fingerprint: str
    kind: str
    last_used: str  # ISO 8601
    decisions: int


@dataclass(frozen=True)
class CacheContents:
    """What a cache holds, and how much room it takes."""

    path: Path
    bytes: int
    subjects: tuple[CachedSubject, ...]


def read_contents(path: Path) -> CacheContents:
    """What a cache file holds; nothing where there is no file yet."""
    if not path.exists():
        return CacheContents(path, 0, ())
    _check_file(path)
    with explained(path), closing(_connect(path)) as connection:
        known = _is_ready(connection, path)
        rows = connection.execute(_SUBJECTS).fetchall() if known else []
    subjects = tuple(CachedSubject(str(f), str(k), str(t), n) for f, k, t, n in rows)
    return CacheContents(path, path.stat().st_size, subjects)


def clear(path: Path) -> None:
    """Delete what a cache file holds, damaged or not; refused for other files.

    A run that writes to it goes on, and stores what it learns from now on.
    """
    if not path.exists():
        return
    _check_file(path)
    if not _is_marked(path):
        raise unusable(path, "is not a cache of Themis", "nothing was deleted; name another file")
    try:
        with explained(path), closing(_connect(path)) as connection:
            if _is_ready(connection, path):
                connection.executescript("DELETE FROM records; DELETE FROM subjects; VACUUM")
    except RequestError:  # damaged, or of another format
        try:
            path.unlink()
            _journal_of(path).unlink(missing_ok=True)
        except OSError as error:
            problem = f"can't be deleted: {error.strerror}"
            raise unusable(path, problem, "check its folder") from error


def unusable(path: Path, problem: str, remedy: str) -> RequestError:
    """The exception for a file that can't be used as a cache."""
    return RequestError([Mistake("cache", "cache", f"{path} {problem}", remedy)])


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Within, what SQLite complains about becomes a RequestError with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise unusable(path, *_explain(error)) from error
    except UnicodeDecodeError as error:  # SQLite repeats what it does not understand
        raise unusable(path, "is damaged", CLEAR_REMEDY) from error


def _explain(error: sqlite3.Error) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        remedy = "what was stored before is kept: make room and run the same command again, or use "
        return f"can't be written: {error}", f"{remedy}cache=False"
    if code == sqlite3.SQLITE_NOTADB:
        return NO_CACHE
    if code in DAMAGED:
        return f"is damaged: {error}", CLEAR_REMEDY
    if code == sqlite3.SQLITE_BUSY:
        return "is locked by another program", "wait until that has ended, or use cache=False"
    return f"can't be used: {error}", OTHER_PLACE


def _make_folder(folder: Path) -> None:
    """Create the folder of a cache; one of our own is kept out of version control."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == FOLDER_NAME:
        (folder / ".gitignore").write_text("*\n", encoding="ascii")


def _refuse_others(path: Path) -> None:
    """Raise RequestError for a file that is no cache of ours, before anything is made beside it."""
    if str(path) == ":memory:":
        problem = "is no file: SQLite would keep nothing"
        raise unusable(path, problem, "name a file, or use cache=False")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise unusable(path, "is no file that can be kept", "name a file, or use cache=False")
    try:
        is_ours = not path.exists() or _is_marked(path) or _journal_of(path).exists()
    except OSError as error:
        raise unusable(path, f"can't be read: {error.strerror}", OTHER_PLACE) from error
    if not is_ours:
        raise unusable(path, *NO_CACHE)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection that is durable at every commit.

    The rollback journal, not the write-ahead log: that one has a fault in SQLite before 3.51.3
    that can lose commits when several connections are open.
    """
    _refuse_others(path)  # SQLite would change some files by merely opening them
    connection = sqlite3.connect(  # it waits a minute for another process that commits
        path, timeout=60.0, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cell_size_check = ON")  # finds some damage before it is followed
    except sqlite3.Error:
        connection.close()
        raise
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is one of ours, or make it one."""
    if _is_ready(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    if not _is_ready(connection, path):  # nor has another process made it meanwhile
        for order in _TABLES:
            connection.execute(order)
    connection.execute("COMMIT")


def _is_ready(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a cache of ours; False where it is still empty."""
    orders = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    identity, format_, tables = (connection.execute(order).fetchone()[0] for order in orders)
    if identity == 0 and tables == 0:
        return False
    if identity != APPLICATION_ID:
        raise unusable(path, *NO_CACHE)
    if format_ != FORMAT:
        problem = f"was written by another Themis (format {format_}, this one has {FORMAT})"
        raise unusable(path, problem, CLEAR_REMEDY)
    return True


def _is_marked(path: Path) -> bool:
    """Whether a file carries our mark, even if it is damaged otherwise; an empty one counts."""
    with path.open("rb") as file:
        head = file.read(100)  # of an SQLite file: at 68 stands whose it is
    return not head or head[68:72] == APPLICATION_ID.to_bytes(4)


def _journal_of(path: Path) -> Path:
    """Where SQLite notes how to undo what a crash has interrupted."""
    return path.with_name(f"{path.name}-journal")


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise unusable(path, "is not a file", "name the cache itself")
