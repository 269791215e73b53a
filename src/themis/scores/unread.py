"""Scores that hold by construction: of what is known of people, and never given to the subject."""

from __future__ import annotations

from typing import Any

from themis.results.model import CausalScore, ExcessScore, Measure
from themis.results.notes import Ending, Note
from themis.scores.group_tally import group_score
from themis.scores.question import Question, Scored
from themis.statistics.proportions import Interval

ZERO = Interval(0.0, 0.0, 0.0)


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
