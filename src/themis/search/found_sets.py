"""Found sets: their causal scores to ± error, and what explains these.

To ± error by proving every input that does not flip in a few tries takes hundreds of proofs. It
takes far fewer where more inputs are tried, and a random part of the open ones is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import Variants
from themis.results.model import CausalScore
from themis.results.notes import Ending
from themis.results.parts import Account, Region
from themis.scores.explanations.changes import WIDTH_LIMIT, Ends, HarmTally
from themis.scores.explanations.explaining import Unexplained, explained_together
from themis.scores.explanations.regions import SeenRows, sampled_regions
from themis.scores.question import Question, account_of, ending_early
from themis.scores.tally import CausalTally, harm_fields, share_ends
from themis.search.base_inputs import FIRST_TRIES
from themis.search.causal_decider import TRIES_SHARE, Counts, TriedInputs, counted
from themis.search.cells import UNTRIED
from themis.search.flips import FlipBook
from themis.search.lattice import members
from themis.settings import Settings
from themis.statistics.intervals import Floats, clopper_pearson
from themis.statistics.proportions import Interval, ProportionRule, anytime_interval
from themis.statistics.reruns import interval_confidence
from themis.statistics.thresholds import SpotSample
from themis.subjects.readings import UNKNOWN

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


class FoundSet:
    """A set that a search found: its causal score to ± error, and what explains it.

    Rows that the search settled cost nothing. The interval holds with the stated confidence for
    this set by itself.
    """

    def __init__(self, book: FlipBook, mask: int, settings: Settings) -> None:
        self.book, self.mask = book, mask
        columns = tuple(book.columns[place] for place in members(mask))
        assignments = book.sampler.assignments(columns)
        self.question = Question(book.sampler, assignments, "causal", settings)
        self.rows = SeenRows()
        self.interval: Interval | None = None  # once it is as narrow as asked
        self._rule = ProportionRule(settings.confidence, settings.error)
        self._counts = Counts(0, 0, 0, 0)

    @property
    def count(self) -> int:
        """How many inputs were looked at."""
        return self._counts.total

    @property
    def ends(self) -> Ends:
        """Ends for shares of what explains it."""
        return share_ends(self.question.settings)

    def measure(self) -> CausalScore | None:
        """Its score; None when the budget ends before there is anything to say."""
        stopped = Ending.BUDGET
        with ending_early(keeps_interrupts=self.question.sampler.keep_on_interrupt) as early:
            if self._is_expensive:
                self._measure_by_spot_proofs()
            else:
                self._measure_by_all_proofs()
            stopped = Ending.ERROR_REACHED  # or as precisely as rows that can't be settled allow
        if early.ending is Ending.INTERRUPTED:
            stopped = early.ending
        counts, interval = self._counts, self.interval
        if not counts.total:
            return None
        if interval is None:
            confidence = interval_confidence(self.question.settings.confidence)
            most = counts.total - counts.misses
            interval = anytime_interval(counts.hits, most, counts.total, confidence)
        account = account_of(self.question.cost())
        how = self.question.fields(
            interval, method="sampled", stopped=stopped, samples=counts.total
        )
        score = CausalScore(
            **{**how, "notes": ()},  # the search says how it ended
            followed=self.question.assignments.followed_names,
            unknown=counts.unknown,
            lower_bound=counts.unknown > 0 and not self.book.is_exhaustive(self.mask),
        )
        return replace(score, executions=account.total, account=account)

    def _add(self, start: int, states: NDArray[np.int8]) -> None:
        """Count further inputs."""
        self._counts += counted(states)
        codes = self.question.sampler.base.rows(start, start + len(states))
        self.rows.add(codes, np.where(states == UNTRIED, UNKNOWN, states).astype(np.int8))

    @property
    def _is_expensive(self) -> bool:
        """Whether only a part of its inputs is proved."""
        book, mask = self.book, self.mask
        expensive = book.is_exhaustive(mask) and book.proof_cost(mask) >= SPOT_COST
        return expensive and not book.in_large_calls(mask, self._rule.max_samples)

    def _measure_by_all_proofs(self) -> None:
        """Settle every input, until the share of those that flip is known well enough."""
        rule, book, mask = self._rule, self.book, self.mask
        book.at_hand.end = self._likely_end
        large, settled = book.in_large_calls(mask, rule.max_samples), np.empty(0, np.int8)
        for target in rule.looks():
            start = self.count
            if large and target > len(settled):
                book.exhaust([mask], min(2 * target, rule.max_samples))
                settled = book.known(mask, min(2 * target, rule.max_samples))
            self._add(start, settled[start:target] if large else book.states(mask, start, target))
            seen = self._counts.hits, target, self._counts.unknown
            if rule.done(*seen):
                self.interval = rule.interval(*seen)
                return

    def _likely_end(self) -> int:
        """After how many inputs the share is known, if all are like these."""
        count, flips, rule = self.count, self._counts.hits, self._rule
        if not count:
            return rule.first_look
        looks = (look for look in rule.looks() if look > count)
        ends = (look for look in looks if rule.done(round(flips * look / count), look))
        return next(ends, rule.max_samples)

    def _measure_by_spot_proofs(self) -> None:
        """Try more inputs, and settle a random part of those that are open."""
        inputs, settings = TriedInputs(self.book, self.mask), self.question.settings
        self.book.at_hand.end = int  # whatever comes after a stage
        try:
            self.interval = spot_estimate(inputs, SpotRule(settings.confidence, settings.error))
        finally:
            self._add(0, inputs.states)


def explain_found(sets: Sequence[tuple[FoundSet, CausalScore]]) -> list[CausalScore]:
    """The scores with what explains them; nothing is run where one of them was interrupted.

    What explains them is run together, so that few calls and few rounds are enough for all.
    """
    book, sampler = sets[0][0].book, sets[0][0].question.sampler
    cost = sampler.runner.metered()
    may_run = all(score.stopped is not Ending.INTERRUPTED for _, score in sets)
    rows: list[CausalTally | None] = [None] * len(sets)
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early, book.looking():
        if may_run:
            rows = _whole_rows(sampler, [found for found, _ in sets])
    parts = [_shown(found, score, tally) for (found, score), tally in zip(sets, rows, strict=True)]
    if not may_run:
        return [each.score for each in parts]
    if early.ending is Ending.INTERRUPTED:
        return [replace(each.score, stopped=early.ending) for each in parts]
    with book.looking():
        scores = explained_together(parts, sampler)
    each = cost().explanations // len(sets)  # they were explained together
    return [
        _finished(score, found, tally, each)
        for (found, _), tally, score in zip(sets, rows, scores, strict=True)
    ]


def _shown(found: FoundSet, score: CausalScore, rows: CausalTally | None) -> Unexplained:
    """A score with pairs as they were drawn, and who loses."""
    pool, question = found.book.flips_of(found.mask), found.question
    harm = harm_fields(None if rows is None else rows.harm, found.ends)
    score = replace(score, witnesses=pool.choose(), **harm)

    def regions() -> tuple[Region, ...]:
        fresh = question.sampler.unseen(found.count)
        confidence = question.settings.confidence
        return sampled_regions(found.rows, question.assignments, None, confidence, fresh=fresh)

    return Unexplained(score, pool, regions)


def _finished(
    score: CausalScore, found: FoundSet, rows: CausalTally | None, executions: int
) -> CausalScore:
    """An explained score with what is only joint, and with all that it took."""
    account = (score.account or Account()) + Account(explanations=executions)
    score = replace(score, executions=account.total, account=account)
    if rows is None or rows.joint is None:
        return score
    return rows.joint.explain(score, found.ends)


def _whole_rows(sampler: Sampler, sets: Sequence[FoundSet]) -> list[CausalTally | None]:
    """What a few whole rows of each set tell, as far as the budget goes.

    They take a tenth of what the run has executed so far, at most, and no more than 300.
    """
    runner, reading = sampler.runner, sampler.reading
    allowed = min(0.1 * runner.asked, 300)
    left = 0.0 if runner.out_of_time else runner.executions_left
    planned: dict[int, tuple[CausalTally, int]] = {}
    for each in sets:
        assignments = each.question.assignments
        width = assignments.count
        count = min(max(int(allowed / width), 8), each.count)
        count = int(min(count, left // width))
        if count > 0 and HarmTally.fits(assignments, reading):
            variants = Variants.of(assignments, limit=WIDTH_LIMIT, base=sampler.base)
            planned[each.mask] = CausalTally(each.question, variants), count
            left -= count * width
    tables = [sampler.tables.ask(t.variants, 0, n, reading) for t, n in planned.values()]
    with runner.ledger.counting_as("explanations"):
        answers = sampler.tables.run_asked([asked for _, asked in tables])
    for (tally, _), (rows, _), cells in zip(planned.values(), tables, answers, strict=True):
        tally.add_whole(rows, cells)
    return [planned[each.mask][0] if each.mask in planned else None for each in sets]
