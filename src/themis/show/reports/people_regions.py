"""Where do the flips live? Descriptions of people, and how many of the flips they explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.model import CausalScore, Region, Result
from themis.show.reports.html import Html, cut, join, table, tag
from themis.show.reports.html_people import causal_scores, left_out
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import score_name, set_words
from themis.show.reports.svg import Axis, Interval, picture
from themis.show.words.values import count, percent, visible


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
