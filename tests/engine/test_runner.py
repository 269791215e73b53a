"""The runner: what it counts, what it remembers, and when it has had enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from tests.clocks import Clock
from themis.engine import memory as memory_module
from themis.engine import runner as runner_module
from themis.engine.account import CALL_VALUES, FIRST_BATCH, GROWTH_SHARE, Budget
from themis.engine.answers import TooManyFailuresError
from themis.engine.runner import EARLY_FAILURES, RESERVED_SECONDS, Runner
from themis.subjects import base as base_module
from themis.subjects.decisions import CRASH, FAILED, INVALID, NOT_RUN
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from

SCHEMA = themis.Schema(a=range(3), b=range(4))
INPUTS = [(a, b) for a in range(3) for b in range(4)]

Input = tuple[int, int]
inputs = st.lists(st.sampled_from(INPUTS), max_size=20)


class Subject:
    """A function that notes what it was run on; it crashes and babbles on some inputs."""

    def __init__(self, *, crashing: Any = (), babbling: Any = ()) -> None:
        self.crashing, self.babbling = crashing, babbling
        self.ran: list[Input] = []

    def __call__(self, row: dict[str, Any]) -> Any:
        given = (row["a"], row["b"])
        self.ran.append(given)
        if given in self.crashing:
            raise ValueError(f"no {given}")
        return ["neither", "yes", "nor", "no"] if given in self.babbling else self.of(given)

    @staticmethod
    def of(given: Input) -> int:
        """What it decides: on every input another number."""
        return 10 * given[0] + given[1]


class Decisions:
    """A runner of the subject that takes and gives plain values."""

    def __init__(self, subject: Any, **options: Any) -> None:
        options = {"max_failures": 1.0, **options}
        self.runner = Runner(subject_from(subject, SCHEMA), Labels(), **options)

    def run(self, given: list[Input]) -> list[int | None]:
        return self.decoded(self.runner.run(codes_of(given)))

    def decoded(self, cells: Any) -> list[int | None]:
        assert NOT_RUN not in cells
        return [None if c == FAILED else self.runner.labels.labels[c] for c in cells.tolist()]


def codes_of(given: list[Input]) -> Any:
    return np.array(given, dtype=SCHEMA.dtype).reshape(-1, 2)


@pytest.fixture
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny domains are treated like those that are too large to be remembered."""
    monkeypatch.setattr(memory_module, "WHOLE_LIMIT", 0)


# Memory of small domains ------------------------------------------------------------------
@given(st.lists(inputs, max_size=6), st.sets(st.sampled_from(INPUTS), max_size=4))
def test_an_input_of_a_small_domain_is_executed_once_and_counted_once(
    batches: list[list[Input]], crashing: set[Input]
) -> None:
    subject = Subject(crashing=crashing)
    decisions = Decisions(subject)
    runner, asked = decisions.runner, 0
    for batch in batches:
        asked += len(batch)
        expected = [None if each in crashing else subject.of(each) for each in batch]
        assert decisions.run(batch) == expected
        assert len(subject.ran) == len(set(subject.ran)) == runner.executions == runner.asked
        assert runner.executions + runner.cache_hits == asked
    assert set(subject.ran) == {each for batch in batches for each in batch}
    known = runner.known(codes_of(INPUTS)).tolist()
    assert [each for each, cell in zip(INPUTS, known, strict=True) if cell != NOT_RUN] == sorted(
        set(subject.ran)
    )


