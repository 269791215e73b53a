"""The sections on scores and on groups: intervals on one axis, the numbers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from themis.results.model import FOUR_FIFTHS, CausalScore, GroupScore, Result, Score
from themis.results.parts import Group
from themis.results.withheld import is_told
from themis.show.html import Html, cut, folded, join, table, tag
from themis.show.intervals import Axis, Interval, Mark, ends_text
from themis.show.reports.document import (
    MORE_SCORES,
    Room,
    block,
    blocks,
    group_name,
    rest,
    score_name,
    score_sentence,
    scores_of,
    section,
    set_words,
)
from themis.show.svg import picture, scale
from themis.show.words.favours import idle_favour
from themis.show.words.headlines import beyond
from themis.show.words.scores import by_set, extremes, impact, lesser, method, ratio_text
from themis.show.words.searches import amount
from themis.show.words.units import ends_of, in_units, rate_text
from themis.show.words.values import at_least, count, percent, visible
from themis.show.words.verdicts import state_of
from themis.show.words.wording import PLAIN, Wording, is_drawn

OPEN_SCORES = 8  # more of them are folded away
MEANINGS = {
    "causal": "The causal score (counterfactual flip rate) is the share of inputs for which the "
    "decision changes when only this is changed; of numbers that are compared by degrees, by how "
    "much of their scale they change on average.",
    "group": "The group score (statistical parity difference) is the largest difference between "
    "the groups’ rates of favourable decisions; of numbers, between their means.",
}


def scores_section(result: Result, room: Room) -> Html:
    """All scores that were measured; nothing if there are none."""
    sets = by_set([each for each in scores_of(result, Score) if each.samples])
    every = [score for scores in sets.values() for score in scores]
    folded_away = lesser(every)
    measured = [each for each in every if each not in folded_away]
    if not measured:
        return Html()
    shown = measured[: room.scores]
    axis = Axis.reaching(max(map(_reach, shown)))
    meanings = (
        f"{meaning} "
        for measure, meaning in MEANINGS.items()
        if any(each.measure == measure for each in shown)
    )
    return section(
        "scores",
        "Statistics",
        tag("p", *meanings),
        _scores_table(
            "Scores with their intervals",
            shown,
            axis,
            result,
            room,
            rest(len(measured) - len(shown), *MORE_SCORES),
        ),
        _legend(result, shown),
        *_among_rows(folded_away[: room.scores], axis, result, room),
        fold=len(measured) > OPEN_SCORES or bool(result.searches),
    )


def _scores_table(
    title: str, scores: Sequence[Score], axis: Axis, result: Result, room: Room, foot: str = ""
) -> Html:
    return table(
        title,
        ("Set", (scale(axis), "pic"), ("Score", "number"), ("Interval", "number")),
        (_row(each, axis, _limits(result, each), room.words) for each in scores),
        kind="chart",
        foot=foot,
    )


def _among_rows(scores: Sequence[Score], axis: Axis, result: Result, room: Room) -> Iterator[Html]:
    """What rows show among themselves, folded: it is the lesser part of the same findings."""
    if scores:
        title = "Within the rows: compared with each other only"
        yield folded(title, _scores_table(title, scores, axis, result, room))


def _reach(score: Score) -> float:
    noise = _noise(score)
    if not is_told(score):
        return 0.0
    return max(score.score if score.lower_bound else score.high, noise[1] if noise else 0.0)


def _noise(score: Score) -> tuple[float, float] | None:
    """Between which ends noise alone would give a score."""
    placebo = score.placebo if isinstance(score, CausalScore) else None
    return None if placebo is None else (placebo.low, placebo.high)


def _row(score: Score, axis: Axis, limits: Sequence[Mark], words: Wording) -> tuple[object, ...]:
    drawn = Interval(
        score.low,
        1.0 if score.lower_bound else score.high,
        None if score.lower_bound else score.score,
        f"{point(score)}, {interval(score)}",
        state(score),
        _noise(score),
    )
    name = join([tag("b", score_name(score)), about(score, words)])
    image = picture(drawn, axis, limits) if is_told(score) else ""
    return name, image, point(score), interval(score)


def state(score: Score) -> str:
    """How a score is drawn: certainly above 0, or not, or not known well enough."""
    return state_of(score)


def point(score: Score) -> str:
    """The score for reading; of a lower bound, the bound."""
    if not is_told(score):
        return "–"
    return f"≥ {in_units(score.low, score)}" if score.lower_bound else in_units(score.score, score)


def interval(score: Score) -> str:
    """The ends of a score."""
    if not is_told(score):
        return "not shown"
    if score.lower_bound and score.low < score.high:
        return at_least(in_units(score.low, score))
    units = partial(in_units, of=score)
    return ends_text(score.low, score.high, units)


def about(score: Score, words: Wording = PLAIN) -> Html:
    """What kind of score this is and what is behind it."""
    parts = [f"{score.measure} score", method(score, words), *details(score)]
    return tag("small", " · ".join(parts))


def details(score: Score) -> Iterator[str]:
    """How outputs differ and of whom a score is, where that needs saying."""
    is_rate = isinstance(score, GroupScore) and score.statistic == "rate"
    if isinstance(score, GroupScore) and not is_rate:
        yield "difference of means"
    elif score.distance != "exact":
        yield _rates(score) if isinstance(score, GroupScore) else _distance(score)
    if score.scale is not None and not is_rate:
        yield f"on a scale from {ends_of(score.scale)}"
    if is_drawn(score) and isinstance(score, GroupScore):
        yield "drawn from the profile"
    if score.population == "rows":
        yield "given rows"
    if score.counterfactuals == "within":
        yield "compared among the rows only"
    placebo = score.placebo if isinstance(score, CausalScore) else None
    if placebo is not None:
        yield (
            f"noise alone would give {percent(placebo.score)} "
            f"({percent(placebo.low)} – {percent(placebo.high)})"
        )


def _rates(score: GroupScore) -> str:
    """Of which numbers rates are, where that is known."""
    if score.favours is None:
        return "difference of rates"
    return f"difference of rates: favourable is {cut(visible(score.favours))}"


def _distance(score: Score) -> str:
    """What counts as a different output."""
    kind, _, tolerance = score.distance.partition(" ")
    if kind == "relational" and not tolerance:
        return "how far numbers are apart, as a share of the scale"
    if kind in ("threshold", "relational"):
        return f"numbers that differ{beyond(score)}"
    return f"distance: {cut(visible(score.distance))}"


def _limits(result: Result, score: Score) -> list[Mark]:
    """The limits that a score was measured against."""
    about = (score.measure, score.output)
    limits = {
        each.max_score
        for each in result.checks
        if (each.measure, each.output) == about and (each.search or each.against == score.against)
    }
    limits |= {s.threshold for s in result.searches if (s.measure, s.output) == about}
    return [Mark(each, amount(each, score)) for each in sorted(limits)]


KEYS = {
    "grave": "difference found",
    "calm": "no difference found",
    "open": "undecided",
}


def _legend(result: Result, scores: Sequence[Score]) -> Html:
    states = set(map(state, scores))
    items = [_key(kind, words) for kind, words in KEYS.items() if kind in states]
    marks = sorted({m.name for each in scores for m in _limits(result, each)})
    if marks:
        kind = "limit" if result.checks else "threshold"
        items.append(_key("line", f"{kind}: {', '.join(marks[:4])}"))
    if any(map(_noise, scores)):
        items.append(_key("noise", "noise alone"))
    return tag("p", *items, class_="legend")


def _key(kind: str, words: str) -> Html:
    return tag("span", tag("i", "", class_=f"key {kind}", aria_hidden="true"), words)


Place = Literal["below", "above", "unclear", "few"]
PLACES: Mapping[Place, str] = {
    "below": "below four fifths",
    "above": "above four fifths",
    "unclear": "unclear",
    "few": "few rows: not judged",
}
KINDS = {"below": "grave", "above": "calm", "unclear": "open", "few": "few"}


def groups_section(result: Result, room: Room) -> Html:
    """The groups of every group score; nothing if there are none."""
    scores = [each for each in scores_of(result, GroupScore) if len(each.groups) > 1]
    most = room.scores // 4
    ends = (group.high for score in scores[:most] for group in score.groups)
    axis = Axis.reaching(max(ends, default=1.0))
    what = "How often each group gets the favourable decision."
    if any(each.statistic == "mean" for each in scores):
        what = "How often each group gets a favourable output, or the mean of what it gets."
    return blocks(
        "groups",
        "Rates of groups",
        f"{what} All intervals of one picture hold together. The dashed line is at four fifths of "
        "the highest rate.",
        scores,
        lambda each: _groups_of(each, axis, room),
        most=most,
        noun="group score",
    )


def _groups_of(score: GroupScore, axis: Axis, room: Room) -> Html:
    ratio = impact(score)
    words = score_sentence(score, room) + ("." if ratio is None else f"; {ratio}.")
    more = " · ".join(details(score))
    drawn, hidden = extremes(score.groups, room.groups // 2)
    return block(
        score_name(score),
        tag("p", words, *([tag("small", more)] if more else [])),
        _chart(score, drawn, hidden, axis, room),
        *(_other_groups(score, drawn, room) if hidden else ()),
    )


def _chart(score: GroupScore, drawn: Sequence[Group], hidden: int, axis: Axis, room: Room) -> Html:
    line = four_fifths_line(score)
    marks = [] if line is None else [Mark(line, "four fifths")]
    known: dict[int, Ratio] = {}
    if line is not None:
        known = dict(zip(map(id, score.groups), ratios(score) or (), strict=True))
    means = score.statistic == "mean"
    return table(
        f"Groups of {set_words(score.against)}",
        (
            "Group",
            (scale(axis) if not means else "", "pic"),
            ("Mean" if means else "Rate", "number"),
            ("Interval", "number"),
            *([("Impact ratio", "number")] if known else []),
        ),
        (_group_row(score, group, known.get(id(group)), axis, marks, room) for group in drawn),
        kind="chart",
        foot=rest(hidden, "group between these is not drawn", "groups between these are not drawn"),
    )


def _group_row(
    score: GroupScore,
    group: Group,
    ratio: Ratio | None,
    axis: Axis,
    marks: Sequence[Mark],
    room: Room,
) -> tuple[object, ...]:
    rate, ends = rate_text(score, group.rate), rate_interval(score, group)
    kind = "few" if group.few else "calm" if ratio is None else KINDS[ratio.place]
    drawn = Interval(group.low, group.high, group.rate, f"{rate}, {ends}", kind)
    people = "few rows: " if group.few else ""
    people += room.words.of_group(group, score)
    name = join([group_name(group.values, room), tag("small", people)])
    cells = (name, picture(drawn, axis, marks), rate, ends)
    return cells if ratio is None else (*cells, ratio_cell(ratio))


def ratio_cell(ratio: Ratio) -> Html:
    """A ratio with its side of the line in words."""
    if ratio.few:
        return tag("small", PLACES["few"], class_="few")
    place = "the highest" if ratio.ratio == 1.0 else PLACES[ratio.place]
    return join([ratio_text(ratio.ratio), tag("small", place, class_=ratio.place)])


def _other_groups(score: GroupScore, drawn: Sequence[Group], room: Room) -> Iterator[Html]:
    """The groups that were not drawn, as numbers."""
    seen = {id(group) for group in drawn}
    others = sorted((g for g in score.groups if id(g) not in seen), key=lambda each: -each.rate)
    listed = others[: room.more_groups]
    if listed:
        yield folded(
            f"The {count(len(listed), 'group')} that were not drawn",
            table(
                f"Further groups of {set_words(score.against)}",
                (
                    "Group",
                    (tested_head(score), "number"),
                    ("Rate", "number"),
                    ("Interval", "number"),
                ),
                (
                    (
                        group_name(g.values, room),
                        f"{g.samples:,}",
                        rate_text(score, g.rate),
                        rate_interval(score, g),
                    )
                    for g in listed
                ),
                foot=rest(len(others) - len(listed)),
            ),
        )


def tested_head(score: GroupScore) -> str:
    """What the numbers of a table are that say how many were tested."""
    return "Draws" if is_drawn(score) else "Tested"


def rate_interval(score: GroupScore, group: Group) -> str:
    """The ends of a group's rate or mean."""
    return ends_text(group.low, group.high, partial(rate_text, score))


