"""How do the scores compare? One picture of all intervals, the numbers beside it.

How do the groups fare? Rates with intervals, and the line at four fifths of the highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.model import CausalScore, Group, GroupScore, Result, Score
from themis.show.reports.html import (
    Html,
    Room,
    cut,
    folded,
    group_name,
    join,
    score_name,
    score_sentence,
    set_name,
    set_words,
    table,
    tag,
)
from themis.show.reports.svg import (
    PLACES,
    Axis,
    Interval,
    Mark,
    Ratio,
    four_fifths_line,
    picture,
    rate_interval,
    ratios,
    scale,
)
from themis.show.words.scores import (
    apart_text,
    by_set,
    extremes,
    hidden_changes,
    impact,
    method,
    rate_text,
)
from themis.show.words.searches import amount, protection
from themis.show.words.values import count, percent, visible

MEANINGS = {
    "causal": "The causal score is the share of people for whom changing only this changes the "
    "decision.",
    "group": "The group score is how far apart the groups’ rates of favourable decisions are.",
}


def scores_section(result: Result, room: Room) -> Html:
    """All scores that were measured; nothing if there are none."""
    sets = by_set([each for each in result.scores if each.samples])
    order = sorted(sets, key=lambda names: protection(result, names))
    measured = [score for names in order for score in sets[names]]
    if not measured:
        return Html()
    shown = measured[: room.scores]
    axis = Axis.reaching(max(_reach(each) for each in shown))
    hidden = len(measured) - len(shown)
    rows = (_row(each, axis, _limits(result, each)) for each in shown)
    return tag(
        "section",
        tag("h2", "Scores", id="scores-title"),
        tag("p", *_meanings(shown)),
        table(
            "Scores with their intervals",
            ("Set", (scale(axis), "pic"), ("Score", "number"), ("Interval", "number")),
            rows,
            kind="chart",
            hidden_caption=True,
            foot=f"{hidden:,} more scores are not shown" if hidden else None,
        ),
        _legend(result, shown),
        *_remarks(measured),
        id="scores",
        aria_labelledby="scores-title",
    )


def _meanings(scores: Sequence[Score]) -> Iterator[str]:
    for measure, meaning in MEANINGS.items():
        if any(each.measure == measure for each in scores):
            yield f"{meaning} "


def _reach(score: Score) -> float:
    placebo = score.placebo if isinstance(score, CausalScore) else None
    ends = [score.high if not score.lower_bound else score.score, placebo.high if placebo else 0.0]
    return max(ends)


def _row(score: Score, axis: Axis, limits: Sequence[Mark]) -> tuple[object, ...]:
    placebo = score.placebo if isinstance(score, CausalScore) else None
    drawn = Interval(
        score.low,
        1.0 if score.lower_bound else score.high,
        None if score.lower_bound else score.score,
        f"{point(score)}, {interval(score)}",
        state(score),
        None if placebo is None else (placebo.low, placebo.high),
    )
    return (
        join([tag("b", score_name(score)), about(score)]),
        (picture(drawn, axis, limits), "pic"),
        (point(score), "number"),
        (interval(score), "number"),
    )


def state(score: Score) -> str:
    """How a score is drawn: certainly above 0, or not, or not known well enough."""
    if not score.conclusive:
        return "open"
    return "grave" if score.low > 0 else "calm"


def point(score: Score) -> str:
    """The score for reading; of a lower bound, the bound."""
    return f"≥ {_amount(score, score.low)}" if score.lower_bound else _amount(score, score.score)


def interval(score: Score) -> str:
    """The ends of a score."""
    if score.low == score.high:
        return "exact"
    if score.lower_bound:
        return f"at least {_amount(score, score.low)}"
    return f"{_amount(score, score.low)} – {_amount(score, score.high)}"


def _amount(score: Score, share: float) -> str:
    """A share of people or points between groups, in per cent; between means, in their unit."""
    if isinstance(score, GroupScore) and score.statistic == "mean":
        return apart_text(score, share)
    return percent(share)


def about(score: Score) -> Html:
    """What kind of score this is and what is behind it."""
    parts = [f"{score.measure} score", method(score), *details(score)]
    return tag("small", " · ".join(parts))


def details(score: Score) -> Iterator[str]:
    """How outputs differ and of whom a score is, where that needs saying."""
    if isinstance(score, GroupScore) and score.statistic == "mean":
        yield "difference of means"
    if score.distance != "exact":
        yield f"distance: {cut(visible(score.distance))}"
    if score.scale is not None:
        yield f"on a scale from {score.scale[0]:,.10g} to {score.scale[1]:,.10g}"
    if score.population != "inputs":
        people = {"profile": "people drawn by the profile", "rows": "people of the given rows"}
        yield people[score.population]
    if score.counterfactuals == "within":
        yield "compared among the rows only"
    placebo = score.placebo if isinstance(score, CausalScore) else None
    if placebo is not None:
        yield (
            f"noise alone would give {percent(placebo.score)} "
            f"({percent(placebo.low)} – {percent(placebo.high)})"
        )


def _limits(result: Result, score: Score) -> list[Mark]:
    """The limits that a score was measured against."""
    limits = {
        each.max_score
        for each in result.checks
        if each.measure == score.measure and (each.search or each.against == score.against)
    }
    limits |= {s.threshold for s in result.searches if s.measure == score.measure}
    return [Mark(each, amount(each, score.measure)) for each in sorted(limits)]


def _legend(result: Result, scores: Sequence[Score]) -> Html:
    items = [_key("grave", "certainly above 0")] if _any(scores, "grave") else []
    if _any(scores, "calm"):
        items.append(_key("calm", "not certainly above 0"))
    if _any(scores, "open"):
        items.append(_key("open", "less certain than asked"))
    marks = sorted({m.name for each in scores for m in _limits(result, each)})
    if marks:
        items.append(_key("line", f"limit: {', '.join(marks[:4])}"))
    if any(isinstance(each, CausalScore) and each.placebo for each in scores):
        items.append(_key("noise", "noise alone"))
    return tag("p", *items, class_="legend")


def _any(scores: Sequence[Score], kind: str) -> bool:
    return any(state(each) == kind for each in scores)


def _key(kind: str, words: str) -> Html:
    return tag("span", tag("i", "", class_=f"key {kind}", aria_hidden="true"), words)


def _remarks(scores: Sequence[Score]) -> Iterator[Html]:
    for each in by_set(scores).values():
        remark = hidden_changes(each)
        if remark is not None:
            name = tag("b", set_name(each[0].against))
            yield tag("p", name, ": ", remark, ".", class_="remark")


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
        (_group_row(score, group, known.get(id(group)), axis, marks) for group in shown),
        kind="chart",
        hidden_caption=True,
        foot=f"{hidden:,} groups between these are not drawn" if hidden else None,
    )


def _by_group(score: GroupScore) -> dict[int, Ratio]:
    known = ratios(score) or []
    return {id(group): ratio for group, ratio in zip(score.groups, known, strict=False)}


def _group_row(
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
