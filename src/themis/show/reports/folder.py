"""The cover note of an audit's folder: the verdict, and which file is for whom."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator

from themis.results.model import Result
from themis.results.withheld import withheld
from themis.show.reports.markdown import escape
from themis.show.reports.method import RECIPE, command_again, digest, same_again
from themis.show.words.verdicts import measured_on, verdict
from themis.show.words.wording import subject_title

FILES = {
    "report.html": "the report: verdict, findings, pairs, statistics; to read and to print",
    "annex.html": "the annex: rates by category, test log, reference table; to file and to sign",
    "summary.md": "the same in short, for a ticket or a pull request",
    "result.json": "all numbers; `themis report`, `diff`, `replay` and `check --baseline` read it",
    "suite.csv": "the tests behind the scores, with their outputs; `themis replay` runs them again",
}


def render_cover(
    result: Result, files: Collection[str] = tuple(FILES), *, folder: str | None = None
) -> str:
    """The note as Markdown, about these files; it says no more of people than they do.

    `folder` is what was given for them, which is no part of a result.
    """
    return "\n\n".join(_parts(withheld(result), files, folder)) + "\n"


def _parts(result: Result, files: Collection[str], folder: str | None) -> Iterator[str]:
    found = verdict(result)
    yield f"# Audit of {escape(subject_title(result))}"
    yield f"**{escape(found.sentence)}.**"
    if found.behind:
        yield escape(found.behind)
    yield escape(measured_on(result))
    rows = [f"| [{name}]({name}) | {what} |" for name, what in FILES.items() if name in files]
    yield "\n".join(["| file | what it is |", "| --- | --- |", *rows])
    yield f"The command that made this folder. {same_again(result)}"
    where = "" if folder is None else f" --output {shlex.quote(folder)}"
    yield f"```\n{command_again(result) or 'themis audit'}{where}\n```"
    yield f"SHA-256 of the result: `{digest(result)}`. Whoever has the file can compute it:"
    yield f"```\n{RECIPE}\n```"
