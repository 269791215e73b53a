"""Blocks: characteristics that are drawn together, each kind with what it can draw and list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, SchemaError
from themis.inputs.characteristics import Characteristic
from themis.inputs.following import Tie, rewrite
from themis.inputs.schema import Schema


def uniform_numbers(rng: np.random.Generator, size: int, count: int) -> NDArray[Any]:
    """`count` random numbers of 0, 1, …, size − 1, each exactly equally likely.

    The upper half of a product of random bits with `size`; products whose lower half is among the
    few that would favour some numbers are drawn again (Lemire, 2019). It works on whole arrays,
    with four numbers from each word of the generator where 16 bits do.
    """
    if size <= 2**12:  # at most one number in 2⁴ is drawn again
        return _multiplied(rng, size, count, np.dtype("<u2"), np.dtype(np.uint32))
    if size <= 2**28:
        return _multiplied(rng, size, count, np.dtype("<u4"), np.dtype(np.uint64))
    return rng.integers(0, size, size=count)


def _multiplied(
    rng: np.random.Generator,
    size: int,
    count: int,
    half: np.dtype[Any],
    whole: np.dtype[Any],
) -> NDArray[Any]:
    width = 8 * half.itemsize
    words = -(-count * width // 64)
    bits = rng.bit_generator.random_raw(words).astype("<u8", copy=False).view(half)[:count]
    numbers = bits.astype(whole)
    numbers *= whole.type(size)
    unfair = 2**width % size
    if unfair:
        again = np.flatnonzero(numbers.astype(half) < unfair)
    numbers >>= whole.type(width)
    if unfair and len(again):
        numbers[again] = _multiplied(rng, size, len(again), half, whole)
    return numbers


REJECTION_TRIALS = 2_000_000  # proposals without a valid input before we give up


CodeRange = tuple[int, int]  # first code, and the one behind the last


@dataclass(frozen=True)
class ColumnBlock:
    """One characteristic on its own, over a range of its codes, all equally likely."""

    columns: tuple[int, ...]
    start: int
    stop: int
    uniform: bool = True

    @property
    def size(self) -> int:
        return self.stop - self.start

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        return self.combinations(uniform_numbers(rng, self.size, count))

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return (indices.astype(np.int64) + self.start if self.start else indices)[:, None]

    def probabilities(self) -> NDArray[np.float64]:
        return np.full(self.size, 1 / self.size)

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        return ColumnBlock(self.columns, *ranges.get(self.columns[0], (self.start, self.stop)))


@dataclass(frozen=True)
class MissingBlock:
    """One characteristic of which a share of the inputs has no value."""

    present: ColumnBlock | TableBlock
    missing: int  # the code of no value
    share: float

    @property
    def columns(self) -> tuple[int, ...]:
        return self.present.columns

    @property
    def uniform(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return self.present.size + 1

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        codes = self.present.draw(rng, count).astype(np.int64)
        codes[rng.random(count) < self.share] = self.missing
        return codes

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        there = indices < self.present.size
        codes = np.full((len(indices), 1), self.missing, dtype=np.int64)
        codes[there] = self.present.combinations(indices[there])
        return codes

    def probabilities(self) -> NDArray[np.float64]:
        return np.append(self.present.probabilities() * (1.0 - self.share), self.share)

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        start, stop = ranges.get(self.columns[0], (0, self.missing + 1))
        if start >= self.missing:
            return TableBlock(self.columns, np.array([[self.missing]]))
        if stop <= self.missing:
            return self.present.restricted(ranges)
        assert start == 0, "no level holds some values and no value"
        return self


@dataclass(frozen=True)
class TableBlock:
    """Linked characteristics, or a weighted one, as the list of the combinations that occur."""

    columns: tuple[int, ...]
    rows: NDArray[Any]  # combinations × columns
    weights: NDArray[np.float64] | None = None

    @property
    def uniform(self) -> bool:
        return self.weights is None

    @property
    def size(self) -> int:
        return len(self.rows)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        assert self.weights is not None
        return np.cumsum(self.weights / self.weights.sum())[:-1]

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        if self.weights is None:
            return self.combinations(uniform_numbers(rng, len(self.rows), count))
        return self.rows[np.searchsorted(self._cumulative, rng.random(count), side="right")]

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return self.rows[indices]

    def probabilities(self) -> NDArray[np.float64]:
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        return np.asarray(weights / weights.sum())

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        found = []  # the combinations that each range leaves
        for position, column in enumerate(self.columns):
            if column in ranges:
                order, codes = self._in_order(position)
                first, last = np.searchsorted(codes, ranges[column])
                found.append(order[first:last])
        if not found:
            return self
        kept = np.sort(min(found, key=len))
        for position, column in enumerate(self.columns):
            if column in ranges:
                start, stop = ranges[column]
                codes = self.rows[kept, position]
                kept = kept[(codes >= start) & (codes < stop)]
        return self.part(kept) if len(kept) else None

    def part(self, kept: NDArray[Any]) -> TableBlock:
        """Only these combinations."""
        weights = None if self.weights is None else self.weights[kept]
        return TableBlock(self.columns, self.rows[kept], weights)

    def _in_order(self, position: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The combinations by what they have in this column, and what that is."""
        if position not in self._orders:
            order = np.argsort(self.rows[:, position], kind="stable")
            self._orders[position] = order, self.rows[order, position].astype(np.int64)
        return self._orders[position]

    @cached_property
    def _orders(self) -> dict[int, tuple[NDArray[np.int64], NDArray[Any]]]:
        return {}


