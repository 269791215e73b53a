"""Is an exact score above the threshold? No chance is involved; a tie is seen as one."""

from __future__ import annotations

from fractions import Fraction

from themis.results.model import Score, TestedSet
from themis.results.notes import Note
from themis.scores.exact import rounded
from themis.statistics.thresholds import Decision


def decided_by(score: Score, names: tuple[str, ...], threshold: float) -> TestedSet | None:
    """The decision on a set by its exact score; None where failed executions leave it open."""
    limit = rounded(threshold)  # as scores are: a third is one
    decision = exact_decision(Fraction(score.low), Fraction(score.high), limit)
    if decision == "undecided":
        return None
    code = "equals-threshold" if score.low == limit > 0 else "exact-score"
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
