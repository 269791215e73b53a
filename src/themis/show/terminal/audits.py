"""A whole audit in a terminal: the verdict, a line for each score, and what the search says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import RenderableType

from themis.results.model import Result
from themis.show.terminal.parts import HEADLINE, Page, Sentence, indented, make_console, render
from themis.show.terminal.results import brief_doubts, scores_table, show_cost, show_doubts
from themis.show.words.verdicts import search_lines, verdict
from themis.show.words.wording import wording


def show_audit(result: Result, *, width: int, everything: bool = False) -> Iterator[RenderableType]:
    """The parts of a whole audit; details are in its report."""
    found = verdict(result)
    yield Sentence(f"{found.sentence}.", HEADLINE)
    yield from show_doubts(result, everything=everything)
    if any(score.samples for score in result.scores):
        yield ""
        yield indented(scores_table(result.scores, width))
    yield ""
    yield from (Sentence(f"{each}.") for each in search_lines(result, wording(result)))
    yield from show_cost(result)


render_audit = Page[Result](show_audit)


def render_audit_headlines(result: Result, *, file: IO[str] | None = None) -> str:
    """The verdict, what the search says, and what may invalidate both."""
    sentences = [verdict(result).sentence, *search_lines(result, wording(result))]
    lines = (Sentence(f"{each}.") for each in sentences)
    return render([*lines, *brief_doubts(result)], make_console(file))
