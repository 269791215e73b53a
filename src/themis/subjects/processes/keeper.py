"""The keeper: a small process beside this one that ends what subjects left running.

A run may be killed at any moment, and then it can't clear up. The keeper notices that its input was
closed, which the system does for every process that ends. No signal handler and no flag of this
process is needed for that, so that it works in a library as well.
"""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import subprocess
import sys
import threading
from contextlib import suppress

from themis.subjects.processes import sweep as sweeping

VARIABLE = "THEMIS_SUBJECT"  # in the environment of all that subjects start


class Keeper:
    """Gives out marks, and ends their bearers when this process has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""
        self._numbers = itertools.count(1)
        os.register_at_fork(after_in_child=self._leave)

    def new_mark(self) -> str:
        """A mark that nobody else has; from now on there is a keeper."""
        with self._lock:
            if self._process is None:
                self._start()
            return f"<{self._token}.{next(self._numbers)}>"

    def end(self) -> None:
        """Let the keeper sweep and end; the next mark is another keeper's."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)

    def _start(self) -> None:
        self._token = secrets.token_hex(8)
        command = [sys.executable, "-I", "-S", sweeping.__file__, f"<{self._token}."]
        with suppress(OSError):  # without it, runs that end by themselves still clear up
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,  # what ends this process's group must not end the keeper
            )

    def _leave(self) -> None:
        """In a forked process: the keeper is the parent's, and must see the parent's end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # it is no child of this process, and not to be waited for
        self._lock = threading.Lock()
        self._process = None


keeper = Keeper()


@atexit.register
def _end() -> None:
    with suppress(KeyboardInterrupt):  # a second one: the keeper sees the end of this process
        keeper.end()
