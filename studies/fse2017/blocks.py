"""A report as blocks, and how they look in Markdown and in HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: str  # with *emphasis*, **bold** and `code`


@dataclass(frozen=True)
class Points:
    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[int] = (0,)  # the columns that hold words; numbers stand to the right


@dataclass(frozen=True)
class Picture:
    """A drawing that only the HTML report shows; its numbers stand in a table beside it."""

    svg: str


Block = Heading | Paragraph | Points | Table | Picture

LONG = 24  # letters of a cell that may be broken into lines

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums;
  font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd; }
td { white-space: nowrap; }
.words { text-align: left; }
td.long { white-space: normal; }
thead th { border-bottom: 2px solid #888; vertical-align: bottom; }
tbody tr:nth-child(even) { background: #f6f6f6; }
code { background: #f0f0f0; padding: 0 0.2em; }
svg { max-width: 100%; height: auto; }
"""


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown, without the pictures."""
    parts = [text for text in map(_markdown, blocks) if text]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Points(items):
            return "\n".join(f"* {item}" for item in items)
        case Table(header, rows, words):
            rule = ["---" if place in words else "--:" for place in range(len(header))]
            return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
        case Picture():
            return ""


def page(title: str, blocks: Sequence[Block]) -> str:
    """The blocks as one HTML page that needs no other file."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_inline(text)}</p>"
        case Points(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Table(header, rows, words):
            head = _cells("th", header, words)
            body = "\n".join(f"<tr>{_cells('td', row, words)}</tr>" for row in rows)
            return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        case Picture(svg):
            return f"<figure>{svg}</figure>"


def _cells(tag: str, cells: Sequence[str], words: Sequence[int]) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    parts = []
    for place, cell in enumerate(cells):
        kinds = ["words"] * (place in words) + ["long"] * (len(cell) > LONG)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        parts.append(f"<{tag}{scope}{kind}>{_inline(cell)}</{tag}>")
    return "".join(parts)


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
