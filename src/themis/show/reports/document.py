"""The frame of a report, one file that fetches and runs nothing, and how a page draws blocks.

Everything is escaped, and what is too long is cut. Pictures of intervals take whatever width they
get: places are given in per cent of it, so nothing is stretched or shrunk. Numbers stand beside
every picture, and shapes differ where colours do.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from importlib.resources import files
from typing import Any

from themis._version import __version__
from themis.show.blocks import (
    Axis,
    Block,
    Chip,
    Commands,
    Content,
    Dots,
    Fold,
    Head,
    Interval,
    Mark,
    Number,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.html import (
    BLUE,
    Html,
    cut,
    empty,
    folded,
    join,
    letters,
    shell,
    table,
    tag,
    upright,
)
from themis.show.words.headlines import capital
from themis.show.words.values import LONGEST_NAME, count

# One style for screens, phones and paper, in light and in dark. Blue and orange are told apart by
# all eyes; shapes and words carry the same meaning. Every colour of text keeps a contrast of 4.5 to
# what is behind it (a test computes it).
STYLE = files(__package__).joinpath("style.css").read_text(encoding="utf-8")


def policy(style: str = STYLE) -> str:
    """The content security policy: the page's own style, and nothing else at all."""
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{own}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, name: str, hashed: str, header: Iterable[Any], *content: Any) -> str:
    """A whole page: what it is called, the hash of its result, its top, and its content."""
    # On paper every page has its number and the result that it is of.
    style = (
        f'{STYLE}@page{{@bottom-left{{content:"Themis {name.lower()}, result {hashed[:16]}"}}}}\n'
    )
    head = (
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=policy(style)),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        empty("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        empty("link", rel="icon", href="data:,"),  # else browsers ask a server for one
        tag("style", Html(style)),
    )
    body = (
        tag("a", f"Skip to the {name.split()[-1].lower()}", href="#main", class_="skip"),
        tag("header", tag("p", tag("b", "Themis"), f" {name}", class_="brand"), *header),
        tag("main", *content, id="main"),
        tag(
            "footer",
            tag("p", f"Written by Themis {__version__}. The page fetches and runs nothing."),
            tag("p", "SHA-256 of the result: ", tag("code", hashed)),
        ),
    )  # fmt: skip
    page = tag("html", tag("head", *head), tag("body", *body), lang="en", dir="ltr")
    # A lone surrogate in a name can't be written as UTF-8; `visible` shows those as escapes.
    return f"<!doctype html>\n{page}\n"


def section(
    name: str, title: str, *content: Any, kind: str | None = None, fold: bool = False
) -> Html:
    """A part that links lead to: its heading, and what follows; folded, until somebody asks."""
    heading = f"{name}-title"
    if fold:
        summary = tag("summary", tag("h2", title, id=heading))
        return tag("details", summary, tag("div", *content, id=name), class_="part")
    return tag("section", tag("h2", title, id=heading), *content,
               class_=kind, id=name, aria_labelledby=heading)  # fmt: skip


def left_out(hidden: int, noun: str) -> Iterator[Html]:
    """That some are not shown, if so."""
    if hidden > 0:
        yield tag("p", f"{count(hidden, f'more {noun}')} not shown here", class_="faint")


def rest(hidden: int, noun: str = "row") -> str:
    """The foot of a table that has not all rows, else nothing."""
    return f"{count(hidden, f'more {noun}')} not shown" if hidden > 0 else ""


LIMIT_BYTES = 300_000  # of a whole file; mail and browsers take it without a thought


@dataclass(frozen=True)
class Space:
    """How many of each kind a page shows; it says how many it does not."""

    cards: int = 3  # sets with a card of their own
    scores: int = 60
    searches: int = 6
    checks: int = 60
    groups: int = 60  # of one score
    categories: int = 500  # rows of a table in the annex
    sets: int = 120  # of a search
    people: int = 8  # scores whose people are shown
    pairs: int = 4  # of one score; half as many where there are several scores
    changes: int = 12  # directions of harm
    regions: int = 8
    inputs: int = 80  # characteristics of the schema
    cautions: int = 30


_SMALL = Space(3, 20, 2, 20, 8, 24, 30, 3, 1, 6, 3, 20, 10)
SPACES = (Space(), _SMALL, replace(_SMALL, scores=8, categories=12, sets=12, inputs=10))


def fitting(render: Callable[[Space], str]) -> str:
    """The fullest text that is not too long."""
    text = ""
    for space in SPACES:
        text = render(space)
        if len(text.encode("utf-8", "replace")) < LIMIT_BYTES:
            break
    return text


LONGEST = 700  # letters of a sentence
LONGEST_LINE = 8_000  # of a command
CLASSES = {"headline": "sentence", "plain": None, "faint": "faint", "warning": "faint",
           "remark": "remark"}  # fmt: skip


def drawn(blocks: Iterable[Block]) -> Html:
    """The blocks one below the other."""
    return join(map(_drawn, blocks))


@singledispatch
def _drawn(block: Any) -> Html:
    raise TypeError(f"no page draws {type(block).__name__}")


