"""Plainer pairs in few calls: many changes are tried at once, and the plainest that flips is taken.

First usual values are given to each column by itself and to ever more columns together, then to
what is left beginning with those that made no difference; numbers that matter come nearer at last.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.inputs.schema import Schema
from themis.scores.explanations.kin import Kin, Pair

ROUNDS = 3  # of candidates, each round in one call
NEARER = (8, 4, 2)  # from the usual value a number is away by such a part of what it was

# Yields pairs that are tried together, and is told which flip, and the plainest one so far.
Rounds: TypeAlias = Generator[list[Pair], tuple[Sequence[bool], Pair], None]
NONE: Sequence[bool] = ()
Move: TypeAlias = tuple[list[int], int, int]  # the sides that get a value, the column, the value


class Plainness:
    """How far pairs are from plain: their differences, their unusual values, their distance."""

    def __init__(self, reference: NDArray[Any], schema: Schema) -> None:
        self.reference = reference
        self._ordered = np.array([each.ordered for each in schema])
        self._sizes = np.array([max(each.size - 1, 1) for each in schema], dtype=float)

    def plainest(self, pairs: Sequence[Pair], flip: Sequence[bool]) -> int | None:
        """The place of the plainest pair of those that flip, if any does."""
        places = [place for place, flips in enumerate(flip) if flips]
        if len(places) < 2:
            return places[0] if places else None
        ranks = self.of(np.stack([pairs[place] for place in places]))
        return places[int(np.lexsort(ranks[::-1])[0])]

    def of(self, pairs: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The three of each pair."""
        away = np.abs(np.subtract(pairs, self.reference, dtype=pairs.dtype)).sum(axis=1)
        far = np.where(self._ordered, away / self._sizes, away > 0).sum(axis=1)
        differences = (pairs[:, 0] != pairs[:, 1]).sum(axis=1)
        return differences, (pairs != self.reference).sum(axis=(1, 2)), far


def distance(pair: Pair, reference: NDArray[Any], schema: Schema) -> tuple[int, int, float]:
    """How far one pair is from plain."""
    differences, unusual, far = Plainness(reference, schema).of(pair[None])
    return int(differences[0]), int(unusual[0]), float(far[0])


def target_of(code: int, column: int, reference: NDArray[Any], schema: Schema) -> int:
    """The usual value; of a characteristic with bins, the nearest to it in the same bin."""
    characteristic = schema.characteristics[column]
    target = int(reference[column])
    if characteristic.bin_starts is None:
        return target
    start, stop = characteristic.level_range(int(characteristic.level_of(np.array([code]))[0]))
    return min(max(target, start), stop - 1)


def tried_at_once(pair: Pair, *, plainness: Plainness, kin: Kin, most: int) -> Rounds:
    """Three rounds of candidates, each of `most` at most."""
    changes = _Changes(plainness.reference, kin, most)
    columns, flip = changes.unusual(pair), NONE
    singles = changes.singles(pair, columns)
    candidates = _first(most, singles, changes.agreeing(pair), changes.chain(pair, columns))
    if candidates:
        flip, pair = yield candidates
    free = {column for column, flips in zip(columns, flip, strict=False) if flips}

    left = sorted(changes.unusual(pair), key=lambda column: column not in free)
    moves = changes.nearer(pair, [column for column in left if column not in free])
    near = (changes.moved(pair, [move]) for move in moves)
    candidates, flip = _first(most, near, changes.agreeing(pair), changes.chain(pair, left)), NONE
    if candidates:
        flip, pair = yield candidates
    good = _best_of_each(move for move, flips in zip(moves, flip, strict=False) if flips)

    good = [move for move in good if changes.still_nearer(pair, move)]
    together = (changes.moved(pair, good[: n + 1]) for n in range(len(good)))
    candidates = _first(most, together, changes.chain(pair, changes.unusual(pair)[::-1]))
    if candidates:
        yield candidates


def _first(most: int, *candidates: Iterator[Pair]) -> list[Pair]:
    """So many candidates; no more of them are made, as each is as wide as the schema."""
    return list(itertools.islice(itertools.chain(*candidates), most))


