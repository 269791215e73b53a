"""Who loses by which change? A small matrix, or a list where there are many assignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from themis.inputs.characteristics import Value
from themis.results.model import CausalScore, Harm, Result
from themis.show.reports.html import Html, cut, table, tag
from themis.show.reports.html_people import causal_scores, left_out
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import LONGEST_SENTENCE, group_name, score_name, set_words
from themis.show.words.searches import harms
from themis.show.words.values import counted_people, percent

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
