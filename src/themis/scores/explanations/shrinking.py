"""Plain witnesses: pairs are moved towards a reference person as long as they flip.

There is one way: changes of a pair are proposed, the most promising ones first; as many of them as
a step has room for are run, the plainest that flips is taken, and it begins again. Where calls are
to be few a step tries many changes, else one. Steps of all pairs are run together; slots that this
leaves idle run the steps that may follow.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import LookUp
from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import as_drawn, follow, rewrite
from themis.inputs.schema import Schema
from themis.inputs.streams import AHEAD, reference_person
from themis.results.parts import Witness
from themis.scores.explanations.witnesses import SHOWN, FlipPool, Pairs, joined
from themis.statistics.intervals import Flags
from themis.subjects.decisions import FAILED, NOT_RUN

PAIRS = 6  # shrunk of those that are shown
STEPS = 20  # of one pair: two executions each, at most
DEAR_STEPS = 12  # of a pair of inputs for a subject outside of this process
AT_ONCE = 8  # pairs that are shrunk where calls are to be few, …
FEW_STEPS = 3  # … in so many steps, each in one call
KNOWN_STEPS = 200  # of a pair whose domain was run whole: nothing is executed
FORESEEN = 6  # steps of a pair that idle slots may run ahead, for each answer that may come
NEARER = (8, 4, 2)  # from the last value that did not flip, by such a part of the way back

Pair: TypeAlias = NDArray[Any]  # two inputs: 2 × characteristics


class Flipping(NamedTuple):
    """The flips under a set of characteristics, of which some are to be made plain."""

    pool: FlipPool
    columns: Sequence[int]


class Plain(NamedTuple):
    """Plain pairs, and the executions that they took."""

    witnesses: tuple[Witness, ...]
    executions: int


def plain_witnesses(
    sets: Sequence[Flipping], sampler: Sampler, *, known: bool = False
) -> list[Plain]:
    """Of each set its most different pairs: the shrunk ones first, the plainest at the top.

    Each differs only in the set and is valid; each flips, as was seen by running it. A shrunk
    pair is never farther from plain (`Plainness`) than the one it came from. For pairs that become
    equal as many others are tried, and the rest is shown as it was drawn. With `known` all outputs
    are remembered, so that nothing limits the steps. Steps of all sets are run together.
    """
    chosen = [pool.most_different(SHOWN) for pool, _ in sets]
    if not any(map(len, chosen)) or sampler.trials.out_of_time:
        return [Plain(each.pool.witnesses(own), 0) for each, own in zip(sets, chosen, strict=True)]
    shrinker = _Shrinker.of(sampler, [columns for _, columns in sets], known=known)
    most = shrinker.pairs
    plain = shrinker.shrink([each.take(slice(most)) for each in chosen])
    if not (shrinker.ended.all() or shrinker.at_once > 1):
        lacking = [min(most, len(own)) - len(each) for own, each in zip(chosen, plain, strict=True)]
        others = [
            pool.most_different(most + more if more else 0)
            for (pool, _), more in zip(sets, lacking, strict=True)
        ]
        more = shrinker.shrink([each.take(slice(most, None)) for each in others])
        plain = list(map(shrinker.told_once, plain, more))
    return [
        Plain(pool.witnesses(_distinct(each, own).take(slice(SHOWN))), int(spent))
        for (pool, _), each, own, spent in zip(sets, plain, chosen, shrinker.spent, strict=True)
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

    def plainest(self, pairs: Sequence[Pair], flip: Sequence[bool]) -> int:
        """The place of the plainest pair of those that flip; some do."""
        places = [place for place, flips in enumerate(flip) if flips]
        if len(places) == 1:
            return places[0]
        ranks = self.of(np.stack([pairs[place] for place in places]))
        return places[int(np.lexsort(ranks[::-1])[0])]

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


_Place: TypeAlias = tuple[tuple[int, ...], int]  # sides and column


@dataclass(frozen=True)
class _Changes:
    """The changes of a pair of one set that may make it plainer."""

    reference: NDArray[Any]
    kin: Kin
    at_once: int

    def proposed(self, pair: Pair, seen: Mapping[_Move, bool]) -> Iterator[_Candidate]:
        """All that may be tried, the most promising ones first, given which single moves flipped.

        Two that agree more; all moves together that flipped alone and usual values where nothing
        is known, then half of them and so on; single moves.
        """
        yield from map(_Candidate, self._agreeing(pair))
        ladders = [self._ladder(pair, *place, seen) for place in self._places(pair)]
        first = [moves[0] for moves in ladders if moves]
        good = [move for move in first if seen.get(move)]
        usual = [move for move in first if len(move.sides) == 2 and move not in seen
                 and move.value == self.reference[move.column]]  # fmt: skip
        together, length = tuple(good + usual), len(good) + len(usual)
        while length:
            yield self._moved(pair, together[:length])
            length = len(good) if length > len(good) > length // 2 else length // 2
        for moves in itertools.zip_longest(*ladders):
            yield from (self._moved(pair, (move,)) for move in moves if move is not None)

    def _agreeing(self, pair: Pair) -> Iterator[Pair]:
        """The pair with fewer differences: in all columns but one, or in one only."""
        differing = self.kin.differing(pair)
        if len(differing) < 2:
            return
        for column in differing:
            usual = int(self.reference[column])
            for value in sorted(pair[:, column].tolist(), key=lambda each: abs(each - usual)):
                yield self.kin.changed(pair, (0, 1), [column], value)
        for kept in differing if self.at_once > 1 and len(differing) > 2 else ():
            others = [column for column in differing if column != kept]
            for side in (0, 1):
                yield self.kin.changed(pair, (0, 1), others, pair[side, others])

    def _places(self, pair: Pair) -> Iterator[_Place]:
        """Where a value may come nearer to usual: unusual in both, or a number that differs."""
        same = np.flatnonzero((pair[0] == pair[1]) & (pair[0] != self.reference)).tolist()
        free = {*self.kin.schema.free}
        yield from (((0, 1), column) for column in same if column in free)
        for column in self.kin.differing(pair):
            each = self.kin.schema.characteristics[column]
            if each.ordered and bool((pair[:, column] < each.missing_code).all()):
                yield from (((side,), column) for side in (0, 1))

    def _ladder(
        self, pair: Pair, sides: tuple[int, ...], column: int, seen: Mapping[_Move, bool]
    ) -> list[_Move]:
        """The moves to try there: what flipped, the usual value, numbers from what did not on."""
        far, target = int(pair[sides[0], column]), self._target(pair, sides, column)
        own = {each.value: flip for each, flip in seen.items() if each[:2] == (sides, column)}
        failed = [value for value, flip in own.items() if not flip]
        near = max(failed, key=lambda value: abs(value - target), default=target)
        values = [*sorted(own.keys() - failed, key=lambda value: abs(value - target)), target]
        each = self.kin.schema.characteristics[column]
        if each.ordered and far < each.size:
            parts = NEARER if self.at_once > 1 else NEARER[-1:]
            values += [near + (far - near) // part for part in parts]
        taken = {*failed, *pair[[1 - side for side in sides], column].tolist()}  # they must differ
        return [_Move(sides, column, value) for value in dict.fromkeys(values)
                if value not in taken and abs(value - target) < abs(far - target)]  # fmt: skip

    def _target(self, pair: Pair, sides: tuple[int, ...], column: int) -> int:
        """The usual value; where two differ, the nearest to it in the bin of this one."""
        each, target = self.kin.schema.characteristics[column], int(self.reference[column])
        if each.bin_starts is None or len(sides) == 2:
            return target
        level = int(each.level_of(pair[sides[0], [column]])[0])
        start, stop = each.level_range(level)
        return min(max(target, start), stop - 1)

    def _moved(self, pair: Pair, moves: tuple[_Move, ...]) -> _Candidate:
        """The pair after these moves."""
        for sides in dict.fromkeys(move.sides for move in moves):
            own = [move for move in moves if move.sides == sides]
            columns, values = [each.column for each in own], [each.value for each in own]
            pair = self.kin.changed(pair, sides, columns, values)
        return _Candidate(pair, moves)


# Pairs on their way ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Working:
    """One pair on its way to a plainer one, with what was tried."""

    changes: _Changes
    number: int  # of its set
    pair: Pair
    outputs: NDArray[Any]
    seen: Mapping[_Move, bool] = field(default_factory=dict)  # single moves: whether they flipped
    tried: frozenset[bytes] = frozenset()
    candidates: Sequence[_Candidate] = ()

    def proposing(self) -> _Working:
        """The same with the next candidates: none twice."""
        found: dict[bytes, _Candidate] = {}
        known = {*self.tried, self.pair.tobytes()}
        for each in self.changes.proposed(self.pair, self.seen):
            key = each.pair.tobytes()
            if key not in known:
                found.setdefault(key, each)
                if len(found) == self.changes.at_once:
                    break
        return replace(self, candidates=[*found.values()], tried=self.tried | found.keys())

    def told(self, flips: Sequence[bool], outputs: NDArray[Any], plainness: Plainness) -> _Working:
        """What follows once it is known which candidates flip: the plainest of them is taken."""
        single = zip(self.candidates, flips, strict=True)
        seen = {each.moves[0]: flip for each, flip in single if len(each.moves) == 1}
        pairs = [self.pair, *(each.pair for each in self.candidates)]
        taken = plainness.plainest(pairs, [True, *flips])
        now = replace(self, seen={**self.seen, **seen})
        if taken:
            now = replace(now, pair=pairs[taken].copy(), outputs=outputs[taken - 1])
        return now.proposing()


@dataclass
class _Shrinker:
    """Shrinks pairs of several sets within the executions that explanations may take."""

    sampler: Sampler
    plainness: Plainness
    changes: list[_Changes]  # of each set
    left: int  # executions
    steps: int
    pairs: int  # of each set, shrunk together
    at_once: int  # candidates of a pair in one step
    spent: NDArray[np.int64] = field(init=False)  # executions for each set
    ended: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.spent = np.zeros(len(self.changes), dtype=np.int64)
        self.ended = np.zeros(len(self.changes), dtype=bool)

    @classmethod
    def of(cls, sampler: Sampler, sets: Sequence[Sequence[int]], *, known: bool) -> _Shrinker:
        left, at_once = sampler.trials.allowance(len(sets)), 1
        steps = DEAR_STEPS if sampler.runner.traits.external else STEPS
        pairs = min(PAIRS, max(left // (2 * steps), 1))
        if known:
            steps, pairs = KNOWN_STEPS, PAIRS
        elif sampler.runner.saves_calls:
            steps, pairs = FEW_STEPS, min(AT_ONCE, max(left // (2 * FEW_STEPS), 1))
            at_once = max(left // (2 * FEW_STEPS * pairs), 1)
        schema = sampler.population.schema
        reference = reference_person(sampler.population)
        kin = [Kin(Assignments(schema, tuple(columns))) for columns in sets]
        changes = [_Changes(reference, each, at_once) for each in kin]
        plainness = Plainness(reference, schema)
        return cls(sampler, plainness, changes, left * len(sets), steps, pairs, at_once)

    def shrink(self, pairs: Sequence[Pairs]) -> list[Pairs]:
        """The pairs of each set, as plain as can be, without those that tell the same."""
        working = [
            _Working(self.changes[number], number, pair, outputs).proposing()
            for number, own in enumerate(pairs)
            for pair, outputs in own
        ]
        for step in range(self.steps):
            active = [e for e in working if e.candidates and not self.ended[e.number]]
            if not active or self.sampler.trials.out_of_time:
                break
            after = iter(self._step(active, self.steps - step - 1))
            now = {*map(id, active)}
            working = [next(after) if id(each) in now else each for each in working]
        return [self._plain(own, number, working) for number, own in enumerate(pairs)]

    def _plain(self, pairs: Pairs, number: int, working: Sequence[_Working]) -> Pairs:
        """What has become of the pairs of one set."""
        own = [each for each in working if each.number == number]
        if not own:
            return pairs
        codes = np.stack([each.pair for each in own])
        return self.told_once(Pairs(codes, np.stack([each.outputs for each in own])))

    def _step(self, active: Sequence[_Working], left: int) -> list[_Working]:
        """Run the candidates of all pairs in one batch; `left` further steps may follow."""
        counts = [len(each.candidates) for each in active]
        pairs = np.stack([candidate.pair for each in active for candidate in each.candidates])
        before = np.stack([each.outputs for each in active]).repeat(counts, axis=0)
        outputs = np.full_like(before, FAILED)
        valid = np.flatnonzero(self._occur(pairs))
        if len(valid):
            ahead, rng = self.sampler.runner.ahead, partial(self.sampler.base.generator, AHEAD, 0)
            numbers = np.repeat([each.number for each in active], counts)[valid]
            with ahead.looking(partial(self._coming, active, left), rng):
                outputs[valid] = self._run(pairs[valid], numbers)
        del pairs  # as wide as the schema, and the next candidates are as many
        flips, ends = self._flip(before, outputs), np.cumsum([0, *counts])
        return [
            each.told(flips[start:end].tolist(), outputs[start:end], self.plainness)
            for each, start, end in zip(active, ends[:-1], ends[1:], strict=True)
        ]

    def _run(self, pairs: NDArray[Any], numbers: NDArray[np.int64]) -> NDArray[Any]:
        """The outputs of pairs, given whose they are.

        The end of a budget ends it all, a failure of an expensive subject ends it for a set.
        """
        cells, run = self.sampler.trials.run(pairs.reshape(2 * len(pairs), -1), self.left)
        self.left -= len(run)
        self.spent += np.bincount(numbers[run // 2], minlength=len(self.spent))
        self.ended |= bool((cells < FAILED).any())
        if self.sampler.runner.traits.external:
            self.ended[numbers[np.flatnonzero(cells == FAILED) // 2]] = True
        return self.sampler.reading.cells(cells).reshape(-1, 2)

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
        schema, codes = self.sampler.population.schema, pairs.reshape(2 * len(pairs), -1)
        occur = schema.valid(codes)
        for column, characteristic in enumerate(schema):
            if characteristic.value_weights is not None:  # no value occurs where it may be
                places = np.minimum(codes[:, column], characteristic.size)
                occur &= np.append(characteristic.value_weights, 1.0)[places] > 0
        return occur.reshape(-1, 2).all(axis=1) & as_drawn(schema.ties, codes[::2])

    def _coming(self, active: Sequence[_Working], left: int, _: LookUp) -> Generator[NDArray[Any]]:
        """The inputs of the steps after these, for whichever answer; the nearest ones first."""
        if self.at_once > 1 or self.left <= 2 * len(active):  # there is none
            return
        following = list(active)
        for _step in range(min(FORESEEN, left)):
            following = [
                after
                for each in following
                for flips in self._possible(each)
                if (after := each.told([flips], each.outputs[None], self.plainness)).candidates
            ]
            if not following:
                return
            pairs = np.stack([each.candidates[0].pair for each in following])
            codes = pairs[self._occur(pairs)].reshape(-1, pairs.shape[2])
            yield codes[self.sampler.trials.known(codes) == NOT_RUN]

    def _possible(self, each: _Working) -> list[bool]:
        """What may be told of a candidate: one thing if it can't be, or was run ahead."""
        pair = each.candidates[0].pair
        if not self._occur(pair[None])[0]:
            return [False]
        cells = self.sampler.trials.known(pair)
        cells = np.where(cells == NOT_RUN, self.sampler.runner.held(pair), cells)
        if (cells < 0).any():
            return [True, False]
        return [bool(self._flip(each.outputs[None], self.sampler.reading.cells(cells)[None])[0])]

    def told_once(self, *parts: Pairs) -> Pairs:
        """The pairs, the plainest first, without those that tell the same as a plainer one.

        They do if they are unusual in the same characteristics, with the same values, or with
        numbers on the same side of the usual one.
        """
        pairs, schema = joined(*parts), self.sampler.population.schema
        ranked = pairs.take(np.lexsort(self.plainness.of(pairs.codes)[::-1]))
        ordered = np.array([each.ordered for each in schema])
        away = np.sign(ranked.codes.astype(np.int64) - self.plainness.reference)
        return ranked.take(_first_of_each(np.where(ordered, away, ranked.codes)))


def _distinct(*parts: Pairs) -> Pairs:
    """All pairs, each once."""
    pairs = joined(*parts)
    return pairs.take(_first_of_each(pairs.codes))


def _first_of_each(pairs: NDArray[Any]) -> list[int]:
    """The first place of each pair, whichever of its two inputs comes first."""
    keys = [frozenset(row.tobytes() for row in np.ascontiguousarray(pair)) for pair in pairs]
    return sorted({key: place for place, key in reversed(list(enumerate(keys)))}.values())
