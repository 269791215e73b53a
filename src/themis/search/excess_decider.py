"""Whether a set's excess is above the threshold, decided on contexts that are asked again.

A set inside another one needs no decision of its own: sets come after all their parts, and one
that contains a found set is not minimal. Where what is searched is independent of all else, its
excess is at least as large, too: it is a maximum over pairs of which the part's are averages.
"""

from __future__ import annotations

from dataclasses import dataclass

from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.excess import MOST_SEARCHED, ExcessRows
from themis.scores.question import Question
from themis.scores.scorer import Scorer
from themis.search.deciding import Decider, SearchRequest
from themis.settings import Settings
from themis.statistics.excess import ExcessRule, ExcessState
from themis.statistics.thresholds import ThresholdRule
from themis.subjects.base import BudgetEndedError

ENOUGH = 5  # contexts for each half zone: then failures are seen about as often as they occur


@dataclass
class ExcessDecider(Decider):
    """Decides excesses by betting, as of groups; what is found goes on as a score."""

    scorer: Scorer
    search: SearchRequest
    settings: Settings

    def decide(self, mask: int, delta: float) -> TestedSet:
        columns = self.search.columns_of(mask)
        question = Question(
            self.scorer.sampler, self.scorer.sampler.assignments(columns), self.settings
        )
        names, count = question.assignments.names, question.assignments.count
        if count > MOST_SEARCHED:
            many = Note.of("too-many-to-compare", assignments=count, most=MOST_SEARCHED)
            return TestedSet(names, "undecided", (many,))
        rows = self.scorer.contexts.get(columns) or ExcessRows(question)
        tested = self._decided(rows, question, delta)
        if tested.decision == "above":
            self.scorer.contexts[columns] = rows
        return tested

    def _decided(self, rows: ExcessRows, question: Question, delta: float) -> TestedSet:
        limits = ThresholdRule(self.search.threshold, self.settings.error, delta)
        rule = ExcessRule(2.0 * delta, limits.half_zone)  # only one of both answers can be wrong
        for state in rows.ask(question, rule):
            decision = limits.decide_ends(state.low, state.high)
            if (
                decision != "undecided"
                or state.crossed
                or state.done
                or _is_hopeless(state, limits)
            ):
                decision = "undecided" if state.crossed else decision
                ends = {"low": state.interval.low, "high": state.interval.high}
                reason = Note.of("beyond-chance", **ends, contexts=state.count)
                names = question.assignments.names
                return TestedSet(names, decision, (reason,), state.count, state.interval.score)
        raise BudgetEndedError


def _is_hopeless(state: ExcessState, limits: ThresholdRule) -> bool:
    """Whether outputs that stay unknown seem to leave both answers possible for ever."""
    least, most = state.seen
    beyond = least < limits.floor and most > limits.ceiling + limits.half_zone
    return beyond and state.count * limits.half_zone >= ENOUGH
