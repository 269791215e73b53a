"""How does a command hold a long run together? Signals, the live line, saving, exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

from themis.audit.audit import Audit
from themis.cli.endings import say
from themis.cli.session import (
    Interruption,
    Reporting,
    close,
    hosting_subject,
    score_exit_code,
    tell,
    tell_suite,
    write,
)
from themis.errors import SubjectError
from themis.events import Listener, Progress, SearchListener, SearchProgress
from themis.results.model import Result
from themis.show.terminal.progress_progress_search import SearchProgressLine
from themis.show.terminal.results import render_headlines, render_result


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
        elif result.stopped == "interrupted":
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
