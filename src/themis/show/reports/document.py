"""The frame of a report: one file that fetches and runs nothing, its sections, names and size."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from themis._version import __version__
from themis.show.html import Html, empty, tag
from themis.show.words.values import count

# One style for screens, phones and paper, in light and in dark. Blue and orange are told apart by
# all eyes; shapes and words carry the same meaning. Every colour of text keeps a contrast of 4.5 to
# what is behind it (a test computes it).
STYLE = files(__package__).joinpath("style.css").read_text(encoding="utf-8")


def policy(style: str = STYLE) -> str:
    """The content security policy: the page's own style, and nothing else at all."""
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{own}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, name: str, hashed: str, header: Iterable[Any], *content: Any) -> str:
    """A whole page: what it is called, the hash of its result, its top, and its content."""
    # On paper every page has its number and the result that it is of.
    style = (
        f'{STYLE}@page{{@bottom-left{{content:"Themis {name.lower()}, result {hashed[:16]}"}}}}\n'
    )
    head = (
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=policy(style)),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        empty("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        empty("link", rel="icon", href="data:,"),  # else browsers ask a server for one
        tag("style", Html(style)),
    )
    body = (
        tag("a", f"Skip to the {name.split()[-1].lower()}", href="#main", class_="skip"),
        tag("header", tag("p", tag("b", "Themis"), f" {name}", class_="brand"), *header),
        tag("main", *content, id="main"),
        tag(
            "footer",
            tag("p", f"Written by Themis {__version__}. The page fetches and runs nothing."),
            tag("p", "SHA-256 of the result: ", tag("code", hashed)),
        ),
    )  # fmt: skip
    page = tag("html", tag("head", *head), tag("body", *body), lang="en", dir="ltr")
    # A lone surrogate in a name can't be written as UTF-8; `visible` shows those as escapes.
    return f"<!doctype html>\n{page}\n"


def section(
    name: str, title: str, *content: Any, kind: str | None = None, fold: bool = False
) -> Html:
    """A part that links lead to: its heading, and what follows; folded, until somebody asks."""
    heading = f"{name}-title"
    if fold:
        summary = tag("summary", tag("h2", title, id=heading))
        return tag("details", summary, tag("div", *content, id=name), class_="part")
    return tag("section", tag("h2", title, id=heading), *content,
               class_=kind, id=name, aria_labelledby=heading)  # fmt: skip


def left_out(hidden: int, noun: str) -> Iterator[Html]:
    """That some are not shown, if so."""
    if hidden > 0:
        yield tag("p", f"{count(hidden, f'more {noun}')} not shown here", class_="faint")


def rest(hidden: int, noun: str = "row") -> str:
    """The foot of a table that has not all rows, else nothing."""
    return f"{count(hidden, f'more {noun}')} not shown" if hidden > 0 else ""


LIMIT_BYTES = 300_000  # of a whole file; mail and browsers take it without a thought


@dataclass(frozen=True)
class Space:
    """How many of each kind a page shows; it says how many it does not."""

    cards: int = 3  # sets with a card of their own
    scores: int = 60
    searches: int = 6
    checks: int = 60
    groups: int = 60  # of one score
    categories: int = 500  # rows of a table in the annex
    sets: int = 120  # of a search
    people: int = 8  # scores whose people are shown
    pairs: int = 4  # of one score; half as many where there are several scores
    changes: int = 12  # directions of harm
    regions: int = 8
    inputs: int = 80  # characteristics of the schema
    cautions: int = 30


_SMALL = Space(3, 20, 2, 20, 8, 24, 30, 3, 1, 6, 3, 20, 10)
SPACES = (Space(), _SMALL, replace(_SMALL, scores=8, categories=12, sets=12, inputs=10))


def fitting(render: Callable[[Space], str]) -> str:
    """The fullest text that is not too long."""
    text = ""
    for space in SPACES:
        text = render(space)
        if len(text.encode("utf-8", "replace")) < LIMIT_BYTES:
            break
    return text
