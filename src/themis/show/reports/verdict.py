"""The verdicts of checks, and all that weakens or invalidates a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from themis.results.model import CausalScore, CheckResult, GroupScore, Result, Score
from themis.results.notes import Ending
from themis.results.withheld import whole_of
from themis.settings import Stopping
from themis.show.html import Html, cut, join, shell, table, tag, value
from themis.show.reports.document import Room, rest, section, set_words
from themis.show.words.explanations import noise_warning, probe_sentence
from themis.show.words.headlines import capital
from themis.show.words.input_notes import command_without
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import cut_off, failure_text, inconclusive
from themis.show.words.searches import (
    acceptance_words,
    check_interval,
    check_point,
    verdict_words,
)
from themis.show.words.values import count, percent, visible
from themis.show.words.verdicts import check_state

LONGEST = 600  # letters of what stands behind a verdict
ALL_CLEAR = "No execution failed, nothing ended early, and there are no warnings."


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
    name = join([value(check.name, room.letters), *notes])
    return name, chip(check_state(words), words), check_point(check), check_interval(check)


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
    """All that weakens or invalidates a verdict, or is good to know, the worst first, each once."""
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
                f"noise alone would give {set_words(score.against)} a causal score of "
                f"{percent(placebo.score)} (between {percent(placebo.low)} and "
                f"{percent(placebo.high)}), and this one may not be above that",
            )


def _cut_short(result: Result) -> Iterator[Caution]:
    ending = cut_off(result)
    if ending is not None:
        yield Caution("ended early", ending)
    for search in result.searches:
        if search.stopped is not Ending.DONE:
            early = search.stopped.is_early or search.sets_open
            open_sets = f"; {count(search.sets_open, 'combination')} not checked" if early else ""
            yield Caution(
                "ended early" if early else "undecided",
                f"{search.measure} search: {how_it_ended(search.stopped)}{open_sets}",
            )
        elif search.undecided:
            yield Caution(
                "undecided",
                f"{search.measure} search: {count(len(search.undecided), 'combination')} undecided",
            )
    yield from (Caution("inconclusive", text) for text in inconclusive(result.scores))


def _notes(result: Result) -> Iterator[Caution]:
    for note in result.notes:
        kind = "note" if note.is_harmless else "warning"
        command = command_without(note, result)
        lines = () if command is None else (command,)
        yield Caution(kind, visible(str(note)), lines, weakens=not note.is_harmless)
    for search in result.searches:
        yield from (Caution("note", f"{search.measure} search: {note}") for note in search.notes)
    harmless = {str(note) for each in result.scores for note in each.notes if note.is_harmless}
    for text, scores in _score_notes(result).items():
        about = f"{_listed(map(_name, scores))}: {text}"
        yield Caution("note", about, weakens=text not in harmless)


def _score_notes(result: Result) -> dict[str, list[Score]]:
    """What is noted of scores alone, and of which; what was not measured is said elsewhere."""
    said, found = set(map(str, result.notes)), dict[str, list[Score]]()
    for score in result.scores:
        for note in score.notes if score.samples else ():
            if str(note) not in said:
                found.setdefault(str(note), []).append(score)
    return found


def _few(result: Result) -> Iterator[Caution]:
    for score in result.scores:
        whole = whole_of(score)
        few = [each for each in whole.groups if each.few] if isinstance(whole, GroupScore) else []
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
        yield Caution("lower bound", f"only the lower end is known of {_listed(bounds)}")


def _rows(result: Result) -> Iterator[Caution]:
    dropped = (result.data or {}).get("dropped")
    is_said = any(note.code == "rows-left-out" for note in result.notes)
    if isinstance(dropped, int) and dropped and not is_said:
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
    outputs = {each.output for each in result.scores if each.output is not None}
    names = [*result.schema.get("inputs", ()), *outputs]
    items = [
        tag(
            "li",
            tag("strong", capital(each.kind)),
            " ",
            tag("bdi", cut(capital(each.text, names), room.sentence)),
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
    if noise is not None and noise.average:
        parts.append(f"{capital(probe_sentence(noise))}.")
    elif noise is not None:
        parts.append(
            f"Of {count(noise.inputs, 'input')} repeated to check consistency, none got a "
            "different decision."
        )
    elif result.spent.noise:
        again = count(result.spent.noise, "execution")
        parts.append(f"{again} were repeated to check consistency, and gave the same decision.")
    return " ".join(parts)
