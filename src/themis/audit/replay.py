"""Replaying: saved tests are run against the subject as it is now, and compared with then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.audit.notes import executor_of
from themis.audit.saved_tests import SavedTests, as_written
from themis.engine.answers import TooManyFailuresError
from themis.engine.runner import Runner
from themis.engine.suite_files import plain_text
from themis.engine.suites import output_names
from themis.errors import SubjectError
from themis.events import InputsReplayed, Listener, ignore
from themis.inputs.assignments import Assignments, Places
from themis.inputs.keys import InputKeys
from themis.results.notes import Ending, Note
from themis.results.replays import AT_RANDOM, STATES, Replay, ReplayedSet, ReplayedTest, TestState
from themis.scores.question import ending_early
from themis.statistics.reruns import lasts_beyond_noise
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.labels import Part, bare_text

SHOWN_STATES: tuple[TestState, ...] = ("new", "still", "failed", "fixed")
FAILING: tuple[TestState, ...] = ("new", "still")


@dataclass(frozen=True)
class Side:
    """One output then or now: the number of each row's value, negative where there is none."""

    numbers: Places
    values: Callable[[int], Any]
    part: Part | None

    def apart(self, rows: Places, others: Places) -> NDArray[np.float64]:
        """How far rows with an output are from these rows; 0 where they do not differ."""
        own, other = self.numbers[rows], self.numbers[others]
        if self.part is None or self.part.output.distance == "exact":
            return np.asarray(own != other, dtype=float)
        return self.part.distances(own, other)

    def differing(self, rows: Places, others: Places) -> NDArray[np.bool_]:
        """Whether rows with an output have another one than these rows."""
        return self.apart(rows, others) > 0

    def extremes(self, rows: Places) -> tuple[int, int] | None:
        """Of rows with an output two that are far apart; None where none is unlike the first.

        Of numbers the least and the largest, else the first and the one farthest from it.
        """
        if not len(rows):
            return None
        first, second = 0, int(self.apart(rows, np.repeat(rows[:1], len(rows))).argmax())
        if self.is_number:
            numbers = self.number_of(rows)
            first, second = sorted((int(numbers.argmin()), int(numbers.argmax())))
        pair = rows[[first, second]]
        return (int(pair[0]), int(pair[1])) if self.differing(pair[:1], pair[1:]).any() else None

    def differs_alike(
        self, first: Places, second: Places, first_now: Places, second_now: Places
    ) -> NDArray[np.bool_]:
        """Whether rows that differed do so again: of numbers, the same one of the two has more."""
        if not self.is_number:
            return ~self.differing(first, first_now) & ~self.differing(second, second_now)
        more = np.sign(self.number_of(first) - self.number_of(second))
        again = np.sign(self.number_of(first_now) - self.number_of(second_now))
        return np.asarray(self.differing(first_now, second_now) & (more == again))

    @property
    def is_number(self) -> bool:
        """Whether the output is a number."""
        return self.part is not None and self.part.output.numeric

    def number_of(self, rows: Places) -> NDArray[np.float64]:
        """The outputs of rows that have one, where they are numbers."""
        return np.array([self.values(each) for each in self.numbers[rows].tolist()], dtype=float)

    def value(self, row: int) -> Any:
        """The output of one row, None where there is none."""
        number = int(self.numbers[row])
        return self.values(number) if number >= 0 else None


