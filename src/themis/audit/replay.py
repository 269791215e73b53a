"""Replaying: saved tests are run against the subject as it is now, and compared with then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.confirming import FIRST, SECOND, Confirmation
from themis.audit.notes import executor_of
from themis.audit.outcomes import Outcome, unique_rows
from themis.audit.saved_tests import SavedTests
from themis.engine.failures import TooManyFailuresError, number_answers
from themis.engine.runner import Runner
from themis.errors import SubjectError
from themis.events import InputsReplayed, Listener, ignore
from themis.inputs.assignments import Places
from themis.results.notes import Ending, Note
from themis.results.replays import AT_RANDOM, STATES, Replay
from themis.scores.question import ending_early
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells


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
        shared=tuple(outcome.shared_outputs()) if saved.personal else (),
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
    """Run inputs call by call as far as the budget goes; whether it was enough for all.

    Of a call that is interrupted what was answered is kept, if it is known.
    """
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
        except BaseException:
            _keep_answered(runner, cells[part])
            raise
        place = part.stop
        listen(InputsReplayed(place, len(inputs)))
    return True


def _keep_answered(runner: Runner, cells: Cells) -> None:
    answers = runner.subject.unfinished
    if answers is not None and runner.runs == 1:
        came = np.array([output is not None for output in answers.outputs], dtype=bool)
        came[list(answers.failures)] = True
        cells[: len(came)][came] = number_answers(runner.labels, answers)[came]


def _confirm(outcome: Outcome, failing: Places) -> bool:
    """Run these tests again, in other orders, and note which fail again and again.

    One pair of each is run again first. Where it does not come out the same, the others that differ
    are, in any output: what is noise in one pair may hide what is none in another. A test that was
    not run again often enough stays unconfirmed. False if the budget ended.
    """
    pairs, times, runner = outcome.differing_pairs(failing), count(1), outcome.runner

    def again(rows: Places) -> Cells:
        time = next(times)
        order = np.random.default_rng([len(rows), time]).permutation(len(rows))
        cells = np.full(len(rows), NOT_RUN, dtype=runner.labels.dtype)
        codes = outcome.saved.codes[rows[order]]
        _run(runner, codes, cells, partial(runner.repeat, again=time))
        return cells[np.argsort(order)]

    first = np.zeros(len(pairs.tests), dtype=bool)
    first[np.unique(pairs.tests, return_index=True)[1]] = True
    one = Confirmation(outcome, pairs.part(first), FIRST, again)
    enough = one.run()
    fallen = np.isin(pairs.tests, one.tests[~one.lasting])
    return Confirmation(outcome, pairs.part(~first & fallen), SECOND, again).run() and enough


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
