"""The command `themis check`: do the limits of the file hold? The command for CI.

The command `themis replay`: do saved tests still discriminate?
"""

from __future__ import annotations

import json
import sys
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from themis.cli.endings import ends_properly, say
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
    from themis.results.replays import Replay

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
    from themis.cli.files import check_targets, source_of
    from themis.cli.session import Reporting, Session, audit_of
    from themis.results.comparison import beside_baseline
    from themis.results.verdicts import Acceptances
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
    from themis.results.saved import read_result

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


DISCRIMINATES = 1
INCONCLUSIVE = 4


class FailOn(StrEnum):
    """What ends the command with 1."""

    ANY = "any"
    NEW = "new"


@ends_properly
def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A suite that --suite wrote, or a result.", show_default=False
        ),
    ],
    config: ConfigArgument = None,
    fail_on: Annotated[
        FailOn,
        typer.Option("--fail-on", help="End with 1 if any test discriminates, or only a new one."),
    ] = FailOn.ANY,
    max_executions: MaxExecutions = None,
    max_seconds: MaxSeconds = None,
    jobs: Jobs = None,
    cache: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--cache", metavar="FILE", help="Use and keep decisions here; else everything is run."
        ),
    ] = None,
    trust_pickle: TrustPickle = False,
    as_json: AsJson = False,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_progress: NoProgress = False,
) -> int:
    """Run saved tests again: which still discriminate?"""
    from themis.audit.audit import Audit
    from themis.cli.files import check_targets
    from themis.cli.session import (
        Interruption,
        Reporting,
        close,
        hosting_subject,
        is_live,
        naming_options,
        tell,
        write,
    )
    from themis.errors import SubjectError
    from themis.show.terminal.comparisons import ReplayLine, render_replay, render_replay_headline

    path = find(config)
    reads = {"the file that is replayed": file, "the cache": cache}
    check_targets({"--output": output}, reads, config=path)
    reporting = Reporting(as_json, output, quiet, verbose, not no_progress)
    reporting.check()
    overrides = given_settings(None, None, None, None, max_executions, max_seconds)
    audit, replayed, problem, unstored = None, None, None, None
    line = ReplayLine(enabled=is_live(reporting))
    with Interruption() as interruption, line, hosting_subject():

        def listen(done: int, total: int) -> None:
            line.listen_to_inputs(done, total)
            if interruption.requested:
                raise KeyboardInterrupt

        try:
            with naming_options(overrides):
                audit = Audit.from_file(
                    path,
                    jobs=jobs,
                    cache=False if cache is None else cache,
                    trust_pickle=trust_pickle,
                    **overrides,
                )
            if audit.cache_notice is not None:
                say(f"note: {audit.cache_notice}")
            audit.sampler.keep_on_interrupt = True
            replayed = audit.replay(file, listen=listen)
        except SubjectError as error:
            problem, replayed = str(error), error.result
        finally:
            unstored = close(audit)

    def show(learned: Any) -> None:
        if as_json:
            write(json.dumps(learned.to_dict(), indent=2) + "\n")
        elif quiet:
            write(render_replay_headline(learned, file=sys.stdout))
        else:
            write(render_replay(learned, file=sys.stdout, everything=verbose))

    learned: Any = replayed  # told like a result
    code = tell(
        learned,
        problem,
        reporting,
        show=show,
        exit_code=lambda each: _replay_exit_code(each, fail_on),  # type: ignore[arg-type]
        stores=audit is not None and audit.runner.recall is not None,
    )
    if unstored is not None:
        raise unstored
    return code


def _replay_exit_code(replay: Replay, fail_on: FailOn) -> int:
    wanted = replay.count("new") if fail_on is FailOn.NEW else replay.count("still", "new")
    if wanted:
        return DISCRIMINATES
    return 0 if replay.conclusive else INCONCLUSIVE
