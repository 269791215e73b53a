"""Programs: the executable that a command means, what identifies it, and its line for a shell."""

from __future__ import annotations

import atexit
import errno
import hashlib
import itertools
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from themis.errors import Mistake, RequestError, SubjectError, suggest
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch, CodesBatch, Subject
from themis.subjects.processes import sweep as sweeping
from themis.subjects.secrets import Secrets

VARIABLE = "THEMIS_SUBJECT"  # in the environment of all that subjects start

_TRANSIENT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
_REMEDIES = {
    errno.ENOEXEC: "; give it a first line such as #!/bin/sh, or name its interpreter",
    errno.ENOENT: "; if it is a script, its #! line may name a program that is missing",
    errno.E2BIG: "; the values are too long for arguments, pass them on standard input",
}


class Keeper:
    """Gives out marks; a small process beside this one ends their bearers when this one has ended.

    A run may be killed at any moment, and then it can't clear up. The keeper notices that its input
    was closed, which the system does for every process that ends. No signal handler and no flag of
    this process is needed for that, so that it works in a library as well.
    """

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


@dataclass(frozen=True)
class Program:
    """An executable that exists, under the name it was called by, and the world it runs in."""

    name: str
    path: str
    cwd: Path | None = None
    extra_env: Mapping[str, str] | None = None

    @property
    def _mark(self) -> str:
        """What its processes carry; a forked process has a mark of its own."""
        marks: dict[int, str] = self.__dict__.setdefault("_marks", {})
        if os.getpid() not in marks:  # several threads may be here: the first one's counts
            marks.setdefault(os.getpid(), keeper.new_mark())
        return marks[os.getpid()]

    @property
    def _env(self) -> dict[str, str]:
        inherited = os.environ.get(VARIABLE, "")  # a subject may use Themis itself
        return {**os.environ, **(self.extra_env or {}), VARIABLE: inherited + self._mark}

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def end_descendants(self) -> None:
        """Kill all that was started by its processes and is still there, and those themselves."""
        if "_marks" in self.__dict__:
            sweeping.sweep(self._mark)

    def start(self, arguments: Sequence[bytes], *, feeds: bool) -> subprocess.Popen[bytes]:
        """A child in a group of its own; tries again where the system is short of something.

        A group, not a session: under Linux's autogroups a new session for each child costs 1 ms.
        """
        for attempt in range(attempts := 5):
            try:
                return subprocess.Popen(
                    [os.fsencode(self.name), *arguments],
                    executable=self.path,
                    stdin=subprocess.PIPE if feeds else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=self.cwd,
                    env=self._env,
                    process_group=0,
                    bufsize=0,
                )
            except OSError as error:
                if error.errno not in _TRANSIENT or attempt == attempts - 1:
                    why = f"{error.strerror}{_REMEDIES.get(error.errno or 0, '')}"
                    raise SubjectError(f"{self.path} can't be started: {why}") from error
            time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def shell_line(self, arguments: Iterable[bytes], *, data: bytes = b"") -> str:
        """The same as a line for a shell; the values of extra variables are not shown."""
        words = [shell_quoted(self.name), *map(shell_quoted, arguments)]
        extra = [f'{name}="${name}"' for name in self.extra_env or ()]
        line = " ".join([*extra, *words])
        if data:
            line = f"{shell_feed(data)} | {line}"
        return f"cd {shell_quoted(str(self.cwd))} && {line}" if self.cwd else line

    def fingerprint(self, arguments: Sequence[str], *details: str) -> str:
        """A hash of the command, of the contents of the files that it names, and of the details.

        The extra variables enter with their values, so that a changed setting is a changed subject.
        """
        digest = hashlib.sha256()
        for part in (self.name, *arguments, *details, *_sorted(self.extra_env)):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        folder = self.cwd or Path.cwd()
        for path in (Path(self.path), *(folder / each for each in arguments if "\0" not in each)):
            digest.update(_content_hash(path))
        return digest.hexdigest()[:16]


def find_program(
    command: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None
) -> Program:
    """The program that a command starts, or a RequestError that says why there is none."""
    mistakes = [*_form_mistakes(command, env), *_folder_mistakes(cwd)]
    if mistakes:
        raise RequestError(mistakes)
    search = (env or {}).get("PATH", os.environ.get("PATH", os.defpath))
    name = command[0]
    folder = (cwd or Path.cwd()).absolute()
    path = str(folder / name) if "/" in name else shutil.which(name, path=search)
    problem = _executable_problem(name, path, search)
    if problem or path is None:
        raise RequestError([problem] if problem else [])
    return Program(name, path, cwd, dict(env) if env else None)


