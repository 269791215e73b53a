"""Replays and differences in a terminal: what became of the tests, what changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO

from rich.console import RenderableType

from themis.results.comparison import Differences
from themis.results.parts import Naming
from themis.results.replays import Replay
from themis.show.blocks import Statement
from themis.show.parts.comparisons import comparison_tables, headline_of, remarks
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import Page, Sentence, make_console, render
from themis.show.words.comparisons import random_answers, replay_headline
from themis.show.words.wording import PLAIN, Wording


def render_replay_headline(replay: Replay, *, file: IO[str] | None = None) -> str:
    """What became of the tests, in one sentence; and in another, if it depends on chance."""
    said = (replay_headline(replay), random_answers(replay))
    return render([Sentence(each) for each in said if each], make_console(file))


def show_comparison(
    found: Replay | Differences, *, width: int, everything: bool, words: Wording = PLAIN
) -> Iterator[RenderableType]:
    """The verdict, what was compared, then what else there is to know."""
    yield from drawn([Statement(headline_of(found), "headline")])
    for part in comparison_tables(found, words, everything=everything):
        yield ""
        yield from drawn([part])
    yield ""
    yield from drawn(remarks(found))


def replay_page(naming: Naming) -> Page[Replay]:
    """The page of a replay in the words of its file."""
    return Page(partial(show_comparison, words=Wording(naming)))


render_differences = Page[Differences](show_comparison)
