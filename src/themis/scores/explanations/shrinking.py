"""Plain witnesses: pairs are moved towards a reference person as long as they flip.

Changes of a pair are proposed, the most promising ones first; as many of them as a step has room
for are run, the plainest that flips is taken, and it begins again. Where calls are to be few a step
tries many changes, else one. Steps of all pairs are run together.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import as_drawn, follow, rewrite
from themis.inputs.schema import Schema
from themis.inputs.streams import reference_person
from themis.results.parts import Witness
from themis.scores.explanations.witnesses import SHOWN, FlipPool, Pairs, joined
from themis.statistics.intervals import Flags
from themis.subjects.decisions import FAILED, NOT_RUN

PAIRS = 6  # shrunk of those that are shown
STEPS = 20  # of one pair: two executions each, at most
AT_ONCE = 8  # pairs that are shrunk where calls are to be few, …
FEW_STEPS = 3  # … in so many steps, each in one call

Pair: TypeAlias = NDArray[Any]  # two inputs: 2 × characteristics


def plain_witnesses(
    sets: Sequence[FlipPool], sampler: Sampler, *, known: bool = False
) -> list[tuple[Witness, ...]]:
    """Of each set its most different pairs: the shrunk ones first, the plainest at the top.

    Each differs only in the set and is valid; each flips, as was seen by running it. A shrunk
    pair is never farther from plain (`Plainness`) than the one it came from; the rest is shown as
    it was drawn. With `known` all outputs are remembered, so that nothing limits the steps. Steps
    of all sets are run together.
    """
    chosen = [pool.most_different(SHOWN) for pool in sets]
    found = chosen
    if any(map(len, chosen)) and not sampler.trials.out_of_time:
        shrinker = _Shrinker(sampler, len(sets), known=known)
        plain = shrinker.shrink([pool.assignments for pool in sets], chosen)
        found = [joined(*each) for each in zip(plain, chosen, strict=True)]
    return [
        pool.witnesses(pairs.take(_first_of_each(pairs.codes)[:SHOWN]))
        for pool, pairs in zip(sets, found, strict=True)
    ]


# What is plain, and what makes a pair plainer -------------------------------------------------
@dataclass(frozen=True)
class Kin:
    """How pairs that differ in a set may be changed: the second stays a variant of the first."""

    assignments: Assignments

    @property
    def schema(self) -> Schema:
        return self.assignments.schema

    @property
    def columns(self) -> list[int]:
        """The set that the two may differ in."""
        return list(self.assignments.columns)

    def differing(self, pair: Pair) -> list[int]:
        """The characteristics of the set in which the two differ."""
        return [column for column in self.columns if pair[0, column] != pair[1, column]]

    def changed(
        self, pair: Pair, sides: Sequence[int], columns: Sequence[int], values: Any
    ) -> Pair:
        """The pair with other values on these sides, and with what follows them."""
        return np.asarray(self.all_changed(pair[None], sides, columns, values)[0])

    def all_changed(
        self, pairs: NDArray[Any], sides: Sequence[int], columns: Sequence[int], values: Any
    ) -> NDArray[Any]:
        """Many pairs, each with its own row of values, or all with the same."""
        candidates = pairs.copy()
        for side in sides:
            candidates[:, side, columns] = values
        if not self.schema.ties:
            return candidates
        first = candidates[:, 0]
        free = [tie for tie in self.schema.ties if tie.follower not in self.columns]
        follow(free, pairs[:, 0], first)
        other = ~as_drawn(free, first)
        drawn = first[other]
        rewrite(free, drawn)
        first[other] = drawn
        second = first.copy()
        second[:, self.columns] = candidates[:, 1][:, self.columns]
        follow(self.assignments.followed, first, second)
        candidates[:, 1] = second
        return candidates


class Plainness:
    """How far pairs are from plain: their differences, their unusual values, their distance."""

    def __init__(self, reference: NDArray[Any], schema: Schema) -> None:
        self.reference = reference
        self._ordered = np.array([each.ordered for each in schema])
        self._sizes = np.array([max(each.size - 1, 1) for each in schema], dtype=float)

    def of(self, pairs: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The three of each pair."""
        away = np.abs(np.subtract(pairs, self.reference, dtype=pairs.dtype)).sum(axis=1)
        far = np.where(self._ordered, away / self._sizes, away > 0).sum(axis=1)
        differences = (pairs[:, 0] != pairs[:, 1]).sum(axis=1)
        return differences, (pairs != self.reference).sum(axis=(1, 2)), far


