"""Who loses by which change? A small matrix, or a list where there are many assignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from themis.display_search_words import harms
from themis.display_words import count, label, percent, set_phrase
from themis.reports.markup import Html, table, tag
from themis.reports.people import causal_scores, left_out
from themis.reports.room import Room
from themis.results import CausalScore, Harm, Result

CHANGES_KEPT = 20  # a result keeps at most so many directions of harm; fewer means: all of them
SHADES = (0.01, 0.05, 0.1, 0.25, 0.5)  # from which share on a cell of the matrix is darker


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
    contexts = count(score.direction[0].contexts, "person", "people")
    worst = next(harms(score, most=1))
    picture_or_list = (
        _matrix(score, places) if len(places) <= room.matrix else _changes(score, room)
    )
    rate = ""
    if score.flip_rate is not None and len(places) > 2:
        rate = f" Flip rate {percent(score.flip_rate)}: so often one change changes the decision."
    return tag(
        "div",
        tag("h3", tag("bdi", set_phrase(score.against))),
        tag("p", worst, ".", rate),
        picture_or_list,
        tag("p", f"Counted on {contexts} who were tried with every value.", class_="faint"),
        class_="block",
    )


def _assignments(direction: Sequence[Harm]) -> list[str]:
    """The assignments that the changes lead from and to, in order of appearance."""
    ends = (each for harm in direction for each in (harm.change_from, harm.change_to))
    return list(dict.fromkeys(map(label, ends)))


def _matrix(score: CausalScore, places: Sequence[str]) -> Html:
    lost: dict[tuple[str, str], float] = {}
    for harm in score.direction:
        one, other = label(harm.change_from), label(harm.change_to)
        lost[one, other], lost[other, one] = harm.lost, harm.gained
    unknown = None if len(score.direction) >= CHANGES_KEPT else 0.0
    rows = (
        [tag("bdi", one), *(_harm_cell(one, other, lost, unknown) for other in places)]
        for one in places
    )
    heads = ["from ↓ to →", *(tag("bdi", each) for each in places)]
    caption = f"Who loses when {set_phrase(score.against)} changes"
    return tag("div", table(caption, heads, rows, kind="matrix", hidden_caption=True),
               class_="wide")  # fmt: skip


def _harm_cell(
    one: str, other: str, lost: Mapping[tuple[str, str], float], unknown: float | None
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
            f"Changes of {set_phrase(score.against)} that do most harm",
            ("From", "To", ("lose it", "number"), ("gain it", "number")),
            (
                (
                    tag("bdi", label(each.change_from)),
                    tag("bdi", label(each.change_to)),
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
