"""Quantities: what two results must both have measured so that it can be compared, and its ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from themis.inputs.rows import favourable_text
from themis.results.model import GroupScore, Measure, Result, Score, SearchResult, has_degrees
from themis.results.notes import Ending
from themis.results.verdicts import largest_missed, least_listed, nobody_favoured
from themis.results.withheld import tells_of_few
from themis.settings import Stopping

ROUNDING = 1e-9  # a saved result has twelve digits


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
    scale: tuple[float, float] | None = None  # on another one, the same share is another difference
    favours: str | None = None  # what counts as favourable: other decisions have other rates

    @property
    def is_average_of_people(self) -> bool:
        """Whether it is how far outputs of given people are apart, on average."""
        of_people = self.measure == "causal" and self.population != "inputs"
        return of_people and has_degrees(self.distance)

    @classmethod
    def of(cls, score: Score) -> Quantity:
        """What a score is a score of; the order of the set's names does not matter."""
        own: dict[str, Any] = {"distance": score.distance}
        if isinstance(score, GroupScore):
            own = {"statistic": score.statistic, "favours": score.favours}
        return cls(
            score.measure,
            tuple(sorted(score.against)),
            score.output,
            population=score.population,
            counterfactuals=score.counterfactuals,
            scale=None if own.get("statistic") == "rate" else score.scale,
            **own,
        )

    @classmethod
    def of_set(cls, search: SearchResult, names: Iterable[str]) -> Quantity:
        """The score of a set that a search is about."""
        own: dict[str, Any] = {"distance": search.distance}
        if search.measure == "group":
            own = {"statistic": search.statistic, "favours": search.favours}
        scale = None if own.get("statistic") == "rate" else search.scale
        return cls(
            search.measure,
            tuple(sorted(names)),
            search.output,
            population=search.population,
            scale=scale,
            **own,
        )

    @property
    def name(self) -> str:
        """The quantity in words: `causal race,sex`."""
        plain = Quantity(self.measure, self.against)
        more = [
            str(getattr(self, field))
            for field in ("output", "distance", "population", "counterfactuals", "statistic")
            if getattr(self, field) != getattr(plain, field)
        ]
        more += [] if self.scale is None else [f"{self.scale[0]:,.15g} to {self.scale[1]:,.15g}"]
        more += [] if self.favours is None else [f"favourable: {self.favours}"]
        return f"{self.measure} {','.join(self.against)}" + (f" ({', '.join(more)})" * bool(more))

    def contains(self, other: Quantity) -> bool:
        """Whether the other is the same score of a smaller set."""
        same = replace(self, against=other.against) == other
        return same and set(self.against) > set(other.against)


@dataclass(frozen=True)
class Bounds:
    """Where a score lies, except with probability `error`: low ≤ truth ≤ high.

    With `above_low` the truth is more than low, with `below_high` less than high. Ends that are not
    `certified` (the paper's rule, a subject that answers at random, or one that never gives what
    counts as favourable) prove nothing.
    """

    low: float
    high: float
    error: float
    score: float | None = None  # an estimate, where one was made
    above_low: bool = False
    below_high: bool = False
    certified: bool = True
    conclusive: bool = True
    width: float = 0.0  # that sampling to its error gives it; it is wider where executions failed
    few: bool = False  # it tells the mean of few people
    told: bool = True  # whether the numbers are there

    @property
    def shown(self) -> Bounds:
        """The same as documents may show it."""
        return replace(self, low=0.0, high=1.0, score=None, told=False) if self.few else self


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


def was_searched(result: Result, quantity: Quantity) -> bool:
    """Whether a search looked at the set, or at sets that contain it, whatever it found."""
    return any(
        Quantity.of_set(each, quantity.against) == quantity
        and set(quantity.against) <= set(each.among)
        for each in result.searches
    )


def total_error(result: Result) -> float:
    """The largest probability that any of a result's intervals and searches is wrong."""
    scores = [known(result, each) for each in measured(result)]
    errors = [each.error for each in scores if each is not None]
    errors += [_error(result, each) for each in result.searches]
    together = 1.0 if result.family is None else max(errors, default=0.0)  # of a family, at most so
    return min(sum(errors), together, 1.0)


