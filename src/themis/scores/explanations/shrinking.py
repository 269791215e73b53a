"""Plain witnesses: pairs are moved towards a reference person as long as they flip.

A pair is a matrix of two rows of codes. Every step is one change of it, run before it is taken:
what is run together are the next steps of all pairs at once. Slots that this leaves idle run the
steps that may follow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.ahead import LookUp
from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import as_drawn
from themis.inputs.streams import AHEAD, reference_person
from themis.results.parts import Witness
from themis.scores.explanations.kin import Kin, Pair
from themis.scores.explanations.plainer import (
    ROUNDS,
    Plainness,
    Rounds,
    target_of,
    tried_at_once,
)
from themis.scores.explanations.witnesses import SHOWN, FlipPool, Pairs
from themis.subjects.decisions import FAILED, NOT_RUN

PAIRS = 6  # shrunk of those that are shown
STEPS = 20  # of one pair: two executions each, at most
DEAR_STEPS = 12  # of a pair of inputs for a subject outside of this process
AT_ONCE = 8  # pairs that are shrunk where calls are to be few
KNOWN_STEPS = 200  # of a pair whose domain was run whole: nothing is executed

FORESEEN = 6  # steps of a pair that idle slots may run ahead, for each answer that may come

Told: TypeAlias = tuple[bool, ...]  # which of the steps of a pair flipped
Steps: TypeAlias = Generator[Pair, bool, Pair]  # yields pairs, is told which flip, returns the last


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
    pair is never farther from plain (`distance`) than the one it came from. For pairs that become
    equal as many others are tried, and the rest is shown as it was drawn. With `known` all outputs
    are remembered, so that nothing limits the steps. Steps of all sets are run together.
    """
    chosen = [pool.most_different(SHOWN) for pool, _ in sets]
    if not any(map(len, chosen)) or sampler.trials.out_of_time:
        return [Plain(each.pool.witnesses(own), 0) for each, own in zip(sets, chosen, strict=True)]
    shrinker = _Shrinker.of(sampler, [columns for _, columns in sets], known=known)
    most = shrinker.pairs
    plain = shrinker.shrink([each.take(slice(most)) for each in chosen])
    if not (shrinker.ended.all() or shrinker.at_once):
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


