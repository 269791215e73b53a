"""The process that answers what-ifs: one for the file as it is, started anew where that changed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from themis.config.told import CONFIRMED
from themis.errors import RequestError

LOADING, ANSWERING = 120.0, 60.0  # seconds that these may take
PATIENCE = 3.0  # seconds that ending may take
LONGEST_SAID = 2_000  # bytes of what a process printed before it ended
WHERE = "what if"  # is asked


@dataclass
class _Process:
    """One process, and what it rests on."""

    mark: str  # of the file of Themis
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    files: Mapping[str, int] = field(default_factory=dict)
    rest: bytes = b""

    @property
    def is_current(self) -> bool:
        """Whether it lives, and nothing that it was made of has changed."""
        return self.process.poll() is None and all(
            _time_of(name) == then for name, then in self.files.items()
        )


class Warm:
    """Asks one question at a time; begins, ends and begins again the process that answers."""

    def __init__(self, *, trust_pickle: bool = False) -> None:
        self._options = ["--trust-pickle"] if trust_pickle else []
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def ask(self, file: Path, mark: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the subject that the file, of this mark, describes."""
        with self._lock:
            known = self._process
            if known is None or known.mark != mark or not known.is_current:
                self._end()
                known = self._begin(file, mark)
            assert known.process.stdin is not None
            with suppress(BrokenPipeError):
                known.process.stdin.write(f"{json.dumps(question)}\n".encode())
                known.process.stdin.flush()
            return self._answer(known, ANSWERING)

    def close(self) -> None:
        """End the process, and whatever it is at."""
        if (known := self._process) is not None:
            known.process.send_signal(signal.SIGINT)
        with self._lock:
            self._end()

    def _begin(self, file: Path, mark: str) -> _Process:
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "themis", "answer", str(file), *self._options],
            cwd=file.parent,
            env={**os.environ, CONFIRMED: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        self._process = _Process(mark, process, said)
        self._answer(self._process, LOADING)
        return self._process

    def _answer(self, known: _Process, seconds: float) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._line(known, time.monotonic() + seconds))
        known.files = answer.get("files", {})
        return answer

    def _line(self, known: _Process, until: float) -> bytes:
        assert known.process.stdout is not None
        number = known.process.stdout.fileno()
        while b"\n" not in known.rest:
            if not select.select([number], [], [], max(until - time.monotonic(), 0))[0]:
                self._end(patience=0.0)
                problem = "the subject gave no answer in time, and was ended"
                remedy = "try again; with a slow subject measure a few inputs: themis validate"
                raise RequestError.one("no-answer", WHERE, problem, remedy)
            if not (read := os.read(number, 1 << 16)):
                raise self._ended(known)
            known.rest += read
        line, _, known.rest = known.rest.partition(b"\n")
        return line

    def _ended(self, known: _Process) -> RequestError:
        known.said.seek(max(os.fstat(known.said.fileno()).st_size - LONGEST_SAID, 0))
        said = known.said.read().decode("utf-8", "replace").strip()
        self._end()
        problem = f"the subject ended with {known.process.returncode} instead of answering"
        return RequestError.one("no-answer", WHERE, problem, f"it said: {said}" if said else "")

    def _end(self, patience: float = PATIENCE) -> None:
        """End the process: it ends what the subject keeps alive once its stdin is closed."""
        known, self._process = self._process, None
        if known is None:
            return
        try:
            known.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(known.process.pid, signal.SIGKILL)
            known.process.communicate()
        known.said.close()


def _time_of(name: str) -> int | None:
    try:
        return Path(name).stat().st_mtime_ns
    except OSError:
        return None
