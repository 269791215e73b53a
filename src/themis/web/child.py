"""The process of a run: a command of `themis` that is ended when its server is gone.

The server holds the other end of stdin. When that closes, however the server ended, the command is
interrupted as by Ctrl-C: it keeps and saves what it learned.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

PATIENCE = 60.0  # seconds after which a command that is to end is killed


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
