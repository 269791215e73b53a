"""The command `themis`: what the user asks for. Heavy modules are imported when they are needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from themis._version import __version__
from themis.cli.check import check, replay
from themis.cli.endings import INTERRUPTED, ends_properly, print_line, run_printing, say
from themis.cli.measure import apparent, search
from themis.cli.options import (
    Against,
    AsJson,
    CacheFile,
    Confidence,
    ConfigArgument,
    Error,
    Jobs,
    MaxExecutions,
    MaxSeconds,
    MeasureChoice,
    NoCache,
    NoProgress,
    Output,
    Probe,
    Quiet,
    Repeats,
    Seed,
    Stopping,
    SuitePath,
    TrustPickle,
    Verbose,
    chosen_cache,
    find,
    given_settings,
    measures_of,
    split_names,
)
from themis.cli.saved import cache_app, diff, report

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.events import Listener, SearchListener
    from themis.results.model import Result

app = typer.Typer(
    name="themis",
    help="Tests decision software for discrimination: how much, against whom, and how sure.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help starts quicker
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="New here? Run `themis demo`, then `themis init`.",
)
app.add_typer(cache_app)


def main() -> None:
    """The entry point."""
    try:
        run_printing(app)
    except KeyboardInterrupt:  # before a command began
        sys.exit(INTERRUPTED)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_line(f"themis {__version__}")
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
    source: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="FILE",
            help="Rows of data (CSV, JSON lines, Parquet), a JSON Schema or OpenAPI description, "
            "or XML settings of Themis 1.0 or 2.0.",
        ),
    ] = None,
    protected: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--protected", metavar="race,sex", help="Columns to mark as protected."),
    ] = None,
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--target", metavar="COLUMN", help="The column with what was decided."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = Path("themis.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file.")] = False,
) -> int:
    """Write a commented themis.toml to start from."""
    from themis.cli.init import write_converted, write_starter

    if source is None:
        write_starter(output, protected=protected, target=target, force=force)
    else:
        names = split_names(protected)
        write_converted(source, output, protected=names, target=target, force=force)
    plain = output == Path("themis.toml")
    print_line(f"next: themis validate{'' if plain else f' {output}'}")
    return 0


@app.command()
@ends_properly
def validate(
    config: ConfigArgument = None,
    jobs: Jobs = None,
    trust_pickle: TrustPickle = False,
    verbose: Verbose = False,
) -> int:
    """Check the file and say what a score will cost."""
    from themis.audit.audit import Audit
    from themis.audit.plan import make_plan
    from themis.cli.session import hosting_subject, write
    from themis.cli.validate import show_plan
    from themis.show.terminal.parts import make_console, render

    path = find(config)
    with (
        hosting_subject(),
        Audit.from_file(path, jobs=jobs, trust_pickle=trust_pickle, cache=False) as audit,
    ):
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
    context: typer.Context,
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
    repeats: Repeats = None,
    probe: Probe = None,
    jobs: Jobs = None,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    trust_pickle: TrustPickle = False,
    suite: SuitePath = None,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how much the subject discriminates."""
    from themis.cli.files import check_targets, source_of
    from themis.cli.session import Reporting, audit_of, measured, parse_sets

    path = find(config)
    check_targets({"--output": output, "--suite": suite}, {"the cache": cache}, config=path)
    overrides = given_settings(
        confidence,
        error,
        seed,
        stopping,
        max_executions,
        max_seconds,
        suite,
        repeats=repeats,
        probe=probe,
    )

    make_audit = audit_of(
        path,
        overrides,
        jobs=jobs,
        cache=chosen_cache(cache, no_cache=no_cache),
        trust_pickle=trust_pickle,
    )

    def work(audit: Audit, _: SearchListener) -> Result:
        return audit.score(parse_sets(audit.schema, against or ()), measures_of(measure))

    source = source_of(path, context)
    reporting = Reporting(as_json, output, quiet, verbose, not no_progress, source)
    return measured(make_audit, work, reporting)


app.command()(search)
app.command()(apparent)
app.command()(check)
app.command()(replay)
app.command()(diff)
app.command()(report)


@app.command()
@ends_properly
def demo(
    context: typer.Context,
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
    from themis.cli.demo import SETS, demo_audit, render_introduction, render_next_steps
    from themis.cli.files import source_of
    from themis.cli.session import Reporting, measured, naming_options, write

    overrides = given_settings(confidence, error, seed, stopping, max_executions, max_seconds)

    def make_audit(listen: Listener) -> Audit:
        with naming_options(overrides):
            return demo_audit(**overrides, listen=listen)

    def work(audit: Audit, _: SearchListener) -> Result:
        return audit.score(SETS, command="demo")

    source = source_of(None, context)
    reporting = Reporting(as_json, output, quiet, verbose, not no_progress, source)
    talks = not as_json and not quiet
    if talks:
        write(render_introduction(sys.stdout))
    code = measured(make_audit, work, reporting)
    if talks and code == 0:
        write(render_next_steps(sys.stdout))
    return code


@app.command()
@ends_properly
def schema(
    of_result: Annotated[
        bool, typer.Option("--result", help="Of a saved result instead of the file.")
    ] = False,
) -> int:
    """Print the JSON Schema of themis.toml, or of a saved result."""
    import json

    from themis.config.reader import format_schema
    from themis.results.saved import result_schema

    print_line(json.dumps(result_schema() if of_result else format_schema(), indent=2))
    return 0
