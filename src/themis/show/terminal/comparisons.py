"""Replays and differences in a terminal: what became of the tests, what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.comparison import Differences, ScoreDifference, SetDifference
from themis.results.parts import Naming
from themis.results.quantities import Bounds, Quantity
from themis.results.replays import STATES, Replay
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    NUMBER,
    WARNING,
    Page,
    Sentence,
    failures,
    grid,
    indented,
    make_console,
    render,
)
from themis.show.words.comparisons import (
    bounds_text,
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
from themis.show.words.values import (
    count,
    visible,
    with_followers,
)
from themis.show.words.wording import PLAIN, Wording

STYLES = {"still": "bold red", "new": "bold red", "fixed": "green", "failed": WARNING}
SHOWN = 2  # examples of each state, unless all are asked for
COMMON = 8  # characteristics shown in which the two people agree


def render_replay_headline(replay: Replay, *, file: IO[str] | None = None) -> str:
    """What became of the tests, in one sentence; and in another, if it depends on chance."""
    said = (replay_headline(replay), random_answers(replay))
    return render([Sentence(each) for each in said if each], make_console(file))


def show_replay(
    replay: Replay, *, width: int, everything: bool, words: Wording = PLAIN
) -> Iterator[RenderableType]:
    """What became of the tests, set by set, with examples."""
    yield Sentence(replay_headline(replay), HEADLINE)
    if replay.sets:
        yield ""
        yield _table(replay)
    yield from _examples(replay, words, everything=everything)
    yield ""
    for reason, rows in replay.unknown_rows.items():
        text = f"{count(rows, 'row')} of {visible(replay.source)}: {visible(str(reason))}"
        yield Sentence(text, WARNING, first="unknown: ")
    yield from failures(replay.failures)
    if noise := random_answers(replay):
        yield Sentence(noise, WARNING)
    for note in other_notes(replay):
        yield Sentence(visible(note), DIM, first="note: ")
    yield Sentence(replay_cost(replay), DIM)


def replay_page(naming: Naming) -> Page[Replay]:
    """The page of a replay in the words of its file."""
    return Page(partial(show_replay, words=Wording(naming)))


def _table(replay: Replay) -> Table:
    states = [state for state in STATES if replay.count(state)]
    heads = ("against", "tests", *states)
    numbers = [NUMBER for _ in heads[1:]]
    table = grid({**FOLDED, "min_width": 10}, *numbers, heads=heads, gap=3)
    for each in replay.sets:
        cells = [_number(each.states.get(state, 0), STYLES.get(state, "")) for state in states]
        name = visible(",".join(each.against)) if any(each.against) else "no set"
        name += with_followers(each.against, each.followed)
        table.add_row(Text(name), f"{each.tests:,}", *cells)
    return table


def _number(number: int, style: str) -> Text:
    return Text(f"{number:,}", style) if number else Text("–", DIM)


def _examples(replay: Replay, words: Wording, *, everything: bool) -> Iterator[RenderableType]:
    shown: dict[str, int] = {}
    for test in replay.examples:
        shown[test.state] = shown.get(test.state, 0) + 1
        if everything or (shown[test.state] <= SHOWN and test.state != "fixed"):
            yield ""
            style, first = STYLES.get(test.state, ""), f"{test.state}: "
            yield Sentence(pair_outcome(test, words), style, first=first)
            if both := shared_values(test, everything=everything):
                yield Sentence(both, DIM, first=" " * len(first))


COLOURS = {
    "risen": "bold red",
    "risen, tolerated": "magenta",
    "new": "bold red",
    "fallen": "green",
    "gone": "green",
}
ROWS = 40  # of a table, unless everything is shown
NARROW = 76  # below this width a line has no room for all columns
GAPS = 8  # columns between those of a table, and before them


def show_differences(
    found: Differences, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The verdict, the scores, the sets, what else differs, and how sure it is."""
    yield Sentence(differences_headline(found), HEADLINE)
    changed = [each for each in found.scores if each.change in COLOURS]
    rest = [each for each in found.scores if each.change not in COLOURS]
    shown = [*changed, *rest][: None if everything else ROWS]
    if shown:
        yield indented(_table_of("score", shown, width))
    if len(shown) < len(found.scores):
        yield indented(Sentence(f"… {len(found.scores) - len(shown):,} more: -v shows them", DIM))
    if found.sets:
        yield ""
        only = "that only one of the two searches found"
        yield Sentence(f"minimal sets {'of the one search' if found.one_search else only}")
        yield indented(_table_of("set", found.sets[: None if everything else ROWS], width))
    yield ""
    for note in found.open:
        yield Sentence(visible(str(note)), WARNING, first="unseen: ")
    for note in found.unlike:
        yield Sentence(visible(str(note)), DIM, first="note: ")
    yield Sentence(guarantee(found))


render_differences = Page[Differences](show_differences)


def _table_of(
    noun: str, differences: Sequence[ScoreDifference | SetDifference], width: int
) -> Table:
    """A line for each; where there is no room for that, two: its name, then the rest."""
    narrow = width < NARROW
    heads = (noun, "change", "before", "after")
    texts = [{**FOLDED, "min_width": 14}, {**FOLDED, "min_width": 11}]  # no word is broken
    columns = [FOLDED] if narrow else [*texts, FOLDED, FOLDED]
    table = grid(*columns, heads=() if narrow else heads)
    rows = [_cells(each, measured_text) for each in differences]
    longest = (max(map(len, column)) for column in zip(heads, *rows, strict=True))
    if not narrow and sum(longest) + GAPS > width:  # no room for the scores beside their intervals
        rows = [_cells(each, bounds_text) for each in differences]
    for each, (name, change, before, after) in zip(differences, rows, strict=True):
        style = COLOURS.get(each.change, "")
        if narrow:
            table.add_row(Sentence(f"{name}: {change}", style))
            table.add_row(Sentence(f"{before} → {after}", first="  "))
        else:
            table.add_row(name, Text(change, style), Sentence(before), Sentence(after))
    return table


def _cells(
    each: ScoreDifference | SetDifference, shown: Callable[[Bounds | None, Quantity], str]
) -> tuple[str, ...]:
    ends = (shown(bounds, each.quantity) for bounds in (each.before, each.after))
    return quantity_text(each), change_text(each), *ends
