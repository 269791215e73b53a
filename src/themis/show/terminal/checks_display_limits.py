"""What does a test say when a limit does not hold? The score, its interval, and two people."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import RenderableType

from themis.results.model import CausalScore, CheckResult, GroupScore, Score, SearchResult
from themis.show.terminal.parts import IntervalBar, Sentence, axis, axis_end, indented, make_console
from themis.show.terminal.results import render
from themis.show.terminal.scores import rates_table
from themis.show.terminal.scores_display_people import WITNESSES, pairs_table, they_get
from themis.show.words.searches import amount, guarantee, harms, search_headline, set_text
from themis.show.words.values import (
    count,
    headline,
    impact,
    other_changes_first,
    set_phrase,
    visible,
)

WIDTH = 72  # pytest puts eight characters before each line
NARROW = 70  # as in display_people: two pairs of people need this much
SETS = 3  # found sets that are shown


def limit_line(answer: CheckResult) -> str:
    """The verdict with its numbers, short enough for a list of failed tests."""
    if answer.search:
        return f"{visible(answer.name)}: {_found(answer)}"
    name = visible(answer.name).rpartition(" at most ")[0]
    if answer.score is None:
        return f"{name} at most {answer.max_score:g}: {answer.verdict}, {answer.reason}"
    ends = "exact" if answer.low == answer.high else f"[{answer.low:.3f}, {answer.high:.3f}]"
    measured = f"{name} {answer.score:.3f} {ends}"
    says = {"violated": "is above", "holds": "is at most"}.get(answer.verdict, "may be above")
    return f"{measured} {says} {answer.max_score:g}"


def limit_text(
    answer: CheckResult, outcome: Score | SearchResult | None, *, width: int = WIDTH
) -> str:
    """All that is known about a limit: its line, then the score and the people behind it."""
    text = render(_parts(answer, outcome, width), make_console(io.StringIO(), width=width))
    return f"{limit_line(answer)}\n{text}".rstrip()


def _found(answer: CheckResult) -> str:
    if answer.verdict == "holds":
        return "holds"
    sets = "; ".join(set_text(each) for each in answer.sets[:SETS])
    more = "; …" if len(answer.sets) > SETS else ""
    found = f"{count(len(answer.sets), 'minimal set')} found ({sets}{more})"
    if answer.verdict == "violated":
        return found
    return f"{answer.verdict}, {found}" if answer.sets else answer.verdict


def _parts(
    answer: CheckResult, outcome: Score | SearchResult | None, width: int
) -> Iterator[RenderableType]:
    if answer.reason:
        yield Sentence(f"{answer.verdict}: {answer.reason}")
    if isinstance(outcome, SearchResult):
        yield from _search_parts(outcome, width)
    elif outcome is not None and outcome.samples:
        yield ""
        yield from _score_parts(outcome, answer.max_score, width)


def _search_parts(search: SearchResult, width: int) -> Iterator[RenderableType]:
    yield ""
    yield Sentence(search_headline(search))
    worst = sorted(search.minimal_sets, key=lambda score: -score.low)
    for score in worst[:SETS]:
        yield ""
        yield from _score_parts(score, search.threshold, width)
    if len(worst) > SETS:
        yield Sentence(f"and {len(worst) - SETS:,} more minimal sets")
    yield ""
    yield Sentence(guarantee(search))


def _score_parts(score: Score, limit: float, width: int) -> Iterator[RenderableType]:
    yield Sentence(headline(score), break_before=" (")
    end = axis_end(max(score.high, limit))
    yield indented(axis("", IntervalBar(score.low, score.high, end, limit=limit)))
    yield indented(Sentence(f"┃ is the limit, {amount(limit, score.measure)}"))
    if isinstance(score, CausalScore):
        yield from (indented(Sentence(text)) for text in harms(score, most=2))
        yield from _people(score, width)
    elif isinstance(score, GroupScore):
        yield indented(rates_table(score))
        ratio = impact(score)
        yield from [] if ratio is None else [indented(Sentence(ratio))]
    yield from (indented(Sentence(visible(note), first="note: ")) for note in score.notes)


def _people(score: CausalScore, width: int) -> Iterator[RenderableType]:
    shown = other_changes_first(score.witnesses)[:WITNESSES]
    if not shown:
        return
    phrase = set_phrase(score.against).removesuffix(" together")
    yield ""
    yield indented(Sentence(f"People who differ only in {phrase}, and {they_get(score)}:"))
    step = 1 if width < NARROW else WITNESSES
    for first in range(0, len(shown), step):
        pairs = shown[first : first + step]
        yield indented(pairs_table(pairs, width, output=score.output))
