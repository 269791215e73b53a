"""Cells: what is known of the variants that change exactly one set of characteristics."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import SortedOutputs
from themis.engine.variants import Variants
from themis.inputs.assignments import Places
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
from themis.subjects.decisions import NOT_RUN
from themis.subjects.readings import CONSTANT, UNKNOWN

UNTRIED = -2  # further than FLIP, CONSTANT and UNKNOWN: not all was run, and nothing flipped
SAMPLE_TRIES = 128  # variants tried where all are too many: a flip can be found, not excluded

# What a cell knows of each base input, what it begins with, and its type; numbers of variants have
# (None) the narrowest that holds them, as there are as many of these arrays as sets.
_GROWING: tuple[tuple[str, int, Any], ...] = (
    ("state", UNTRIED, np.int8),
    ("tried", 0, None),
    ("order", -1, np.int16),  # −1: none yet
    ("failed", 0, np.bool_),
    ("probed", 0, np.bool_),
    ("flip_place", -1, None),
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
    tried: NDArray[np.integer[Any]] = field(init=False)
    order: NDArray[np.int16] = field(init=False)
    failed: NDArray[np.bool_] = field(init=False)
    probed: NDArray[np.bool_] = field(init=False)
    flip_place: NDArray[np.integer[Any]] = field(init=False)
    flip_output: NDArray[Any] = field(init=False)
    orders: list[Places] = field(default_factory=list)  # an input keeps the order it began with
    apart: SortedOutputs = field(init=False)  # a mark under the key of each
    hits: NDArray[np.int64] = field(init=False)  # per decision and variant: inputs that it flipped
    _ranks: dict[int, Places] = field(default_factory=dict)  # where each variant stands in an order

    def __post_init__(self) -> None:
        narrow = np.min_scalar_type(-self.variants.width - 1)
        for name, _, dtype in _GROWING:
            setattr(self, name, np.empty(0, dtype or narrow))
        self.hits = np.zeros((2, self.variants.width), np.int64)
        self.apart = SortedOutputs(np.dtype(np.int8))

    def grow(self, count: int) -> None:
        """Make room for this many base inputs."""
        more = max(count - len(self.state), 0)
        if not more:
            return
        size = len(self.state) + max(more, len(self.state))
        for name, value, _ in reversed(_GROWING):  # the state last: an interrupt may come
            old = getattr(self, name)
            grown = np.concatenate([old, np.full(max(size - len(old), 0), value, old.dtype)])
            setattr(self, name, grown)

    def note_flips(self, places: Places, variants: Places, outputs: NDArray[Any]) -> None:
        """These base inputs flip under these variants, with these outputs."""
        self.state[places] = 1
        self.flip_place[places] = variants
        self.flip_output[places] = outputs

    @property
    def end(self) -> int:
        """So many variants of an input are tried, at most."""
        width = self.variants.width
        return width if self.complete else min(width, SAMPLE_TRIES)

    def conclude(self, places: Places) -> None:
        """Those of these inputs of which all that are to be tried were are settled now."""
        over = places[(self.tried[places] >= self.end) & (self.state[places] == UNTRIED)]
        certain = ~self.failed[over] & self.complete
        self.state[over] = np.where(certain, CONSTANT, UNKNOWN)

    def note_apart(self, places: Places, variants: Places) -> None:
        """These variants of these base inputs were run out of order."""
        self.apart.add(self._keys(places, variants), np.zeros(len(places), np.int8))

    def is_apart(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run out of order."""
        return np.asarray(self.apart.look_up(self._keys(places, variants)) != NOT_RUN)

    def was_run(self, places: Places, variants: Places) -> NDArray[np.bool_]:
        """Which of these variants of these inputs were run."""
        result = self.is_apart(places, variants)
        numbers = self.order[places]
        for number in np.unique(numbers[numbers >= 0]).tolist():
            here = numbers == number
            result[here] |= self._rank(number)[variants[here]] < self.tried[places[here]]
        return result

    def next_variants(
        self, places: Places, own: NDArray[Any], stop: int, least: int = 1
    ) -> tuple[Places, Places, Places]:
        """The next variants of these inputs, given their levels: rows of `places`, and variants.

        Each goes on in its order, by `least` and ever farther, until it meets a variant that is one
        of the cell.
        As that depends on the input's own levels, a batch does not hold one variant only. The last
        part is how many of the order are tried then.
        """
        numbers, which = np.unique(self.order[places], return_inverse=True)
        orders = np.stack([self.orders[number][:stop] for number in numbers.tolist()])
        tried, waiting, found = self.tried[places].astype(np.int64), np.arange(len(places)), []
        while len(waiting):
            waits = np.zeros(len(places), dtype=bool)
            for start in np.unique(tried[waiting]).tolist():
                now = waiting[tried[waiting] == start]
                part = orders[:, start : start + max(start, least)]
                is_one = self._are_of_cell(part, which[now], own[now])
                row, step = np.divmod(np.flatnonzero(is_one), part.shape[1])
                row = now[row]
                found.append((row, part[which[row], step] if len(part) > 1 else part[0, step]))
                waits[now] = True
                waits[row] = False
                tried[now] = start + part.shape[1]
            waiting = np.flatnonzero(waits & (tried < stop))
        rows, columns = (np.concatenate(each) for each in zip(*found, strict=True))
        by_row = np.argsort(rows, kind="stable") if len(found) > 1 else slice(None)
        return rows[by_row], columns[by_row], tried

    def _are_of_cell(self, part: Places, which: Places, own: NDArray[Any]) -> NDArray[np.bool_]:
        """Which variants change all characteristics; any, where not all are tried.

        Given are parts of orders, which of them each input has, and its own levels.
        """
        combine = np.logical_and if self.complete else np.logical_or
        result: NDArray[np.bool_] | None = None
        for position, levels in enumerate(self.variants.by_position):
            new = levels[part][which]
            differs = new != own[:, position, None]
            if self.variants.keeps[position]:
                differs &= new != OWN
            result = differs if result is None else combine(result, differs, out=result)
        assert result is not None
        return result

    @cached_property
    def touching(self) -> Schema:
        """The schema with the constraints that read what the variants change."""
        assignments = self.variants.assignments
        return assignments.schema.touching(assignments.changed)

    def _rank(self, number: int) -> Places:
        if number not in self._ranks:
            self._ranks[number] = np.argsort(self.orders[number])
        return self._ranks[number]

    def _keys(self, places: Places, variants: Places) -> Places:
        return places * self.variants.width + variants
