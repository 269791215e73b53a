"""The process of a command of `themis`: how it is started, and ended when its server is gone.

The server holds the other end of stdin. When that closes, however the server ended, the command is
interrupted as by Ctrl-C: it keeps and saves what it learned. Nothing in the project's folder may
stand in for a module of Python or of Themis, so that it is not on the path of modules. What a
subject prints may be of people: mistakes come by a file instead.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from themis.config.told import CONFIRMED, MISTAKES

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


def main() -> None:
    """Run the command line; the first argument is a folder in which no rows of people may stay."""
    folder = sys.argv.pop(1)
    threading.Thread(target=_end_with_server, daemon=True).start()
    try:
        runpy.run_module("themis", run_name="__main__", alter_sys=True)
    finally:
        if folder:
            from themis.web.history import withhold

            withhold(Path(folder))


if __name__ == "__main__":
    main()
