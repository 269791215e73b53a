"""Which files must a command not write? Those that it reads, and one file under two options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError, ThemisError

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
    from themis.engine.cache_cache_file import default_path

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
