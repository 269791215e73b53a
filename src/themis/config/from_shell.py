"""Conversion of a line for a shell to a command that needs none: folder, variables and words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

_QUOTED = r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\""
_WORD = rf"(?:{_QUOTED}|[^\s'\"\\;&|])+"
_FOLDER = re.compile(rf"\s*cd\s+({_WORD})\s*(?:&&|;)(?!\s*$)")
_VARIABLE = re.compile(rf"\s*([A-Za-z_]\w*)=((?:{_QUOTED}|[^\s'\"\\;&|])*)(?=\s)")
_SIGN = re.compile(r"&&|\|\||[|;&<>$`*?()\n]|(?<!\S)[~#]")
_LONE_FOLDER = re.compile(r"cd(?!\S)")
_REMEDY = 'write the line into a script, with "$@" for the values, and name that: sh run.sh'


@dataclass(frozen=True)
class ShellLine:
    """What a line for a shell runs; `problem` and `remedy` where that takes a shell."""

    command: list[str] = field(default_factory=list)
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    remedy: str = ""

    def options(self) -> Iterator[tuple[str, Any]]:
        """The keys of [subject] that say the same; braces of the line are not places of values."""
        yield "command", [part.replace("{", "{{").replace("}", "}}") for part in self.command]
        if self.cwd:
            yield "cwd", self.cwd
        if self.env:
            yield "env", self.env


def read_shell_line(text: str) -> ShellLine:
    """The command of a line: `cd x && A=1 python y` has a folder, a variable and two words."""
    try:
        return _read(text)
    except ValueError as error:
        problem = f"{text!r} can't be split into words: {str(error).lower()}"
        return ShellLine(problem=problem, remedy="close the quotes, or remove the last backslash")


def _read(text: str) -> ShellLine:
    shlex.split(text)  # raises where a quote is open
    rest, folder, env = text, PurePosixPath(), {}
    while (found := _FOLDER.match(rest)) and not _needs_shell(found[1]):
        folder /= shlex.split(found[1])[0]
        rest = rest[found.end() :]
    while (found := _VARIABLE.match(rest)) and not _needs_shell(found[2]):
        env[found[1]] = "".join(shlex.split(found[2]))
        rest = rest[found.end() :]
    if sign := _needs_shell(rest):
        problem = f"{text!r} needs a shell for {sign!r}, and no shell is started"
        return ShellLine(problem=problem, remedy=_REMEDY)
    cwd = "" if folder == PurePosixPath() else str(folder)
    return ShellLine(shlex.split(rest), cwd, env)


def _needs_shell(text: str) -> str:
    """The first sign outside of quotes that a shell would act on; empty without any."""
    active = re.sub(_QUOTED, _still_active, text.strip())
    found = _SIGN.search(active) or _LONE_FOLDER.match(active)
    return found[0] if found else ""


def _still_active(quoted: re.Match[str]) -> str:
    """Of a part in quotes what a shell acts on all the same: $ and ` within double quotes."""
    if not quoted[0].startswith('"'):
        return "x"
    return "x" + "".join(re.findall(r"[$`]", re.sub(r"\\.", "", quoted[0])))
