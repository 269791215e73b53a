"""Few cells that together hold every pair, or every triple, of values of their factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

CANDIDATES = 60  # drawn for each cell; the one that holds most that is new is taken


def cover(
    factors: Mapping[str, Sequence[Any]], strength: int, seed: int = 20170904
) -> list[dict[str, Any]]:
    """Cells in which every combination of `strength` factors' values occurs; greedy, seeded."""
    names, rng = list(factors), np.random.default_rng(seed)
    left = {
        tuple(zip(chosen, values, strict=True))
        for chosen in combinations(names, strength)
        for values in product(*(range(len(factors[name])) for name in chosen))
    }
    cells = []
    while left:
        wanted = dict(min(left))  # so that every cell brings something new
        drawn = [
            {name: wanted.get(name, int(rng.integers(len(factors[name])))) for name in names}
            for _ in range(CANDIDATES)
        ]
        news = [left.intersection(combinations(cell.items(), strength)) for cell in drawn]
        best = max(range(CANDIDATES), key=lambda place: len(news[place]))
        left -= news[best]
        cells.append({name: factors[name][place] for name, place in drawn[best].items()})
    return cells
