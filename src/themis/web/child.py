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


def _end_with_server() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run the command line."""
    threading.Thread(target=_end_with_server, daemon=True).start()
    runpy.run_module("themis", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
