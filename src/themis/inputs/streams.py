"""Streams of base inputs: row i depends on the seed and i alone, never on how it is asked for.

Beside them the reference person: the most usual value of each characteristic of a population.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property, lru_cache, partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from themis.inputs.blocks import Block, ColumnBlock, MissingBlock, RejectionBlock, TableBlock
from themis.inputs.characteristics import OWN
from themis.inputs.following import rewrite
from themis.inputs.population import Population

CHUNK = 65_536  # rows drawn together from one generator, …
FIRST_CHUNK = 1_024  # … and of the first ones, and in groups, fewer: most runs need no more
CHUNK_CELLS = 2**22  # and at most about so many cells: of many characteristics, fewer rows
SLOW_CHUNK = 256  # the same where many proposals are rejected for one row

Draw = Callable[[int], NDArray[Any]]  # the rows of a chunk, by its number

# What a generator is for: no two share their numbers.
INPUTS, MEMBERS, ORDER, VARIANTS, TOLERANCES, PROOFS, MIXING, RERUNS = range(8)


class Branch(IntEnum):
    """Streams apart from the common one, by what they are drawn for."""

    GROUP = 1_000  # single groups; the number of the set's characteristics is added
    PAPER = 2_000  # a set of the paper's procedure, which draws for each anew
    ROWS = 3_000  # members for given people
    GENERATED = 3_100  # pairs of generated values
    VALUES = 4_000  # inputs in which no value of a set is missing


class Chunks:
    """How an endless sequence is cut into what is drawn together: small at first, then growing.

    The cuts are those of the largest size, and some more before its first.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._first = [0]  # where chunks begin before row `size`
        start = FIRST_CHUNK
        while start < size:
            self._first.append(start)
            start *= 4

    def rows(self, number: int) -> int:
        """How many rows a chunk has."""
        return self._start(number + 1) - self._start(number)

    def view(self, draw: Draw, start: int, stop: int) -> NDArray[Any]:
        """Rows start..stop of what is drawn; not to be changed."""
        number = self._number(start)
        if start < stop <= self._start(number + 1):
            offset = self._start(number)
            return draw(number)[start - offset : stop - offset]
        return self.copy(draw, start, stop)

    def copy(self, draw: Draw, start: int, stop: int) -> NDArray[Any]:
        """The same as an array of one's own."""
        first = draw(self._number(start))
        rows = np.empty((stop - start, first.shape[1]), dtype=first.dtype, order="F")
        for number in range(self._number(start), self._number(max(stop - 1, start)) + 1):
            offset = self._start(number)
            part = draw(number)[max(start - offset, 0) : stop - offset]
            place = max(offset - start, 0)
            rows[place : place + len(part)] = part
        return rows

    def _number(self, row: int) -> int:
        if row < self.size:
            return bisect_right(self._first, row) - 1
        return len(self._first) - 1 + row // self.size

    def _start(self, number: int) -> int:
        before = len(self._first) - 1
        return self._first[number] if number <= before else (number - before) * self.size


