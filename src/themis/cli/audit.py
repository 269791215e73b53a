"""The command `themis audit`: everything for a reader, in one go and in one folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from themis.cli.files import check_targets, output_mistake, save
from themis.cli.options import Options, with_options
from themis.cli.printing import print_line, say
from themis.errors import Exit, RequestError
from themis.results.notes import Ending

if TYPE_CHECKING:
    from themis.audit.audit import Audit
    from themis.audit.forecast import Forecast
    from themis.cli.session import Session, Watch
    from themis.results.model import Result

FOLDER = Path("themis-audit")
RESULT, SUITE = "result.json", "suite.csv"
DOCUMENTS = {"report.html": "html", "annex.html": "annex", "summary.md": "md"}
COVER = "README.md"
UNFINISHED = "-unfinished"  # the folder of an audit that was interrupted, beside a finished one


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
    is_new = _make(output)
    beside = output.with_name(f"{output.name}{UNFINISHED}")
    if _is_finished(output):
        _check_folder(beside)
        session = replace(session, aside=beside / RESULT)
    else:
        session = replace(session, aside=output / RESULT)

    def work(audited: Audit, watch: Watch) -> Result:
        return audited.everything(
            wanted,
            max_size=max_size,
            announce=partial(_announce, watch, talks=talks),
            listen=watch.listen_to_search,
            listen_to_steps=watch.listen_to_steps,
        )

    before = {each: _saved_at(each) for each in (output, beside)}
    try:
        code = session.run(work, render_audit, render_audit_headlines, _exit_code)
        if _saved_at(output) != before[output]:
            has_suite = session.options.suite is not None
            _write_documents(output, has_suite=has_suite, talks=talks)
        elif _saved_at(beside) != before[beside]:
            say(f"{output} is left as it was: it holds a finished audit")
            say(f"what was measured now is in {beside}")
            _write_documents(beside, has_suite=False, talks=talks)
        return code
    finally:
        if is_new:
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


def _announce(watch: Watch, forecast: Forecast, *, talks: bool) -> None:
    """Let the live line know what the audit will cost, and say it."""
    watch.line.expected = forecast.executions
    if talks:
        from themis.cli.costs import forecast_sentence
        from themis.show.words.values import count

        searched = ", a search" if forecast.among > 1 else ""
        sets = count(len(forecast.parts), "set")
        say(f"{sets}{searched} and noise: {forecast_sentence(forecast)}")


def _saved_at(folder: Path) -> int | None:
    """When the result in a folder was written; None if there is none."""
    path = folder / RESULT
    return path.stat().st_mtime_ns if path.is_file() else None


def _is_finished(folder: Path) -> bool:
    """Whether there is an audit that was not interrupted."""
    from themis.results.saved import read_result

    with suppress(RequestError):
        return read_result(folder / RESULT).stopped is not Ending.INTERRUPTED
    return False


def _make(folder: Path) -> bool:
    """Make the folder; whether it is new. Refuses one that holds files which are not an audit's."""
    try:
        folder.mkdir(parents=True)
        return True
    except FileExistsError:
        _check_folder(folder)
        return False
    except OSError as error:
        problem = f"{str(folder)!r} can't be created: {error.strerror}"
        raise output_mistake(problem, "choose another place") from None


def _check_folder(folder: Path) -> None:
    from themis.results.saved import read_result

    if folder.exists() and not folder.is_dir():
        raise output_mistake(f"{str(folder)!r} is a file", "name a folder")
    there = [name for name in (COVER, RESULT, SUITE, *DOCUMENTS) if (folder / name).exists()]
    with suppress(RequestError):
        if not there or read_result(folder / RESULT).command == "audit":
            return
    problem = f"{str(folder)!r} has a {there[0]} that is not of an audit, and would be lost"
    raise output_mistake(problem, "name another folder")


def _write_documents(folder: Path, *, has_suite: bool, talks: bool) -> None:
    """Render what was saved, so that all files tell the same."""
    from themis.results.saved import read_result
    from themis.show.reports.folder import render_cover
    from themis.show.reports.formats import FORMATS

    result = read_result(folder / RESULT)
    for name, kind in DOCUMENTS.items():
        save(folder / name, FORMATS[kind].render(result))
    written = [*DOCUMENTS, COVER, RESULT, *([SUITE] if has_suite else [])]
    save(folder / COVER, render_cover(result, written))
    if talks:
        print_line(f"wrote {', '.join(written)} in {folder}")
        if not has_suite:
            print_line("no suite.csv: it would hold rows of people, which --rows allows")


def _exit_code(result: Result) -> Exit:
    """Whether everything is decided and measured as precisely as asked."""
    scores = all(each.conclusive and each.is_checked for each in result.scores)
    decided = all(each.conclusive for each in result.searches)
    done = result.stopped is Ending.DONE
    return Exit.DONE if scores and decided and done else Exit.INCONCLUSIVE
