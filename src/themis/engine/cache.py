"""The cache: decisions of subjects in a file that outlives the run, whatever ends it.

One SQLite file holds the decisions of many subjects, each known by its fingerprint. Subjects whose
executions are dear have one row for each input; those whose executions are cheap and many have one
row for each batch. Only decisions are stored, never failures.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from themis.engine.cache_cache_file import (
    connect,
    explained,
    make_folder,
    prepare,
    refuse_others,
    unusable,
)
from themis.engine.cache_cache_lock import FileLock
from themis.errors import RequestError
from themis.inputs.characteristics import Value

COMMIT_SECONDS = 0.1  # commits wait for the disk: within this time there is one at most
KEYS_AT_ONCE = 500


class Cache:
    """An open cache file. The first process to open it stores; others read until it is done.

    Raises RequestError when the file can't be used or written; what was stored before stays. A
    crash loses what was stored in the last moment before it, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._connection: sqlite3.Connection | None = None
        self._is_ready = False  # the tables are there
        self._committed = -math.inf
        self._open()

    @property
    def notice(self) -> str | None:
        """What the user should know: that another process writes, and this one does not."""
        if self._connection is None or self._lock.held:
            return None
        return (
            f"the cache {self.path} is in use by {self._lock.holder()}: this run reads it, but "
            "stores nothing until that one has ended"
        )

    def close(self) -> None:
        """Make durable what was stored, and let others write; a later use opens it again."""
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
        return rows[0][0] if rows else None

    def labels(self, subject: int) -> list[Value]:
        """The labels of a subject by number."""
        order = "SELECT label FROM labels WHERE subject = ? ORDER BY number"
        return [json.loads(label) for (label,) in self._read(order, (subject,))]

    def add_label(self, subject: int, number: int, label: Value) -> None:
        """Give a further label its number."""
        self._write("INSERT INTO labels VALUES (?, ?, ?)", [(subject, number, json.dumps(label))])

    def find_inputs(self, subject: int, keys: Sequence[bytes]) -> dict[bytes, int]:
        """The label numbers of those inputs that are known."""
        return dict(self._read_each("SELECT key, label FROM inputs", subject, keys))

    def put_inputs(self, subject: int, labels: Iterable[tuple[bytes, int]]) -> None:
        """Store the label numbers of inputs."""
        rows = [(subject, key, label) for key, label in labels]
        self._write("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?)", rows)

    def find_batch(self, subject: int, key: bytes) -> bytes | None:
        """The packed labels of a batch, if it is known."""
        order = "SELECT labels FROM batches WHERE subject = ? AND key = ?"
        rows = self._read(order, (subject, key))
        return rows[0][0] if rows else None

    def put_batch(self, subject: int, key: bytes, decided: int, labels: bytes) -> None:
        """Store the packed labels of a batch, of which so many are decisions."""
        row = (subject, key, decided, labels)
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
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            refuse_others(self.path)
            try:
                make_folder(self.path.parent)
                self._lock.acquire()
            except OSError as error:
                problem = f"can't be written: {error.strerror}"
                raise unusable(self.path, problem, "name another file") from error
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
