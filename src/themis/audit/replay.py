"""Replaying: saved tests are run against the subject as it is now, and compared with then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.audit.notes import executor_of
from themis.audit.outcomes import Outcome, Pairs, sides_now, unique_rows
from themis.audit.saved_tests import SavedTests
from themis.engine.answers import TooManyFailuresError
from themis.engine.runner import Runner
from themis.errors import SubjectError
from themis.events import InputsReplayed, Listener, ignore
from themis.inputs.assignments import Places
from themis.results.notes import Ending, Note
from themis.results.replays import AT_RANDOM, STATES, Replay
from themis.scores.question import ending_early
from themis.statistics.reruns import lasts_beyond_noise
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells

ALPHA = 0.01  # that something of a subject that does not discriminate is confirmed

Flags: TypeAlias = NDArray[np.bool_]
# The cells of these rows of the saved tests, run once more: NOT_RUN where the budget ended before.
Again: TypeAlias = Callable[[Places], Cells]


def replay_tests(
    runner: Runner,
    saved: SavedTests,
    *,
    listen: Listener = ignore,
    keep_on_interrupt: bool = False,
    rows: bool = False,
) -> Replay:
    """Run every input of the tests afresh, and say what became of the tests.

    Then two inputs of each test that would fail are run again: what does not fail again is unclear,
    and what could not be run again is unconfirmed. If it depends on chance whether they fail again,
    they are run until those that always do are more than noise leaves.

    What the runner remembers of this process is not used: the subject may have changed. Raises
    SubjectError, with what was learned, when the subject fails too often. `rows` allows documents
    to show rows of people.
    """
    runner.failures.personal = saved.personal and not rows
    started, clock = datetime.now(UTC), time.monotonic()
    before = runner.executions, runner.cache_hits
    usable = np.flatnonzero(saved.usable)
    first, inverse = unique_rows(saved.codes[usable])
    cells = np.full(len(first), NOT_RUN, dtype=runner.labels.dtype)
    run_all = partial(_run, runner, saved.codes[usable[first]], cells, runner.perform, listen)
    stopped = _ending_of(run_all, keeps_interrupts=keep_on_interrupt)
    now = np.full(len(saved.codes), NOT_RUN, dtype=np.int64)
    now[usable] = cells[inverse]
    outcome = Outcome(saved, now, runner)
    stopped = _confirmed(outcome, stopped, keeps_interrupts=keep_on_interrupt)
    result = Replay(
        source=saved.source,
        kind=saved.kind,
        subject={"kind": runner.subject.kind, "fingerprint": runner.subject.fingerprint()},
        sets=tuple(outcome.by_set()),
        examples=tuple(outcome.examples()),
        inputs=int((cells != NOT_RUN).sum()),
        changed=outcome.changed(usable[first]),
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
    )
    if stopped is Ending.FAILED:
        raise SubjectError(runner.failure_message(), result=result)
    return result


def _confirmed(outcome: Outcome, stopped: Ending, *, keeps_interrupts: bool) -> Ending:
    """Run what would fail again, unless the run ended before; why all of it ended."""
    failing = np.flatnonzero(outcome.failing)
    outcome.states[failing] = STATES.index("unconfirmed")
    if stopped in (Ending.DONE, Ending.BUDGET):
        confirm = partial(_confirm, outcome, failing)
        again = _ending_of(confirm, keeps_interrupts=keeps_interrupts)
        stopped = stopped if again is Ending.DONE else again
    return Ending.FAILED if outcome.runner.fails_too_often else stopped


def _ending_of(work: Callable[[], bool], *, keeps_interrupts: bool) -> Ending:
    """Why something ended that says whether its budget was enough."""
    try:
        with ending_early(keeps_interrupts=keeps_interrupts) as early:
            early.ending = None if work() else Ending.BUDGET
    except TooManyFailuresError:
        return Ending.FAILED
    return early.ending or Ending.DONE


def _run(
    runner: Runner,
    inputs: NDArray[Any],
    cells: Cells,
    perform: Callable[[NDArray[Any]], Cells],
    listen: Listener = ignore,
) -> bool:
    """Run inputs call by call as far as the budget goes; whether it was enough for all."""
    place = 0
    while place < len(inputs):
        size = int(min(runner.batch_size, len(inputs) - place, runner.executions_left))
        if size < 1 or runner.out_of_time:
            return False
        runner.heed()
        part = slice(place, place + min(size, runner.size_of_next(size)))
        try:
            cells[part] = perform(inputs[part])
        except BudgetEndedError:
            return False
        place = part.stop
        listen(InputsReplayed(place, len(inputs)))
    return True


def _confirm(outcome: Outcome, failing: Places) -> bool:
    """Run a pair of each of these tests again, in other orders, and note which fail each time.

    A test that was not run again often enough stays unconfirmed. False if the budget ended.
    """
    times, runner = count(1), outcome.runner

    def again(rows: Places) -> Cells:
        time = next(times)
        order = np.random.default_rng([len(rows), time]).permutation(len(rows))
        cells = np.full(len(rows), NOT_RUN, dtype=runner.labels.dtype)
        codes = outcome.saved.codes[rows[order]]
        _run(runner, codes, cells, partial(runner.repeat, again=time))
        return cells[np.argsort(order)]

    return Confirmation(outcome, outcome.differing_pairs(failing), again).run()


class Confirmation:
    """Pairs of saved tests that differ, to be run again, until they are more than noise leaves.

    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves. A kind is an output in which tests differ, and whether they did
    before. Of a test with several pairs, one is enough.
    """

    def __init__(self, outcome: Outcome, pairs: Pairs, again: Again) -> None:
        self.outcome, self.tests, self.rows, self.again = outcome, pairs.tests, pairs.rows, again
        self.outputs = pairs.outputs
        places, numbers = unique_rows(outcome.saved.codes[pairs.rows.reshape(-1)])
        self.one_of_each = pairs.rows.reshape(-1)[places]  # a row of each input
        self.inputs = numbers.reshape(-1, 2)
        self.first = outcome.now[self.one_of_each].astype(outcome.runner.labels.dtype)
        kinds = 2 * pairs.outputs + outcome.did[pairs.tests]
        self.kinds: list[Flags] = [kinds == kind for kind in np.unique(kinds)]
        self.alpha = ALPHA / max(len(self.kinds), 1)
        self.apart = np.zeros(len(kinds), dtype=bool)  # no two of these of one kind share an input
        for own in self.kinds:
            self.apart[own] = sharing_none(self.inputs[own])
        self.lasting = np.ones(len(kinds), dtype=bool)  # came out the same so far
        self.confirmed = np.zeros(len(kinds), dtype=bool)

    def run(self) -> bool:
        """Run the pairs again as often as it takes; whether the budget was enough for that."""
        active, reruns, enough = np.arange(len(self.tests)), 0, True
        try:
            while active.size and enough:
                reruns += 1
                same, enough = self._rerun(active)
                active = active[same]
                self._judge(active, reruns)
                active = active[~np.isin(self.tests[active], self.tests[self.confirmed])]
        finally:  # also where it is interrupted, or fails too often
            self._tell()
        return enough

    def _rerun(self, active: Places) -> tuple[Flags, bool]:
        """Which of these pairs came out the same once more; whether the budget was enough."""
        asked = np.unique(self.inputs[active])
        cells = np.full(len(self.first), NOT_RUN, dtype=self.first.dtype)
        cells[asked] = self.again(self.one_of_each[asked])
        known, same = self._compare(active, cells)  # a failure says nothing of chance
        self.lasting[active[known & ~same]] = False
        return same, not (cells[asked] == NOT_RUN).any()

    def _compare(self, which: Places, now: Cells) -> tuple[Flags, Flags]:
        """Which pairs have an output, then and now; which differ in it as they did."""
        outputs, pairs, size = self.outputs[which], self.inputs[which].T, len(which)
        cells = np.concatenate([self.first[pairs].reshape(-1), now[pairs].reshape(-1)])
        places = np.arange(4 * size).reshape(4, size)
        known, same = np.zeros((2, size), dtype=bool)
        for output, side in enumerate(sides_now(self.outcome.runner, cells)):
            has = (side.numbers.reshape(4, size) >= 0).all(axis=0) & (outputs == output)
            known |= has
            same[has] = side.differs_alike(*places[:, has]) if has.any() else False
        return known, same

    def _judge(self, came: Places, reruns: int) -> None:
        """Confirm pairs that came out the same in all reruns, if noise would leave fewer."""
        for own in self.kinds:
            lasting = came[own[came]]
            self.confirmed[lasting] |= lasts_beyond_noise(
                len(lasting),
                int(own.sum()),
                int(self.apart[lasting].sum()),
                reruns,
                self.alpha,
                all_last=bool(self.lasting[own].all()),
            )

    def _tell(self) -> None:
        """Say what became of the tests; what was not run again often enough is left as it is."""
        outcome = self.outcome
        outcome.states[self.tests[~self.lasting]] = STATES.index("unclear")
        for place in np.flatnonzero(self.confirmed).tolist():
            test = int(self.tests[place])
            outcome.states[test] = STATES.index("still" if outcome.did[test] else "new")
            outcome.shown.setdefault(test, tuple(self.rows[place].tolist()))


def sharing_none(pairs: NDArray[np.int64]) -> Flags:
    """Pairs of which no two share an input: each that shares none with those before it."""
    taken: set[int] = set()
    apart = np.zeros(len(pairs), dtype=bool)
    for place, pair in enumerate(pairs.tolist()):
        if taken.isdisjoint(pair):
            taken.update(pair)
            apart[place] = True
    return apart


def _unchanged_subject(saved: SavedTests, runner: Runner) -> Iterator[Note]:
    if saved.fingerprint is not None and saved.fingerprint == runner.subject.fingerprint():
        yield Note.of("same-subject")


def _answers_at_random(outcome: Outcome) -> Iterator[Note]:
    """Said where many tests discriminate once, and not each time when they are run again."""
    counts = np.bincount(outcome.states[outcome.states >= 0], minlength=len(STATES)).tolist()
    found = dict(zip(STATES, counts, strict=True))
    lasting = found["still"] + found["new"]
    tests = found["unclear"] + found["unconfirmed"] + lasting
    # A tenth of the tests that discriminate once, but not each time, are noise.
    if found["unclear"] >= max(2, 0.1 * tests):
        yield Note.of(AT_RANDOM, tests=tests, unclear=found["unclear"], lasting=lasting)
