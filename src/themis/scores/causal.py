"""The causal score (Def. 3.7): the fraction of rows of a set's table that are not constant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from themis.engine.blocks import MOST_WHOLE, first_wave
from themis.engine.sampler import COARSE_CELLS
from themis.engine.tables import GoingOn
from themis.engine.variants import Rows
from themis.events import ignore
from themis.results.notes import Ending
from themis.results.parts import Region
from themis.scores.explanations.changes import WIDTH_LIMIT
from themis.scores.explanations.regions import (
    FEWEST,
    ROWS,
    SeenRows,
    directed,
    losing_bits,
    sampled_regions,
)
from themis.scores.question import Question, Scored, ending_early
from themis.scores.tally import CausalTally
from themis.statistics.numbers import MeanEnds
from themis.statistics.proportions import Interval, ProportionRule, anytime_interval
from themis.statistics.reruns import interval_confidence
from themis.subjects.decisions import Cells
from themis.subjects.readings import UNKNOWN

WHOLE_WIDTH = 16  # sets up to this many assignments have their first rows run whole
MOSTLY = 0.25  # share of rows that flip: of fewer, most are run whole in the end


def measure_causal(question: Question) -> Scored:
    """The causal score of a set, sampled until it is known to ± error, or the budget ends.

    Guarantee: low ≤ truth ≤ high with the stated confidence, at whatever row the run stopped.
    """
    rule = ProportionRule(question.settings.confidence, question.settings.error)
    rows = _CausalRows(question, rule)
    stopped = Ending.BUDGET
    with ending_early(keeps_interrupts=question.sampler.keep_on_interrupt) as early:
        rows.tell()
        for target in rows.looks():
            rows.advance(target)
            if rows.tally.count < target:
                break
            rows.plan_calls()
            if rows.are_enough:
                stopped = Ending.ERROR_REACHED
                break
    return rows.scored(early.ending or stopped)


class _CausalRows:
    """The rows of a causal score as they come, on the common base inputs."""

    def __init__(self, question: Question, rule: ProportionRule) -> None:
        self.question, self.rule = question, rule
        self.tally = CausalTally(question, question.variants)
        self.whole_rows = _whole_rows(question, rule)  # they tell who loses
        self.rows_at_once = self.whole_rows  # run in one go, whether they flip or not
        self._going_on = GoingOn(self.whole_rows, rule.max_samples)
        runner, width = question.sampler.runner, question.variants.width
        # Up to this row few calls are worth more than few executions.
        self._coarse = COARSE_CELLS // min(width, MOST_WHOLE) if runner.saves_calls else 0
        self._confidence = interval_confidence(question.settings.confidence)
        self._distances: MeanEnds | None = None
        if question.reading.averages:
            self._distances = MeanEnds(self._confidence, question.settings.error)
        self._seen = SeenRows()

    def advance(self, target: int) -> None:
        """Run rows up to the target, or as far as the budget goes."""
        width, done = self.question.variants.width, self.tally.count
        while done < target:
            whole, at_once = done < self.whole_rows, done < self.rows_at_once
            ends = (self.whole_rows, self.rows_at_once, target)
            stop = min(target, next(end for end in ends if done < end))
            for first, last in self.question.sampler.blocks(done, stop, width):
                self._take(*self._run(first, last, until_flip=not at_once), whole=whole)
                done = last
                self.tell()
            if done < stop:
                return

    def _run(self, start: int, stop: int, *, until_flip: bool) -> tuple[Rows, Cells]:
        """Rows on the common base inputs."""
        question, going_on = self.question, self._going_on
        return question.sampler.tables.fill(
            question.variants, start, stop,
            reading=question.reading, until_flip=until_flip, going_on=going_on,
        )  # fmt: skip

    def _take(self, rows: Rows, cells: Cells, *, whole: bool) -> None:
        first, reading = self.tally.count, self.question.reading
        states, apart = self.tally.add(rows, cells)
        if self._distances is not None:
            self._distances.add(apart, np.where(states == UNKNOWN, 1.0, apart))
        else:
            asks = whole and self._seen.count < ROWS
            self._seen.add(rows.codes, states, losing_bits(cells, reading) if asks else None)
        # After so many rows the direction of harm is known well enough.
        if whole and first < 20_000:
            self.tally.add_whole(rows, cells)

    @property
    def means(self) -> MeanEnds | None:
        """What is known of distances, once they are more than flips: 0 or 1.

        As long as they are not, the rule of proportions takes fewer rows.
        """
        return None if self._distances is None or self._distances.are_whole else self._distances

    def looks(self) -> Iterator[int]:
        """Numbers of rows after which to see whether they are enough."""
        return self.rule.looks(self._coarse, endless=self._distances is not None)

    @property
    def are_enough(self) -> bool:
        """Whether the score is known as well as it should be."""
        if self.means is not None:
            return self.means.done
        return self.rule.done(self.tally.flips, self.tally.count, self.tally.unknown)

    def plan_calls(self) -> None:
        """Run the next rows whole if few flip, where that saves calls; what was seen decides."""
        if self.whole_rows and self.tally.flips < MOSTLY * self.tally.count:
            self.rows_at_once = max(self.whole_rows, self._coarse)

    def tell(self) -> None:
        """Report progress."""
        interval = self.anytime
        self.question.tell(
            self.tally.count, self._expected(), lambda: (interval().low, interval().high)
        )

    def _expected(self) -> int:
        """How many rows it will take, if the rest looks like those seen so far."""
        count = self.tally.count
        if self.question.sampler.listen is ignore:
            return count
        if self.means is not None:
            low, high = self.means.ends
            return max(count, int(count * ((high - low) / (2 * self.rule.error)) ** 2))
        share = (self.tally.flips + 1) / (count + 2)
        ends = (n for n in self.rule.looks(self._coarse) if n > count)
        done = (n for n in ends if self.rule.done(round(share * n), n))
        return next(done, count)

    def anytime(self) -> Interval:
        """The interval that holds whenever the run stops."""
        if self.means is not None:
            return self.means.interval
        flips, count = self.tally.flips, self.tally.count
        interval = anytime_interval(flips, flips + self.tally.unknown, count, self._confidence)
        return interval if count else Interval(0.0, 0.0, 1.0)

    def scored(self, stopped: Ending) -> Scored:
        """The score with all that belongs to it."""
        tally, interval = self.tally, self.anytime()
        if stopped.is_conclusive and self.means is None:
            interval = self.rule.interval(tally.flips, tally.count, tally.unknown)
        how: Any = {"method": "sampled", "samples": tally.count, "stopped": stopped}
        return tally.scored(interval, self.regions, **how)

    def regions(self) -> tuple[Region, ...]:
        """Where the flips are, as far as the rows show it; of degrees nothing is said."""
        question, seen, harm = self.question, self._seen, self.tally.harm
        if self._distances is not None:
            return ()
        assignments, fresh = question.assignments, question.sampler.unseen(self.tally.count)
        find = partial(sampled_regions, seen, assignments, fresh=fresh)
        losers = [] if harm is None else harm.losers(FEWEST)
        return directed(losers, assignments.labels, find, question.settings.confidence)


def _whole_rows(question: Question, rule: ProportionRule) -> int:
    """How many first rows to run whole, for the direction of harm and the flip rate.

    They are chosen before anything is seen, so that what they say is not biased by early stops.
    """
    width, runner = question.variants.width, question.sampler.runner
    if not question.variants.complete or width > WIDTH_LIMIT:
        return 0
    wave = first_wave(width, vectorised=runner.traits.vectorised, calls=runner.saves_calls)
    if width <= wave:
        return sys.maxsize  # nothing is saved by leaving a row early
    cells = width * rule.first_look
    if width <= WHOLE_WIDTH or (runner.saves_calls and cells <= COARSE_CELLS):
        return rule.first_look
    return max(10, rule.first_look * WHOLE_WIDTH // width)