class _Changes:
    """The changes of a pair that may make it plainer."""

    def __init__(self, reference: NDArray[Any], kin: Kin, most: int) -> None:
        self.reference, self.kin, self._most = reference, kin, most
        self._free = {*kin.schema.free}

    def unusual(self, pair: Pair) -> list[int]:
        """The columns in which the two have the same unusual value."""
        same = np.flatnonzero((pair[0] == pair[1]) & (pair[0] != self.reference)).tolist()
        return [column for column in same if column in self._free]

    def singles(self, pair: Pair, columns: list[int]) -> Iterator[Pair]:
        """The pair with the usual value in one of the columns."""
        numbers = np.arange(len(columns))
        return self._usual(pair, columns, numbers == numbers[: self._most, None])

    def chain(self, pair: Pair, columns: list[int]) -> Iterator[Pair]:
        """The pair with usual values in ever more of the columns, all of them first."""
        numbers = np.arange(len(columns))
        return self._usual(pair, columns, numbers < numbers[::-1][: self._most, None] + 1)

    def _usual(self, pair: Pair, columns: list[int], chosen: NDArray[np.bool_]) -> Iterator[Pair]:
        """The pair with usual values in those of the columns that each row chooses."""
        if self.kin.schema.ties:
            some = (list(itertools.compress(columns, row)) for row in chosen)
            yield from (self.kin.changed(pair, [0, 1], e, self.reference[e]) for e in some)
            return
        pairs = np.repeat(pair[None], len(chosen), axis=0)
        usual = self.reference[columns].astype(pair.dtype)  # narrow: it may be a wide table
        pairs[:, :, columns] = np.where(chosen[:, None], usual, pair[:, columns])
        yield from pairs

    def agreeing(self, pair: Pair) -> Iterator[Pair]:
        """The pair with fewer differences: in one column only, or in all but one."""
        differing = self.kin.differing(pair)
        if len(differing) < 2:
            return
        for kept in differing:
            others = [column for column in differing if column != kept]
            for side in (0, 1):
                yield self.kin.changed(pair, [0, 1], others, pair[side, others])
        for column, side in itertools.product(differing, (0, 1)):
            yield self.kin.changed(pair, [0, 1], [column], pair[side, column])

    def nearer(self, pair: Pair, common: list[int]) -> list[Move]:
        """Moves of numbers towards the usual: common ones, and each of two that differ."""
        characteristics, moves = self.kin.schema.characteristics, []
        ordered = [column for column in common if characteristics[column].ordered]
        places = [([0, 1], column, int(self.reference[column])) for column in ordered]
        for column in self.kin.differing(pair):
            each = characteristics[column]
            if each.ordered and bool((pair[:, column] < each.missing_code).all()):
                for side in (0, 1):
                    target = target_of(pair[side, column], column, self.reference, self.kin.schema)
                    places.append(([side], column, target))
        for sides, column, target in places:
            far = int(pair[sides[0], column])
            if far >= characteristics[column].size:
                continue
            values = [target, *(target + (far - target) // part for part in NEARER)]
            others = set(pair[:, column].tolist())  # must not be met: the two would be equal
            moves += [(sides, column, value) for value in dict.fromkeys(values)
                      if value not in others]  # fmt: skip
        return moves

    def moved(self, pair: Pair, moves: Sequence[Move]) -> Pair:
        """The pair after these moves."""
        for sides, column, value in moves:
            pair = self.kin.changed(pair, sides, [column], value)
        return pair

    def still_nearer(self, pair: Pair, move: Move) -> bool:
        """Whether a move leads nearer to the usual value, and the two stay different there."""
        sides, column, value = move
        now, usual = pair[sides, column].astype(int), int(self.reference[column])
        other = 1 - sides[0]
        meets = len(sides) == 1 and pair[other, column] == value
        return bool((np.abs(now - usual) > abs(value - usual)).all()) and not meets


def _best_of_each(moves: Iterator[Move]) -> list[Move]:
    """The first move of each column and side: those come first that lead farthest."""
    best: dict[tuple[Any, ...], Move] = {}
    for move in moves:
        best.setdefault((*move[0], move[1]), move)
    return list(best.values())
