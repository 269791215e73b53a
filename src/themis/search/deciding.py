"""What is searched for, and who decides whether a set is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from themis.engine.sampler import Sampler
from themis.errors import Mistake, RequestError
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.domain import rounded
from themis.scores.question import Question, Scored
from themis.scores.reruns import Finding
from themis.scores.scorer import Scorer
from themis.search.lattice import members
from themis.settings import Settings
from themis.statistics.thresholds import Decision, Spot, ThresholdRule


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for, in which run, and how well."""

    sampler: Sampler
    settings: Settings
    measure: Measure
    threshold: float
    columns: tuple[int, ...]  # the characteristics that sets are made of
    max_size: int
    error_share: float = 1.0  # the part of 1 − confidence that this search may use
    decide_only: bool = False  # found sets get no scores, unless these are exact

    @property
    def counts_noise(self) -> bool:
        """Whether asking again is part of what is measured: nothing is run again afterwards."""
        return self.measure == "excess"

    def columns_of(self, mask: int) -> tuple[int, ...]:
        """The columns of a set of the search."""
        return tuple(self.columns[place] for place in members(mask))

    @property
    def schema(self) -> Schema:
        """The schema of what is searched."""
        return self.sampler.population.schema

    def names(self, mask: int) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        return tuple(self.schema.names[column] for column in self.columns_of(mask))

    def question(self, mask: int) -> Question:
        """A set as scores know it."""
        assignments = self.sampler.assignments(self.columns_of(mask))
        return Question(self.sampler, assignments, self.measure, self.settings)

    def rule(self, delta: float, spot: Spot = "none") -> ThresholdRule:
        """The rule that decides one set, with this error probability."""
        return ThresholdRule(self.threshold, self.settings.error, delta, spot)


def check_request(threshold: float, max_size: int | None) -> None:
    """Raise RequestError with all that is wrong with a request for a search."""
    mistakes = []
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        problem = f"must lie between 0 and 1, got {threshold!r}"
        remedy = "write 0.1 for 10 %, 0 for whatever matters at all"
        mistakes.append(Mistake("threshold", "threshold", problem, remedy))
    if max_size is not None and max_size < 1:
        problem = f"must be at least 1, got {max_size!r}"
        remedy = "leave it out for sets of any size"
        mistakes.append(Mistake("max-size", "max_size", problem, remedy))
    if mistakes:
        raise RequestError(mistakes)


class Decider(ABC):
    """Decides whether one set's score is above the threshold, with a given error probability."""

    @property
    def together(self) -> bool:
        """Whether sets of one size are prepared together."""
        return False

    def prepare(self, sets: Iterable[tuple[int, float]]) -> None:
        """Do ahead what deciding these sets takes."""
        return

    def expect(self, sets: Callable[[], Iterable[tuple[int, float]]]) -> None:
        """Take note of how to know which sets come next: idle slots may run something of them."""
        return

    def looking(self) -> AbstractContextManager[None]:
        """Within, a set is decided, and idle slots may run something of the next ones."""
        return nullcontext()

    @abstractmethod
    def decide(self, mask: int, delta: float) -> TestedSet:
        """The decision on a set; raises BudgetEndedError when the budget is too small."""

    def takes_proofs(self, mask: int, delta: float) -> bool:
        """Whether a set seems to be below, and to show it seems to cost much."""
        return False

    def finding(self, mask: int) -> Finding:
        """What a decision that a set is above rests on, to be run again; none of an excess is."""
        raise NotImplementedError


@dataclass(frozen=True)
class KnownScores:
    """Exact scores of sets that take no execution, and what they decide of these."""

    scorer: Scorer
    request: SearchRequest

    def begin(self) -> None:
        """Run what makes scores known, where that costs no more than to sample."""
        if self.request.measure == "group":
            self.scorer.run_people(self.request.question((1 << len(self.request.columns)) - 1))

    def has(self, mask: int) -> bool:
        """Whether there is such a score, which may still be to compute."""
        return self.scorer.knows(self.request.question(mask))

    def score_of(self, mask: int) -> Scored | None:
        """The score that decides a set; one above the threshold can be run again."""
        found = self.scorer.known(self.request.question(mask))
        tested = None if found is None else self.decision(mask, found)
        if found is None or tested is None:
            return None
        return found if tested.decision == "below" or found.finding is not None else None

    def decision(self, mask: int, known: Scored) -> TestedSet | None:
        """What a score decides of a set; None where failed executions leave it open."""
        score, names = known.score, self.request.names(mask)
        limit = rounded(self.request.threshold)  # as scores are: a third is one
        ends = score.low, score.high
        tested = exactly_tested(names, *ends, limit, score.samples)
        return None if tested.decision == "undecided" else tested


def exactly_tested(
    names: tuple[str, ...], low: float, high: float, threshold: float, inputs: int
) -> TestedSet:
    """What an exact score decides of a set; failed executions leave it between two ends."""
    decision, least = exact_decision(low, high, threshold), rounded(low)
    reason = Note.of("exact-score", score=least)
    if high > low:
        reason = Note.of("score-between", low=least, high=rounded(high))
    elif threshold > 0 and not compare(low, threshold):
        reason = Note.of("equals-threshold", score=threshold)
    return TestedSet(names, decision, (reason,), inputs, least)


def exact_decision(low: float, high: float, threshold: float) -> Decision:
    """By Definition 3.9 a score that equals the threshold is in; not at 0, where all do."""
    least = 0 if threshold > 0 else 1
    if compare(low, threshold) >= least:
        return "above"
    return "below" if compare(high, threshold) < least else "undecided"


def compare(score: float, threshold: float) -> int:
    """−1, 0 or 1: below, equal, above, without the noise of the last digits."""
    first, second = (rounded(each) or each for each in (score, threshold))
    return (first > second) - (first < second)
