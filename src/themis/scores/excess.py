"""The excess score: how often a change alters decisions beyond what asking again does.

It is a measure for subjects that answer at random. Nothing of it is answered from what this run
knows, and nothing is run again afterwards: that is what it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from themis.errors import RequestError
from themis.inputs.assignments import Labels, set_name
from themis.inputs.streams import MIXING
from themis.results.model import ExcessScore
from themis.results.notes import Ending
from themis.results.parts import Share
from themis.scores.question import Question, Scored, ending_early
from themis.statistics.excess import IMPOSSIBLE, UNKNOWN, ExcessRule, ExcessState
from themis.statistics.proportions import Interval
from themis.statistics.reruns import interval_confidence
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import Reading

MOST_COMPARED, MOST_SEARCHED = 64, 16  # assignments of a set, each compared with each


def measure_excess(question: Question, rows: ExcessRows) -> Scored:
    """The excess of a set, sampled until it is known to ± error, or the budget ends.

    Guarantee: low ≤ truth ≤ high with the stated confidence, at whatever context the run stopped.
    """
    settings, stopped = question.settings, Ending.BUDGET
    rule = ExcessRule(1.0 - interval_confidence(settings.confidence), settings.error)
    with ending_early(keeps_interrupts=question.sampler.keep_on_interrupt) as early:
        for state in rows.ask(question, rule):
            if state.crossed or state.done:
                stopped = Ending.INCONSISTENT if state.crossed else Ending.ERROR_REACHED
                break
    if rows.state.count and not stopped.is_conclusive:
        rows.state.look()
    return Scored(rows.score(early.ending or stopped))


def check_decisions(reading: Reading) -> None:
    """Raise RequestError where outputs are no decisions that can be compared so."""
    if reading.graded:
        problem = "the excess compares decisions, and this output has degrees"
        remedy = "compare it exactly, or give it a cut"
        raise RequestError.one("excess", "measure", problem, remedy)


def _check(question: Question) -> None:
    assignments = question.assignments
    check_decisions(question.reading)
    if assignments.count > MOST_COMPARED:
        problem = (
            f"{set_name(assignments.names)} has {assignments.count:,} assignments, and the excess "
            f"compares at most {MOST_COMPARED}"
        )
        raise RequestError.one("excess", "measure", problem, "give it bins")


class ExcessRows:
    """The contexts of a set as they come, on the common base inputs.

    What one question counted the next ones go on from, each under a rule of its own.
    """

    def __init__(self, question: Question) -> None:
        _check(question)
        self.question, self.variants = question, question.every
        rule = ExcessRule(1.0 - question.settings.confidence, question.settings.error)
        rates = question.reading.has_favourable
        self.state = ExcessState(rule, self.variants.width, rates=rates)
        self._asked: dict[Any, int] = {}  # how often inputs were asked in earlier contexts
        # A context that other questions' answers were in part of would differ by what has drifted.
        set_of = repr((self.variants.assignments.names, self.variants.width))
        self._first_time = crc32(set_of.encode()) << 24

    def ask(self, question: Question, rule: ExcessRule) -> Iterator[ExcessState]:
        """What was counted at ever more contexts; ends early when the budget does."""
        self.question, state = question, self.state
        state.go_on(rule)
        self.tell()
        if state.count:
            yield state
        for target in rule.looks():
            if target <= state.count:
                continue
            if not self._advance(target):
                return
            state.look()
            yield state

    def _advance(self, target: int) -> bool:
        """Run contexts up to the target; whether the budget went so far."""
        sampler, state = self.question.sampler, self.state
        width = self.variants.width * state.times
        for first, last in sampler.blocks(state.count, target, width):
            self._take(first, last)
            self.tell()
        return state.count == target

    def _take(self, first: int, last: int) -> None:
        sampler, reading = self.question.sampler, self.question.reading
        block = sampler.tables.unknown(self.variants, first, last)
        row, place = np.nonzero(block.cells != NO_COUNTERFACTUAL)
        codes = block.inputs(row, place)
        earlier = self._earlier(codes, row, len(block))
        answers: list[Cells] = []
        for time in range(self.state.times):
            own = block.cells.copy(order="F")
            own[row, place] = self._run(codes, earlier[row], time, first)
            answers.append(reading.cells(own))
        outputs = np.stack(answers, axis=2)
        rates = None
        if reading.has_favourable:
            least, most = reading.favourable_ends(outputs)
            rates = least.mean(axis=2), most.mean(axis=2)
        numbers = np.where(outputs < 0, UNKNOWN, outputs.astype(np.int64))
        numbers[outputs == NO_COUNTERFACTUAL] = IMPOSSIBLE
        self.state.add(numbers, rates)

    def _run(self, codes: NDArray[Any], earlier: NDArray[np.int64], time: int, block: int) -> Cells:
        """Ask these inputs once more, in random order; contexts that were met before come last."""
        runner, base = self.question.sampler.runner, self.question.sampler.base
        cells = np.empty(len(codes), dtype=runner.labels.dtype)
        order = base.generator(MIXING, block, time).permutation(len(codes))
        for number in np.unique(earlier).tolist():
            if runner.must_not_begin:
                raise BudgetEndedError
            chosen = order[earlier[order] == number]
            again = self._first_time + 8 * number + time  # asked up to eight times in one
            cells[chosen] = runner.perform(codes[chosen], again=again)
        return cells

    def _earlier(self, codes: NDArray[Any], row: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
        """How often each context was asked before: only what is new to a cache is asked anew."""
        earlier = np.zeros(rows, dtype=np.int64)
        if self.question.sampler.runner.recall is None:
            return earlier
        keys = self.question.sampler.runner.memory.keys.of(codes).tolist()
        ends = np.cumsum(np.bincount(row, minlength=rows)).tolist()
        start = 0
        for number, end in enumerate(ends):
            own = keys[start:end]
            earlier[number] = max((self._asked.get(each, 0) for each in own), default=0)
            self._asked |= dict.fromkeys(own, int(earlier[number]) + 1)
            start = end
        return earlier

    def tell(self) -> None:
        """Report progress."""
        state = self.state
        width = (state.high - state.low) / (2.0 * state.rule.error)
        expected = max(state.count, int(state.count * width**2))
        self.question.tell(state.count, expected, lambda: (state.low, state.high))

    def score(self, stopped: Ending) -> ExcessScore:
        """The score with what stands beside it."""
        state, question = self.state, self.question
        shown = state.shown()
        interval = state.interval if state.count else Interval(0.0, 0.0, 1.0)
        beside: dict[str, Any] = {}
        if shown is not None:
            beside = {name: _share(getattr(shown, name)) for name in ("within", "across", "gap")}
            labels = Labels(self.variants.assignments, self.variants.levels)
            beside["pair"] = tuple(labels[place] for place in shown.pair)
        return ExcessScore(
            **question.fields(interval, method="sampled", stopped=stopped, samples=state.count),
            followed=question.assignments.followed_names,
            unknown=state.unknown,
            times=state.times,
            **beside,
        )


def _share(interval: Interval | None) -> Share | None:
    return None if interval is None else Share(interval.score, interval.low, interval.high)
