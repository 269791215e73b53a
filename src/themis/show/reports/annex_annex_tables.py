"""Which rates does an audit table want? Counts, selection rates and impact ratios by category."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

from themis.results.model import Group, GroupScore, Result
from themis.show.reports.html import Html, shell, table, tag
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import group_name, score_name, set_words
from themis.show.reports.scores import details
from themis.show.reports.scores_groups import ratio_cell
from themis.show.reports.svg_ratios import Ratio, rate_interval, ratios
from themis.show.words.searches import protection
from themis.show.words.values import count, impact, rate_text

SYNTHETIC = (
    "These rates were measured on inputs that Themis made up from the schema. Scores on synthetic "
    "inputs differ from rates on historical applicants: they tell what the subject does with "
    "people as the schema describes them, and not who applied or what became of them."
)
ROWS = (
    "These rates were measured on rows that were given. They are rates of those people, as far as "
    "the rows stand for them; scores on synthetic inputs differ from rates on historical "
    "applicants, and are named as such where they occur."
)
NYC = (
    "After the tables of New York City Local Law 144 (6 RCNY § 5-301): for each category how many "
    "were tested, how often they got the favourable decision, and that rate divided by the rate of "
    "the most favoured category. A bias audit under that law rests on historical data; where test "
    "data are used instead, its summary has to say so, and why."
)
SMALL = 1e-6


def tables_section(result: Result, room: Room) -> Html:
    """Single characteristics, then intersections, then what was not measured."""
    scores = [each for each in result.scores if isinstance(each, GroupScore) and each.groups]
    scores.sort(key=lambda each: (len(each.against), protection(result, each.against)))
    shown = scores[: room.scores]
    single = [each for each in shown if len(each.against) == 1]
    several = [each for each in shown if len(each.against) > 1]
    hidden = len(scores) - len(shown)
    return tag(
        "section",
        tag("h2", "A. Selection rates and impact ratios", id="rates-title"),
        tag("p", tag("b", statement(scores)), class_="statement"),
        tag("p", NYC),
        *_kind("Single characteristics", single, room),
        *_kind("Intersections", several, room),
        *([tag("p", f"{count(hidden, 'more table')} not shown here")] if hidden else []),
        *_missing(result, scores),
        id="rates",
        aria_labelledby="rates-title",
    )


def statement(scores: Sequence[GroupScore]) -> str:
    """Of whom the rates are, which decides what they may be called."""
    given = any(each.population == "rows" for each in scores)
    return ROWS if given else SYNTHETIC


def _kind(title: str, scores: Sequence[GroupScore], room: Room) -> Iterator[Html]:
    if scores:
        yield tag("h3", title)
        yield from (_one(each, room) for each in scores)


def _one(score: GroupScore, room: Room) -> Html:
    ranked = sorted(zip(score.groups, _ratios(score), strict=True), key=lambda each: -each[0].rate)
    shown = ranked[: room.categories]
    hidden = len(ranked) - len(shown)
    remark = " · ".join(filter(None, [impact(score), *details(score)]))
    return tag(
        "div",
        tag("h4", score_name(score)),
        table(
            f"Categories of {set_words(score.against)}",
            (
                "Category",
                ("Tested", "number"),
                ("Favourable", "number"),
                ("Mean" if score.statistic == "mean" else "Selection rate", "number"),
                ("Interval", "number"),
                ("Impact ratio", "number"),
                ("Interval", "number"),
            ),
            (_row(score, group, ratio) for group, ratio in shown),
            kind="chart",
            hidden_caption=True,
            foot=_foot(hidden),
        ),
        tag("p", f"{remark}. {_unknown(score)}" if remark else _unknown(score), class_="faint"),
        class_="block",
    )


def _ratios(score: GroupScore) -> list[Ratio] | list[None]:
    return ratios(score) or [None] * len(score.groups)


def _foot(hidden: int) -> str | None:
    if not hidden:
        return None
    rest = count(hidden, "more category", "more categories")
    return f"{rest}, with lower rates, not shown here; all stand in the JSON result"


def _unknown(score: GroupScore) -> str:
    if score.population == "rows":
        return "Rows without a valid value are counted under the data of the test log."
    return "No category is unknown: every input has a value of each characteristic."


def _row(score: GroupScore, group: Group, ratio: Ratio | None) -> tuple[object, ...]:
    ends = "–" if ratio is None or ratio.few else _ends(ratio)
    return (
        group_name(group.values),
        (f"{group.samples:,}", "number"),
        (favourable(score, group), "number"),
        (rate_text(score, group.rate), "number"),
        (rate_interval(score, group), "number"),
        ("–" if ratio is None else ratio_cell(ratio), "number"),
        (ends, "number"),
    )


def favourable(score: GroupScore, group: Group) -> str:
    """How many got the favourable decision; unknown where people weigh unequally."""
    number = group.rate * group.samples
    if score.statistic == "mean" or abs(number - round(number)) > SMALL * max(number, 1.0):
        return "–"
    return f"{round(number):,}"


def _ends(ratio: Ratio) -> str:
    if ratio.low == ratio.high:
        return "exact"
    return f"{ratio.low:.2f} – {ratio.high:.2f}"


def _missing(result: Result, scores: Sequence[GroupScore]) -> Iterator[Html]:
    """The tables that protected characteristics call for and this result lacks."""
    inputs = result.schema.get("inputs", {})
    named = inputs.items() if isinstance(inputs, Mapping) else ()
    protected = [n for n, spec in named if isinstance(spec, Mapping) and spec.get("protected")]
    wanted = chain(combinations(protected, 1), combinations(protected, 2))
    measured = {frozenset(each.against) for each in scores}
    missing = [",".join(each) for each in wanted if frozenset(each) not in measured]
    if missing:
        options = [word for each in missing[:12] for word in ("--against", each)]
        yield tag("h3", "Not in this result")
        yield tag(
            "p",
            f"{count(len(missing), 'table')} of protected characteristics and their pairs "
            f"{'is' if len(missing) == 1 else 'are'} missing. To measure:",
        )
        file = (result.source or {}).get("file")
        words = ["themis", "score", *([file] if isinstance(file, str) else [])]
        yield shell([shlex.join([*words, "--measure", "group", *options])])
    elif not scores:
        yield tag("p", "This result holds no group scores, so that there are no rates to list.")
