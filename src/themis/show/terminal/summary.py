"""Sets in aligned columns: what differs, the number, its interval, whom it hurts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from themis.show.parts.summary import Line, SetSummary
from themis.show.terminal.drawing import STATES
from themis.show.terminal.parts import DIM, HEADLINE, MARK, Sentence
from themis.show.words.values import visible

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


def _row(name: str, line: Line, widths: Sequence[int], detail: Sentence | None) -> Table:
    row, style = Table.grid(padding=(0, GAP, 0, 0)), STATES.get(line.state or "", "")
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
