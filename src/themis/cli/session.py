"""What do the commands have in common? What is asked, how it is told, signals, exit codes.

How does a command hold a long run together? Signals, the live line, saving, exit codes.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from themis.audit.audit import Audit
from themis.cli.endings import INTERRUPTED, printing, say
from themis.cli.options import check_talk
from themis.errors import Mistake, RequestError, SubjectError
from themis.events import Listener, Progress, SearchListener, SearchProgress
from themis.inputs.schema import Schema
from themis.results.model import Result
from themis.results.notes import Ending
from themis.show.terminal.parts import in_encoding
from themis.show.terminal.progress import SearchProgressLine
from themis.show.terminal.results import render_headlines, render_result

INCONCLUSIVE = 4

Sets = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Reporting:
    """How the user wants to be told."""

    as_json: bool = False
    output: Path | None = None
    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    source: Mapping[str, Any] | None = None  # where the result comes from, to stand in it

    def check(self) -> None:
        """Find out before the run whether the result can be told and saved after it."""
        check_talk(quiet=self.quiet, verbose=self.verbose)
        if self.output is None:
            return
        folder = self.output.parent
        if self.output.is_dir():
            raise _output_mistake(f"{str(self.output)!r} is a folder", "name a file")
        if not folder.is_dir():
            raise _output_mistake(f"there is no folder {str(folder)!r}", "create it first")
        target = self.output if self.output.exists() else folder
        if not os.access(target, os.W_OK):
            raise _output_mistake(f"{str(target)!r} can't be written", "choose another place")

    def save(self, result: Result) -> RequestError | None:
        """Write the result where the user wants it, if anywhere; gives the reason if it can't."""
        try:
            if self.output is not None:
                self.output.write_text(_json(result) + "\n", encoding="utf-8")
        except OSError as error:  # what was learned is still to be shown
            problem = f"{str(self.output)!r} can't be written: {error.strerror}"
            return _output_mistake(problem, "the result stands above")
        return None


def close(audit: Audit | None) -> RequestError | None:
    """End what the audit keeps open; what can't be stored must not hide what was learned."""
    try:
        if audit is not None:
            audit.close()
    except RequestError as error:
        return error
    return None


def tell_suite(audit: Audit | None, reporting: Reporting) -> None:
    """Say where the tests are, if they were to be kept."""
    suite = None if audit is None else audit.suite
    if suite is not None and not reporting.as_json and not reporting.quiet:
        say(f"{suite.tests:,} tests, {suite.rows:,} rows in {suite.path}")


def tell(
    result: Result | None,
    problem: str | None,
    reporting: Reporting,
    *,
    show: Callable[[Result], None],
    exit_code: Callable[[Result], int],
    stores: bool,
) -> int:
    """Save and show what was learned, say how the run ended, and give the exit code."""
    if result is not None:
        result = result if reporting.source is None else replace(result, source=reporting.source)
        unsaved = reporting.save(result)
        show(result)
        if unsaved is not None:
            raise unsaved
        if reporting.output is not None and not reporting.as_json and not reporting.quiet:
            write(f"saved in {reporting.output}\n")
    if problem is not None:
        say(f"error: {problem}")
        return SubjectError.exit_code
    assert result is not None
    if result.stopped is Ending.INTERRUPTED:
        remedy = "the same command gives the full answer"
        if stores:
            remedy = "what was run is stored: run the same command again to go on"
        say(f"interrupted; {remedy}: {shlex.join(['themis', *sys.argv[1:]])}")
        return INTERRUPTED
    return exit_code(result)


def score_exit_code(result: Result) -> int:
    """Whether all scores are as precise as asked."""
    return 0 if all(score.conclusive for score in result.scores) else INCONCLUSIVE


class Interruption:
    """Ctrl-C as KeyboardInterrupt, also when the subject swallows the first one."""

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():  # only there signals arrive
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        raise KeyboardInterrupt

    def listen(self, _: Progress) -> None:
        """Between two batches: stop if that was asked for."""
        if self.requested:
            raise KeyboardInterrupt


