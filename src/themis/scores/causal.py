"""The causal score (Def. 3.7): the fraction of rows of a set's table that are not constant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.coming import LaterRows
from themis.engine.sampler import COARSE_CELLS, Cost, Sampler
from themis.engine.tables import GoingOn
from themis.engine.variants import MOST_WHOLE, Rows, Variants, first_wave, own_columns
from themis.events import ignore
from themis.inputs.keys import first_places
from themis.inputs.streams import PERMUTATION_LIMIT, ShuffledInputs
from themis.results.model import CausalScore
from themis.results.notes import Ending, Note, ended_early
from themis.results.parts import Region
from themis.scores.accounts import common_fields
from themis.scores.early_ends import ending_early
from themis.scores.explanations.explaining import explained
from themis.scores.explanations.harm import WIDTH_LIMIT, Counts, Ends, Floats, HarmTally
from themis.scores.explanations.joint import JointTally
from themis.scores.explanations.regions import (
    FEWEST,
    ROWS,
    SeenRows,
    directed,
    known_regions,
    losing_bits,
    sampled_regions,
)
from themis.scores.explanations.witnesses import FlipPool
from themis.scores.spelling import with_spelling
from themis.settings import Settings, Stopping
from themis.statistics.proportions import (
    Interval,
    ProportionRule,
    anytime_interval,
    mixture_ends,
)
from themis.statistics.reruns import interval_confidence
from themis.subjects.decisions import Cells
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

WHOLE_WIDTH = 16  # sets up to this many assignments have their first rows run whole
MOSTLY = 0.25  # share of rows that flip: of fewer, most are run whole in the end
TALLIED_ROWS = 20_000  # after so many rows the direction of harm is known well enough
FINITE_FACTOR = 20  # beyond this many contexts per sample, drawing without replacement is no gain

Source = Callable[[int, int, bool], tuple[Rows, Cells]]  # rows start..stop, until a flip or whole


def measure_causal(sampler: Sampler, variants: Variants, settings: Settings) -> CausalScore:
    """The causal score of a set, sampled until it is known to ± error, or the budget ends.

    Guarantee: low ≤ truth ≤ high with the stated confidence, at whatever row the run stopped.
    """
    cost = Cost(sampler.runner)
    finite = _finite_rows(sampler, variants, settings)
    contexts = None if finite is None else finite.contexts
    rule = ProportionRule(settings.confidence, settings.error, contexts)
    whole_rows = _whole_rows(sampler, variants, rule)
    going_on = GoingOn(whole_rows, rule.max_samples)
    source = _source(sampler, variants, going_on) if finite is None else finite.source(going_on)
    rows = _CausalRows(sampler, variants, rule, whole_rows=whole_rows)
    stopped = Ending.BUDGET
    with ending_early(keeps_interrupts=sampler.keep_on_interrupt) as early:
        rows.tell(settings)
        for target in rule.looks(rows.coarse):
            rows.advance(source, target, settings)
            if rows.count < target:
                break
            rows.plan_calls()
            if rule.done(rows.flips, rows.count, rows.unknown):
                stopped = Ending.EXHAUSTED if rows.count == contexts else Ending.ERROR_REACHED
                break
    stopped = early.ending or stopped
    score = rows.score(rule, settings, stopped, cost, contexts)
    score = explained(
        score, rows.pool, sampler, lambda: rows.regions(source, settings.confidence, contexts)
    )
    if rows.joint is None:
        return score
    ends = partial(share_ends, confidence=settings.confidence, population=contexts)
    return rows.joint.explain(score, ends if score.method == "sampled" else None)


class _CausalRows:
    """What the rows seen so far say."""

    def __init__(
        self, sampler: Sampler, variants: Variants, rule: ProportionRule, *, whole_rows: int
    ) -> None:
        self.sampler = sampler
        self.variants = variants
        self.whole_rows = whole_rows  # they are tallied
        self.rows_at_once = whole_rows  # run in one go, whether they flip or not
        self.rule = rule
        self.coarse = _coarse_rows(sampler, variants)
        self.count = self.flips = self.unknown = 0
        self.spelled = 0  # of the unknown ones, those whose outputs differ only in spelling
        self.pool = FlipPool(sampler.runner.schema, sampler.reading)
        self.seen = SeenRows()
        whole = variants.complete
        self.tally = HarmTally.of(variants.assignments, sampler.reading) if whole else None
        self.joint = JointTally.of(variants, sampler.reading)

    def advance(self, source: Source, target: int, settings: Settings) -> None:
        """Run rows up to the target, or as far as the budget goes."""
        width = self.variants.width
        while self.count < target:
            whole, at_once = self.count < self.whole_rows, self.count < self.rows_at_once
            ends = (self.whole_rows, self.rows_at_once, target)
            stop = min(target, next(end for end in ends if self.count < end))
            for first, last in self.sampler.blocks(self.count, stop, width):
                self._take(*source(first, last, not at_once), whole=whole)
                self.count = last
                self.tell(settings)
            if self.count < stop:
                return

    def plan_calls(self) -> None:
        """Run the next rows whole if few flip, where that saves calls; what was seen decides."""
        if self.whole_rows and self.flips < MOSTLY * self.count:
            self.rows_at_once = max(self.whole_rows, self.coarse)

    def tell(self, settings: Settings) -> None:
        """Report progress."""
        self.sampler.tell(
            "causal",
            self.variants.assignments,
            self.count,
            self.expected(),
            lambda: self._ends(settings),
        )

    def _take(self, rows: Rows, cells: Cells, *, whole: bool) -> None:
        states = self._states(rows, cells)
        asks = whole and self.seen.count < ROWS
        losing = losing_bits(cells, self.sampler.reading) if asks else None
        self.seen.add(rows.codes, states, losing)
        self.flips += int((states == FLIP).sum())
        self.unknown += int((states == UNKNOWN).sum())
        self.spelled += int(self.sampler.reading.spelled_rows(cells).sum())
        self.pool.add_table(self.variants, rows, cells, states)
        if whole and self.tally is not None and self.count < TALLIED_ROWS:
            self.tally.add(cells)
            if self.joint is not None:
                self.joint.add(rows, cells)

    def _states(self, rows: Rows, cells: Cells) -> NDArray[np.int8]:
        reading = self.sampler.reading
        own = own_columns(self.variants, rows) if reading.graded else None
        states = reading.row_states(cells, own, rows.tolerances)
        if not self.variants.complete:
            states[states == CONSTANT] = UNKNOWN  # an assignment that was not tried may flip it
        return states

    def regions(
        self, source: Source, confidence: float, contexts: int | None
    ) -> tuple[Region, ...]:
        """Where the flips are, as far as the rows show it."""
        schema, columns = self.sampler.runner.schema, self.variants.assignments.columns
        losers = [] if self.tally is None else self.tally.losers(FEWEST)
        label = self.variants.assignments.labels
        if self.seen.count == contexts and not self.unknown:

            def known(loser: int | None, own: float) -> tuple[Region, ...]:
                codes, flips = self.seen.table() if loser is None else self.seen.table_of(loser)
                weights, order = np.ones(len(flips)), np.arange(len(flips))
                return known_regions(codes, flips, weights, schema, columns, own, order=order)

            return directed(losers, label, known, confidence) or known(None, confidence)

        def run(
            start: int, stop: int
        ) -> tuple[NDArray[Any], NDArray[np.int8], NDArray[np.int32] | None]:
            rows, cells = source(start, stop, start >= self.rows_at_once)
            whole = stop <= self.whole_rows
            losing = losing_bits(cells, self.sampler.reading) if whole else None
            return rows.codes, self._states(rows, cells), losing

        limit = sys.maxsize if contexts is None else contexts
        self.seen.look_further(self.sampler.runner, run, width=self.variants.width, limit=limit)
        finite = contexts is not None
        fresh = None if finite else self.sampler.unseen(max(self.count, self.seen.count))

        def sampled(loser: int | None, own: float) -> tuple[Region, ...]:
            return sampled_regions(
                self.seen, schema, columns, own, fresh=fresh, finite=finite, loser=loser
            )

        return directed(losers, label, sampled, confidence) or sampled(None, confidence)

    def expected(self) -> int:
        """How many rows it will take, if the rest looks like those seen so far."""
        if self.sampler.listen is ignore:
            return self.count
        share = (self.flips + 1) / (self.count + 2)
        ends = (n for n in self.rule.looks(self.coarse) if n > self.count)
        done = (n for n in ends if self.rule.done(round(share * n), n))
        return next(done, self.count)

    def _ends(self, settings: Settings) -> tuple[float, float]:
        interval = self.anytime(settings)
        return interval.low, interval.high

    def anytime(self, settings: Settings) -> Interval:
        """The interval that holds whenever the run stops."""
        return anytime_interval(
            self.flips,
            self.flips + self.unknown,
            self.count,
            interval_confidence(settings.confidence),
        )

    def score(
        self,
        rule: ProportionRule,
        settings: Settings,
        stopped: Ending,
        cost: Cost,
        contexts: int | None,
    ) -> CausalScore:
        """The score with all that belongs to it."""
        known = stopped.is_conclusive
        if known:
            interval = rule.interval(self.flips, self.count, self.unknown)
        elif self.count:
            interval = anytime_interval(
                self.flips,
                self.flips + self.unknown,
                self.count,
                interval_confidence(settings.confidence),
                population=contexts,
            )
        else:
            interval = Interval(0.0, 0.0, 1.0)
        notes = [ended_early(stopped, settings, self.count)] if not known else []
        lower_bound = not self.variants.complete and self.unknown > 0
        if lower_bound:
            notes.append(too_many(self.variants))
        exact = stopped is Ending.EXHAUSTED and not self.unknown
        return causal_score(
            interval,
            against=self.variants.assignments.names,
            followed=self.variants.assignments.followed_names,
            settings=settings,
            stopped=stopped,
            cost=cost,
            samples=self.count,
            unknown=self.unknown,
            spelled=self.spelled,
            lower_bound=lower_bound,
            pool=self.pool,
            tally=self.tally,
            notes=tuple(notes),
            method="exact" if exact else "sampled",
            contexts=contexts,
            **self.sampler.reading.details(),
        )


def too_many(variants: Variants) -> Note:
    """That not all assignments were tried, which makes the score a lower bound."""
    count = variants.assignments.count
    return Note.of("too-many-assignments", assignments=count, tried=variants.width)


def causal_score(
    interval: Interval,
    *,
    settings: Settings,
    cost: Cost,
    pool: FlipPool,
    tally: HarmTally | None,
    spelled: int = 0,
    contexts: int | None = None,
    some_rows: bool = False,
    **details: Any,
) -> CausalScore:
    """The result with its witnesses and the direction of harm; `spelled` rows are unknown.

    Its flips can be run again. Of sampled rows the directions have intervals that hold whenever
    the run stops; `contexts` is the number of rows there are, if they were drawn from so few.
    `some_rows` says that an exact score has its directions from sampled rows, too.
    """
    cost.runner.finding = pool
    fields: dict[str, Any] = {"method": "sampled", **details}
    ends = None
    sampled = fields["method"] == "sampled" or some_rows
    if sampled and settings.stopping is not Stopping.PAPER:
        ends = partial(share_ends, confidence=settings.confidence, population=contexts)
    score = CausalScore(
        measure="causal",
        **common_fields(interval, settings, cost),
        witnesses=pool.choose(),
        **harm_fields(tally, ends),
        **fields,
    )
    return with_spelling(score, spelled, pool.reading)


def harm_fields(tally: HarmTally | None, ends: Ends | None) -> dict[str, Any]:
    """The fields of a score that tell what one change does, and who loses by it."""
    if tally is None or not tally.contexts:
        return {"flip_rate": None, "direction": ()}
    return {"flip_rate": tally.flip_rate, "direction": tally.changes(ends)}


def share_ends(
    successes: Counts, trials: Counts, *, confidence: float, population: int | None = None
) -> tuple[Floats, Floats]:
    """The ends of shares among sampled rows, each by itself; any stopping time."""
    return mixture_ends(successes, successes, trials, 1.0 - confidence, population)


def _whole_rows(sampler: Sampler, variants: Variants, rule: ProportionRule) -> int:
    """How many first rows to run whole, for the direction of harm and the flip rate.

    They are chosen before anything is seen, so that what they say is not biased by early stops.
    """
    if not variants.complete or variants.width > WIDTH_LIMIT:
        return 0
    runner = sampler.runner
    traits, calls = runner.traits, runner.saves_calls
    wave = first_wave(variants.width, vectorised=traits.vectorised, calls=calls)
    if variants.width <= wave:
        return sys.maxsize  # nothing is saved by leaving a row early
    cells = variants.width * rule.first_look
    if variants.width <= WHOLE_WIDTH or (calls and cells <= COARSE_CELLS):
        return rule.first_look
    return max(10, rule.first_look * WHOLE_WIDTH // variants.width)


def _coarse_rows(sampler: Sampler, variants: Variants) -> int:
    """Up to which row few calls are worth more than few executions."""
    return COARSE_CELLS // min(variants.width, MOST_WHOLE) if sampler.runner.saves_calls else 0


def _source(sampler: Sampler, variants: Variants, going_on: GoingOn) -> Source:
    """Rows on the common base inputs."""

    def from_tables(start: int, stop: int, until_flip: bool) -> tuple[Rows, Cells]:
        return sampler.tables.fill(
            variants,
            start,
            stop,
            reading=sampler.reading,
            until_flip=until_flip,
            going_on=going_on,
        )

    return from_tables


class _FiniteRows(NamedTuple):
    """Rows that are drawn without replacement, and how many there are."""

    source: Callable[[GoingOn], Source]
    contexts: int


def _finite_rows(sampler: Sampler, variants: Variants, settings: Settings) -> _FiniteRows | None:
    """Every context once, in random order, where there are few enough of them.

    Contexts that admit the same number of assignments weigh the same, so each is drawn once;
    otherwise every input is drawn once, and a context comes as often as it has inputs.
    """
    population, columns = sampler.population, variants.assignments.columns
    size = population.size
    if (
        not population.uniform
        or size is None
        or size > PERMUTATION_LIMIT
        or not variants.complete
        or variants.assignments.binned
        or sampler.reading.graded
    ):
        return None
    independent = population.is_independent(columns)
    contexts = size
    if independent:
        for block in population.blocks:
            if set(block.columns) <= set(columns):
                contexts //= block.size or 1
    most = ProportionRule(settings.confidence, settings.error).max_samples
    if contexts > FINITE_FACTOR * most:
        return None
    inputs = ShuffledInputs(population, sampler.seed)
    order = np.arange(size)
    if independent:
        order = first_places(variants.assignments.contexts(inputs.rows(0, size)))

    def rows_of(start: int, stop: int) -> tuple[Rows, Cells]:
        rows = Rows(inputs.take(order[start:stop]), {})
        return rows, sampler.tables.empty(len(rows), variants.width)

    def from_shuffled(
        going_on: GoingOn, start: int, stop: int, until_flip: bool
    ) -> tuple[Rows, Cells]:
        rows, cells = rows_of(start, stop)
        try:
            sampler.tables.complete(
                variants,
                rows,
                cells,
                sampler.reading,
                block=start,
                until_flip=until_flip,
                later=LaterRows(rows_of, min(going_on.end, len(order)), going_on.whole_to),
            )
        finally:
            sampler.tables.note("shuffled", variants, rows, start, cells)
        return rows, sampler.reading.cells(cells)

    return _FiniteRows(lambda going_on: partial(from_shuffled, going_on), contexts)
