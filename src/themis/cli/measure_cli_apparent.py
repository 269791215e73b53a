"""The command `themis apparent`: the scores of given people, beside those of all inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from themis.cli.endings import ends_properly
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
    Quiet,
    Seed,
    Stopping,
    TrustPickle,
    Verbose,
    chosen_cache,
    find,
    given_settings,
    measures_of,
)

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.events import SearchListener
    from themis.results.model import Result

INCONCLUSIVE = 4


class CounterfactualOption(StrEnum):
    """Which counterfactuals the causal score looks at."""

    GENERATED = "generated"
    WITHIN = "within"
    BOTH = "both"


class UnknownChoice(StrEnum):
    """What to do with rows that do not fit the schema."""

    DROP = "drop"
    ERROR = "error"
    EXTEND = "extend"


@ends_properly
def apparent(
    context: typer.Context,
    config: ConfigArgument = None,
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--data",
            metavar="FILE",
            help="The people: CSV, JSON lines or Parquet. Default: the [profile] of the file.",
        ),
    ] = None,
    against: Against = None,
    measure: Annotated[
        MeasureChoice, typer.Option("--measure", help="Which scores.")
    ] = MeasureChoice.BOTH,
    counterfactuals: Annotated[
        Optional[CounterfactualOption],  # noqa: UP045
        typer.Option(
            "--counterfactuals",
            help="Of the causal score: made up for each person, or found within the rows. "
            "Default: both, since the second costs nothing.",
        ),
    ] = None,
    unknown: Annotated[
        UnknownChoice,
        typer.Option(
            "--unknown",
            help="Rows that do not fit the schema: leave them out, stop, or widen the schema.",
        ),
    ] = UnknownChoice.DROP,
    weights: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--weights", metavar="COLUMN", help="The column that says how often a row counts."
        ),
    ] = None,
    draw: Annotated[
        bool,
        typer.Option("--draw", help="Draw from the rows, with intervals, if all are too many."),
    ] = False,
    only_data: Annotated[
        bool, typer.Option("--only-data", help="Do not measure all inputs as well.")
    ] = False,
    confidence: Confidence = None,
    error: Error = None,
    seed: Seed = None,
    stopping: Stopping = None,
    max_executions: MaxExecutions = None,
    max_seconds: MaxSeconds = None,
    jobs: Jobs = None,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how much the subject discriminates among given people."""
    from themis.cli.files import check_targets
    from themis.cli.files_cli_source import source_of
    from themis.cli.session import Reporting, audit_of, parse_sets, score_exit_code
    from themis.cli.session_cli_session import Session
    from themis.show.terminal.results import render_headlines
    from themis.show.terminal.results_display_apparent import render_apparent

    path = find(config)
    check_targets({"--output": output}, {"the data": data, "the cache": cache}, config=path)
    overrides = given_settings(confidence, error, seed, stopping, max_executions, max_seconds)

    make_audit = audit_of(
        path,
        overrides,
        jobs=jobs,
        cache=chosen_cache(cache, no_cache=no_cache),
        trust_pickle=trust_pickle,
    )

    def work(audit: Audit, _: SearchListener) -> Result:
        with _naming():
            return audit.apparent(
                data,
                parse_sets(audit.schema, against or ()),
                measures=measures_of(measure),
                counterfactuals=None if counterfactuals is None else counterfactuals.value,
                unknown=unknown.value,
                weights=weights,
                draw=draw,
                only_data=only_data,
            )

    def render(result: Result) -> str:
        if quiet:
            return render_headlines(result, file=sys.stdout)
        return render_apparent(result, file=sys.stdout, everything=verbose)

    reporting = Reporting(
        as_json, output, quiet, verbose, not no_progress, source_of(path, context)
    )
    return Session(make_audit, work, render, score_exit_code, reporting).run()


@contextmanager
def _naming() -> Iterator[None]:
    """Within, mistakes in what was asked carry the names of the options."""
    from dataclasses import replace

    from themis.errors import RequestError

    options = {"rows": "--data", "against": "--against", "weights": "--weights"}
    options |= {name: f"--{name}" for name in ("unknown", "counterfactuals", "draw")}
    try:
        yield
    except RequestError as error:
        raise RequestError(
            replace(each, where=options.get(each.where, each.where)) for each in error.mistakes
        ) from None
