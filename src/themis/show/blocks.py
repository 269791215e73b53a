"""Content without a medium: the blocks of which terminals, pages, Markdown and notebooks are made.

What is said is decided once, in `parts`; a medium has an order of blocks and a way to draw each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from themis.show.intervals import Axis, Interval

Look = Literal["headline", "plain", "faint", "warning", "remark"]
Shape = Literal["chart", "summary", "rates", "pair", "pairs", "bars", "plain"]


@dataclass(frozen=True)
class Statement:
    """A sentence or a few; `before` says of what kind it is: a warning, a note."""

    text: str
    look: Look = "plain"
    before: str = ""


@dataclass(frozen=True)
class Cell:
    """What is in one place of a table; `small` stands below it, `state` colours it.

    A page may link it to an address, with words for those who don't see the place.
    """

    text: str
    small: str = ""
    state: str = ""
    link: str = ""
    about: str = ""


@dataclass(frozen=True)
class Chip:
    """A verdict in a word, with its colour."""

    state: str
    word: str


@dataclass(frozen=True)
class Number:
    """The head of a column of numbers; that of a column of pictures is their axis."""

    text: str


Head = str | Number | Axis
Content = str | Cell | Chip | Interval


@dataclass(frozen=True)
class Table:
    """Rows whose first cells name them; its shape is a hint for pages alone."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Content]]
    foot: str = ""
    shape: Shape = "chart"


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    items: Sequence[str]


@dataclass(frozen=True)
class Commands:
    """Lines for a shell, to be copied as they are."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Fold:
    """What is only looked at by those who ask for it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Dots:
    """A share as so many of a hundred dots, beside a limit; what it is, and what it is of."""

    number: int
    limit: int | None
    label: str
    share: str
    of: str
    small: Sequence[str]


@dataclass(frozen=True)
class Part:
    """Blocks about one thing, below its name."""

    title: str
    blocks: Sequence[Block]


Block = Statement | Table | Points | Commands | Fold | Dots | Part


def text_of(content: Content) -> str:
    """A cell in letters; nothing of a picture, whose numbers stand beside it."""
    if isinstance(content, Interval):
        return ""
    if isinstance(content, Chip):
        return content.word
    return content.text if isinstance(content, Cell) else content


def head_text(head: Head) -> str:
    """What a column has; of pictures nothing."""
    return "" if isinstance(head, Axis) else head if isinstance(head, str) else head.text