class _Move(NamedTuple):
    """A value for one characteristic of both inputs, or of one of them."""

    sides: tuple[int, ...]
    column: int
    value: int


class _Candidate(NamedTuple):
    """A pair that may be plainer, and the moves that made it; none where two were made to agree."""

    pair: Pair
    moves: tuple[_Move, ...] = ()


@dataclass
class _Shrinking:
    """One pair on its way to a plainer one, with what was tried."""

    kin: Kin
    reference: NDArray[Any]
    number: int  # of its set
    pair: Pair
    outputs: NDArray[Any]
    seen: dict[_Move, bool] = field(default_factory=dict)  # single moves: whether they flipped
    tried: set[bytes] = field(default_factory=set)
    candidates: list[_Candidate] = field(default_factory=list)

    def propose(self, most: int) -> bool:
        """Choose up to so many candidates, none twice; whether there are any."""
        self.tried.add(self.pair.tobytes())
        self.candidates = []
        for each in self._proposed():
            if len(self.candidates) == most:
                break
            if (key := each.pair.tobytes()) not in self.tried:
                self.tried.add(key)
                self.candidates.append(each)
        return bool(self.candidates)

    def take(self, flips: Flags, outputs: NDArray[Any], plainness: Plainness) -> None:
        """Go on from the plainest candidate that flips, unless the pair itself is plainer."""
        for each, flip in zip(self.candidates, flips.tolist(), strict=True):
            if len(each.moves) == 1:
                self.seen[each.moves[0]] = flip
        places = np.flatnonzero(flips)
        pairs = np.stack([self.pair, *(self.candidates[place].pair for place in places.tolist())])
        plainest = int(np.lexsort(plainness.of(pairs)[::-1])[0])
        if plainest:
            self.pair, self.outputs = pairs[plainest], outputs[places[plainest - 1]]

    def after(self, *, flips: bool, plainness: Plainness) -> _Shrinking:
        """What it is after its only candidate, if that flips or does not."""
        other = replace(self, seen={**self.seen}, tried={*self.tried})
        other.take(np.array([flips]), self.outputs[None], plainness)
        other.propose(1)
        return other

    def _proposed(self) -> Iterator[_Candidate]:
        """All that may be tried, the most promising ones first.

        Two that agree more; all moves together that flipped alone and usual values where nothing
        is known, then half of them and so on; single moves.
        """
        yield from map(_Candidate, self._agreeing())
        ladders = [moves for place in self._places() if (moves := self._ladder(*place))]
        first = [moves[0] for moves in ladders]
        good = [move for move in first if self.seen.get(move)]
        usual = [move for move in first if len(move.sides) == 2 and move not in self.seen
                 and move.value == self.reference[move.column]]  # fmt: skip
        together, length = tuple(good + usual), len(good) + len(usual)
        while length:
            yield self._moved(together[:length])
            length = len(good) if length > len(good) > length // 2 else length // 2
        for step in itertools.zip_longest(*ladders):
            yield from (self._moved((move,)) for move in step if move is not None)

    def _agreeing(self) -> Iterator[Pair]:
        """The pair with one difference less."""
        differing = self.kin.differing(self.pair)
        for column in differing if len(differing) > 1 else ():
            usual = int(self.reference[column])
            for value in sorted(self.pair[:, column].tolist(), key=lambda each: abs(each - usual)):
                yield self.kin.changed(self.pair, (0, 1), [column], value)

    def _places(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Where a value may come nearer to usual: unusual in both, or a number that differs."""
        pair, schema = self.pair, self.kin.schema
        same = np.flatnonzero((pair[0] == pair[1]) & (pair[0] != self.reference)).tolist()
        yield from (((0, 1), column) for column in same if column in schema.free)
        for column in self.kin.differing(pair):
            each = schema.characteristics[column]
            if each.ordered and bool((pair[:, column] < each.missing_code).all()):
                yield from (((side,), column) for side in (0, 1))

    def _ladder(self, sides: tuple[int, ...], column: int) -> list[_Move]:
        """The moves to try there: what flipped, the usual value, numbers from what did not on."""
        far, target = int(self.pair[sides[0], column]), self._target(sides, column)
        own = {each.value: flip for each, flip in self.seen.items() if each[:2] == (sides, column)}
        failed = [value for value, flip in own.items() if not flip]
        near = max(failed, key=lambda value: abs(value - target), default=target)
        values = [*sorted(own.keys() - failed, key=lambda value: abs(value - target)), target]
        each = self.kin.schema.characteristics[column]
        if each.ordered and far < each.size:  # by such a part of the way back
            values += [near + (far - near) // part for part in (2, 4, 8)]
        taken = {*failed, *self.pair[[1 - side for side in sides], column].tolist()}  # they differ
        return [_Move(sides, column, value) for value in dict.fromkeys(values)
                if value not in taken and abs(value - target) < abs(far - target)]  # fmt: skip

    def _target(self, sides: tuple[int, ...], column: int) -> int:
        """The usual value; where two differ, the nearest to it in the bin of this one."""
        each, target = self.kin.schema.characteristics[column], int(self.reference[column])
        if each.bin_starts is None or len(sides) == 2:
            return target
        level = int(each.level_of(self.pair[sides[0], [column]])[0])
        start, stop = each.level_range(level)
        return min(max(target, start), stop - 1)

    def _moved(self, moves: tuple[_Move, ...]) -> _Candidate:
        """The pair after these moves."""
        pair = self.pair
        for sides in dict.fromkeys(move.sides for move in moves):
            own = [move for move in moves if move.sides == sides]
            columns, values = [each.column for each in own], [each.value for each in own]
            pair = self.kin.changed(pair, sides, columns, values)
        return _Candidate(pair, moves)


class _Shrinker:
    """Shrinks pairs of several sets within the executions that explanations may take."""

    def __init__(self, sampler: Sampler, sets: int, *, known: bool) -> None:
        self.sampler, self.ended = sampler, False
        allowed = sampler.trials.allowance(sets)
        self.left, self.at_once = allowed * sets, 1
        self.steps = 12 if sampler.runner.traits.external else STEPS
        self.pairs = min(PAIRS, max(allowed // (2 * self.steps), 1))
        if known:
            self.steps, self.pairs = 10 * STEPS, PAIRS  # nothing is executed
        elif sampler.runner.saves_calls:
            self.steps, self.pairs = FEW_STEPS, min(AT_ONCE, max(allowed // (2 * FEW_STEPS), 1))
            self.at_once = max(allowed // (2 * FEW_STEPS * self.pairs), 1)
        self.schema = sampler.population.schema
        self.reference = reference_person(sampler.population)
        self.plainness = Plainness(self.reference, self.schema)

    def shrink(self, sets: Sequence[Assignments], pairs: Sequence[Pairs]) -> list[Pairs]:
        """The pairs of each set, as plain as can be, without those that tell the same."""
        working = [
            _Shrinking(Kin(sets[number]), self.reference, number, *each)
            for number, own in enumerate(pairs)
            for each in own.take(slice(self.pairs))
        ]
        for _ in range(self.steps):
            active = [each for each in working if each.propose(self.at_once)]
            if not active or self.ended or self.sampler.trials.out_of_time:
                break
            self._step(active)
        return [
            self._told_once([each for each in working if each.number == number])
            for number in range(len(sets))
        ]

    def _step(self, active: Sequence[_Shrinking]) -> None:
        """Run the candidates of all pairs in one batch, and go on from the plainest."""
        counts = [len(each.candidates) for each in active]
        pairs = np.stack([candidate.pair for each in active for candidate in each.candidates])
        before = np.stack([each.outputs for each in active]).repeat(counts, axis=0)
        outputs = np.full_like(before, FAILED)
        valid = np.flatnonzero(self._occur(pairs))
        if len(valid):
            with self.sampler.runner.ahead.looking(partial(self._coming, active)):
                outputs[valid] = self._run(pairs[valid])
        flips, ends = self._flip(before, outputs), np.cumsum([0, *counts])
        for each, start, end in zip(active, ends[:-1], ends[1:], strict=True):
            each.take(flips[start:end], outputs[start:end], self.plainness)

    def _run(self, pairs: NDArray[Any]) -> NDArray[Any]:
        """The outputs of pairs; the end of a budget, or an expensive failure, ends it all."""
        cells, run = self.sampler.trials.run(pairs.reshape(2 * len(pairs), -1), self.left)
        self.left -= len(run)
        worst = 0 if self.sampler.runner.traits.external else FAILED
        self.ended |= bool((cells < worst).any())
        return self.sampler.reading.cells(cells).reshape(-1, 2)

    def _coming(self, active: Sequence[_Shrinking]) -> Generator[NDArray[Any]]:
        """The inputs of the next step, whatever this one gives, if a step is one candidate."""
        each_way = itertools.product(active if self.at_once == 1 else (), (True, False))
        following = [each.after(flips=flips, plainness=self.plainness) for each, flips in each_way]
        pairs = [each.candidates[0].pair for each in following if each.candidates]
        if pairs:
            codes = np.stack(pairs)[self._occur(np.stack(pairs))].reshape(-1, len(self.schema))
            yield codes[self.sampler.trials.known(codes) == NOT_RUN]

    def _flip(self, before: NDArray[Any], now: NDArray[Any]) -> Flags:
        """Which pairs differ as much as before, and favour the same of the two if they did."""
        reading = self.sampler.reading
        apart = reading.distances(now[:, 0], now[:, 1])
        enough = (apart > 0) & (apart >= reading.distances(before[:, 0], before[:, 1]))
        ranks = reading.ranks().astype(float)
        was, favours = (
            np.sign(ranks[both[:, 0]] - ranks[both[:, 1]]) for both in (before, np.maximum(now, 0))
        )
        return np.asarray(enough & ((was == 0) | (was == favours)))

    def _occur(self, pairs: NDArray[Any]) -> Flags:
        """Which pairs are valid, made of values that occur, and could be drawn."""
        schema, codes = self.schema, pairs.reshape(2 * len(pairs), -1)
        occur = schema.valid(codes)
        for column, characteristic in enumerate(schema):
            if characteristic.value_weights is not None:  # no value occurs where it may be
                places = np.minimum(codes[:, column], characteristic.size)
                occur &= np.append(characteristic.value_weights, 1.0)[places] > 0
        return occur.reshape(-1, 2).all(axis=1) & as_drawn(schema.ties, codes[::2])

    def _told_once(self, working: Sequence[_Shrinking]) -> Pairs:
        """The pairs, the plainest first, without those that tell the same as a plainer one.

        They do if they are unusual in the same characteristics, with the same values, or with
        numbers on the same side of the usual one.
        """
        codes = np.array([each.pair for each in working]).reshape(-1, 2, len(self.schema))
        outputs = np.array([each.outputs for each in working], dtype=int).reshape(-1, 2)
        ranked = Pairs(codes, outputs).take(np.lexsort(self.plainness.of(codes)[::-1]))
        ordered = np.array([each.ordered for each in self.schema])
        away = np.sign(ranked.codes.astype(np.int64) - self.reference)
        return ranked.take(_first_of_each(np.where(ordered, away, ranked.codes)))


def _first_of_each(pairs: NDArray[Any]) -> list[int]:
    """The first place of each pair, whichever of its two inputs comes first."""
    keys = [frozenset(row.tobytes() for row in np.ascontiguousarray(pair)) for pair in pairs]
    return sorted({key: place for place, key in reversed(list(enumerate(keys)))}.values())
