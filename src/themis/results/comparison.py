"""What does a result know about the score of a set? Its ends, from scores and searches alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from themis.results.model import GroupScore, Measure, Result, Score, SearchResult
from themis.results.verdicts_search_facts import largest_missed, least_listed


@dataclass(frozen=True)
class Quantity:
    """What is measured: a score of a set, of one output, on one population."""

    measure: Measure
    against: tuple[str, ...]
    output: str | None = None
    distance: str = "exact"
    population: str = "inputs"
    counterfactuals: str = "generated"
    statistic: str = "rate"

    @classmethod
    def of(cls, score: Score) -> Quantity:
        """What a score is a score of; the order of the set's names does not matter."""
        return cls(
            score.measure,
            tuple(sorted(score.against)),
            score.output,
            score.distance,
            score.population,
            score.counterfactuals,
            score.statistic if isinstance(score, GroupScore) else "rate",
        )

    @classmethod
    def of_set(cls, search: SearchResult, names: Iterable[str]) -> Quantity:
        """The score of a set that a search is about."""
        statistic = search.statistic if search.measure == "group" else "rate"
        details = {"distance": search.distance, "statistic": statistic}
        return cls(search.measure, tuple(sorted(names)), search.output, **details)

    @property
    def name(self) -> str:
        """The quantity in words: `causal race,sex`."""
        plain = Quantity(self.measure, self.against)
        more = [
            str(getattr(self, field))
            for field in ("output", "distance", "population", "counterfactuals", "statistic")
            if getattr(self, field) != getattr(plain, field)
        ]
        return f"{self.measure} {','.join(self.against)}" + (f" ({', '.join(more)})" * bool(more))

    def contains(self, other: Quantity) -> bool:
        """Whether the other is the same score of a smaller set."""
        same = replace(self, against=other.against) == other
        return same and set(self.against) > set(other.against)


@dataclass(frozen=True)
class Bounds:
    """Where a score lies, except with probability `error`: low ≤ truth ≤ high.

    With `above_low` the truth is more than low, with `below_high` less than high. Ends that are not
    `certified` (the paper's rule, a subject that answers at random) prove nothing.
    """

    low: float
    high: float
    error: float
    score: float | None = None  # an estimate, where one was made
    above_low: bool = False
    below_high: bool = False
    certified: bool = True
    conclusive: bool = True


def measured(result: Result) -> tuple[Quantity, ...]:
    """The scores that a result has, each once."""
    return tuple(dict.fromkeys(Quantity.of(each) for each in result.scores if each.samples))


def found_sets(result: Result) -> tuple[Quantity, ...]:
    """The minimal sets that the searches of a result found."""
    return tuple(
        dict.fromkeys(
            Quantity.of_set(search, names) for search in result.searches for names in search.found
        )
    )


def known(result: Result, quantity: Quantity) -> Bounds | None:
    """The ends of a score: from its first interval, else from the searches; None without either.

    Which interval speaks is settled before looking at any, so that only its own error counts.
    """
    parts = (*_from_scores(result, quantity), *_from_searches(result, quantity))
    return next(iter(parts), None)


def total_error(result: Result) -> float:
    """The largest probability that any of a result's intervals and searches is wrong."""
    scores = [known(result, each) for each in measured(result)]
    intervals = sum(each.error for each in scores if each is not None)
    return min(intervals + sum(_error(result, each) for each in result.searches), 1.0)


def _from_scores(result: Result, quantity: Quantity) -> Iterator[Bounds]:
    for score in result.scores:
        if score.samples and Quantity.of(score) == quantity:
            yield Bounds(
                low=score.low,
                high=score.high,
                error=_error(result, score),
                score=score.score,
                certified=_is_certified(score),
                conclusive=score.conclusive,
            )


def _is_certified(score: Score) -> bool:
    rule = score.stopping == "certified" or score.method == "exact"
    return rule and score.stopped != "noise"


def _from_searches(result: Result, quantity: Quantity) -> Iterator[Bounds]:
    """What follows from a search: a set with a found one in it is above, one in a set that is
    below is below (scores grow with the set, Theorems 4.1 and 4.2)."""
    names = set(quantity.against)
    for search in result.searches:
        about_it = Quantity.of_set(search, quantity.against) == quantity
        if not about_it or search.stopping != "certified":
            continue
        error, sampled = _error(result, search), search.method == "sampled"
        if any(names >= set(found) for found in search.found):
            yield Bounds(least_listed(search), 1.0, error, above_low=True)
        elif any(names <= set(t.against) for t in search.tested if t.decision == "below"):
            yield Bounds(0.0, largest_missed(search), error, below_high=sampled)


def _error(result: Result, part: Score | SearchResult) -> float:
    """The probability with which a score or a search may be wrong.

    A check asks in rounds and keeps the last: the rounds share the error probability of the check.
    """
    if part.method == "exact":
        return 0.0
    return max([1.0 - part.confidence, *(1.0 - each.confidence for each in result.checks)])
