"""Outcomes: what then and now say about each saved test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.saved_tests import SavedTests, as_written
from themis.engine.runner import Runner
from themis.engine.suite_files import plain_text
from themis.engine.suites import output_names
from themis.inputs.assignments import Assignments, Places
from themis.inputs.keys import InputKeys
from themis.results.replays import STATES, ReplayedSet, ReplayedTest, State
from themis.subjects.decisions import FAILED, NOT_RUN
from themis.subjects.labels import Part, bare_text

EXAMPLES = 5  # of each state that is worth showing
SHOWN_STATES: tuple[State, ...] = ("new", "still", "failed", "fixed")


@dataclass(frozen=True)
class Pairs:
    """Two rows of tests that differ, and the output in which they do."""

    rows: NDArray[np.int64]
    outputs: Places
    tests: Places


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

    @property
    def failing(self) -> NDArray[np.bool_]:
        """Which tests show a difference now."""
        bad: NDArray[np.bool_] = np.isin(self.states, [STATES.index("still"), STATES.index("new")])
        return bad

    def differing_pairs(self, tests: Places) -> Pairs:
        """Two rows of each of these tests that differ now, in each output in which some do."""
        found = [
            (*pair, place, test)
            for test in tests.tolist()
            for place, pair in self._pairs_of(test, self.later)
        ]
        first, second, outputs, of = np.array(found, dtype=np.int64).reshape(-1, 4).T
        return Pairs(np.stack([first, second], axis=1), outputs, of)

    def _pairs_of(self, test: int, sides: Sequence[Side]) -> Iterator[tuple[int, tuple[int, int]]]:
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
        choices: list[tuple[NDArray[np.bool_], State]] = [
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
            for test in found[:EXAMPLES].tolist():
                first, second = self._pair(state, test)
                schema, codes = self.runner.schema, self.saved.codes
                yield ReplayedTest(
                    state,
                    self.saved.sets[int(self.numbers[test])],
                    (schema.decode_row(codes[first]), schema.decode_row(codes[second])),
                    (self._output(self.then, first), self._output(self.then, second)),
                    (self._output(self.later, first), self._output(self.later, second)),
                )

    def _pair(self, state: State, test: int) -> tuple[int, int]:
        """Two rows with different outputs; of a failed test, one that failed and another."""
        if test in self.shown:
            return self.shown[test]
        if state == "failed":
            rows = self._rows_of(test)
            first = int(rows[self.now[rows] == FAILED][0])
            return first, int(rows[rows != first][0])
        sides = self.then if state == "fixed" else self.later
        return next(pair for _, pair in self._pairs_of(test, sides))

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
