"""Base inputs of one set: tried, in part proved not to flip, and the scores that follow.

To ± error by proving every input that does not flip in a few tries takes hundreds of proofs. It
takes far fewer where more inputs are tried, and a random part of the open ones is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments, Places
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.scores.explanations.regions import SeenRows
from themis.scores.explanations.witnesses import KEPT, FlipPool
from themis.scores.question import Question, account_of, ending_early
from themis.search.base_inputs import FIRST_TRIES
from themis.search.cells import UNTRIED
from themis.search.flips import FlipBook
from themis.search.lattice import members
from themis.settings import Settings
from themis.statistics.intervals import Floats, clopper_pearson
from themis.statistics.proportions import Interval, ProportionRule, anytime_interval
from themis.statistics.reruns import interval_confidence
from themis.statistics.thresholds import SpotSample
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

TRIES_SHARE = 0.2  # what more tries before proofs may cost, in parts of the proofs
PILOT = 10  # open inputs settled before the others, to learn what flips them


@dataclass(frozen=True)
class Counts:
    """How many inputs flip, are constant, stay unknown, and are not settled yet."""

    hits: int
    misses: int
    unknown: int
    untried: int

    @property
    def total(self) -> int:
        return self.hits + self.misses + self.unknown + self.untried

    def scaled(self, total: int) -> Counts:
        """As they would be among so many inputs, if it goes on like this."""
        part = total / self.total
        hits, misses, unknown = (
            round(part * each) for each in (self.hits, self.misses, self.unknown)
        )
        return Counts(hits, misses, unknown, max(total - hits - misses - unknown, 0))


def counted(states: NDArray[np.int8]) -> Counts:
    """How many of these inputs are in which state."""
    return Counts(*(int((states == each).sum()) for each in (FLIP, CONSTANT, UNKNOWN, UNTRIED)))


def known_counts(book: FlipBook, mask: int) -> Counts:
    """What is known of all base inputs so far under a set, also from others; to foresee its end."""
    rows = len(book.inputs.outputs) if book.is_exhaustive(mask) else 0
    return counted(book.known(mask, rows))


class TriedInputs:
    """The first base inputs under one set: which of them flip, as far as that is known."""

    def __init__(self, book: FlipBook, mask: int) -> None:
        self.book = book
        self.mask = mask
        self.states: NDArray[np.int8] = np.empty(0, dtype=np.int8)

    @property
    def counts(self) -> Counts:
        """What is known of them."""
        return self.counts_of(len(self.states))

    def counts_of(self, first: int) -> Counts:
        """The same for the first of them."""
        return counted(self.states[:first])

    @property
    def open_places(self) -> Places:
        """Those that have not flipped so far, and may."""
        return np.flatnonzero(self.states == UNTRIED)

    def draw(self, count: int) -> None:
        """Try so many inputs in all."""
        used = len(self.states)
        if count > used:
            more = self.book.probe(self.mask, used, count)
            self.states = np.concatenate([self.states, more])

    def settle(self, chosen: Places) -> None:
        """Find out whether these flip, by all their variants."""
        self.states = self.book.settle(self.mask, self.states, 0, chosen)

    def try_more(self, places: Places, share: float = TRIES_SHARE) -> None:
        """Try more variants of all open inputs, for a part of what it costs to settle these."""
        budget = share * float(self.book.proof_costs(self.mask, places).sum())
        self.states = self.book.probe_again(self.mask, self.states, budget)

    def prove(self, sample: SpotSample, worth: Callable[[int], bool] = lambda _: True) -> bool:
        """Settle open inputs in random order until the sample says enough, or can't any more.

        An input that turns out to flip teaches which variants to try on all open ones. Given up
        where the proofs that are needed at once are too many to be `worth` it.
        """
        block = PILOT
        while not sample.done:
            needed = sample.needed()
            if needed is None or not worth(needed):
                return False
            order = self.book.shuffled(self.mask, self.open_places)
            chosen = order[: min(needed, block)]
            self.settle(chosen)
            flips = int((self.states[chosen] != CONSTANT).sum())
            sample.settle(len(chosen), flips)
            block = len(self.states)
            if flips and not sample.done:
                open_before = self.counts.untried
                self.try_more(order[:needed])
                sample.found(open_before - self.counts.untried)
                block = PILOT
        return True


_PART = 0.25  # of a stage's error: for the number of flips among the open inputs


class Stage(NamedTuple):
    """A number of inputs at which the interval may be found."""

    rows: int
    alpha: float  # that it is wrong
    error: float  # half of the width that it must not exceed


@dataclass(frozen=True)
class SpotRule:
    """Knows a proportion to ± error with `confidence`, at one of three numbers of inputs.

    These are fixed before anything is seen, and each has its part of 1 − confidence. At each of
    them, three things may go wrong: the number of flips among the open inputs is outside of
    what the settled ones leave possible (the likelihood ratio of draws without replacement is a
    martingale, however many are settled), and the proportion is below or above what the number of
    all flips says (Clopper and Pearson). If none does, the interval holds.
    """

    confidence: float
    error: float

    def stages(self) -> list[Stage]:
        """A quarter, once and four times as many inputs as are enough with all proofs."""
        alpha = 1.0 - self.confidence
        most = ProportionRule(self.confidence, self.error).max_samples
        parts = ((0.25, 0.1), (1.0, 0.2), (4.0, 0.7))
        return [Stage(ceil(size * most), share * alpha, self.error) for size, share in parts]


def spot_estimate(inputs: TriedInputs, rule: SpotRule) -> Interval:
    """Try inputs and prove a part of them, at the stage that is foreseen to be the cheapest."""
    stages = rule.stages()
    while True:
        stage = stages.pop(0)
        inputs.draw(stage.rows)
        costs = [_cost(inputs, each) for each in (stage, *stages)]
        if stages and costs[0] > min(costs[1:]):
            continue
        planned = _sample(stage, inputs.counts).needed()
        inputs.try_more(inputs.open_places[:planned])
        counts = inputs.counts
        sample = _sample(stage, counts)
        if inputs.prove(sample) or not stages:
            return _interval(stage, counts, inputs.counts, sample)


def _sample(stage: Stage, counts: Counts) -> SpotSample:
    """What is to be settled at a stage: enough when the interval is as narrow as asked."""

    def enough(totals: NDArray[np.int64], evidence: Floats) -> bool:
        low, high = _ends(stage, _plausible(stage, totals, evidence), counts.unknown)
        return high - low <= 2 * stage.error

    return SpotSample(counts.hits, np.zeros(counts.untried + 1), enough)


def _interval(stage: Stage, before: Counts, after: Counts, sample: SpotSample) -> Interval:
    """The ends, and a score between them, within ± error of both where they are close enough."""
    totals, evidence = sample.evidence()
    plausible = _plausible(stage, totals, evidence)
    if after.unknown > before.unknown:  # the sample takes those that failed for flips
        plausible = np.append(plausible, after.hits)
    low, high = _ends(stage, plausible, before.unknown)
    score = min(max(float(totals[evidence.argmin()]) / stage.rows, low), high)
    if high - low <= 2 * stage.error:
        score = min(max(score, high - stage.error), low + stage.error)
    return Interval(score, low, high)


def _plausible(stage: Stage, totals: NDArray[np.int64], evidence: Floats) -> NDArray[np.int64]:
    """The numbers of flips that the settled inputs do not speak against."""
    plausible = totals[evidence < -np.log(_PART * stage.alpha)]
    return plausible if len(plausible) else totals


def _ends(stage: Stage, totals: NDArray[np.int64], unknown: int) -> tuple[float, float]:
    """The ends for a proportion, if the number of flips is one of these."""
    alpha = (1 - _PART) * stage.alpha
    low, _ = clopper_pearson(int(totals.min()), stage.rows, alpha)
    _, high = clopper_pearson(int(totals.max()) + unknown, stage.rows, alpha)
    return low, high


def _cost(inputs: TriedInputs, stage: Stage) -> float:
    """The executions that a stage takes from here, as far as they can be foreseen."""
    counts = inputs.counts.scaled(stage.rows)
    proofs = _sample(stage, counts).needed()
    if proofs is None:
        return np.inf
    cost = (stage.rows - len(inputs.states)) * (1 + FIRST_TRIES * counts.untried / counts.total)
    opened = inputs.open_places
    if proofs and len(opened):
        each = float(inputs.book.proof_costs(inputs.mask, opened).mean())
        cost += (1 + TRIES_SHARE) * proofs * each
    return cost


SPOT_COST = 64  # sets whose proofs take fewer executions prove every input


@dataclass
class SeenFlips:
    """What is known of the flips under a found set."""

    interval: Interval | None = None  # once it is as narrow as asked
    rows: SeenRows = field(default_factory=SeenRows)
    count: int = 0
    flips: int = 0
    unknown: int = 0  # inputs of which it can't be known whether they flip
    opened: int = 0  # inputs that were tried, but not all their variants

    def add(self, codes: NDArray[Any], states: NDArray[np.int8]) -> None:
        """Count further inputs."""
        self.count += len(states)
        self.flips += int((states == FLIP).sum())
        self.unknown += int((states == UNKNOWN).sum())
        self.opened += int((states == UNTRIED).sum())
        self.rows.add(codes, np.where(states == UNTRIED, UNKNOWN, states).astype(np.int8))


@dataclass(frozen=True)
class Measured:
    """A found set whose score is known, and not explained yet."""

    mask: int  # of the book
    question: Question
    seen: SeenFlips
    score: CausalScore


def measure_found(
    sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> Measured | None:
    """The causal score of a found set to ± error; rows that the search settled cost nothing.

    The interval holds with the stated confidence for this set by itself. None when the budget
    ends before there is anything to say.
    """
    columns = tuple(book.columns[place] for place in members(mask))
    assignments = Assignments(sampler.population.schema, columns)
    question = Question(sampler, assignments, "causal", settings)
    found, stopped = SeenFlips(), Ending.BUDGET
    expensive = _is_expensive(book, mask, settings)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        (_by_spot_proofs if expensive else _by_all_proofs)(found, sampler, book, mask, settings)
        stopped = Ending.ERROR_REACHED  # or as precisely as rows that can't be settled allow
    if early.ending is Ending.INTERRUPTED:
        stopped = early.ending
    count, unknown = found.count, found.unknown
    if not count:
        return None
    interval = found.interval
    if interval is None:
        most = found.flips + unknown + found.opened
        confidence = interval_confidence(settings.confidence)
        interval = anytime_interval(found.flips, most, count, confidence)
    score = CausalScore(
        **question.fields(interval),
        followed=assignments.followed_names,
        method="sampled",
        stopped=stopped,
        samples=count,
        unknown=unknown,
        lower_bound=unknown > 0 and not book.is_exhaustive(mask),
    )
    account = account_of(question.cost.spent)
    score = replace(score, executions=account.total, account=account)
    return Measured(mask, question, found, score)


def flips_of(sampler: Sampler, book: FlipBook, mask: int) -> FlipPool:
    """The flips under a set that a search has met."""
    columns = tuple(book.columns[place] for place in members(mask))
    pool = FlipPool(sampler.assignments(columns), sampler.reading)
    first, second, outputs = book.pairs(mask, KEPT)
    if len(first):
        pool.add_pairs(first, second, outputs)
    return pool


def _by_all_proofs(
    found: SeenFlips, sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> None:
    """Settle every input, until the share of those that flip is known well enough."""
    rule = ProportionRule(settings.confidence, settings.error)
    book.at_hand.end = lambda: _likely_end(rule, found.flips, found.count)
    large, settled = book.in_large_calls(mask, rule.max_samples), np.empty(0, np.int8)
    for target in rule.looks():
        start = found.count
        if large and target > len(settled):
            book.exhaust([mask], min(2 * target, rule.max_samples))
            settled = book.known(mask, min(2 * target, rule.max_samples))
        states = settled[start:target] if large else book.states(mask, start, target)
        found.add(sampler.base.rows(start, target), states)
        if rule.done(found.flips, target, found.unknown):
            found.interval = rule.interval(found.flips, target, found.unknown)
            return


def _likely_end(rule: ProportionRule, flips: int, count: int) -> int:
    """After how many inputs a proportion is known, if all are like these."""
    if not count:
        return rule.first_look
    looks = (look for look in rule.looks() if look > count)
    ends = (look for look in looks if rule.done(round(flips * look / count), look))
    return next(ends, rule.max_samples)


def _is_expensive(book: FlipBook, mask: int, settings: Settings) -> bool:
    """Whether only a part of a set's inputs is proved."""
    rows = ProportionRule(settings.confidence, settings.error).max_samples
    expensive = book.is_exhaustive(mask) and book.proof_cost(mask) >= SPOT_COST
    return expensive and not book.in_large_calls(mask, rows)


def _by_spot_proofs(
    found: SeenFlips, sampler: Sampler, book: FlipBook, mask: int, settings: Settings
) -> None:
    """Try more inputs, and settle a random part of those that are open."""
    inputs = TriedInputs(book, mask)
    book.at_hand.end = int  # whatever comes after a stage
    try:
        found.interval = spot_estimate(inputs, SpotRule(settings.confidence, settings.error))
    finally:
        found.add(sampler.base.rows(0, len(inputs.states)), inputs.states)
