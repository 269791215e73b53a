"""The command `themis replay`: do saved tests still discriminate?"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from themis.cli.endings import ends_properly, say
from themis.cli.options import (
    AsJson,
    ConfigArgument,
    Jobs,
    MaxExecutions,
    MaxSeconds,
    NoProgress,
    Output,
    Quiet,
    TrustPickle,
    Verbose,
    find,
    given_settings,
)

if TYPE_CHECKING:
    from themis.results.replays import Replay

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
        naming_options,
        tell,
        write,
    )
    from themis.cli.session_cli_session import is_live
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
        exit_code=lambda each: _exit_code(each, fail_on),  # type: ignore[arg-type]
        stores=audit is not None and audit.runner.recall is not None,
    )
    if unstored is not None:
        raise unstored
    return code


def _exit_code(replay: Replay, fail_on: FailOn) -> int:
    wanted = replay.count("new") if fail_on is FailOn.NEW else replay.count("still", "new")
    if wanted:
        return DISCRIMINATES
    return 0 if replay.conclusive else INCONCLUSIVE
