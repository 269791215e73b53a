"""Cells: what is known of the variants that change exactly one set of characteristics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.tables import Variants

UNTRIED = -2  # further than FLIP, CONSTANT and UNKNOWN: not all was run, and nothing flipped

Places = NDArray[np.int64]

_GROWING = (  # what a cell knows of each base input, and what it begins with
    ("state", UNTRIED, np.int8),
    ("tried", 0, np.int32),
    ("order", -1, np.int16),  # −1: none yet
    ("failed", 0, np.bool_),
    ("probed", 0, np.bool_),
    ("flip_place", -1, np.int32),
    ("flip_output", 0, np.int32),
)


@dataclass
class FlipCells:
    """What is known of the variants of base inputs that change exactly one set.

    Variants are run in an order, of which an input has `tried` so many; single ones that were
    run out of order are kept `apart`.
    """

    variants: Variants
    complete: bool
    state: NDArray[np.int8] = field(init=False)
    tried: NDArray[np.int32] = field(init=False)
    order: NDArray[np.int16] = field(init=False)
    failed: NDArray[np.bool_] = field(init=False)
    probed: NDArray[np.bool_] = field(init=False)
    flip_place: NDArray[np.int32] = field(init=False)
    flip_output: NDArray[Any] = field(init=False)
    orders: list[Places] = field(default_factory=list)  # an input keeps the order it began with
    apart: Places = field(default_factory=lambda: np.empty(0, np.int64))
    hits: NDArray[np.int64] = field(init=False)  # per decision and variant: inputs that it flipped

    def __post_init__(self) -> None:
        for name, _, dtype in _GROWING:
            setattr(self, name, np.empty(0, dtype))
        self.hits = np.zeros((2, self.variants.width), np.int64)

    def grow(self, count: int) -> None:
        """Make room for this many base inputs."""
        more = max(count - len(self.state), 0)
        if not more:
            return
        more = max(more, len(self.state))
        for name, value, _ in _GROWING:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(more, value, old.dtype)]))

    def note_flips(self, places: Places, variants: Places, outputs: NDArray[Any]) -> None:
        """These base inputs flip under these variants, with these outputs."""
        self.state[places] = 1
        self.flip_place[places] = variants
        self.flip_output[places] = outputs

    def note_apart(self, places: Places, variants: Places) -> None:
        """These variants of these base inputs were run out of order."""
        self.apart = np.concatenate([self.apart, self._keys(places, variants)])

    def is_apart(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run out of order."""
        if not len(self.apart):
            return np.zeros(len(places), dtype=bool)
        return np.isin(self._keys(places, variants), self.apart)

    def was_run(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run."""
        result = self.is_apart(places, variants)
        numbers = self.order[places]
        for number in np.unique(numbers[numbers >= 0]):
            here = numbers == number
            rank = np.argsort(self.orders[number])[variants[here]]
            result[here] |= rank < self.tried[places[here]]
        return result

    def _keys(self, places: Places, variants: Places) -> Places:
        return places * self.variants.width + variants


def waves(end: int) -> Iterator[tuple[int, int]]:
    """Where each wave of variants begins and how many it has: 1, 1, 2, 4, … up to `end`."""
    place, size = 0, 1
    while place < end:
        step = min(size, end - place)
        yield place, step
        size = place + step
        place += step
