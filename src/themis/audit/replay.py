"""Replaying: saved tests are run against the subject as it is now, and compared with then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.confirming import Confirmation, unique_rows
from themis.audit.notes import executor_of
from themis.audit.saved_tests import SavedTests
from themis.engine.failures import TooManyFailuresError, number_answers
from themis.engine.runner import Runner
from themis.engine.suite_files import plain_text
from themis.engine.suites import output_names
from themis.errors import SubjectError
from themis.inputs.assignments import Assignments, Places
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.results.notes import Ending, Note
from themis.results.parts import Rare
from themis.results.replays import AT_RANDOM, STATES, Replay, ReplayedSet, ReplayedTest, State
from themis.scores.early_ends import ending_early
from themis.subjects.answers import Part
from themis.subjects.decisions import FAILED, NOT_RUN, Cells, Labels
from themis.subjects.spelling import same_but_for_spelling

EXAMPLES = 5  # of each state that is worth showing
RANDOM = 0.1  # of the tests that discriminate once: so many that do not each time are noise
UNCONFIRMED = STATES.index("unconfirmed")
SHOWN_STATES: tuple[State, ...] = ("new", "still", "failed", "fixed")

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
    stopped, problem = Ending.DONE, None
    try:
        with ending_early(keeps_interrupts=keep_on_interrupt) as early:
            if not run.go(listen):
                stopped = Ending.BUDGET
        stopped = early.ending or stopped
    except TooManyFailuresError as error:
        problem = error
    outcome = run.outcome()
    if stopped is Ending.INTERRUPTED or problem is not None:
        outcome.states[outcome.failing] = UNCONFIRMED
    elif not _check_failing(outcome, runner):
        stopped = Ending.BUDGET
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
    if problem is not None or runner.fails_too_often:
        raise SubjectError(runner.failure_message(), result=result)
    return result


@dataclass
class _Run:
    """The different inputs of the tests, and what they give now."""

    runner: Runner
    saved: SavedTests
    rows: Places  # those of the file that can be run
    first: Places  # of these, the first of equal ones
    inverse: Places  # of each, which of them it is
    cells: Cells

    @classmethod
    def of(cls, runner: Runner, saved: SavedTests) -> _Run:
        rows = np.flatnonzero(saved.usable)
        first, inverse = unique_rows(saved.codes[rows])
        cells = np.full(len(first), NOT_RUN, dtype=runner.labels.dtype)
        return cls(runner, saved, rows, first, inverse, cells)

    def go(self, listen: Listener | None) -> bool:
        """Run the inputs in their order, in place; whether the budget was enough for all.

        What it takes to run again what would fail so far is kept back. As each further input
        may be one of these, half of what is left is run at a time.
        """
        inputs, place = self.saved.codes[self.rows[self.first]], 0
        while place < len(inputs):
            size = min(self.runner.batch_size, len(inputs) - place)
            size = int(min(size, (self.runner.executions_left + 1) / 2))
            if size < 1 or self.runner.out_of_time:
                return False
            self._perform(inputs[place : place + size], self.cells[place : place + size])
            place += size
            self._keep_back()
            if listen is not None:
                listen(place, len(inputs))
        return True

    def outcome(self) -> _Outcome:
        """What became of the tests, as far as they were run."""
        now = np.full(len(self.saved.codes), NOT_RUN, dtype=np.int64)
        now[self.rows] = self.cells[self.inverse]
        return _Outcome(self.saved, now, self.runner)

    def _perform(self, inputs: NDArray[Any], cells: Cells) -> None:
        """Run a batch; of one that is interrupted keep what was answered, where that is known."""
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

    def _keep_back(self) -> None:
        if math.isfinite(min(self.runner.executions_left, self.runner.seconds_left)):
            outcome = self.outcome()
            if outcome.failing.any():
                needed = outcome.failing_pairs().confirmation(outcome).executions()
                self.runner.reserved = needed


def _check_failing(outcome: _Outcome, runner: Runner) -> bool:
    """Run failing tests again, in other orders; keep what fails again and again.

    A test that was not run again often enough is no sign of noise: it is unconfirmed, since the
    budget ended. False then.
    """
    if not outcome.failing.any():
        return True
    pairs = outcome.failing_pairs()
    checked = pairs.confirmation(outcome)
    before = np.empty(len(checked.codes), dtype=runner.labels.dtype)
    before[checked.inputs] = outcome.now[pairs.rows]

    def again(then: Cells, now: Cells, which: Places) -> NDArray[np.bool_]:
        return _came_again(runner, then, now, pairs.outputs[which])

    with runner.spending_reserve():
        checked.run(runner, before, again)
    tests = np.flatnonzero(outcome.failing)
    outcome.states[tests[~checked.lasting]] = STATES.index("unclear")
    outcome.states[tests[checked.lasting & ~checked.confirmed]] = UNCONFIRMED
    return not (outcome.states == UNCONFIRMED).any()


def _came_again(runner: Runner, then: Cells, now: Cells, outputs: Places) -> NDArray[np.bool_]:
    """Which pairs, by their cells then and now, differ in an output as they did.

    Of numbers, the same one of the two has more; other outputs are the same as they were.
    """
    size = len(then)
    cells = np.concatenate([then.T.reshape(-1), now.T.reshape(-1)])
    first, second, first_now, second_now = np.arange(4 * size).reshape(4, size)
    same = np.zeros(size, dtype=bool)
    for place, side in enumerate(_sides_now(runner, cells)):
        known = (side.numbers.reshape(4, size) >= 0).all(axis=0)
        here = np.flatnonzero(known & (outputs == place))
        if not len(here):
            continue
        a, b, c, d = first[here], second[here], first_now[here], second_now[here]
        if side.part is not None and side.part.output.numeric:
            more = np.sign(side.number_of(a) - side.number_of(b))
            same[here] = side.differing(c, d)
            same[here] &= more == np.sign(side.number_of(c) - side.number_of(d))
        else:
            same[here] = ~side.differing(a, c) & ~side.differing(b, d)
    return same


@dataclass(frozen=True)
class _Pairs:
    """Two rows of each failing test that differ, and the output in which they do."""

    rows: NDArray[np.int64]
    outputs: Places

    def confirmation(self, outcome: _Outcome) -> Confirmation:
        """What it takes to confirm them: those that are still there and new ones apart."""
        first, second = outcome.saved.codes[self.rows.T]
        return Confirmation.of(first, second, outcome.states[outcome.failing])


@dataclass(frozen=True)
class _Side:
    """One output then or now: the number of each row's value, negative where there is none."""

    numbers: Places
    values: Callable[[int], Any]
    part: Part | None

    def differing(self, rows: Places, others: Places) -> NDArray[np.bool_]:
        """Whether rows with an output have another one than these rows, in more than spelling."""
        own, other = self.numbers[rows], self.numbers[others]
        if self.part is not None and self.part.output.distance != "exact":
            return self.part.distances(own, other) > 0
        different = np.asarray(own != other)
        if different.any():
            pairs = np.stack([own[different], other[different]])
            known, places = np.unique(pairs, axis=1, return_inverse=True)
            apart = [not self._is_spelling(one, two) for one, two in known.T.tolist()]
            different[different] = np.array(apart)[places.reshape(-1)]
        return different

    def _is_spelling(self, one: int, two: int) -> bool:
        """Whether two different outputs differ only in spelling."""
        return bool(same_but_for_spelling([self.values(one), self.values(two)]))

    def number_of(self, rows: Places) -> NDArray[np.float64]:
        """The outputs of rows that have one, where they are numbers."""
        return np.array([self.values(each) for each in self.numbers[rows].tolist()], dtype=float)

    def value(self, row: int) -> Any:
        """The output of one row, None where there is none."""
        number = int(self.numbers[row])
        return self.values(number) if number >= 0 else None


