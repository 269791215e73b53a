"""Checks in a terminal: a table of verdicts, whom the violations hurt; a limit in a test."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score, SearchResult
from themis.results.withheld import is_told, whole_of
from themis.show.intervals import Axis
from themis.show.terminal.parts import (
    FOLDED,
    HEADLINE,
    NUMBER,
    WARNING,
    IntervalBar,
    Page,
    Sentence,
    drawn,
    grid,
    indented,
    make_console,
    render,
    short,
)
from themis.show.terminal.results import brief_doubts, show_cost
from themis.show.terminal.scores import WITNESSES, rates_table, show_pairs
from themis.show.terminal.searches import NARROW, show_people
from themis.show.words.explanations import other_changes_first
from themis.show.words.headlines import headline, score_text
from themis.show.words.scores import impact
from themis.show.words.searches import (
    acceptance_words,
    amount,
    check_interval,
    check_point,
    checks_guarantee,
    guarantee,
    harms,
    protection,
    scores_about,
    search_headline,
    set_text,
    verdict_words,
)
from themis.show.words.values import count, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import brought, wording

STYLES = {
    "violated": "bold red",
    "holds": "green",
    "accepted": HEADLINE,
    "not enough evidence": WARNING,
}
SETS = 10  # found sets that are named


def render_check_lines(result: Result, *, file: IO[str] | None = None) -> str:
    """One line per check, and the failures."""
    lines = (Sentence(f"{visible(each.name)}: {verdict_words(each)}") for each in result.checks)
    return render([*lines, *brief_doubts(result)], make_console(file))


def show_checks(result: Result, *, width: int, everything: bool) -> Iterator[RenderableType]:
    """The table of verdicts, then what is behind those that do not hold."""
    yield Sentence(verdict(result).sentence, HEADLINE)
    yield from brief_doubts(result, everything=everything)
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
    yield Sentence(checks_guarantee(result))
    yield from show_cost(result)


render_checks = Page[Result](show_checks)


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
    axis = Axis.reaching(max(check.high, check.max_score))
    style = {"violated": "red", "holds": "green"}.get(check.verdict, WARNING)
    bar = IntervalBar(check.low, check.high, axis, style, check.max_score)
    yield drawn("", bar, _end(axis, check))


def _end(axis: Axis, of: CheckResult | Score) -> str:
    """The end of an axis that is not in per cent: of groups, in points or their own units."""
    return amount(axis.end, of) if of.measure == "group" else ""


def _narrow_table(checks: tuple[CheckResult, ...]) -> Table:
    """Two lines for each check: its name, then the rest."""
    table = grid(FOLDED)
    for each in checks:
        point = "" if each.score is None else f"{check_point(each)} "
        ends = check_interval(each)
        numbers = f"{point}({ends})" if point and ends else point or ends
        table.add_row(Text(_named(each)))
        verdict = f"{verdict_words(each)}  {numbers}".rstrip()
        table.add_row(Sentence(verdict, STYLES[each.verdict], first="  "))
    return table


def _table(checks: tuple[CheckResult, ...]) -> Table:
    heads = ("check", "verdict", "score", "interval")
    table = grid({**FOLDED, "min_width": 12}, {}, NUMBER, {}, heads=heads)
    for each in checks:
        verdict = Text(verdict_words(each), STYLES[each.verdict])
        ends = short(check_interval(each))
        table.add_row(Text(_named(each)), verdict, check_point(each), ends)
    return table


def _named(check: CheckResult) -> str:
    """The name of a check, which says its limit; of means, also in the units of the output."""
    if check.measure == "causal" or check.statistic == "rate":
        return visible(check.name)
    return f"{visible(check.name)} (the limit is {amount(check.max_score, check)})"


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
            yield Sentence(f"{set_text(score.against)}: {score_text(score)}")
        yield from show_people(score, width=width, everything=everything, words=wording(result))


def _found(check: CheckResult, everything: bool) -> str:
    if not check.sets:
        return ""
    shown = check.sets if everything else check.sets[:SETS]
    names = "; ".join(set_text(each) for each in shown)
    more = f"; + {len(check.sets) - len(shown)} more" if len(shown) < len(check.sets) else ""
    return f"{count(len(check.sets), 'minimal set')} found: {names}{more}"


def _telling(check: CheckResult, result: Result) -> Score | None:
    """The score above the limit that says most: of a protected set if there is one."""
    scores, exact = scores_about(result, check), scores_about(whole_of(result), check)
    passed = [each.against for each in check.accepted]
    sets = [each for each in check.sets if each not in passed]
    sets = sets if check.against is None else [check.against]
    above = [scores[e] for e in sets if e in scores and exact[e].low > check.max_score]
    return min(above, key=lambda each: (protection(result, each.against), -each.low), default=None)


WIDTH = 72  # pytest puts eight characters before each line
SETS_OF_A_LIMIT = 3  # found sets that are shown


def limit_line(answer: CheckResult) -> str:
    """The verdict with its numbers, short enough for a list of failed tests."""
    if answer.search:
        return f"{visible(answer.name)}: {_found_above(answer)}"
    name = visible(answer.name).rpartition(" at most ")[0]
    if answer.score is None:
        return f"{name} at most {answer.max_score:g}: {verdict_words(answer)}, {answer.reason}"
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
        return verdict_words(answer)
    sets = "; ".join(set_text(each) for each in answer.sets[:SETS_OF_A_LIMIT])
    more = "; …" if len(answer.sets) > SETS_OF_A_LIMIT else ""
    found = f"{count(len(answer.sets), 'minimal set')} found ({sets}{more})"
    if answer.verdict == "violated":
        return found
    return f"{verdict_words(answer)}, {found}" if answer.sets else verdict_words(answer)


def _parts(
    answer: CheckResult, outcome: Score | SearchResult | None, width: int
) -> Iterator[RenderableType]:
    if answer.reason:
        yield Sentence(f"{verdict_words(answer)}: {answer.reason}")
    if isinstance(outcome, SearchResult):
        yield from _search_parts(outcome, width)
    elif outcome is not None and outcome.samples:
        yield ""
        yield from _score_parts(outcome, answer.max_score, width)


def _search_parts(search: SearchResult, width: int) -> Iterator[RenderableType]:
    yield ""
    yield Sentence(search_headline(search, brought(search.minimal_sets)))
    worst = sorted(search.minimal_sets, key=lambda score: -score.low)
    for score in worst[:SETS_OF_A_LIMIT]:
        yield ""
        yield from _score_parts(score, search.threshold, width)
    if len(worst) > SETS_OF_A_LIMIT:
        yield Sentence(f"and {len(worst) - SETS_OF_A_LIMIT:,} more minimal sets")
    yield ""
    yield Sentence(guarantee(search))


def _score_parts(score: Score, limit: float, width: int) -> Iterator[RenderableType]:
    words = brought([score])
    yield Sentence(headline(score, words), break_before=" (")
    if is_told(score):
        axis = Axis.reaching(max(score.high, limit))
        bar = IntervalBar(score.low, score.high, axis, limit=limit)
        yield indented(drawn("", bar, _end(axis, score)))
        yield indented(Sentence(f"┃ is the limit, {amount(limit, score)}"))
    if isinstance(score, CausalScore):
        yield from (indented(Sentence(text)) for text in harms(score, most=2, words=words))
        pairs = other_changes_first(score.witnesses)[:WITNESSES]
        yield from map(indented, show_pairs(score, pairs, width=width, words=words))
    elif isinstance(score, GroupScore):
        if score.groups:
            yield indented(rates_table(score, width=width, words=words))
        ratio = impact(score)
        yield from [] if ratio is None else [indented(Sentence(ratio))]
    yield from (indented(Sentence(visible(str(note)), first="note: ")) for note in score.notes)
