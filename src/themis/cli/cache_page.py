"""What a cache holds, as a page for the terminal: its place, its size, and its subjects."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from themis.engine.cache import CacheContents
from themis.show.terminal.parts import Sentence, grid, indented, short
from themis.show.words.values import count, file_size, visible


def show_contents(contents: CacheContents) -> Iterator[RenderableType]:
    """The parts of what a cache holds from top to bottom."""
    subjects = count(len(contents.subjects), "subject") if contents.subjects else "empty"
    place, size = visible(str(contents.path)), file_size(contents.bytes)
    yield Sentence(f"{place}: {size}, {subjects}")
    if not contents.subjects:
        return
    heads = ("kind", "fingerprint", "decisions", "last used")
    table = grid({}, {}, {"justify": "right"}, {}, heads=heads)
    for each in contents.subjects:
        table.add_row(
            short(visible(each.kind)),
            short(visible(each.fingerprint)),
            short(f"{each.decisions:,}"),
            short(visible(each.last_used.replace("T", " ").removesuffix("+00:00") + " UTC")),
        )
    yield indented(table)
