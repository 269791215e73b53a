"""The files of a command: where it may write, what it must not overwrite, and what it reads.

An earlier file of the same kind, known by how it begins, may be replaced.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from themis.cli.printing import naming
from themis.errors import Mistake, RequestError

if TYPE_CHECKING:
    from themis.config.reader import Config
    from themis.show.reports.formats import Format

Files = Mapping[str, Path | None]
RESULT_KEYS = {"themis", "command", "executions", "stopped"}
_PAGE = r'<!doctype html>\s*<html [^>]*><head><meta charset="utf-8"/><meta http-equiv="Content-Sec'
SIGNATURES = {  # of each format of a report
    "html": _PAGE,
    "annex": _PAGE,
    "md": r"## Themis(: [^\n]+)?\n\n\*\*",
    "junit": r'<\?xml [^>]*>\s*<testsuites name="themis"',
    "sarif": r'\{[^{}]*"runs": \[\s*\{\s*"tool": \{\s*"driver": \{\s*"name": "Themis"',
    "github": r"::(error|warning|notice) ",
    "csv": r"measure,against,score,low,high,confidence,error,",
}


def check_targets(writes: Files, reads: Files | None = None) -> None:
    """Refuse to overwrite what a command reads, or writes elsewhere: all mistakes at once.

    `writes` are paths by option, `reads` by what they are, in words. Files of another kind than
    what is written are safe anyway: see `is_no_loss`.
    """
    taken = {f"{what}, which would be lost": path for what, path in (reads or {}).items()}
    mistakes = []
    for option, path in writes.items():
        if path is None:
            continue
        for what, other in taken.items():
            if other is not None and is_same(path, other):
                problem = f"{str(path)!r} is {what}"
                mistakes.append(Mistake("overwrite", option, problem, "name another file"))
                break
        taken[f"also where {option} writes"] = path
    RequestError.refuse(mistakes)


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


def source_of(config: Config | None, command: str) -> dict[str, Any]:
    """What `Result.source` says: `file`, `lines` by characteristic, and the `command`.

    Without a file, as of the demonstration, there are no lines.
    """
    if config is None:
        return {"file": None, "lines": {}, "command": command}
    from themis.config.toml import spell_path

    places = {name: spell_path(("inputs", name)) for name in config.schema.names}
    lines = {name: config.lines[key] for name, key in places.items() if key in config.lines}
    file = {"file": _shown(config.path), "sha256": config.sha256}
    return {**file, "lines": lines, "command": command}


def _shown(path: Path) -> str:
    """The path from here on where it leads further down, else as it was given."""
    resolved, here = path.resolve(), Path.cwd()
    return (resolved.relative_to(here) if resolved.is_relative_to(here) else path).as_posix()


def is_no_loss(path: Path, kind: str) -> bool:
    """Whether a file of this kind, a result or the format of a report, may take this place.

    It may where nothing is there, a device or a pipe, an empty file, or one of the same kind.
    """
    from themis.engine.replacing import text_at_risk

    text = text_at_risk(path)
    if kind == "result" and text.startswith("{"):
        return _is_result(path)
    return not text or re.match(SIGNATURES.get(kind, r"\Z"), text) is not None


def loss(path: Path, what: str) -> tuple[str, str]:
    """The problem and the remedy where another file would be lost."""
    problem = f"{str(path)!r} is there already and is no {what}: it would be lost"
    return problem, "name another file, or remove it"


def _is_result(path: Path) -> bool:
    """A result or a replay, also where others sorted its keys."""
    from themis.inputs.tables import encoding_of

    try:
        data = json.loads(path.read_bytes().decode(encoding_of(path)))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.keys() >= RESULT_KEYS


def check_places(output: Path | None, suite: Path | None) -> None:
    """Find out before the run whether the result can be saved after it, and where its tests go."""
    from themis.engine.suite_files import check_place

    mistakes: list[Mistake] = []
    for place, check in ((output, check_output), (suite, check_place)):
        try:
            with naming({"suite": "--suite"}):
                if place is not None:
                    check(place)
        except RequestError as error:
            mistakes += error.mistakes
    RequestError.refuse(mistakes)


def check_output(output: Path) -> None:
    """Raise RequestError where no result can be saved."""
    if output.is_dir():
        raise output_mistake(f"{str(output)!r} is a folder", "name a file")
    if not output.parent.is_dir():
        raise output_mistake(f"there is no folder {str(output.parent)!r}", "create it first")
    target = output if output.exists() else output.parent
    if not os.access(target, os.W_OK):
        raise output_mistake(f"{str(target)!r} can't be written", "choose another place")
    named = document_of(output)
    if not is_no_loss(output, "result" if named is None else named.name):
        what = "result of Themis" if named is None else f"report of Themis ({named.name})"
        raise output_mistake(*loss(output, what))


def document_of(output: Path) -> Format | None:
    """The format of a report that a file's name asks for; None: the result as JSON."""
    from themis.show.reports.formats import formats_named_by

    return next(iter(formats_named_by(output.name)), None)
