"""How do the scores compare? One picture of all intervals, the numbers beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from themis.results.model import CausalScore, GroupScore, Result, Score
from themis.show.reports.html import Html, cut, join, table, tag
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import score_name, set_name
from themis.show.reports.svg import Axis, Interval, Mark, picture, scale
from themis.show.words.scores_display_result_words import by_set, hidden_changes
from themis.show.words.searches import amount, protection
from themis.show.words.values import apart_text, method, percent, visible

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
