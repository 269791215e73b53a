"""How do intervals look as a picture? Small SVG drawings: no scripts, all escaped.

Lines and letters have the colour of the text around them, so that they can be read on light and
dark pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from html import escape
from typing import Any

from themis.results.hooks import Plot
from themis.results.model import FOUR_FIFTHS, GroupScore, Result, Score, SearchResult
from themis.show.words.scores import extremes, headline, rate_text
from themis.show.words.searches import search_headline, set_text
from themis.show.words.values import label, percent, visible

ENDS = (0.05, 0.1, 0.25, 0.5, 1.0)  # where an axis may end
WIDTH, LABELS, NUMBERS = 640, 190, 150  # pixels: all, left of the axis, right of it
LINE, TOP, BOTTOM = 22, 8, 26  # pixels: a row, above the rows, below them
LETTERS = 27  # of a label
GROUPS = 10  # from either end
ROWS = 40  # of a picture
BLUE = "#3478c6"  # on white and on black its contrast is above 4


@dataclass(frozen=True)
class Interval:
    """One row of a picture: what it is about, and between which ends it lies."""

    name: str
    low: float
    point: float | None
    high: float


@dataclass(frozen=True)
class Line:
    """A line across all rows, with its name below the axis."""

    at: float
    name: str


@singledispatch
def plot(thing: Any) -> Plot:
    """The picture of a score, a search or a result."""
    raise TypeError(f"there is no picture of {type(thing).__name__}")


@plot.register
def _(score: Score) -> Plot:
    row = Interval(set_text(score.against), score.low, score.score, score.high)
    return Plot(intervals_svg([row], headline(score)))


@plot.register
def _(score: GroupScore) -> Plot:
    """The groups' rates; the four-fifths line is four fifths of the highest."""
    shown, hidden = extremes(score.groups, GROUPS)
    rows = [Interval(label(each.values), each.low, each.rate, each.high) for each in shown]
    best = score.most_favoured
    lines = []
    if best is not None and score.impact_ratio is not None:
        lines = [Line(FOUR_FIFTHS * best.rate, "four fifths of the highest")]
    title = headline(score) + (f"; {hidden:,} groups are left out" if hidden else "")
    units = partial(rate_text, score)  # of a number, those of the number
    return Plot(intervals_svg(rows, title, lines, end=1.0, units=units))


@plot.register
def _(search: SearchResult) -> Plot:
    measured = [score for score in search.minimal_sets if score.samples][:ROWS]
    rows = [Interval(set_text(each.against), each.low, each.score, each.high) for each in measured]
    limit = Line(search.threshold, f"threshold {percent(search.threshold)}")
    return Plot(intervals_svg(rows, search_headline(search), [limit]))


@plot.register
def _(result: Result) -> Plot:
    rows = [
        Interval(f"{each.measure} {set_text(each.against)}", each.low, each.score, each.high)
        for each in result.scores[:ROWS]
    ]
    names = "; ".join(headline(score) for score in result.scores[:ROWS])
    return Plot(intervals_svg(rows, names or "no scores"))


def intervals_svg(
    rows: Sequence[Interval],
    title: str,
    lines: Sequence[Line] = (),
    *,
    end: float | None = None,
    units: Callable[[float], str] = percent,
) -> str:
    """Rows of intervals above one axis from 0 to `end`, as an SVG element.

    Solid up to the lower end, light up to the upper end, a tick at the score.
    """
    farthest = max([row.high for row in rows] + [line.at for line in lines], default=1.0)
    end = end or next((each for each in ENDS if farthest <= each), 1.0)
    axis = _Axis(end, len(rows), named=bool(lines), units=units)
    parts = [axis.frame(), *(axis.row(place, row) for place, row in enumerate(rows))]
    parts += [axis.line(line) for line in lines]
    text = escape(visible(title), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{text}" '
        f'viewBox="0 0 {WIDTH} {axis.height}" width="100%" style="max-width:{WIDTH}px" '
        f'font-family="sans-serif" font-size="12" fill="currentColor">'
        f"<title>{text}</title>{''.join(parts)}</svg>"
    )


@dataclass(frozen=True)
class _Axis:
    """Where things stand in a picture of so many rows."""

    end: float
    rows: int
    named: bool  # whether names of lines stand below the numbers
    units: Callable[[float], str]  # how numbers are written

    @property
    def bottom(self) -> int:
        return TOP + LINE * self.rows

    @property
    def height(self) -> int:
        return self.bottom + BOTTOM + (14 if self.named else 0)

    def x(self, value: float) -> float:
        share = min(max(value / self.end, 0.0), 1.0)
        return round(LABELS + share * (WIDTH - LABELS - NUMBERS), 1)

    def frame(self) -> str:
        ticks = "".join(
            f'<line x1="{self.x(at)}" x2="{self.x(at)}" y1="{TOP}" y2="{self.bottom + 4}" '
            f'stroke="currentColor" stroke-opacity=".25"/>'
            + _text(self.x(at), self.bottom + 17, _tick(self.units(at)), "middle")
            for at in (0.0, self.end / 2, self.end)
        )
        return f"<g>{ticks}</g>"

    def row(self, place: int, row: Interval) -> str:
        top = TOP + LINE * place
        left, low, high = self.x(0.0), self.x(row.low), self.x(row.high)
        bars = (
            f'<rect x="{left}" y="{top + 5}" width="{round(low - left, 1)}" height="12" '
            f'fill="{BLUE}"/>'
            f'<rect x="{low}" y="{top + 5}" width="{round(max(high - low, 1.0), 1)}" height="12" '
            f'fill="{BLUE}" fill-opacity=".45"/>'
        )
        numbers = f"{self.units(row.low)} – {self.units(row.high)}"
        if row.point is not None:
            at = self.x(row.point)
            bars += (
                f'<line x1="{at}" x2="{at}" y1="{top + 3}" y2="{top + 19}" '
                f'stroke="currentColor" stroke-width="2"/>'
            )
            if row.low == row.high:
                numbers = self.units(row.point)
        name = _text(LABELS - 8, top + 15, _cut(visible(row.name)), "end")
        return f"<g>{name}{bars}{_text(WIDTH - NUMBERS + 8, top + 15, numbers, 'start')}</g>"

    def line(self, line: Line) -> str:
        at = self.x(line.at)
        side = "start" if at < LABELS + 90 else "middle"
        return (
            f'<line x1="{at}" x2="{at}" y1="{TOP - 4}" y2="{self.bottom + 20}" '
            f'stroke="currentColor" stroke-dasharray="4 3"/>'
            + _text(at, self.bottom + 33, line.name, side)
        )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    inner = escape(visible(text), quote=True)
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{inner}</text>'


def _tick(text: str) -> str:
    return text.replace(".0 %", " %")


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
