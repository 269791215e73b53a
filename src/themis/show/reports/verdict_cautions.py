"""What voids a verdict? Failures, noise, budgets, constant outputs: all that a reader must know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from themis.results.model import CausalScore, GroupScore, Noise, Result, Score
from themis.results.verdicts_search_facts import how_it_ended
from themis.show.reports.html import Html, cut, shell, tag
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import set_words
from themis.show.words.scores_display_result_words import cut_off, failure_text, inconclusive
from themis.show.words.values import count, percent, sure, visible


@dataclass(frozen=True)
class Caution:
    """One thing to know before believing a result."""

    kind: str
    text: str
    commands: tuple[str, ...] = ()


def cautions(result: Result) -> list[Caution]:
    """All that weakens or voids the verdict, the gravest first, nothing twice."""
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
        yield Caution("noise", noise_text(result.noise))
    for score in result.scores:
        placebo = score.placebo if isinstance(score, CausalScore) else None
        if placebo is not None and score.low == 0 < score.score:  # the placebo is off it already
            yield Caution(
                "noise",
                f"{set_words(score.against)}: noise alone would give a causal score of "
                f"{percent(placebo.score)} (between {percent(placebo.low)} and "
                f"{percent(placebo.high)}), and this one is not certainly above that",
            )


def noise_text(noise: Noise) -> str:
    """How often the subject answers otherwise when it is asked again."""
    return (
        f"{noise.differing:,} of {count(noise.inputs, 'input')} got another decision when they "
        f"were run again: two runs differ with a chance of {percent(noise.rate)} (between "
        f"{percent(noise.low)} and {percent(noise.high)}, {sure(noise.confidence)})"
    )


def _cut_short(result: Result) -> Iterator[Caution]:
    ending = cut_off(result)
    if ending is not None:
        yield Caution("ended early", ending)
    for search in result.searches:
        if search.stopped != "done":
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
    yield from (Caution("warning", visible(note)) for note in result.notes)
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
    rules = [*(each.stopping for each in result.scores), *(s.stopping for s in result.searches)]
    if "paper" in rules:
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
    hidden = len(found) - len(items)
    if hidden:
        items.append(tag("li", f"… and {hidden:,} more"))
    return tag(
        "section",
        tag("h2", "Before you rely on this", id="cautions-title"),
        tag("ul", *items),
        class_="cautions",
        id="cautions",
        aria_labelledby="cautions-title",
    )


def _all_clear(result: Result) -> str:
    """Only what the result says: what was looked for, and not found."""
    parts = ["No execution failed, nothing ended early, and there are no warnings."]
    noise = result.noise
    if noise is not None:
        parts.append(f"Of {count(noise.inputs, 'input')} that were run again, none differed.")
    elif result.timing.get("repeats"):
        again = count(result.timing["repeats"], "execution")
        parts.append(f"{again} were made again and gave the same decision.")
    return " ".join(parts)
