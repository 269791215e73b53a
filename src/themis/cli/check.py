"""The commands for CI: `themis check` judges limits, `themis replay` runs saved tests again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from themis.cli.files import ReportFile, check_report, save
from themis.cli.options import TALK, WHERE, Options, with_options
from themis.errors import ConfigError, Exit, Mistake

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.config.reader import Config
    from themis.results.model import Result
    from themis.results.replays import Replay


@with_options(without=("without_constraint",))
def check(
    options: Options,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A saved result: fail only on what is new."),
    ] = None,
) -> int:
    """Run the [[checks]] of the file; ends with 1 if one is violated."""
    from themis.audit.checker import run_checks
    from themis.cli.session import Session
    from themis.results.comparison import beside_baseline
    from themis.results.saved import read_result
    from themis.results.verdicts import Acceptances
    from themis.show.terminal.checks import render_checks
    from themis.show.terminal.results import render_quiet

    session = Session.open(options, {"the baseline": baseline})
    rules = session.config
    assert rules is not None
    _require_checks(rules)
    first = next((each.name for each in rules.outputs), None)
    accepted = Acceptances(rules.accepted, date.today(), first)
    before = None if baseline is None else read_result(baseline)

    def work(audit: Audit) -> Result:
        result = run_checks(audit, rules.checks, accepted=accepted)
        return result if before is None else beside_baseline(result, before)

    lines = [each.line for each in rules.checks]
    return session.run(work, render_checks, render_quiet, _check_exit_code, {"checks": lines})


def _require_checks(config: Config) -> None:
    if not config.checks:
        name = next(iter(config.schema.protected or config.schema.names))
        remedy = f"add [[checks]] with, for example, against = [{name!r}] and max_score = 0.05"
        problem = "there is nothing to check"
        raise ConfigError([Mistake("no-checks", "checks", problem, remedy, str(config.path))])


def _check_exit_code(result: Result) -> Exit:
    if any(each.fails for each in result.checks):
        return Exit.DISCRIMINATES
    return Exit.INCONCLUSIVE if any(each.is_open for each in result.checks) else Exit.DONE


@with_options(
    *(
        "config",
        "max_executions",
        "max_seconds",
        "max_total_tokens",
        "max_spend",
        *WHERE,
        "cache",
        "trust_pickle",
        "show_rows",
        *TALK,
    ),
    helps={"cache": "Use and keep decisions here. Default: run everything."},
)
def replay(
    options: Options,
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A suite that --suite wrote, or a result.", show_default=False
        ),
    ],
    fail_on: Annotated[
        Literal["any", "new"],
        typer.Option(help="Which differing tests end it with code 1."),
    ] = "any",
    report: ReportFile = None,
) -> int:
    """Run saved tests again: which still get different decisions?"""
    from themis.cli.session import Session
    from themis.results.parts import Naming
    from themis.show.reports.comparisons import render_comparison, topic_of_file
    from themis.show.terminal.results import render_replay_headline, replay_page

    def work(audit: Audit) -> Replay:
        replayed = audit.replay(file)
        if report is not None:
            topic = topic_of_file(audit.naming or Naming())
            save(report, render_comparison(replayed, report, topic), option="--report")
        return replayed

    def exit_code(replay: Replay) -> Exit:
        if replay.count("new") or (fail_on == "any" and replay.count("still")):
            return Exit.DISCRIMINATES
        return Exit.DONE if replay.conclusive else Exit.INCONCLUSIVE

    options = replace(options, no_cache=options.cache is None)
    check_report(report, {"the file that is replayed": file})
    session = Session.open(options, {"the file that is replayed": file})
    assert session.config is not None
    page = replay_page(session.config.report)
    return session.run(work, page, render_replay_headline, exit_code)
