"""What stands beside a causal score, as a note: a set that can't be changed, values taken away.

"Missing" is no counterfactual unless a characteristic says so, so how many decisions change where a
set's values are missing instead is no part of a score.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import all_variants, mark_impossible
from themis.errors import SubjectError
from themis.inputs.assignments import Assignments
from themis.inputs.following import follow
from themis.results.model import CausalScore, ExcessScore, Score
from themis.results.notes import Ending, Note
from themis.statistics.intervals import Floats, clopper_pearson
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN
from themis.subjects.readings import Reading

TRIED, MOST_TRIED = 1_000, 200  # inputs, and assignments of a set, that are looked at
SAMPLED = 500  # base inputs that are looked at, as far as explanations may take executions


def fixed_share(sampler: Sampler, columns: tuple[int, ...]) -> float:
    """The share of inputs to which constraints, or a single value, leave no other assignment.

    0 where there are too many assignments to look at.
    """
    schema = sampler.population.schema
    assignments = Assignments(schema, columns)
    if assignments.count == 1:
        return 1.0
    if assignments.count > MOST_TRIED or not schema.touching(assignments.changed).constraints:
        return 0.0
    variants, rows = all_variants(assignments), sampler.tables.rows(assignments, 0, TRIED)
    cells = sampler.tables.empty(len(rows), variants.width)
    mark_impossible(schema, variants, rows, cells)
    return float(((cells != NO_COUNTERFACTUAL).sum(axis=1) < 2).mean())


def told_unchangeable(score: Score, sampler: Sampler, columns: tuple[int, ...]) -> Score:
    """The score; one of changes, of a set that can't be changed in any input, says so."""
    if not isinstance(score, CausalScore | ExcessScore) or not score.samples or score.score > 0:
        return score
    if fixed_share(sampler, columns) < 1:
        return score
    note = Note.of("nothing-to-change", against=score.against)
    return replace(score, notes=(*score.notes, note))


def with_taken_away(
    score: CausalScore,
    sampler: Sampler,
    reading: Reading,
    *,
    codes: NDArray[Any] | None = None,
    weights: Floats | None = None,
) -> CausalScore:
    """The score with the note; of all these inputs, or of the first base inputs."""
    schema = sampler.population.schema
    assignments = Assignments(schema, schema.columns_of(score.against))
    if score.stopped is Ending.INTERRUPTED or not _kept(assignments):
        return score
    if codes is None:
        codes = sampler.base.rows(0, SAMPLED)
    try:
        note = _note(sampler, reading, assignments, codes, weights, score.confidence)
    except (SubjectError, BudgetEndedError):
        return score
    return score if note is None else replace(score, notes=(*score.notes, note))


def _kept(assignments: Assignments) -> dict[int, int]:
    kept = assignments.schema.kept_missing
    return {column: kept[column] for column in assignments.columns if column in kept}


def _note(
    sampler: Sampler,
    reading: Reading,
    assignments: Assignments,
    codes: NDArray[Any],
    weights: Floats | None,
    confidence: float,
) -> Note | None:
    kept = _kept(assignments)
    without = np.array(codes, order="C")
    for column, code in kept.items():
        without[:, column] = code
    follow(assignments.followed, codes, without)
    usable = (without != codes).any(axis=1) & assignments.schema.valid(without)
    pairs = np.stack([codes[usable], without[usable]], axis=1).reshape(-1, codes.shape[1])
    cells = sampler.runner.known(pairs)
    if (cells == NOT_RUN).any():
        cells, _ = sampler.trials.run(pairs, sampler.trials.allowance())
    first, second = reading.cells(cells).reshape(-1, 2).T
    decided = (first >= 0) & (second >= 0)
    changed = decided & (reading.distances(first, second) > 0)
    if not decided.any():
        return None
    total, count = int(decided.sum()), int(changed.sum())
    facts: dict[str, Any] = {"names": [assignments.schema.names[c] for c in kept]}
    facts |= {"changed": count, "inputs": total}
    if weights is not None:
        if not decided.all():
            return None  # those that were not run may weigh more
        own = weights[usable]
        share = round(float(own[changed].sum() / own.sum()), 12)
        return Note.of("value-taken-away", **facts, share=share)
    low, high = clopper_pearson(count, total, 1.0 - confidence)
    ends = {"low": low, "high": high, "confidence": confidence}
    return Note.of("value-taken-away", **facts, share=count / total, **ends)
