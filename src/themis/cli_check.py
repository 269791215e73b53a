"""The command `themis check`: do the limits of the file hold? The command for CI."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from themis.cli_errors import ends_properly
from themis.cli_options import (
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
    find,
    given_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from themis.audit import Audit
    from themis.config import Check
    from themis.events import Listener, SearchListener
    from themis.results import Result

VIOLATED = 1
INCONCLUSIVE = 4


@ends_properly
def check(
    config: ConfigArgument = None,
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
    from themis.audit import Audit
    from themis.checker import run_checks
    from themis.cli_run import Reporting, naming_options
    from themis.cli_session import Session
    from themis.display_checks import render_check_lines, render_checks

    path = find(config)
    checks = _read_checks(path)
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

    def make_audit(listen: Listener) -> Audit:
        with naming_options(overrides):
            return Audit.from_file(
                path,
                jobs=jobs,
                cache=False if no_cache else cache,
                trust_pickle=trust_pickle,
                **overrides,
                listen=listen,
            )

    def work(audit: Audit, listen: SearchListener) -> Result:
        return run_checks(audit, checks, listen=listen)

    def render(result: Result) -> str:
        if quiet:
            return render_check_lines(result, file=sys.stdout)
        return render_checks(result, file=sys.stdout, everything=verbose)

    reporting = Reporting(as_json, output, quiet, verbose, not no_progress)
    return Session(make_audit, work, render, _exit_code, reporting).run()


def _read_checks(path: Path) -> tuple[Check, ...]:
    """The checks of a file; that there are none, or senseless ones, is a mistake."""
    from themis.checks import find_mistakes
    from themis.config import read_config
    from themis.errors import ConfigError, Mistake

    config = read_config(path)
    checks = config.checks
    mistakes = list(find_mistakes(checks, path))
    if not checks:
        name = next(iter(config.schema.protected or config.schema.names))
        remedy = f"add [[checks]] with, for example, against = [{name!r}] and max_score = 0.05"
        mistakes = [Mistake("no-checks", "checks", "there is nothing to check", remedy, str(path))]
    if mistakes:
        raise ConfigError(mistakes)
    return checks


def _exit_code(result: Result) -> int:
    verdicts = {each.verdict for each in result.checks}
    if "violated" in verdicts:
        return VIOLATED
    return INCONCLUSIVE if "not enough evidence" in verdicts else 0
