"""The section on sets: what became of those of a search, drawn, listed and counted by size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from themis.results.model import Result, SearchResult
from themis.results.parts import TestedSet
from themis.show.html import Html, cut, empty, folded, join, table, tag
from themis.show.reports.document import LONGEST_NAME, Room, block, section, set_name
from themis.show.reports.verdict import chip
from themis.show.svg import stack
from themis.show.words.decisions import decision_words, unlisted_words
from themis.show.words.headlines import capital
from themis.show.words.searches import (
    amount,
    guarantee,
    protected_first,
    search_headline,
    set_counts,
    set_text,
)
from themis.show.words.units import in_units
from themis.show.words.values import count, size, visible

Kind = Literal["found", "undecided", "below", "pruned", "open"]
KINDS: tuple[Kind, ...] = ("found", "undecided", "below", "pruned", "open")
WORDS: dict[Kind, str] = {  # of how many sets
    "pruned": "follow",
    "open": "follow or not checked",
}
WHOLE = 31  # a lattice of up to so many sets is shown whole


@dataclass(frozen=True)
class Node:
    """A set of the lattice, what became of it, and why."""

    names: tuple[str, ...]
    kind: Kind
    word: str
    why: str


@dataclass(frozen=True)
class Levels:
    """The sets that are shown, by their size, and how many others there are."""

    nodes: Mapping[int, list[Node]]
    hidden: Mapping[int, int]
    whole: bool

    def numbered(self, prefix: str) -> Iterator[tuple[str, Node]]:
        """All sets from small to large, each with the name that links to its reason use."""
        for number, nodes in sorted(self.nodes.items()):
            for place, node in enumerate(nodes):
                yield f"{prefix}-{number}-{place}", node


def choose_sets(search: SearchResult, room: Room) -> Levels:
    """The whole lattice if it is small; else what was found, is unsure, or was nearly found."""
    names = [
        each
        for number in range(1, search.max_size + 1)
        if search.sets_total <= WHOLE
        for each in combinations(search.among, number)
    ]
    whole = bool(names) and len(names) == search.sets_total
    known = {frozenset(each.against): each for each in search.tested}
    if whole:
        nodes = [_node(search, each, known.get(frozenset(each))) for each in names]
    else:
        nodes = list(_nearest(search, known, room.sets))
    levels: dict[int, list[Node]] = {}
    for node in nodes:
        levels.setdefault(len(node.names), []).append(node)
    shown = {number: len(each) for number, each in levels.items()}
    hidden = {
        number: total - shown.get(number, 0)
        for number, total in totals(search).items()
        if total > shown.get(number, 0)
    }
    return Levels(levels, hidden, whole)


def totals(search: SearchResult) -> dict[int, int]:
    """How many sets there are of each size."""
    sizes = range(1, search.max_size + 1)
    return {number: math.comb(len(search.among), number) for number in sizes}


def _node(search: SearchResult, names: tuple[str, ...], tested: TestedSet | None) -> Node:
    kind = kind_of(search, names, tested)
    if tested is None:
        return Node(names, kind, word_of(kind, search), search.why(*names))
    about = _about(search, tested)
    behind = f" ({about})" if about and not tested.is_exact else ""
    decision = decision_words(search, tested)
    return Node(names, kind, word_of(kind, search), f"{decision}: {tested.reason}{behind}")


def _about(search: SearchResult, tested: TestedSet | None) -> str:
    """How large the score of a set seems to be; nothing where nothing is known."""
    if tested is None or tested.estimate is None:
        return ""
    shown = in_units(tested.estimate, search)
    return shown if tested.is_exact else f"about {shown}"


def kind_of(search: SearchResult, names: tuple[str, ...], tested: TestedSet | None) -> Kind:
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


def _nearest(
    search: SearchResult, known: Mapping[frozenset[str], TestedSet], room: int
) -> Iterator[Node]:
    """Found and undecided sets, then those below that came nearest to the threshold."""
    first = [*search.found, *search.undecided][: 2 * room // 3]
    for names in first:
        yield _node(search, names, known.get(frozenset(names)))
    below = [each for each in search.tested if each.decision == "below"]
    below.sort(key=lambda each: (each.estimate is None, -(each.estimate or 0.0)))
    for each in below[: room - len(first)]:
        yield _node(search, each.against, each)


WIDTH = 760
ROW = 86
TOP = 20
BOTTOM = 56  # room for the names of the last row
NAME = 13  # letters of a name beside its dot
LINE = 13
MARGIN = 46

Point = tuple[float, float]


def draw_lattice(levels: Levels, prefix: str) -> Html:
    """The drawing; every dot leads to the reason of its set."""
    places = _places(levels)
    height = TOP + ROW * (len(levels.nodes) - 1) + BOTTOM
    nodes = dict(levels.numbered(prefix))
    found = {frozenset(node.names) for node in nodes.values() if node.kind == "found"}
    lines = (
        _edge(places[small], places[large], "implies" if small in found else "edge")
        for small, large in _edges(places)
    )
    return tag(
        "svg",
        *lines,
        *(_dot(node, places[frozenset(node.names)], target) for target, node in nodes.items()),
        class_="lattice",
        viewBox=f"0 0 {WIDTH} {height}",
        role="group",
        aria_label="The lattice of sets, the smallest on top; each leads to its reason",
    )


def _places(levels: Levels) -> dict[frozenset[str], Point]:
    """Where each set stands: its row by its size, evenly spread."""
    places: dict[frozenset[str], Point] = {}
    for row, (_, nodes) in enumerate(sorted(levels.nodes.items())):
        gap = (WIDTH - 2 * MARGIN) / len(nodes)
        for place, node in enumerate(nodes):
            places[frozenset(node.names)] = (MARGIN + gap * (place + 0.5), TOP + ROW * row)
    return places


def _edge(start: Point, end: Point, kind: str) -> Html:
    return empty("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def _edges(
    places: dict[frozenset[str], Point],
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for large in places:
        for name in sorted(large):
            if large - {name} in places:
                yield large - {name}, large


def _dot(node: Node, place: Point, target: str) -> Html:
    x, y = place
    label = f"{cut(set_text(node.names), LONGEST_NAME)}: {node.word}"
    return tag(
        "a",
        tag("title", label),
        empty("circle", cx=x, cy=y, r=16, class_="reach"),
        _shape(node.kind, x, y),
        *_name(node, x, y),
        href=f"#{target}",
        class_=f"node {node.kind}",
        aria_label=label,
    )


def _shape(kind: Kind, x: float, y: float) -> Html:
    """A shape of its own for each kind, so that colour is not needed."""
    if kind == "found":
        return empty("rect", x=x - 9, y=y - 9, width=18, height=18, rx=3)
    if kind in ("undecided", "open"):
        half = 11 if kind == "undecided" else 6
        base = y + half * 0.7
        points = f"{x:g},{y - half:g} {x + half:g},{base:g} {x - half:g},{base:g}"
        return empty("polygon", points=points)
    return empty("circle", cx=x, cy=y, r=8 if kind == "below" else 4)


def _name(node: Node, x: float, y: float) -> Iterator[Html]:
    """The names below a dot, one on a line; sets that were only pruned go without."""
    if node.kind in ("pruned", "open") and len(node.names) > 1:
        return
    lines = [cut(visible(name), NAME) for name in node.names[:3]]
    if len(node.names) > 3:
        lines = [*lines[:2], f"+ {len(node.names) - 2} more"]
    spans = (tag("tspan", line, x=x, y=y + 22 + LINE * n) for n, line in enumerate(lines))
    yield tag("text", *spans, text_anchor="middle")


SIZES = 24  # rows of the table of sizes
LEAST_SIZES = 5


def lattice_section(result: Result, room: Room) -> Html:
    """All searches of a result; nothing if there was none."""
    searches = list(map(protected_first(result), result.searches))[: room.searches]
    if not searches:
        return Html()
    shown = (_search(each, f"set-{place}", room) for place, each in enumerate(searches))
    # Of a whole audit the cards show the same sets.
    return section("sets", "Combinations", *shown, fold=result.command == "audit")


def _search(search: SearchResult, prefix: str, room: Room) -> Html:
    levels = choose_sets(search, room)
    reasons, sizes = _reasons(levels, prefix, room), _sizes(search)
    if levels.whole:
        drawn = [draw_lattice(levels, prefix), _chips(levels, prefix), reasons]
    else:
        drawn = [tag("div", pair_matrix(search), class_="wide"), *_larger(search, room)]
        drawn.append(folded("Why combinations are in or out", reasons) if reasons else Html())
    return block(
        capital(f"{search.measure} search, threshold {amount(search.threshold, search)}"),
        tag("p", f"{search_headline(search, room.words)}. {set_counts(search)}."),
        *drawn,
        folded("Combinations by size", sizes),
        tag("p", guarantee(search), class_="faint"),
        kind="block whole" if levels.whole else "block",
    )


MATRIX = 24  # characteristics on each side
SIGNS: dict[Kind, str] = {
    "found": "■",
    "undecided": "△",
    "below": "○",
    "pruned": "·",
    "open": "",
}
MEANINGS: dict[Kind, str] = {  # of a set that is below, `word_of` it
    "found": "found",
    "undecided": "undecided",
    "pruned": "follows from a part that was found",
    "open": "not checked",
}


def pair_matrix(search: SearchResult) -> Html:
    """Which single characteristics (on the diagonal) and pairs were found, below, not checked."""
    names = _ranked(search)[:MATRIX]
    known = {frozenset(each.against): each for each in search.tested}
    heads = ["", *(tag("abbr", str(n + 1), title=name) for n, name in enumerate(names))]
    rows = [
        [
            tag("bdi", f"{cut(visible(one), NAME * 2)} {row + 1}"),
            *(
                _pair_cell(search, one, other, known) if column <= row else ""
                for column, other in enumerate(names)
            ),
        ]
        for row, one in enumerate(names)
    ]
    left = len(search.among) - len(names)
    foot = f"not drawn: {count(left, 'more characteristic')}" if left > 0 else ""
    seen = "".join(map(str, rows))
    meanings = {kind: MEANINGS.get(kind, word_of(kind, search)) for kind in KINDS}
    legend = (chip(kind, each) for kind, each in meanings.items() if f": {each}" in seen)
    drawn = table(f"Pairs of characteristics, {search.measure} search", heads, rows, kind="pairs",
                  foot=foot)  # fmt: skip
    return join([drawn, tag("p", *legend, class_="legend")])


def _ranked(search: SearchResult) -> list[str]:
    """The characteristics, those of found and undecided sets first, the smallest sets before."""
    telling = sorted((*search.found, *search.undecided), key=len)
    return list(dict.fromkeys([*(name for each in telling for name in each), *search.among]))


def _pair_cell(
    search: SearchResult, one: str, other: str, known: Mapping[frozenset[str], TestedSet]
) -> tuple[Html, str]:
    names = tuple(name for name in search.among if name in {one, other})
    tested = known.get(frozenset(names))
    kind = kind_of(search, names, tested)
    about = _about(search, tested)
    meaning = MEANINGS.get(kind, word_of(kind, search))
    title = f"{set_text(names)}: {meaning}{', ' if about else ''}{about}"
    return tag("span", SIGNS[kind], title=title, role="img", aria_label=title), f"cell {kind}"


def _larger(search: SearchResult, room: Room) -> Iterator[Html]:
    """Found sets of more than two, which the matrix can't show."""
    larger = [each for each in search.found if len(each) > 2]
    if larger:
        shown = "; ".join(map(set_text, larger[: room.sets]))
        more = f"; and {len(larger) - room.sets:,} more" if len(larger) > room.sets else ""
        summary = f"{count(len(larger), 'combination')} of three or more found"
        yield folded(summary, tag("p", cut(shown, 4_000), more))