class _Outcome:
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
            _Side(each.numbers, each.values.__getitem__, each.part) for each in saved.outputs
        ]
        self.later = list(_sides_now(runner, now))
        self.states = self._classify()

    @property
    def failing(self) -> NDArray[np.bool_]:
        """Which tests show a difference now."""
        bad: NDArray[np.bool_] = np.isin(self.states, [STATES.index("still"), STATES.index("new")])
        return bad

    @property
    def unfinished(self) -> NDArray[np.bool_]:
        """Which tests have an input that was not run."""
        return self._any(self.saved.usable[self.order] & (self.now[self.order] == NOT_RUN))

    def failing_pairs(self) -> _Pairs:
        """The first two rows of each of these tests that differ."""
        usable, about = self.saved.usable[self.order], self._about()
        rows = np.zeros((len(self.starts), 2), dtype=np.int64)
        outputs = np.full(len(self.starts), -1)
        for place, side in enumerate(self.later):
            unlike, reference = self._unlike_first(side, usable)
            found = self._any(unlike) & (outputs < 0) & ((about == -1) | (about == place))
            places = np.where(unlike, np.arange(len(unlike)), len(unlike))
            second = self._reduce(np.minimum, places)[found]
            rows[found] = self.order[np.stack([reference[second], second], axis=1)]
            outputs[found] = place
        return _Pairs(rows[self.failing], outputs[self.failing])

    def _classify(self) -> NDArray[np.int64]:
        """The place in STATES of each test; of tests with one row, −1: there is nothing to tell."""
        usable, now = self.saved.usable[self.order], self.now[self.order]
        did = self._differ(self.then, usable)
        does = self._differ(self.later, usable)
        failed = self._any(usable & (now == FAILED))
        did_at_all = self._differ(self.then, np.ones_like(usable))
        lost = (did_at_all != did) | (self._reduce(np.add, usable.astype(np.int64)) < 2)
        choices: list[tuple[NDArray[np.bool_], State]] = [
            (does & did, "still"),
            (does, "new"),
            (self._any(~usable) & lost, "unknown"),
            (self.unfinished, "not run"),
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

    def _differ(self, sides: Sequence[_Side], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which tests have, in some output that they are about, a row unlike the first."""
        about = self._about()
        found = np.zeros(len(self.starts), dtype=bool)
        for place, side in enumerate(sides):
            differing = self._any(self._unlike_first(side, chosen)[0])
            found |= differing & ((about == -1) | (about == place))
        return found

    def _about(self) -> Places:
        """The place of the one output that each test is about; −1: about all."""
        only = np.array([-1 if each is None else each for each in self.saved.only], dtype=np.int64)
        return only[self.numbers] if len(self.numbers) else only[:0]

    def _unlike_first(
        self, side: _Side, chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], Places]:
        """Which rows, by test, have another output than their test's first with one; and that."""
        decided = chosen & (side.numbers[self.order] >= 0)
        places = np.arange(len(self.order))
        first = self._reduce(np.minimum, np.where(decided, places, len(places)))
        reference = np.repeat(first, self.stops - self.starts)
        unlike = np.zeros(len(self.order), dtype=bool)
        rows = self.order[decided]
        if len(rows):
            unlike[decided] = side.differing(rows, self.order[reference[decided]])
        return unlike, reference

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
            for test in found[:EXAMPLES].tolist():
                first, second = self._pair(state, test)
                schema, codes = self.runner.schema, self.saved.codes
                yield ReplayedTest(
                    state,
                    self.saved.sets[int(self.numbers[test])],
                    (schema.decode_row(codes[first]), schema.decode_row(codes[second])),
                    (self._output(self.then, first), self._output(self.then, second)),
                    (self._output(self.later, first), self._output(self.later, second)),
                    self._only_of_rows(first, second),
                )

    def shared_outputs(self) -> Iterator[Value]:
        """The outputs then and now that name nobody: at least SHARED base inputs get them.

        A result says of its pairs which outputs are so.
        """
        yield from self.saved.shared
        base = np.flatnonzero(self.saved.base)
        rows = base[unique_rows(self.saved.codes[base])[0]] if len(base) else base
        for side in (*self.then, *self.later):
            known = side.numbers[rows]
            values, people = np.unique(known[known >= 0], return_counts=True)
            yield from map(side.values, values[people >= SHARED].tolist())
        if isinstance(self.runner.labels, Labels):
            yield from self.runner.labels.wanted

    def _only_of_rows(self, first: int, second: int) -> Rare | None:
        """Where two inputs have values that the schema does not list."""
        schema, codes = self.runner.schema, self.saved.codes
        bounds = [each.first_extra for each in schema]
        own = [np.flatnonzero(codes[row] >= bounds) for row in (first, second)]
        one, other = (tuple(schema.names[place] for place in each) for each in own)
        return (one, other) if one or other else None

    def _pair(self, state: State, test: int) -> tuple[int, int]:
        """Two rows with different outputs; of a failed test, one that failed and another."""
        rows = self.order[self.starts[test] : self.stops[test]]
        rows = rows[self.saved.usable[rows]]
        if state == "failed":
            first = int(rows[self.now[rows] == FAILED][0])
            return first, int(rows[rows != first][0])
        only = self.saved.only[int(self.numbers[test])]
        for place, side in enumerate(self.then if state == "fixed" else self.later):
            decided = rows[side.numbers[rows] >= 0]
            if only not in (None, place) or not len(decided):
                continue
            unlike = side.differing(decided, np.repeat(decided[:1], len(decided)))
            if unlike.any():
                return int(decided[0]), int(decided[unlike][0])
        raise AssertionError("a test that discriminates has two different outputs")

    def _output(self, sides: Sequence[_Side], row: int) -> Any:
        """The output of a row; by name where there are several."""
        if len(sides) == 1:
            return sides[0].value(row)
        names = output_names(self.runner.labels)
        values = {name: side.value(row) for name, side in zip(names, sides, strict=True)}
        known = {name: value for name, value in values.items() if value is not None}
        return known or None

    def changed(self, rows: Places) -> int:
        """How many of these inputs got another output than before; failures are no outputs."""
        changed = np.zeros(len(rows), dtype=bool)
        for then, later in zip(self.then, self.later, strict=True):
            both = (then.numbers[rows] >= 0) & (later.numbers[rows] >= 0)
            texts: dict[str, int] = {}
            for side in (then, later):
                for number in np.unique(side.numbers[rows[both]]).tolist():
                    texts.setdefault(plain_text(side.values(number)), len(texts))
            changed[both] |= _texts(then, rows[both], texts) != _texts(later, rows[both], texts)
        return int(changed.sum())


def _texts(side: _Side, rows: Places, texts: dict[str, int]) -> Places:
    """The outputs of rows as numbers that are equal exactly for equal texts."""
    present, places = np.unique(side.numbers[rows], return_inverse=True)
    known = [texts[plain_text(side.values(number))] for number in present.tolist()]
    return np.array(known, dtype=np.int64)[places]


def _sides_now(runner: Runner, now: Places) -> Iterator[_Side]:
    labels = runner.labels
    if isinstance(labels, Labels):
        yield _Side(now, labels.labels.__getitem__, None)
        return
    for place, part in enumerate(labels.parts):
        numbers = labels.part_cells(place, now).astype(np.int64)
        yield _Side(numbers, part.labels.__getitem__, part)


def _unchanged_subject(saved: SavedTests, runner: Runner) -> Iterator[Note]:
    if saved.fingerprint is not None and saved.fingerprint == runner.subject.fingerprint():
        yield Note.of("same-subject")


def _answers_at_random(outcome: _Outcome) -> Iterator[Note]:
    """Said where many tests discriminate once, and not each time when they are run again."""
    counts = np.bincount(outcome.states[outcome.states >= 0], minlength=len(STATES)).tolist()
    found = dict(zip(STATES, counts, strict=True))
    lasting = found["still"] + found["new"]
    tests = found["unclear"] + found["unconfirmed"] + lasting
    if found["unclear"] >= max(2, RANDOM * tests):
        yield Note.of(AT_RANDOM, tests=tests, unclear=found["unclear"], lasting=lasting)
