"""The command `themis audit`: everything for a reader, in one go and in one folder."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli.audit_folder import FOLDER, RESULT, SUITE, AuditFolder
from themis.cli.files import check_targets
from themis.cli.options import Options, with_options
from themis.cli.printing import print_line, say
from themis.errors import Exit
from themis.results.notes import Ending

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.audit.forecast import Forecast
    from themis.cli.session import Session, Watch
    from themis.engine.suites import Suite
    from themis.results.model import Result


@with_options(
    without=("suite", "output"),
    helps={"family": "The confidence is that of the whole statement, unless --no-family."},
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
            help="The search looks for sets that reach this score. "
            "Default: that of a search in [[checks]], or 0.05.",
        ),
    ] = None,
    max_size: Annotated[
        int | None, typer.Option(metavar="N", help="Search only sets of at most N characteristics.")
    ] = None,
) -> int:
    """Measure all that is protected; one folder with report and annex."""
    from themis.audit.everything import THRESHOLD, Everything
    from themis.show.terminal.audits import render_audit, render_audit_headlines

    session = _session(options, output)
    config, talks = session.config, session.options.talks
    assert config is not None
    limits = [check.max_score for check in config.checks if check.search]
    wanted = min(limits, default=THRESHOLD) if threshold is None else threshold
    check_targets({"--output": output}, config=config)
    Everything.of(config.schema, config.against)  # before anything is overwritten
    suites: list[Suite | None] = []

    def work(audited: Audit, watch: Watch) -> Result:
        suites.append(audited.suite)
        return audited.everything(
            wanted,
            max_size=max_size,
            announce=partial(_announce, watch, talks=talks),
            listen=watch.listen_to_search,
            listen_to_steps=watch.listen_to_steps,
        )

    with AuditFolder.of(output).staged() as folder:
        staged = _staged(session, folder.stage)
        try:
            code = staged.run(work, render_audit, render_audit_headlines, _exit_code)
            return _publish(folder, suites, code, talks=talks)
        except KeyboardInterrupt as error:
            if not folder.has_new:
                raise
            say(f"interrupted before all files were written: nothing of this audit is in {output}")
            return _signalled(error)


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


def _announce(watch: Watch, forecast: Forecast, *, talks: bool) -> None:
    """Let the live line know what the audit will cost, and say it."""
    watch.line.expected = forecast.executions
    if talks:
        from themis.cli.costs import forecast_sentence
        from themis.show.words.values import count

        searched = ", a search" if forecast.among > 1 else ""
        sets = count(len(forecast.parts), "set")
        say(f"{sets}{searched} and noise: {forecast_sentence(forecast)}")


def _staged(session: Session, stage: Path) -> Session:
    """The session that writes the same files into this folder."""
    suite = None if session.options.suite is None else stage / SUITE
    options = replace(session.options, output=stage / RESULT, suite=suite)
    return replace(session, options=options, is_staged=True)


def _publish(folder: AuditFolder, suites: list[Suite | None], code: int, *, talks: bool) -> int:
    """Complete what the run left in the stage, and say where it is; the exit code."""
    from themis.cli.session import Watch, say_suite

    if (target := folder.target()) is None:
        return code
    names = folder.names_for(target)
    try:
        with Watch(live=False):
            folder.complete(target, names)
    except KeyboardInterrupt as error:
        if folder.has_new:
            raise
        code = _signalled(error)
    folder.say_beside(target)
    if talks:
        print_line(f"saved in {target / RESULT}")
        if SUITE in names and suites[0] is not None:
            say_suite(suites[0], target / SUITE)
        print_line(f"wrote {', '.join(names)} in {target}")
        if None in suites:
            print_line("no suite.csv: it would hold rows of people, which --rows allows")
    return code


def _signalled(error: KeyboardInterrupt) -> int:
    """The exit code after a signal."""
    return int(error.args[0]) if error.args else Exit.INTERRUPTED


def _exit_code(result: Result) -> Exit:
    """Whether everything is decided and measured as precisely as asked."""
    scores = all(each.conclusive and each.is_checked for each in result.scores)
    decided = all(each.conclusive for each in result.searches)
    done = result.stopped is Ending.DONE
    return Exit.DONE if scores and decided and done else Exit.INCONCLUSIVE
