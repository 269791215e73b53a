"""How does a command hold a long run together? Signals, the live line, saving, exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from themis.audit import Audit
from themis.cli_errors import INTERRUPTED, say
from themis.cli_run import Interruption, Reporting, hosting_subject, write
from themis.errors import RequestError, SubjectError
from themis.events import Listener, Progress, SearchListener, SearchProgress
from themis.progress_search import SearchProgressLine
from themis.results import Result


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
                unstored = _close(audit)
        stores = audit is not None and audit.runner.recall is not None
        code = self._tell(_tidy(result), problem, stores=stores)
        if unstored is not None:
            raise unstored
        return code

    def _tell(self, result: Result | None, problem: str | None, *, stores: bool) -> int:
        reporting = self.reporting
        if result is not None:
            unsaved = reporting.save(result)
            self._show(result)
            if unsaved is not None:
                raise unsaved
            if reporting.output is not None and not reporting.as_json and not reporting.quiet:
                write(f"saved in {reporting.output}\n")
        if problem is not None:
            say(f"error: {problem}")
            return SubjectError.exit_code
        assert result is not None
        if result.stopped == "interrupted":
            remedy = "the same command gives the full answer"
            if stores:
                remedy = "what was run is stored: run the same command again to go on"
            say(f"interrupted; {remedy}: {shlex.join(['themis', *sys.argv[1:]])}")
            return INTERRUPTED
        return self.exit_code(result)

    def _show(self, result: Result) -> None:
        if self.reporting.as_json:
            write(json.dumps(result.to_dict(), indent=2) + "\n")
        elif result.searches or result.checks:
            write(self.render(result))


def is_live(reporting: Reporting) -> bool:
    """Whether somebody watches: a terminal, and neither JSON nor silence was asked for."""
    wanted = reporting.progress and not reporting.as_json and not reporting.quiet
    return wanted and sys.__stderr__ is not None and sys.__stderr__.isatty()


def _tidy(result: Result | None) -> Result | None:
    """The result without scores that nothing was run for; interrupted if one of its scores was."""
    if result is None:
        return None
    interrupted = any(score.stopped == "interrupted" for score in result.scores)
    return replace(
        result,
        scores=tuple(score for score in result.scores if score.samples),
        stopped="interrupted" if interrupted else result.stopped,
    )


def _close(audit: Audit | None) -> RequestError | None:
    """End what the audit keeps open; what can't be stored must not hide what was learned."""
    try:
        if audit is not None:
            audit.close()
    except RequestError as error:
        return error
    return None
