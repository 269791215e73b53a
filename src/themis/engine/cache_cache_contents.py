"""What does a cache hold, and how is it emptied? Housekeeping for `themis cache`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from themis.engine.cache_cache_file import (
    connect,
    explained,
    is_marked,
    journal_of,
    prepare,
    unusable,
)
from themis.engine.cache_cache_lock import FileLock

_SUBJECTS = (
    "SELECT fingerprint, kind, last_used, "
    "(SELECT count(*) FROM inputs WHERE subject = subjects.number) + "
    "(SELECT coalesce(sum(decided), 0) FROM batches WHERE subject = subjects.number) "
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
    return CacheContents(path, path.stat().st_size, tuple(CachedSubject(*row) for row in rows))


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
            raise unusable(path, f"is in use by {lock.holder()}", "wait until that has ended")
        path.unlink()
        journal_of(path).unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, f"can't be deleted: {error.strerror}", "check its folder") from error
    finally:
        lock.release()


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise unusable(path, "is not a file", "name the cache itself")
