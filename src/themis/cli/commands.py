"""The command `themis`: the app and its commands; heavy modules are imported when needed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from themis._version import __version__
from themis.cli.audit import audit, check, replay
from themis.cli.measure import Against, MaxSize, Measured, apparent, measures_of, score, search
from themis.cli.options import SETTINGS, TALK, TRUST, Options, split_names, with_options
from themis.cli.printing import (
    end_undisturbed,
    ends_properly,
    open_streams,
    print_line,
    run_printing,
    spell_program,
    write,
)
from themis.cli.saved import cache_app, diff, report
from themis.errors import Exit, RequestError, suggest

if TYPE_CHECKING:
    from themis.show.words.notes import Code


app = typer.Typer(
    name="themis",
    help="Tests decision software for discrimination: how much, against whom, how reliably.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help starts quicker
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? Run `themis demo`, then `themis init`.",
)


def main() -> None:
    """The entry point."""
    open_streams()
    try:
        run_printing(app)
    finally:
        end_undisturbed()


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"themis {__version__}")
        raise typer.Exit


@app.callback()
def themis(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Tests decision software for discrimination: how much, against whom, how reliably."""


def init(
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Rows (CSV, JSON lines, Parquet), a JSON Schema, an OpenAPI description, or "
            "settings of Themis 1.0 or 2.0 (XML).",
        ),
    ] = None,
    protected: Annotated[
        list[str] | None, typer.Option(metavar="race,sex", help="Columns to mark as protected.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with what was decided.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The trained model that reads these rows.")
    ] = None,
    module: Annotated[
        str | None,
        typer.Option(
            "--object", metavar="MODULE:CLASS", help="The PyTorch module of a file with weights."
        ),
    ] = None,
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help=TRUST)] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = Path("themis.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file.")] = False,
) -> int:
    """Write a commented themis.toml to start from."""
    from themis.cli.init import write_file

    write_file(
        source,
        output,
        protected=split_names(protected),
        target=target,
        force=force,
        model=model,
        module=module,
        trust_pickle=trust_pickle,
    )
    plain = output == Path("themis.toml")
    write(f"next: {spell_program()} validate{'' if plain else f' {output}'}\n")  # to be copied
    return Exit.DONE


@with_options(
    *("config", *SETTINGS, "exact", "jobs", "trust_pickle", "show_rows", "verbose", "as_json")
)
def validate(
    options: Options,
    command: Annotated[
        Literal["score", "search", "audit", "check"] | None,
        typer.Option("--for", help="Cost of this command. Default: score, check."),
    ] = None,
    against: Against = None,
    threshold: Annotated[
        float, typer.Option(metavar="0.05", help="Of the search, with --for search or audit.")
    ] = 0.05,
    max_size: MaxSize = None,
    measure: Measured = "both",
    pilot: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=8,
            help="Run at most N inputs, and keep the decisions. Default: 100 for language models.",
        ),
    ] = None,
) -> int:
    """Check the file and the subject; show what scores cost."""
    from themis.audit.plan import Wish
    from themis.cli.validate import try_out

    measures = measures_of(measure, command)
    wish = Wish(
        command=command, threshold=threshold, max_size=max_size, measures=measures, pilot=pilot
    )
    return try_out(options, wish, against or ())


@with_options(*SETTINGS, *TALK)
def demo(options: Options) -> int:
    """Measure a built-in loan program."""
    from themis.cli.demo import run_demo

    return run_demo(options)


@with_options("config", "trust_pickle")
def answer(options: Options) -> int:
    """Answer what-if questions of the page: lines of JSON."""
    from themis.cli.validate import answer_lines

    return answer_lines(options)


def schema(
    of_result: Annotated[
        bool, typer.Option("--result", help="Of a saved result instead of the file.")
    ] = False,
) -> int:
    """Print the JSON Schema of themis.toml, or of a saved result."""
    from themis.config.format import format_schema
    from themis.results.saved import result_schema

    write(f"{json.dumps(result_schema() if of_result else format_schema(), indent=2)}\n")
    return Exit.DONE


def _names() -> list[str]:
    from themis.show.words.notes import known_codes

    return [*dict.fromkeys(each.code for each in known_codes())]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE", help="As in error[CODE], or in JSON.", autocompletion=_names
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Explain the code of a mistake or note; without one, list all."""
    from themis.show.words.notes import known_codes

    found = [each for each in known_codes() if code in (None, each.code)]
    if not found:
        problem = f"there is no code {code!r}"
        raise RequestError.one("unknown-code", "CODE", problem, suggest(str(code), _names()))
    if as_json:
        write(f"{json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False)}\n")
    elif code is None:
        write("\n".join(_listed(found)) + "\n")
    else:
        for line in (line for each in found for line in _lines(each)):
            print_line(line)
    return Exit.DONE


def _lines(each: Code) -> Iterator[str]:
    yield f"{each.code} ({each.group.lower()})"
    yield each.means
    if each.helps:
        yield f"What helps: {each.helps}"
    if each.values:
        yield f"In JSON: {', '.join(each.values)}"
    yield f"More: docs/{each.page}"


def _listed(codes: Iterable[Code]) -> Iterator[str]:
    """A line for each code; on a terminal it is cut where that ends."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for group, own in groupby(codes, lambda each: each.group):
        yield f"{group}:"
        for each in own:
            line = f"  {each.code:24} {each.means.partition('. ')[0].removesuffix('.')}"
            yield line if len(line) <= width else f"{line[: width - 1]}…"


def ui(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The themis.toml, or its folder; need not be there yet.",
            show_default=False,
        ),
    ] = Path(),
    port: Annotated[int, typer.Option(help="Where it listens; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show results; run and change nothing.")
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Show rows of people.")] = False,
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle", help=TRUST)] = False,
) -> int:
    """Open the page: describe, measure, try and read in a browser."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        problem = "the page needs starlette and uvicorn, which are not installed"
        remedy = "pip install 'themis-fairness[web]'"
        raise RequestError.one("missing-extra", "themis ui", problem, remedy)
    from themis.web.serving import serve

    serve(
        config,
        print_line,
        port=port,
        opens=not no_open,
        read_only=read_only,
        rows=rows,
        trust_pickle=trust_pickle,
    )
    return Exit.DONE


COMMANDS = (
    *(init, validate, audit, score, search, apparent, check),
    *(replay, diff, report, ui, demo, explain, schema),
)
for command in COMMANDS:
    app.command()(ends_properly(command))
app.command(hidden=True)(ends_properly(answer))
app.add_typer(cache_app)
