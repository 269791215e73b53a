"""Replacing: a file is written beside its place, and takes it when it is whole.

So a full disk, a failure or a kill leaves the file that was there. Whatever the command line writes
for users is written here.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from themis.inputs.tables import PARQUET_START, encoding_of

DEVICES = ("/dev/", "/proc/")  # what is there may lead to files that others have open
_STREAM = re.compile(r"/dev/(?P<name>stdout|stderr)|(/dev|/proc/self)/fd/(?P<number>[0-9]+)")
_STREAMS = {"stdout": 1, "stderr": 2}
UNREADABLE = "\0"  # the beginning of what nobody knows
MOST_FOOTER = 2**24


class Replacement:
    """A file to be written at `place`; `keep` moves it to its path, `drop` leaves what was there.

    Links are followed, and permissions stay. Where nothing can be put beside the path, or what is
    there is no plain file (a terminal, a pipe), `place` is the path. Failures are OSErrors.
    """

    def __init__(self, path: Path) -> None:
        self._target = target = Path(os.path.realpath(path))
        self._before = target.stat() if target.exists() else None
        self._is_beside = not _needs_direct(path, target)
        self.place = path
        if self._is_beside:
            self.place = target.with_name(f"{target.name[:200]}.{os.getpid()}.part")
            self._create()

    @property
    def replaces(self) -> bool:
        """Whether there is an earlier file, which `drop` leaves as it is."""
        return self._is_beside and self._before is not None

    def keep(self) -> None:
        """Put what was written into its place."""
        if not self._is_beside:
            return
        try:
            _make_durable(self.place)
            self.place.replace(self._target)
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Remove what was written, unless that is in its place already."""
        if self._is_beside:
            self.place.unlink(missing_ok=True)

    def _create(self) -> None:
        """An empty file with the permissions of the one that it replaces."""
        os.close(os.open(self.place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
        if self._before is not None:
            with suppress(OSError):  # of another owner: the new one is ours
                os.chown(self.place, self._before.st_uid, self._before.st_gid)
            self.place.chmod(stat.S_IMODE(self._before.st_mode))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file; where that fails, with an OSError, the one that was there stays.

    To a stream of this process it is added: what the stream leads to may hold more than that.
    """
    if stream := _STREAM.fullmatch(str(path)):
        with os.fdopen(os.dup(int(stream["number"] or _STREAMS[stream["name"]])), "wb") as own:
            own.write(data)
        return
    file = Replacement(path)
    try:
        file.place.write_bytes(data)
    except BaseException:
        file.drop()
        raise
    file.keep()


def _needs_direct(path: Path, target: Path) -> bool:
    """Whether a file can't be replaced by another one."""
    if str(path.absolute()).startswith(DEVICES) or str(target).startswith(DEVICES):
        return True
    if target.exists() and not target.is_file():
        return True
    return os.path.ismount(target) or not os.access(target.parent, os.W_OK)


def _make_durable(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def text_at_risk(path: Path) -> str:
    """How the file that would be replaced begins; empty where nothing would be lost.

    That is where there is no plain file, or one with nothing in it.
    """
    if str(path.absolute()).startswith(DEVICES) or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            start = file.read(2**16)
        return start.decode(encoding_of(path), "replace").strip()
    except OSError:
        return UNREADABLE


def parquet_footer(path: Path) -> bytes:
    """What a Parquet file says of its columns, among other things; empty where it is none."""
    try:
        with path.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            size, mark = int.from_bytes(file.read(4), "little"), file.read(4)
            file.seek(-8 - min(size, MOST_FOOTER), os.SEEK_END)
            return file.read(min(size, MOST_FOOTER)) if mark == PARQUET_START else b""
    except OSError:  # too short
        return b""
