"""The frame of a report: one file that fetches and runs nothing, its sections, names and size."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypeVar

from themis._version import __version__
from themis.results.model import Result, Score
from themis.show.html import Html, cut, empty, join, tag
from themis.show.words.headlines import headline
from themis.show.words.searches import protection, set_text
from themis.show.words.values import count, cut_name, set_phrase, visible
from themis.show.words.wording import PLAIN, Wording

# One style for screens, phones and paper, in light and in dark. Blue and orange are told apart by
# all eyes; shapes and words carry the same meaning. Every colour of text keeps a contrast of 4.5 to
# what is behind it (a test computes it).
STYLE = files(__package__).joinpath("style.css").read_text(encoding="utf-8")

Some = TypeVar("Some", bound=Score)


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


def block(title: Any, *content: Any, level: str = "h3", kind: str = "block") -> Html:
    """A part of a section, about one score or one search."""
    return tag("div", tag(level, title), *content, class_=kind)


def blocks(
    name: str, title: str, intro: str, scores: Sequence[Some], show: Callable[[Some], Html],
    *, most: int, noun: str = "set",
) -> Html:  # fmt: skip
    """A folded section with a block for each score, as many as there is room for; or nothing."""
    if not scores:
        return Html()
    hidden = left_out(len(scores) - most, noun)
    return section(name, title, tag("p", intro), *map(show, scores[:most]), *hidden, fold=True)


def left_out(hidden: int, noun: str) -> Iterator[Html]:
    """That some are not shown, if so."""
    if hidden > 0:
        yield tag("p", f"{count(hidden, f'more {noun}')} not shown here", class_="faint")


def rest(hidden: int, one: str = "more is not shown", several: str = "more are not shown") -> str:
    """The foot of a table that has not all rows, else nothing."""
    return count(hidden, one, several) if hidden > 0 else ""


MORE_SCORES = ("more score is not shown", "more scores are not shown")
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
    return join([name, ": ", tag("bdi", cut_name(visible(score.output), LONGEST_NAME))])


def set_words(against: Sequence[str]) -> str:
    """A set in a sentence: `race and sex together`."""
    return cut(set_phrase(against), LONGEST_NAME)


def group_name(values: Mapping[str, Any], room: Room) -> Html:
    """A group: `green · male`."""
    return tag("bdi", cut_name(room.words.label(values), LONGEST_NAME))


def score_sentence(score: Score, room: Room) -> str:
    """The headline of a score, as a sentence without its full stop."""
    return cut(headline(score, room.words), LONGEST_SENTENCE)


def scores_of(result: Result, kind: type[Some]) -> list[Some]:
    """The scores of a kind, sets of protected characteristics first."""
    scores = [each for each in result.scores if isinstance(each, kind)]
    return sorted(scores, key=lambda each: protection(result, each.against))


LIMIT_BYTES = 300_000  # of a whole file; mail and browsers take it without a thought


@dataclass(frozen=True)
class Room:
    """How many of each kind are shown (the report says how many are not), and in which words."""

    words: Wording = PLAIN
    rows: int | None = None  # given people that were used, where there are some
    cards: int = 6  # sets with a card of their own
    scores: int = 60
    searches: int = 6
    checks: int = 60
    groups: int = 20  # of one score, with a picture
    more_groups: int = 150  # of one score, in its folded table
    categories: int = 500  # rows of a table in the annex
    sets: int = 120  # of a search
    people: int = 8  # scores whose people are shown
    pairs: int = 4  # of one score; half as many where there are several scores
    common: int = 8  # characteristics in which a pair agrees
    changes: int = 12  # directions of harm
    matrix: int = 6  # assignments on each side of the matrix
    regions: int = 8
    inputs: int = 80  # characteristics of the schema
    cautions: int = 30
    letters: int = 160  # of a value
    sentence: int = 600  # letters of a sentence that the subject had a word in


_MIDDLE = Room(cards=5, scores=40, checks=40, groups=12, more_groups=50, categories=120, sets=60,
               people=5, pairs=2, inputs=40)  # fmt: skip
_SMALL = Room(cards=3, scores=20, searches=2, checks=20, groups=8, more_groups=0, categories=24,
              sets=30, people=3, pairs=1, common=8, changes=6, matrix=4, regions=3, inputs=20,
              cautions=10, letters=60, sentence=300)  # fmt: skip
ROOMS = (Room(), _MIDDLE, _SMALL, replace(_SMALL, scores=8, categories=12, sets=12, inputs=10))


def fitting(render: Callable[[Room], str]) -> str:
    """The fullest text that is not too long."""
    text = ""
    for room in ROOMS:
        text = render(room)
        if len(text.encode("utf-8", "replace")) < LIMIT_BYTES:
            break
    return text
