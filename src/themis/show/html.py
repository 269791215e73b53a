"""HTML elements in which everything is escaped that is not markup already; pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from themis.show.words.values import cut_name, unbroken, visible

LONGEST = 160  # characters of a value


class Html(str):
    """Text that is markup already.

    Other text becomes markup only in `text`, which also shows control characters as escapes: a
    string class that escapes whatever it is joined with could not promise that.
    """

    __slots__ = ()


def tag(name: str, /, *content: Any, **attributes: Any) -> Html:
    """An element; `class_` and `aria_label` are written `class` and `aria-label`.

    Content that is not `Html` is shown as text. Attributes that are None or False are left out.
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(content)}</{name}>")


def empty(name: str, /, **attributes: Any) -> Html:
    """An element without content, as SVG and `<meta>` have them."""
    return Html(f"<{name}{_attributes(attributes)}/>")


def _attributes(attributes: dict[str, Any]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_written(each), quote=True)}"'
        for name, each in attributes.items()
        if each is not None and each is not False
    )


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def join(parts: Iterable[Any]) -> Html:
    """Several pieces one after the other; text among them is escaped."""
    return Html("".join(each if isinstance(each, Html) else text(each) for each in parts))


def text(value: Any) -> Html:
    """A value as text: escaped, and on one line; nothing for an empty one.

    Numbers stay with their units. What is to be copied as it is goes through `literal`.
    """
    blank = isinstance(value, str) and value.isprintable() and not value.strip()
    return literal(value if blank else unbroken(visible(value)))


def literal(shown: str) -> Html:
    """Visible text as it is, escaped."""
    return Html(escape(shown, quote=True))


def value(each: Any, longest: int = LONGEST) -> Html:
    """A name or value, which may be empty, long or run from right to left."""
    return tag("bdi", literal(cut_name(visible(each), longest)))


def cut(shown: str, longest: int = LONGEST) -> str:
    """The beginning of a sentence or of a list, cut to a number of characters."""
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def table(
    caption: Any,
    heads: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    kind: str = "plain",
    foot: Any = "",
) -> Html:
    """A table whose first column names the rows.

    A head or a cell may be a pair of content and class; a cell has the class of its head, too.
    Tables of the kind "chart" show their rows as blocks on narrow screens: then
    each cell is told what it is, and the roles are written out because browsers forget that blocks
    are rows.
    """
    columns = [each if isinstance(each, tuple) else (each, None) for each in heads]
    roles = kind.startswith("chart") or kind == "summary"
    row = {"role": "row"} if roles else {}
    head = [
        tag("th", content, scope="col", role="columnheader" if roles else None, class_=name)
        for content, name in columns
    ]
    body = [_row(each, columns, roles=roles) for each in rows]
    if foot:
        last = tag("td", foot, colspan=len(heads), class_="foot", role="cell" if roles else None)
        body.append(tag("tr", last, **row))
    return tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *head, **row)),
        tag("tbody", *body),
        class_=kind,
        role="table" if roles else None,
    )


def _row(cells: Sequence[Any], columns: Sequence[tuple[Any, str | None]], *, roles: bool) -> Html:
    parts = [tag("th", cells[0], scope="row", role="rowheader" if roles else None)]
    for cell, (head, name) in zip(cells[1:], columns[1:], strict=True):
        content, own = cell if isinstance(cell, tuple) else (cell, None)
        label = str(head) if roles and not isinstance(head, Html) else ""
        parts.append(
            tag(
                "td",
                content,
                role="cell" if roles else None,
                data_label=label or None,
                class_=" ".join(filter(None, (name, own))) or None,
            )
        )
    return tag("tr", *parts, role="row" if roles else None)


def folded(summary: Any, *content: Any, kind: str | None = None) -> Html:
    """Something that opens on a click; closed, it is not on paper."""
    return tag("details", tag("summary", summary), *content, class_=kind)


def shell(lines: Iterable[str]) -> Html:
    """Commands to be copied, whole, however long."""
    shown = (tag("span", literal(visible(line)), class_="line") for line in lines)
    return tag("pre", tag("code", *shown), tabindex="0")


BLUE = "#3478c6"  # on white and on black its contrast is above 4


def upright(x: float | str, y1: float, y2: float, **look: str) -> Html:
    return empty("line", x1=x, x2=x, y1=y1, y2=y2, **look)


def letters(words: str, x: float | str, y: float, anchor: str) -> Html:
    return tag("text", words, x=x, y=y, text_anchor=anchor)
