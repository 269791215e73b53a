"""What is a report made of? Elements in which everything is escaped unless it is markup already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from themis.show.words.values import visible

LONGEST = 160  # characters of a value


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *content: Any, **attributes: Any) -> Html:
    """An element; `class_` and `aria_label` are written `class` and `aria-label`.

    Content that is not `Html` is shown as text. Attributes that are None or False are left out.
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(content)}</{name}>")


def empty(name: str, /, **attributes: Any) -> Html:
    """An element without content, as SVG and `<meta>` have them."""
    return Html(f"<{name}{_attributes(attributes)}/>")


def join(parts: Iterable[Any]) -> Html:
    """Several pieces one after the other; text among them is escaped."""
    return Html("".join(each if isinstance(each, Html) else text(each) for each in parts))


def text(value: Any) -> Html:
    """A value as text: escaped, and on one line; nothing for an empty one."""
    blank = isinstance(value, str) and value.isprintable() and not value.strip()
    return Html(escape(value if blank else visible(value), quote=True))


def value(each: Any, longest: int = LONGEST) -> Html:
    """A name or value, which may be empty, long or run from right to left."""
    return tag("bdi", cut(visible(each), longest))


def cut(shown: str, longest: int = LONGEST) -> str:
    """Text of at most so many characters."""
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def table(
    caption: Any,
    heads: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    kind: str = "plain",
    hidden_caption: bool = False,
    foot: Any = None,
) -> Html:
    """A table whose first column names the rows.

    A cell may be a pair of content and class. Tables of the kind "chart" show their rows as blocks
    on narrow screens: then each cell is told what it is, and the roles are written out because
    browsers forget that blocks are rows.
    """
    roles = kind.startswith("chart")
    labels = [_label(each) if roles else None for each in heads]
    head = [_cell("th", each, scope="col", role="columnheader" if roles else None)
            for each in heads]  # fmt: skip
    body = [_row(each, labels, roles=roles) for each in rows]
    if foot is not None:
        last = tag("td", foot, colspan=len(heads), class_="foot", role="cell" if roles else None)
        body.append(tag("tr", last, role="row" if roles else None))
    return tag(
        "table",
        tag("caption", caption, class_="unseen" if hidden_caption else None),
        tag("thead", tag("tr", *head, role="row" if roles else None)),
        tag("tbody", *body),
        class_=kind,
        role="table" if roles else None,
    )


def _row(cells: Sequence[Any], labels: Sequence[str | None], *, roles: bool) -> Html:
    first = _cell("th", cells[0], scope="row", role="rowheader" if roles else None)
    rest = (
        _cell("td", each, role="cell" if roles else None, data_label=label or None)
        for each, label in zip(cells[1:], labels[1:], strict=True)
    )
    return tag("tr", first, *rest, role="row" if roles else None)


def _label(head: Any) -> str:
    """What a cell is, where its head is plain words."""
    words = head[0] if isinstance(head, tuple) else head
    return "" if isinstance(words, Html) else str(words)


def _cell(name: str, content: Any, **attributes: Any) -> Html:
    if isinstance(content, tuple):
        content, attributes["class_"] = content
    return tag(name, content, **attributes)


def folded(summary: Any, *content: Any, kind: str | None = None) -> Html:
    """Something that opens on a click, and is open on paper."""
    return tag("details", tag("summary", summary), *content, class_=kind)


def shell(lines: Iterable[str]) -> Html:
    """Commands to be copied, whole, however long."""
    shown = (tag("span", visible(line), class_="line") for line in lines)
    return tag("pre", tag("code", *shown), tabindex="0")


def _attributes(attributes: dict[str, Any]) -> str:
    given = {name: each for name, each in attributes.items() if each is not None}
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(each), quote=True)}"'
        for name, each in given.items()
        if each is not False
    )
