"""Locks: at most one process writes to a cache; the others can tell which one it is."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


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
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        with suppress(OSError):  # no room for the number: the lock holds all the same
            os.ftruncate(file, 0)
            os.pwrite(file, b"%d\n" % os.getpid(), 0)
        return True

    def release(self) -> None:
        """Give the lock back."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def holder(self) -> str:
        """Who holds the lock, in words."""
        try:
            number = int(self.path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return "another process"
        return "this process itself" if number == os.getpid() else f"process {number}"
