"""How do the groups fare? Rates with intervals, and the line at four fifths of the highest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.model import Group, GroupScore, Result
from themis.show.reports.html import Html, folded, join, table, tag
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import group_name, score_name, score_sentence, set_words
from themis.show.reports.scores import details
from themis.show.reports.svg import Axis, Interval, Mark, picture, scale
from themis.show.reports.svg_ratios import (
    PLACES,
    Ratio,
    four_fifths_line,
    rate_interval,
    ratios,
)
from themis.show.words.searches import protection
from themis.show.words.values import count, extremes, impact, rate_text

KINDS = {"below": "grave", "above": "calm", "unclear": "open", "few": "few"}


def groups_section(result: Result, room: Room) -> Html:
    """The groups of every group score; nothing if there are none."""
    scores = [
        each for each in result.scores if isinstance(each, GroupScore) and len(each.groups) > 1
    ]
    scores.sort(key=lambda each: protection(result, each.against))
    if not scores:
        return Html()
    shown = scores[: room.scores // 4]
    axis = Axis.reaching(max(group.high for score in shown for group in score.groups))
    hidden = len(scores) - len(shown)
    return tag(
        "section",
        tag("h2", "Groups", id="groups-title"),
        tag(
            "p",
            "How often each group gets the favourable decision. All intervals of one picture hold "
            "together. The dashed line is at four fifths of the highest rate.",
        ),
        *(_one(each, axis, room) for each in shown),
        *([tag("p", f"{count(hidden, 'more group score')} not shown")] if hidden else []),
        id="groups",
        aria_labelledby="groups-title",
    )


def _one(score: GroupScore, axis: Axis, room: Room) -> Html:
    return tag(
        "div",
        tag("h3", score_name(score)),
        tag("p", _sentence(score), *_about(score)),
        _chart(score, axis, room),
        *_all_groups(score, room),
        class_="block",
    )


def _sentence(score: GroupScore) -> str:
    ratio = impact(score)
    return score_sentence(score) + ("." if ratio is None else f"; {ratio}.")


def _about(score: GroupScore) -> Iterator[Html]:
    parts = list(details(score))
    if parts:
        yield tag("small", " · ".join(parts))


def _chart(score: GroupScore, axis: Axis, room: Room) -> Html:
    shown, hidden = extremes(score.groups, room.groups // 2)
    line = four_fifths_line(score)
    marks = [] if line is None else [Mark(line, "four fifths")]
    known = {} if line is None else _by_group(score)
    means = score.statistic == "mean"
    return table(
        f"Groups of {set_words(score.against)}",
        (
            "Group",
            (scale(axis) if not means else "", "pic"),
            ("Mean" if means else "Rate", "number"),
            ("Interval", "number"),
            *([] if line is None else [("Impact ratio", "number")]),
        ),
        (_row(score, group, known.get(id(group)), axis, marks) for group in shown),
        kind="chart",
        hidden_caption=True,
        foot=f"{hidden:,} groups between these are not drawn" if hidden else None,
    )


def _by_group(score: GroupScore) -> dict[int, Ratio]:
    known = ratios(score) or []
    return {id(group): ratio for group, ratio in zip(score.groups, known, strict=False)}


def _row(
    score: GroupScore, group: Group, ratio: Ratio | None, axis: Axis, marks: Sequence[Mark]
) -> tuple[object, ...]:
    rate, ends = rate_text(score, group.rate), rate_interval(score, group)
    kind = "few" if group.few else "calm" if ratio is None else KINDS[ratio.place]
    drawn = Interval(group.low, group.high, group.rate, f"{rate}, {ends}", kind)
    row = [
        join([group_name(group.values), tag("small", _people(group))]),
        (picture(drawn, axis, marks), "pic"),
        (rate, "number"),
        (ends, "number"),
    ]
    if ratio is not None:
        row.append((ratio_cell(ratio), "number"))
    return tuple(row)


def ratio_cell(ratio: Ratio) -> Html:
    """A ratio with its side of the line in words."""
    if ratio.few:
        return tag("small", PLACES["few"], class_="few")
    place = "the highest" if ratio.ratio == 1.0 else PLACES[ratio.place]
    return join([f"{ratio.ratio:.2f}", tag("small", place, class_=ratio.place)])


def _people(group: Group) -> str:
    people = count(group.samples, "person", "people")
    return f"few rows: {people}" if group.few else people


def _all_groups(score: GroupScore, room: Room) -> Iterator[Html]:
    """The groups that were not drawn, as numbers."""
    drawn, hidden = extremes(score.groups, room.groups // 2)
    if not hidden:
        return
    seen = {id(group) for group in drawn}
    rest = sorted((g for g in score.groups if id(g) not in seen), key=lambda each: -each.rate)
    listed = rest[: room.more_groups]
    if not listed:
        return
    left = len(rest) - len(listed)
    yield folded(
        f"The {count(len(listed), 'group')} that were not drawn",
        table(
            f"Further groups of {set_words(score.against)}",
            ("Group", ("Rate", "number"), ("Interval", "number")),
            (
                (
                    group_name(group.values),
                    (rate_text(score, group.rate), "number"),
                    (rate_interval(score, group), "number"),
                )
                for group in listed
            ),
            hidden_caption=True,
            foot=f"{left:,} more are not shown" if left else None,
        ),
    )
