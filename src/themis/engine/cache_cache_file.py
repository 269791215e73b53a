"""Cache files: what SQLite file is a cache of ours, how it is opened, and what can be wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from themis.errors import Mistake, RequestError

FOLDER_NAME = ".themis"
FILE_NAME = "cache.sqlite"
APPLICATION_ID = 0x5468656D  # "Them": how SQLite files of ours are told from others
FORMAT = 1
BUSY_SECONDS = 60.0  # how long to wait for another process that reads or commits

NO_CACHE = "is not a cache of Themis", "name another file"
CLEAR_REMEDY = "`themis cache clear` removes it, --no-cache does without"

_TABLES = (
    "CREATE TABLE subjects (number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, "
    "kind TEXT NOT NULL, last_used TEXT NOT NULL)",
    "CREATE TABLE labels (subject INTEGER, number INTEGER, label TEXT NOT NULL, "
    "PRIMARY KEY (subject, number)) WITHOUT ROWID",
    "CREATE TABLE inputs (subject INTEGER, key BLOB, label INTEGER NOT NULL, "
    "PRIMARY KEY (subject, key)) WITHOUT ROWID",
    "CREATE TABLE batches (subject INTEGER, key BLOB, decided INTEGER NOT NULL, "
    "labels BLOB NOT NULL, UNIQUE (subject, key))",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


def default_path(folder: Path) -> Path:
    """Where the cache of a configuration file in this folder is."""
    return folder / FOLDER_NAME / FILE_NAME


def make_folder(folder: Path) -> None:
    """Create the folder of a cache; one of our own is kept out of version control."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == FOLDER_NAME:
        (folder / ".gitignore").write_text("*\n", encoding="ascii")


def refuse_others(path: Path) -> None:
    """Raise RequestError for a file that is no cache of ours, before anything is made beside it."""
    if not _may_be_ours(path):
        raise unusable(path, *NO_CACHE)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that is durable at every commit.

    The rollback journal, not the write-ahead log: that one has a fault in SQLite before 3.51.3
    that can lose commits when several connections are open.
    """
    refuse_others(path)  # SQLite would change some files by merely opening them
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def prepare(connection: sqlite3.Connection, path: Path, *, create: bool) -> bool:
    """Check that the file is one of ours, or make it one; False where it is still empty."""
    identity, format_, tables = _identity(connection)
    if identity == 0 and tables == 0:
        if create:
            connection.execute("BEGIN IMMEDIATE")
            for order in _TABLES:
                connection.execute(order)
            connection.execute("COMMIT")
        return create
    if identity != APPLICATION_ID:
        raise unusable(path, *NO_CACHE)
    if format_ != FORMAT:
        problem = f"was written by another Themis (format {format_}, this one has {FORMAT})"
        raise unusable(path, problem, CLEAR_REMEDY)
    return True


def is_marked(path: Path) -> bool:
    """Whether a file carries our mark, even if it is damaged otherwise; an empty one counts."""
    with path.open("rb") as file:
        head = file.read(100)
    return not head or head[68:72] == APPLICATION_ID.to_bytes(4)


def journal_of(path: Path) -> Path:
    """Where SQLite notes how to undo what a crash has interrupted."""
    return path.with_name(f"{path.name}-journal")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Within, what SQLite complains about becomes a RequestError with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise unusable(path, *_explain(error)) from error


def unusable(path: Path, problem: str, remedy: str) -> RequestError:
    """The exception for a file that can't be used as a cache."""
    return RequestError([Mistake("cache", "cache", f"{path} {problem}", remedy)])


def _may_be_ours(path: Path) -> bool:
    try:
        return not path.exists() or is_marked(path) or journal_of(path).exists()
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
        raise unusable(path, problem, "name another file, or use --no-cache") from error


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    orders = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    identity, format_, tables = (connection.execute(order).fetchone()[0] for order in orders)
    return identity, format_, tables


def _explain(error: sqlite3.Error) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"can't be written: {error}",
            "what was stored before is kept: make room and run the same command again, or use "
            "--no-cache",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return NO_CACHE
    if code == sqlite3.SQLITE_CORRUPT:
        return f"is damaged: {error}", CLEAR_REMEDY
    if code == sqlite3.SQLITE_BUSY:
        return "is locked by another program", "wait until that has ended, or use --no-cache"
    return f"can't be used: {error}", "name another file, or use --no-cache"
