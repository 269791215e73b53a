"""How do checks look in a terminal? One table of verdicts, then whom the violations hurt.

What does a test say when a limit does not hold? The score, its interval, and two people.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score, SearchResult
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    WARNING,
    IntervalBar,
    Sentence,
    axis,
    axis_end,
    indented,
    make_console,
    short,
)
from themis.show.terminal.results import render, render_headlines, show_cost, show_doubts
from themis.show.terminal.scores import WITNESSES, pairs_table, rates_table, they_get
from themis.show.terminal.searches import NARROW, show_people
from themis.show.words.scores import headline, impact, other_changes_first
from themis.show.words.searches import (
    acceptance_words,
    amount,
    check_interval,
    checks_guarantee,
    checks_headline,
    guarantee,
    harms,
    protection,
    scores_by_set,
    search_headline,
    set_text,
    verdict_words,
)
from themis.show.words.values import count, percent, set_phrase, visible

STYLES = {
    "violated": "bold red",
    "holds": "green",
    "accepted": "magenta",
    "not enough evidence": "yellow",
}
SETS = 10  # found sets that are named


def render_checks(
    result: Result,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """The verdicts of a result as text for a terminal or a file."""
    console = make_console(file, width=width)
    return render(show_checks(result, width=console.width, everything=everything), console)


def render_check_lines(result: Result, *, file: IO[str] | None = None) -> str:
    """One line per check, and the failures."""
    lines = [Sentence(f"{visible(each.name)}: {verdict_words(each)}") for each in result.checks]
    failures = render_headlines(replace(result, scores=()), file=file)
    return render(iter(lines), make_console(file)) + failures


def show_checks(result: Result, *, width: int, everything: bool) -> Iterator[RenderableType]:
    """The table of verdicts, then what is behind those that do not hold."""
    yield Sentence(checks_headline(result.checks), HEADLINE)
    yield from show_doubts(replace(result, scores=()), everything=everything)
    yield indented(_table(result.checks) if width >= NARROW else _narrow_table(result.checks))
    for each in result.checks:
        if each.verdict == "violated":
            yield ""
            yield Sentence(f"{visible(each.name)}: {verdict_words(each)}", STYLES["violated"])
            yield from map(indented, _details(each, result, width, everything))
    yield from _accepted(result.checks)
    for each in result.checks:
        if each.verdict == "not enough evidence":
            why = "; ".join(filter(None, [each.reason, _found(each, everything)]))
            yield ""
            yield Sentence(f"{visible(each.name)}: {verdict_words(each)}: {why}", WARNING)
            yield from map(indented, _bar(each))
    yield ""
    yield Sentence(checks_guarantee(result), DIM)
    yield from show_cost(result)


def _accepted(checks: tuple[CheckResult, ...]) -> Iterator[RenderableType]:
    """What was let pass, and why: never out of sight."""
    for each in checks:
        if each.accepted:
            yield ""
            name, style = visible(each.name), STYLES["accepted"]
            yield Sentence(f"{name}: accepted" if each.verdict == "accepted" else name, style)
            yield from (indented(Sentence(text)) for text in acceptance_words(each))


def _bar(check: CheckResult) -> Iterator[RenderableType]:
    """The interval on an axis, with the limit across it."""
    if check.low is None or check.high is None:
        return
    end = axis_end(max(check.high, check.max_score))
    style = {"violated": "red", "holds": "green"}.get(check.verdict, "yellow")
    yield axis("", IntervalBar(check.low, check.high, end, style, check.max_score))


def _narrow_table(checks: tuple[CheckResult, ...]) -> Table:
    """Two lines for each check: its name, then the rest."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    for each in checks:
        point = "" if each.score is None else f"{percent(each.score)} "
        ends = check_interval(each)
        numbers = f"{point}({ends})" if point and ends else point or ends
        table.add_row(Text(visible(each.name)))
        verdict = (f"  {verdict_words(each)}", STYLES[each.verdict])
        table.add_row(Text.assemble(verdict, (f"  {numbers}", DIM)))
    return table


def _table(checks: tuple[CheckResult, ...]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=12)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    table.add_row(*(short(head, DIM) for head in ("check", "verdict", "score", "interval")))
    for each in checks:
        verdict = Text(verdict_words(each), STYLES[each.verdict])
        point = "–" if each.score is None else percent(each.score)
        table.add_row(Text(visible(each.name)), verdict, point, short(check_interval(each), DIM))
    return table


def _details(
    check: CheckResult, result: Result, width: int, everything: bool
) -> Iterator[RenderableType]:
    """The interval, the sets above a limit and whom one of them hurts."""
    yield from _bar(check)
    if check.reason:
        yield Sentence(visible(check.reason))
    if check.sets:
        yield Sentence(_found(check, everything))
    score = _telling(check, result)
    if score is not None:
        if check.search:
            yield Sentence(f"{set_text(score.against)}: {percent(score.score)}")
        yield from show_people(score, width=width, everything=everything)


def _found(check: CheckResult, everything: bool) -> str:
    if not check.sets:
        return ""
    shown = check.sets if everything else check.sets[:SETS]
    names = "; ".join(set_text(each) for each in shown)
    more = f"; + {len(check.sets) - len(shown)} more" if len(shown) < len(check.sets) else ""
    return f"{count(len(check.sets), 'minimal set')} found: {names}{more}"


def _telling(check: CheckResult, result: Result) -> Score | None:
    """The score above the limit that says most: of a protected set if there is one."""
    scores = scores_by_set(result)
    passed = [each.against for each in check.accepted]
    sets = [each for each in check.sets if each not in passed]
    sets = sets if check.against is None else [check.against]
    known = [scores[check.measure, each] for each in sets if (check.measure, each) in scores]
    above = [each for each in known if each.low > check.max_score]
    return min(above, key=lambda each: (protection(result, each.against), -each.low), default=None)


WIDTH = 72  # pytest puts eight characters before each line
NARROW_PAIRS = 70  # as in display_people: two pairs of people need this much
SETS_OF_A_LIMIT = 3  # found sets that are shown


def limit_line(answer: CheckResult) -> str:
    """The verdict with its numbers, short enough for a list of failed tests."""
    if answer.search:
        return f"{visible(answer.name)}: {_found_above(answer)}"
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


def _found_above(answer: CheckResult) -> str:
    if answer.verdict == "holds":
        return "holds"
    sets = "; ".join(set_text(each) for each in answer.sets[:SETS_OF_A_LIMIT])
    more = "; …" if len(answer.sets) > SETS_OF_A_LIMIT else ""
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
    for score in worst[:SETS_OF_A_LIMIT]:
        yield ""
        yield from _score_parts(score, search.threshold, width)
    if len(worst) > SETS_OF_A_LIMIT:
        yield Sentence(f"and {len(worst) - SETS_OF_A_LIMIT:,} more minimal sets")
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
    yield from (indented(Sentence(visible(str(note)), first="note: ")) for note in score.notes)


def _people(score: CausalScore, width: int) -> Iterator[RenderableType]:
    shown = other_changes_first(score.witnesses)[:WITNESSES]
    if not shown:
        return
    phrase = set_phrase(score.against).removesuffix(" together")
    yield ""
    yield indented(Sentence(f"People who differ only in {phrase}, and {they_get(score)}:"))
    step = 1 if width < NARROW_PAIRS else WITNESSES
    for first in range(0, len(shown), step):
        pairs = shown[first : first + step]
        yield indented(pairs_table(pairs, width, output=score.output))