def _chips(levels: Levels, prefix: str) -> Html:
    """The sets of each size as links to their reasons."""
    links: dict[int, list[Html]] = {}
    for target, node in levels.numbered(prefix):
        kind = tag("span", f": {node.word}", class_="unseen")
        link = tag("a", set_name(node.names), kind, href=f"#{target}")
        item = tag("li", link, class_=f"set {node.kind}")
        links.setdefault(len(node.names), []).append(item)
    rows = []
    for number, items in list(links.items())[:SIZES]:
        hidden = levels.hidden.get(number, 0)
        if hidden:
            items.append(tag("li", f"+ {size(hidden)} not shown", class_="rest"))
        rows.append(
            tag("li", tag("h4", f"of {count(number, 'characteristic')}"), tag("ul", *items))
        )
    return tag("ol", *rows, class_="levels")


def _reasons(levels: Levels, prefix: str, room: Room) -> Html:
    """Why each set is in or out; on a screen, of the one that was clicked on."""
    nodes = list(levels.numbered(prefix))
    if not nodes:
        return Html()
    items = (
        tag(
            "li",
            tag("b", set_name(node.names)),
            chip(node.kind, "follows" if node.kind == "pruned" else node.word),
            tag("span", cut(node.why, room.sentence)),
            id=target,
            tabindex="-1",
        )
        for target, node in nodes
    )
    words = {node.kind: node.word for _, node in nodes}
    hint = tag(
        "p",
        *(chip(kind, MEANINGS.get(kind, words[kind])) for kind in KINDS if kind in words),
        "Click a set to see why it is in or out, or ",
        tag("a", "show all reasons", href=f"#{prefix}-all"),
        ".",
        class_="hint",
    )
    return tag("div", hint, tag("ul", *items), class_="reasons", id=f"{prefix}-all")


