"""A real server of the page for tests: a process of `themis ui`, and clients that ask it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.external import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"
TOKEN = re.compile(r'name="form-token" content="([^"]*)"')

MARK = re.compile(r'name="mark" value="([^"]*)"')


@dataclass
class Server:
    """A running server, and a client that came in by its address."""

    process: subprocess.Popen[str]
    folder: Path  # of the project
    entry: str  # the address that it printed
    client: httpx.Client

    @property
    def base(self) -> str:
        """Where it listens: `http://127.0.0.1:4711`."""
        return self.entry.partition("/?")[0]

    @property
    def port(self) -> int:
        """The number within its address."""
        return int(self.base.rpartition(":")[2])

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Ask for a page."""
        return self.client.get(path, **options)

    def form_token(self) -> str:
        """What a form of this server holds."""
        found = TOKEN.search(self.get("/").text)
        assert found is not None
        return found[1]

    def mark(self) -> str:
        """What the page asks to be confirmed; nothing once it is."""
        found = MARK.search(self.get("/run").text)
        return found[1] if found else ""

    def post(self, path: str, fields: dict[str, Any] | None = None) -> httpx.Response:
        """Send a form, as a page of this server does."""
        if path == "/confirm" and fields is None:
            fields = {"mark": self.mark()}
        data = {"token": self.form_token(), **(fields or {})}
        return self.client.post(path, data=data, headers={"Origin": self.base})

    def open_result(self, result: Any) -> str:
        """The address of a result that is opened from its file."""
        headers = {"X-Themis-Token": self.form_token(), "Origin": self.base}
        answer = self.client.post("/results", content=json.dumps(result), headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self.client.close()
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


def example(folder: Path, name: str = "loan") -> Path:
    """A copy of an example."""
    return shutil.copytree(EXAMPLES / name, folder / name)


@contextmanager
def serving(place: Path, *options: str) -> Iterator[Server]:
    """A server for a folder or a file, which is ended at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "themis", "ui", "--no-open", *options, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http\S+", line)
    if found is None:
        raise AssertionError(line + process.communicate(timeout=PATIENCE)[0])
    base = found[0].partition("/?")[0]
    client = httpx.Client(base_url=base, timeout=PATIENCE, trust_env=False)
    server = Server(process, place if place.is_dir() else place.parent, found[0], client)
    try:
        client.get(server.entry)  # the cookie
        yield server
    finally:
        if process.poll() is None:
            server.end()
        client.close()
        process.communicate()


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """What a condition gives as soon as it holds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)
    return found
