"""How a page draws blocks; everything is escaped, and what is too long is cut."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from themis.show.blocks import (
    Block,
    Chip,
    Commands,
    Content,
    Dots,
    Fold,
    Head,
    Number,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.html import Html, cut, folded, join, shell, table, tag
from themis.show.intervals import Axis, Interval
from themis.show.svg import dots, picture, scale
from themis.show.words.headlines import capital

LONGEST = 700  # letters of a sentence
LONGEST_NAME = 240  # of a cell: a set may be made of hundreds of characteristics
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
