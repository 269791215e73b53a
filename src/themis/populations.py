"""Populations: where inputs are drawn from, uniformly over the valid ones or by weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from themis.characteristics import Characteristic
from themis.errors import Mistake, SchemaError
from themis.schema import Schema

ENUMERATION_LIMIT = 2**21  # linked characteristics with fewer combinations are enumerated
REJECTION_TRIALS = 2_000_000  # proposals without a valid input before we give up
FEW_VALID = 1e-3  # a smaller valid share is worth a warning

CodeRange = tuple[int, int]  # first code, and the one behind the last


class Block(Protocol):
    """Characteristics that are drawn together, independently of all others."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it draws."""

    @property
    def size(self) -> int | None:
        """The number of combinations that occur; None when it is not known."""

    @property
    def uniform(self) -> bool:
        """Whether all combinations are equally likely."""

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        """Random combinations of codes, one per row."""

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """The combinations with these numbers, one per row; only where `size` is known."""

    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each combination, in order; only where `size` is known."""

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        """The block given that some columns lie in these ranges; None if that never occurs."""


@dataclass(frozen=True)
class ColumnBlock:
    """One characteristic on its own, over a range of its codes."""

    columns: tuple[int, ...]
    start: int
    stop: int
    weights: NDArray[np.float64] | None = None  # of the codes start..stop, unnormalised

    @property
    def uniform(self) -> bool:
        return self.weights is None

    @cached_property
    def _occurring(self) -> NDArray[np.int64]:
        assert self.weights is not None
        return self.start + np.flatnonzero(self.weights > 0)

    @property
    def size(self) -> int:
        return self.stop - self.start if self.weights is None else len(self._occurring)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        assert self.weights is not None
        positive = self.weights[self.weights > 0]
        return np.cumsum(positive / positive.sum())[:-1]

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        if self.weights is None:
            drawn = rng.integers(0, self.size, size=count, dtype=_smallest_dtype(self.size))
            return (drawn + self.start if self.start else drawn)[:, None]
        places = np.searchsorted(self._cumulative, rng.random(count), side="right")
        return self._occurring[places][:, None]

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        codes = self.start + indices if self.weights is None else self._occurring[indices]
        return codes[:, None]

    def probabilities(self) -> NDArray[np.float64]:
        if self.weights is None:
            return np.full(self.size, 1 / self.size)
        positive = self.weights[self.weights > 0]
        return np.asarray(positive / positive.sum())

    def restricted(self, ranges: Mapping[int, CodeRange]) -> ColumnBlock | None:
        start, stop = ranges.get(self.columns[0], (self.start, self.stop))
        if self.weights is None:
            return ColumnBlock(self.columns, start, stop)
        weights = self.weights[start - self.start : stop - self.start]
        return ColumnBlock(self.columns, start, stop, weights) if weights.any() else None


@dataclass(frozen=True)
class TableBlock:
    """Linked characteristics as the list of the combinations that occur."""

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
            return self.rows[rng.integers(0, len(self.rows), size=count)]
        return self.rows[np.searchsorted(self._cumulative, rng.random(count), side="right")]

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return self.rows[indices]

    def probabilities(self) -> NDArray[np.float64]:
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        return np.asarray(weights / weights.sum())

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        keep = np.ones(len(self.rows), dtype=bool)
        for position, column in enumerate(self.columns):
            if column in ranges:
                start, stop = ranges[column]
                keep &= (self.rows[:, position] >= start) & (self.rows[:, position] < stop)
        weights = None if self.weights is None else self.weights[keep]
        return TableBlock(self.columns, self.rows[keep], weights) if keep.any() else None


@dataclass(frozen=True)
class RejectionBlock:
    """Linked characteristics with too many combinations to list: propose, keep the valid ones."""

    columns: tuple[int, ...]
    parts: tuple[ColumnBlock, ...]
    schema: Schema  # its constraints decide
    width: int
    size: int | None = None

    @property
    def uniform(self) -> bool:
        return all(part.uniform for part in self.parts)

    def propose(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        """Random combinations, valid or not."""
        codes = np.zeros((count, self.width), dtype=self.schema.dtype, order="F")
        for part in self.parts:
            codes[:, part.columns[0]] = part.draw(rng, count)[:, 0]
        return codes

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        kept: list[NDArray[Any]] = []
        found = tried = 0
        while found < count:
            batch = min(max(4 * count, 1024, tried), 262_144)
            codes = self.propose(rng, batch)
            valid = codes[self.schema.valid(codes)][:, list(self.columns)]
            kept.append(valid)
            found += len(valid)
            tried += batch
            if not found and tried >= REJECTION_TRIALS:
                raise SchemaError([_nothing_found(tried)])
        return np.concatenate(kept)[:count]

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        raise AssertionError("a rejection block is never enumerated")

    def probabilities(self) -> NDArray[np.float64]:
        raise AssertionError("a rejection block is never enumerated")

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Block | None:
        parts = [part.restricted(ranges) for part in self.parts]
        if any(part is None for part in parts):
            return None
        block = RejectionBlock(
            self.columns,
            tuple(part for part in parts if part is not None),
            self.schema,
            self.width,
        )
        try:
            block.draw(np.random.default_rng(0), 1)
        except SchemaError:
            return None
        return block


@dataclass(frozen=True)
class Population:
    """Independent blocks of characteristics that together make an input."""

    schema: Schema
    blocks: tuple[Block, ...]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: Schema) -> Population:
        """The population of a schema: its valid inputs, uniformly, or by the weights it gives.

        Raises SchemaError when the constraints leave nothing.
        """
        blocks: list[Block] = []
        warnings: list[str] = []
        mistakes: list[Mistake] = []
        for columns in _linked_columns(schema):
            try:
                block, share = _block(schema, columns)
                blocks.append(block)
                warnings += _few_valid(schema, columns, share)
            except SchemaError as error:
                mistakes += error.mistakes
        if mistakes:
            raise SchemaError(mistakes)
        return cls(schema, tuple(blocks), tuple(warnings))

    @cached_property
    def size(self) -> int | None:
        """The number of inputs that occur, exact; None when it can't be counted."""
        sizes = [block.size for block in self.blocks]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @property
    def uniform(self) -> bool:
        """Whether all inputs that occur are equally likely."""
        return all(block.uniform for block in self.blocks)

    def is_independent(self, columns: Sequence[int]) -> bool:
        """Whether this set is independent of all other characteristics.

        Where it is, every context admits every assignment equally (Theorem 4.3 holds).
        """
        chosen = set(columns)
        return all(
            chosen.issuperset(block.columns) or chosen.isdisjoint(block.columns)
            for block in self.blocks
        )

    def has_all_assignments(self, columns: Sequence[int]) -> bool:
        """Whether no constraint touches this set: each assignment is valid in each context."""
        chosen = set(columns)
        return all(len(b.columns) == 1 or chosen.isdisjoint(b.columns) for b in self.blocks)

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Population | None:
        """The population of those whose codes lie in these ranges; None if there are none."""
        blocks = [block.restricted(ranges) for block in self.blocks]
        if any(block is None for block in blocks):
            return None
        return Population(self.schema, tuple(block for block in blocks if block is not None))

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """The inputs with these numbers, as codes; only where `size` is known."""
        shape = tuple(block.size or 0 for block in self.blocks)
        codes = np.empty((len(indices), len(self.schema)), dtype=self.schema.dtype, order="F")
        for block, places in zip(self.blocks, np.unravel_index(indices, shape), strict=True):
            codes[:, list(block.columns)] = block.combinations(places.astype(np.int64))
        return codes

    def probabilities(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability of the inputs with these numbers; only where `size` is known."""
        shape = tuple(block.size or 0 for block in self.blocks)
        result = np.ones(len(indices))
        for block, places in zip(self.blocks, np.unravel_index(indices, shape), strict=True):
            result *= block.probabilities()[places]
        return result


def _linked_columns(schema: Schema) -> list[tuple[int, ...]]:
    """Groups of columns that share constraints, directly or through others."""
    group = list(range(len(schema)))
    for constraint in schema.constraints:
        members = {group[schema.names.index(name)] for name in constraint.variables}
        group = [min(members) if each in members else each for each in group]
    return [tuple(c for c, g in enumerate(group) if g == number) for number in sorted(set(group))]


def _block(schema: Schema, columns: tuple[int, ...]) -> tuple[Block, float]:
    """The block of these linked columns and the share of its combinations that are valid."""
    parts = tuple(_column_block(schema.characteristics[c], c) for c in columns)
    linked = any(
        schema.names.index(name) in columns
        for each in schema.constraints
        for name in each.variables
    )
    if not linked:
        return parts[0], 1.0
    total = math.prod(part.size for part in parts)
    if total <= ENUMERATION_LIMIT:
        return _enumerated(schema, parts, columns, total)
    block = RejectionBlock(columns, parts, schema=_only(schema, columns), width=len(schema))
    return block, _valid_share(block)


def _column_block(characteristic: Characteristic, column: int) -> ColumnBlock:
    return ColumnBlock((column,), 0, characteristic.size, characteristic.value_weights)


def _only(schema: Schema, columns: tuple[int, ...]) -> Schema:
    """The schema with only the constraints that read these columns."""
    names = {schema.names[column] for column in columns}
    return Schema({each.name: each for each in schema}).constrained(
        {each.name: each.text for each in schema.constraints if names.intersection(each.variables)}
    )


def _enumerated(
    schema: Schema, parts: tuple[ColumnBlock, ...], columns: tuple[int, ...], total: int
) -> tuple[Block, float]:
    places = np.unravel_index(np.arange(total), tuple(part.size for part in parts))
    codes = np.zeros((total, len(schema)), dtype=schema.dtype, order="F")
    for part, place in zip(parts, places, strict=True):
        codes[:, part.columns[0]] = part.combinations(place)[:, 0]
    own = _only(schema, columns)
    valid = own.valid(codes)
    if not valid.any():
        raise SchemaError([_contradiction(own, codes)])
    rows = np.ascontiguousarray(codes[valid][:, list(columns)])
    weights = None
    if not all(part.uniform for part in parts):
        weights = np.ones(len(rows))
        for position, part in enumerate(parts):
            if part.weights is not None:
                weights *= part.weights[rows[:, position]]
    return TableBlock(columns, rows, weights), float(valid.mean())


def _contradiction(schema: Schema, codes: NDArray[Any]) -> Mistake:
    """Says which constraint leaves nothing, alone or together with those before it."""
    so_far = np.ones(len(codes), dtype=bool)
    alone: list[str] = []
    for constraint in schema.constraints:
        columns = {name: codes[:, schema.names.index(name)] for name in constraint.variables}
        holds = constraint.holds(columns)
        if not holds.any():
            return Mistake(
                "nothing-valid",
                f"constraint {constraint.name!r}",
                f"{constraint.text!r} holds for no input at all",
                "correct it, or widen the ranges that it reads",
            )
        so_far &= holds
        alone.append(repr(constraint.name))
        if not so_far.any():
            break
    return Mistake(
        "nothing-valid",
        "constraints",
        f"{', '.join(alone)} contradict each other: no input meets all of them",
        "relax one of them",
    )


def _valid_share(block: RejectionBlock) -> float:
    """The share of valid proposals, estimated; raises SchemaError when none is found."""
    rng = np.random.default_rng(0)
    tried = found = 0
    while tried < REJECTION_TRIALS and found < 1_000:
        codes = block.propose(rng, 100_000)
        found += int(block.schema.valid(codes).sum())
        tried += len(codes)
    if not found:
        sample = block.propose(rng, 100_000)
        mistake = _contradiction(block.schema, sample)
        raise SchemaError(
            [
                Mistake(
                    mistake.code,
                    mistake.where,
                    f"{mistake.problem} (none of {tried:,} random ones)",
                    mistake.remedy,
                )
            ]
        )
    return found / tried


def _nothing_found(tried: int) -> Mistake:
    return Mistake(
        "nothing-valid",
        "constraints",
        f"none of {tried:,} random inputs is valid",
        "relax the constraints or narrow the ranges",
    )


def _few_valid(schema: Schema, columns: tuple[int, ...], share: float) -> Iterator[str]:
    if share < FEW_VALID:
        names = ", ".join(schema.names[column] for column in columns)
        yield (
            f"the constraints leave only {share:.2g} of all combinations of {names}: "
            "scores describe that small part of the inputs"
        )


def _smallest_dtype(size: int) -> type[np.unsignedinteger[Any]] | type[np.int64]:
    """The quickest integer type to draw from: fewer random bits per number."""
    if size <= 2**8:
        return np.uint8
    if size <= 2**16:
        return np.uint16
    return np.uint32 if size <= 2**32 else np.int64
