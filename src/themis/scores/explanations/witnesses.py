"""Witnesses: pairs of inputs that differ only in the set and get different outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.schema import Schema
from themis.results.parts import Witness
from themis.statistics.intervals import Floats
from themis.subjects.decisions import Cells
from themis.subjects.readings import FLIP, Reading

POOL = 512  # flips looked at; the chosen witnesses are the most different of them
KEPT = 4_096  # flips kept, from which some are run again
SHOWN = 10


@dataclass(frozen=True)
class Pairs:
    """Pairs of inputs and the numbers of their two outputs."""

    codes: NDArray[Any]  # pairs × 2 × characteristics
    outputs: NDArray[Any]  # pairs × 2

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        return zip(self.codes, self.outputs, strict=True)

    def take(self, places: slice | NDArray[np.int64] | Sequence[int]) -> Pairs:
        """Only these pairs."""
        return Pairs(self.codes[places], self.outputs[places])

    @property
    def inputs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Their inputs, one after the other, and the outputs of these."""
        return self.codes.reshape(2 * len(self), -1), self.outputs.ravel()


def joined(*parts: Pairs) -> Pairs:
    """All these pairs, one after the other."""
    codes = np.concatenate([each.codes for each in parts])
    return Pairs(codes, np.concatenate([each.outputs for each in parts]))


@dataclass
class FlipPool:
    """The first flips of a run: some are shown, the most different ones, and some run again.

    Rows come in random order, so that the first flips are a random sample of all.
    """

    assignments: Assignments
    reading: Reading
    _pairs: list[Pairs] = field(default_factory=list)
    _weights: list[Floats] = field(default_factory=list)
    _count: int = 0

    @property
    def schema(self) -> Schema:
        """Of the inputs."""
        return self.assignments.schema

    def add_table(
        self,
        variants: Variants,
        rows: Rows,
        cells: Cells,
        states: NDArray[np.int8],
        weights: Floats | None = None,
    ) -> None:
        """Take pairs from the rows of a table that flip, until the pool is full."""
        places = np.flatnonzero(states == FLIP)[: KEPT - self._count]
        if not len(places):
            return
        chosen, outputs = rows.take(places), np.ascontiguousarray(cells[places])
        first, second = _pairs(variants, chosen, outputs, self.reading, self._count)
        ends = np.stack([outputs[np.arange(len(places)), one] for one in (first, second)], axis=1)
        each = np.arange(len(places))
        if self.reading.graded:  # some differ by no more than is tolerated
            each = np.flatnonzero(self.reading.distances(ends[:, 0], ends[:, 1]) > 0)
        self.add_pairs(
            chosen.inputs(variants, each, first[each]),
            chosen.inputs(variants, each, second[each]),
            ends[each],
            None if weights is None else weights[places[each]],
        )

    def add_pairs(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        outputs: NDArray[Any],
        weights: Floats | None = None,
    ) -> None:
        """Take ready pairs of inputs with the numbers of their two outputs, and what they weigh."""
        self._weights.append(np.ones(len(first)) if weights is None else weights)
        self._pairs.append(Pairs(np.stack([first, second], axis=1), outputs))
        self._count += len(first)

    def choose(self, count: int = SHOWN) -> tuple[Witness, ...]:
        """The most different pairs as witnesses: other changes first, then other people."""
        return self.witnesses(self.most_different(count))

    @property
    def pairs(self) -> Pairs:
        """The pairs that were kept."""
        if not self._pairs:
            none = np.empty((0, 2, len(self.schema)), self.schema.dtype)
            return Pairs(none, np.empty((0, 2), np.int8))
        return joined(*self._pairs)

    @property
    def weights(self) -> Floats:
        """What each of them weighs."""
        return np.concatenate([*self._weights, np.empty(0)])

    def most_different(self, count: int) -> Pairs:
        """So many pairs, each as far as possible from those before it."""
        pairs = self.pairs.take(slice(POOL))
        if not len(pairs):
            return pairs
        return pairs.take(_most_different(pairs.codes[:, 0], pairs.codes[:, 1], count))

    def witnesses(self, pairs: Pairs) -> tuple[Witness, ...]:
        """The pairs in plain values, the favoured input first."""
        labels, good = self.reading.labels.labels, self.reading.ranks()
        worse = good[pairs.outputs[:, 0]] < good[pairs.outputs[:, 1]]
        order = np.stack([worse, ~worse], axis=1).astype(int)
        codes = np.take_along_axis(pairs.codes, order[:, :, None], axis=1)
        shown = np.asfortranarray(codes.reshape(2 * len(codes), len(self.schema)))
        rows = iter(self.schema.decode_rows(shown))
        outputs = np.take_along_axis(pairs.outputs, order, axis=1).tolist()
        return tuple(
            Witness(inputs=(first, second), outputs=(labels[one], labels[other]))
            for first, second, (one, other) in zip(rows, rows, outputs, strict=True)
        )


def _pairs(
    variants: Variants, rows: Rows, cells: Cells, reading: Reading, offset: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two columns with different outputs in each row: the person as drawn, and a near variant.

    Near: few characteristics of the set change, and a favourable decision becomes another. Where
    outputs differ by degrees, it is the variant whose output is farthest.
    """
    each = np.arange(len(rows))
    own = own_columns(variants, rows)
    known = cells >= 0
    first = np.where(known[each, own], own, known.argmax(axis=1))
    if reading.graded:
        base = cells[each, first]
        apart = [reading.distances(base, cells[:, column]) for column in range(variants.width)]
        return first, np.stack(apart, axis=1).argmax(axis=1)
    favourable = reading.labels.is_favourable(cells)
    same_side = favourable == favourable[each, first][:, None]
    changed = (variants.levels[None, :, :] != variants.levels[first][:, None, :]).sum(axis=2)
    width = variants.width
    turn = (np.arange(width)[None, :] - (each + offset)[:, None]) % width  # not always the same one
    cost = (changed + 100 * same_side) * width + turn
    cost[~known | (cells == cells[each, first][:, None])] = np.iinfo(np.int64).max
    return first, cost.argmin(axis=1)


def _most_different(first: NDArray[Any], second: NDArray[Any], count: int) -> list[int]:
    """Places of pairs, each as far as possible from those chosen before it."""
    changed = first != second
    some = changed.any(axis=0)  # few columns of many
    both = (np.where(changed[:, some], each[:, some], -1) for each in (first, second))
    change, context = np.concatenate([*both], axis=1), np.where(changed, -1, first)
    distance = np.full(len(first), np.inf)
    chosen: list[int] = []
    place = 0
    while len(chosen) < min(count, len(first)):
        chosen.append(place)
        new_change = (change != change[place]).any(axis=1)
        far = (context != context[place]).mean(axis=1) + new_change
        distance = np.minimum(distance, far)
        distance[place] = -1
        if distance.max() <= 0:  # only repetitions are left
            break
        place = int(distance.argmax())
    return chosen