@dataclass(frozen=True)
class RejectionBlock:
    """Linked characteristics with too many combinations to list: propose, keep the valid ones."""

    columns: tuple[int, ...]
    parts: tuple[Block, ...]  # one for each column
    schema: Schema  # its constraints decide
    width: int
    size: int | None = None
    ties: tuple[Tie, ...] = ()  # by which proposals are rewritten
    ranges: Mapping[int, CodeRange] = field(default_factory=dict)  # of what is rewritten

    @property
    def uniform(self) -> bool:
        return not self.ties and all(part.uniform for part in self.parts)

    def propose(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        """Random combinations, valid or not."""
        codes = np.zeros((count, self.width), dtype=self.schema.dtype, order="F")
        for part in self.parts:
            codes[:, part.columns[0]] = part.draw(rng, count)[:, 0]
        rewrite(self.ties, codes)
        return codes

    def keep(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which proposals are valid, and in the block's ranges."""
        kept = self.schema.valid(codes)
        for column, (start, stop) in self.ranges.items():
            kept &= (codes[:, column] >= start) & (codes[:, column] < stop)
        return kept

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        kept: list[NDArray[Any]] = []
        found = tried = 0
        while found < count:
            batch = min(max(4 * count, 1024, tried), 262_144)
            codes = self.propose(rng, batch)
            valid = codes[:, list(self.columns)][self.keep(codes)]
            kept.append(valid)
            found += len(valid)
            tried += batch
            if not found and tried >= REJECTION_TRIALS:
                raise SchemaError([nothing_found(self, tried)])
        return np.concatenate(kept)[:count]

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        raise AssertionError("a rejection block is never enumerated")

    def probabilities(self) -> NDArray[np.float64]:
        raise AssertionError("a rejection block is never enumerated")

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        rewritten = {tie.follower for tie in self.ties}
        before = {column: each for column, each in ranges.items() if column not in rewritten}
        after = {column: each for column, each in ranges.items() if column in rewritten}
        parts = [part.restricted(before) for part in self.parts]
        if any(part is None for part in parts):
            return None
        block = replace(
            self,
            parts=tuple(part for part in parts if part is not None),
            ranges={**self.ranges, **after},
        )
        try:
            block.draw(np.random.default_rng(0), 1)
        except SchemaError:
            return None
        return block


# Characteristics that are drawn together, independently of all others. `columns` are those that it
# draws, `size` is the number of combinations that occur, None where that is not known. `draw` gives
# random ones, one per row; where the size is known, `combinations` gives those with some numbers,
# and `probabilities` how likely each is. `restricted` is the block given that some columns lie in
# ranges, None if that never occurs.
Block: TypeAlias = ColumnBlock | MissingBlock | TableBlock | RejectionBlock


def nothing_found(block: RejectionBlock, tried: int) -> Mistake:
    """The mistake when random inputs never meet the constraints of these columns."""
    names = ", ".join(repr(each.name) for each in block.schema.constraints)
    return Mistake(
        "nothing-valid",
        "constraints",
        f"none of {tried:,} random inputs meets {names}: they leave nothing, or almost nothing",
        "relax them, or narrow the ranges of the characteristics that they read",
    )


def column_block(characteristic: Characteristic, column: int) -> Block:
    """One characteristic on its own, whatever the constraints say."""
    if characteristic.is_open:  # without rows it has no value
        return ColumnBlock((column,), characteristic.missing_code, 1)
    weights = characteristic.value_weights
    present: ColumnBlock | TableBlock = ColumnBlock((column,), 0, characteristic.size)
    if weights is not None:
        occurring = np.flatnonzero(weights > 0)
        present = TableBlock((column,), occurring[:, None], weights[occurring])
    if characteristic.missing is None:
        return present
    return MissingBlock(present, characteristic.missing_code, characteristic.missing)
