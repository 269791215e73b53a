"""Searches in a terminal: the minimal sets, whom they hurt, and what is certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType

from themis.results.model import CausalScore, ExcessScore, Result, Score, SearchResult
from themis.show.blocks import Block, Commands, Part, Statement
from themis.show.parts.people import pair_blocks
from themis.show.parts.scores import ALL
from themis.show.parts.search import found_table, reasons_table, undecided_blocks
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import Page, rule
from themis.show.terminal.results import (
    footer,
    run_notes,
    show_cost,
    show_doubts,
)
from themis.show.words.headlines import few_remark, gap_text
from themis.show.words.searches import (
    Names,
    example,
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
FIRST = 10  # sets of a search, unless all are asked for


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
        blocks = _in_full(search, result) if everything else _in_short(search, result)
        yield from drawn(blocks)
        yield ""
    if everything:
        yield from drawn(show_cost(result))
    else:
        yield from drawn(run_notes(result))
        yield from footer(result)


render_search = Page[Result](show_searches)


def _in_short(search: SearchResult, result: Result) -> Iterator[Block]:
    """The first sets with their numbers, one pair, what is undecided, and the counts."""
    scores = scores_about(result, search)
    if search.found:
        yield found_table(search, scores, most=FIRST)
    measured = (scores[each] for each in search.found if each in scores)
    pairs = (example(each, wording(result)) for each in measured)
    if pair := next(filter(None, pairs), None):
        yield Statement(f"example: {pair}", "faint")
    yield from _favoured(search, scores, wording(result))
    yield from undecided_blocks(search)
    yield Statement(set_counts(search, wording(result)), "faint")
    yield from (Statement(str(note), "warning", "note") for note in search.notes)


def _in_full(search: SearchResult, result: Result) -> Iterator[Block]:
    """One search: its sets, its people, what is open, what is certain."""
    scores, words = scores_about(result, search), wording(result)
    if search.found:
        yield found_table(search, scores, most=ALL)
    for score in (scores[each] for each in search.found if each in scores):
        if blocks := [*show_people(score, words, everything=True)]:
            yield Part(set_phrase(score.against), blocks)
    yield from _favoured(search, scores, words)
    yield from undecided_blocks(search, most=ROWS)
    yield from (Statement(set_counts(search, words)), Statement(guarantee(search)))
    yield from (Statement(str(note), "warning", "note") for note in search.notes)
    yield reasons_table(search, most=ROWS)


def _favoured(
    search: SearchResult, scores: Mapping[Names, Score], words: Wording
) -> Iterator[Block]:
    """Beside an excess, which has a scale of its own: whom the change favours, and how often."""
    for names in search.found[:FIRST]:
        score = scores.get(names)
        if isinstance(score, ExcessScore) and (text := gap_text(score, words)):
            yield Statement(f"{set_text(names)}: {text}", "faint")


def show_people(
    score: Score, words: Wording = PLAIN, *, everything: bool = False
) -> Iterator[Block]:
    """Whom a set hurts: the direction, one pair of people, and how to see it in a shell."""
    for text in harms(score, most=3 if everything else 1, words=words):
        yield Statement(f"{text}{few_remark(score, words)}")
    witness = telling_witness(score)
    if witness is None or not isinstance(score, CausalScore):
        return
    yield from pair_blocks(witness, score, words)
    if everything and witness.reproduce:
        yield Commands(witness.reproduce)
