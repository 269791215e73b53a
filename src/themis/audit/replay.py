"""Replaying: saved tests are run against the subject as it is now, and compared with then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.confirming import (
    FIRST,
    MARGIN,
    ONE_PAIR,
    SECOND,
    Confirmation,
    Flags,
    affordable,
    unique_rows,
)
from themis.audit.notes import executor_of
from themis.audit.outcomes import Outcome, Pairs, sides_now
from themis.audit.saved_tests import SavedTests
from themis.engine.failures import TooManyFailuresError, number_answers
from themis.engine.runner import RESERVED_SECONDS, Runner
from themis.errors import SubjectError
from themis.inputs.assignments import Places
from themis.results.notes import Ending, Note
from themis.results.replays import AT_RANDOM, STATES, Replay
from themis.scores.early_ends import ending_early
from themis.subjects.decisions import NOT_RUN, Cells

RANDOM = 0.1  # of the tests that discriminate once: so many that do not each time are noise
LOOKS = 8  # where time is limited, this part of what was run is run before the next look
LOOKING = 2.0  # of the time that a look takes is kept back for the next, and what comes after it
SPARE = 0.05  # of the time is kept back for what comes between two calls
UNCONFIRMED = STATES.index("unconfirmed")

Listener = Callable[[int, int], None]  # inputs run so far, and all of them


def replay_tests(
    runner: Runner,
    saved: SavedTests,
    *,
    listen: Listener | None = None,
    keep_on_interrupt: bool = False,
    rows: bool = False,
) -> Replay:
    """Run every input of the tests afresh, and say what became of the tests.

    Two inputs of each test that would fail are run again: what does not fail again is unclear, and
    what could not be run again is unconfirmed. If it depends on chance whether they fail again,
    they are run until those that always do are more than noise leaves.

    What the runner remembers of this process is not used: the subject may have changed. Raises
    SubjectError, with what was learned, when the subject fails too often. `rows` allows documents
    to show rows of people.
    """
    runner.failures.personal = saved.personal and not rows
    started, clock = datetime.now(UTC), time.monotonic()
    before = runner.executions, runner.cache_hits
    run = _Run.of(runner, saved)
    outcome, stopped = _run_and_check(run, listen, keep_on_interrupt)
    stopped = Ending.FAILED if runner.fails_too_often else stopped
    result = Replay(
        source=saved.source,
        kind=saved.kind,
        subject={"kind": runner.subject.kind, "fingerprint": runner.subject.fingerprint()},
        sets=tuple(outcome.by_set()),
        examples=tuple(outcome.examples()),
        inputs=int((run.cells != NOT_RUN).sum()),
        changed=outcome.changed(run.rows[run.first]),
        executions=runner.executions - before[0],
        cache_hits=runner.cache_hits - before[1],
        stopped=stopped,
        failures=runner.failures.to_dict(runner.subject),
        unknown_rows=dict(saved.reasons),
        notes=(*saved.notes, *_unchanged_subject(saved, runner), *_answers_at_random(outcome)),
        timing={
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "executor": executor_of(runner.subject),
        },
        personal=saved.personal,
        rows=rows,
        shared=tuple(outcome.shared_outputs()) if saved.personal else (),
    )
    if stopped is Ending.FAILED:
        raise SubjectError(runner.failure_message(), result=result)
    return result


def _run_and_check(
    run: _Run, listen: Listener | None, keeps_interrupts: bool
) -> tuple[Outcome, Ending]:
    """Run the tests, run again those that fail, and use what is left for further tests."""
    stopped = _ending_of(lambda: run.go(listen), keeps_interrupts)
    outcome = run.outcome()
    if stopped in (Ending.INTERRUPTED, Ending.FAILED):
        outcome.states[outcome.failing] = UNCONFIRMED
        return outcome, stopped
    checked = _ending_of(lambda: _check_failing(outcome, run), keeps_interrupts)
    if stopped is Ending.DONE or checked in (Ending.INTERRUPTED, Ending.FAILED):
        return outcome, stopped if checked is Ending.DONE else checked
    stopped = _ending_of(lambda: run.go_on(listen), keeps_interrupts)
    later = run.outcome()
    found = later.keep_judged(outcome)
    if stopped is Ending.DONE and (found or checked is Ending.BUDGET):
        stopped = Ending.BUDGET
    return later, stopped


def _ending_of(work: Callable[[], bool], keeps_interrupts: bool) -> Ending:
    """Why something ended that says whether its budget was enough."""
    try:
        with ending_early(keeps_interrupts=keeps_interrupts) as early:
            early.ending = None if work() else Ending.BUDGET
    except TooManyFailuresError:
        return Ending.FAILED
    return early.ending or Ending.DONE


@dataclass
class _Run:
    """The different inputs of the tests, and what they give now."""

    runner: Runner
    saved: SavedTests
    rows: Places  # those of the file that can be run
    first: Places  # of these, the first of equal ones
    inverse: Places  # of each, which of them it is
    inputs: NDArray[Any]
    cells: Cells
    seconds: float  # that the budget allows
    place: int = 0  # of the next input to run

    @classmethod
    def of(cls, runner: Runner, saved: SavedTests) -> _Run:
        rows = np.flatnonzero(saved.usable)
        first, inverse = unique_rows(saved.codes[rows])
        cells = np.full(len(first), NOT_RUN, dtype=runner.labels.dtype)
        inputs, seconds = saved.codes[rows[first]], runner.seconds_left
        return cls(runner, saved, rows, first, inverse, inputs, cells, seconds)

    def go(self, listen: Listener | None) -> bool:
        """Run the inputs in their order, in place; whether the budget was enough for all.

        What it takes to run again what has failed so far is kept back.
        """
        while self.place < len(self.inputs):
            goal = self._plan()
            if goal <= self.place or not self._run_up_to(goal, listen):
                return False
        return True

    def go_on(self, listen: Listener | None) -> bool:
        """Run further inputs with what is left once failing tests were run again."""
        self.runner.reserved = 0
        return self._run_up_to(len(self.inputs), listen)

    def _run_up_to(self, goal: int, listen: Listener | None) -> bool:
        """Run the inputs before this place, as far as the budget goes; whether that was enough."""
        runner = self.runner
        while self.place < goal:
            size = int(min(runner.batch_size, goal - self.place, runner.executions_left))
            if size < 1 or runner.out_of_time:
                return False
            part = slice(self.place, self.place + size)
            self._perform(self.inputs[part], self.cells[part])
            self.place += size
            if listen is not None:
                listen(self.place, len(self.inputs))
        return True

    def _plan(self) -> int:
        """Up to which input to run before the next look, keeping back what has failed by now needs.

        No input before it would be left out if there was a look after each, whatever fails.
        """
        runner, place, end = self.runner, self.place, len(self.inputs)
        runner.reserved = 0
        timed, began = math.isfinite(runner.seconds_left), time.monotonic()
        if not timed and math.isinf(runner.executions_left):
            return end
        outcome = self.outcome()
        pairs = outcome.pairs_to_confirm(self.at)
        kept = self._kept(outcome, pairs)
        looks = LOOKING * (time.monotonic() - began)
        spare = max(looks, min(SPARE * self.seconds, RESERVED_SECONDS)) if timed else 0.0
        left = affordable(runner, spare)
        if not len(pairs.tests) and left <= ONE_PAIR:  # what fails from now on stays unconfirmed
            return min(end, place + int(left))
        goal = place + int(np.searchsorted(kept + np.arange(1, end - place + 1), left, "right"))
        runner.reserved = int(kept[0])
        if timed:  # an input may take longer than those before it
            goal = min(goal, place + max(runner.batch_size, place // LOOKS))
            each = runner.runs * (runner.seconds_per_execution or math.inf)
            runner.reserved = math.ceil(MARGIN * kept[0] + spare / each) if kept[0] else 0
        return goal

    def _kept(self, outcome: Outcome, pairs: Pairs) -> Places:
        """What it takes to run again what has failed, now and at most after 1, 2, 3 … inputs."""
        place, end = self.place, len(self.inputs)
        first, last = outcome.ends(self.at)
        ahead = (last > first) & (last >= place)
        checked = outcome.confirmation(pairs)
        kinds = set(checked.kinds.tolist())
        for output in range(len(outcome.later)):
            kinds |= {2 * output + did for did in np.unique(outcome.did[ahead]).tolist()}
        more = np.searchsorted(np.sort(last[ahead]), np.arange(place, end))
        kept = checked.needs_at_most(more, len(kinds), self.most_shared)
        kept[0] = checked.needs()[-1] if len(pairs.tests) else 0
        return kept

    @cached_property
    def at(self) -> Places:
        """Which of the inputs each row of the file is; −1 where it can not be run."""
        at = np.full(len(self.saved.codes), -1)
        at[self.rows] = self.inverse
        return at

    @cached_property
    def most_shared(self) -> int:
        """In how many tests the input is that is in most."""
        tested = np.flatnonzero((self.at >= 0) & (self.saved.tests >= 0))
        pairs = np.unique(np.stack([self.at[tested], self.saved.tests[tested]]), axis=1)
        return int(np.bincount(pairs[0]).max(initial=1))

    def outcome(self) -> Outcome:
        """What became of the tests, as far as they were run."""
        now = np.full(len(self.saved.codes), NOT_RUN, dtype=np.int64)
        now[self.rows] = self.cells[self.inverse]
        return Outcome(self.saved, now, self.runner)

    def _perform(self, inputs: NDArray[Any], cells: Cells) -> None:
        """Run a batch call by call; of one that is interrupted keep what was answered, if known."""
        first = 0
        while first < len(inputs):
            part = slice(first, first + self.runner.size_of_next(len(inputs)))
            self._call(inputs[part], cells[part])
            first = part.stop

    def _call(self, inputs: NDArray[Any], cells: Cells) -> None:
        try:
            cells[:] = self.runner.perform(inputs)
        except BaseException:
            answers = self.runner.subject.unfinished
            if answers is not None and self.runner.runs == 1:
                came = np.array([output is not None for output in answers.outputs], dtype=bool)
                came[list(answers.failures)] = True
                numbers = number_answers(self.runner.labels, answers)
                cells[: len(came)][came] = numbers[came]
            raise


def _check_failing(outcome: Outcome, run: _Run) -> bool:
    """Run failing tests again, in other orders; keep what fails again and again.

    Two inputs of each are run again first. Where these do not come out the same, others that differ
    are, in any output: what is noise in one pair may hide what is none in another.

    A test that was not run again often enough, since the budget ended or the subject failed, is no
    sign of noise: it is unconfirmed. False if the budget ended.
    """
    failing = outcome.failing
    if not failing.any():
        return True
    runner, pairs, times = run.runner, outcome.pairs_to_confirm(run.at), count(1)
    outcome.states[failing] = UNCONFIRMED
    with runner.spending_reserve():
        every = outcome.confirmation(pairs)
        first, last = every.within(affordable(runner))
        checked = every.part(slice(first), FIRST)
        enough = _confirm(outcome, pairs, checked, runner, times)
        others, rest = pairs.part(slice(first, last)), every.part(slice(first, last), SECOND)
        if not checked.lasting.all():
            others = outcome.other_pairs(checked.tests[~checked.lasting], pairs)
            rest, last = outcome.confirmation(others, alpha=SECOND), first
        enough &= _confirm(outcome, others, rest, runner, times)
    return enough and last == failing.sum()


def _confirm(
    outcome: Outcome, pairs: Pairs, checked: Confirmation, runner: Runner, times: Iterator[int]
) -> bool:
    """Run the first of these pairs again, and note what became of their tests."""
    before = np.empty(len(checked.codes), dtype=runner.labels.dtype)
    before[checked.inputs] = outcome.now[pairs.rows[: len(checked.tests)]]

    def again(then: Cells, now: Cells, which: Places) -> tuple[Flags, Flags]:
        return _came_again(runner, then, now, pairs.outputs[which])

    try:
        return checked.run(runner, before, again, times)
    finally:  # also where it is interrupted, or fails too often
        outcome.states[checked.tests[~checked.lasting]] = STATES.index("unclear")
        for place in np.flatnonzero(checked.confirmed).tolist():
            test = int(checked.tests[place])
            outcome.states[test] = STATES.index("still" if outcome.did[test] else "new")
            outcome.shown.setdefault(test, tuple(pairs.rows[place].tolist()))


def _came_again(runner: Runner, then: Cells, now: Cells, outputs: Places) -> tuple[Flags, Flags]:
    """Which pairs, by their cells then and now, have an output; which differ in it as they did.

    Of numbers, the same one of the two has more; other outputs are the same as they were.
    """
    size = len(then)
    cells = np.concatenate([then.T.reshape(-1), now.T.reshape(-1)])
    first, second, first_now, second_now = np.arange(4 * size).reshape(4, size)
    known, same = np.zeros((2, size), dtype=bool)
    for place, side in enumerate(sides_now(runner, cells)):
        has = (side.numbers.reshape(4, size) >= 0).all(axis=0) & (outputs == place)
        known |= has
        here = np.flatnonzero(has)
        if not len(here):
            continue
        a, b, c, d = first[here], second[here], first_now[here], second_now[here]
        if side.is_number:
            more = np.sign(side.number_of(a) - side.number_of(b))
            same[here] = side.differing(c, d)
            same[here] &= more == np.sign(side.number_of(c) - side.number_of(d))
        else:
            same[here] = ~side.differing(a, c) & ~side.differing(b, d)
    return known, same


def _unchanged_subject(saved: SavedTests, runner: Runner) -> Iterator[Note]:
    if saved.fingerprint is not None and saved.fingerprint == runner.subject.fingerprint():
        yield Note.of("same-subject")


def _answers_at_random(outcome: Outcome) -> Iterator[Note]:
    """Said where many tests discriminate once, and not each time when they are run again."""
    counts = np.bincount(outcome.states[outcome.states >= 0], minlength=len(STATES)).tolist()
    found = dict(zip(STATES, counts, strict=True))
    lasting = found["still"] + found["new"]
    tests = found["unclear"] + found["unconfirmed"] + lasting
    if found["unclear"] >= max(2, RANDOM * tests):
        yield Note.of(AT_RANDOM, tests=tests, unclear=found["unclear"], lasting=lasting)
