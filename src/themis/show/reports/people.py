"""Whom does it happen to? Two people side by side, what differs marked, and how to see it again.

Who loses by which change? A small matrix, or a list where there are many assignments.

Where do the flips live? Descriptions of people, and how many of the flips they explain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from themis.inputs.characteristics import Value
from themis.results.model import CausalScore, Harm, Region, Result, Witness
from themis.show.reports.html import (
    LONGEST_SENTENCE,
    Html,
    Room,
    causal_scores,
    cut,
    folded,
    group_name,
    join,
    left_out,
    score_name,
    score_sentence,
    set_words,
    shell,
    table,
    tag,
    value,
)
from themis.show.reports.svg import Axis, Interval, picture
from themis.show.words.scores import counted_people, other_changes_first
from themis.show.words.searches import harms
from themis.show.words.values import count, percent, visible

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


CHANGES_KEPT = 20  # a result keeps at most so many directions of harm; fewer means: all of them
SHADES = (0.01, 0.05, 0.1, 0.25, 0.5)  # from which share on a cell of the matrix is darker

Key = tuple[tuple[str, Value], ...]


def harm_section(result: Result, room: Room) -> Html:
    """Who loses by which change, as a small matrix for each set."""
    scores = [each for each in causal_scores(result) if each.direction]
    if not scores:
        return Html()
    shown = scores[: room.people]
    return tag(
        "section",
        tag("h2", "Direction of harm", id="harm-title"),
        tag(
            "p",
            "Read a row, then a column: of people who are changed from the one to the other, this "
            "share loses the favourable decision.",
        ),
        *(_harm_of(each, room) for each in shown),
        *left_out(len(scores) - len(shown), "set"),
        id="harm",
        aria_labelledby="harm-title",
    )


def _harm_of(score: CausalScore, room: Room) -> Html:
    places = _assignments(score.direction)
    worst = cut(next(harms(score, most=1)), LONGEST_SENTENCE)
    picture_or_list = (
        _matrix(score, places) if len(places) <= room.matrix else _changes(score, room)
    )
    rate = ""
    if score.flip_rate is not None and len(places) > 2:
        rate = f" Flip rate {percent(score.flip_rate)}: so often one change changes the decision."
    return tag(
        "div",
        tag("h3", score_name(score)),
        tag("p", worst, ".", rate),
        picture_or_list,
        tag("p", f"Counted on {counted_people(score)}.", class_="faint"),
        class_="block",
    )


def _assignments(direction: Sequence[Harm]) -> dict[Key, Html]:
    """The assignments that the changes lead from and to, with their names, as they appear."""
    ends = (each for harm in direction for each in (harm.change_from, harm.change_to))
    return {_key(each): group_name(each) for each in ends}


def _key(values: Mapping[str, Value]) -> Key:
    """An assignment by its values: names are cut, so that two may look the same."""
    return tuple(values.items())


def _matrix(score: CausalScore, names: Mapping[Key, Html]) -> Html:
    lost: dict[tuple[Key, Key], float] = {}
    for harm in score.direction:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other], lost[other, one] = harm.lost, harm.gained
    unknown = None if len(score.direction) >= CHANGES_KEPT else 0.0
    rows = (
        [name, *(_harm_cell(one, other, lost, unknown) for other in names)]
        for one, name in names.items()
    )
    caption = f"Who loses when {set_words(score.against)} changes"
    shown = table(
        caption, ["from ↓ to →", *names.values()], rows, kind="matrix", hidden_caption=True
    )
    return tag("div", shown, class_="wide")


def _harm_cell(
    one: Key, other: Key, lost: Mapping[tuple[Key, Key], float], unknown: float | None
) -> tuple[str, str]:
    if one == other:
        return "–", "same"
    share = lost.get((one, other), unknown)
    if share is None:
        return "not kept", "same"
    shade = sum(share >= each for each in SHADES)
    return percent(share), f"shade{shade}"


def _changes(score: CausalScore, room: Room) -> Html:
    shown = score.direction[: room.changes]
    hidden = len(score.direction) - len(shown)
    return tag(
        "div",
        table(
            f"Changes of {set_words(score.against)} that do most harm",
            ("From", "To", ("lose it", "number"), ("gain it", "number")),
            (
                (
                    group_name(each.change_from),
                    group_name(each.change_to),
                    (percent(each.lost), "number"),
                    (percent(each.gained), "number"),
                )
                for each in shown
            ),
            hidden_caption=True,
            foot=f"{hidden:,} more changes do harm" if hidden else None,
        ),
        class_="wide",
    )


def regions_section(result: Result, room: Room) -> Html:
    """Among which people the flips are found; nothing where that was not looked for."""
    scores = [each for each in causal_scores(result) if each.regions]
    if not scores:
        return Html()
    return tag(
        "section",
        tag("h2", "Where the flips live", id="regions-title"),
        tag(
            "p",
            "Descriptions of people among whom many of the changed decisions are found. They were "
            "counted on inputs that had no part in choosing them.",
        ),
        *(_regions_of(each, room) for each in scores[: room.people]),
        *left_out(max(len(scores) - room.people, 0), "set"),
        id="regions",
        aria_labelledby="regions-title",
    )


def _regions_of(score: CausalScore, room: Room) -> Html:
    return tag(
        "div",
        tag("h3", score_name(score)),
        table(
            f"Where {set_words(score.against)} decides",
            (
                "People with",
                ("Share of all flips", "pic"),
                ("Flips here", "number"),
                ("Inputs here", "number"),
                ("As often", "number"),
            ),
            (_region_row(each, room) for each in score.regions[: room.regions]),
            kind="chart",
            hidden_caption=True,
        ),
        *left_out(max(len(score.regions) - room.regions, 0), "region"),
        class_="block",
    )


def _region_row(region: Region, room: Room) -> tuple[object, ...]:
    ends = f"between {percent(region.coverage_low)} and {percent(region.coverage_high)}"
    drawn = Interval(
        region.coverage_low,
        region.coverage_high,
        region.coverage,
        f"{percent(region.coverage)}, {ends}",
        "grave",
    )
    conditions = [tag("span", cut(visible(each), room.letters)) for each in region.conditions]
    return (
        join([tag("span", *_with_and(conditions), class_="conditions"),
              tag("small", f"counted on {count(region.flips, 'flip')}")]),
        (join([picture(drawn, Axis()), tag("small", ends)]), "pic"),
        (percent(region.coverage), "number"),
        (percent(region.share), "number"),
        (f"{region.lift:.1f} ×", "number"),
    )  # fmt: skip


def _with_and(conditions: Sequence[Html]) -> Iterator[Html]:
    for place, each in enumerate(conditions):
        if place:
            yield Html(" and ")
        yield each
