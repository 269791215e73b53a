"""The command `themis`: what the user asks for. Heavy modules are imported when they are needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from themis._version import __version__
from themis.cli_errors import INTERRUPTED, ends_properly, say
from themis.cli_options import (
    Against,
    AsJson,
    Confidence,
    ConfigArgument,
    Error,
    MaxExecutions,
    MaxSeconds,
    MeasureChoice,
    NoProgress,
    Output,
    Quiet,
    Seed,
    Stopping,
    StoppingChoice,
    Verbose,
)

if TYPE_CHECKING:
    from themis.audit import Audit
    from themis.events import Listener
    from themis.results import Measure

app = typer.Typer(
    name="themis",
    help="Tests decision software for discrimination: how much, against whom, and how sure.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help starts quicker
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? Run `themis demo`, then `themis init`.",
)


def main() -> None:
    """The entry point."""
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        sys.exit(INTERRUPTED)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"themis {__version__}")
        raise typer.Exit


@app.callback()
def themis(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Tests decision software for discrimination: how much, against whom, and how sure."""


@app.command()
@ends_properly
def init(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = Path("themis.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file.")] = False,
) -> int:
    """Write a commented themis.toml to start from."""
    from themis.starter import SUBJECT_FILE_NAME, starter_subject_text, starter_text

    _check_writable(output, force=force)
    output.write_text(starter_text(), encoding="utf-8")
    print(f"wrote {output}")
    subject = output.parent / SUBJECT_FILE_NAME
    if subject.exists():
        print(f"{subject} is there already: left as it is")
    else:
        subject.write_text(starter_subject_text(), encoding="utf-8")
        print(f"wrote {subject}, the example that it describes")
    plain = output == Path("themis.toml")
    print(f"next: themis validate{'' if plain else f' {output}'}")
    return 0


@app.command()
@ends_properly
def validate(config: ConfigArgument = None, verbose: Verbose = False) -> int:
    """Check the file and say what a score will cost."""
    from themis.audit import Audit
    from themis.cli_plan import make_plan
    from themis.cli_run import hosting_subject, write
    from themis.display import make_console, render
    from themis.display_plan import show_plan

    path = _find(config)
    with hosting_subject():
        audit = Audit.from_file(path)
        plan = make_plan(audit)
    console = make_console(sys.stdout)
    write(render(show_plan(plan, str(path), width=console.width), console))
    if plan.failure is None:
        return 0
    say(f"error: {plan.failure}")
    return 3 if audit.runner.fails_too_often else 0


@app.command()
@ends_properly
def score(
    config: ConfigArgument = None,
    against: Against = None,
    measure: Annotated[
        MeasureChoice, typer.Option("--measure", help="Which scores.")
    ] = MeasureChoice.BOTH,
    confidence: Confidence = None,
    error: Error = None,
    seed: Seed = None,
    stopping: Stopping = None,
    max_executions: MaxExecutions = None,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how much the subject discriminates."""
    from themis import cli_run
    from themis.audit import Audit

    overrides = _given(confidence, error, seed, stopping, max_executions, max_seconds)

    def make_audit(listen: Listener) -> Audit:
        with cli_run.naming_options(overrides):
            return Audit.from_file(_find(config), **overrides, listen=listen)

    return cli_run.measure(
        make_audit,
        lambda schema: cli_run.parse_sets(schema, against or ()),
        _measures(measure),
        cli_run.Reporting(as_json, output, quiet, verbose, not no_progress),
        command="score",
    )


@app.command()
@ends_properly
def demo(
    confidence: Confidence = None,
    error: Error = None,
    seed: Seed = None,
    stopping: Stopping = None,
    max_executions: MaxExecutions = None,
    max_seconds: MaxSeconds = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure a built-in loan program."""
    from themis import cli_run, demo
    from themis.display_demo import render_introduction, render_next_steps

    overrides = _given(confidence, error, seed, stopping, max_executions, max_seconds)

    def make_audit(listen: Listener) -> Audit:
        with cli_run.naming_options(overrides):
            return demo.demo_audit(**overrides, listen=listen)

    talks = not as_json and not quiet
    if talks:
        cli_run.write(render_introduction(sys.stdout))
    code = cli_run.measure(
        make_audit,
        lambda _: demo.SETS,
        _measures(MeasureChoice.BOTH),
        cli_run.Reporting(as_json, output, quiet, verbose, not no_progress),
        command="demo",
    )
    if talks and code == 0:
        cli_run.write(render_next_steps(sys.stdout))
    return code


@app.command()
@ends_properly
def schema() -> int:
    """Print the JSON Schema of themis.toml, for editors."""
    import json

    from themis.config import format_schema

    print(json.dumps(format_schema(), indent=2))
    return 0


def _find(config: Path | None) -> Path:
    from themis.config import find_config

    if config is None:
        return find_config(Path())
    return find_config(config) if config.is_dir() else config


def _given(
    confidence: float | None,
    error: float | None,
    seed: int | None,
    stopping: StoppingChoice | None,
    max_executions: int | None,
    max_seconds: float | None,
) -> dict[str, Any]:
    """The settings that the command line gives, which override those of the file."""
    options = {
        "confidence": confidence,
        "error": error,
        "seed": seed,
        "stopping": None if stopping is None else stopping.value,
        "max_executions": max_executions,
        "max_seconds": max_seconds,
    }
    return {name: value for name, value in options.items() if value is not None}


def _measures(choice: MeasureChoice) -> tuple[Measure, ...]:
    if choice is MeasureChoice.CAUSAL:
        return ("causal",)
    return ("group",) if choice is MeasureChoice.GROUP else ("causal", "group")


def _check_writable(output: Path, *, force: bool) -> None:
    from themis.errors import Mistake, RequestError

    problem, remedy = "", ""
    if output.is_dir():
        problem, remedy = f"{str(output)!r} is a folder", "name a file in it"
    elif output.exists() and not force:
        problem, remedy = f"{str(output)!r} is there already", "--force overwrites it"
    elif not output.parent.is_dir():
        problem, remedy = f"there is no folder {str(output.parent)!r}", "create it first"
    if problem:
        raise RequestError([Mistake("output", "--output", problem, remedy)])
