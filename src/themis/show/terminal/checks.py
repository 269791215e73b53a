"""Checks in a terminal: a table of verdicts, whom the violations hurt; a limit in a test."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import RenderableType

from themis.results.model import CheckResult, Result, Score, SearchResult
from themis.results.withheld import by_size
from themis.show.blocks import Block, Part, Statement
from themis.show.parts.checks import accepted, check_details, checks_table, telling_score
from themis.show.parts.scores import score_part
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import Page, make_console, render
from themis.show.terminal.results import brief_doubts, show_cost
from themis.show.terminal.searches import show_people
from themis.show.words.headlines import score_text
from themis.show.words.searches import (
    checks_guarantee,
    guarantee,
    search_headline,
    set_text,
    verdict_words,
)
from themis.show.words.values import count, decimals, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import brought, wording

DETAILED = ("violated", "not enough evidence")


def show_checks(result: Result, *, width: int, everything: bool) -> Iterator[RenderableType]:
    """The table of verdicts, then what is behind those that do not hold."""
    yield from drawn([Statement(verdict(result).sentence, "headline")])
    yield from drawn(brief_doubts(result, everything=everything))
    yield from drawn([checks_table(result.checks)])
    for kind in DETAILED:
        for each in (check for check in result.checks if check.verdict == kind):
            yield ""
            why = f": {each.reason}" if kind != "violated" and each.reason else ""
            title = f"{visible(each.name)}: {verdict_words(each)}{why}"
            yield from drawn([Part(title, [*_details(each, result, everything=everything)])])
    yield from drawn(accepted(result.checks))
    yield ""
    yield from drawn([Statement(checks_guarantee(result)), *show_cost(result)])


render_checks = Page[Result](show_checks)


def _details(check: CheckResult, result: Result, *, everything: bool) -> Iterator[Block]:
    """The interval, the sets above a limit and whom one of them hurts."""
    yield from check_details(check, everything=everything)
    score = telling_score(check, result) if check.verdict == "violated" else None
    if score is not None:
        if check.search:
            yield Statement(f"{set_text(score.against)}: {score_text(score)}")
        yield from show_people(score, wording(result), everything=everything)


WIDTH = 72  # pytest puts eight characters before each line
SETS_OF_A_LIMIT = 3  # found sets that are shown


def limit_line(answer: CheckResult) -> str:
    """The verdict with its numbers, short enough for a list of failed tests."""
    if answer.search:
        return f"{visible(answer.name)}: {_found_above(answer)}"
    name = visible(answer.name).rpartition(" at most ")[0]
    if answer.score is None:
        return f"{name} at most {answer.max_score:g}: {verdict_words(answer)}, {answer.reason}"
    low, high = answer.low or 0.0, answer.high or 0.0
    ends = f"[{decimals(low, 3, 'down')}, {decimals(high, 3, 'up')}]" if low < high else "exact"
    measured = f"{name} {answer.score:.3f} {ends}"
    says = {"violated": "is above", "holds": "is at most"}.get(answer.verdict, "may be above")
    return f"{measured} {says} {answer.max_score:g}"


def limit_text(
    answer: CheckResult, outcome: Score | SearchResult | None, *, width: int = WIDTH
) -> str:
    """All that is known about a limit: its line, then the score and the people behind it."""
    text = render(drawn(_limit(answer, outcome)), make_console(io.StringIO(), width=width))
    return f"{limit_line(answer)}\n{text}".rstrip()


def _found_above(answer: CheckResult) -> str:
    if answer.verdict == "holds":
        return verdict_words(answer)
    sets = "; ".join(set_text(each) for each in answer.sets[:SETS_OF_A_LIMIT])
    more = "; …" if len(answer.sets) > SETS_OF_A_LIMIT else ""
    found = f"{count(len(answer.sets), 'minimal set')} found ({sets}{more})"
    if answer.verdict == "violated":
        return found
    return f"{verdict_words(answer)}, {found}" if answer.sets else verdict_words(answer)


def _limit(answer: CheckResult, outcome: Score | SearchResult | None) -> Iterator[Block]:
    if answer.reason:
        yield Statement(f"{verdict_words(answer)}: {answer.reason}")
    if isinstance(outcome, SearchResult):
        yield Statement(search_headline(outcome, brought(outcome.minimal_sets)))
        worst = sorted(outcome.minimal_sets, key=by_size)
        yield from (score_part(each, brought([each])) for each in worst[:SETS_OF_A_LIMIT])
        if len(worst) > SETS_OF_A_LIMIT:
            yield Statement(f"and {len(worst) - SETS_OF_A_LIMIT:,} more minimal sets")
        yield Statement(guarantee(outcome))
    elif outcome is not None and outcome.samples:
        yield score_part(outcome, brought([outcome]))
