"""Outcomes: what then and now say about each saved test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, compress, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.confirming import Confirmation, unique_rows
from themis.audit.saved_tests import SavedTests, as_written
from themis.engine.runner import Runner
from themis.engine.suite_files import plain_text
from themis.engine.suites import output_names
from themis.inputs.assignments import Assignments, Places
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.results.parts import Rare
from themis.results.replays import STATES, ReplayedSet, ReplayedTest, State
from themis.subjects.answers import Part
from themis.subjects.decisions import FAILED, NOT_RUN, Labels
from themis.subjects.spelling import same_but_for_spelling

FEW = 8  # rows of a test with the same output, and others, of which all pairs are run again
EXAMPLES = 5  # of each state that is worth showing
JUDGED: tuple[State, ...] = ("new", "still", "unclear")
SHOWN_STATES: tuple[State, ...] = ("new", "still", "failed", "fixed")


@dataclass(frozen=True)
class Pairs:
    """Two rows of a test that differ, and the output in which they do; of several tests."""

    rows: NDArray[np.int64]
    outputs: Places
    tests: Places

    def part(self, which: slice | Places) -> Pairs:
        """Some of them, in this order."""
        return Pairs(self.rows[which], self.outputs[which], self.tests[which])


@dataclass(frozen=True)
class Side:
    """One output then or now: the number of each row's value, negative where there is none."""

    numbers: Places
    values: Callable[[int], Any]
    part: Part | None

    def differing(self, rows: Places, others: Places) -> NDArray[np.bool_]:
        """Whether rows with an output have another one than these rows, in more than spelling."""
        own, other = self.numbers[rows], self.numbers[others]
        if self.part is not None and not self.is_exact:
            return self.part.distances(own, other) > 0
        different = np.asarray(own != other)
        if different.any():
            pairs = np.stack([own[different], other[different]])
            known, places = np.unique(pairs, axis=1, return_inverse=True)
            apart = [not self._is_spelling(one, two) for one, two in known.T.tolist()]
            different[different] = np.array(apart)[places.reshape(-1)]
        return different

    def apart(self, rows: Places, others: Places) -> NDArray[np.float64]:
        """How far rows with an output are from these rows; 0 where they do not differ."""
        different = self.differing(rows, others).astype(np.float64)
        if self.is_number:
            different *= np.abs(self.number_of(rows) - self.number_of(others))
        return different

    @property
    def is_number(self) -> bool:
        """Whether the output is a number."""
        return self.part is not None and self.part.output.numeric

    @property
    def is_exact(self) -> bool:
        """Whether any two different outputs are as different as any others."""
        return self.part is None or self.part.output.distance == "exact"

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

    @property
    def unfinished(self) -> NDArray[np.bool_]:
        """Which tests have an input that was not run."""
        return self._any(self.saved.usable[self.order] & (self.now[self.order] == NOT_RUN))

    def ends(self, at: Places) -> tuple[Places, Places]:
        """The first and the last place of each test's rows, which are at these; −1 is nowhere."""
        own = at[self.order]
        first = self._reduce(np.minimum, np.where(own < 0, len(at), own))
        return first, self._reduce(np.maximum, own)

    def failing_pairs(self) -> Pairs:
        """Two rows of each of these tests that differ: of numbers, those that are farthest apart.

        Where the test has a base input, it is one of them.
        """
        rows = np.zeros((len(self.starts), 2), dtype=np.int64)
        outputs = np.full(len(self.starts), -1)
        based = self.saved.base[self.order[self.starts]]
        for place, side in enumerate(self.later):
            unlike, reference = self._unlike_first(side, self.saved.usable[self.order])
            found = self._any(unlike) & (outputs < 0) & self._concerned(place)
            asked = np.repeat(found, self.stops - self.starts) & self._decided(side)
            first = np.where(found, reference[self.starts], -1)
            second = self._farthest(side, asked, first)
            first = np.where(based, first, self._farthest(side, asked, second))
            rows[found] = self.order[np.stack([first, second], axis=1)[found]]
            outputs[found] = place
        tests = np.flatnonzero(self.failing)
        return Pairs(rows[tests], outputs[tests], tests)

    def pairs_to_confirm(self, at: Places) -> Pairs:
        """The pairs of failing tests, in the order in which their last inputs (at these) were run.

        The pair of a test that was not run as a whole may still change. So it counts only if there
        are no others, and then the first of them.
        """
        pairs = self.failing_pairs()
        order = np.argsort(self.ends(at)[1][pairs.tests], kind="stable")
        whole = order[~self.unfinished[pairs.tests[order]]]
        return pairs.part(whole if len(whole) else order[:1])

    def keep_judged(self, before: Outcome) -> bool:
        """Take over what was run again before, and leave other failing tests unconfirmed.

        Whether some of these were not found before.
        """
        unconfirmed = STATES.index("unconfirmed")
        judged = np.isin(before.states, [STATES.index(each) for each in JUDGED])
        found = self.failing & ~judged
        self.states[found] = unconfirmed
        self.states[judged], self.shown = before.states[judged], before.shown
        return bool((before.states[found] != unconfirmed).any())

    def other_pairs(self, tests: Places, tried: Pairs) -> Pairs:
        """Other rows of these tests that differ, in any output; of tests with many rows, some."""
        known = set(zip(*np.sort(tried.rows).T.tolist(), tried.outputs.tolist(), strict=True))
        found: list[tuple[int, int, int, int]] = []
        for place, side in enumerate(self.later):
            unlike, _ = self._unlike_first(side, self.saved.usable[self.order])
            concerned = tests[self._concerned(place)[tests]].tolist()
            pairs = [
                (*pair, place, test)
                for test in concerned
                for pair in self._some_pairs(test, side, unlike)
                if (min(pair), max(pair), place) not in known
            ]
            if pairs:
                first, second, *_ = np.array(pairs).T
                found += compress(pairs, side.differing(first, second).tolist())
        first, second, outputs, of = np.array(found, dtype=np.int64).reshape(-1, 4).T
        return Pairs(np.stack([first, second], axis=1), outputs, of)

    def _some_pairs(
        self, test: int, side: Side, unlike: NDArray[np.bool_]
    ) -> Iterator[tuple[int, int]]:
        """Rows of a test that have an output; from its base input, where distances count."""
        places = np.arange(self.starts[test], self.stops[test])
        rows = self.order[places]
        places = places[self.saved.usable[rows] & (side.numbers[rows] >= 0)]
        few = sorted([*_some(places[~unlike[places]]), *_some(places[unlike[places]])])
        chosen = self.order[few].tolist()
        based = not side.is_exact and bool(self.saved.base[chosen[:1]].any())
        yield from zip(repeat(chosen[0]), chosen[1:]) if based else combinations(chosen, 2)

    def kinds(self, pairs: Pairs) -> Places:
        """What of pairs is judged apart."""
        return 2 * pairs.outputs + self.did[pairs.tests]

    def confirmation(self, pairs: Pairs, **options: float) -> Confirmation:
        """What it takes to confirm pairs: each output, what is still there, what is new, apart."""
        codes = self.saved.codes[pairs.rows.T.reshape(-1)]
        places, numbers = unique_rows(codes)
        return Confirmation(
            numbers.reshape(2, -1).T, codes[places], self.kinds(pairs), pairs.tests, **options
        )

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

    def _differ(self, sides: Sequence[Side], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which tests have, in some output that they are about, a row unlike the first."""
        found = np.zeros(len(self.starts), dtype=bool)
        for place, side in enumerate(sides):
            differing = self._any(self._unlike_first(side, chosen)[0])
            found |= differing & self._concerned(place)
        return found

    def _concerned(self, place: int) -> NDArray[np.bool_]:
        """Which tests are about this output: all that are not about another one alone."""
        only = np.array([each in (None, place) for each in self.saved.only], dtype=bool)
        return only[self.numbers]

    def _decided(self, side: Side) -> NDArray[np.bool_]:
        """Which rows, by test, have this output now."""
        decided: NDArray[np.bool_] = self.saved.usable[self.order] & (side.numbers[self.order] >= 0)
        return decided

    def _farthest(self, side: Side, asked: NDArray[np.bool_], others: Places) -> Places:
        """Of each test, the place of the row asked for that is farthest from the one at another."""
        far = np.full(len(self.order), -1.0)
        other = np.repeat(others, self.stops - self.starts)[asked]
        if len(other):
            far[asked] = side.apart(self.order[asked], self.order[other])
        most = np.repeat(self._reduce(np.maximum, far), self.stops - self.starts)
        return self._reduce(np.minimum, np.where(far == most, np.arange(len(far)), len(far)))

    def _unlike_first(
        self, side: Side, chosen: NDArray[np.bool_]
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
        if test in self.shown:
            return self.shown[test]
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
        changed = np.zeros(len(rows), dtype=bool)
        for then, later in zip(self.then, self.later, strict=True):
            both = (then.numbers[rows] >= 0) & (later.numbers[rows] >= 0)
            texts: dict[str, int] = {}
            for side in (then, later):
                for number in np.unique(side.numbers[rows[both]]).tolist():
                    texts.setdefault(_spelled(side, number), len(texts))
            changed[both] |= _texts(then, rows[both], texts) != _texts(later, rows[both], texts)
        return int(changed.sum())


def _some(places: Places) -> list[int]:
    """A few of these places, the first among them."""
    few = np.linspace(0, len(places) - 1, min(len(places), FEW)).astype(np.int64)
    some: list[int] = places[few].tolist()
    return some


def _spelled(side: Side, number: int) -> str:
    """An output as a suite has it."""
    text: str = as_written(plain_text(side.values(number)))
    return text


def _texts(side: Side, rows: Places, texts: dict[str, int]) -> Places:
    """The outputs of rows as numbers that are equal exactly for equal texts."""
    present, places = np.unique(side.numbers[rows], return_inverse=True)
    known = [texts[_spelled(side, number)] for number in present.tolist()]
    return np.array(known, dtype=np.int64)[places]


def sides_now(runner: Runner, now: Places) -> Iterator[Side]:
    labels = runner.labels
    if isinstance(labels, Labels):
        yield Side(now, labels.labels.__getitem__, None)
        return
    for place, part in enumerate(labels.parts):
        numbers = labels.part_cells(place, now).astype(np.int64)
        yield Side(numbers, part.labels.__getitem__, part)
