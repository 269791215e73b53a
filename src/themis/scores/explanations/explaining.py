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
from themis.inputs.columns import SHARED
from themis.inputs.following import as_drawn
from themis.inputs.streams import MIXING, Branch
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Region, Witness
from themis.scores.explanations.shrinking import Kin, plain_witnesses
from themis.scores.explanations.witnesses import SHOWN, FlipPool
from themis.scores.question import drawing_from
from themis.subjects.base import BudgetEndedError


class Unexplained(NamedTuple):
    """A score, its flips, and how to know where most of them are."""

    score: CausalScore
    pool: FlipPool
    regions: Callable[[], tuple[Region, ...]] = tuple


def explained_together(
    parts: Sequence[Unexplained],
    sampler: Sampler,
    *,
    people: NDArray[Any] | None = None,
    known: bool = False,
) -> list[CausalScore]:
    """The scores with plain witnesses and the regions of their flips; all numbers stay as they are.

    What was interrupted is not explained, nor where explaining it makes the subject fail, or takes
    longer than the budget allows. Of `people`, or a profile, pairs stay as they are, and those of
    generated values are behind them. `known` says that every output is remembered.
    """
    people = sampler.population.listed if people is None else people
    found = [each.score for each in parts]
    left = [
        number
        for number, score in enumerate(found)
        if score.stopped is not Ending.INTERRUPTED and score.witnesses
    ]
    try:
        after = _explained([parts[number] for number in left], sampler, people, known=known)
        for number, score in zip(left, after, strict=True):
            found[number] = score
    except (SubjectError, BudgetEndedError):
        pass
    except KeyboardInterrupt:
        if not sampler.keep_on_interrupt:
            raise
        for number in left:
            found[number] = replace(found[number], stopped=Ending.INTERRUPTED)
    return found


def _explained(
    parts: Sequence[Unexplained], sampler: Sampler, people: NDArray[Any] | None, *, known: bool
) -> list[CausalScore]:
    where = [each.regions() for each in parts]
    if people is None:
        plain = plain_witnesses([each.pool for each in parts], sampler, known=known)
    else:
        plain = [_beside_people(each, sampler, people) for each in parts]
    return [
        replace(each.score, witnesses=pairs, regions=regions)
        for each, pairs, regions in zip(parts, plain, where, strict=True)
    ]


def _beside_people(
    part: Unexplained, sampler: Sampler, people: NDArray[Any]
) -> tuple[Witness, ...]:
    """The pairs of people, and behind them pairs of generated values, as far as some flip."""
    own = drawing_from(sampler, sampler.population.generated, (Branch.GENERATED,))
    found = _generated_flips(own, part.pool.assignments, people)
    [plain] = plain_witnesses([found], own)
    chosen = [replace(each, generated=True) for each in plain[: SHOWN // 2]]
    return (*part.score.witnesses[: SHOWN - len(chosen)], *chosen)


def _generated_flips(drawing: Sampler, assignments: Assignments, people: NDArray[Any]) -> FlipPool:
    """Pairs of generated inputs that differ in the set alone, and flip."""
    schema, reading = drawing.population.schema, drawing.reading
    flips, kin = FlipPool(assignments, reading), Kin(assignments)
    count = drawing.trials.allowance() // 2
    if not count or drawing.trials.out_of_time:
        return flips
    # Four times as many as can be run: many do not differ in the set.
    drawn = _common_inputs(drawing, people, 2 * 4 * count)
    first, values = np.split(drawn, 2)
    values, listed = values[:, kin.columns], drawing.base.rows(len(first), 2 * len(first))
    for place, column in enumerate(kin.columns):
        each, own = schema.characteristics[column], first[:, column]
        if not each.ordered:  # also what few people have: the schema lists it
            values[:, place] = listed[:, column]
        same = each.level_of(own) == each.level_of(values[:, place])
        values[same, place] = own[same]  # values of one bin are no counterfactuals
    pairs = kin.all_changed(np.stack([first, first], axis=1), [1], kin.columns, values)
    first, second = pairs[:, 0], pairs[:, 1]
    valid = (first[:, kin.columns] != second[:, kin.columns]).any(axis=1) & schema.valid(first)
    pairs = pairs[valid & schema.admits(first, second) & as_drawn(schema.ties, first)][:count]
    inputs = np.asfortranarray(pairs.reshape(2 * len(pairs), len(schema)))
    cells, _ = drawing.trials.run(inputs, len(inputs))
    outputs = reading.cells(cells).reshape(-1, 2)
    chosen = reading.distances(outputs[:, 0], outputs[:, 1]) > 0
    flips.add_pairs(pairs[chosen, 0], pairs[chosen, 1], outputs[chosen])
    return flips


def _common_inputs(drawing: Sampler, people: NDArray[Any], count: int) -> NDArray[Any]:
    """Inputs that are nobody's: each value by itself, as often as people have it.

    What fewer than SHARED people have is never taken; where most values are so, those of the schema
    are drawn instead.
    """
    drawn = drawing.base.rows(0, count).copy()
    rng = drawing.base.generator(MIXING, 0)
    for column in range(drawn.shape[1]):
        values, counts = np.unique(people[:, column], return_counts=True)
        listed = drawing.population.schema.characteristics[column].first_extra
        shared = (counts >= SHARED) & (values < listed)
        if 2 * counts[shared].sum() >= len(people):
            chances = counts[shared] / counts[shared].sum()
            drawn[:, column] = rng.choice(values[shared], len(drawn), p=chances)
    return drawn
