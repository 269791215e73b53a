"""Decisions by exact scores: no chance is involved, and a tie is seen as one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.exact import rounded
from themis.scores.scorer import ExactScore, Scorer
from themis.search.request import SearchRequest
from themis.settings import Settings
from themis.statistics.thresholds import Decision


@dataclass(frozen=True)
class KnownScores:
    """Exact scores of sets that take no execution, and what they decide of these."""

    scorer: Scorer
    request: SearchRequest
    settings: Settings

    def begin(self) -> None:
        """Run what makes scores known, where that costs no more than to sample."""
        if self.request.measure == "group":
            self.scorer.run_people(self.request.columns, self.settings)

    def has(self, mask: int) -> bool:
        """Whether there is such a score, which may still be to compute."""
        columns = self.request.columns_of(mask)
        return self.scorer.knows(columns, self.request.measure, self.settings)

    def score_of(self, mask: int) -> ExactScore | None:
        """The score that decides a set; one above the threshold can be run again."""
        columns = self.request.columns_of(mask)
        found = self.scorer.known(columns, self.request.measure, self.settings)
        tested = None if found is None else self.decision(mask, found)
        if found is None or tested is None:
            return None
        return found if tested.decision == "below" or found.finding is not None else None

    def decision(self, mask: int, known: ExactScore) -> TestedSet | None:
        """What a score decides of a set; None where failed executions leave it open."""
        score, limit = known.score, rounded(self.request.threshold)  # as scores are: a third is one
        decision = exact_decision(Fraction(score.low), Fraction(score.high), limit)
        if decision == "undecided":
            return None
        code = "equals-threshold" if score.low == limit > 0 else "exact-score"
        schema = self.scorer.sampler.population.schema
        names = tuple(schema.names[column] for column in self.request.columns_of(mask))
        reason = Note.of(code, score=score.low)
        return TestedSet(names, decision, (reason,), score.samples, score.low)


def exact_decision(low: Fraction, high: Fraction, threshold: float) -> Decision:
    """By Definition 3.9 a score that equals the threshold is in; not at 0, where all do."""
    least = 0 if threshold > 0 else 1
    if compare(low, threshold) >= least:
        return "above"
    return "below" if compare(high, threshold) < least else "undecided"


def compare(score: Fraction, threshold: float) -> int:
    """−1, 0 or 1: below, equal, above. Equal is a score for which the threshold is the float."""
    if float(score) == threshold:
        return 0
    return 1 if score > Fraction(threshold) else -1
