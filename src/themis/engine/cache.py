"""The cache: decisions of subjects in a file that outlives the run, whatever ends it.

One SQLite file holds the decisions of many subjects, each known by its fingerprint. Subjects whose
executions are expensive have one row for each input; those whose executions are cheap and many
have one row for each batch. Only decisions are stored, never failures. What a row holds is sealed
by those who store it (`recall`): SQLite itself does not notice a flipped bit.

What does a cache hold, and how is it emptied? Housekeeping for `themis cache`.
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

from themis.engine.cache_files import (
    CLEAR_REMEDY,
    OTHER_PLACE,
    FileLock,
    connect,
    explained,
    is_marked,
    journal_of,
    make_folder,
    prepare,
    refuse_others,
    set_aside,
    unusable,
)
from themis.errors import RequestError

COMMIT_SECONDS = 0.1  # commits wait for the disk: within this time there is one at most
KEYS_AT_ONCE = 500
_OF_PARENTS: list[sqlite3.Connection | None] = []  # of forked processes: neither used nor closed


class Cache:
    """An open cache file. The first process to open it stores; others read until it is done.

    Raises RequestError when the file can't be used or written; what was stored before stays. A
    crash loses what was stored in the last moment before it, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_aside: Path | None = None  # where a cache of an earlier format is now
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._connection: sqlite3.Connection | None = None
        self._is_ready = False  # the tables are there
        self._committed = -math.inf
        self._owner = os.getpid()
        self._open()

    @property
    def is_taken(self) -> bool:
        """Whether somebody else writes, and this one only reads."""
        return self._connection is not None and not self._lock.held

    @property
    def writer(self) -> int | None:
        """The number of the process that writes, where it is known."""
        return self._lock.holder()

    def close(self) -> None:
        """Make durable what was stored, and let others write; a later use opens it again."""
        self._leave_to_parent()
        connection, self._connection = self._connection, None
        try:
            if connection is not None and connection.in_transaction:
                with explained(self.path):
                    connection.execute("COMMIT")
        finally:
            if connection is not None:
                connection.close()
            self._lock.release()

    # One subject -------------------------------------------------------------------------
    def number_of(self, fingerprint: str, kind: str) -> int | None:
        """The number of a subject; None where it is unknown and can't be stored now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write(
            "INSERT INTO subjects (fingerprint, kind, last_used) VALUES (?, ?, ?) "
            "ON CONFLICT (fingerprint) DO UPDATE SET last_used = excluded.last_used",
            [(fingerprint, kind, now)],
        )
        rows = self._read("SELECT number FROM subjects WHERE fingerprint = ?", (fingerprint,))
        if not rows and self._lock.held:
            raise unusable(self.path, "is damaged: what was stored is not found", CLEAR_REMEDY)
        return rows[0][0] if rows else None

    def find_inputs(self, subject: int, keys: Sequence[bytes]) -> dict[bytes, object]:
        """What is stored of those inputs that are known; anything where the file is damaged."""
        return dict(self._read_each("SELECT key, sealed FROM inputs", subject, keys))

    def put_inputs(self, subject: int, sealed: Iterable[tuple[bytes, bytes]]) -> None:
        """Store the decisions on inputs."""
        rows = [(subject, key, each) for key, each in sealed]
        self._write("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?)", rows)

    def find_batch(self, subject: int, key: bytes) -> object:
        """What is stored of a batch, None if nothing; anything where the file is damaged."""
        order = "SELECT sealed FROM batches WHERE subject = ? AND key = ?"
        rows = self._read(order, (subject, key))
        return rows[0][0] if rows else None

    def put_batch(self, subject: int, key: bytes, decided: int, sealed: bytes) -> None:
        """Store the decisions on a batch, which are so many."""
        row = (subject, key, decided, sealed)
        self._write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)", [row])

    def may_write(self) -> bool:
        """Whether this process stores; it takes over from another one that has ended."""
        connection = self._open()
        if not self._lock.held and self._lock.acquire():
            with self._undone_on_error():
                self._is_ready = prepare(connection, self.path, create=True)
        return self._lock.held

    def commit(self) -> None:
        """Make durable what was stored, unless that was done a moment ago."""
        connection = self._open()
        if connection.in_transaction and time.monotonic() - self._committed >= COMMIT_SECONDS:
            with self._undone_on_error():
                connection.execute("COMMIT")
                self._committed = time.monotonic()

    # Parts -------------------------------------------------------------------------------
    def _leave_to_parent(self) -> None:
        """In a forked process: what is open is the parent's, and must not be touched."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            _OF_PARENTS.append(self._connection)
            self._connection = None
            self._lock.release()  # only this process's hold on it; the parent keeps its own

    def _open(self) -> sqlite3.Connection:
        self._leave_to_parent()
        if self._connection is None:
            refuse_others(self.path)
            try:
                make_folder(self.path.parent)
                if self._lock.acquire():
                    self.set_aside = set_aside(self.path) or self.set_aside
            except OSError as error:
                problem = f"can't be written: {error.strerror}"
                raise unusable(self.path, problem, OTHER_PLACE) from error
            with self._undone_on_error():
                self._connection = connect(self.path)
                self._is_ready = prepare(self._connection, self.path, create=self._lock.held)
        assert self._connection is not None
        return self._connection

    def _read(self, order: str, values: Sequence[object]) -> list[Any]:
        connection = self._open()
        with self._undone_on_error():
            if not self._is_ready:  # another process was about to create it
                self._is_ready = prepare(connection, self.path, create=False)
            return connection.execute(order, values).fetchall() if self._is_ready else []

    def _read_each(self, order: str, subject: int, keys: Sequence[bytes]) -> Iterator[Any]:
        for start in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[start : start + KEYS_AT_ONCE]
            places = ",".join("?" * len(part))
            where = f" WHERE subject = ? AND key IN ({places})"
            yield from self._read(order + where, (subject, *part))

    def _write(self, order: str, rows: Sequence[Sequence[object]]) -> None:
        """Change the file if this process may; durable at the next commit."""
        if not self.may_write():
            return
        connection = self._open()
        with self._undone_on_error():
            if not connection.in_transaction:
                connection.execute("BEGIN IMMEDIATE")
            connection.executemany(order, rows)

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Within, an error of SQLite undoes what was not committed, and closes the file."""
        try:
            with explained(self.path):
                yield
        except RequestError:
            connection = self._connection
            if connection is not None and connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            with suppress(RequestError):
                self.close()
            raise


_SUBJECTS = (
    "SELECT fingerprint, kind, last_used, "
    "(SELECT count(*) FROM inputs WHERE subject = subjects.number) + "
    "(SELECT cast(total(decided) AS INTEGER) FROM batches WHERE subject = subjects.number) "
    "FROM subjects ORDER BY last_used DESC, number DESC"
)


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
    with explained(path), closing(connect(path)) as connection:
        rows = (
            connection.execute(_SUBJECTS).fetchall()
            if prepare(connection, path, create=False)
            else []
        )
    subjects = tuple(CachedSubject(str(f), str(k), str(t), n) for f, k, t, n in rows)
    return CacheContents(path, path.stat().st_size, subjects)


def clear(path: Path) -> None:
    """Delete a cache file, damaged or not; refused while a process writes, and for other files."""
    if not path.exists():
        return
    _check_file(path)
    if not is_marked(path):
        raise unusable(path, "is not a cache of Themis", "nothing was deleted; name another file")
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        if not lock.acquire():
            number = lock.holder()
            who = "another process" if number is None else f"process {number}"
            raise unusable(path, f"is in use by {who}", "wait until that has ended")
        path.unlink()
        journal_of(path).unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, f"can't be deleted: {error.strerror}", "check its folder") from error
    finally:
        lock.release()


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise unusable(path, "is not a file", "name the cache itself")
