"""The files of a command: those that it must not overwrite, and the one its result comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from themis.cli.earlier import is_no_loss, loss
from themis.errors import Mistake, RequestError

if TYPE_CHECKING:
    from themis.config.reader import Config

Files = Mapping[str, Path | None]


def check_targets(
    writes: Files, reads: Files | None = None, *, config: Config | None = None
) -> None:
    """Refuse to overwrite what the user has: all mistakes at once, before anything is run.

    `writes` are paths by option, `reads` by what they are, in words. What a configuration file
    names is read, too: its profile, the files of its subject, and its cache.
    """
    targets = [(option, path) for option, path in writes.items() if path is not None]
    if not targets:
        return
    sources = [(what, path) for what, path in (reads or {}).items() if path is not None]
    if config is not None:
        sources += _files_of(config)
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


ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write it as a page or Markdown: .html or .md."),
]


def check_report(path: Path | None, reads: Files) -> None:
    """Refuse a report that has no known format, or that would overwrite what is read."""
    if path is not None and path.suffix not in (".html", ".md"):
        problem = f"{str(path)!r} ends neither with .html nor with .md"
        raise RequestError.one("output", "--report", problem, "name a file that does")
    check_targets({"--report": path}, reads)
    if path is not None and not is_no_loss(path, kind := path.suffix[1:]):
        raise RequestError.one("output", "--report", *loss(path, f"report of Themis ({kind})"))


def output_mistake(problem: str, remedy: str) -> RequestError:
    """Why nothing can be written where `--output` says."""
    return RequestError.one("output", "--output", problem, remedy)


def save(
    path: Path,
    content: str | bytes,
    *,
    remedy: str = "choose another place",
    option: str = "--output",
) -> None:
    """Write what a command made; where it can't be written, the file that was there stays."""
    from themis.engine.replacing import write_whole

    if isinstance(content, str):  # lone surrogates must not end the command
        content = content.encode("utf-8", "backslashreplace")
    try:
        sys.stdout.flush()  # it may be where the file is
        write_whole(path, content)
    except OSError as error:
        problem = f"{str(path)!r} can't be written: {error.strerror}"
        raise RequestError.one("output", option, problem, remedy) from None


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, be it there or not yet."""
    try:
        return path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError, ValueError):  # not there, a circle of links, no file name
        return False


def _files_of(config: Config) -> Iterator[tuple[str, Path]]:
    """The file itself, and what it names."""
    from themis.engine.cache import default_path

    yield "the configuration", config.path
    if config.profile is not None:
        yield "the data of [profile]", config.folder / config.profile.data
    for name in _words(config.subject.options):
        yield "a file of the subject", config.folder / name
    yield "the cache", default_path(config.folder)


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


def source_of(config: Config | None, command: str) -> dict[str, Any]:
    """What `Result.source` says: `file`, `lines` by characteristic, and the `command`.

    Without a file, as of the demonstration, there are no lines.
    """
    if config is None:
        return {"file": None, "lines": {}, "command": command}
    from themis.config.toml import spell_path

    places = {name: spell_path(("inputs", name)) for name in config.schema.names}
    lines = {name: config.lines[key] for name, key in places.items() if key in config.lines}
    return {"file": _shown(config.path), "lines": lines, "command": command}


def _shown(path: Path) -> str:
    """The path from here on where it leads further down, else as it was given."""
    resolved, here = path.resolve(), Path.cwd()
    return (resolved.relative_to(here) if resolved.is_relative_to(here) else path).as_posix()
