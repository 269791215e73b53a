"""Inputs that have no counterfactual: nothing can be changed in them, so that they never flip."""

from __future__ import annotations

from dataclasses import replace

from themis.engine.sampler import Sampler
from themis.engine.variants import all_variants, mark_impossible
from themis.inputs.assignments import Assignments
from themis.results.model import CausalScore, Score
from themis.results.notes import Note
from themis.subjects.decisions import NO_COUNTERFACTUAL

TRIED, MOST_TRIED = 1_000, 200  # inputs, and assignments of a set, that are looked at


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
    """The score; a causal one of a set that can't be changed in any input says so."""
    if not isinstance(score, CausalScore) or not score.samples or score.score > 0:
        return score
    if fixed_share(sampler, columns) < 1:
        return score
    note = Note.of("nothing-to-change", against=score.against)
    return replace(score, notes=(*score.notes, note))