@_drawn.register
def _(said: Statement) -> Html:
    before = [tag("strong", f"{capital(said.before)}:"), " "] if said.before else []
    return tag("p", *before, sentence(said.text), class_=CLASSES[said.look])


def sentence(text: str) -> Html:
    """A sentence with its full stop, which a subject may have had a word in."""
    shown = cut(text, LONGEST)
    return tag("bdi", shown if shown[-1:] in ".:?!…" else f"{shown}.")


@_drawn.register
def _(points: Points) -> Html:
    return tag("ul", *(tag("li", sentence(each)) for each in points.items), class_="lines")


@_drawn.register
def _(commands: Commands) -> Html:
    return shell(cut(each, LONGEST_LINE) for each in commands.lines)


@_drawn.register
def _(fold: Fold) -> Html:
    return folded(fold.title, drawn(fold.blocks))


@_drawn.register
def _(part: Part) -> Html:
    title = tag("bdi", cut(part.title, LONGEST_NAME))
    return tag("div", tag("h3", title), drawn(part.blocks), class_="block")


@_drawn.register
def _(shown: Dots) -> Html:
    smalls = (tag("small", each) for each in shown.small)
    caption = tag("figcaption", tag("b", shown.share), " ", tag("bdi", shown.of), *smalls)
    return tag("figure", dots(shown.number, shown.limit, shown.label), caption)


@_drawn.register
def _(given: Table) -> Html:
    shape = "chart rates" if given.shape == "rates" else given.shape
    rows = ([_first(row[0]), *map(_cell, row[1:])] for row in given.rows)
    shown = table(given.title, [_head(each) for each in given.heads], rows, kind=shape,
                  foot=given.foot)  # fmt: skip
    is_fluid = given.shape in ("chart", "summary", "bars")
    return shown if is_fluid else tag("div", shown, class_="wide")


def _head(head: Head) -> Any:
    if isinstance(head, Axis):
        return scale(head), "pic"
    return (head.text, "number") if isinstance(head, Number) else head


def _first(content: Content) -> Any:
    shown = _cell(content)
    return tag("span", shown[0], class_=shown[1]) if isinstance(shown, tuple) else shown


def _cell(content: Content) -> Any:
    if isinstance(content, Interval):
        return picture(content, content.axis, content.marks)
    if isinstance(content, Chip):
        return chip(content.state, content.word)
    if isinstance(content, str):
        return tag("bdi", cut(content, LONGEST))
    shown = tag("bdi", cut(content.text, LONGEST))
    if content.link:
        shown = tag("a", shown, href=content.link, title=content.about, aria_label=content.about)
    if content.small:
        shown = join([shown, " ", tag("small", cut(content.small, LONGEST))])
    return (shown, content.state) if content.state else shown


def chip(state: str, word: str) -> Html:
    """A word with a shape and a colour."""
    return tag("span", word, class_=f"chip {state}")


HEIGHT = 26
MIDDLE = HEIGHT / 2


def scale(axis: Axis, unit: str = " %") -> Html:
    """The numbers of an axis, to stand above its pictures."""
    texts = [
        letters(
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
    return tag(
        "svg",
        *_parts(shown, axis, marks),
        class_=f"interval {shown.kind}",
        height=HEIGHT,
        width="100%",
        role="img",
        aria_label=shown.label,
    )


def _parts(shown: Interval, axis: Axis, marks: Sequence[Mark]) -> Iterator[Html]:
    yield _level("0%", "100%", MIDDLE, class_="track")
    if shown.high > shown.low:
        low, high = _place(axis, shown.low), _place(axis, shown.high)
        yield _level(low, high, MIDDLE, class_="bar", stroke=BLUE, stroke_width="7")
        yield from (upright(x, MIDDLE - 5, MIDDLE + 5, class_="end") for x in (low, high))
    for mark in marks:
        if mark.share <= axis.end:
            x = _place(axis, mark.share)
            yield upright(x, 0, HEIGHT, class_="mark", stroke="currentColor")
    if shown.point is not None:
        x = _place(axis, shown.point)
        yield empty("circle", cx=x, cy=MIDDLE, r=4.5, class_="dot", fill="currentColor")


DOTS = 10  # in a row, and rows: a hundred


def dots(number: int, limit: int | None, label: str) -> Html:
    """A hundred dots, the first of them filled; those up to a limit are outlined."""
    every = DOTS * DOTS
    parts = [("limit", range(limit or 0)), ("on", range(number)), ("rest", range(number, every))]
    drawn = [
        empty("path", d="".join(map(_dot, places)), class_=kind) for kind, places in parts if places
    ]
    size = 10 * DOTS
    return tag(
        "svg", *drawn, class_="dots", viewBox=f"0 0 {size} {size}", role="img", aria_label=label
    )


def _dot(place: int) -> str:
    row, column = divmod(place, DOTS)
    return f"M{column * 10 + 5} {row * 10 + 5}h0"


def _place(axis: Axis, share: float) -> str:
    return f"{100 * axis.part(share):.2f}%"


def _level(x1: float | str, x2: float | str, y: float, **look: str) -> Html:
    return empty("line", x1=x1, x2=x2, y1=y, y2=y, **look)
