"""Whom does it happen to? Two people side by side, what differs marked, and how to see it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from themis.results.model import CausalScore, Result, Witness
from themis.show.reports.html import Html, cut, folded, shell, tag, value
from themis.show.reports.html_people import causal_scores, left_out
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import score_name, score_sentence, set_words
from themis.show.words.values import other_changes_first, visible

FEW = 3  # scores, of which more pairs are shown
LINE = 4_000  # letters of a command or an input


def pairs_section(result: Result, room: Room) -> Html:
    """Two people side by side, again and again; nothing if there are no witnesses."""
    scores = [each for each in causal_scores(result) if each.witnesses]
    if not scores:
        return Html()
    shown = scores[: room.people]
    pairs = room.pairs if len(scores) <= FEW else max(room.pairs // 2, 1)
    return tag(
        "section",
        tag("h2", "People", id="people-title"),
        tag(
            "p",
            "Each card shows two people who are alike in everything but the set, and are decided "
            "on otherwise. The favoured one stands first.",
        ),
        *(_people_of(each, result, replace(room, pairs=pairs)) for each in shown),
        *left_out(len(scores) - len(shown), "set"),
        id="people",
        aria_labelledby="people-title",
    )


def _people_of(score: CausalScore, result: Result, room: Room) -> Html:
    ranked = other_changes_first(score.witnesses)
    cards = [_card(each, score, result, room) for each in ranked[: room.pairs]]
    hidden = len(ranked) - len(cards)
    return tag(
        "div",
        tag("h3", score_name(score)),
        tag("p", score_sentence(score), "."),
        tag("div", *cards, class_="cards"),
        *left_out(hidden, "pair"),
        class_="block",
    )


def _card(pair: Witness, score: CausalScore, result: Result, room: Room) -> Html:
    first, second = pair.inputs
    changed = pair.differs_in
    rows = [_changed_row(name, first, second, room) for name in changed[: 3 * room.common]]
    common = [name for name in first if name not in changed]
    rows += [_common_row(name, first, room) for name in common[: room.common]]
    more = len(changed) - 3 * room.common
    if more > 0:
        rows.append(_more_row(f"and {more:,} more in which they differ"))
    hidden = len(common) - room.common
    if hidden > 0:
        rows.append(_more_row(f"and {hidden:,} more in which they agree"))
    outcome = [tag("td", tag("b", value(each, room.letters))) for each in pair.outputs]
    rows.append(
        tag(
            "tr",
            tag("th", value(score.output or "decision"), scope="row"),
            *outcome,
            class_="outcome",
        )
    )
    phrase = set_words(score.against).removesuffix(" together")
    head = (tag("th", text, scope="col") for text in ("", "One person", "The other"))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", f"They differ only in {phrase}", class_="unseen"),
            tag("thead", tag("tr", *head)),
            tag("tbody", *rows),
        ),
        _reproduce(pair, result),
        class_="card",
    )


def _changed_row(
    name: str, first: Mapping[str, Any], second: Mapping[str, Any], room: Room
) -> Html:
    cells = (tag("td", tag("mark", value(each[name], room.letters))) for each in (first, second))
    return tag("tr", tag("th", value(name, room.letters), scope="row"), *cells, class_="changed")


def _more_row(words: str) -> Html:
    return tag("tr", tag("td", words, colspan=3))


def _common_row(name: str, person: Mapping[str, Any], room: Room) -> Html:
    both = tag("td", value(person[name], room.letters), colspan=2)
    return tag("tr", tag("th", value(name, room.letters), scope="row"), both, class_="both")


def _reproduce(pair: Witness, result: Result) -> Html:
    """How to see it: lines for a shell, else the two inputs as the subject gets them."""
    if pair.reproduce:
        lines = [cut(line, LINE) for line in pair.reproduce]
        return folded("Reproduce both in a shell", shell(lines))
    inputs = [cut(json.dumps(each, ensure_ascii=False), LINE) for each in pair.inputs]
    kind = result.subject.get("kind", "")
    about = f"The two inputs, to give to the {visible(kind)} subject"
    return folded(about, shell(inputs), kind="inputs")
