"""Cells: what is known of the variants that change exactly one set of characteristics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Variants

UNTRIED = -2  # further than FLIP, CONSTANT and UNKNOWN: not all was run, and nothing flipped

LAST_KEYS = 4_096  # of a set of numbers, those that are not sorted yet

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


class KeySet:
    """A growing set of whole numbers: sorted, but for those that came last."""

    def __init__(self) -> None:
        self._sorted: Places = np.empty(0, np.int64)
        self._last: Places = self._sorted

    def add(self, keys: Places) -> None:
        """Put these into the set."""
        self._last = np.concatenate([self._last, keys])
        if len(self._last) > max(LAST_KEYS, len(self._sorted) // 8):
            self._sorted = np.sort(np.concatenate([self._sorted, self._last]), kind="stable")
            self._last = self._last[:0]

    def holds(self, keys: Places) -> NDArray[np.bool_]:
        """Which of these are in the set."""
        found = np.isin(keys, self._last) if len(self._last) else np.zeros(len(keys), dtype=bool)
        if len(self._sorted):
            at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
            found |= self._sorted[at] == keys
        return found


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
    apart: KeySet = field(default_factory=KeySet)
    hits: NDArray[np.int64] = field(init=False)  # per decision and variant: inputs that it flipped
    _ranks: dict[int, Places] = field(default_factory=dict)  # where each variant stands in an order

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
        self.apart.add(self._keys(places, variants))

    def is_apart(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run out of order."""
        return self.apart.holds(self._keys(places, variants))

    def was_run(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run."""
        result = self.is_apart(places, variants)
        numbers = self.order[places]
        for number in np.unique(numbers[numbers >= 0]).tolist():
            here = numbers == number
            result[here] |= self._rank(number)[variants[here]] < self.tried[places[here]]
        return result

    def _rank(self, number: int) -> Places:
        if number not in self._ranks:
            self._ranks[number] = np.argsort(self.orders[number])
        return self._ranks[number]

    def _keys(self, places: Places, variants: Places) -> Places:
        return places * self.variants.width + variants


def waves(end: int, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each wave of variants begins and how many it has: 1, 1, 2, 4, … up to `end`.

    No wave has more than `most`.
    """
    place, size = 0, 1
    while place < end:
        step = min(size, end - place, most or end)
        yield place, step
        size = place + step
        place += step
