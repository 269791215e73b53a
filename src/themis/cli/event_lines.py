"""What happens during a run, as lines of JSON for programs that watch it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from themis.errors import RequestError
from themis.events import Activity, Began, Event

SECONDS = 0.25  # between two lines about what a run is at
SELDOM = 0.1  # between two lines of one kind: a vectorised subject tells of thousands a second


class EventLines:
    """Writes each event into a file as it happens; without a file, nothing.

    A line is `{"event": "Progress", "seconds": 1.2, "line": "…", …}`, with the fields of the event
    and what a terminal shows meanwhile. Between
    events there is a line with what the run is at. Of those that come quickly the last is written.
    """

    def __init__(self, place: Path | None) -> None:
        self._file = None if place is None else _opened(place)
        self.shown: Callable[[], str] = str  # on a terminal
        self._began, self._lock = time.monotonic(), threading.Lock()
        self._written: dict[str, float] = {}  # when, by kind
        self._late: Event | None = None  # not yet written
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def listen(self, event: Event) -> None:
        """Write an event, unless one of its kind was just written."""
        if self._file is None:
            return
        if isinstance(event, Began):
            self._thread = threading.Thread(target=self._look, args=[event], daemon=True)
            self._thread.start()
            return
        kind, now = type(event).__name__, time.monotonic()
        if now - self._written.get(kind, -1.0) < SELDOM:
            self._late = event
            return
        self._written[kind] = now
        self._write(event)

    def _look(self, began: Began) -> None:
        while not self._over.wait(SECONDS):
            late, self._late = self._late, None
            if late is not None:
                self._write(late)
            self._write(began.look())

    def _write(self, event: Event | Activity) -> None:
        assert self._file is not None
        seconds = round(time.monotonic() - self._began, 3)
        about = {"event": type(event).__name__, "seconds": seconds, "line": self.shown()}
        with self._lock, suppress(OSError):  # a full disk does not end the run
            if not self._file.closed:
                self._file.write(f"{json.dumps({**about, **asdict(event)})}\n")
                self._file.flush()

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._file is not None:
            if self._late is not None:
                self._write(self._late)
            with suppress(OSError):
                self._file.close()


def _opened(place: Path) -> TextIO:
    try:
        return place.open("w", encoding="utf-8")
    except OSError as error:
        problem = f"{str(place)!r} can't be written: {error.strerror}"
        raise RequestError.one("output", "--events", problem, "choose another place") from None
