"""Where does a result come from? The file, the lines of its characteristics, the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

# Options that change how a result is told or how fast it comes, and nothing in it.
_WITHOUT_EFFECT = frozenset(
    {"as_json", "output", "quiet", "verbose", "no_progress", "jobs", "cache", "no_cache", "suite"}
)


def source_of(path: Path | None, context: typer.Context) -> dict[str, Any]:
    """What `Result.source` says: `file`, `lines` by characteristic, and the `command`.

    The command is the shortest one that gives the same result. Without a file, as of the
    demonstration, there are no lines. Never raises: that a file is wrong is said elsewhere.
    """
    return {
        "file": None if path is None else _shown(path),
        "lines": {} if path is None else _lines(path),
        "command": shlex.join(["themis", str(context.info_name), *_words(context)]),
    }


def _shown(path: Path) -> str:
    """The path from here on where it leads further down, else as it was given."""
    resolved, here = path.resolve(), Path.cwd()
    return (resolved.relative_to(here) if resolved.is_relative_to(here) else path).as_posix()


def _lines(path: Path) -> dict[str, int]:
    from themis.config.reader import PROJECT_FILE_NAME
    from themis.config.toml import key_lines

    try:
        lines = key_lines(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    table = ("tool", "themis", "inputs") if path.name == PROJECT_FILE_NAME else ("inputs",)
    return {
        str(place[-1]): line
        for place, line in lines.items()
        if place[:-1] == table and isinstance(place[-1], str)
    }


def _words(context: typer.Context) -> Iterator[str]:
    """The arguments and options that were given and matter, the arguments first."""
    given = [
        each
        for each in context.command.params
        if each.name is not None
        and each.name not in _WITHOUT_EFFECT
        and getattr(context.get_parameter_source(each.name), "name", "") == "COMMANDLINE"
    ]
    for each in sorted(given, key=lambda parameter: parameter.param_type_name != "argument"):
        value = context.params[str(each.name)]
        for one in value if isinstance(value, list | tuple) else [value]:
            if each.param_type_name != "argument":
                yield max(each.opts, key=len)
            if one is not True:
                yield str(one)