@pytest.mark.parametrize("whole", [10**4, 0], ids=["remembers", "forgets"])
@given(
    inputs.filter(len),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2) | st.just("own")), max_size=6),
    st.sets(st.integers(0, 19)),
)
def test_overwritten_columns_are_what_is_run(
    whole: int, given_: list[Input], changes: list[tuple[int, Any]], kept: set[int]
) -> None:
    """For all inputs at once or for each its own; and also after some inputs were left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_module, "WHOLE_LIMIT", whole)
        decisions = Decisions(Subject())
    codes = codes_of(given_)
    batch, now = decisions.runner.load(codes), codes.copy()
    for column, new in changes:
        new = codes[::-1, column] % 3 if new == "own" else new
        now[:, column] = new
        batch.overwrite(column, new)
        assert decisions.decoded(batch.run()) == [Subject.of(each) for each in now.tolist()]
    places = np.array([each for each in sorted(kept) if each < len(codes)], dtype=np.int64)
    part = batch.take(places)
    for column in range(2):
        part.overwrite(column, now[places, column])
    assert decisions.decoded(part.run()) == [Subject.of(each) for each in now[places].tolist()]
    assert codes.tolist() == [list(each) for each in given_]  # the caller's own


# Budgets ----------------------------------------------------------------------------------


def test_time_is_kept_back_for_running_findings_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock.put_into(monkeypatch, runner_module, base_module)
    runner = Decisions(Subject(), budget=Budget(max_seconds=3.0)).runner
    runner.reserved = 1
    assert runner.seconds_left == pytest.approx(2.7)
    with runner.spending_reserve():
        assert runner.seconds_left == pytest.approx(3.0)
    assert runner.seconds_left == pytest.approx(2.7)
    runner.start(Budget(max_seconds=1000.0))
    runner.reserved = 1
    assert runner.seconds_left == pytest.approx(1000.0 - RESERVED_SECONDS)


@pytest.mark.usefixtures("_forgetful")
@pytest.mark.parametrize(("seconds", "longest"), [(1e-6, 10_000), (1e-3, 1024), (1.5, 1)])
def test_calls_of_a_slow_model_are_short_enough_to_be_interrupted(
    monkeypatch: pytest.MonkeyPatch, seconds: float, longest: int
) -> None:
    clock, sizes = Clock.put_into(monkeypatch, runner_module, base_module), list[int]()

    def decide(table: Any) -> Any:
        clock.now += seconds * len(table)
        sizes.append(len(table))
        return table["a"]

    decisions = Decisions(themis.batch(decide))
    decisions.run(INPUTS)
    decisions.run(INPUTS * 833)
    assert sizes[0] == len(INPUTS)
    assert sum(sizes[1:]) == 833 * len(INPUTS)
    assert longest / 2 < max(sizes[1:]) <= longest


@pytest.mark.usefixtures("_forgetful")
@pytest.mark.parametrize("runs", [1, 2])
def test_without_a_limit_of_time_batches_depend_on_counts_alone(
    monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module)

    def sizes(seconds: float) -> list[int]:
        def decide(row: dict[str, Any]) -> int:
            clock.now += seconds
            return 1

        decisions, found = Decisions(decide, runs=runs), []
        for _ in range(12):
            found.append(decisions.runner.batch_size)
            decisions.run(INPUTS * 4)
        return found

    quick, slow = sizes(1e-7), sizes(1.0)
    assert quick == slow
    assert slow[0] == FIRST_BATCH < slow[-1]
    assert slow[-1] == pytest.approx(11 * 4 * len(INPUTS) / GROWTH_SHARE, abs=1)


# Repeats ----------------------------------------------------------------------------------
@given(inputs, inputs, st.integers(1, 3), st.integers(1, 3))
def test_repeats_execute_again_and_are_counted_apart(
    before: list[Input], repeated: list[Input], times: int, runs: int
) -> None:
    subject = Subject()
    decisions = Decisions(subject, runs=runs)
    runner = decisions.runner
    decisions.run(before)
    counts = (runner.asked, runner.cache_hits, runner.pace.for_each)
    executed = len(subject.ran)
    for again in range(1, times + 1):
        cells = runner.repeat(codes_of(repeated), again=again)
        assert decisions.decoded(cells) == [subject.of(each) for each in repeated]
    needed = (runs // 2 + 1) * times * len(repeated)  # until most of the runs agree
    account = runner.account
    assert account.noise == len(subject.ran) - executed == needed
    assert account.sampling == executed
    assert runner.executions == len(subject.ran)
    assert runner.spent == runner.asked + needed
    assert counts == (runner.asked, runner.cache_hits, runner.pace.for_each)


def test_the_first_time_is_answered_from_memory_and_its_repeats_are_not_remembered() -> None:
    answers: Iterator[int] = iter(range(9))
    decisions = Decisions(lambda row: next(answers))
    codes, runner = codes_of([(1, 1)]), decisions.runner
    assert decisions.run([(1, 1)]) == [0]
    for again in range(3):
        assert decisions.decoded(runner.repeat(codes, again=again)) == [again]
        assert runner.account.noise == again
    assert decisions.run([(1, 1)]) == [0]
    account = runner.account
    assert (account.sampling, account.noise, account.cache_hits) == (1, 2, 1)


# Failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorised", [False, True])
@given(inputs, st.sets(st.sampled_from(INPUTS)), st.sets(st.sampled_from(INPUTS)))
def test_every_failure_is_counted_with_an_example_of_its_kind(
    vectorised: bool, given_: list[Input], crashing: set[Input], babbling: set[Input]
) -> None:
    subject = Subject(crashing=crashing, babbling=babbling)
    decisions = Decisions(themis.batch(rowwise(subject)) if vectorised else subject)
    decisions.run(given_)
    runner = decisions.runner
    log, seen, account = runner.failures, set(given_), runner.account
    assert account.sampling == len(seen)
    assert runner.executions == len(seen) + account.isolating >= len(subject.ran)
    assert account.isolating > 0 or not vectorised or len(seen) < 2 or not seen & crashing
    failed = {CRASH: seen & crashing, INVALID: (seen - crashing) & babbling}
    assert log.counts == Counter({kind: len(among) for kind, among in failed.items()})
    assert log.total == sum(map(len, failed.values()))
    assert set(log.examples) == {kind for kind, among in failed.items() if among}
    for kind, (row, message) in log.examples.items():
        assert (row["a"], row["b"]) in failed[kind]
        assert kind == INVALID or message.startswith("ValueError: no (")


@pytest.mark.usefixtures("_forgetful")
def test_the_example_of_a_failure_is_the_input_as_it_was_run() -> None:
    """Also where columns were overwritten, and where only some inputs are run once more."""
    decisions = Decisions(Subject(crashing=[(2, 1)]))
    batch = decisions.runner.load(codes_of([(0, 0), (0, 1)]))
    batch.overwrite(0, 2)
    assert decisions.decoded(batch.run()) == [20, None]
    assert decisions.runner.failures.examples[CRASH][0] == {"a": 2, "b": 1}

    turns: Counter[Input] = Counter()

    def decide(row: dict[str, Any]) -> int:
        given = (row["a"], row["b"])
        turns[given] += 1
        if given == (1, 3) and turns[given] == 3:
            raise ValueError("tired")
        return turns[given] if given == (1, 3) else 0

    decisions = Decisions(decide, runs=3)
    assert decisions.run([(0, 0), (0, 1), (1, 3)]) == [0, 0, 1]
    assert decisions.runner.failures.examples[CRASH][0] == {"a": 1, "b": 3}


def rowwise(subject: Subject) -> Callable[[Any], Any]:
    """A function of whole tables that fails as a whole, as its rows do."""

    def decide(table: Any) -> list[Any]:
        rows = zip(table["a"].tolist(), table["b"].tolist(), strict=True)
        return [subject({"a": a, "b": b}) for a, b in rows]

    return decide


@pytest.mark.usefixtures("_forgetful")
def test_a_run_is_given_up_early_only_above_the_limit_and_after_some_failures() -> None:
    decisions = Decisions(Subject(crashing=[(0, 0)]), max_failures=0.5)
    decisions.run([(0, 0)] * (EARLY_FAILURES - 1))  # a share of 1, but few
    assert decisions.runner.fails_too_often
    decisions.run([(1, 1)] * EARLY_FAILURES)
    assert not decisions.runner.fails_too_often
    decisions.run([(0, 0)])  # no more than the limit
    with pytest.raises(TooManyFailuresError) as caught:
        decisions.run([(0, 0)])
    count, total = EARLY_FAILURES + 1, 2 * EARLY_FAILURES + 1
    said = f"{CRASH} in {count} of {total} executions, e.g. ValueError: no (0, 0)"
    assert said in str(caught.value)
    assert "for the input: a 0, b 0" in str(caught.value)


@pytest.mark.parametrize("whole", [10**4, 0], ids=["remembers", "forgets"])
def test_what_explains_a_score_is_counted_but_its_failures_are_not(
    monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(memory_module, "WHOLE_LIMIT", whole)
    subject = Subject(crashing=[(0, 0)])
    decisions = Decisions(subject, max_failures=0.0)
    runner = decisions.runner

    def counts() -> tuple[int, int, int]:
        return runner.executions, runner.account.explanations, runner.failures.total

    with runner.apart():
        assert decisions.run([(0, 0), (0, 1)]) == [None, 1]
    assert counts() == (2, 2, 0)
    assert not runner.fails_too_often
    assert decisions.run([(0, 0)]) == [None]  # this one is a failure of the measurement
    assert counts() == (3, 2, 1)


def test_a_call_of_wide_inputs_has_no_more_values_than_one_of_narrow_ones() -> None:
    sizes: list[int] = []

    def decide(table: themis.InputTable) -> Any:
        sizes.append(len(table))
        return np.zeros(len(table), dtype=bool)

    schema = themis.Schema({f"c{number}": [0, 1] for number in range(256)})
    runner = Runner(subject_from(themis.batch(decide), schema), Labels())
    runner.perform(np.zeros((40_000, 256), dtype=schema.dtype, order="F"))
    assert max(sizes) == CALL_VALUES // 256
    assert sum(sizes) == 40_000
