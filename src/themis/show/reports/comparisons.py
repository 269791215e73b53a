"""Replays and differences as documents: an HTML page, or Markdown for a pull request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from themis.results.comparison import Differences
from themis.results.model import Result
from themis.results.parts import Naming
from themis.results.replays import Replay
from themis.results.withheld import withheld
from themis.show.blocks import Statement
from themis.show.html import Html, cut, tag
from themis.show.parts.comparisons import comparison_tables, headline_of, remarks, state_of
from themis.show.reports import markdown
from themis.show.reports.document import document, section
from themis.show.reports.drawing import chip, drawn, sentence
from themis.show.reports.method import started_on
from themis.show.words.headlines import capital
from themis.show.words.wording import PLAIN, Wording, named_title, subject_title, wording

SUFFIXES = (".html", ".md")
WORDS = {
    "Comparison": {"grave": "difference has grown", "calm": "nothing new", "open": "undecided"},
    "Replay": {"grave": "decisions differ", "calm": "no test differs", "open": "undecided"},
}


@dataclass(frozen=True)
class Topic:
    """What a document is about: what was tested, further facts, and the words for it."""

    title: str = ""
    about: str = ""
    words: Wording = PLAIN


def topic_of(before: Result, after: Result) -> Topic:
    """What two results that are compared are about."""
    about = " · ".join(
        f"{name}: {', '.join(known)}"
        for name, each in (("before", before), ("after", after))
        if (known := [*filter(None, (subject_title(each), started_on(each)))])
    )
    return Topic(subject_title(after), about, wording(after))


def topic_of_file(naming: Naming) -> Topic:
    """What a replay is about, as the file names it."""
    return Topic(named_title(naming), naming.purpose or "", Wording(naming))


def render_comparison(found: Differences | Replay, path: Path, topic: Topic | None = None) -> str:
    """The document that the name of a file asks for: a page, else Markdown."""
    shown, topic = withheld(found), topic or Topic()
    if path.suffix == ".md":
        return _markdown(shown, topic)
    printed = (found if isinstance(found, Replay) else shown).to_dict()  # by --json
    hashed = hashlib.sha256(json.dumps(printed, sort_keys=True).encode()).hexdigest()
    return _page(shown, hashed, topic)


def _page(found: Differences | Replay, hashed: str, topic: Topic) -> str:
    name = _name(found)
    title = cut(f"{name}: {headline_of(found)}", 120)
    return document(title, name, hashed, header(found, topic), *sections(found, topic))


def _name(found: Differences | Replay) -> str:
    return "Comparison" if isinstance(found, Differences) else "Replay"


def header(found: Differences | Replay, topic: Topic) -> Iterator[Html]:
    """What was compared, and the verdict."""
    name, state = _name(found), state_of(found)
    yield tag("h1", tag("bdi", topic.title or name))
    if topic.about:
        yield tag("p", capital(topic.about), class_="about")
    yield tag(
        "div",
        tag("p", chip(state, WORDS[name][state]), class_="chips"),
        tag("p", sentence(headline_of(found)), class_="sentence"),
        class_=f"verdict {state}",
    )


def sections(found: Differences | Replay, topic: Topic) -> Iterator[Html]:
    """What differs, and what is to be said of it."""
    for each in comparison_tables(found, topic.words):
        yield section(each.title.split()[0].lower(), each.title, drawn(each.blocks))
    yield section("notes", "Notes", drawn(remarks(found)))


def _markdown(found: Differences | Replay, topic: Topic) -> str:
    name = f"Themis: {markdown.escape(topic.title)}" if topic.title else "Themis"
    blocks = [Statement(headline_of(found), "headline")]
    blocks += [Statement(capital(topic.about))] if topic.about else []
    tables = (table for each in comparison_tables(found, topic.words) for table in each.blocks)
    parts = markdown.drawn([*blocks, *tables, *remarks(found)])
    return "\n\n".join([f"## {name}", *parts]) + "\n"
