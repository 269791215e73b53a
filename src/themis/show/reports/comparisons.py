"""Replays and differences as documents: an HTML page, or Markdown for a pull request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.replays import STATES, Replay
from themis.results.withheld import withheld
from themis.show.html import Html, cut, table, tag
from themis.show.reports.document import document, rest, section
from themis.show.reports.markdown import escape
from themis.show.reports.verdict import chip
from themis.show.words.comparisons import (
    bounds_text,
    change_text,
    differences_headline,
    guarantee,
    pair_outcome,
    quantity_text,
    replay_cost,
    replay_headline,
    shared_values,
)
from themis.show.words.headlines import capital
from themis.show.words.searches import set_text
from themis.show.words.values import count, visible
from themis.show.words.verdicts import State

ROWS = 200  # of a table
EXAMPLES = 12
LONGEST = 600  # letters of a sentence
SUFFIXES = (".html", ".md")

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # its title, its heads, its rows


def render_comparison(found: Differences | Replay, path: Path) -> str:
    """The document that the name of a file asks for: a page, else Markdown."""
    shown = withheld(found)
    if path.suffix == ".md":
        return _markdown(shown)
    hashed = hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()
    return _page(shown, hashed)


def _headline(found: Differences | Replay) -> str:
    if isinstance(found, Differences):
        return capital(differences_headline(found))
    return capital(replay_headline(found))


def _state(found: Differences | Replay) -> State:
    if isinstance(found, Differences):
        states: dict[str, State] = {"new discrimination": "grave", "nothing new": "calm"}
        return states.get(found.verdict, "open")
    if found.count("still", "new"):
        return "grave"
    return "calm" if found.conclusive else "open"


def _tables(found: Differences | Replay) -> Iterator[Table]:
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
    yield "Tests by set", ("Set", "Tests", *states), rows
    shown = [each for each in found.examples if each.state != "fixed"][:EXAMPLES]
    pairs: list[tuple[str, ...]] = [
        (each.state, pair_outcome(each), shared_values(each, everything=False)) for each in shown
    ]
    yield "Examples", ("State", "Pair", "Both have"), pairs


def _changes(
    differences: Sequence[ScoreDifference | SetDifference],
) -> list[tuple[str, ...]]:
    return [
        (quantity_text(each), change_text(each), bounds_text(each.before), bounds_text(each.after))
        for each in differences
    ]


def _remarks(found: Differences | Replay) -> Iterator[str]:
    if isinstance(found, Differences):
        yield from (f"Unseen: {note}" for note in found.open)
        yield from (f"Note: {note}" for note in found.unlike)
        yield guarantee(found)
        return
    for reason, rows in found.unknown_rows.items():
        yield f"Unknown: {count(rows, 'row')} of {visible(found.source)}: {reason}"
    yield from (f"Note: {note}" for note in found.notes)
    yield replay_cost(found)


def _page(found: Differences | Replay, hashed: str) -> str:
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
    parts = (_part(*each) for each in _tables(found))
    header, notes = [tag("h1", name), verdict], section("notes", "Notes", *remarks)
    return document(cut(f"{name}: {sentence}", 120), name, hashed, header, *parts, notes)


def _part(title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Html:
    if not rows:
        return Html()
    name = title.lower().replace(" ", "-")
    cells: list[list[Any]] = [[cut(each, LONGEST) for each in row] for row in rows[:ROWS]]
    drawn = table(title, heads, cells, kind="chart", foot=rest(len(rows) - ROWS))
    return section(name, title, drawn)


def _markdown(found: Differences | Replay) -> str:
    parts = ["## Themis", f"**{escape(_headline(found))}.**"]
    for _, heads, rows in _tables(found):
        if rows:
            lines = [heads, ["---"] * len(heads)]
            lines += [[escape(cut(each, LONGEST)) for each in row] for row in rows[:ROWS]]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    remarks = "\n".join(f"- {escape(cut(visible(each), LONGEST))}" for each in _remarks(found))
    return "\n\n".join([*parts, remarks]) + "\n"
