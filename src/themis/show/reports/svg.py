"""How is an interval drawn? Small pictures that take whatever width they get.

Places are given in per cent of the width, so nothing is stretched on a wide screen or shrunk on a
narrow one. Numbers stand beside every picture, and shapes differ where colours do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from themis.show.reports.html import Html, empty, tag

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
