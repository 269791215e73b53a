"""Searches in a terminal: the minimal sets, whom they hurt, and what is certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import RenderableType

from themis.results.model import CausalScore, GroupScore, Result, Score, SearchResult
from themis.show.blocks import Block, Commands, Part, Statement
from themis.show.parts.people import pair_blocks
from themis.show.parts.scores import ALL
from themis.show.parts.search import found_table, reasons_table, undecided_blocks
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import Page, make_console, render, rule
from themis.show.terminal.results import brief_doubts, show_cost, show_doubts
from themis.show.words.headlines import few_text
from themis.show.words.searches import (
    guarantee,
    harms,
    protected_first,
    scores_about,
    search_headline,
    set_counts,
    set_text,
    telling_witness,
)
from themis.show.words.values import set_phrase
from themis.show.words.wording import PLAIN, Wording, wording

ROWS = 40  # of a table
EXAMPLES = 5  # sets whose people are shown, unless all are asked for


def render_search_headlines(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per search with the sets that it found, and the failures."""
    words = wording(result)
    said = [
        Statement(search_headline(search, words, "; ".join(map(set_text, search.found))))
        for search in result.searches
    ]
    return render(drawn([*said, *brief_doubts(result)]), make_console(file))


def show_searches(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of the searches, then what to know before believing them."""
    doubts = [*show_doubts(result, everything=everything)]
    for search in map(protected_first(result), result.searches):
        if len(result.searches) > 1:
            yield rule(f"{search.measure} scores")
        yield from drawn([Statement(search_headline(search, wording(result)), "headline")])
        yield from drawn(doubts)
        doubts = []
        yield from drawn(show_search(search, result, everything=everything))
        yield ""
    yield from drawn([*doubts, *show_cost(result)])


render_search = Page[Result](show_searches)


def show_search(search: SearchResult, result: Result, *, everything: bool) -> Iterator[Block]:
    """One search: its sets, its people, what is open, what is certain."""
    scores, words = scores_about(result, search), wording(result)
    most = ALL if everything else ROWS
    if search.found:
        yield found_table(search, scores, most=most)
    measured = [scores[each] for each in search.found if each in scores]
    shown = measured if everything else measured[:EXAMPLES]
    for score in shown:
        if blocks := [*show_people(score, words, everything=everything)]:
            yield Part(set_phrase(score.against), blocks)
    if len(shown) < len(measured):
        hidden = len(measured) - len(shown)
        yield Statement(f"and {hidden:,} more: -v shows whom they hurt", "faint")
    yield from undecided_blocks(search, **({"most": ROWS} if everything else {}))
    yield from (Statement(set_counts(search)), Statement(guarantee(search)))
    yield from (Statement(str(note), "warning", "note") for note in search.notes)
    if everything:
        yield reasons_table(search, most=ROWS)


def show_people(
    score: Score, words: Wording = PLAIN, *, everything: bool = False
) -> Iterator[Block]:
    """Whom a set hurts: the direction, one pair of people, and how to see it in a shell."""
    for text in harms(score, most=3 if everything else 1, words=words):
        few = few_text(score, words) if isinstance(score, GroupScore) else ""
        yield Statement(f"{text}{few}")
    witness = telling_witness(score)
    if witness is None or not isinstance(score, CausalScore):
        return
    yield from pair_blocks(witness, score, words)
    if everything and witness.reproduce:
        yield Commands(witness.reproduce)
