"""The verdict of a result in one sentence, and all that weakens or voids it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score
from themis.results.notes import Ending
from themis.settings import Stopping
from themis.show.html import Html, cut, join, shell, table, tag, value
from themis.show.reports.document import Room, rest, section, set_words
from themis.show.words.explanations import noise_warning
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import cut_off, failure_text, headline, inconclusive
from themis.show.words.searches import (
    acceptance_words,
    check_interval,
    checks_guarantee,
    checks_headline,
    protected_first,
    search_headline,
    set_text,
    verdict_words,
)
from themis.show.words.values import count, percent, visible

State = Literal["grave", "calm", "open"]
LONGEST = 600  # letters of what stands behind a verdict
NAMED = 6  # found sets in the verdict
STATES: dict[str, State] = {  # others are open
    "violated": "grave",
    "violated, not decided in the baseline": "grave",
    "holds": "calm",
}
ALL_CLEAR = "No execution failed, nothing ended early, and there are no warnings."
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
        why = "" if result.stopped is Ending.DONE else f": {how_it_ended(result.stopped)}"
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
    return tag(
        "div",
        table(
            "The checks",
            ("Check", "Verdict", ("Score", "number"), ("Interval", "number")),
            (_check_row(each, room) for each in shown),
            foot=rest(len(result.checks) - len(shown)),
            kind="chart",
        ),
        class_="block",
    )


def _check_row(check: CheckResult, room: Room) -> tuple[object, ...]:
    words = verdict_words(check)
    reasons = [check.reason] * bool(check.reason) + list(acceptance_words(check))
    notes = (tag("small", cut(each, LONGEST)) for each in reasons[: room.checks])
    score = "–" if check.score is None else percent(check.score)
    name = join([value(check.name, room.letters), *notes])
    return name, chip(_state(words), words), score, check_interval(check)


def chip(state: str, word: str) -> Html:
    """A word with a shape and a colour."""
    return tag("span", word, class_=f"chip {state}")


@dataclass(frozen=True)
class Caution:
    """One thing to know before believing a result."""

    kind: str
    text: str
    commands: tuple[str, ...] = ()
    weakens: bool = True  # the verdict


def cautions(result: Result) -> list[Caution]:
    """All that weakens or voids the verdict, or is good to know, the gravest first, each once."""
    found = {
        each.text: each
        for source in (_failed, _unstable, _cut_short, _notes, _few, _unsure, _rows)
        for each in source(result)
    }
    return list(found.values())


def _failed(result: Result) -> Iterator[Caution]:
    for kind, failure in result.failures.items():
        lines = (failure["reproduce"],) if "reproduce" in failure else ()
        yield Caution("failed", failure_text(kind, failure), lines)


def _unstable(result: Result) -> Iterator[Caution]:
    if result.noise is not None and result.noise.differing:
        yield Caution("noise", noise_warning(result.noise))
    for score in result.scores:
        placebo = score.placebo if isinstance(score, CausalScore) else None
        if placebo is not None and score.low == 0 < score.score:  # the placebo is off it already
            yield Caution(
                "noise",
                f"{set_words(score.against)}: noise alone would give a causal score of "
                f"{percent(placebo.score)} (between {percent(placebo.low)} and "
                f"{percent(placebo.high)}), and this one is not certainly above that",
            )


def _cut_short(result: Result) -> Iterator[Caution]:
    ending = cut_off(result)
    if ending is not None:
        yield Caution("ended early", ending)
    for search in result.searches:
        if search.stopped is not Ending.DONE:
            open_sets = count(search.sets_open, "set")
            yield Caution(
                "ended early",
                f"{search.measure} search: {how_it_ended(search.stopped)}, and {open_sets} "
                f"{'is' if search.sets_open == 1 else 'are'} open",
            )
        elif search.undecided:
            yield Caution(
                "undecided",
                f"{search.measure} search: {count(len(search.undecided), 'set')} could not be "
                "decided",
            )
    yield from (Caution("inconclusive", text) for text in inconclusive(result.scores))


def _notes(result: Result) -> Iterator[Caution]:
    for note in result.notes:
        kind = "note" if note.is_harmless else "warning"
        yield Caution(kind, visible(str(note)), weakens=not note.is_harmless)
    for search in result.searches:
        yield from (Caution("note", f"{search.measure} search: {note}") for note in search.notes)
    for score in result.scores:
        if score.samples:  # what was not measured is said above
            notes = (f"{_name(score)}: {note}" for note in score.notes)
            yield from (Caution("note", note) for note in notes)


def _few(result: Result) -> Iterator[Caution]:
    for score in result.scores:
        few = [each for each in score.groups if each.few] if isinstance(score, GroupScore) else []
        if few:
            has = "has" if len(few) == 1 else "have"
            yield Caution(
                "few rows",
                f"{_name(score)}: {count(len(few), 'group')} {has} too few rows to be called fair "
                "or unfair",
            )


def _unsure(result: Result) -> Iterator[Caution]:
    if Stopping.PAPER in result.rules:
        yield Caution(
            "not certified",
            "the paper's stopping rule was used: that the intervals hold is claimed by it, and "
            "not certified",
        )
    bounds = [_name(each) for each in result.scores if each.lower_bound and not each.notes]
    if bounds:
        yield Caution("lower bound", f"only the lower end says anything of {_listed(bounds)}")


def _rows(result: Result) -> Iterator[Caution]:
    dropped = (result.data or {}).get("dropped")
    if isinstance(dropped, int) and dropped:
        yield Caution("rows", f"{count(dropped, 'row')} of the data could not be used")


def _name(score: Score) -> str:
    return f"{score.measure} score of {set_words(score.against)}"


def _listed(names: Iterable[str], shown: int = 6) -> str:
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def cautions_section(result: Result, room: Room) -> Html:
    """The cautions as a box, or that there are none."""
    found = cautions(result)
    if not found:
        return tag("p", _all_clear(result), class_="clear", id="cautions")
    items = [
        tag(
            "li",
            tag("strong", each.kind),
            " ",
            tag("bdi", cut(each.text, room.sentence)),
            *([shell(cut(line, 4_000) for line in each.commands)] if each.commands else []),
        )
        for each in found[: room.cautions]
    ]
    if len(found) > len(items):
        items.append(tag("li", f"… and {len(found) - len(items):,} more"))
    return section("cautions", "Before you rely on this", tag("ul", *items), kind="cautions")


def _all_clear(result: Result) -> str:
    """Only what the result says: what was looked for, and not found."""
    parts = [ALL_CLEAR]
    noise = result.noise
    if noise is not None:
        parts.append(f"Of {count(noise.inputs, 'input')} that were run again, none differed.")
    elif result.spent.noise:
        again = count(result.spent.noise, "execution")
        parts.append(f"{again} were made again and gave the same decision.")
    return " ".join(parts)
