"""What became of the sets of a search? Levels of sets to click on, with the reason of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from themis.results.model import Result, SearchResult
from themis.show.reports.html import Html, cut, table, tag
from themis.show.reports.html_room import Room
from themis.show.reports.html_words import sentence, set_name
from themis.show.reports.sets_lattice_drawing import draw_lattice
from themis.show.reports.sets_set_levels import (
    KINDS,
    Kind,
    Levels,
    Node,
    choose_sets,
    kind_of,
    totals,
)
from themis.show.reports.svg import stack
from themis.show.words.searches import (
    amount,
    guarantee,
    protected_first,
    search_headline,
    set_counts,
)
from themis.show.words.values import count, size

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