class Outcome:
    """What then and now say about each test."""

    def __init__(self, saved: SavedTests, now: Places, runner: Runner) -> None:
        self.saved, self.now, self.runner = saved, now, runner
        order = np.lexsort((~saved.base, saved.tests))  # by test, a base input first
        self.order = order[saved.tests[order] >= 0]
        tests = saved.tests[self.order]
        self.starts = np.flatnonzero(np.diff(tests, prepend=-1))
        self.stops = np.append(self.starts[1:], len(tests))
        self.numbers = tests[self.starts]
        self.then = [
            Side(each.numbers, each.values.__getitem__, each.part) for each in saved.outputs
        ]
        self.later = list(sides_now(runner, now))
        self.states = self._classify()
        self.shown: dict[int, tuple[int, int]] = {}  # rows of tests that were run again

    def pairs_of(self, test: int, sides: Sequence[Side]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Two rows of a test that differ, by the output in which they do."""
        rows = self._rows_of(test)
        only = self.saved.only[int(self.numbers[test])]
        for place, side in enumerate(sides):
            if only in (None, place):
                pair = side.extremes(rows[side.numbers[rows] >= 0])
                if pair is not None:
                    yield place, pair

    def _rows_of(self, test: int) -> Places:
        """The usable rows of a test, its base input first."""
        rows = self.order[self.starts[test] : self.stops[test]]
        return rows[self.saved.usable[rows]]

    def _classify(self) -> NDArray[np.int64]:
        """The place in STATES of each test; of tests with one row, −1: there is nothing to tell."""
        usable, now = self.saved.usable[self.order], self.now[self.order]
        did = self.did = self._differ(self.then, usable)
        does = self._differ(self.later, usable)
        failed = self._any(usable & (now == FAILED))
        did_at_all = self._differ(self.then, np.ones_like(usable))
        lost = (did_at_all != did) | (self._reduce(np.add, usable.astype(np.int64)) < 2)
        choices: list[tuple[NDArray[np.bool_], TestState]] = [
            (does & did, "still"),
            (does, "new"),
            (self._any(~usable) & lost, "unknown"),
            (self._any(usable & (now == NOT_RUN)), "not run"),
            (failed, "failed"),
            (did, "fixed"),
        ]
        states = np.select(
            [chosen for chosen, _ in choices],
            [STATES.index(state) for _, state in choices],
            STATES.index("same"),
        )
        states[(self.stops - self.starts) < 2] = -1
        return states

    def _differ(self, sides: Sequence[Side], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which tests have, in some output that they are about, a row unlike the first."""
        found = np.zeros(len(self.starts), dtype=bool)
        for place, side in enumerate(sides):
            found |= self._any(self._unlike_first(side, chosen)) & self._concerned(place)
        return found

    def _concerned(self, place: int) -> NDArray[np.bool_]:
        """Which tests are about this output: all that are not about another one alone."""
        only = np.array([each in (None, place) for each in self.saved.only], dtype=bool)
        return only[self.numbers]

    def _unlike_first(self, side: Side, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows, by test, have another output than their test's first one that has one."""
        decided = chosen & (side.numbers[self.order] >= 0)
        places = np.arange(len(self.order))
        first = self._reduce(np.minimum, np.where(decided, places, len(places)))
        reference = np.repeat(first, self.stops - self.starts)[decided]
        unlike = np.zeros(len(self.order), dtype=bool)
        if decided.any():
            unlike[decided] = side.differing(self.order[decided], self.order[reference])
        return unlike

    def _any(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return self._reduce(np.logical_or, marked).astype(bool)

    def _reduce(self, how: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        if not len(self.starts):
            return np.zeros(0, dtype=np.int64)
        reduced: NDArray[Any] = how.reduceat(values, self.starts)
        return reduced

    def by_set(self) -> Iterator[ReplayedSet]:
        """The counts of each set, in the order in which sets first appear."""
        sets = [self.saved.sets[number] for number in self.numbers.tolist()]
        places: dict[tuple[str, ...], int] = {}
        which = np.array([places.setdefault(each, len(places)) for each in sets], dtype=np.int64)
        for against, place in places.items():
            found = self.states[(which == place) & (self.states >= 0)]
            counts = np.bincount(found, minlength=len(STATES)).tolist()
            states = {state: n for state, n in zip(STATES, counts, strict=True) if n}
            if len(found):
                yield ReplayedSet(against, len(found), states, self._followed(against))

    def _followed(self, against: tuple[str, ...]) -> tuple[str, ...]:
        """What the schema, as it is now, changes with a set."""
        schema = self.runner.schema
        columns = [schema.column_by_name[name] for name in against if name in schema.names]
        return Assignments(schema, tuple(columns)).followed_names

    def examples(self) -> Iterator[ReplayedTest]:
        """The first tests of each state that is worth showing."""
        for state in SHOWN_STATES:
            found = np.flatnonzero(self.states == STATES.index(state))
            for test in found[:5].tolist():
                first, second = self._pair(state, test)
                schema, codes = self.runner.schema, self.saved.codes
                yield ReplayedTest(
                    state,
                    self.saved.sets[int(self.numbers[test])],
                    (schema.decode_row(codes[first]), schema.decode_row(codes[second])),
                    (self._output(self.then, first), self._output(self.then, second)),
                    (self._output(self.later, first), self._output(self.later, second)),
                )

    def _pair(self, state: TestState, test: int) -> tuple[int, int]:
        """Two rows with different outputs; of a failed test, one that failed and another."""
        if test in self.shown:
            return self.shown[test]
        if state == "failed":
            rows = self._rows_of(test)
            first = int(rows[self.now[rows] == FAILED][0])
            return first, int(rows[rows != first][0])
        sides = self.then if state == "fixed" else self.later
        return next(pair for _, pair in self.pairs_of(test, sides))

    def _output(self, sides: Sequence[Side], row: int) -> Any:
        """The output of a row; by name where there are several."""
        if len(sides) == 1:
            return sides[0].value(row)
        names = output_names(self.runner.labels)
        values = {name: side.value(row) for name, side in zip(names, sides, strict=True)}
        known = {name: value for name, value in values.items() if value is not None}
        return known or None

    def changed(self, rows: Places) -> int:
        """How many of these inputs got another output than before; failures are no outputs."""
        sides = list(zip(self.then, self.later, strict=True))
        return sum(any(_differs(*both, row) for both in sides) for row in rows.tolist())


def _differs(then: Side, later: Side, row: int) -> bool:
    """Whether a row has an output then and now, and a suite has another text of it."""
    if then.numbers[row] < 0 or later.numbers[row] < 0:
        return False
    first, second = (bare_text(as_written(plain_text(side.value(row)))) for side in (then, later))
    return bool(first != second)


def sides_now(runner: Runner, now: Places) -> Iterator[Side]:
    labels = runner.labels
    if not labels.declared:
        yield Side(now, labels.labels.__getitem__, None)
        return
    for place, part in enumerate(labels.parts):
        numbers = labels.part_cells(place, now).astype(np.int64)
        yield Side(numbers, part.labels.__getitem__, part)


def unique_rows(codes: NDArray[np.int64]) -> tuple[Places, Places]:
    """The places of the first of equal rows, in order; and for each row, which of them it is."""
    keys = InputKeys.among(codes).of(codes)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]


ALPHA = 0.01  # that something of a subject that does not discriminate is confirmed

Flags: TypeAlias = NDArray[np.bool_]


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
    fingerprint = runner.subject.fingerprint()
    is_same = saved.fingerprint is not None and saved.fingerprint == fingerprint
    known = [*saved.notes, *([Note.of("same-subject")] if is_same else [])]
    result = Replay(
        source=saved.source,
        kind=saved.kind,
        subject={"kind": runner.subject.kind, "fingerprint": fingerprint},
        sets=tuple(outcome.by_set()),
        examples=tuple(outcome.examples()),
        inputs=int((cells != NOT_RUN).sum()),
        changed=outcome.changed(usable[first]),
        executions=runner.executions - before[0],
        cache_hits=runner.cache_hits - before[1],
        stopped=stopped,
        failures=runner.failures.to_dict(runner.subject),
        unknown_rows=dict(saved.reasons),
        notes=(*known, *_answers_at_random(outcome)),
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
    failing = np.flatnonzero(np.isin(outcome.states, [STATES.index(e) for e in FAILING]))
    outcome.states[failing] = STATES.index("unconfirmed")
    if stopped in (Ending.DONE, Ending.BUDGET):
        confirmation = Confirmation(outcome, failing)
        again = _ending_of(confirmation.run, keeps_interrupts=keeps_interrupts)
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


class Confirmation:
    """Pairs of saved tests that differ, to be run again, until they are more than noise leaves.

    A test that could not be run again often enough, as the budget ended, stays unconfirmed.
    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves. A kind is an output in which tests differ, and whether they did
    before. Of a test with several pairs, one is enough.
    """

    def __init__(self, outcome: Outcome, failing: Places) -> None:
        self.outcome, self.times = outcome, count(1)
        found = [
            (*pair, output, test)
            for test in failing.tolist()
            for output, pair in outcome.pairs_of(test, outcome.later)
        ]
        first, second, self.outputs, self.tests = np.array(found, dtype=np.int64).reshape(-1, 4).T
        self.rows = np.stack([first, second], axis=1)
        places, numbers = unique_rows(outcome.saved.codes[self.rows.reshape(-1)])
        self.one_of_each = self.rows.reshape(-1)[places]  # a row of each input
        self.inputs = numbers.reshape(-1, 2)
        self.first = outcome.now[self.one_of_each].astype(outcome.runner.labels.dtype)
        kinds = 2 * self.outputs + outcome.did[self.tests]
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
        cells[asked] = self._again(self.one_of_each[asked])
        known, same = self._compare(active, cells)  # a failure says nothing of chance
        self.lasting[active[known & ~same]] = False
        return same, not (cells[asked] == NOT_RUN).any()

    def _again(self, rows: Places) -> Cells:
        """The cells of these rows once more, in another order: NOT_RUN where the budget ended."""
        time, runner = next(self.times), self.outcome.runner
        order = np.random.default_rng([len(rows), time]).permutation(len(rows))
        cells = np.full(len(rows), NOT_RUN, dtype=runner.labels.dtype)
        codes = self.outcome.saved.codes[rows[order]]
        _run(runner, codes, cells, partial(runner.repeat, again=time))
        return cells[np.argsort(order)]

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


def _answers_at_random(outcome: Outcome) -> Iterator[Note]:
    """Said where many tests discriminate once, and not each time when they are run again."""
    counts = np.bincount(outcome.states[outcome.states >= 0], minlength=len(STATES)).tolist()
    found = dict(zip(STATES, counts, strict=True))
    lasting = found["still"] + found["new"]
    tests = found["unclear"] + found["unconfirmed"] + lasting
    # A tenth of the tests that discriminate once, but not each time, are noise.
    if found["unclear"] >= max(2, 0.1 * tests):
        yield Note.of(AT_RANDOM, tests=tests, unclear=found["unclear"], lasting=lasting)