class ProgramSubject(Subject):
    """A subject that is a program on this machine."""

    def __init__(
        self,
        schema: Schema,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: Path | None,
        version: str,
    ) -> None:
        self.schema, self.command, self._version = schema, command, version
        self.program = find_program(command, cwd=cwd, env=env)

    @property
    @abstractmethod
    def details(self) -> tuple[str, ...]:
        """What else says how it is asked, and how its answers are read."""

    @abstractmethod
    def run(self, codes: NDArray[Any]) -> Answers:
        """The outputs of these inputs, in order."""

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        details = (self.kind, *self.details, self._version)
        return self.program.fingerprint(self.command[1:], *details)

    def secrets(self) -> Secrets:
        secrets = super().secrets()
        secrets.protect_variables(self.program.extra_env or {})
        return secrets


def check_limits(**limits: float) -> None:
    """Refuse numbers that are not positive."""
    mistakes = [
        Mistake("subject", f"subject.{name}", f"must be positive, got {value!r}", "raise it")
        for name, value in limits.items()
        if not value > 0
    ]
    if mistakes:
        raise RequestError(mistakes)


def _form_mistakes(command: Sequence[str], env: Mapping[str, str] | None) -> Iterator[Mistake]:
    if isinstance(command, str) or not command or not all(isinstance(x, str) for x in command):
        yield mistake_in(
            "command",
            f"command must be a list of strings, got {command!r}",
            'write for example ["python", "loan.py"]',
        )
        return
    if not command[0] or any("\0" in part for part in command):
        yield mistake_in("command", f"{list(command)!r} can't be a command", "name a program")
    for name, value in (env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            yield mistake_in("env", f"{name!r} can't be set", "use names without = and no NUL")


def _folder_mistakes(cwd: Path | None) -> Iterator[Mistake]:
    if cwd is not None and not cwd.is_dir():
        yield mistake_in("cwd", f"there is no folder {cwd}", "create it or name another")


def _executable_problem(name: str, path: str | None, search: str) -> Mistake | None:
    if path is None:
        remedy = _nearest(name, search) or "install it or give its path"
        return mistake_in("command", f"there is no program {name!r} on the PATH", remedy)
    if not Path(path).is_file():
        return mistake_in("command", f"there is no file {path}", "give another path")
    if not os.access(path, os.X_OK):
        return mistake_in("command", f"{path} is not executable", f"chmod +x {shlex.quote(path)}")
    return None


def _nearest(name: str, search: str) -> str:
    """The nearest program on the PATH in words; `python3` is near `python`, whatever else is."""
    folders = [Path(each) for each in search.split(os.pathsep) if each and os.access(each, os.R_OK)]
    names = sorted({path.name for folder in folders for path in folder.glob("*")})
    numbered = [each for each in names if re.fullmatch(re.escape(name) + r"\d?", each)]
    remedy = suggest(name, numbered or names) if names else ""
    return remedy if remedy.startswith("did you mean") else ""


def _sorted(env: Mapping[str, str] | None) -> Iterator[str]:
    for name, value in sorted((env or {}).items()):
        yield f"{name}={value}"


def _content_hash(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:  # no file: an ordinary argument
        return b"-"


def mistake_in(key: str, problem: str, remedy: str) -> Mistake:
    """A mistake in a key of [subject]."""
    return Mistake("subject", f"subject.{key}", problem, remedy)


# Lines for a shell. What does not print, such as a line end within a value, is spelled out in a way
# that the shell undoes: the line can be shown, copied and run, and gives the very bytes.
def shell_quoted(word: bytes | str) -> str:
    """A word of a line; `$'…'`, which bash, zsh and ksh know, where something does not print."""
    text = os.fsdecode(word)
    if text.isprintable():
        return shlex.quote(text)
    inner = _spelled_out(text).replace("'", "\\'")
    return f"$'{inner}'"


def shell_feed(data: bytes) -> str:
    """The command that writes these bytes, for the left side of a pipe."""
    text = os.fsdecode(data)
    *lines, rest = text.split("\n")
    if lines and not rest and all(line.isprintable() for line in lines):
        return " ".join(["printf", r"'%s\n'", *map(shlex.quote, lines)])
    return f"printf %s {shell_quoted(data)}"


def _spelled_out(text: str) -> str:
    """The text with its backslashes doubled, and the bytes of what does not print by number."""
    return "".join(
        each.replace("\\", "\\\\")
        if each.isprintable()
        else "".join(map("\\{:03o}".format, os.fsencode(each)))
        for each in text
    )
