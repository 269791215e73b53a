"""Sets in aligned columns: what differs, the number, its interval, whom it hurts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from themis.results.finding import State
from themis.show.parts.summary import Line, SetSummary
from themis.show.terminal.parts import DIM, HEADLINE, MARK, WARNING, Sentence
from themis.show.words.values import visible

STYLES: dict[State, str] = {"grave": "bold red", "calm": "green", "open": WARNING}
GAP = "  "
LONGEST_NAME = 20  # columns: longer names have a line of their own
LEAST_DETAIL = 24  # columns: with less room it stands below its number


@dataclass(frozen=True)
class Summary:
    """Sets with their lines; where columns have no room each line is a sentence."""

    sets: Sequence[SetSummary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = _Columns.of(self.sets)
        is_wide = columns.width <= options.max_width
        beside = columns.width + len(GAP) + LEAST_DETAIL <= options.max_width
        for each in self.sets:
            yield from _set(each, columns, is_wide, beside)


@dataclass(frozen=True)
class _Columns:
    """The widths of what is aligned, the same for all sets."""

    name: int
    what: int
    value: int
    interval: int

    @classmethod
    def of(cls, sets: Sequence[SetSummary]) -> _Columns:
        lines = [line for each in sets for line in each.lines]
        names = max((cell_len(visible(each.name)) for each in sets), default=0)
        return cls(
            names if names <= LONGEST_NAME else 0,
            *(
                max((cell_len(visible(getattr(line, column))) for line in lines), default=0)
                for column in ("what", "value", "interval")
            ),
        )

    @property
    def start(self) -> int:
        """Where marks begin."""
        return self.name + len(GAP)

    @property
    def width(self) -> int:
        """Of all columns but the last."""
        return self.start + 2 + self.what + self.value + self.interval + 2 * len(GAP)


def _set(
    summary: SetSummary, columns: _Columns, is_wide: bool, beside: bool
) -> Iterator[RenderableType]:
    name = visible(summary.name)
    if not is_wide or cell_len(name) > columns.name:
        yield Sentence(name, HEADLINE)
        name = ""
    for line in summary.lines:
        if not is_wide:
            yield _sentence(line)
            continue
        row = _row(line, columns)
        row = Text.assemble((_padded(name, columns.name), HEADLINE), GAP, row, no_wrap=True)
        name = ""
        if beside and line.detail:
            yield _Beside(row, columns.width, line.detail)
            continue
        yield row
        if line.detail:
            yield Sentence(visible(line.detail), DIM, first=" " * (columns.start + 2))
    indent = " " * (columns.start + 2 if is_wide else 2)
    if summary.example is not None:
        yield Sentence(f"example: {visible(summary.example)}", DIM, first=indent)
    if summary.hidden is not None:
        yield Sentence(f"but {visible(summary.hidden)}", MARK, first=indent)


def _row(line: Line, columns: _Columns) -> Text:
    style = STYLES[line.state] if line.state is not None else ""
    return Text.assemble(
        (f"{line.mark or ' '} ", style),
        _padded(visible(line.what), columns.what),
        GAP,
        (_padded(visible(line.value), columns.value, right=True), style),
        GAP,
        _padded(visible(line.interval) if line.interval else "", columns.interval),
    )


def _padded(text: str, width: int, *, right: bool = False) -> str:
    fill = " " * (width - cell_len(text))
    return f"{fill}{text}" if right else f"{text}{fill}"


def _sentence(line: Line) -> Sentence:
    """A line where columns have no room: `decision changes: 6.4 % (1.4 – 11.4), male → …`."""
    ends = f" ({visible(line.interval)})" if line.interval else ""
    detail = f", {visible(line.detail)}" if line.detail else ""
    text = f"{visible(line.what)}: {visible(line.value)}{ends}{detail}"
    return Sentence(text, first=f"{line.mark or ' '} ")


@dataclass(frozen=True)
class _Beside:
    """A row with its details in the room to the right, wrapped there."""

    row: Text
    width: int
    detail: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self.width - len(GAP)
        lines = console.render_lines(
            Sentence(visible(self.detail), DIM), options.update(max_width=room), pad=False
        )
        for place, segments in enumerate(lines):
            before = self.row if not place else Text(" " * self.width)
            text = "".join(segment.text for segment in segments)
            yield Text.assemble(before, GAP, (text, DIM), no_wrap=True)
