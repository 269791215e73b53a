"""The commands `themis audit`, with all for a reader; `check` and `replay`, which are for CI."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from themis.cli.files import ReportFile, check_report, output_mistake, save
from themis.cli.measure import MaxSize, Measured, measures_of
from themis.cli.options import AT_ONCE, TALK, WHERE, Options, with_options
from themis.cli.printing import print_line
from themis.errors import ConfigError, Exit, Mistake, RequestError
from themis.results.notes import Ending

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.cli.session import Session
    from themis.config.reader import Config
    from themis.results.model import Result
    from themis.results.replays import Replay

RESULT, SUITE = "result.json", "suite.csv"
DOCUMENTS = {"report.html": "html", "annex.html": "annex", "summary.md": "md"}
COVER = "README.md"
FOLDER = Path("themis-audit")  # unless another one is given


@with_options(
    without=("suite", "output"),
    helps={
        "family": "One confidence for all of it (default).",
        "error": AT_ONCE,
    },
)
def audit(
    options: Options,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for all of it.")
    ] = FOLDER,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="0.05",
            help="Find sets that reach this score. Default: as in [[checks]], or 0.05.",
        ),
    ] = None,
    max_size: MaxSize = None,
    measure: Measured = "both",
) -> int:
    """Measure all that is protected; one folder with report and annex."""
    from themis.audit.forecast import Everything
    from themis.audit.precision import THRESHOLD
    from themis.show.terminal.results import render_result

    session = _session(options, output)
    config = session.config
    assert config is not None
    measures = measures_of(measure, "audit")
    searched = [check for check in config.checks if check.search]
    limits = [check.max_score for check in searched if check.measure in measures]
    wanted = min(limits, default=THRESHOLD) if threshold is None else threshold
    Everything.of(config.schema, config.against)  # before anything is overwritten

    def work(audited: Audit) -> Result:
        precise = session.leaves_precision
        return audited.everything(wanted, max_size=max_size, measures=measures, at_once=precise)

    was_there = _make(output)
    try:
        code = session.run(work, render_result, _exit_code)
        is_new = (output / RESULT).exists() and not (was_there and code == Exit.SUBJECT_FAILED)
        return _complete(output, code, session) if is_new else code
    finally:
        with suppress(OSError):  # it is not empty
            output.rmdir()


def _session(options: Options, output: Path) -> Session:
    """The session that writes into this folder; no suite where that would hold rows of people."""
    from themis.cli.session import Session

    together = True if options.family is None else options.family
    own = replace(options, family=together, output=output / RESULT, suite=output / SUITE)
    session = Session.open(own)
    config = session.config
    assert config is not None
    shows_rows = config.report.rows if options.show_rows is None else options.show_rows
    if config.profile is None or shows_rows:
        return session
    return replace(session, options=replace(own, suite=None))


def _make(folder: Path) -> bool:
    """Make the folder; whether an audit is in it already. Refuses one with files of others."""
    from themis.results.saved import read_result

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{str(folder)!r} can't be created: {error.strerror}"
        raise output_mistake(problem, "name another folder") from None
    there = [name for name in (COVER, RESULT, SUITE, *DOCUMENTS) if (folder / name).exists()]
    with suppress(RequestError):
        if not there or read_result(folder / RESULT).command == "audit":
            return bool(there)
    problem = f"{str(folder)!r} has a {there[0]} that is not of an audit, and would be lost"
    raise output_mistake(problem, "name another folder")


def _complete(folder: Path, code: int, session: Session) -> int:
    """Render the documents from what was saved, so that all files tell the same; the exit code."""
    from themis.cli.session import SIGNALS, Watch
    from themis.engine.executors.pools import interrupts_wait
    from themis.results.saved import read_result
    from themis.show.reports.formats import FORMATS
    from themis.show.reports.markdown import render_cover

    has_suite = session.options.suite is not None
    names = [*DOCUMENTS, COVER, RESULT, *([SUITE] if has_suite else [])]
    try:
        with Watch(), interrupts_wait(*SIGNALS):
            result, given = read_result(folder / RESULT), str(folder) if folder != FOLDER else None
            texts = {name: FORMATS[kind].render(result) for name, kind in DOCUMENTS.items()}
            texts[COVER] = render_cover(result, names, folder=given)
            for name, text in texts.items():
                save(folder / name, text)
    except KeyboardInterrupt as error:
        code = int(error.args[0]) if error.args else Exit.INTERRUPTED
    if session.options.talks:
        print_line(f"wrote {', '.join(names)} in {folder}")
        if not has_suite:
            print_line("no suite.csv: it would hold rows of people, which --rows allows")
    return code


def _exit_code(result: Result) -> Exit:
    """Whether everything is decided and measured as precisely as asked."""
    scores = all(each.conclusive and each.is_checked for each in result.scores)
    decided = all(each.conclusive for each in result.searches)
    done = result.stopped is Ending.DONE
    return Exit.DONE if scores and decided and done else Exit.INCONCLUSIVE


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
    from themis.show.terminal.results import render_checks

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
    return session.run(work, render_checks, _check_exit_code, source={"checks": lines})


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
    from themis.show.reports.page import render_comparison, topic_of_file
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
    return session.run(work, page, exit_code, lines=render_replay_headline)
