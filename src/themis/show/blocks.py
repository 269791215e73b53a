"""Intervals and the axis they stand on, however they are shown: in letters, pixels or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ENDS = (0.05, 0.1, 0.25, 0.5, 1.0)  # where an axis may end
STEPS = 5  # from tick to tick


@dataclass(frozen=True)
class Axis:
    """A line from 0 to `end`, a share; of numbers on a scale of their own it has no ticks."""

    end: float = 1.0
    is_share: bool = True

    @classmethod
    def reaching(cls, highest: float) -> Axis:
        """The shortest axis that has room for a share."""
        return cls(next((end for end in ENDS if highest <= end), ENDS[-1]))

    @property
    def ticks(self) -> tuple[float, ...]:
        """The shares that are written below it."""
        return tuple(self.end * step / STEPS for step in range(STEPS + 1))

    def part(self, share: float) -> float:
        """How far along the axis a share stands, from 0 to 1."""
        return min(max(share / self.end, 0.0), 1.0)


WHOLE = Axis()


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
    axis: Axis = WHOLE
    marks: tuple[Mark, ...] = ()


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
