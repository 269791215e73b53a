"""Which sets of a search are shown? All of a small lattice, else the telling ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from themis.results.model import SearchResult, TestedSet
from themis.show.reports.html_room import Room
from themis.show.words.values import percent

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
