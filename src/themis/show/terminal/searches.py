"""Searches in a terminal: the minimal sets, whom they hurt, and what is certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.withheld import is_told
from themis.show.intervals import Axis
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    NUMBER,
    WARNING,
    IntervalBar,
    Page,
    Scale,
    Sentence,
    ShellLine,
    grid,
    indented,
    make_console,
    render,
    rule,
    short,
)
from themis.show.terminal.results import (
    brief_doubts,
    interval_text,
    point,
    show_cost,
)
from themis.show.terminal.scores import joint_pairs, show_difference
from themis.show.words.decisions import decision_words
from themis.show.words.headlines import few_text
from themis.show.words.searches import (
    Names,
    amount,
    guarantee,
    harms,
    protected_first,
    scores_about,
    search_headline,
    set_counts,
    set_text,
    sets_noun,
    telling_witness,
)
from themis.show.words.units import in_units
from themis.show.words.values import count, set_phrase, visible
from themis.show.words.wording import PLAIN, Wording, wording

ROWS = 40  # of a table
EXAMPLES = 5  # sets whose people are shown, unless all are asked for
UNDECIDED = 10
NARROW = 70  # below this width there is no room for the executions


def render_search_headlines(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per search with the sets that it found, and the failures."""
    sentences: list[RenderableType] = []
    words = wording(result)
    for search in result.searches:
        sets = "; ".join(set_text(names) for names in search.found)
        sentences.append(Sentence(search_headline(search, words, sets)))
    return render([*sentences, *brief_doubts(result)], make_console(file))


