"""Sets that can't be changed in any input, or that the subject never gets to see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from themis.engine.sampler import Sampler
from themis.engine.variants import all_variants, mark_impossible
from themis.inputs.assignments import Assignments
from themis.results.model import CausalScore, ExcessScore, Measure, Score
from themis.results.notes import Ending, Note
from themis.scores.group_tally import group_score
from themis.scores.question import Question, Scored
from themis.statistics.proportions import Interval
from themis.subjects.decisions import NO_COUNTERFACTUAL

TRIED, MOST_TRIED = 1_000, 200  # inputs, and assignments of a set, that are looked at
ZERO = Interval(0.0, 0.0, 0.0)


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


def by_construction(question: Question, measure: Measure) -> Scored | None:
    """The score of a set of which nothing reaches the subject, if it needs no execution.

    Changing such a set changes no input. Groups of generated inputs have equal rates where the set
    is drawn independently of all that the subject is given. None: the score must be measured.
    """
    population, names = question.sampler.population, question.assignments.names
    if not population.schema.unread.issuperset(question.assignments.columns):
        return None
    ended: dict[str, Any] = {"method": "exact", "samples": 0, "stopped": Ending.EXHAUSTED}
    if measure != "group":
        kind = CausalScore if measure == "causal" else ExcessScore
        notes = (Note.of("not-an-input", against=names),)
        return Scored(kind(**question.fields(measure, ZERO), **ended, notes=notes))
    if population.profile or not population.is_independent(question.assignments.columns):
        return None
    notes = (Note.of("groups-need-people", against=names),)
    return Scored(group_score(question, (), ZERO, **ended, unknown=0, notes=notes))
