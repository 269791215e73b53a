"""How much of a result has room in a report? Less of everything, until the file is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

LIMIT_BYTES = 300_000  # of a whole file; mail and browsers take it without a thought


@dataclass(frozen=True)
class Room:
    """How many of each kind are shown; the report says how many are not."""

    scores: int = 60
    searches: int = 6
    checks: int = 60
    groups: int = 20  # of one score, with a picture
    more_groups: int = 150  # of one score, in its folded table
    categories: int = 500  # rows of a table in the annex
    sets: int = 120  # of a search
    people: int = 8  # scores whose people are shown
    pairs: int = 4  # of one score; half as many where there are several scores
    common: int = 12  # characteristics in which two people agree
    changes: int = 12  # directions of harm
    matrix: int = 6  # assignments on each side of the matrix
    regions: int = 8
    inputs: int = 80  # characteristics of the schema
    cautions: int = 30
    letters: int = 160  # of a value
    sentence: int = 600  # letters of a sentence that the subject had a word in


_MIDDLE = replace(
    Room(),
    scores=40,
    checks=40,
    groups=12,
    more_groups=50,
    categories=120,
    sets=60,
    people=5,
    pairs=2,
    inputs=40,
)
_SMALL = replace(
    _MIDDLE,
    scores=20,
    searches=2,
    checks=20,
    groups=8,
    more_groups=0,
    categories=24,
    sets=30,
    people=3,
    pairs=1,
    common=8,
    changes=6,
    matrix=4,
    regions=3,
    inputs=20,
    cautions=10,
    letters=60,
    sentence=300,
)
ROOMS = (Room(), _MIDDLE, _SMALL, replace(_SMALL, scores=8, categories=12, sets=12, inputs=10))


def fitting(render: Callable[[Room], str]) -> str:
    """The fullest text that is not too long."""
    text = ""
    for room in ROOMS:
        text = render(room)
        if len(text.encode("utf-8", "replace")) < LIMIT_BYTES:
            break
    return text
