"""Programs: the executable that a command means, what identifies it, and its line for a shell."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError, SubjectError, suggest
from themis.subjects.processes.keeper import VARIABLE, keeper
from themis.subjects.processes.sweep import sweep

START_ATTEMPTS = 5

_TRANSIENT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
_REMEDIES = {
    errno.ENOEXEC: "; give it a first line such as #!/bin/sh, or name its interpreter",
    errno.ENOENT: "; if it is a script, its #! line may name a program that is missing",
    errno.E2BIG: "; the values are too long for arguments, pass them on standard input",
}
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|bash|sh|php|lua|julia|Rscript)[\d.]*")


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
            sweep(self._mark)

    def start(self, arguments: Sequence[bytes], *, feeds: bool) -> subprocess.Popen[bytes]:
        """A child in a group of its own; tries again where the system is short of something.

        A group, not a session: under Linux's autogroups a new session for each child costs 1 ms.
        """
        for attempt in range(START_ATTEMPTS):
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
                if error.errno not in _TRANSIENT or attempt == START_ATTEMPTS - 1:
                    why = f"{error.strerror}{_REMEDIES.get(error.errno or 0, '')}"
                    raise SubjectError(f"{self.path} can't be started: {why}") from error
            time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def shell_line(self, arguments: Iterable[bytes], *, data: bytes = b"") -> str:
        """The same as a line for a shell; the values of extra variables are not shown."""
        words = [shell_quoted(self.name), *map(shell_quoted, arguments)]
        secrets = [f'{name}="${name}"' for name in self.extra_env or ()]
        line = " ".join([*secrets, *words])
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
    problem = _executable_problem(name, path, search) or _script_problem(command, folder)
    if problem or path is None:
        raise RequestError([problem] if problem else [])
    return Program(name, path, cwd, dict(env) if env else None)


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
        remedy = _nearest(name, _on_path(search)) or "install it or give its path"
        return mistake_in("command", f"there is no program {name!r} on the PATH", remedy)
    if not Path(path).exists():
        remedy = _nearest(Path(path).name, _names_in(Path(path).parent)) or "give another path"
        return mistake_in("command", f"there is no file {path}", remedy)
    if not Path(path).is_file():
        return mistake_in("command", f"{path} is not a file", "name a program")
    if not os.access(path, os.X_OK):
        return mistake_in("command", f"{path} is not executable", f"chmod +x {shlex.quote(path)}")
    return None


def _script_problem(command: Sequence[str], folder: Path) -> Mistake | None:
    """The script that an interpreter is to run must be there, too."""
    if len(command) < 2 or not _INTERPRETER.fullmatch(Path(command[0]).name):
        return None
    script = command[1]
    if script.startswith("-") or "{" in script or (folder / script).exists():
        return None
    path = folder / script
    remedy = _nearest(path.name, _names_in(path.parent)) or f"{command[0]} needs a script to run"
    return mistake_in("command", f"there is no file {path}", remedy)


def _nearest(name: str, names: Sequence[str]) -> str:
    """The nearest name in words; `python3` is near `python`, whatever else there is."""
    numbered = [each for each in names if re.fullmatch(re.escape(name) + r"\d?", each)]
    remedy = suggest(name, numbered or names) if names else ""
    return remedy if remedy.startswith("did you mean") else ""


def _on_path(search: str) -> list[str]:
    folders = (Path(each) for each in search.split(os.pathsep) if each)
    return sorted({name for folder in folders for name in _names_in(folder)})


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


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
