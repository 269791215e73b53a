"""What is the verdict, in one sentence? That of the checks, the searches, or the worst score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from themis.results.model import CheckResult, Result, Score
from themis.results.verdicts_search_facts import how_it_ended
from themis.show.reports.html import Html, cut, join, table, tag, value
from themis.show.reports.html_room import Room
from themis.show.words.scores_display_result_words import cut_off
from themis.show.words.searches import protected_first, search_headline, set_text
from themis.show.words.searches_display_check_words import (
    acceptance_words,
    check_interval,
    checks_guarantee,
    checks_headline,
    verdict_words,
)
from themis.show.words.values import count, headline, percent

State = Literal["grave", "calm", "open"]
LONGEST = 600  # letters of what stands behind a verdict
NAMED = 6  # found sets in the verdict
STATES: dict[str, State] = {"violated": "grave", "holds": "calm"}  # others are open
GRAVITY: tuple[State, ...] = ("calm", "open", "grave")


@dataclass(frozen=True)
class Statement:
    """The verdict: a word, a sentence, and what stands behind its number."""

    state: State
    word: str
    sentence: str
    behind: str = ""


def statement(result: Result) -> Statement:
    """The verdict of a result."""
    if result.checks:
        return _of_checks(result)
    if result.searches:
        return _of_searches(result)
    return _of_scores(result)


def _of_checks(result: Result) -> Statement:
    verdicts = [verdict_words(each) for each in result.checks]
    worst = max(verdicts, key=lambda each: GRAVITY.index(_state(each)))
    return Statement(_state(worst), worst, checks_headline(result.checks), checks_guarantee(result))


def _state(verdict: str) -> State:
    """How a verdict is shown; one that neither holds nor is violated is open."""
    return STATES.get(verdict, "open")


def _of_searches(result: Result) -> Statement:
    sentence = "; ".join(search_headline(each) for each in result.searches)
    ordered = protected_first(result)
    found = list(dict.fromkeys(n for each in result.searches for n in ordered(each).found))
    if found:
        more = f" and {count(len(found) - NAMED, 'more set')}" if len(found) > NAMED else ""
        names = cut("; ".join(map(set_text, found[:NAMED])), LONGEST)
        return Statement("grave", "found", sentence, f"{names}{more}.")
    if not all(each.conclusive for each in result.searches):
        return Statement("open", "not finished", sentence)
    return Statement("calm", "none found", sentence)


def _of_scores(result: Result) -> Statement:
    measured = [each for each in result.scores if each.samples]
    if not measured:
        why = "" if result.stopped == "done" else f": {how_it_ended(result.stopped)}"
        return Statement("open", "inconclusive", f"nothing was measured{why}")
    worst = gravest(measured)
    sentence, behind = split(headline(worst))
    if len(measured) > 1:
        behind += f" This is the gravest of {count(len(measured), 'score')}."
    missing = len(result.scores) - len(measured)
    if missing:
        behind += f" {count(missing, 'further score')} {'was' if missing == 1 else 'were'} not "
        behind += "measured."
    ending = cut_off(result)
    if ending is not None:
        behind += f" {ending[0].upper()}{ending[1:]}."
    if not worst.conclusive or (worst.low == 0 and (missing or ending)):
        return Statement("open", "inconclusive", sentence, behind)
    if worst.low > 0:
        return Statement("grave", "certainly above 0", sentence, behind)
    return Statement("calm", "may be 0" if worst.high > 0 else "0", sentence, behind)


def gravest(scores: list[Score]) -> Score:
    """The score that is certainly the highest, as far as that is known."""
    return max(scores, key=lambda each: (each.low, each.high))


def split(sentence: str) -> tuple[str, str]:
    """A headline and, as a sentence of its own, what stands in its last parentheses."""
    start, found, end = sentence.rpartition(" (")
    if not found or not end.endswith(")"):
        return sentence, ""
    return start, f"{end[:1].upper()}{end[1:-1]}."


def checks_table(result: Result, room: Room) -> Html:
    """The verdict of each check."""
    if not result.checks:
        return Html()
    shown = result.checks[: room.checks]
    hidden = len(result.checks) - len(shown)
    return tag(
        "div",
        table(
            "The checks",
            ("Check", ("Verdict", ""), ("Score", "number"), ("Interval", "number")),
            (_check_row(each, room) for each in shown),
            foot=f"{hidden:,} more are not shown" if hidden else None,
            kind="chart",
            hidden_caption=True,
        ),
        class_="block",
    )


def _check_row(check: CheckResult, room: Room) -> tuple[object, ...]:
    name = join([value(check.name, room.letters), _reason(check, room)])
    score = "–" if check.score is None else percent(check.score)
    return (
        name,
        chip(_state(verdict_words(check)), verdict_words(check)),
        (score, "number"),
        (
            check_interval(check),
            "number",
        ),
    )


def _reason(check: CheckResult, room: Room) -> Html:
    texts = [check.reason] * bool(check.reason) + list(acceptance_words(check))
    return join(tag("small", cut(each, LONGEST)) for each in texts[: room.checks])


def chip(state: str, word: str) -> Html:
    """A word with a shape and a colour."""
    return tag("span", word, class_=f"chip {state}")