@dataclass(frozen=True)
class Ratio:
    """A group's rate by the highest rate. The ends hold whichever group has the highest rate."""

    ratio: float
    low: float
    high: float
    few: bool

    @property
    def place(self) -> Place:
        """Where it certainly lies; of a group with few rows nothing is said."""
        if self.few:
            return "few"
        if self.high < FOUR_FIFTHS:
            return "below"
        return "above" if self.low >= FOUR_FIFTHS else "unclear"


def ratios(score: GroupScore) -> list[Ratio] | None:
    """The impact ratio of each group; None where a ratio means nothing.

    The groups' intervals hold together, so these do as well. Where groups are unknown, any of
    them may have a higher rate.
    """
    judged = [group for group in score.groups if not group.few] or list(score.groups)
    best = max((group.rate for group in judged), default=0.0)
    if score.impact_ratio is None or score.statistic == "mean" or not best or idle_favour(score):
        return None
    highest = 1.0 if score.lower_bound else max(group.high for group in judged)
    surely = max(group.low for group in judged)
    return [
        Ratio(
            min(group.rate / best, 1.0),
            group.low / highest,
            min(group.high / surely, 1.0) if surely > 0 else 1.0,
            group.few,
        )
        for group in score.groups
    ]


def four_fifths_line(score: GroupScore) -> float | None:
    """The rate that is four fifths of the highest."""
    best = max((group.rate for group in score.groups if not group.few), default=0.0)
    return FOUR_FIFTHS * best if ratios(score) is not None and best else None
