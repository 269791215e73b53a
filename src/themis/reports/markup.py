"""What is a report made of? Elements in which everything is escaped unless it is markup already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from themis.display_words import visible

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
    """A value as text: escaped, and on one line."""
    return Html(escape(visible(value), quote=True))


def value(each: Any, longest: int = LONGEST) -> Html:
    """A name or value that may be long or run from right to left, kept apart from its sentence."""
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
    """A table whose first column names the rows; what is a number by its kind is set by style.

    A cell may be a pair of content and class. The roles are written out because narrow screens
    show the rows as blocks, which would make browsers forget that they are rows.
    """
    head = tag("tr", *(_cell("th", each, scope="col", role="columnheader") for each in heads),
               role="row")  # fmt: skip
    body = [
        tag(
            "tr",
            _cell("th", row[0], scope="row", role="rowheader"),
            *(_cell("td", each, role="cell") for each in row[1:]),
            role="row",
        )
        for row in rows
    ]
    if foot is not None:
        body.append(tag("tr", tag("td", foot, colspan=len(heads), class_="foot", role="cell"),
                        role="row"))  # fmt: skip
    return tag(
        "table",
        tag("caption", caption, class_="unseen" if hidden_caption else None),
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        class_=kind,
        role="table",
    )


def _cell(name: str, content: Any, **attributes: Any) -> Html:
    if isinstance(content, tuple):
        content, attributes["class_"] = content
    return tag(name, content, **attributes)


def folded(summary: Any, *content: Any) -> Html:
    """Something that opens on a click, and is open on paper."""
    return tag("details", tag("summary", summary), *content)


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
