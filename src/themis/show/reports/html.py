"""What is a report made of? Elements in which everything is escaped unless it is markup already.

What is around a report? One file that fetches nothing, runs nothing, and says so.

How are sets and groups named in a report? In the words of the displays, of a bounded length.

Whose scores have people to show? What the sections on people share.

How much of a result has room in a report? Less of everything, until the file is small enough.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from themis.results.model import CausalScore, Result, Score
from themis.show.reports.style import STYLE
from themis.show.words.scores import headline
from themis.show.words.searches import protection, set_text
from themis.show.words.values import count, label, set_phrase, visible

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


def policy() -> str:
    """The content security policy: the page's own style, and nothing else at all."""
    own = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{own}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def document(title: str, *content: Any) -> str:
    """A whole page."""
    head = (
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=policy()),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        empty("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        empty("link", rel="icon", href="data:,"),  # else browsers ask a server for one
        tag("style", Html(STYLE)),
    )
    page = tag("html", tag("head", *head), tag("body", *content), lang="en", dir="ltr")
    # A lone surrogate in a name can't be written as UTF-8; `visible` shows those as escapes.
    return f"<!doctype html>\n{page}\n"


LONGEST_NAME = 240  # a set may be made of hundreds of characteristics
LONGEST_SENTENCE = 700


def set_name(against: Iterable[str]) -> Html:
    """A set in a table or a heading: `race, sex`."""
    return tag("bdi", cut(set_text(against), LONGEST_NAME))


def score_name(score: Score) -> Html:
    """The set of a score, and which output it is about where there are several."""
    name = set_name(score.against)
    if score.output is None:
        return name
    return join([name, ": ", tag("bdi", cut(visible(score.output), LONGEST_NAME))])


def set_words(against: Sequence[str]) -> str:
    """A set in a sentence: `race and sex together`."""
    return cut(set_phrase(against), LONGEST_NAME)


def group_name(values: Mapping[str, Any]) -> Html:
    """A group: `race green, sex male`."""
    return tag("bdi", cut(label(values), LONGEST_NAME))


def score_sentence(score: Score) -> str:
    """The headline of a score, as a sentence without its full stop."""
    return cut(sentence(headline(score)), LONGEST_SENTENCE)


def sentence(words: str) -> str:
    """Words of ours that start a line, with a capital; names of the user stay as they are."""
    ours = words.startswith(("the ", "all groups ", "nothing ", "no set "))
    return f"{words[:1].upper()}{words[1:]}" if ours else words


def causal_scores(result: Result) -> list[CausalScore]:
    """The causal scores, sets of protected characteristics first."""
    scores = [each for each in result.scores if isinstance(each, CausalScore) and each.samples]
    return sorted(scores, key=lambda each: protection(result, each.against))


def left_out(hidden: int, noun: str) -> Iterator[Html]:
    """That some are not shown, if so."""
    if hidden:
        yield tag("p", f"{count(hidden, f'more {noun}')} not shown here", class_="faint")


LIMIT_BYTES = 300_000  # of a whole file; mail and browsers take it without a thought


@dataclass(frozen=True)
class Room:
    """How many of each kind are shown; the report says how many are not."""

    scores: int = 60
    searches: int = 6
    checks: int = 60
    groups: int = 20  # of one score, with a picture
    more_groups: int = 150  # of one score, in its folded table
    categories: int = 500  # rows of a table in the annex
    sets: int = 120  # of a search
    people: int = 8  # scores whose people are shown
    pairs: int = 4  # of one score; half as many where there are several scores
    common: int = 12  # characteristics in which two people agree
    changes: int = 12  # directions of harm
    matrix: int = 6  # assignments on each side of the matrix
    regions: int = 8
    inputs: int = 80  # characteristics of the schema
    cautions: int = 30
    letters: int = 160  # of a value
    sentence: int = 600  # letters of a sentence that the subject had a word in


_MIDDLE = replace(
    Room(),
    scores=40,
    checks=40,
    groups=12,
    more_groups=50,
    categories=120,
    sets=60,
    people=5,
    pairs=2,
    inputs=40,
)
_SMALL = replace(
    _MIDDLE,
    scores=20,
    searches=2,
    checks=20,
    groups=8,
    more_groups=0,
    categories=24,
    sets=30,
    people=3,
    pairs=1,
    common=8,
    changes=6,
    matrix=4,
    regions=3,
    inputs=20,
    cautions=10,
    letters=60,
    sentence=300,
)
ROOMS = (Room(), _MIDDLE, _SMALL, replace(_SMALL, scores=8, categories=12, sets=12, inputs=10))


def fitting(render: Callable[[Room], str]) -> str:
    """The fullest text that is not too long."""
    text = ""
    for room in ROOMS:
        text = render(room)
        if len(text.encode("utf-8", "replace")) < LIMIT_BYTES:
            break
    return text
