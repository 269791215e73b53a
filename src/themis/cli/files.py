"""Which files must a command not write? Those that it reads, and one file under two options.

Where does a result come from? The file, the lines of its characteristics, the command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from themis.errors import Mistake, RequestError, ThemisError

if TYPE_CHECKING:
    import typer

Files = Mapping[str, Path | None]


def check_targets(writes: Files, reads: Files | None = None, *, config: Path | None = None) -> None:
    """Refuse to overwrite what the user has: all mistakes at once, before anything is run.

    `writes` are paths by option, `reads` by what they are, in words. What a configuration file
    names is read, too: its profile, the files of its subject, and its cache.
    """
    targets = [(option, path) for option, path in writes.items() if path is not None]
    if not targets:
        return
    sources = [(what, path) for what, path in (reads or {}).items() if path is not None]
    if config is not None:
        sources += [("the configuration", config), *_files_of(config)]
    mistakes = [
        Mistake(
            "overwrite",
            option,
            f"{str(path)!r} is {what}, which would be lost",
            "name another file",
        )
        for option, path in targets
        for what in [next((what for what, other in sources if is_same(path, other)), None)]
        if what is not None
    ]
    for place, (option, path) in enumerate(targets):
        for other, another in targets[:place]:
            if is_same(path, another):
                problem = f"{str(path)!r} is also where {other} writes"
                mistakes.append(Mistake("overwrite", option, problem, "name two files"))
    if mistakes:
        raise RequestError(mistakes)


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, be it there or not yet."""
    try:
        return path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError, ValueError):  # not there, a circle of links, no file name
        return False


def _files_of(config: Path) -> Iterator[tuple[str, Path]]:
    """What a configuration file names; nothing where it is wrong, which is said elsewhere."""
    from themis.config.reader import read_config
    from themis.engine.cache import default_path

    try:
        found = read_config(config)
    except ThemisError:
        return
    if found.profile is not None:
        yield "the data of [profile]", found.folder / found.profile.data
    for name in _words(found.subject.options):
        yield "a file of the subject", found.folder / name
    yield "the cache", default_path(found.folder)


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """The names in [subject] that may be those of files."""
    for key in ("function", "object"):
        if isinstance(reference := options.get(key), str):
            yield reference.partition(":")[0].replace(".", "/") + ".py"
    if isinstance(options.get("file"), str):
        yield options["file"]
    for word in options.get("command", ()):
        if "\0" not in word:
            yield word


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
        "command": shlex.join(["themis", str(context.info_name), *_given_words(context)]),
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


def _given_words(context: typer.Context) -> Iterator[str]:
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
