"""The command `themis check`: do the limits of the file hold? The command for CI."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from themis.cli.endings import ends_properly
from themis.cli.options import (
    AsJson,
    CacheFile,
    Confidence,
    ConfigArgument,
    Error,
    Jobs,
    MaxExecutions,
    MaxSeconds,
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
)

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.config.reader import Config
    from themis.events import SearchListener
    from themis.results.model import Result

VIOLATED = 1
INCONCLUSIVE = 4


@ends_properly
def check(
    context: typer.Context,
    config: ConfigArgument = None,
    baseline: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="A saved result: fail only on what is significantly new beside it.",
        ),
    ] = None,
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
    """Run the [[checks]] of the file; ends with 1 if one is violated."""
    from themis.audit.checker import run_checks
    from themis.cli.files import check_targets
    from themis.cli.files_cli_source import source_of
    from themis.cli.session import Reporting, audit_of
    from themis.cli.session_cli_session import Session
    from themis.results.comparison_baselines import beside_baseline
    from themis.results.verdicts_acceptances import Acceptances
    from themis.show.terminal.checks import render_check_lines, render_checks

    path = find(config)
    reads = {"the baseline": baseline, "the cache": cache}
    check_targets({"--output": output, "--suite": suite}, reads, config=path)
    rules = _read_rules(path)
    first = next((each.name for each in rules.outputs), None)
    accepted = Acceptances(rules.accepted, date.today(), first)
    before = None if baseline is None else _read_baseline(baseline)
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

    def work(audit: Audit, listen: SearchListener) -> Result:
        result = run_checks(audit, rules.checks, accepted=accepted, listen=listen)
        return result if before is None else beside_baseline(result, before)

    def render(result: Result) -> str:
        if quiet:
            return render_check_lines(result, file=sys.stdout)
        return render_checks(result, file=sys.stdout, everything=verbose)

    source = {**source_of(path, context), "checks": [each.line for each in rules.checks]}
    reporting = Reporting(as_json, output, quiet, verbose, not no_progress, source)
    return Session(make_audit, work, render, _exit_code, reporting).run()


def _read_rules(path: Path) -> Config:
    """What a file says; that there are no checks is a mistake."""
    from themis.config.reader import read_config
    from themis.errors import ConfigError, Mistake

    config = read_config(path)
    if config.checks:
        return config
    name = next(iter(config.schema.protected or config.schema.names))
    remedy = f"add [[checks]] with, for example, against = [{name!r}] and max_score = 0.05"
    problem = "there is nothing to check"
    raise ConfigError([Mistake("no-checks", "checks", problem, remedy, str(path))])


def _read_baseline(path: Path) -> Result:
    from dataclasses import replace

    from themis.errors import RequestError
    from themis.results.saved_saved_results import read_result

    try:
        return read_result(path)
    except RequestError as error:
        raise RequestError(
            replace(each, where=f"--baseline {each.where}") for each in error.mistakes
        ) from None


def _exit_code(result: Result) -> int:
    if any(each.fails for each in result.checks):
        return VIOLATED
    return INCONCLUSIVE if any(each.is_open for each in result.checks) else 0