def _sizes(search: SearchResult) -> Html:
    """How many sets of each size were found, tested and pruned."""
    by_size: dict[int, Counter[Kind]] = {}
    for each in search.tested:
        kind = kind_of(search, each.against, each)
        by_size.setdefault(len(each.against), Counter())[kind] += 1
    of_size = totals(search)
    others: Kind = "open" if search.sets_open else "pruned"
    last = max(by_size, default=1)
    shown = [number for number in of_size if number <= max(last, LEAST_SIZES)][:SIZES]
    for number in shown:
        counts = by_size.setdefault(number, Counter())
        counts[others] += of_size[number] - counts.total()
    kinds = [kind for kind in KINDS if any(by_size[number][kind] for number in shown)]
    words = {kind: WORDS.get(kind, word_of(kind, search)) for kind in kinds}
    left = sum(of_size[number] for number in of_size if number not in shown)
    return table(
        f"Sets by size, {search.measure} search",
        ("Characteristics", ("", "pic"), *((words[kind], "number") for kind in kinds)),
        (
            (
                str(number),
                _bar(by_size[number], words),
                *(size(by_size[number][kind]) for kind in kinds),
            )
            for number in shown
        ),
        kind="chart sizes",
        hidden_caption=False,
        foot=f"{size(left)} larger: {WORDS.get(others, others)}" if left else "",
    )


def _bar(counts: Counter[Kind], words: Mapping[Kind, str]) -> Html:
    texts = (f"{size(counts[kind])} {each}" for kind, each in words.items() if counts[kind])
    return stack([(kind, counts[kind]) for kind in words], ", ".join(texts))
