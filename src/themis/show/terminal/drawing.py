"""How a terminal draws blocks: wrapped sentences, bars of letters, tables or else lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import IO, Any, Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from themis.show.blocks import (
    Axis,
    Block,
    Cell,
    Chip,
    Commands,
    Content,
    Dots,
    Fold,
    Head,
    Interval,
    Look,
    Number,
    Part,
    Points,
    Statement,
    Table,
    head_text,
    text_of,
)
from themis.show.parts.summary import Line, SetSummary
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
    make_console,
    render,
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


Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Page(Generic[Thing]):
    """Makes the text of something for a terminal or a file from the blocks that `show` gives."""

    show: Callable[..., Iterable[Block | RenderableType]]  # (thing, *, everything)

    def __call__(
        self,
        thing: Thing,
        *,
        file: IO[str] | None = None,
        width: int | None = None,
        everything: bool = False,
    ) -> str:
        blocks = self.show(thing, everything=everything)
        return render(drawn(blocks), make_console(file, width=width))


def drawn(blocks: Iterable[Block | RenderableType]) -> Iterator[RenderableType]:
    """The blocks one below the other; a terminal shows nothing of pictures, nor what is folded.

    What belongs to terminals alone, as lines that are empty, stays as it is.
    """
    for each in blocks:
        yield from _drawn(each)


@singledispatch
def _drawn(block: Any) -> Iterator[RenderableType]:
    yield block


@_drawn.register
def _(unseen: Fold | Dots) -> Iterator[RenderableType]:
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
    return {**FOLDED, **NUMBER, "min_width": min(max(widths, default=0), 32)}


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


GAP = 2  # columns
LONGEST_NAME = 20  # columns: longer names have a line of their own
LEAST_DETAIL = 24  # columns: with less room it stands below its number


@dataclass(frozen=True)
class Summary:
    """Sets with their lines; where columns have no room each line is a sentence."""

    sets: Sequence[SetSummary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = max((cell_len(visible(each.name)) for each in self.sets), default=0)
        cells = zip(*(_cells(line) for each in self.sets for line in each.lines), strict=True)
        widths = [names if names <= LONGEST_NAME else 0]
        widths += [max(map(cell_len, column)) for column in cells]
        room = options.max_width - sum(widths) - GAP * (len(widths) - 1)
        for each in self.sets:
            yield from _set(each, widths, room)


def _cells(line: Line) -> tuple[str, str, str]:
    interval = visible(line.interval) if line.interval else ""
    return f"{line.mark or ' '} {visible(line.what)}", visible(line.value), interval


def _set(summary: SetSummary, widths: Sequence[int], room: int) -> Iterator[RenderableType]:
    """A set; details stand beside their numbers if there is room, else below."""
    name = visible(summary.name)
    if room < 0 or cell_len(name) > widths[0]:
        yield Sentence(name, HEADLINE)
        name = ""
    indent = " " * (widths[0] + GAP + 2 if room >= 0 else 2)
    for line in summary.lines:
        if room < 0:
            yield _sentence(line)
            continue
        detail = Sentence(visible(line.detail), DIM) if line.detail else None
        is_beside = detail is not None and room - GAP >= LEAST_DETAIL
        yield _row(name, line, widths, detail if is_beside else None)
        name = ""
        if detail is not None and not is_beside:
            yield Sentence(detail.text, DIM, first=indent)
    if summary.example is not None:
        yield Sentence(f"example: {visible(summary.example)}", DIM, first=indent)
    if summary.hidden is not None:
        yield Sentence(f"but {visible(summary.hidden)}", MARK, first=indent)


def _row(name: str, line: Line, widths: Sequence[int], detail: Sentence | None) -> Grid:
    row, style = Grid.grid(padding=(0, GAP, 0, 0)), STATES.get(line.state or "", "")
    for width in widths:
        row.add_column(width=width, no_wrap=True)
    what, value, interval = _cells(line)
    mark = Text.assemble((what[:1], style), what[1:])
    cells = [Text(name, HEADLINE), mark, Text(value, style, justify="right"), Text(interval)]
    row.add_row(*cells, *([] if detail is None else [detail]))
    return row


def _sentence(line: Line) -> Sentence:
    """A line where columns have no room: `decision changes: 6.4 % (1.4 – 11.4), male → …`."""
    ends = f" ({visible(line.interval)})" if line.interval else ""
    detail = f", {visible(line.detail)}" if line.detail else ""
    text = f"{visible(line.what)}: {visible(line.value)}{ends}{detail}"
    return Sentence(text, first=f"{line.mark or ' '} ")
