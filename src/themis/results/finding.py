"""What results found, made once: of each score a difference, none, or why neither is known.

Also what two results must both have measured so that it can be compared, and between which ends.

Every sentence, table, picture and verdict word goes by it, so that no two of them disagree. Limits
are held against scores in `verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeAlias

from themis.results.model import (
    ROUNDING,
    CausalScore,
    GroupScore,
    Measure,
    Result,
    Score,
    SearchResult,
    has_degrees,
)
from themis.results.notes import Ending, Note
from themis.results.withheld import is_told, tells_of_few, whole_of
from themis.settings import Stopping
from themis.statistics.thresholds import ThresholdRule

State: TypeAlias = Literal["grave", "calm", "open"]  # a difference, none, not known
Kind: TypeAlias = Literal[
    "unmeasured",  # the run ended before
    "unread",  # nothing of the set is given to the subject: 0 by construction
    "single",  # there is one value to change, or one group
    "alone",  # one group alone has a decision
    "idle",  # no output was favourable, or every one: rates tell nothing
    "unknown",  # failures left nothing to compare
    "never",  # surely no difference at all
    "none",  # no difference seen, as precisely as asked
    "undecided",  # no difference seen, less precisely
    "untried",  # no difference seen, but not all assignments were tried
    "noise",  # a difference that noise alone may explain
    "seen",  # a difference that is not certain
    "least",  # a certain difference, of which only a lower bound is known
    "differs",  # a certain difference
]
Sure: TypeAlias = Literal[
    "exact",  # all was run
    "confidence",  # sampled: the interval holds with the stated confidence
    "paper",  # sampled by a rule that certifies nothing
    "inconsistent",  # the answers contradict each other
    "early",  # not all was run
    "failures",  # all was run, and some executions failed
    "noise",  # all was run, and another run may answer differently
]
STATES: dict[Kind, State] = {
    "never": "calm",
    "none": "calm",
    "least": "grave",
    "differs": "grave",
}  # of others: open


@dataclass(frozen=True)
class Finding:
    """What a score found: which kind of sentence it is, and the numbers that may be shown."""

    kind: Kind
    state: State
    value: float | None  # what was observed; None: it would tell of few people
    ends: tuple[float, float] | None  # low ≤ truth ≤ high
    sure: Sure

    @property
    def is_exact(self) -> bool:
        """Whether its number, if it is shown, has no interval."""
        return self.ends is not None and self.ends[0] == self.ends[1]


def finding(score: Score) -> Finding:
    """The finding of a score; of one that documents may show, what the exact numbers decided."""
    whole, told = whole_of(score), is_told(score)
    kind = _kind(whole)
    state = STATES.get(kind, "open")
    if kind == "never" and not is_settled(whole):
        state = "open"
    return Finding(
        kind=kind,
        state=state,
        value=score.score if told else None,
        ends=(score.low, score.high) if told else None,
        sure=_sure(whole),
    )


def _kind(score: Score) -> Kind:
    if by_construction(score) is not None:
        return "unread"
    if not score.samples:
        return "unmeasured"
    if score.low > 0:
        return "least" if score.lower_bound else "differs"
    if nothing_compared(score) is not None:
        return "single"
    return _of_rates(score) if isinstance(score, GroupScore) else _of_changes(score)


def _of_changes(score: Score) -> Kind:
    """Of a causal score that may be 0."""
    if score.lower_bound:
        return "untried"
    if score.score > 0:
        noisy = isinstance(score, CausalScore) and score.placebo is not None
        return "noise" if noisy else "seen"
    if score.high == 0:
        return "never"
    is_all = score.high >= 1 if score.method == "exact" else score.unknown >= score.samples
    if score.unknown and is_all:
        return "unknown"
    return "none" if is_settled(score) else "undecided"


def _of_rates(score: GroupScore) -> Kind:
    """Of groups that may be equal."""
    if idle_favour(score) is not None:
        return "idle"
    if len(score.groups) < 2:
        return "alone" if score.groups else "unknown"
    if score.high == 0:
        return "never"
    if score.lower_bound:
        return "untried"
    return "none" if is_settled(score) else "undecided"


def _sure(score: Score) -> Sure:
    if score.method == "sampled":
        return "paper" if score.stopping is Stopping.PAPER else "confidence"
    if score.stopped is Ending.INCONSISTENT:
        return "inconsistent"
    if not score.conclusive and score.stopped is not Ending.NOISE:
        return "early"
    noisy = isinstance(score, CausalScore) and score.placebo is not None
    if score.unknown and not noisy:
        return "failures"
    return "exact" if score.low == score.high else "noise"


def is_settled(score: Score) -> bool:
    """Whether a score is as precise as asked; failures and noise widen one that is exact, too."""
    is_wide = score.high - score.low > 2 * score.error + ROUNDING
    fails = score.unknown > 0 and not score.lower_bound
    return score.conclusive and not (is_wide and (score.method == "exact" or fails))


def nobody_favoured(score: Score) -> bool:
    """Whether no output was favourable, so that groups can't differ whatever the subject does."""
    if not isinstance(score, GroupScore) or score.statistic != "rate":
        return False
    return all(group.rate == 0 for group in score.groups)


