"""Cache files: which SQLite file is a cache of ours, how it is opened, and what can be wrong.

Locks: at most one process writes to a cache; the others can tell which one it is.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from themis.errors import Mistake, RequestError

FOLDER_NAME = ".themis"
FILE_NAME = "cache.sqlite"
APPLICATION_ID = 0x5468656D  # "Them": how SQLite files of ours are told from others
FORMAT = 2  # 1 had no seals
BUSY_SECONDS = 60.0  # how long to wait for another process that reads or commits

NO_CACHE = "is not a cache of Themis", "name another file"
OTHER_PLACE = "name another file (cache=FILE), or use cache=False"
# Besides SQLITE_CORRUPT, what our own orders meet in a damaged file only.
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
)
ORPHANED_TRIES, ORPHANED_SECONDS = 200, 0.01  # for a lock whose holder was killed
CLEAR_REMEDY = "`themis cache clear` removes it, cache=False does without"

_TABLES = (
    "CREATE TABLE subjects (number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, "
    "kind TEXT NOT NULL, last_used TEXT NOT NULL)",
    "CREATE TABLE inputs (subject INTEGER, key BLOB, sealed BLOB NOT NULL, "
    "PRIMARY KEY (subject, key)) WITHOUT ROWID",
    "CREATE TABLE batches (subject INTEGER, key BLOB, decided INTEGER NOT NULL, "
    "sealed BLOB NOT NULL, UNIQUE (subject, key))",
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
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise unusable(path, "is no file that can be kept", "name a file, or use cache=False")
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
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cell_size_check = ON")  # finds some damage before it is followed
    except sqlite3.Error:
        connection.close()
        raise
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
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


def set_aside(path: Path) -> Path | None:
    """Where a cache of an earlier format was moved to; None where there was none.

    It is neither read nor deleted: its decisions have no seals, and an earlier Themis can use them.
    """
    head = _head(path) if path.exists() else b""
    format_ = int.from_bytes(head[60:64])
    if not _has_mark(head) or format_ >= FORMAT:
        return None
    aside = path.with_name(f"{path.name}.format-{format_}")
    if journal_of(path).exists():
        journal_of(path).replace(journal_of(aside))
    return path.replace(aside)


def is_marked(path: Path) -> bool:
    """Whether a file carries our mark, even if it is damaged otherwise; an empty one counts."""
    head = _head(path)
    return not head or _has_mark(head)


def _head(path: Path) -> bytes:
    """The header of an SQLite file: at 60 its format, at 68 whose it is."""
    with path.open("rb") as file:
        return file.read(100)


def _has_mark(head: bytes) -> bool:
    return head[68:72] == APPLICATION_ID.to_bytes(4)


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
    except UnicodeDecodeError as error:  # SQLite repeats what it does not understand
        raise unusable(path, "is damaged", CLEAR_REMEDY) from error


def unusable(path: Path, problem: str, remedy: str) -> RequestError:
    """The exception for a file that can't be used as a cache."""
    return RequestError([Mistake("cache", "cache", f"{path} {problem}", remedy)])


def _may_be_ours(path: Path) -> bool:
    try:
        return not path.exists() or is_marked(path) or journal_of(path).exists()
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
        raise unusable(path, problem, OTHER_PLACE) from error


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
            "cache=False",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return NO_CACHE
    if code in DAMAGED:
        return f"is damaged: {error}", CLEAR_REMEDY
    if code == sqlite3.SQLITE_BUSY:
        return "is locked by another program", "wait until that has ended, or use cache=False"
    return f"can't be used: {error}", OTHER_PLACE


class FileLock:
    """A lock that lives beside a file and ends with its process, however that ends.

    It is a file of its own: SQLite locks the cache itself, and closing any other descriptor of
    that file would end those locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> bool:
        """Take the lock if it is free; whether this object holds it now."""
        if self._file is not None:
            return True
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            taken = self._take(file)
        except BaseException:
            os.close(file)
            raise
        if not taken:
            os.close(file)
            return False
        self._file = file
        with suppress(OSError):  # no room for the number: the lock holds all the same
            os.ftruncate(file, 0)
            os.pwrite(file, b"%d\n" % os.getpid(), 0)
        return True

    def _take(self, file: int) -> bool:
        """Lock the file; a lock whose holder was killed is waited for.

        What that was just about to start still has it, until it is started.
        """
        for _ in range(ORPHANED_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if not _has_ended(self.holder()):
                return False
            time.sleep(ORPHANED_SECONDS)
        return False

    def release(self) -> None:
        """Give the lock back."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def holder(self) -> int | None:
        """The number of the process that holds the lock, where it is known."""
        try:
            return int(self.path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None


def _has_ended(process: int | None) -> bool:
    """Whether there is no such process any more, as far as that is known."""
    try:
        os.kill(process or os.getpid(), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
