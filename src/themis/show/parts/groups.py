"""The groups of a score: their rates on one axis, and their ratios to the highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from themis.results.finding import idle_favour
from themis.results.model import FOUR_FIFTHS, GroupScore
from themis.results.parts import Group
from themis.show.blocks import Cell, Content, Head, Number, Table
from themis.show.intervals import Axis, Interval, Mark, ends_text
from themis.show.words.naming import output_noun, rate_text
from themis.show.words.scores import extremes, ratio_text
from themis.show.words.values import count, set_phrase
from themis.show.words.wording import Wording, is_drawn

FOUR_FIFTHS_LINE = "Dashed line: four fifths of the highest rate."
Place = Literal["below", "above", "unclear", "few"]
PLACES: Mapping[Place, str] = {
    "below": "below four fifths",
    "above": "above four fifths",
    "unclear": "unclear",
    "few": "few rows: not judged",
}
KINDS = {"below": "grave", "above": "calm", "unclear": "open", "few": "few"}


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


def group_table(score: GroupScore, words: Wording, *, most: int) -> Table:
    """The groups by falling rate, of many those at both ends, beside the four-fifths line."""
    shown, hidden = extremes(score.groups, most)
    line = four_fifths_line(score)
    marks = () if line is None else (Mark(line, "four fifths"),)
    places = list(map(id, score.groups))
    known = dict(zip(places, ratios(score) or [], strict=False))
    means = score.statistic == "mean"
    axis = Axis.reaching(max((each.high for each in shown), default=1.0))
    axis = Axis(axis.end, is_share=not means)
    heads: list[Head] = ["Group", axis, Number("Mean" if means else "Rate"), Number("Interval"),
                         Number(tested_head(score))]  # fmt: skip
    rows: list[Sequence[Content]] = [
        (
            Cell(words.label(each.values), few_words(each, words)),
            _interval(score, each, known.get(id(each)), axis, marks),
            rate_text(score, each.rate),
            rate_interval(score, each),
            _tested(each),
            *([ratio_cell(known[id(each)])] if known else []),
        )
        for each in shown
    ]
    return Table(
        f"Groups of {set_phrase(score.against)}",
        [*heads, *([Number("Impact ratio")] if known else [])],
        rows,
        count(hidden, "group between these is not shown", "groups between these are not shown")
        if hidden > 0
        else "",
    )


def rates_table(score: GroupScore, words: Wording, *, most: int) -> Table:
    """Nothing but the rates as bars: for where the whole table is further down."""
    whole = group_table(score, words, most=most)
    of = "" if score.output is None else f" of {output_noun(score)}"
    heads = [*whole.heads[:2], Number(f"{score.statistic.capitalize()}{of}")]
    line = "" if four_fifths_line(score) is None else FOUR_FIFTHS_LINE
    rows = [row[:3] for row in whole.rows]
    return Table(whole.title, heads, rows, ". ".join(filter(None, [whole.foot, line])), "bars")


def few_words(group: Group, words: Wording) -> str:
    """That a group is too small to judge, if so."""
    return f"too few {words.people} to judge" if group.few else ""


def _interval(
    score: GroupScore, group: Group, ratio: Ratio | None, axis: Axis, marks: tuple[Mark, ...]
) -> Interval:
    label = f"{rate_text(score, group.rate)}, {rate_interval(score, group)}"
    kind = "few" if group.few else "calm" if ratio is None else KINDS[ratio.place]
    return Interval(group.low, group.high, group.rate, label, kind, axis, marks)


def _tested(group: Group) -> Cell:
    answers = "" if group.answers is None else f"{group.answers:,} with an output"
    return Cell(f"{group.samples:,}", answers)


def ratio_cell(ratio: Ratio) -> Cell:
    """A ratio, and that it is not certainly above the line."""
    if ratio.few:
        return Cell("–", PLACES["few"])
    above = ratio.ratio == 1.0 or ratio.place == "above"
    return Cell(ratio_text(ratio.ratio), "" if above else PLACES[ratio.place])


def tested_head(score: GroupScore) -> str:
    """What the numbers of a table are that say how many were tested."""
    return "Draws" if is_drawn(score) else "Tested"


def rate_interval(score: GroupScore, group: Group) -> str:
    """The ends of a group's rate or mean."""
    return ends_text(group.low, group.high, partial(rate_text, score))