def _from_scores(result: Result, quantity: Quantity) -> Iterator[Bounds]:
    for score in result.scores:
        if score.samples and Quantity.of(score) == quantity:
            yield bounds_of(result, score)


def bounds_of(result: Result, score: Score) -> Bounds:
    """Where a score of a result lies."""
    return Bounds(
        low=score.low,
        high=score.high,
        error=_error(result, score),
        score=score.score,
        certified=_is_certified(score),
        conclusive=score.conclusive,
        width=2.0 * score.error if score.method == "sampled" else 0.0,
        few=tells_of_few(score),
    )


def _is_certified(score: Score) -> bool:
    rule = score.stopping is Stopping.CERTIFIED or score.method == "exact"
    return rule and score.stopped is not Ending.NOISE and not nobody_favoured(score)


def _from_searches(result: Result, quantity: Quantity) -> Iterator[Bounds]:
    """What follows from a search: a set with a found one in it is above, one in a set that is
    below is below (scores grow with the set, Theorems 4.1 and 4.2)."""
    names = set(quantity.against)
    for search in result.searches:
        about_it = Quantity.of_set(search, quantity.against) == quantity
        if not about_it or search.stopping is not Stopping.CERTIFIED:
            continue
        error, sampled = _error(result, search), search.method == "sampled"
        listed = {found for found in search.found if names >= set(found)}
        if listed:
            above = not listed <= set(search.ties)
            yield Bounds(least_listed(search), 1.0, error, above_low=above)
        elif any(names <= set(t.against) for t in search.tested if t.decision == "below"):
            yield Bounds(0.0, largest_missed(search), error, below_high=sampled)


def _error(result: Result, part: Score | SearchResult) -> float:
    """The probability with which a score or a search may be wrong.

    A check asks in rounds and keeps the last: the rounds share the error probability of the check.
    """
    if part.method == "exact":
        return 0.0
    return max([1.0 - part.confidence, *(1.0 - each.confidence for each in result.checks)])


def alike(before: Result, after: Result) -> tuple[Result, Result]:
    """Both, as far as both say what they mean: earlier files do not say what is favourable."""
    before, after = _told(before), _told(after)
    if not any(map(_is_silent, (before, after))):
        return before, after
    return _saying(before, None), _saying(after, None)


def _is_silent(result: Result) -> bool:
    parts: tuple[Score | SearchResult, ...] = (*result.scores, *result.searches)
    rates = [e for e in parts if e.measure == "group" and getattr(e, "statistic", "") == "rate"]
    return any(getattr(each, "favours", None) is None for each in rates)


def _told(result: Result) -> Result:
    """The result; of an earlier file, with what its words for documents say is favourable."""
    given = () if result.report is None else result.report.favourable
    return _saying(result, favourable_text(given)) if given and _is_silent(result) else result


def _saying(result: Result, favours: str | None) -> Result:
    """The result, whose rates of the decision itself are of this; with None, all rates."""

    def said(part: Any) -> Any:
        rate = part.measure == "group" and part.statistic == "rate"
        return replace(part, favours=favours) if rate and not (favours and part.output) else part

    scores, searches = map(said, result.scores), map(said, result.searches)
    return replace(result, scores=tuple(scores), searches=tuple(searches))


def has_risen(before: Bounds, after: Bounds, tolerance: float = 0.0) -> bool:
    """Whether a score is surely larger than before, by more than the tolerance."""
    if not (before.certified and after.certified):
        return False
    gap = after.low - before.high - tolerance
    return gap > ROUNDING or (gap >= -ROUNDING and (after.above_low or before.below_high))


def may_have_risen(before: Bounds, after: Bounds, tolerance: float = 0.0) -> bool:
    """Whether a score may be larger than before by more than sampling alone leaves open."""
    if not after.certified:
        return True
    return after.high - before.high - after.width - tolerance > ROUNDING
