"""What became of the sets of a search? Levels of sets to click on, with the reason of each.

Which sets of a search are shown? All of a small lattice, else the telling ones.

How is a small lattice drawn? Sets as dots in rows by size, lines to their subsets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from themis.results.model import Result, SearchResult, TestedSet
from themis.show.reports.html import (
    LONGEST_NAME,
    Html,
    Room,
    cut,
    empty,
    sentence,
    set_name,
    table,
    tag,
)
from themis.show.reports.svg import stack
from themis.show.words.searches import (
    amount,
    guarantee,
    protected_first,
    search_headline,
    set_counts,
    set_text,
)
from themis.show.words.values import count, percent, size, visible

Kind = Literal["found", "undecided", "below", "pruned", "open"]
KINDS: tuple[Kind, ...] = ("found", "undecided", "below", "pruned", "open")
WHOLE = 31  # a lattice of up to so many sets is shown whole


@dataclass(frozen=True)
class Node:
    """A set of the lattice, what became of it, and why."""

    names: tuple[str, ...]
    kind: Kind
    why: str


@dataclass(frozen=True)
class Levels:
    """The sets that are shown, by their size, and how many others there are."""

    nodes: Mapping[int, list[Node]]
    hidden: Mapping[int, int]
    whole: bool


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
        return Node(names, kind, search.why(*names))
    about = "" if tested.estimate is None else f" (about {percent(tested.estimate)})"
    return Node(names, kind, f"{tested.decision}: {tested.reason}{about}")


def kind_of(search: SearchResult, names: tuple[str, ...], tested: TestedSet | None) -> Kind:
    """What became of a set."""
    if tested is None:
        return "pruned" if search.why(*names).startswith("pruned") else "open"
    if tested.decision == "above":
        # The search that prunes nothing tests sets that contain a found one as well.
        return "found" if names in search.found else "pruned"
    return "below" if tested.decision == "below" else "undecided"


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
    dots = [
        _dot(node, places[frozenset(node.names)], f"{prefix}-{number}-{place}")
        for number, nodes in sorted(levels.nodes.items())
        for place, node in enumerate(nodes)
    ]
    kinds = {frozenset(node.names): node.kind for row in levels.nodes.values() for node in row}
    lines = [
        empty(
            "line",
            x1=f"{places[small][0]:g}",
            y1=f"{places[small][1]:g}",
            x2=f"{places[large][0]:g}",
            y2=f"{places[large][1]:g}",
            class_="implies" if kinds[small] == "found" else "edge",
        )
        for small, large in _edges(places)
    ]
    return tag(
        "svg",
        *lines,
        *dots,
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


def _edges(
    places: dict[frozenset[str], Point],
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for large in places:
        for name in large:
            if large - {name} in places:
                yield large - {name}, large


def _dot(node: Node, place: Point, target: str) -> Html:
    x, y = place
    label = f"{cut(set_text(node.names), LONGEST_NAME)}: {node.kind}"
    return tag(
        "a",
        tag("title", label),
        empty("circle", cx=f"{x:g}", cy=f"{y:g}", r=16, class_="reach"),
        _shape(node.kind, x, y),
        *_name(node, x, y),
        href=f"#{target}",
        class_=f"node {node.kind}",
        aria_label=label,
    )


def _shape(kind: str, x: float, y: float) -> Html:
    """A shape of its own for each kind, so that colour is not needed."""
    if kind == "found":
        return empty("rect", x=f"{x - 9:g}", y=f"{y - 9:g}", width=18, height=18, rx=3)
    if kind in ("undecided", "open"):
        size = 11 if kind == "undecided" else 6
        base = y + size * 0.7
        points = f"{x:g},{y - size:g} {x + size:g},{base:g} {x - size:g},{base:g}"
        return empty("polygon", points=points)
    return empty("circle", cx=f"{x:g}", cy=f"{y:g}", r=8 if kind == "below" else 4)


def _name(node: Node, x: float, y: float) -> Iterator[Html]:
    """The names below a dot, one on a line; sets that were only pruned go without."""
    if node.kind in ("pruned", "open") and len(node.names) > 1:
        return
    lines = [cut(visible(name), NAME) for name in node.names[:3]]
    if len(node.names) > 3:
        lines = [*lines[:2], f"+ {len(node.names) - 2} more"]
    spans = (
        tag("tspan", line, x=f"{x:g}", y=f"{y + 22 + LINE * place:g}")
        for place, line in enumerate(lines)
    )
    yield tag("text", *spans, text_anchor="middle")


SIZES = 24  # rows of the table of sizes
LEAST_SIZES = 5


def lattice_section(result: Result, room: Room) -> Html:
    """All searches of a result; nothing if there was none."""
    searches = list(map(protected_first(result), result.searches))[: room.searches]
    if not searches:
        return Html()
    return tag(
        "section",
        tag("h2", "Sets", id="sets-title"),
        *(_one(each, place, room) for place, each in enumerate(searches)),
        id="sets",
        aria_labelledby="sets-title",
    )


def _one(search: SearchResult, place: int, room: Room) -> Html:
    levels = choose_sets(search, room)
    prefix = f"set-{place}"
    return tag(
        "div",
        tag("h3", f"{search.measure} search, threshold {amount(search.threshold, search.measure)}"),
        tag("p", f"{sentence(search_headline(search))}. {set_counts(search)}."),
        *([draw_lattice(levels, prefix)] if levels.whole else []),
        _chips(levels, prefix),
        _reasons(levels, prefix, room),
        _sizes(search),
        tag("p", guarantee(search), class_="faint"),
        class_="block" + (" whole" if levels.whole else ""),
    )


def _chips(levels: Levels, prefix: str) -> Html:
    """The sets of each size as links to their reasons."""
    rows = []
    for number in sorted({*levels.nodes, *levels.hidden})[:SIZES]:
        nodes = levels.nodes.get(number, [])
        if not nodes:
            continue
        links = [_link(node, f"{prefix}-{number}-{place}") for place, node in enumerate(nodes)]
        hidden = levels.hidden.get(number, 0)
        if hidden:
            links.append(tag("li", f"+ {size(hidden)} not shown", class_="rest"))
        head = tag("h4", f"of {count(number, 'characteristic')}")
        rows.append(tag("li", head, tag("ul", *links)))
    return tag("ol", *rows, class_="levels")


def _link(node: Node, target: str) -> Html:
    name = tag("a", set_name(node.names), tag("span", f": {node.kind}",
               class_="unseen"), href=f"#{target}")  # fmt: skip
    return tag("li", name, class_=f"set {node.kind}")


def _reasons(levels: Levels, prefix: str, room: Room) -> Html:
    """Why each set is in or out; on a screen, of the one that was clicked on."""
    items = [
        tag(
            "li",
            tag("b", set_name(node.names)),
            tag("span", node.kind, class_=f"chip {node.kind}"),
            tag("span", cut(node.why, room.sentence)),
            id=f"{prefix}-{number}-{place}",
            tabindex="-1",
        )
        for number, nodes in sorted(levels.nodes.items())
        for place, node in enumerate(nodes)
    ]
    if not items:
        return Html()
    shown = {node.kind for nodes in levels.nodes.values() for node in nodes}
    hint = tag(
        "p",
        *(tag("span", kind, class_=f"chip {kind}") for kind in KINDS if kind in shown),
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
    rest: Kind = "open" if search.sets_open else "pruned"
    last = max(by_size, default=1)
    shown = [number for number in of_size if number <= max(last, LEAST_SIZES)][:SIZES]
    for number in shown:
        counts = by_size.setdefault(number, Counter())
        counts[rest] += of_size[number] - counts.total()
    kinds: list[Kind] = [kind for kind in KINDS if any(by_size[number][kind] for number in shown)]
    left = sum(of_size[number] for number in of_size if number not in shown)
    label: dict[Kind, str] = {kind: kind for kind in KINDS}
    label["open"] = "pruned or open"
    return table(
        f"Sets by size, {search.measure} search",
        ("Characteristics", ("", "pic"), *((label[kind], "number") for kind in kinds)),
        (
            (
                str(number),
                (_bar(by_size[number], kinds, label), "pic"),
                *((size(by_size[number][kind]), "number") for kind in kinds),
            )
            for number in shown
        ),
        kind="chart sizes",
        foot=f"{size(left)} larger: {label[rest]}" if left else None,
    )


def _bar(counts: Counter[Kind], kinds: list[Kind], label: Mapping[Kind, str]) -> Html:
    words = ", ".join(f"{size(counts[kind])} {label[kind]}" for kind in kinds if counts[kind])
    return stack([(kind, counts[kind]) for kind in kinds], words)