@dataclass
class _Shrinker:
    """Shrinks pairs of several sets within the executions that explanations may take."""

    sampler: Sampler
    plainness: Plainness
    kin: list[Kin]  # of each set
    left: int  # executions
    steps: int
    pairs: int  # of each set, shrunk together
    at_once: int  # candidates of a pair in one call; 0: one after the other, each from the last
    spent: NDArray[np.int64] = field(init=False)  # executions for each set
    ended: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.spent = np.zeros(len(self.kin), dtype=np.int64)
        self.ended = np.zeros(len(self.kin), dtype=bool)

    @classmethod
    def of(cls, sampler: Sampler, sets: Sequence[Sequence[int]], *, known: bool) -> _Shrinker:
        left, at_once = sampler.trials.allowance(len(sets)), 0
        steps = DEAR_STEPS if sampler.runner.traits.external else STEPS
        pairs = min(PAIRS, max(left // (2 * steps), 1))
        if known:
            steps, pairs = KNOWN_STEPS, PAIRS
        elif sampler.runner.saves_calls:
            steps, pairs = ROUNDS, min(AT_ONCE, max(left // (2 * ROUNDS), 1))
            at_once = max(left // (2 * ROUNDS * pairs), 1)
        schema = sampler.population.schema
        plainness = Plainness(reference_person(sampler.population), schema)
        kin = [Kin(Assignments(schema, tuple(columns))) for columns in sets]
        return cls(sampler, plainness, kin, left * len(sets), steps, pairs, at_once)

    def shrink(self, pairs: Sequence[Pairs]) -> list[Pairs]:
        """The pairs of each set, as plain as can be, without those that tell the same."""
        working = [
            _Working(partial(self._rounds, pair, self.kin[number]), pair, outputs, number)
            for number, own in enumerate(pairs)
            for pair, outputs in own
        ]
        for _ in range(self.steps):
            active = [each for each in working if each.candidates and not self.ended[each.number]]
            if not active or self.sampler.trials.out_of_time:
                break
            self._step(active)
        return [self._plain(own, number, working) for number, own in enumerate(pairs)]

    def _plain(self, pairs: Pairs, number: int, working: Sequence[_Working]) -> Pairs:
        """What has become of the pairs of one set."""
        own = [each for each in working if each.number == number]
        if not own:
            return pairs
        codes = np.stack([each.pair for each in own])
        return self.told_once(Pairs(codes, np.stack([each.outputs for each in own])))

    def _rounds(self, pair: Pair, kin: Kin) -> Rounds:
        if self.at_once:
            return tried_at_once(pair, plainness=self.plainness, kin=kin, most=self.at_once)
        return _one_by_one(_shrunk(pair, reference=self.plainness.reference, kin=kin))

    def _step(self, active: Sequence[_Working]) -> None:
        """Run the next changes of each pair, all in one batch; take the plainest that flip."""
        counts = [len(each.candidates) for each in active]
        pairs = np.stack([candidate for each in active for candidate in each.candidates])
        before = np.stack([each.outputs for each in active]).repeat(counts, axis=0)
        outputs = np.full_like(before, FAILED)
        valid = np.flatnonzero(self._occur(pairs))
        if len(valid):
            ahead, rng = self.sampler.runner.ahead, partial(self.sampler.base.generator, AHEAD, 0)
            numbers = np.repeat([each.number for each in active], counts)[valid]
            with ahead.looking(partial(self._coming, active), rng):
                outputs[valid] = self._run(pairs[valid], numbers)
        del pairs  # as wide as the schema, and the next candidates are as many
        flips, ends = self._flip(before, outputs), np.cumsum([0, *counts])
        for each, start, end in zip(active, ends[:-1], ends[1:], strict=True):
            flip = flips[start:end].tolist()
            tried = [each.pair, *each.candidates]
            place = self.plainness.plainest(tried, [self.at_once > 0, *flip])
            each.answer(outputs[start:end], flip, (place or 0) - 1)

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

    def _flip(self, before: NDArray[Any], now: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs differ as much as before, and favour the same of the two if they did."""
        reading = self.sampler.reading
        apart = reading.distances(now[:, 0], now[:, 1])
        enough = (apart > 0) & (apart >= reading.distances(before[:, 0], before[:, 1]))
        ranks = reading.ranks().astype(float)
        was, favours = (
            np.sign(ranks[both[:, 0]] - ranks[both[:, 1]]) for both in (before, np.maximum(now, 0))
        )
        return np.asarray(enough & ((was == 0) | (was == favours)))

    def _occur(self, pairs: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs are valid, made of values that occur, and could be drawn."""
        schema, codes = self.sampler.population.schema, pairs.reshape(2 * len(pairs), -1)
        occur = schema.valid(codes)
        for column, characteristic in enumerate(schema):
            if characteristic.value_weights is not None:  # no value occurs where it may be
                places = np.minimum(codes[:, column], characteristic.size)
                occur &= np.append(characteristic.value_weights, 1.0)[places] > 0
        return occur.reshape(-1, 2).all(axis=1) & as_drawn(schema.ties, codes[::2])

    def _coming(self, active: Sequence[_Working], _: LookUp) -> Generator[NDArray[Any]]:
        """The inputs of the steps after these, for whichever answer; the nearest ones first."""
        if self.at_once or self.left <= 2 * len(active):  # there is none
            return
        open_ends = [(each, each.candidates[0], each.told) for each in active]
        for _step in range(min(FORESEEN, self.steps - len(active[0].told) - 1)):
            following = [
                (each, candidate, told)
                for each, pair, before in open_ends
                for told in self._possible(each, pair, before)
                for candidate in each.after(told)
            ]
            if not following:
                return
            pairs = np.stack([candidate for _, candidate, _ in following])
            pairs = pairs[self._occur(pairs)]
            codes = pairs.reshape(2 * len(pairs), -1)
            yield codes[self.sampler.trials.known(codes) == NOT_RUN]
            open_ends = following

    def _possible(self, each: _Working, pair: Pair, told: Told) -> list[Told]:
        """What may be told next of a pair: one thing if it can't be, or was run ahead."""
        if not self._occur(pair[None])[0]:
            return [(*told, False)]
        cells = self.sampler.trials.known(pair)
        cells = np.where(cells == NOT_RUN, self.sampler.runner.held(pair), cells)
        if (cells < 0).any():
            return [(*told, True), (*told, False)]
        now = self.sampler.reading.cells(cells)[None]
        return [(*told, bool(self._flip(each.outputs[None], now)[0]))]

    def told_once(self, *parts: Pairs) -> Pairs:
        """The pairs, the plainest first, without those that tell the same as a plainer one.

        They do if they are unusual in the same characteristics, with the same values, or with
        numbers on the same side of the usual one.
        """
        pairs, schema = _joined(*parts), self.sampler.population.schema
        ranked = pairs.take(np.lexsort(self.plainness.of(pairs.codes)[::-1]))
        ordered = np.array([each.ordered for each in schema])
        away = np.sign(ranked.codes.astype(np.int64) - self.plainness.reference)
        return ranked.take(_first_of_each(np.where(ordered, away, ranked.codes)))


@dataclass
class _Working:
    """One pair on its way to a plainer one."""

    start: Callable[[], Rounds]
    pair: Pair
    outputs: NDArray[Any]
    number: int  # of its set
    candidates: list[Pair] = field(init=False)
    told: Told = ()  # of each step so far, where a step is one candidate

    def __post_init__(self) -> None:
        self._rounds = self.start()
        self.candidates = next(self._rounds, [])

    def answer(self, outputs: NDArray[Any], flip: list[bool], place: int) -> None:
        """Tell which candidates flip; take the one at the place, if any, and go on."""
        if place >= 0:
            self.pair, self.outputs = self.candidates[place].copy(), outputs[place]  # not all
        self.told += (flip[0],)
        try:
            self.candidates = self._rounds.send((flip, self.pair))
        except StopIteration:
            self.candidates = []

    def after(self, told: Told) -> list[Pair]:
        """The candidate that follows once all this was told, if any does."""
        rounds = self.start()
        with suppress(StopIteration):
            candidates = next(rounds)
            for flips in told:
                candidates = rounds.send(([flips], self.pair))
            return candidates
        return []


def _one_by_one(steps: Steps) -> Rounds:
    """Rounds of one candidate each."""
    with suppress(StopIteration):
        candidate = next(steps)
        while True:
            (flips,), _ = yield [candidate]
            candidate = steps.send(flips)


def _shrunk(pair: Pair, *, reference: NDArray[Any], kin: Kin) -> Steps:
    """Fewer differences first, then usual values for as many columns as can be, then near ones."""
    pair = yield from _fewer_differences(pair, reference, kin)
    stuck: list[int] = []
    for _ in range(2):  # once more: what is taken later may free what was stuck before
        before, (pair, stuck) = pair, (yield from _to_reference(pair, reference, kin))
        if not stuck or before is pair:
            break
    for column in kin.differing(pair):
        characteristic = kin.schema.characteristics[column]
        there = bool((pair[:, column] < characteristic.missing_code).all())
        if characteristic.ordered and there:  # else another change than the one shown
            for side in (0, 1):
                target = target_of(pair[side, column], column, reference, kin.schema)
                pair = yield from _approach(pair, [side], column, target, kin)
    for column in stuck:
        if pair[0, column] == pair[1, column]:
            pair = yield from _approach(pair, [0, 1], column, int(reference[column]), kin)
    return pair


def _fewer_differences(pair: Pair, reference: NDArray[Any], kin: Kin) -> Steps:
    """Let the two agree in what makes no difference, preferably in the usual value."""
    for column in kin.columns:
        usual = int(reference[column])
        values = sorted(set(pair[:, column].tolist()), key=lambda value: abs(value - usual))
        if len(values) == 1 or len(kin.differing(pair)) == 1:
            continue
        for value in values:
            candidate = kin.changed(pair, [0, 1], [column], value)
            if (yield candidate):
                pair = candidate
                break
    return pair


def _to_reference(
    pair: Pair, reference: NDArray[Any], kin: Kin
) -> Generator[Pair, bool, tuple[Pair, list[int]]]:
    """Give common columns the reference's values: all, or halves, and so on to single ones."""
    unusual = np.flatnonzero((pair[0] == pair[1]) & (pair[0] != reference)).tolist()
    same = [column for column in unusual if column in kin.schema.free]
    groups, stuck = [same] if same else [], []
    while groups:
        group = groups.pop()
        candidate = kin.changed(pair, [0, 1], group, reference[group])
        if (yield candidate):
            pair = candidate
        elif len(group) == 1:
            stuck += group
        else:
            middle = len(group) // 2
            groups += [group[middle:], group[:middle]]
    return pair, sorted(stuck)


def _approach(pair: Pair, sides: list[int], column: int, target: int, kin: Kin) -> Steps:
    """Move one column to a target, or as near as it flips if the values have an order."""
    far, near = int(pair[sides[0], column]), target
    others = set(pair[:, column].tolist()) - {far}  # must not be met: the two would be equal
    if far == target:
        return pair
    candidate = kin.changed(pair, sides, [column], target)
    if target not in others and (yield candidate):
        return candidate
    characteristic = kin.schema.characteristics[column]
    while characteristic.ordered and abs(far - near) > 1 and far < characteristic.size:
        middle = (far + near) // 2
        candidate = kin.changed(pair, sides, [column], middle)
        if middle not in others and (yield candidate):
            pair, far = candidate, middle
        else:
            near = middle
    return pair


def _joined(*parts: Pairs) -> Pairs:
    codes = np.concatenate([each.codes for each in parts])
    return Pairs(codes, np.concatenate([each.outputs for each in parts]))


def _distinct(*parts: Pairs) -> Pairs:
    """All pairs, each once."""
    pairs = _joined(*parts)
    return pairs.take(_first_of_each(pairs.codes))


def _first_of_each(pairs: NDArray[Any]) -> list[int]:
    """The first place of each pair, whichever of its two inputs comes first."""
    keys = [frozenset(row.tobytes() for row in np.ascontiguousarray(pair)) for pair in pairs]
    return sorted({key: place for place, key in reversed(list(enumerate(keys)))}.values())
