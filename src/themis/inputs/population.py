"""Populations: where inputs are drawn from, uniformly, by weight, or as people occur together.

A population is made of blocks of characteristics; those of a block are drawn together,
independently of all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, SchemaError
from themis.inputs.blocks import (
    REJECTION_TRIALS,
    Block,
    CodeRange,
    ColumnBlock,
    RejectionBlock,
    TableBlock,
    column_block,
    nothing_found,
)
from themis.inputs.constraints import Constraint
from themis.inputs.following import Tie, rewrite
from themis.inputs.schema import Schema

ENUMERATION_LIMIT = 2**21  # linked characteristics with fewer combinations are enumerated


@dataclass(frozen=True)
class FewValid:
    """Characteristics of whose combinations the constraints leave only a small share."""

    names: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class Population:
    """Independent blocks of characteristics that together make an input."""

    schema: Schema
    blocks: tuple[Block, ...]
    few_valid: tuple[FewValid, ...] = ()
    profile: bool = False  # listed people: others exist as counterfactuals but are never drawn

    @classmethod
    def of(cls, schema: Schema) -> Population:
        """The population of a schema: its valid inputs, uniformly, or by the weights it gives.

        What follows others is rewritten after it was drawn. Raises SchemaError when the constraints
        leave nothing.
        """
        return cls._of(schema, schema.ties)

    @classmethod
    def reachable(cls, schema: Schema) -> Population:
        """All valid inputs: also those that only occur as variants, with followers set."""
        return cls._of(schema, tuple(tie for tie in schema.ties if tie.derived))

    @classmethod
    def _of(cls, schema: Schema, ties: tuple[Tie, ...]) -> Population:
        assert schema.dtype  # computed once, and known to the schemas of all blocks
        blocks: list[Block] = []
        few: list[FewValid] = []
        mistakes: list[Mistake] = []
        for columns, constraints in _linked_columns(schema, ties).items():
            own = tuple(tie for tie in ties if tie.follower in columns)
            try:
                block, share = _block(schema.with_constraints(constraints), columns, own)
                blocks.append(block)
                if share < 1e-3:
                    few.append(FewValid(tuple(schema.names[c] for c in columns), share))
            except SchemaError as error:
                mistakes += error.mistakes
        if mistakes:
            raise SchemaError(mistakes)
        return cls(schema, tuple(blocks), tuple(few))

    @classmethod
    def of_people(
        cls, schema: Schema, codes: NDArray[Any], weights: NDArray[np.float64]
    ) -> Population:
        """An operational profile: these distinct inputs, each as likely as its weight says."""
        even = bool((weights == weights[0]).all())
        block = TableBlock(tuple(range(len(schema))), codes, None if even else weights)
        return cls(schema, (block,), profile=True)

    @cached_property
    def size(self) -> int | None:
        """The number of inputs that occur, exact; None when it can't be counted."""
        sizes = [block.size for block in self.blocks]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @cached_property
    def generated(self) -> Population:
        """What is drawn where no people are given; of a profile, the inputs of its schema."""
        return Population.of(self.schema) if self.profile else self

    @property
    def listed(self) -> NDArray[Any] | None:
        """The inputs of a profile, each once; None where it is none."""
        (first, *_) = self.blocks
        return first.rows if self.profile and isinstance(first, TableBlock) else None

    @property
    def uniform(self) -> bool:
        """Whether all inputs that occur are equally likely."""
        return all(block.uniform for block in self.blocks)

    def is_independent(self, columns: Sequence[int]) -> bool:
        """Whether this set is independent of all other characteristics.

        Where it is, every context admits every assignment equally (Theorem 4.3 holds). In a
        profile nothing is: who has which value may depend on everything else.
        """
        if self.profile:
            return False
        chosen = set(columns)
        return all(
            chosen.issuperset(block.columns) or chosen.isdisjoint(block.columns)
            for block in self.blocks
        )

    def members(self, column: int, start: int, stop: int) -> Block | None:
        """The values of a characteristic in a range that occur, by weight; None if none does.

        Where linked characteristics are too many to list, values that are possible by themselves
        count as occurring. In a profile all values of the schema do.
        """
        characteristic = self.schema.characteristics[column]
        whole = column_block(characteristic, column)
        block = next(block for block in self.blocks if column in block.columns)
        place = block.columns.index(column)
        if isinstance(block, RejectionBlock):
            whole = block.parts[place]
        elif isinstance(block, TableBlock) and not self.profile:
            codes = np.unique(block.rows[:, place])
            weights = characteristic.value_weights
            if weights is not None:  # only those of one level are compared, and so no value is 1
                weights = np.append(weights, 1.0)[codes]
            whole = TableBlock((column,), codes[:, None], weights)
        return whole.restricted({column: (start, stop)})

    def restricted(self, ranges: Mapping[int, CodeRange]) -> Population | None:
        """The population of those whose codes lie in these ranges; None if there are none."""
        blocks = [
            block if ranges.keys().isdisjoint(block.columns) else block.restricted(ranges)
            for block in self.blocks
        ]
        if any(block is None for block in blocks):
            return None
        own = tuple(block for block in blocks if block is not None)
        return Population(self.schema, own, profile=self.profile)

    def at_levels(self, levels: Mapping[int, int]) -> Population | None:
        """Those with these levels of some characteristics; None if there are none."""
        each = self.schema.characteristics
        if not self.profile:
            return self.restricted({c: each[c].level_range(level) for c, level in levels.items()})
        (block,) = self.blocks
        assert isinstance(block, TableBlock)
        keep = np.ones(block.size, dtype=bool)
        for column, level in levels.items():
            keep &= each[column].level_of(block.rows[:, column]) == level
        return replace(self, blocks=(block.part(keep),)) if keep.any() else None

    def with_values(self, columns: Sequence[int]) -> Population | None:
        """Those who have a value wherever "missing" is no counterfactual; None if nobody does."""
        if self.profile:  # its groups are looked for one by one
            return self
        kept = self.schema.kept_missing
        ranges: dict[int, CodeRange] = {c: (0, kept[c]) for c in columns if c in kept}
        return self.restricted(ranges) if ranges else self

    def combinations(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """The inputs with these numbers, as codes; only where `size` is known."""
        shape = tuple(block.size or 0 for block in self.blocks)
        codes = np.empty((len(indices), len(self.schema)), dtype=self.schema.dtype, order="F")
        for block, places in zip(self.blocks, _digits(indices, shape), strict=True):
            rows = block.combinations(places)
            for position, column in enumerate(block.columns):
                codes[:, column] = rows[:, position]
        return codes

    def probabilities(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability of the inputs with these numbers; only where `size` is known."""
        if self.uniform:
            share = math.prod(float(block.probabilities()[0]) for block in self.blocks)
            return np.full(len(indices), share)
        shape = tuple(block.size or 0 for block in self.blocks)
        result = np.ones(len(indices))
        for block, places in zip(self.blocks, _digits(indices, shape), strict=True):
            each = block.probabilities()
            result *= each[0] if block.uniform else each[places]
        return result


def _digits(indices: NDArray[np.int64], shape: tuple[int, ...]) -> Iterator[NDArray[np.int64]]:
    """The digits of these numbers, one place after another; quickly where the numbers follow."""
    count = len(indices)
    first = int(indices[0]) if count else 0
    if not np.array_equal(indices, np.arange(first, first + count)):
        yield from (digits.astype(np.int64) for digits in np.unravel_index(indices, shape))
        return
    stride = math.prod(shape)
    for size in shape:
        stride //= size
        edges = np.arange(first // stride, -(-(first + count) // stride) + 1)
        digits = edges[:-1] % size
        if stride > 1:
            borders = np.clip(edges * stride, first, first + count)
            digits = np.repeat(digits, borders[1:] - borders[:-1])
        yield digits


def _linked_columns(
    schema: Schema, ties: tuple[Tie, ...]
) -> dict[tuple[int, ...], list[Constraint]]:
    """Groups of columns that share constraints, directly or through others, with those.

    What follows another characteristic is in its group.
    """
    leader = list(range(len(schema)))  # another column of the same group; the first leads itself

    def first(column: int) -> int:
        while leader[column] != column:
            leader[column] = leader[leader[column]]
            column = leader[column]
        return column

    reads = [[schema.column_by_name[n] for n in each.variables] for each in schema.constraints]
    for columns in [*reads, *([*tie.leaders, tie.follower] for tie in ties)]:
        firsts = {first(column) for column in columns}
        for each in firsts:
            leader[each] = min(firsts)
    groups: dict[int, list[int]] = {}
    own: dict[int, list[Constraint]] = {}
    for column in range(len(schema)):
        groups.setdefault(first(column), []).append(column)
    for columns, constraint in zip(reads, schema.constraints, strict=True):
        own.setdefault(first(columns[0]), []).append(constraint)
    return {tuple(columns): own.get(number, []) for number, columns in groups.items()}


def _block(schema: Schema, columns: tuple[int, ...], ties: tuple[Tie, ...]) -> tuple[Block, float]:
    """The block of these linked columns and the share of its combinations that are valid.

    The schema's constraints are those that read these columns, the ties those among them.
    """
    parts = tuple(_part(schema, column, ties) for column in columns)
    derived = {tie.follower for tie in ties if tie.derived}
    given = {column for column in columns if schema.characteristics[column].is_open}  # by rows
    free = (column for column in columns if column not in derived | given)
    before = math.prod(schema.characteristics[column].code_count for column in free)
    total = math.prod(part.size or 0 for part in parts)
    if len(columns) == 1:
        return parts[0], total / before
    if total <= ENUMERATION_LIMIT:
        block, valid = _enumerated(schema, parts, columns, total, ties)
        return block, valid / before
    rejecting = RejectionBlock(columns, parts, schema, width=len(schema), ties=ties)
    return rejecting, _valid_share(rejecting) * float(Fraction(total, before))


def _part(schema: Schema, column: int, ties: tuple[Tie, ...]) -> Block:
    """One characteristic, less the values that constraints on it alone forbid.

    Of what is rewritten they forbid what it becomes; a derived one gets its value then.
    """
    characteristic = schema.characteristics[column]
    tie = next((tie for tie in ties if tie.follower == column), None)
    if tie is not None and tie.derived:
        return ColumnBlock((column,), 0, 1)
    whole = column_block(characteristic, column)
    alone = [each for each in schema.constraints if each.variables == (characteristic.name,)]
    # With fewer values constraints on one characteristic are applied exactly.
    if not alone or tie is not None or characteristic.size > 2**22:
        return whole
    codes = whole.combinations(np.arange(whole.size or 0))[:, 0]
    allowed = np.ones(len(codes), dtype=bool)
    for constraint in alone:
        allowed &= constraint.holds({characteristic.name: codes})
    if not allowed.any():
        raise SchemaError([_contradiction(alone, {characteristic.name: codes})])
    weights = None if whole.uniform else whole.probabilities()[allowed]
    return TableBlock((column,), codes[allowed][:, None], weights)


def _enumerated(
    schema: Schema,
    parts: tuple[Block, ...],
    columns: tuple[int, ...],
    total: int,
    ties: tuple[Tie, ...],
) -> tuple[TableBlock, int]:
    """The combinations that occur, and how many were valid before some became the same."""
    places = np.unravel_index(np.arange(total), tuple(part.size or 0 for part in parts))
    codes = np.zeros((total, len(schema)), dtype=schema.dtype, order="F")
    for part, place in zip(parts, places, strict=True):
        codes[:, part.columns[0]] = part.combinations(place)[:, 0]
    rewrite(ties, codes)
    valid = schema.valid(codes)
    if not valid.any():
        by_name = {schema.names[column]: codes[:, column] for column in columns}
        raise SchemaError([_contradiction(schema.constraints, by_name)])
    weights = None
    if not all(part.uniform for part in parts):
        weights = np.ones(int(valid.sum()))
        for part, place in zip(parts, places, strict=True):
            weights *= part.probabilities()[place[valid]]
    rows = np.ascontiguousarray(codes[:, list(columns)][valid])
    block = _merged(columns, rows, weights) if ties else TableBlock(columns, rows, weights)
    return block, int(valid.sum())


def _merged(
    columns: tuple[int, ...], rows: NDArray[Any], weights: NDArray[np.float64] | None
) -> TableBlock:
    """The distinct rows, each with the weight of all that became it."""
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    total = np.bincount(places.reshape(-1), weights).astype(float)
    return TableBlock(columns, distinct, None if np.ptp(total) == 0 else total)


def _contradiction(constraints: Sequence[Constraint], codes: Mapping[str, NDArray[Any]]) -> Mistake:
    """Says which constraint leaves nothing of these inputs, alone or with those before it."""
    so_far = np.ones(len(next(iter(codes.values()))), dtype=bool)
    names: list[str] = []
    for constraint in constraints:
        holds = constraint.holds({name: codes[name] for name in constraint.variables})
        if not holds.any():
            problem = f"{constraint.text!r} holds for no input at all"
            remedy = "correct it, or widen the ranges that it reads"
            return Mistake("nothing-valid", f"constraint {constraint.name!r}", problem, remedy)
        so_far &= holds
        names.append(repr(constraint.name))
        if not so_far.any():
            break
    problem = f"{', '.join(names)} contradict each other: no input meets all of them"
    return Mistake("nothing-valid", "constraints", problem, "relax one of them")


def _valid_share(block: RejectionBlock) -> float:
    """The share of valid proposals, estimated; raises SchemaError when none is found."""
    rng = np.random.default_rng(0)
    tried = found = 0
    while tried < REJECTION_TRIALS and found < 1_000:
        codes = block.propose(rng, 100_000)
        found += int(block.keep(codes).sum())
        tried += len(codes)
    if not found:
        raise SchemaError([nothing_found(block, tried)])
    return found / tried
