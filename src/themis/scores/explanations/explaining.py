"""What explains a causal score: plain pairs, where most of the flips are, and nobody's row.

Pairs of given people are their rows. Beside them are pairs of generated values, which documents can
show: inputs drawn as if there were no people, changed in the set, run, and kept where they flip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.errors import SubjectError
from themis.inputs.assignments import Assignments
from themis.inputs.following import as_drawn
from themis.inputs.personal import SHARED
from themis.inputs.streams import MIXING, Branch
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Region, Witness
from themis.scores.explanations.shrinking import Flipping, Kin, Plain, plain_witnesses
from themis.scores.explanations.witnesses import SHOWN, FlipPool
from themis.scores.question import drawing_from
from themis.subjects.base import BudgetEndedError

GENERATED = 5  # pairs of generated values that are kept
ROUNDS = 2  # of looking for pairs that flip, with equal parts of what may be executed


class Unexplained(NamedTuple):
    """A score, its flips, and how to know where most of them are."""

    score: CausalScore
    pool: FlipPool
    regions: Callable[[], tuple[Region, ...]] = tuple


class Explained(NamedTuple):
    """A score with what explains it, and the executions that this took."""

    score: CausalScore
    executions: int = 0


def explained(
    score: CausalScore,
    pool: FlipPool,
    sampler: Sampler,
    regions: Callable[[], tuple[Region, ...]] = tuple,
    *,
    people: NDArray[Any] | None = None,
    known: bool = False,
) -> CausalScore:
    """The score with plain witnesses and the regions of its flips; its numbers stay as they are.

    What was interrupted is not explained, nor where explaining it makes the subject fail, or takes
    longer than the budget allows. Of `people`, or a profile, pairs stay as they are, and those of
    generated values are behind them. `known` says that every output is remembered.
    """
    parts = [Unexplained(score, pool, regions)]
    [found] = explained_together(parts, sampler, people=people, known=known)
    return found.score


def explained_together(
    parts: Sequence[Unexplained],
    sampler: Sampler,
    *,
    people: NDArray[Any] | None = None,
    known: bool = False,
) -> list[Explained]:
    """The same for several scores, whose pairs are made plain together."""
    people = sampler.population.listed if people is None else people
    found = [Explained(each.score) for each in parts]
    left = [
        number
        for number, each in enumerate(parts)
        if each.score.stopped is not Ending.INTERRUPTED and each.score.witnesses
    ]
    most = sampler.trials.allowance() * len(sampler.population.schema)
    together = max(2**23 // max(most, 1), 1)  # memory stays flat
    try:
        while left:
            some = [parts[number] for number in left[:together]]
            for each in _explained(some, sampler, people, known=known):
                found[left.pop(0)] = each
    except (SubjectError, BudgetEndedError):
        pass
    except KeyboardInterrupt:
        if not sampler.keep_on_interrupt:
            raise
        for number in left:
            found[number] = Explained(replace(parts[number].score, stopped=Ending.INTERRUPTED))
    return found


def _explained(
    parts: Sequence[Unexplained], sampler: Sampler, people: NDArray[Any] | None, *, known: bool
) -> list[Explained]:
    where = [each.regions() for each in parts]
    sets = [Flipping(each.pool, each.pool.schema.columns_of(each.score.against)) for each in parts]
    if people is None:
        plain = plain_witnesses(sets, sampler, known=known)
    else:
        plain = [
            _beside_people(each.score.witnesses, flipping, sampler, people)
            for each, flipping in zip(parts, sets, strict=True)
        ]
    return [
        Explained(replace(each.score, witnesses=pairs, regions=regions), executions)
        for each, (pairs, executions), regions in zip(parts, plain, where, strict=True)
    ]


def _beside_people(
    pairs: tuple[Witness, ...], flipping: Flipping, sampler: Sampler, people: NDArray[Any]
) -> Plain:
    """The pairs of people, and behind them pairs of generated values, as far as some flip."""
    pool, columns, before = flipping.pool, tuple(flipping.columns), sampler.trials.spent
    own = drawing_from(sampler, sampler.population.generated, (Branch.GENERATED,))
    found = _generated_flips(pool, own, columns, people)
    chosen = _with_inputs(_needing_both(found, own, columns), found)
    known = [each.inputs for each, _ in chosen]
    [plainer] = plain_witnesses([Flipping(found, columns)], own)
    plain = _with_inputs(plainer.witnesses, found)
    chosen += [each for each in plain if each[0].inputs not in known]
    chosen = chosen[:GENERATED]
    spent = sampler.trials.spent - before
    if pool.shown is None or not chosen:
        return Plain(pairs, spent)
    kept = SHOWN - len(chosen)
    pool.shown = np.concatenate([pool.shown[: 2 * kept], *(inputs for _, inputs in chosen)])
    return Plain((*pairs[:kept], *(replace(each, generated=True) for each, _ in chosen)), spent)


def _with_inputs(pairs: tuple[Witness, ...], pool: FlipPool) -> list[tuple[Witness, NDArray[Any]]]:
    """The latest pairs of a pool, each with the codes of its two inputs."""
    shown = pool.shown if pool.shown is not None else np.empty(0)
    return [(each, shown[2 * place : 2 * place + 2]) for place, each in enumerate(pairs)]


def _needing_both(
    flips: FlipPool, drawing: Sampler, columns: tuple[int, ...]
) -> tuple[Witness, ...]:
    """Of a set of two: a pair that differs in both, of which neither alone changes the output."""
    kin, reading = Kin(Assignments(flips.schema, columns)), drawing.reading
    pairs = flips.most_different(min(32, drawing.trials.allowance() // 2))
    differ = [len(columns) == len(kin.differing(pair)) == 2 for pair in pairs.codes]
    pairs = pairs.take(np.flatnonzero(differ))
    if not len(pairs):
        return ()
    one = np.stack([
        kin.changed(pair, [1], [column], pair[0, column])[1]
        for pair in pairs.codes
        for column in columns
    ])  # fmt: skip
    admitted = flips.schema.admits(np.repeat(pairs.codes[:, 0], 2, axis=0), one)
    chosen = admitted.reshape(-1, 2).all(axis=1)
    pairs, one = pairs.take(np.flatnonzero(chosen)), one[np.repeat(chosen, 2)]
    cells, _ = drawing.trials.run(np.asfortranarray(one), len(one))
    base = np.repeat(pairs.outputs[:, 0], 2)
    same = (cells >= 0) & (reading.distances(base, reading.cells(cells)) == 0)
    found = pairs.take(np.flatnonzero(same.reshape(-1, 2).all(axis=1))[:1])
    base_outputs = [reading.labels.labels[number] for number in found.outputs[:, 0].tolist()]
    return tuple(
        replace(each, joint=0 if each.outputs[0] == own else 1)
        for each, own in zip(flips.witnesses(found), base_outputs, strict=True)
    )


def _generated_flips(
    pool: FlipPool, drawing: Sampler, columns: tuple[int, ...], people: NDArray[Any]
) -> FlipPool:
    """Pairs of generated inputs that differ in the set as pairs of people do, and flip."""
    reading, flips = drawing.reading, FlipPool(pool.schema, drawing.reading)
    seen, kin = pool.most_different(SHOWN).codes, Kin(Assignments(pool.schema, columns))
    count = drawing.trials.allowance() // (2 * ROUNDS)
    for number in range(ROUNDS if count else 0):
        if drawing.trials.out_of_time:
            break
        base = _common_inputs(drawing, people, range(2 * number * count, 2 * (number + 1) * count))
        pairs = _candidates(seen, base, kin)
        inputs = np.asfortranarray(pairs.reshape(2 * len(pairs), len(pool.schema)))
        cells, _ = drawing.trials.run(inputs, len(inputs))
        outputs = reading.cells(cells).reshape(-1, 2)
        chosen = reading.distances(outputs[:, 0], outputs[:, 1]) > 0
        flips.add_pairs(pairs[chosen, 0], pairs[chosen, 1], outputs[chosen])
        if chosen.any():
            break
    return flips


def _common_inputs(drawing: Sampler, people: NDArray[Any], places: range) -> NDArray[Any]:
    """Inputs that are nobody's: each value by itself, as often as people have it.

    What fewer than SHARED people have is never taken; where most values are so, those of the schema
    are drawn instead.
    """
    drawn = drawing.base.rows(places.start, places.stop).copy()
    rng = drawing.base.generator(MIXING, places.start)
    for column in range(drawn.shape[1]):
        values, counts = np.unique(people[:, column], return_counts=True)
        listed = drawing.population.schema.characteristics[column].first_extra
        shared = (counts >= SHARED) & (values < listed)
        if 2 * counts[shared].sum() >= len(people):
            chances = counts[shared] / counts[shared].sum()
            drawn[:, column] = rng.choice(values[shared], len(drawn), p=chances)
    return drawn


def _candidates(seen: NDArray[Any], base: NDArray[Any], kin: Kin) -> NDArray[Any]:
    """Valid pairs: the first half of the inputs, changed in the set as pairs of people are.

    Of several characteristics every other pair is changed at random: people are seen with few
    changes, and some flips need more.
    """
    count, schema = len(base) // 2, kin.schema
    drawn = np.stack([base[:count], base[count : 2 * count]], axis=1)
    places = np.arange(count)
    odd = (places % 2 > 0) & (len(kin.columns) > 1)
    like = np.where(odd[:, None, None], drawn, seen[places % len(seen)])
    values = _assignments(like, drawn, kin)
    pairs = kin.all_changed(np.stack([base[:count]] * 2, axis=1), [0], kin.columns, values[:, 0])
    pairs = kin.all_changed(pairs, [1], kin.columns, values[:, 1])
    first, second = pairs[:, 0], pairs[:, 1]
    levels = kin.assignments.own_levels(first), kin.assignments.own_levels(second)
    valid = (levels[0] != levels[1]).any(axis=1) & schema.valid(first)
    valid &= schema.admits(first, second) & as_drawn(schema.ties, first)
    return np.asarray(pairs[valid])


def _assignments(seen: NDArray[Any], drawn: NDArray[Any], kin: Kin) -> NDArray[Any]:
    """Two assignments of a set for each pair: as people have them, but numbers are drawn."""
    each = [kin.schema.characteristics[column] for column in kin.columns]
    ordered = np.array([one.ordered for one in each])
    seen, drawn = seen[:, :, kin.columns], drawn[:, :, kin.columns]
    own = (seen >= [one.first_extra for one in each]).any(axis=1, keepdims=True)
    found = np.where(ordered | own, drawn, seen)
    for place, one in enumerate(each):
        first, second = found[:, 0, place], found[:, 1, place]
        same = one.level_of(first) == one.level_of(second)
        second[same] = first[same]  # values of one bin are no counterfactuals
    return found
