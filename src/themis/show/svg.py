"""Pictures as SVG: intervals for pages and for notebooks, and shares as dots.

Pictures of a page take whatever width they get: places are given in per cent of it, so nothing is
stretched or shrunk. They have colours of their own for notebooks; the style of a page has others.
A chart stands alone, in a notebook or a file:
its lines and letters have the colour of the text around them, on light and on dark pages. Numbers
stand beside every picture, and shapes differ where colours do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from themis.show.html import Html, empty, tag
from themis.show.intervals import Axis, Interval, Mark
from themis.show.words.values import cut_name, percent, visible

BLUE = "#3478c6"  # on white and on black its contrast is above 4
HEIGHT = 26
MIDDLE = HEIGHT / 2


def scale(axis: Axis, unit: str = " %") -> Html:
    """The numbers of an axis, to stand above its pictures."""
    texts = [
        _text(
            f"{100 * tick:g}{unit if tick in (0.0, axis.end) else ''}",
            _place(axis, tick),
            HEIGHT - 8,
            "start" if tick == 0 else "end" if tick == axis.end else "middle",
        )
        for tick in axis.ticks
        if axis.is_share
    ]
    return tag("svg", *texts, class_="scale", height=HEIGHT, width="100%", aria_hidden="true")


def picture(shown: Interval, axis: Axis, marks: Sequence[Mark] = ()) -> Html:
    """One interval on an axis, with its marks; the ticks are drawn by the style."""
    return _drawing(_parts(shown, axis, marks), f"interval {shown.kind}", shown.label)


def _parts(shown: Interval, axis: Axis, marks: Sequence[Mark]) -> Iterator[Html]:
    yield _level("0%", "100%", MIDDLE, class_="track")
    if shown.high > shown.low:
        low, high = _place(axis, shown.low), _place(axis, shown.high)
        yield _level(low, high, MIDDLE, class_="bar", stroke=BLUE, stroke_width="7")
        yield from (_upright(x, MIDDLE - 5, MIDDLE + 5, class_="end") for x in (low, high))
    for mark in marks:
        if mark.share <= axis.end:
            x = _place(axis, mark.share)
            yield _upright(x, 0, HEIGHT, class_="mark", stroke="currentColor")
    if shown.point is not None:
        x = _place(axis, shown.point)
        yield empty("circle", cx=x, cy=MIDDLE, r=4.5, class_="dot", fill="currentColor")


DOTS = 10  # in a row, and rows: a hundred


def dots(number: int, limit: int | None, label: str) -> Html:
    """A hundred dots, the first of them filled; those up to a limit are outlined."""
    every = DOTS * DOTS
    parts = [("limit", range(limit or 0)), ("on", range(number)), ("rest", range(number, every))]
    drawn = [
        empty("path", d="".join(f"M{x * 10 + 5} {y * 10 + 5}h0" for y, x in map(_row_of, places)),
              class_=kind)
        for kind, places in parts
        if places
    ]  # fmt: skip
    size = 10 * DOTS
    return tag(
        "svg", *drawn, class_="dots", viewBox=f"0 0 {size} {size}", role="img", aria_label=label
    )


def _row_of(place: int) -> tuple[int, int]:
    return divmod(place, DOTS)


def _drawing(parts: Iterator[Html] | Sequence[Html], kind: str, label: str) -> Html:
    return tag(
        "svg", *parts, class_=kind, height=HEIGHT, width="100%", role="img", aria_label=label
    )


def _place(axis: Axis, share: float) -> str:
    return f"{100 * axis.part(share):.2f}%"


def _level(x1: float | str, x2: float | str, y: float, **look: str) -> Html:
    return empty("line", x1=x1, x2=x2, y1=y, y2=y, **look)


def _upright(x: float | str, y1: float, y2: float, **look: str) -> Html:
    return empty("line", x1=x, x2=x, y1=y1, y2=y2, **look)


def _text(words: str, x: float | str, y: float, anchor: str) -> Html:
    return tag("text", words, x=x, y=y, text_anchor=anchor)


WIDTH, LABELS, NUMBERS = 640, 190, 150  # pixels: all, left of the axis, right of it
LINE, TOP, BOTTOM = 22, 8, 26  # pixels: a row, above the rows, below them
LETTERS = 27  # of a label

Units = Callable[[float], str]


def chart(
    rows: Sequence[Interval],
    title: str,
    marks: Sequence[Mark] = (),
    *,
    axis: Axis | None = None,
    units: Units = percent,
) -> Html:
    """Rows of intervals above one axis, with their labels and numbers.

    Solid up to the lower end, light up to the upper end, a tick at the score.
    """
    reach = max([row.high for row in rows] + [mark.share for mark in marks], default=1.0)
    axis = axis or Axis.reaching(reach)
    bottom = TOP + LINE * len(rows)
    height = bottom + BOTTOM + (14 if marks else 0)  # names of marks stand below the numbers
    title = visible(title)
    return tag(
        "svg",
        tag("title", title),
        tag("g", *_ticks(axis, bottom, units)),
        *(_row(row, TOP + LINE * place, axis, units) for place, row in enumerate(rows)),
        *(part for mark in marks for part in _mark(mark, bottom, axis)),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=title,
        viewBox=f"0 0 {WIDTH} {height}",
        width="100%",
        style=f"max-width:{WIDTH}px",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )


def _x(axis: Axis, share: float) -> float:
    return round(LABELS + axis.part(share) * (WIDTH - LABELS - NUMBERS), 1)


def _ticks(axis: Axis, bottom: int, units: Units) -> Iterator[Html]:
    for at in (0.0, axis.end / 2, axis.end):
        x = _x(axis, at)
        yield _upright(x, TOP, bottom + 4, stroke="currentColor", stroke_opacity=".25")
        yield _text(units(at).replace(".0 %", " %"), x, bottom + 17, "middle")


def _row(row: Interval, top: int, axis: Axis, units: Units) -> Html:
    start, low, high = (_x(axis, each) for each in (0.0, row.low, row.high))
    bars = [_bar(start, low - start, top), _bar(low, max(high - low, 1.0), top, fill_opacity=".45")]
    if row.point is not None:
        x = _x(axis, row.point)
        bars.append(_upright(x, top + 3, top + 19, stroke="currentColor", stroke_width="2"))
    ends = f"{units(row.low)} – {units(row.high)}"
    numbers = units(row.point) if row.point is not None and row.low == row.high else ends
    return tag(
        "g",
        _text(cut_name(visible(row.label), LETTERS), LABELS - 8, top + 15, "end"),
        *bars,
        _text(numbers, WIDTH - NUMBERS + 8, top + 15, "start"),
    )


def _bar(x: float, width: float, top: int, **look: str) -> Html:
    return empty("rect", x=x, y=top + 5, width=round(width, 1), height=12, fill=BLUE, **look)


def _mark(mark: Mark, bottom: int, axis: Axis) -> Iterator[Html]:
    x = _x(axis, mark.share)
    yield _upright(x, TOP - 4, bottom + 20, stroke="currentColor", stroke_dasharray="4 3")
    yield _text(mark.name, x, bottom + 33, "start" if x < LABELS + 90 else "middle")