class BaseInputs:
    """The endless sequence of random inputs of one run, the same for every set and measure."""

    def __init__(
        self,
        population: Population,
        seed: int,
        *,
        branch: tuple[int, ...] = (),
        among_many: bool = False,  # streams side by side: each draws and keeps little
        kept: int = 8,  # chunks
    ) -> None:
        self.population = population
        most = FIRST_CHUNK if branch else CHUNK
        self.chunk_rows = _chunk_rows(SLOW_CHUNK if among_many else most, len(population.schema))
        self._chunks = Chunks(self.chunk_rows)
        self.seed = seed
        self._branch, self._among_many = branch, among_many
        self._chunk = lru_cache(maxsize=1 if among_many else kept)(self._draw_chunk)

    # Made when they are needed: there may be thousands of streams, of which most need none.
    @cached_property
    def _slow_chunk(self) -> Callable[..., NDArray[Any]]:
        return lru_cache(maxsize=1 if self._among_many else 64)(self._draw_slow_chunk)

    @cached_property
    def _member_chunk(self) -> Callable[..., NDArray[Any]]:
        return lru_cache(maxsize=4)(self._draw_members)

    @cached_property
    def _share_chunk(self) -> Callable[..., NDArray[Any]]:
        return lru_cache(maxsize=16)(self._draw_shares)

    def __reduce__(self) -> tuple[Any, ...]:
        """What it was made of, for a process that draws what it needs next and keeps little."""
        make = partial(type(self), branch=self._branch, among_many=self._among_many, kept=2)
        return make, (self.population, self.seed)

    @cached_property
    def name(self) -> str:
        """By which other processes know it."""
        return uuid4().hex

    @property
    def is_quick(self) -> bool:
        """Whether rows are drawn as fast as sent.

        People are sent, what is hard to find, and what is drawn from a list longer than a task.
        """
        slow = (
            isinstance(block, RejectionBlock)
            or (isinstance(block, TableBlock) and block.size > CHUNK)
            for block in self.population.blocks
        )
        return not (self.population.profile or any(slow))

    def generator(self, purpose: int, *key: int) -> np.random.Generator:
        """A generator of its own for one purpose and place."""
        return np.random.Generator(
            np.random.SFC64(  # two to three times as fast as numpy's default
                np.random.SeedSequence(self.seed, spawn_key=(*self._branch, purpose, *key))
            )
        )

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """The inputs start, start + 1, …, stop − 1 as a code matrix that must not be changed."""
        rejecting = any(isinstance(block, RejectionBlock) for block in self.population.blocks)
        if not rejecting:
            return self._chunks.view(self._chunk, start, stop)
        codes = self._chunks.copy(self._chunk, start, stop)
        for number, block in enumerate(self.population.blocks):
            if isinstance(block, RejectionBlock):
                part = Chunks(SLOW_CHUNK).view(partial(self._slow_chunk, number), start, stop)
                codes[:, list(block.columns)] = part
        return codes

    def members(self, column: int, start: int, stop: int) -> NDArray[Any]:
        """The member that stands for each bin of a binned characteristic, for these inputs.

        Rows are inputs, columns are bins; an input's own bin is represented by its own value.
        """
        chunks = Chunks(self._member_rows(column))
        drawn = chunks.copy(partial(self._member_chunk, column), start, stop)
        own = self.rows(start, stop)[:, column]
        levels = self.population.schema.characteristics[column].level_of(own)
        inside = np.flatnonzero(levels != OWN)
        drawn[inside, levels[inside]] = own[inside]
        return drawn

    def tolerances(self, start: int, stop: int) -> NDArray[np.float64]:
        """Of each of these inputs, a number between 0 and 1 that a distance must exceed."""
        return self._shares(start, stop, TOLERANCES)

    def beginnings(self, start: int, stop: int, width: int) -> NDArray[np.int64]:
        """Of each of these rows, the column of so many that is tried first.

        That depends on the row alone, not on the block that it is run in.
        """
        return (self._shares(start, stop, MIXING, 1) * width).astype(np.int64)

    def _shares(self, start: int, stop: int, purpose: int, *key: int) -> NDArray[np.float64]:
        return Chunks(CHUNK).view(partial(self._share_chunk, purpose, key), start, stop)[:, 0]

    def _draw_shares(self, purpose: int, key: tuple[int, ...], chunk: int) -> NDArray[Any]:
        return self.generator(purpose, chunk, *key).random((Chunks(CHUNK).rows(chunk), 1))

    def _draw_chunk(self, chunk: int) -> NDArray[Any]:
        schema = self.population.schema
        rng = self.generator(INPUTS, chunk)
        rows = self._chunks.rows(chunk)
        codes = np.empty((rows, len(schema)), dtype=schema.dtype, order="F")
        for block in self.population.blocks:
            if not isinstance(block, RejectionBlock):
                drawn = block.draw(rng, rows)
                for position, column in enumerate(block.columns):
                    codes[:, column] = drawn[:, position]
        codes.flags.writeable = False  # blocks of rows are views of it
        return codes

    def _draw_slow_chunk(self, number: int, chunk: int) -> NDArray[Any]:
        return self.population.blocks[number].draw(
            self.generator(INPUTS, chunk, number), SLOW_CHUNK
        )

    def _draw_members(self, column: int, chunk: int) -> NDArray[Any]:
        characteristic = self.population.schema.characteristics[column]
        rng = self.generator(MEMBERS, column, chunk)
        rows = Chunks(self._member_rows(column)).rows(chunk)
        members = np.empty(
            (rows, characteristic.levels), dtype=self.population.schema.dtype, order="F"
        )
        for level in range(characteristic.levels):
            start, stop = characteristic.level_range(level)
            block = self.population.members(column, start, stop)
            # A bin that does not occur is represented by a value that nobody may have.
            members[:, level] = start if block is None else block.draw(rng, rows)[:, 0]
        return members

    def _member_rows(self, column: int) -> int:
        return _chunk_rows(CHUNK, self.population.schema.characteristics[column].levels)


def _chunk_rows(most: int, columns: int) -> int:
    """How many rows are drawn together; it depends on the schema alone, and so do the rows."""
    while most * columns > CHUNK_CELLS and most > SLOW_CHUNK:
        most //= 2
    return most


def reference_person(population: Population) -> NDArray[Any]:
    """The codes of one value for each characteristic, whether or not they are valid together.

    A number takes its median, everything else its most common value; among equally common ones
    the first that the schema lists. A value that may be missing is there, if it ever is.
    """
    reference = np.zeros(len(population.schema), dtype=population.schema.dtype)
    for block in population.blocks:
        parts = block.parts if isinstance(block, RejectionBlock) else (block,)
        for part in parts:
            _fill(population, part, reference)
    rewrite(population.schema.ties, reference[None])
    return reference


def _fill(population: Population, block: Block, reference: NDArray[Any]) -> None:
    """Set the columns of one block."""
    characteristics = population.schema.characteristics
    if isinstance(block, MissingBlock):
        block = block.present
    if isinstance(block, ColumnBlock):  # however many values there are
        (column,) = block.columns
        middle = (block.start + block.stop - 1) // 2
        reference[column] = middle if characteristics[column].ordered else block.start
        return
    # So many combinations are counted; of more, a sample is.
    if block.size is not None and block.size <= 2**16:
        codes, weights = block.combinations(np.arange(block.size)), block.probabilities()
    else:
        codes = block.draw(np.random.default_rng(0), 2**12)
        weights = np.full(len(codes), 1 / len(codes))
    for position, column in enumerate(block.columns):
        there = codes[:, position] < characteristics[column].missing_code
        chosen = there if there.any() else ~there
        values, places = np.unique(codes[chosen, position], return_inverse=True)
        shares = np.bincount(places, weights[chosen] / weights[chosen].sum())
        place = int(np.argmax(shares > shares.max() - 1e-9))
        if characteristics[column].ordered:
            place = int(np.searchsorted(np.cumsum(shares), 0.5 - 1e-9))
        reference[column] = values[place]
