"""What is searched for, and who decides whether a set is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

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
from themis.statistics.thresholds import Decision


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for."""

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

    def names(self, mask: int, schema: Schema) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        return tuple(schema.names[column] for column in self.columns_of(mask))


def check_request(threshold: float, max_size: int | None) -> None:
    """Raise RequestError with all that is wrong with a request for a search."""
    mistakes = list(_mistakes(threshold, max_size))
    if mistakes:
        raise RequestError(mistakes)


def _mistakes(threshold: float, max_size: int | None) -> Iterator[Mistake]:
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        yield Mistake(
            "threshold",
            "threshold",
            f"must lie between 0 and 1, got {threshold!r}",
            "write 0.1 for 10 %, 0 for whatever matters at all",
        )
    if max_size is not None and max_size < 1:
        yield Mistake(
            "max-size",
            "max_size",
            f"must be at least 1, got {max_size!r}",
            "leave it out for sets of any size",
        )


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


# The exact decider, where running all costs no more than deciding these sets, after so many
# executions for others.
RunAll = Callable[[Iterable[int], Iterable[int], int], Decider | None]


@dataclass(frozen=True)
class KnownScores:
    """Exact scores of sets that take no execution, and what they decide of these."""

    scorer: Scorer
    request: SearchRequest
    settings: Settings

    def begin(self) -> None:
        """Run what makes scores known, where that costs no more than to sample."""
        if self.request.measure == "group":
            self.scorer.run_people(self._question(self.request.columns))

    def has(self, mask: int) -> bool:
        """Whether there is such a score, which may still be to compute."""
        return self.scorer.knows(self._question(self.request.columns_of(mask)))

    def score_of(self, mask: int) -> Scored | None:
        """The score that decides a set; one above the threshold can be run again."""
        found = self.scorer.known(self._question(self.request.columns_of(mask)))
        tested = None if found is None else self.decision(mask, found)
        if found is None or tested is None:
            return None
        return found if tested.decision == "below" or found.rests_on is not None else None

    def _question(self, columns: tuple[int, ...]) -> Question:
        return self.scorer.question(columns, self.request.measure, self.settings)

    def decision(self, mask: int, known: Scored) -> TestedSet | None:
        """What a score decides of a set; None where failed executions leave it open."""
        score, names = known.score, self.request.names(mask, self.scorer.sampler.population.schema)
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
