"""The sections on people: pairs side by side, who loses by which change, where the flips are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from themis.inputs.characteristics import Value
from themis.results.model import CausalScore, Result
from themis.results.parts import Harm, Region, Witness
from themis.show.html import Html, cut, folded, join, shell, table, tag, value
from themis.show.intervals import WHOLE, Interval
from themis.show.reports.document import (
    LONGEST_SENTENCE,
    Room,
    block,
    blocks,
    group_name,
    left_out,
    rest,
    score_name,
    score_sentence,
    scores_of,
    set_words,
)
from themis.show.svg import picture
from themis.show.words.explanations import (
    counted_people,
    covered_text,
    directions_certainty,
    flip_rate_sentence,
    gained_text,
    lost_text,
    other_changes_first,
)
from themis.show.words.headlines import capital
from themis.show.words.searches import harms
from themis.show.words.values import count, percent, share_text, visible, with_followers

FEW = 3  # scores, of which more pairs are shown
LINE = 4_000  # letters of a command or an input


def pairs_section(result: Result, room: Room) -> Html:
    """Two people side by side, again and again; nothing if there are no witnesses."""
    scores = [each for each in scores_of(result, CausalScore) if each.witnesses]
    pairs = room.pairs if len(scores) <= FEW else max(room.pairs // 2, 1)
    return blocks(
        "people",
        "People",
        "Each card shows two people who are alike in everything but the set, and are decided "
        "on otherwise. The favoured one stands first.",
        scores,
        lambda each: _people_of(each, pairs, result, room),
        most=room.people,
    )


def _people_of(score: CausalScore, pairs: int, result: Result, room: Room) -> Html:
    ranked = other_changes_first(score.witnesses)
    cards = [_card(each, score, result, room) for each in ranked[:pairs]]
    return block(
        score_name(score),
        tag("p", score_sentence(score, room), "."),
        tag("div", *cards, class_="cards"),
        *left_out(len(ranked) - len(cards), "pair"),
    )


def _card(pair: Witness, score: CausalScore, result: Result, room: Room) -> Html:
    person, changed = pair.inputs[0], pair.differs_in
    common = [name for name in person if name not in changed]
    rows = [
        _row(name, [tag("mark", value(each[name], room.letters)) for each in pair.inputs],
             "changed", room)
        for name in changed[: 3 * room.common]
    ]  # fmt: skip
    for name in common[: room.common]:
        rows.append(_row(name, [value(person[name], room.letters)], "both", room))
    hidden = {"differ": len(changed) - 3 * room.common, "agree": len(common) - room.common}
    for words, number in hidden.items():
        if number > 0:
            more = f"and {number:,} more in which they {words}"
            rows.append(tag("tr", tag("td", more, colspan=3)))
    outputs = [tag("b", value(each, room.letters)) for each in pair.outputs]
    rows.append(_row(score.output or "decision", outputs, "outcome", room))
    phrase = set_words(score.against).removesuffix(" together")
    phrase += with_followers(score.against, score.followed)
    heads = (tag("th", text, scope="col") for text in ("", "One person", "The other"))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", f"They differ only in {phrase}", class_="unseen"),
            tag("thead", tag("tr", *heads)),
            tag("tbody", *rows),
        ),
        _reproduce(pair, result),
        class_="card",
    )


def _row(name: str, values: Sequence[Html], kind: str, room: Room) -> Html:
    """A characteristic of two people; a single value is that of both."""
    cells = (tag("td", each, colspan=2 if len(values) == 1 else None) for each in values)
    return tag("tr", tag("th", value(name, room.letters), scope="row"), *cells, class_=kind)


def _reproduce(pair: Witness, result: Result) -> Html:
    """How to see it: lines for a shell, else the two inputs as the subject gets them."""
    if pair.reproduce:
        return folded(
            "Reproduce both in a shell", shell(cut(each, LINE) for each in pair.reproduce)
        )
    inputs = [cut(json.dumps(each, ensure_ascii=False), LINE) for each in pair.inputs]
    about = f"The two inputs, to give to the {visible(result.subject.get('kind', ''))} subject"
    return folded(about, shell(inputs), kind="inputs")


CHANGES_KEPT = 20  # a result keeps at most so many directions of harm; fewer means: all of them
SHADES = (0.01, 0.05, 0.1, 0.25, 0.5)  # from which share on a cell of the matrix is darker

Key = tuple[tuple[str, Value], ...]


def harm_section(result: Result, room: Room) -> Html:
    """Who loses by which change, as a small matrix for each set."""
    return blocks(
        "harm",
        "Direction of harm",
        "Read a row, then a column: of people who are changed from the one to the other, this "
        "share loses the favourable decision.",
        [each for each in scores_of(result, CausalScore) if each.direction],
        lambda each: _harm_of(each, room),
        most=room.people,
    )


def _harm_of(score: CausalScore, room: Room) -> Html:
    places = _assignments(score.direction, room)
    rate = ""
    if score.flip_rate is not None and len(places) > 2:
        rate = f" {capital(flip_rate_sentence(score))}."
    shown = _matrix(score, places) if len(places) <= room.matrix else _changes(score, room)
    return block(
        score_name(score),
        tag("p", cut(next(harms(score, most=1, words=room.words)), LONGEST_SENTENCE), ".", rate),
        tag("div", shown, class_="wide"),
        tag(
            "p",
            f"Counted on {counted_people(score, room.words)}{directions_certainty(score)}.",
            class_="faint",
        ),
    )


def _assignments(direction: Sequence[Harm], room: Room) -> dict[Key, Html]:
    """The assignments that the changes lead from and to, with their names, as they appear."""
    ends = (each for harm in direction for each in (harm.change_from, harm.change_to))
    return {_key(each): group_name(each, room) for each in ends}


def _key(values: Mapping[str, Value]) -> Key:
    """An assignment by its values: names are cut, so that two may look the same."""
    return tuple(values.items())


def _matrix(score: CausalScore, names: Mapping[Key, Html]) -> Html:
    lost: dict[tuple[Key, Key], tuple[float, str]] = {}
    for harm in score.direction:
        one, other = _key(harm.change_from), _key(harm.change_to)
        lost[one, other] = (harm.lost, lost_text(harm))
        lost[other, one] = (harm.gained, gained_text(harm))
    unknown = None if len(score.direction) >= CHANGES_KEPT else (0.0, "none seen")
    rows = (
        [name, *(_harm_cell(one, other, lost, unknown) for other in names)]
        for one, name in names.items()
    )
    with_it = with_followers(score.against, score.followed)
    caption = f"Who loses when {set_words(score.against)} changes{with_it}"
    return table(caption, ["from ↓ to →", *names.values()], rows, kind="matrix")


def _harm_cell(
    one: Key,
    other: Key,
    lost: Mapping[tuple[Key, Key], tuple[float, str]],
    unknown: tuple[float, str] | None,
) -> tuple[str, str]:
    if one == other:
        return "–", "same"
    known = lost.get((one, other), unknown)
    if known is None:
        return "not kept", "same"
    share, text = known
    shade = sum(share >= each for each in SHADES)
    return text, f"shade{shade}"


def _changes(score: CausalScore, room: Room) -> Html:
    shown = score.direction[: room.changes]
    return table(
        f"Changes of {set_words(score.against)} that do most harm",
        ("From", "To", ("lose it", "number"), ("gain it", "number")),
        (
            (
                group_name(each.change_from, room),
                group_name(each.change_to, room),
                lost_text(each),
                gained_text(each),
            )
            for each in shown
        ),
        foot=rest(len(score.direction) - len(shown), "more changes do harm"),
    )


def regions_section(result: Result, room: Room) -> Html:
    """Among which people the flips are found; nothing where that was not looked for."""
    return blocks(
        "regions",
        "Where the flips live",
        "Descriptions of people among whom many of the changed decisions are found. They were "
        "counted on inputs that had no part in choosing them.",
        [each for each in scores_of(result, CausalScore) if each.regions],
        lambda each: _regions_of(each, room),
        most=room.people,
    )


def _regions_of(score: CausalScore, room: Room) -> Html:
    return block(
        score_name(score),
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
        ),
        *left_out(len(score.regions) - room.regions, "region"),
    )


def _region_row(region: Region, room: Room) -> tuple[object, ...]:
    low, here, high = map(percent, (region.coverage_low, region.coverage, region.coverage_high))
    ends = f"between {low} and {high}"
    drawn = Interval(region.coverage_low, region.coverage_high, region.coverage,
                     f"{here}, {ends}", "grave")  # fmt: skip
    spans = (tag("span", cut(visible(each), room.letters)) for each in region.conditions)
    conditions = tag("span", Html(" and ".join(spans)), class_="conditions")
    return (
        join([conditions, tag("small", f"counted on {count(region.flips, 'flip')}")]),
        join([picture(drawn, WHOLE), tag("small", ends)]),
        covered_text(region),
        share_text(
            region.share, region.residents, region.inputs or 0, region.share_low, region.share_high
        ),
        f"{region.lift:.1f} ×",
    )