@contextmanager
def hosting_subject() -> Iterator[None]:
    """Within, what the subject prints goes to stderr, and it can't end the command."""
    try:
        with _stdout_is_stderr(), redirect_stdout(sys.stderr):
            yield
    except SystemExit as error:
        raise SubjectError(
            f"the subject ended the program with exit({error.code!r}); it must return a decision"
        ) from None


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Within, file descriptor 1 leads to stderr: libraries print past Python's stdout."""
    try:
        sys.stdout.flush()
        number = sys.stdout.fileno()
        kept = os.dup(number)
    except (OSError, ValueError, AttributeError):  # stdout is no file, as in tests
        yield
        return
    try:
        os.dup2(2, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def parse_sets(schema: Schema, against: Iterable[str]) -> Sets:
    """The sets that `--against` names, or each protected characteristic on its own."""
    given = [[name.strip() for name in text.split(",")] for text in against]
    if not given and not schema.protected:
        raise RequestError(
            [
                Mistake(
                    "no-set",
                    "--against",
                    "nothing is said to be protected, so there is nothing to measure by default",
                    f"name a set, e.g. --against {schema.names[0]}, or write protected = true in "
                    "the file",
                )
            ]
        )
    mistakes: list[Mistake] = []
    sets: dict[tuple[str, ...], None] = {}
    for names in given or [[name] for name in schema.protected]:
        try:
            columns = schema.columns_of([name for name in names if name])
            sets[tuple(schema.names[column] for column in columns)] = None
        except RequestError as error:
            mistakes += error.mistakes
    if mistakes:
        raise RequestError(dict.fromkeys(mistakes))
    return list(sets)


def audit_of(path: Path, overrides: dict[str, Any], **options: Any) -> Callable[[Listener], Audit]:
    """What makes the audit that a file describes, with what the command line says otherwise."""

    def make(listen: Listener) -> Audit:
        with naming_options(overrides):
            return Audit.from_file(path, **options, **overrides, listen=listen)

    return make


@contextmanager
def naming_options(overrides: dict[str, Any]) -> Iterator[None]:
    """Within, mistakes in settings that the command line gave carry its names."""
    try:
        yield
    except RequestError as error:
        raise RequestError(
            replace(each, where=f"--{each.where.replace('_', '-')}")
            if each.where in overrides
            else each
            for each in error.mistakes
        ) from None


def write(text: str) -> None:
    """Print on stdout, whatever encoding it has; a closed pipe shows at once."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with printing():
        sys.stdout.write(in_encoding(text, encoding))
        sys.stdout.flush()


def _json(result: Result) -> str:
    return json.dumps(result.to_dict(), indent=2)


def _output_mistake(problem: str, remedy: str) -> RequestError:
    return RequestError([Mistake("output", "--output", problem, remedy)])


@dataclass(frozen=True)
class Session:
    """One run of a command: what it does, and how it tells about it."""

    make_audit: Callable[[Listener], Audit]
    work: Callable[[Audit, SearchListener], Result]
    render: Callable[[Result], str]
    exit_code: Callable[[Result], int]
    reporting: Reporting

    def run(self) -> int:
        """Do the work, tell what was learned, and give the exit code."""
        self.reporting.check()
        problem, result, audit, unstored = None, None, None, None
        line = SearchProgressLine(enabled=is_live(self.reporting))
        with Interruption() as interruption, hosting_subject():

            def listen(event: Progress) -> None:
                interruption.listen(event)
                line.listen(event)

            def listen_to_search(event: SearchProgress) -> None:
                if interruption.requested:
                    raise KeyboardInterrupt
                line.listen_to_search(event)

            try:
                audit = self.make_audit(listen)
                if audit.cache_notice is not None:
                    say(f"note: {audit.cache_notice}")
                audit.sampler.keep_on_interrupt = True
                runner = audit.runner
                line.count_executions = lambda: runner.executions
                with line:
                    result = self.work(audit, listen_to_search)
            except SubjectError as error:
                problem, result = str(error), error.result
            finally:
                unstored = close(audit)
        stores = audit is not None and audit.runner.recall is not None
        code = tell(
            result,
            problem,
            self.reporting,
            show=self._show,
            exit_code=self.exit_code,
            stores=stores,
        )
        tell_suite(audit, self.reporting)
        if unstored is not None:
            raise unstored
        return code

    def _show(self, result: Result) -> None:
        if self.reporting.as_json:
            write(json.dumps(result.to_dict(), indent=2) + "\n")
        elif result.searches or result.checks or result.scores:
            write(self.render(result))
        elif result.stopped is Ending.INTERRUPTED:
            write("nothing was measured: it was interrupted\n")


def measured(
    make_audit: Callable[[Listener], Audit],
    work: Callable[[Audit, SearchListener], Result],
    reporting: Reporting,
) -> int:
    """Measure scores, tell what was learned, and give the exit code."""

    def render(result: Result) -> str:
        if reporting.quiet:
            return render_headlines(result, file=sys.stdout)
        return render_result(result, file=sys.stdout, everything=reporting.verbose)

    return Session(make_audit, work, render, score_exit_code, reporting).run()


def is_live(reporting: Reporting) -> bool:
    """Whether somebody watches: a terminal, and neither JSON nor silence was asked for."""
    wanted = reporting.progress and not reporting.as_json and not reporting.quiet
    return wanted and sys.__stderr__ is not None and sys.__stderr__.isatty()
