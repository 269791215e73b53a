"""How is a small lattice drawn? Sets as dots in rows by size, lines to their subsets."""

from __future__ import annotations

from collections.abc import Iterator

from themis.show.reports.html import Html, cut, empty, tag
from themis.show.reports.html_words import LONGEST_NAME
from themis.show.reports.sets_set_levels import Levels, Node
from themis.show.words.searches import set_text
from themis.show.words.values import visible

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
