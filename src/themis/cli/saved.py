"""The commands on what is kept: `themis report`, `diff` and `cache`; nothing is run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli.files import (
    ReportFile,
    check_report,
    check_targets,
    is_no_loss,
    loss,
    output_mistake,
    save,
)
from themis.cli.options import Options, with_options
from themis.cli.printing import ends_properly, print_line, say, write, write_document
from themis.errors import Exit, RequestError
from themis.show.words.values import count, file_size, one_line, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from themis.engine.cache import CacheContents
    from themis.results.model import Result
    from themis.show.reports.formats import Format

STDOUT = "-"
HERE = "."
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"  # names the file that GitHub shows below a job


def report(
    result: Annotated[
        Path | None,
        typer.Argument(
            metavar="RESULT",
            help="A saved result. Default: the latest one in this folder.",
            show_default=False,
        ),
    ] = None,
    formats: Annotated[
        list[str],
        typer.Option(
            "--format",
            metavar="html,md",
            help="Some of html, md, junit, sarif, github, csv, annex.",
            show_default="by the ending of --output, or html",
        ),
    ] = [],  # noqa: B006 - Typer copies it
    output: Annotated[
        str,  # a path would lose its slash at the end
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A file or an existing folder, for several formats a folder; - for stdout.",
        ),
    ] = HERE,
    rows: Annotated[
        bool, typer.Option("--rows", help="Show rows of people, where the result holds some.")
    ] = False,
) -> int:
    """Render a saved result in other formats; nothing is run."""
    from themis.results.saved import read_result

    chosen = _chosen(formats, output)
    if result is None:
        result = _latest()
        say(f"reporting {result}, the latest result in this folder")
    places = _places(chosen, output, result.stem)
    saved = read_result(result)
    _check_places(places, result)
    for each in chosen:
        if each.name == "github":
            _summarise(saved, rows=rows)
        rendered, path = each.render(saved, rows=rows), places[each.name]
        if path is None:
            assert isinstance(rendered, str)
            write_document(rendered)
        else:
            _save(path, rendered)
            print_line(f"wrote {path}")
    return Exit.DONE


def _chosen(formats: list[str], output: str) -> list[Format]:
    """The formats that are asked for, or the one that a file's name asks for, else a page.

    Raises RequestError where both are given and contradict each other.
    """
    from themis.show.reports.formats import formats_named_by, parse_formats

    named = [] if _is_folder(output) else formats_named_by(output)
    chosen = parse_formats(formats) if formats else named[:1] or parse_formats(["html"])
    if named and len(chosen) == 1 and chosen[0] not in named:
        asked = chosen[0]
        problem = f"{output!r} ends as {named[0].name} does, and --format asks for {asked.name}"
        remedy = f"leave out --format, or end it in {asked.suffix or '.txt'}"
        raise output_mistake(problem, remedy)
    return chosen


def _is_folder(output: str) -> bool:
    return Path(output).is_dir() or output.endswith(("/", os.sep))


def _latest() -> Path:
    """The result in this folder that was saved last; raises RequestError where there is none."""
    from themis.inputs.tables import encoding_of

    found = sorted(Path().glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True)
    for each in found:
        with suppress(OSError, ValueError):
            data = json.loads(each.read_bytes().decode(encoding_of(each)))
            if isinstance(data, dict) and "themis" in data and "scores" in data:
                return each
    problem = "no result is named, and none is saved in this folder"
    raise RequestError.one("no-result", "RESULT", problem, "save one: themis score -o result.json")


def _places(chosen: list[Format], output: str, stem: str) -> dict[str, Path | None]:
    """Where each format goes, None for stdout; raises RequestError where that can't be."""
    path = Path(output)
    files = [each for each in chosen if each.suffix]
    if output == STDOUT:
        if len(chosen) > 1:
            raise output_mistake("several formats do not fit on stdout", "name a folder: -o DIR")
        return {each.name: None for each in chosen}
    if len(chosen) == 1 and not _is_folder(output):
        return {chosen[0].name: path}
    if not files and output != HERE:
        problem = f"github is no file of a folder, and {output!r} is one"
        raise output_mistake(problem, "name a file, or leave it out for stdout")
    if path.exists() and not path.is_dir():
        why = "several formats need a folder" if len(chosen) > 1 else "the slash asks for a folder"
        raise output_mistake(f"{output!r} is a file, and {why}", "name another place")
    return {each.name: path / f"{stem}{each.suffix}" if each.suffix else None for each in chosen}


def _check_places(places: Mapping[str, Path | None], result: Path) -> None:
    """Refuse to overwrite the result, or what is no report of this format."""
    for name, place in places.items():
        check_targets({"--output": place}, {"the result that is reported": result})
        if place is not None and not is_no_loss(place, name):
            raise output_mistake(*loss(place, f"report of Themis ({name})"))


