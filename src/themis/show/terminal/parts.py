"""The parts of a terminal page: bars, wrapped sentences, tables that never break; its text."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from themis.show.blocks import WHOLE, Axis
from themis.show.words.values import NO_BREAK, unbroken

WIDEST = 100  # longer lines are hard to read
WORD = 24  # letters that a table does not break
SURE, POSSIBLE, REST, LIMIT = "█", "▒", "·", "┃"
HEADLINE = "bold"
# Colours that are read on light and on dark terminals: red, green and magenta, neither yellow, blue
# nor cyan, and nothing is said by them alone. Dim is what can be missed: heads, costs, fillers.
MARK = "bold magenta"
DIM = "dim"
WARNING = "magenta"

# Columns of a grid.
NUMBER = {"justify": "right"}
FOLDED = {"no_wrap": False, "overflow": "fold"}


def render(parts: Iterable[RenderableType], console: Console) -> str:
    """The text of these parts, with the escape codes that the console's terminal takes."""
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, ShellLine))
    lines = (line.rstrip() if line.isprintable() else line for line in capture.get().split("\n"))
    return "\n".join(lines)


def make_console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """A console that shows what it is given literally, in colour only on a terminal."""
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    if width is None and not 0 < console.width <= WIDEST:  # COLUMNS=0: nobody knows it
        console.width = min(console.width or shutil.get_terminal_size().columns, WIDEST)
    return console


@dataclass(frozen=True)
class IntervalBar:
    """A bar on an axis: solid up to `low`, shaded up to `high`; fills the width it gets.

    A limit is a line across it.
    """

    low: float
    high: float
    axis: Axis = WHOLE
    style: str = ""
    limit: float | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        solid = round(width * self.axis.part(self.low))
        reach = max(round(width * self.axis.part(self.high)), solid)
        if reach == 0 and self.high > 0:
            reach = 1
        bar = Text.assemble(
            (SURE * solid, self.style),
            (POSSIBLE * (reach - solid), self.style),
            (REST * (width - reach), DIM),
            no_wrap=True,
        )
        if self.limit is not None and width:
            place = min(round(width * self.axis.part(self.limit)), width - 1)
            bar = Text.assemble(bar[:place], (LIMIT, HEADLINE), bar[place + 1 :], no_wrap=True)
        yield bar

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(4, options.max_width)


@dataclass(frozen=True)
class Sentence:
    """Wrapped text; a number stays on one line with its unit."""

    text: str
    style: str = ""
    first: str = ""  # what stands before the first line; the others are indented by as much

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        words = max((cell_len(word) for word in _glued(self.text).split(" ")), default=0)
        fits = len(self.first) + words <= options.max_width  # else it is folded within words
        width = options.max_width if fits else max(options.max_width, 20)
        first = self.first
        for line in _wrapped(self.text, width - len(first)):
            yield Text(first + line, self.style, overflow="fold")
            first = " " * len(first)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        words = (cell_len(word) for word in _glued(self.text).split(" "))
        least = max(max(words, default=0), cell_len(self.text) // 2)  # on two lines, if it is short
        widths = (min(least, WORD), cell_len(self.text))
        return Measurement(*(len(self.first) + each for each in widths)).with_maximum(
            options.max_width
        )


@dataclass(frozen=True)
class Scale:
    """The head of a column of bars, or nothing where it does not fit."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield short(self.text if len(self.text) <= options.max_width else "", DIM)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(4, max(len(self.text), 4)).with_maximum(options.max_width)


def message_lines(message: str, width: int) -> str:
    """A message such as `error: …` in lines, the later ones indented; no word is broken."""
    head = re.match(r"(internal error|error|warning|note)(?:\[[\w-]+\])?: ", message)
    lines = textwrap.wrap(
        _glued(message),
        max(width, 20),
        subsequent_indent=" " * (0 if head is None else len(f"{head[1]}: ")),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(NO_BREAK, " ")


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines that fit into the width; wide letters count as two columns, long words are split."""
    line, width = "", max(width, 10)
    for word in _glued(text).split(" "):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) > width:
            if line:
                yield line.replace(NO_BREAK, " ")
            *parts, longer = chop_cells(word, width)
            yield from parts
        line = longer
    if line:
        yield line.replace(NO_BREAK, " ")


def _glued(text: str) -> str:
    """The text with spaces at which textwrap breaks no line."""
    text = unbroken(text).replace(" confidence", f"{NO_BREAK}confidence")
    for sign in ("<", "×", "·", "±", "seed"):
        text = text.replace(f"{sign} ", f"{sign}{NO_BREAK}")
    return text


def indented(part: RenderableType, columns: int = 2) -> RenderableType:
    """A part that stands a little to the right; a command to be copied stays whole."""
    return part if isinstance(part, ShellLine) else Padding(part, (0, 0, 0, columns))


def short(text: str, style: str = "") -> Text:
    """Text that is cut with … instead of wrapped."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


class ShellLine(Text):
    """A command to be copied: never cut nor broken, however long."""

    def __init__(self, command: str) -> None:
        super().__init__(f"  $ {command}")


def grid(
    *columns: Mapping[str, Any],
    heads: Iterable[str] = (),
    expand: bool = False,
    gap: int = 2,
) -> Table:
    """A table without lines; each column is what `Table.add_column` takes."""
    table = Table.grid(padding=(0, gap, 0, 0), expand=expand)
    for column in columns:
        table.add_column(**{"no_wrap": True, "overflow": "ellipsis", **column})
    if texts := [short(head, DIM) for head in heads]:
        table.add_row(*texts)
    return table


@dataclass(frozen=True)
class Fitting:
    """The first table whose words and numbers have room; else what it has in lines.

    Nothing is cut. This is the one rule for narrow terminals.
    """

    tables: tuple[Table, ...]
    lines: tuple[RenderableType, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited = options.update(max_width=10_000)
        for table in self.tables:
            least = Measurement.get(console, unlimited, table).minimum
            for width in range(options.max_width, least - 1, -1):  # columns may be given too much
                drawn = list(console.render(table, options.update(max_width=width)))
                widths = map(Segment.get_line_length, Segment.split_lines(drawn))
                if max(widths, default=0) <= options.max_width:
                    yield from drawn
                    return
        yield from self.lines


def rule(title: str) -> Rule:
    """A line with a title, above what belongs together."""
    return Rule(Text(title, HEADLINE), align="left", style=DIM)
