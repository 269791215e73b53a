"""Replays and differences as documents: an HTML page, or Markdown for a pull request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.model import Result
from themis.results.parts import Naming
from themis.results.replays import STATES, Replay
from themis.results.withheld import withheld
from themis.show.html import Html, cut, table, tag
from themis.show.reports.document import document, rest, section
from themis.show.reports.markdown import escape
from themis.show.reports.method import started_on
from themis.show.reports.page import named_title, subject_title
from themis.show.reports.verdict import chip
from themis.show.words.comparisons import (
    change_text,
    differences_headline,
    guarantee,
    measured_text,
    other_notes,
    pair_outcome,
    quantity_text,
    random_answers,
    replay_cost,
    replay_headline,
    shared_values,
)
from themis.show.words.headlines import capital
from themis.show.words.searches import set_text
from themis.show.words.values import count, visible
from themis.show.words.verdicts import State
from themis.show.words.wording import PLAIN, Wording, wording

ROWS = 200  # of a table
EXAMPLES = 12
LONGEST = 600  # letters of a sentence
SUFFIXES = (".html", ".md")
CHANGED = ("risen", "risen, tolerated", "new", "fallen", "gone")  # come first in a table

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # its title, its heads, its rows


@dataclass(frozen=True)
class Topic:
    """What a document is about: what was tested, further facts, and the words for it."""

    title: str = ""
    about: str = ""
    words: Wording = PLAIN


def topic_of(before: Result, after: Result) -> Topic:
    """What two results that are compared are about."""
    days = [(name, started_on(each)) for name, each in (("before", before), ("after", after))]
    about = " · ".join(f"{name}: {day}" for name, day in days if day)
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


def _headline(found: Differences | Replay) -> str:
    if isinstance(found, Differences):
        return differences_headline(found)
    return replay_headline(found)


def _state(found: Differences | Replay) -> State:
    if isinstance(found, Differences):
        states: dict[str, State] = {"new discrimination": "grave", "nothing new": "calm"}
        return states.get(found.verdict, "open")
    if found.count("still", "new"):
        return "grave"
    return "calm" if found.conclusive else "open"


def _tables(found: Differences | Replay, words: Wording) -> Iterator[Table]:
    if isinstance(found, Differences):
        heads = ("Change", "Before", "After")
        yield "Scores", ("Score", *heads), _changes(found.scores)
        yield "Combinations", ("Set", *heads), _changes(found.sets)
        return
    states = [state for state in STATES if found.count(state)]
    rows = [
        (set_text(each.against) or "no set", f"{each.tests:,}",
         *(f"{each.states.get(state, 0):,}" for state in states))
        for each in found.sets
    ]  # fmt: skip
    yield "Tests by set", ("Set", "Tests", *map(capital, states)), rows
    shown = [each for each in found.examples if each.state != "fixed"][:EXAMPLES]
    pairs: list[tuple[str, ...]] = [
        (capital(each.state), pair_outcome(each, words),
         shared_values(each, everything=False))
        for each in shown
    ]  # fmt: skip
    yield "Examples", ("State", "Pair", "Both have"), pairs


def _changes(
    differences: Sequence[ScoreDifference | SetDifference],
) -> list[tuple[str, ...]]:
    return [
        (quantity_text(each), capital(change_text(each)),
         *(measured_text(ends, each.quantity) for ends in (each.before, each.after)))
        for each in sorted(differences, key=lambda each: each.change not in CHANGED)
    ]  # fmt: skip


def _remarks(found: Differences | Replay) -> Iterator[str]:
    if isinstance(found, Differences):
        yield from (f"Unseen: {note}" for note in found.open)
        yield from (f"Note: {note}" for note in found.unlike)
        yield guarantee(found)
        return
    for reason, rows in found.unknown_rows.items():
        yield f"Unknown: {count(rows, 'row')} of {visible(found.source)}: {reason}"
    if noise := random_answers(found):
        yield noise
    yield from (f"Note: {note}" for note in other_notes(found))
    yield replay_cost(found)


def _page(found: Differences | Replay, hashed: str, topic: Topic) -> str:
    name = "Comparison" if isinstance(found, Differences) else "Replay"
    sentence = cut(_headline(found), LONGEST)
    state = _state(found)
    words = {"grave": "new discrimination", "calm": "nothing new", "open": "undecided"}
    if isinstance(found, Replay):
        words = {"grave": "discriminates", "calm": "no test discriminates", "open": "undecided"}
    verdict = tag(
        "div",
        tag("p", chip(state, words[state]), class_="chips"),
        tag("p", tag("bdi", f"{sentence}."), class_="sentence"),
        class_=f"verdict {state}",
    )
    remarks = (tag("p", tag("bdi", cut(visible(each), LONGEST))) for each in _remarks(found))
    parts = (_part(*each) for each in _tables(found, topic.words))
    about = [tag("p", capital(topic.about), class_="about")] if topic.about else []
    header = [tag("h1", tag("bdi", topic.title or name)), *about, verdict]
    notes = section("notes", "Notes", *remarks)
    return document(cut(f"{name}: {sentence}", 120), name, hashed, header, *parts, notes)


def _part(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Html:
    if not rows:
        return Html()
    name = title.lower().replace(" ", "-")
    cells = [[tag("bdi", cut(each, LONGEST)) for each in row] for row in rows[:ROWS]]
    drawn = table(title, heads, cells, kind="chart", foot=rest(len(rows) - ROWS))
    return section(name, title, drawn)


def _markdown(found: Differences | Replay, topic: Topic) -> str:
    name = f"Themis: {escape(topic.title)}" if topic.title else "Themis"
    parts = [f"## {name}", f"**{escape(_headline(found))}.**"]
    if topic.about:
        parts.append(escape(capital(topic.about)))
    for _, heads, rows in _tables(found, topic.words):
        if rows:
            lines = [heads, ["---"] * len(heads)]
            lines += [[escape(cut(each, LONGEST)) for each in row] for row in rows[:ROWS]]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    remarks = "\n".join(f"- {escape(cut(visible(each), LONGEST))}" for each in _remarks(found))
    return "\n\n".join([*parts, remarks]) + "\n"
