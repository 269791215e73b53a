"""How is an interval drawn? Small pictures that take whatever width they get.

Places are given in per cent of the width, so nothing is stretched on a wide screen or shrunk on a
narrow one. Numbers stand beside every picture, and shapes differ where colours do.

What is each group's impact ratio, and on which side of the four-fifths line is it?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from themis.results.model import FOUR_FIFTHS, Group, GroupScore
from themis.show.reports.html import Html, empty, tag
from themis.show.words.scores import rate_text

ENDS = (0.05, 0.1, 0.25, 0.5, 1.0)  # where an axis may end
STEPS = 5  # from tick to tick
HEIGHT = 26
MIDDLE = HEIGHT / 2


@dataclass(frozen=True)
class Axis:
    """A line from 0 to `end`, a share."""

    end: float = 1.0

    @classmethod
    def reaching(cls, highest: float) -> Axis:
        """The shortest axis that has room for a share."""
        return cls(next(end for end in ENDS if highest <= end or end == ENDS[-1]))

    @property
    def ticks(self) -> tuple[float, ...]:
        """The shares that are written below it."""
        return tuple(self.end * step / STEPS for step in range(STEPS + 1))

    def place(self, share: float) -> str:
        """Where a share stands, as a coordinate."""
        return f"{100 * min(max(share / self.end, 0.0), 1.0):.2f}%"


@dataclass(frozen=True)
class Mark:
    """A line across a picture: a limit, or the four-fifths line."""

    share: float
    name: str


@dataclass(frozen=True)
class Interval:
    """What a picture shows: a point and the interval around it."""

    low: float
    high: float
    point: float | None
    label: str
    kind: str = "calm"  # calm, grave, few or open
    noise: tuple[float, float] | None = None  # what noise alone would give


def scale(axis: Axis, unit: str = " %") -> Html:
    """The numbers of an axis, to stand above its pictures."""
    texts = [
        tag(
            "text",
            f"{100 * tick:g}{unit if tick in (0.0, axis.end) else ''}",
            x=axis.place(tick),
            y=HEIGHT - 8,
            text_anchor=_anchor(tick, axis),
        )
        for tick in axis.ticks
    ]
    return tag("svg", *texts, class_="scale", height=HEIGHT, width="100%", aria_hidden="true")


def _anchor(tick: float, axis: Axis) -> str:
    return "start" if tick == 0 else "end" if tick == axis.end else "middle"


def picture(shown: Interval, axis: Axis, marks: Sequence[Mark] = ()) -> Html:
    """One interval on an axis, with its marks; the ticks are drawn by the style."""
    track = empty("line", x1="0%", x2="100%", y1=MIDDLE, y2=MIDDLE, class_="track")
    parts = [track, *_noise(shown, axis)]
    ends = {"x1": axis.place(shown.low), "x2": axis.place(shown.high)}
    if shown.high > shown.low:
        parts.append(empty("line", **ends, y1=MIDDLE, y2=MIDDLE, class_="bar"))
        parts += [
            empty("line", x1=x, x2=x, y1=MIDDLE - 5, y2=MIDDLE + 5, class_="end")
            for x in ends.values()
        ]
    parts += _marks(marks, axis)
    if shown.point is not None:
        parts.append(empty("circle", cx=axis.place(shown.point), cy=MIDDLE, r=4.5, class_="dot"))
    return tag(
        "svg",
        *parts,
        class_=f"interval {shown.kind}",
        height=HEIGHT,
        width="100%",
        role="img",
        aria_label=shown.label,
    )


def _noise(shown: Interval, axis: Axis) -> Iterable[Html]:
    if shown.noise is not None:
        low, high = map(axis.place, shown.noise)
        yield empty("line", x1=low, x2=high, y1=HEIGHT - 3, y2=HEIGHT - 3, class_="noise")


def _marks(marks: Sequence[Mark], axis: Axis) -> Iterable[Html]:
    for mark in marks:
        if mark.share <= axis.end:
            x = axis.place(mark.share)
            yield empty("line", x1=x, x2=x, y1=0, y2=HEIGHT, class_="mark")


def stack(parts: Sequence[tuple[str, int]], label: str) -> Html:
    """Shares of a whole in one bar: a class and a number for each part."""
    total = sum(number for _, number in parts) or 1
    drawn, before = [], 0
    for kind, number in parts:
        if number:
            x, width = (f"{100 * each / total:.2f}%" for each in (before, number))
            drawn.append(empty("rect", x=x, width=width, y=5, height=HEIGHT - 10, class_=kind))
            before += number
    return tag("svg", *drawn, class_="stack", height=HEIGHT, width="100%", role="img",
               aria_label=label)  # fmt: skip


Place = Literal["below", "above", "unclear", "few"]


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


PLACES: Mapping[Place, str] = {
    "below": "below four fifths",
    "above": "above four fifths",
    "unclear": "unclear",
    "few": "few rows: not judged",
}


def ratios(score: GroupScore) -> list[Ratio] | None:
    """The impact ratio of each group; None where a ratio means nothing.

    The groups' intervals hold together, so these do as well. Where groups are unknown, any of
    them may have a higher rate.
    """
    judged = [group for group in score.groups if not group.few] or list(score.groups)
    best = max((group.rate for group in judged), default=0.0)
    if score.impact_ratio is None or score.statistic == "mean" or not best:
        return None
    highest = 1.0 if score.lower_bound else max(group.high for group in judged)
    surely = max(group.low for group in judged)
    return [_ratio(group, best, highest, surely) for group in score.groups]


def _ratio(group: Group, best: float, highest: float, surely: float) -> Ratio:
    high = min(group.high / surely, 1.0) if surely > 0 else 1.0
    return Ratio(min(group.rate / best, 1.0), group.low / highest, high, group.few)


def four_fifths_line(score: GroupScore) -> float | None:
    """The rate that is four fifths of the highest."""
    best = max((group.rate for group in score.groups if not group.few), default=0.0)
    return FOUR_FIFTHS * best if ratios(score) is not None and best else None


def rate_interval(score: GroupScore, group: Group) -> str:
    """The ends of a group's rate or mean."""
    if group.low == group.high:
        return "exact"
    return f"{rate_text(score, group.low)} – {rate_text(score, group.high)}"
