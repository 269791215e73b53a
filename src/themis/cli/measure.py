"""The command `themis search`: all minimal sets above a threshold.

The command `themis apparent`: the scores of given people, beside those of all inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from themis.cli.endings import ends_properly, say
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
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from themis.audit.audit import Audit
    from themis.events import SearchListener
    from themis.results.model import Result

INCONCLUSIVE = 4
ENDLESS = 10**6  # sets
WORTH_A_LINE = 10_000  # executions from which on a search is announced


@ends_properly
def search(
    context: typer.Context,
    config: ConfigArgument = None,
    threshold: Annotated[
        float,
        typer.Option("--threshold", metavar="0.1", help="Look for sets with a score above this."),
    ] = ...,  # type: ignore[assignment]  # how Typer is told that an option must be given
    measure: Annotated[
        MeasureChoice, typer.Option("--measure", help="Which scores.")
    ] = MeasureChoice.CAUSAL,
    among: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--among", metavar="race,sex", help="Only sets of these characteristics."),
    ] = None,
    max_size: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--max-size", metavar="N", help="Only sets of at most so many."),
    ] = None,
    of: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--of", metavar="OUTPUT", help="Which of several outputs; default the first."),
    ] = None,
    no_prune: Annotated[
        bool,
        typer.Option("--no-prune", help="With --stopping paper: test also what follows."),
    ] = False,
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
    """Find all minimal sets of characteristics that discriminate."""
    from themis.cli.files import check_targets, source_of
    from themis.cli.session import Reporting, Session, audit_of, is_live
    from themis.show.terminal.searches import render_search, render_search_headlines

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
    source = source_of(path, context)
    reporting = Reporting(as_json, output, quiet, verbose, not no_progress, source)
    names = _parse(among)

    make_audit = audit_of(
        path,
        overrides,
        jobs=jobs,
        cache=chosen_cache(cache, no_cache=no_cache),
        trust_pickle=trust_pickle,
    )

    def work(audit: Audit, listen: SearchListener) -> Result:
        _check_prune(audit, no_prune=no_prune)
        if is_live(reporting):
            _announce(audit, names, max_size)
        if not quiet:
            _warn(audit, names, max_size)
        with _naming_output(audit, of):
            return audit.search_all(
                threshold,
                measures_of(measure),
                names,
                max_size,
                output=of,
                prune=not no_prune,
                listen=listen,
            )

    def render(result: Result) -> str:
        if quiet:
            return render_search_headlines(result, file=sys.stdout)
        return render_search(result, file=sys.stdout, everything=verbose)

    return Session(make_audit, work, render, _exit_code, reporting).run()


def _parse(among: list[str] | None) -> list[str] | None:
    """The names that `--among` gives, which may come at once or one by one."""
    if among is None:
        return None
    return [name.strip() for text in among for name in text.split(",") if name.strip()]


@contextmanager
def _naming_output(audit: Audit, of: str | None) -> Iterator[None]:
    """Within, a mistake about the output carries the name of the option, and a file's remedy."""
    from dataclasses import replace

    from themis.errors import RequestError

    try:
        yield
    except RequestError as error:
        declare = f"declare it in the file as [outputs.{of}], or leave --of out"
        has_none = audit.first_output is None
        raise RequestError(
            replace(each, where="--of", remedy=declare if has_none else each.remedy)
            if each.where == "output"
            else each
            for each in error.mistakes
        ) from None


def _exit_code(result: Result) -> int:
    """0 when all is decided and measured as precisely as asked."""
    decided = all(search.conclusive for search in result.searches)
    return 0 if decided and result.stopped == "done" else INCONCLUSIVE


def _check_prune(audit: Audit, *, no_prune: bool) -> None:
    from themis.errors import Mistake, RequestError

    if no_prune and audit.settings.stopping != "paper":
        problem = "the certified search never tests what follows from other sets"
        remedy = "leave it out, or add --stopping paper"
        raise RequestError([Mistake("no-prune", "--no-prune", problem, remedy)])


def _announce(audit: Audit, among: Sequence[str] | None, max_size: int | None) -> None:
    """Say what the search will look at and cost, where that is not little."""
    from themis.show.words.values import count

    if max_size is not None and max_size < 1:
        return  # the search itself says what is wrong
    whole = audit.search_plan(among, max_size)
    least = audit.search_plan(among, 1).executions_at_least
    budget = audit.settings.max_executions
    short = budget is not None and whole.executions_at_least > budget
    if whole.executions_at_least < WORTH_A_LINE and not short:
        return
    text = f"searching {count(whole.sets, 'set')}"
    if audit.settings.stopping == "certified":
        more = "" if whole.complete else "over "
        most = f"{more}{whole.executions_at_least:,}"
        text += f": {count(least, 'execution')} or more; {most} if nothing is found"
    say(text)
    if budget is not None and short:
        enough = "is not enough" if least > budget else "may not be enough"
        say(f"max_executions = {budget:,} {enough}: the search will give what it finds")


def _warn(audit: Audit, among: Sequence[str] | None, max_size: int | None) -> None:
    """Say that a search over very many sets has no end in sight."""
    settings = audit.settings
    if max_size is None and settings.max_executions is None and settings.max_seconds is None:
        plan = audit.search_plan(among)
        if plan.sets > ENDLESS:
            say(f"{plan.sets:,} sets are too many to look at all: add --max-size 3, or a budget")


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
    from themis.cli.files import check_targets, source_of
    from themis.cli.session import Reporting, Session, audit_of, parse_sets, score_exit_code
    from themis.show.terminal.results import render_apparent, render_headlines

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