def _save(path: Path, rendered: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        problem = f"{str(path.parent)!r} can't be made a folder: a file is in the way"
        raise output_mistake(problem, "choose another place") from None
    except OSError as error:
        problem = f"{str(path.parent)!r} can't be created: {error.strerror}"
        raise output_mistake(problem, "choose another place") from None
    save(path, rendered)


def _summarise(result: Result, *, rows: bool) -> None:
    """Add the job summary where GitHub wants it, if this is GitHub."""
    from themis.show.reports.formats import FORMATS

    summary = os.environ.get(SUMMARY_VARIABLE)
    if summary:
        page = FORMATS["md"].render(result, rows=rows)
        try:
            with Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(page)
        except OSError as error:
            problem = f"{summary!r} can't be written: {error.strerror}"
            raise output_mistake(problem, f"unset {SUMMARY_VARIABLE}") from None


@with_options("as_json", "quiet", "verbose", helps={"quiet": "One sentence."})
def diff(
    options: Options,
    *,
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="An earlier saved result.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="A later saved result.")],
    tolerance: Annotated[
        float,
        typer.Option(metavar="0.01", min=0, max=1, help="Rises of at most this do not count."),
    ] = 0.0,
    report: ReportFile = None,
) -> int:
    """Show what changed significantly between two saved results."""
    from themis.results.comparison import compare
    from themis.results.saved import read_result
    from themis.results.withheld import withheld
    from themis.show.parts.comparisons import differences_headline
    from themis.show.reports.page import render_comparison, topic_of
    from themis.show.terminal.results import render_differences

    options.check()
    check_report(report, {"a result that is compared": before, "the later result": after})
    results = read_result(before), read_result(after)
    found = compare(*results, tolerance=tolerance)
    shown = withheld(found)
    if report is not None:
        save(report, render_comparison(found, report, topic_of(*results)), option="--report")
    if options.as_json:
        write(f"{json.dumps(shown.to_dict(), indent=2)}\n")
    elif options.quiet:
        print_line(differences_headline(shown))
    else:
        write(render_differences(shown, file=sys.stdout, everything=options.verbose))
    if found.verdict == "inconclusive":
        return Exit.INCONCLUSIVE
    return Exit.DISCRIMINATES if found.verdict == "new discrimination" else Exit.DONE


CONFIG_NAMES = (".toml",)

cache_app = typer.Typer(
    name="cache",
    help="What is kept of earlier runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Place = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG|FILE",
        help="A configuration file, or a cache itself.",
        show_default=False,
    ),
]


def info(place: Place = None) -> int:
    """Show where the cache is, how large, and what it holds."""
    from themis.engine.cache import read_contents
    from themis.show.terminal.parts import make_console, render

    console = make_console(sys.stdout)
    write(render(_show_contents(read_contents(_cache_of(place))), console))
    return Exit.DONE


def _show_contents(contents: CacheContents) -> Iterator[RenderableType]:
    """The parts of what a cache holds from top to bottom."""
    from themis.show.terminal.parts import Sentence, grid, indented, short

    subjects = count(len(contents.subjects), "subject") if contents.subjects else "empty"
    place, size = visible(str(contents.path)), file_size(contents.bytes)
    yield Sentence(f"{place}: {size}, {subjects}")
    if not contents.subjects:
        return
    heads = ("kind", "fingerprint", "decisions", "last used")
    table = grid({}, {}, {"justify": "right"}, {}, heads=heads)
    for each in contents.subjects:
        table.add_row(
            short(visible(each.kind)),
            short(visible(each.fingerprint)),
            short(f"{each.decisions:,}"),
            short(visible(each.last_used.replace("T", " ").removesuffix("+00:00") + " UTC")),
        )
    yield indented(table)


def clear(
    place: Place = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete the cache."""
    from themis.engine import cache as cache_contents

    path = _cache_of(place)
    if not path.exists():
        print_line(f"there is no cache {one_line(str(path))}")
        return Exit.DONE
    if not yes:
        if not sys.stdin.isatty():
            problem = f"{path} would be deleted"
            raise RequestError.one("confirm", "cache clear", problem, "--yes does it")
        typer.confirm(f"Delete {one_line(str(path))}?", abort=True)
    cache_contents.clear(path)
    print_line(f"deleted {one_line(str(path))}")
    return Exit.DONE


def _cache_of(place: Path | None) -> Path:
    """The cache that is meant: a file itself, or that of a configuration file."""
    from themis.config.reader import find_config
    from themis.engine.cache import default_path

    place = place or Path()
    if place.is_dir():
        place = find_config(place)
    return default_path(place.parent) if place.suffix in CONFIG_NAMES else place


for command in (info, clear):
    cache_app.command()(ends_properly(command))