def idle_favour(score: Score) -> Literal["no", "every"] | None:
    """Whether no output was favourable, or every one, so that groups can't differ by their rates.

    That all given people are favoured is a fact about them; of generated inputs it is suspicious.
    """
    score = whole_of(score)
    if not isinstance(score, GroupScore) or score.statistic != "rate" or len(score.groups) < 2:
        return None
    if nobody_favoured(score):
        return "no"
    everybody = score.population == "inputs" and all(each.rate == 1 for each in score.groups)
    return "every" if everybody else None


def by_construction(score: Score) -> Note | None:
    """Why a score is 0 whatever the subject does: it is not given the set; None if it is."""
    codes = ("not-an-input", "groups-need-people")
    return next((each for each in score.notes if each.code in codes), None)


def nothing_compared(score: Score) -> Note | None:
    """Why a score says nothing: there is one value to change, or one group; None if it does."""
    if isinstance(score, GroupScore):
        alone = score.samples and len(score.groups) == 1 and score.high == 0
        return Note.of("nothing-to-compare", against=score.against) if alone else None
    return next((each for each in score.notes if each.code == "nothing-to-change"), None)


def least_listed(search: SearchResult) -> float:
    """Every found set is above this, at the stated confidence; an exact one may equal it."""
    return search.threshold if search.method == "exact" else _rule(search).floor


def largest_missed(search: SearchResult) -> float:
    """No set above this was missed, at the stated confidence; at 1, none that equals it."""
    return search.threshold if search.method == "exact" else _rule(search).ceiling


def _rule(search: SearchResult) -> ThresholdRule:
    return ThresholdRule(search.threshold, search.error, 1.0 - search.confidence)


GROUP, CHANGES = ("statistic", "favours", "scale"), ("distance", "scale")


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
    def of(cls, part: Score | SearchResult, against: Iterable[str] | None = None) -> Quantity:
        """What a score is a score of, or a search; the order of the set's names does not matter."""
        names = part.against if isinstance(part, Score) and against is None else against
        is_group = isinstance(part, GroupScore) or part.measure == "group"
        own: dict[str, Any] = {
            name: getattr(part, name)
            for name in ("population", "counterfactuals", *(GROUP if is_group else CHANGES))
            if hasattr(part, name)
        }
        if own.get("statistic") == "rate":
            own["scale"] = None
        return cls(part.measure, tuple(sorted(names or ())), part.output, **own)

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
    few: bool = False  # it tells the mean of few people, so that documents show no number

    @property
    def shown(self) -> Bounds:
        """The same as documents may show it."""
        hidden: dict[str, Any] = {"low": None, "high": None, "score": None}
        return replace(self, **hidden) if self.few else self

    @property
    def told(self) -> bool:
        """Whether the numbers are there."""
        return self.low is not None


def measured(result: Result) -> tuple[Quantity, ...]:
    """The scores that a result has, each once."""
    return tuple(dict.fromkeys(Quantity.of(each) for each in result.scores if each.samples))


def found_sets(result: Result) -> tuple[Quantity, ...]:
    """The minimal sets that the searches of a result found."""
    return tuple(
        dict.fromkeys(
            Quantity.of(search, names) for search in result.searches for names in search.found
        )
    )


def known(result: Result, quantity: Quantity) -> Bounds | None:
    """The ends of a score: from its first interval, else from the searches; None without either.

    Which interval speaks is settled before looking at any, so that only its own error counts.
    """
    scores = (e for e in result.scores if e.samples and Quantity.of(e) == quantity)
    parts = chain((bounds_of(result, e) for e in scores), _from_searches(result, quantity))
    return next(parts, None)


def was_searched(result: Result, quantity: Quantity) -> bool:
    """Whether a search looked at the set, or at sets that contain it, whatever it found."""
    return any(
        Quantity.of(each, quantity.against) == quantity and set(quantity.against) <= set(each.among)
        for each in result.searches
    )


def total_error(result: Result) -> float:
    """The largest probability that any of a result's intervals and searches is wrong."""
    scores = [known(result, each) for each in measured(result)]
    errors = [each.error for each in scores if each is not None]
    errors += [_error(each) for each in result.searches]
    together = 1.0 if result.family is None else max(errors, default=0.0)  # of a family, at most so
    return min(sum(errors), together, 1.0)


def bounds_of(result: Result, score: Score) -> Bounds:
    """Where a score of a result lies."""
    return Bounds(
        low=score.low,
        high=score.high,
        error=_error(score),
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
        about_it = Quantity.of(search, quantity.against) == quantity
        if not about_it or search.stopping is not Stopping.CERTIFIED:
            continue
        error, sampled = _error(search), search.method == "sampled"
        listed = {found for found in search.found if names >= set(found)}
        if listed:
            above = not listed <= set(search.ties)
            yield Bounds(least_listed(search), 1.0, error, above_low=above)
        elif any(names <= set(t.against) for t in search.tested if t.decision == "below"):
            yield Bounds(0.0, largest_missed(search), error, below_high=sampled)


def _error(part: Score | SearchResult) -> float:
    """The probability with which a score or a search may be wrong."""
    return 0.0 if part.method == "exact" else 1.0 - part.confidence


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
