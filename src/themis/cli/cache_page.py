"""What a cache holds, as a page for the terminal: its place, its size, and its subjects."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from themis.engine.cache import CacheContents
from themis.show.terminal.parts import DIM, Sentence, grid, indented, short
from themis.show.words.values import count, visible


def show_contents(contents: CacheContents) -> Iterator[RenderableType]:
    """The parts of what a cache holds from top to bottom."""
    size = _size(contents.bytes)
    yield Sentence(f"{visible(str(contents.path))}: {size}, {_subjects(contents)}")
    if not contents.subjects:
        return
    table = grid({}, {}, {"justify": "right"}, {})
    table.add_row(*(short(head, DIM) for head in ("kind", "fingerprint", "decisions", "last used")))
    for each in contents.subjects:
        table.add_row(
            short(visible(each.kind)),
            short(visible(each.fingerprint)),
            short(f"{each.decisions:,}"),
            short(visible(each.last_used.replace("T", " ").removesuffix("+00:00") + " UTC")),
        )
    yield indented(table)


def _subjects(contents: CacheContents) -> str:
    return count(len(contents.subjects), "subject") if contents.subjects else "empty"


def _size(number: int) -> str:
    for limit, divisor, unit in ((10**3, 1, "bytes"), (10**6, 10**3, "kB"), (10**9, 10**6, "MB")):
        if number < limit:
            return f"{number / divisor:.3g} {unit}"
    return f"{number / 10**9:.3g} GB"
