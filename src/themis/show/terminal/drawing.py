"""How a terminal draws blocks: wrapped sentences, bars of letters, tables or else lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as Grid

from themis.show.blocks import (
    Block,
    Cell,
    Chip,
    Commands,
    Content,
    Head,
    Look,
    Number,
    Part,
    Points,
    Statement,
    Table,
    head_text,
    text_of,
)
from themis.show.intervals import Axis, Interval
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    MARK,
    NUMBER,
    WARNING,
    Fitting,
    IntervalBar,
    Scale,
    Sentence,
    ShellLine,
    grid,
    indented,
)
from themis.show.words.values import visible

LOOKS: dict[Look, str] = {
    "headline": HEADLINE,
    "plain": "",
    "faint": DIM,
    "warning": WARNING,
    "remark": MARK,
}
STATES = {
    "grave": "bold red",
    "calm": "green",
    "open": WARNING,
    "changed": MARK,
    "better": HEADLINE,
    "worse": HEADLINE,
}
BARS = {"grave": "red", "calm": "green", "open": WARNING, "few": WARNING}
PICTURE = {"ratio": 1, "min_width": 8}
WIDEST_NUMBER = 32


def drawn(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    """The blocks one below the other; a terminal shows nothing of pictures, nor what is folded."""
    for each in blocks:
        yield from _drawn(each)


@singledispatch
def _drawn(block: Any) -> Iterator[RenderableType]:
    yield from ()


@_drawn.register
def _(said: Statement) -> Iterator[RenderableType]:
    first = f"{said.before}: " if said.before else ""
    yield Sentence(visible(said.text), LOOKS[said.look], first=first)


@_drawn.register
def _(points: Points) -> Iterator[RenderableType]:
    yield from (Sentence(visible(each)) for each in points.items)


@_drawn.register
def _(commands: Commands) -> Iterator[RenderableType]:
    yield from (ShellLine(visible(each)) for each in commands.lines)


@_drawn.register
def _(part: Part) -> Iterator[RenderableType]:
    yield Sentence(visible(part.title), HEADLINE)
    yield from map(indented, drawn(part.blocks))


@_drawn.register
def _(table: Table) -> Iterator[RenderableType]:
    bare = tuple(place for place, head in enumerate(table.heads) if not isinstance(head, Axis))
    grids = [_grid(table, range(len(table.heads)))]
    if len(bare) < len(table.heads):
        grids.append(_grid(table, bare))
    foot = (Sentence(f"… {table.foot}", DIM),) if table.foot else ()
    lines = (Sentence(row_text(table.heads, row)) for row in table.rows)
    yield Fitting(tuple(grids), (*lines,))
    yield from foot


def _grid(table: Table, places: Sequence[int]) -> Grid:
    heads = [table.heads[place] for place in places]
    pictures = any(isinstance(each, Axis) for each in heads)
    drawn = grid(*(_column(table, place) for place in places), expand=pictures)
    if any(map(head_text, heads)):
        drawn.add_row(*map(_head, heads))
    for row in table.rows:
        drawn.add_row(*(_cell(row[place]) for place in places))
    return drawn


def _column(table: Table, place: int) -> dict[str, Any]:
    """What rich has to know of a column; a number is not parted from its unit, nor an interval."""
    head = table.heads[place]
    if isinstance(head, Axis):
        return PICTURE
    if not isinstance(head, Number):
        return dict(FOLDED)
    widths = (cell_len(text_of(row[place])) for row in table.rows)
    return {**FOLDED, **NUMBER, "min_width": min(max(widths, default=0), WIDEST_NUMBER)}


def _head(head: Head) -> RenderableType:
    if isinstance(head, Axis):
        return Scale(f"0 to {100 * head.end:.0f} %" if head.is_share else "")
    return Sentence(head_text(head).lower(), DIM)


def _cell(content: Content) -> RenderableType:
    if isinstance(content, Interval):
        limit = content.marks[0].share if content.marks else None
        return IntervalBar(content.low, content.high, content.axis, BARS[content.kind], limit)
    state = content.state if isinstance(content, (Cell, Chip)) else ""
    text = Sentence(visible(text_of(content)) if text_of(content) else "", STATES.get(state, ""))
    if isinstance(content, Cell) and content.small:
        return Group(text, Sentence(visible(content.small), DIM))
    return text


def row_text(heads: Sequence[Head], row: Sequence[Content]) -> str:
    """A row of a table in words: `precision: points apart 7.2, ratio 0.83`."""
    cells = [
        f"{head_text(head).lower()} {_both(cell)}".strip()
        for head, cell in zip(heads[1:], row[1:], strict=True)
        if text_of(cell)
    ]
    name = _both(row[0])
    return visible(f"{name}: {', '.join(cells)}" if name and cells else name or ", ".join(cells))


def _both(content: Content) -> str:
    small = content.small if isinstance(content, Cell) else ""
    return f"{text_of(content)} ({small})" if small else text_of(content)
