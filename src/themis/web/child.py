"""Processes of `themis` that the server starts: how they begin, what they tell, how they end.

The server holds the other end of stdin. When that closes, however the server ended, the command is
interrupted as by Ctrl-C: it keeps and saves what it learned. Nothing in the project's folder may
stand in for a module of Python or of Themis, so that it is not on the path of modules. What a
subject prints may be of people: mistakes come by a file instead.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from themis.config.told import CONFIRMED, MISTAKES
from themis.errors import RequestError, ThemisError

if TYPE_CHECKING:
    from themis.results.model import Result

RESULT = "result.json"
KEPT = "*.html", "*.md", "*.csv"  # what an audit writes beside its result
PATIENCE = 60.0  # seconds after which a command that is to end is killed


def command_line(kept: str, *command: str) -> list[str]:
    """A command that ends with this process; rows of people do not stay in the folder `kept`."""
    return [sys.executable, "-P", "-m", "themis.web.child", kept, *command]


class Told:
    """The file in which a command writes its mistakes; it runs only a file of this mark."""

    def __init__(self, mark: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="themis-")
        self._place = Path(self._folder.name, "mistakes")
        self.environment = {**os.environ, MISTAKES: str(self._place), CONFIRMED: mark}

    @property
    def mistakes(self) -> list[str]:
        """What was wrong."""
        try:
            return [json.loads(each) for each in self._place.read_text("utf-8").splitlines()]
        except (OSError, ValueError):
            return []

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _end_with_server() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


def withhold(folder: Path) -> None:
    """Leave of a saved result what documents may show; other documents of a longer one go."""
    from themis.engine.replacing import write_whole
    from themis.results.saved import read_result

    for place in folder.rglob(RESULT):
        try:
            text = text_of(read_result(place), RESULT, rows=False)
        except RequestError:
            place.unlink()
            raise
        if json.loads(text) != json.loads(place.read_bytes()):
            write_whole(place, text)
            for each in (each for pattern in KEPT for each in place.parent.glob(pattern)):
                each.unlink()


def text_of(result: Result, title: str, *, rows: bool) -> bytes:
    """A result as it is kept: as documents may show it, unless rows may be.

    Raises RequestError where too little of it is left to be read again.
    """
    from themis.results.saved import result_from_dict
    from themis.results.withheld import without_rows

    if not rows and result.report is not None:  # whatever its file says
        result = replace(result, report=replace(result.report, rows=False))
    text = json.dumps((result if rows else without_rows(result)).to_dict(), indent=2)
    try:
        result_from_dict(json.loads(text))
    except ThemisError:
        problem = "it tells of few people, which may not be kept"
        raise RequestError.one("rows", title, problem, "start the page with --rows") from None
    return text.encode()


def main() -> None:
    """Run the command line; the first argument is a folder in which no rows of people may stay."""
    folder = sys.argv.pop(1)
    threading.Thread(target=_end_with_server, daemon=True).start()
    try:
        runpy.run_module("themis", run_name="__main__", alter_sys=True)
    finally:
        if folder:
            withhold(Path(folder))


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
            return self._answer(known, seconds=60.0)

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
        self._answer(self._process, seconds=120.0)
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
        size = os.fstat(known.said.fileno()).st_size
        known.said.seek(max(size - 2_000, 0))  # the last that it printed
        said = known.said.read().decode("utf-8", "replace").strip()
        self._end()
        problem = f"the subject ended with {known.process.returncode} instead of answering"
        return RequestError.one("no-answer", WHERE, problem, f"it said: {said}" if said else "")

    def _end(self, patience: float = 3.0) -> None:
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


if __name__ == "__main__":
    main()
