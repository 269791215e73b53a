"""Searches: the minimal sets, what became of the others and why, and what is left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from themis.results.model import Score, SearchResult
from themis.results.parts import TestedSet
from themis.show.blocks import (
    Block,
    Cell,
    Chip,
    Content,
    Head,
    Mark,
    Number,
    Part,
    Points,
    Statement,
    Table,
)
from themis.show.parts.scores import common_axis, score_interval
from themis.show.words.headlines import interval, point
from themis.show.words.naming import amount, in_units
from themis.show.words.searches import Names, decision_words, sets_noun, unlisted_words
from themis.show.words.values import count, cut_text, set_text, some_of, visible

Kind = Literal["found", "undecided", "below", "pruned", "open"]
KINDS: tuple[Kind, ...] = ("found", "undecided", "below", "pruned", "open")
MEANINGS: dict[Kind, str] = {  # of a set that is below, `word_of` it
    "found": "found",
    "undecided": "undecided",
    "pruned": "follows from a part that was found",
    "open": "not checked",
}
SIGNS: dict[Kind, str] = {
    "found": "■",
    "undecided": "△",
    "below": "○",
    "pruned": "·",
    "open": "",
}
FEW = 31  # so many sets are all shown with their reasons
MATRIX = 24  # characteristics on each side


def found_table(
    search: SearchResult, scores: Mapping[Names, Score], *, most: int | None = None
) -> Table:
    """The minimal sets with their scores; of those that were not measured what shows them."""
    shown = search.found[:most]
    foot = _more(len(search.found) - len(shown))
    if search.decide_only:
        reasons = {each.against: each.reason for each in search.tested}
        rows: list[Sequence[Content]] = [(set_text(each), visible(reasons[each])) for each in shown]
        return Table("Minimal sets", (sets_noun(search), "What shows it"), rows, foot)
    mark = Mark(search.threshold, f"threshold {amount(search.threshold, search)}")
    known = [scores[each] for each in shown if each in scores]
    axis = common_axis(known)
    heads: list[Head] = [sets_noun(search), axis, Number("Score"), Number("Interval")]
    estimates = {each.against: each.estimate for each in search.tested}
    rows = []
    for names in shown:
        score, about = scores.get(names), estimates.get(names)
        if score is None:
            estimate = "" if about is None else f"~ {in_units(about, search)}"
            rows.append((set_text(names), "", estimate, "not measured"))
            continue
        ends = "exact, a tie" if names in search.ties else interval(score)
        picture = score_interval(score, axis, (mark,))
        rows.append((set_text(names), picture, point(score), ends))
    return Table("Minimal sets", heads, rows, foot)


def _more(hidden: int) -> str:
    return f"{hidden:,} more: -v" if hidden > 0 else ""


def undecided_blocks(search: SearchResult, *, most: int = 10) -> Iterator[Block]:
    """What could not be decided, and why."""
    if not search.undecided:
        return
    reasons = {each.against: each.reasons for each in search.tested}
    items = [
        f"{set_text(each)}: {visible('; '.join(map(str, reasons.get(each, ()))) or 'not checked')}"
        for each in search.undecided[:most]
    ]
    hidden = len(search.undecided) - len(items)
    blocks: list[Block] = [Points([*items, *([f"… and {hidden:,} more"] if hidden else [])])]
    whys = (why for names in search.undecided for why in reasons.get(names, ()))
    if any(why.values.get("unsettled") for why in whys):  # more samples would not decide it
        text = (
            "an input can't be settled when an execution failed or a set has too many "
            "combinations to try; bins make them few"
        )
        blocks.append(Statement(text, "faint"))
    yield Part("Undecided", blocks)


def reasons_table(search: SearchResult, *, most: int) -> Table:
    """Why each set is in or out: all if they are few, else what was found, open, or nearly so."""
    return reasons_of(search, _told(search, most))


def reasons_of(search: SearchResult, sets: Iterable[Names]) -> Table:
    """Why each of these sets is in or out."""
    known = {frozenset(each.against): each for each in search.tested}
    rows: list[Sequence[Content]] = []
    for names in sets:
        tested = known.get(frozenset(names))
        kind = kind_of(search, names, tested)
        word = "follows" if kind == "pruned" else word_of(kind, search)
        word = word if tested is None or kind == "found" else decision_words(search, tested)
        rows.append((set_text(names), Chip(kind, word), cut_text(_why(search, names, tested))))
    return Table("Why combinations are in or out", ("Set", "Decision", "Reason"), rows)


def looked_at(search: SearchResult) -> dict[Kind, list[Names]]:
    """The sets that were found, undecided and below, the largest first."""
    below = [each for each in search.tested if each.decision == "below"]
    below.sort(key=lambda each: (each.estimate is None, -(each.estimate or 0.0)))
    return {
        "found": [*search.found],
        "undecided": [*search.undecided],
        "below": [each.against for each in below],
    }


def _told(search: SearchResult, most: int) -> list[Names]:
    sizes = range(1, search.max_size + 1)
    if sum(math.comb(len(search.among), number) for number in sizes) <= FEW:
        return [each for number in sizes for each in combinations(search.among, number)]
    found, undecided, below = looked_at(search).values()
    first = [*found, *undecided][: 2 * most // 3]
    return [*first, *below[: most - len(first)]]


def _why(search: SearchResult, names: Names, tested: TestedSet | None) -> str:
    if tested is None:
        return search.why(*names)
    about = "" if tested.estimate is None or tested.is_exact else in_units(tested.estimate, search)
    behind = f" (about {about})" if about else ""
    return f"{tested.reason}{behind}"


def kind_of(search: SearchResult, names: Names, tested: TestedSet | None) -> Kind:
    """What became of a set."""
    if tested is None:
        return "pruned" if any(set(names) > set(each) for each in search.found) else "open"
    if tested.decision == "above":
        # The search that prunes nothing tests sets that contain a found one as well.
        return "found" if names in search.found else "pruned"
    return "below" if tested.decision == "below" else "undecided"


def word_of(kind: Kind, search: SearchResult) -> str:
    """What became of a set, in a word; of one that is below, what that proves."""
    return unlisted_words(search) if kind == "below" else kind


def lattice(search: SearchResult, link: Callable[[Names], str] = lambda _: "") -> Iterator[Block]:
    """What became of single characteristics (on the diagonal) and of pairs, and of larger sets.

    On a page, each may link to more about it.
    """
    telling = sorted((*search.found, *search.undecided), key=len)
    ranked = list(dict.fromkeys([*(name for each in telling for name in each), *search.among]))
    names = ranked[:MATRIX]
    known = {frozenset(each.against): each for each in search.tested}
    kinds: set[Kind] = set()

    def cell(one: str, other: str) -> Cell:
        both = tuple(name for name in search.among if name in {one, other})
        kind = kind_of(search, both, known.get(frozenset(both)))
        kinds.add(kind)
        about = f"{set_text(both)}: {MEANINGS.get(kind, word_of(kind, search))}"
        return Cell(SIGNS[kind], state=f"cell {kind}", link=link(both), about=about)

    rows: list[Sequence[Content]] = [
        [
            f"{visible(one)} {row + 1}",
            *(cell(one, other) if place <= row else "" for place, other in enumerate(names)),
        ]
        for row, one in enumerate(names)
    ]
    left = len(ranked) - len(names)
    foot = f"not drawn: {count(left, 'more characteristic')}" if left else ""
    heads: list[Head] = ["", *(str(place + 1) for place in range(len(names)))]
    yield Table(f"Pairs of characteristics, {search.measure} search", heads, rows, foot, "pairs")
    legend = (
        f"{SIGNS[kind] or 'hatched'} {MEANINGS.get(kind, word_of(kind, search))}"
        for kind in KINDS
        if kind in kinds
    )
    yield Statement(" · ".join(legend), "faint")
    larger = [set_text(each) for each in search.found if len(each) > 2]
    if larger:
        summary = f"{count(len(larger), 'combination')} of three or more found"
        yield Statement(f"{summary}: {some_of(larger, FEW, between='; ', more='; and {} more')}")
