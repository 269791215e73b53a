"""The command `themis report`: a saved result in other formats. Nothing is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli_errors import ends_properly

if TYPE_CHECKING:
    from themis.errors import RequestError
    from themis.reports.formats import Format
    from themis.results import Result

STDOUT = Path("-")
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"  # names the file that GitHub shows below a job


@ends_properly
def report(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A saved result.")],
    formats: Annotated[
        list[str],
        typer.Option(
            "--format",
            metavar="html,md",
            help="Some of html, md, junit, sarif, github, csv, parquet, annex.",
        ),
    ] = ["html"],  # noqa: B006 - Typer copies it
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where to write: a folder, or for one format a file; - for stdout.",
        ),
    ] = Path(),
) -> int:
    """Render a saved result in other formats; nothing is run."""
    from themis.cli_run import write
    from themis.reports.formats import parse_formats
    from themis.saved_results import read_result

    chosen = parse_formats(formats)
    files = [each for each in chosen if each.suffix]
    _check(files, output)
    saved = read_result(result)
    if len(files) < len(chosen):
        _tell_github(saved)
    for each in files:
        rendered = each.render(saved)
        if output == STDOUT:
            assert isinstance(rendered, str)
            write(rendered)
        else:
            is_file = len(files) == 1 and output.name.endswith(each.suffix) and not output.is_dir()
            path = output if is_file else output / f"{result.stem}{each.suffix}"
            _save(path, rendered)
            write(f"wrote {path}\n")
    return 0


def _check(files: list[Format], output: Path) -> None:
    """What can't be: several files, or one that is no text, on stdout."""
    if output != STDOUT:
        return
    if any(each.name == "parquet" for each in files):
        raise _mistake("parquet is no text", "name a folder: -o DIR")
    if len(files) > 1:
        raise _mistake("several formats do not fit on stdout", "name a folder: -o DIR")


def _save(path: Path, rendered: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(rendered, bytes):
            path.write_bytes(rendered)
        else:  # CSV brings its own line ends; lone surrogates must not end the command
            data = rendered.encode("utf-8", "backslashreplace")
            path.write_bytes(data)
    except OSError as error:
        problem = f"{str(path)!r} can't be written: {error.strerror}"
        raise _mistake(problem, "choose another place") from None


def _tell_github(result: Result) -> None:
    """Annotations on stdout; the job summary where GitHub wants it, if this is GitHub."""
    from themis.cli_run import write
    from themis.reports.formats import FORMATS

    text = FORMATS["github"].render(result)
    assert isinstance(text, str)
    write(text)
    summary = os.environ.get(SUMMARY_VARIABLE)
    if summary:
        page = FORMATS["md"].render(result)
        assert isinstance(page, str)
        try:
            with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(page)
        except OSError as error:
            problem = f"{summary!r} can't be written: {error.strerror}"
            raise _mistake(problem, f"unset {SUMMARY_VARIABLE}") from None


def _mistake(problem: str, remedy: str) -> RequestError:
    from themis.errors import Mistake, RequestError

    return RequestError([Mistake("output", "--output", problem, remedy)])