def show_searches(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of the searches, then what to know before believing them."""
    doubts, words = _doubts(result, everything), wording(result)
    for search in map(protected_first(result), result.searches):
        if len(result.searches) > 1:
            yield rule(f"{search.measure} scores")
        scores = scores_about(result, search)
        parts = show_search(search, scores, width=width, everything=everything, words=words)
        yield next(parts)  # the headline is the verdict
        yield from doubts
        yield from parts
        yield ""
    yield from doubts
    yield from show_cost(result)


render_search = Page[Result](show_searches)


def _doubts(result: Result, everything: bool) -> Iterator[RenderableType]:
    """What may invalidate the verdict."""
    yield from brief_doubts(result, everything=everything)
    wide = sum(score.stopped.is_early for score in result.scores)
    if wide:
        yield Sentence(
            f"{wide} of {count(len(result.scores), 'score')}: the interval is wider than asked, "
            "because the run ended early",
            WARNING,
            first="inconclusive: ",
        )


def show_search(
    search: SearchResult,
    scores: Mapping[Names, Score],
    *,
    width: int,
    everything: bool,
    words: Wording,
) -> Iterator[RenderableType]:
    """One search: its headline, its sets, its people, what is open, what is certain."""
    yield Sentence(search_headline(search, words), HEADLINE)
    if search.found:
        table = _decided(search, everything) if search.decide_only else None
        yield indented(table or _table(search, scores, width, everything))
    for part in _people(search, scores, width, everything, words):
        yield indented(part)
    yield from map(indented, _undecided(search, everything))
    if search.found or search.undecided:
        yield ""
    yield indented(Sentence(set_counts(search)))
    yield indented(Sentence(guarantee(search)))
    for note in search.notes:
        yield indented(Sentence(visible(str(note)), WARNING, first="note: "))
    if everything:
        yield ""
        yield indented(_tested(search))


def _table(
    search: SearchResult, scores: Mapping[Names, Score], width: int, everything: bool
) -> Table:
    """The minimal sets with their scores; those that were not measured have only an estimate."""
    found = search.found if everything else search.found[:ROWS]
    known = [scores[each] for each in found if each in scores]
    axis = Axis.reaching(max((score.high for score in known if is_told(score)), default=1.0))
    with_cost = width >= NARROW
    limit = f"┃ {amount(search.threshold, search)}"
    scale = Scale((f"0 to {amount(axis.end, search)}, {limit}", limit))
    heads: list[str | Scale] = [sets_noun(search), "score", scale, "interval"]
    heads += ["executions"] if with_cost else []
    table = grid(
        {**FOLDED, "min_width": 8, "max_width": max(12, width - 50)},
        NUMBER,
        {"ratio": 1, "min_width": 8},
        NUMBER,
        *([NUMBER] if with_cost else []),
        heads=heads,
        expand=True,
    )
    decided = {each.against: each for each in search.tested}
    for names in found:
        score = scores.get(names)
        if score is None:
            estimate = decided[names].estimate if names in decided else None
            about = "" if estimate is None else f"~ {in_units(estimate, search)}"
            table.add_row(set_text(names), about, short("not measured", DIM))
            continue
        bar: RenderableType = ""
        if is_told(score):
            bar = IntervalBar(score.low, score.high, axis, "red", search.threshold)
        ends = "exact, a tie" if names in search.ties else interval_text(score)
        cells: list[RenderableType] = [set_text(names), point(score), bar, ends]
        table.add_row(*cells, *([f"{score.executions:,}"] if with_cost else []))
    if len(found) < len(search.found):
        table.add_row(short(f"… {len(search.found) - len(found):,} more: -v", DIM))
    return table


def _decided(search: SearchResult, everything: bool) -> Table:
    """The minimal sets of a search that measured none, with what shows that they are above."""
    found = search.found if everything else search.found[:ROWS]
    reasons = {each.against: each.reason for each in search.tested}
    heads = (sets_noun(search), "what shows it")
    table = grid({**FOLDED, "ratio": 2}, {**FOLDED, "ratio": 3}, heads=heads)
    for names in found:
        table.add_row(set_text(names), Sentence(visible(reasons[names])))
    if len(found) < len(search.found):
        table.add_row(short(f"… {len(search.found) - len(found):,} more: -v", DIM))
    return table


def _people(
    search: SearchResult,
    scores: Mapping[Names, Score],
    width: int,
    everything: bool,
    words: Wording,
) -> Iterator[RenderableType]:
    """Per set the direction of harm and two people."""
    measured = [scores[each] for each in search.found if each in scores]
    shown = measured if everything else measured[:EXAMPLES]
    for score in shown:
        parts = list(show_people(score, width=width, everything=everything, words=words))
        if parts:
            yield ""
            yield Text(set_phrase(score.against), HEADLINE)
            yield from map(indented, parts)
    if len(shown) < len(measured):
        yield ""
        yield Sentence(f"and {len(measured) - len(shown):,} more: -v shows whom they hurt", DIM)


def show_people(
    score: Score, *, width: int, everything: bool = False, words: Wording = PLAIN
) -> Iterator[RenderableType]:
    """Whom a set hurts: the direction, one pair of people, and how to see it in a shell."""
    for text in harms(score, most=3 if everything else 1, words=words):
        few = few_text(score, words) if isinstance(score, GroupScore) else ""
        yield Sentence(f"{text}{few}")
    witness = telling_witness(score)
    if witness is not None:
        yield from show_difference(witness, width=width, output=score.output)
    if isinstance(score, CausalScore) and witness is not None:
        yield from map(Sentence, joint_pairs([witness], score, words))
    if everything and witness is not None:
        yield from (ShellLine(visible(line)) for line in witness.reproduce)


def _undecided(search: SearchResult, everything: bool) -> Iterator[RenderableType]:
    if not search.undecided:
        return
    reasons = {each.against: each.reasons for each in search.tested}
    yield ""
    yield Text("undecided", WARNING)
    shown = search.undecided[: ROWS if everything else UNDECIDED]
    for names in shown:
        reason = "; ".join(map(str, reasons[names])) if names in reasons else "not checked"
        yield indented(Sentence(f"{set_text(names)}: {visible(reason)}"))
    if len(shown) < len(search.undecided):
        yield indented(Sentence(f"… and {len(search.undecided) - len(shown):,} more", DIM))
    whys = (why for names in search.undecided for why in reasons.get(names, ()))
    if any(why.values.get("unsettled") for why in whys):  # more samples would not decide it
        yield Sentence(
            "an input can't be settled when an execution failed or a set has too many "
            "combinations to try; bins make them few",
            DIM,
        )


def _tested(search: SearchResult) -> Table:
    """Every set that was looked at, with its decision and the reason."""
    colours = {"above": "red", "below": "green", "undecided": WARNING}
    heads = ("set", "decision", "reason")
    table = grid({**FOLDED, "ratio": 2}, {}, {**FOLDED, "ratio": 3}, heads=heads)
    for each in search.tested[:ROWS]:
        decision = Text(decision_words(search, each), colours[each.decision])
        table.add_row(set_text(each.against), decision, visible(each.reason))
    if len(search.tested) > ROWS:
        table.add_row(short(f"… {len(search.tested) - ROWS:,} more", DIM))
    return table
