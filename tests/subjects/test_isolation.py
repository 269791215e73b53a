"""Which inputs are blamed where a call about many of them fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import themis
from tests.clocks import Clock
from themis.subjects import base as base_module
from themis.subjects.base import Answers, BudgetEndedError, isolate_failures
from themis.subjects.decisions import CRASH, CulpritSearch
from themis.subjects.loading import subject_from

SCHEMA = themis.Schema(sex=["f", "m"], income=range(100), zip=range(1_000))


@pytest.mark.parametrize(("every", "most"), [((1,), 80), ((2, 3), 250)])
def test_inputs_that_failed_only_among_others_are_known_as_such(
    every: tuple[int, ...], most: int
) -> None:
    calls = []

    def fails(place: int) -> bool:
        return any(place % each == 0 for each in every)

    def call(start: int, stop: int) -> Any:
        calls.append(stop - start)
        if any(map(fails, range(start, stop))):
            raise ValueError("culprit")
        return [1] * (stop - start)

    answers = isolate_failures(call, 65_536)
    assert len(calls) < most
    assert sum(calls) < 3.1 * 65_536
    alone = [place for place, each in answers.failures.items() if each.alone]
    assert 8 + 20 <= len(alone) < most
    assert all(map(fails, alone))


def blamed(culprits: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Answers]:
    """Who is blamed where these fail, and the answers."""
    before = np.concatenate([[0], np.cumsum(culprits)])

    def call(start: int, stop: int) -> Any:
        if before[stop] > before[start]:
            raise ValueError("culprit")
        return [1] * (stop - start)

    answers = isolate_failures(call, len(culprits))
    failed = np.zeros(len(culprits), dtype=bool)
    failed[list(answers.failures)] = True
    return failed, answers


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.3, 0.4])
@pytest.mark.parametrize("first", [0, 40, 1_000])
def test_nobody_is_blamed_for_others_wherever_they_fail(share: float, first: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        culprits = rng.random(10_000) < share
        culprits[:first] = True
        failed, answers = blamed(culprits)
        assert (failed == culprits).all()
        assert all(each.alone for each in answers.failures.values())
        assert answers.given is not None
        assert answers.given < 10 * len(culprits)


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("outputs", [0, 1, 2, 16, 1_024, 65_535])
def test_a_number_of_outputs_that_fits_by_chance_is_no_answer(outputs: int, raises: bool) -> None:
    def call(start: int, stop: int) -> list[int]:
        if raises and stop - start == 65_536:
            raise ValueError("not so many")
        return [1] * outputs

    answers = isolate_failures(call, 65_536)
    assert len(answers.failures) == 65_536
    assert answers.calls == 1 + raises
    (reason,) = {each.message for each in answers.failures.values()}
    assert reason.startswith("the subject returned ")
    assert not any(each.alone for each in answers.failures.values())


def test_isolation_ends_with_the_time_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock.put_into(monkeypatch, base_module)
    calls = []

    def call(start: int, stop: int) -> Any:
        calls.append((start, stop))
        clock.now += 1
        raise ValueError("always")

    subject = subject_from(themis.batch(len), SCHEMA)
    subject.deadline = clock.now + 5
    with pytest.raises(BudgetEndedError):
        isolate_failures(call, 1_000, subject)
    assert len(calls) == 5


def test_an_isolation_that_is_interrupted_counts_what_was_executed() -> None:
    given = []

    def decide(table: themis.InputTable) -> Any:
        given.append(len(table))
        if len(given) == 30:
            raise KeyboardInterrupt
        raise ValueError("always")

    audit = themis.Audit(themis.batch(decide), SCHEMA, max_failures=1.0)
    with pytest.raises(KeyboardInterrupt):
        audit.causal("sex")
    assert audit.runner.executions == sum(given)
    assert audit.runner.account.calls == 30


def test_a_table_function_that_fails_for_few_inputs_is_measured_on_all_others() -> None:
    def decide(table: themis.InputTable) -> Any:
        if (table["income"] == 31).any():
            raise ValueError("31")
        return table["income"] > np.where(table["sex"] == "f", 60, 50)

    audit = themis.Audit(themis.batch(decide), SCHEMA, max_failures=0.1)
    result = audit.causal("sex")
    assert abs(result.score - 0.1) <= result.error
    assert 0 < audit.runner.failures.total < 0.05 * audit.runner.executions
    assert audit.runner.failures.examples[CRASH][0]["income"] == 31

    fails_more = themis.batch(lambda table: decide(table) if (table["zip"] % 2).all() else 1 / 0)
    with pytest.raises(themis.SubjectError) as caught:
        themis.Audit(fails_more, SCHEMA, max_failures=0.1).causal("sex")
    blamed = re.search(r"for the input: sex ., income (\d+), zip (\d+)\.", str(caught.value))
    assert blamed is not None
    income, zip_code = map(int, blamed.groups())
    assert zip_code % 2 == 0 or income == 31


@given(st.integers(1, 200), st.data())
def test_search_finds_every_culprit_within_its_limit(count: int, data: st.DataObject) -> None:
    culprits = data.draw(st.sets(st.integers(0, count - 1)))
    limit = data.draw(st.integers(1, 20))
    failed: set[int] = set()
    tried: list[Sequence[int]] = []
    parts = [range(count)[at : at + 50] for at in range(0, count, 50)]
    search = CulpritSearch(parts, limit=limit)
    for part in search:
        tried.append(part)
        assert list(part) == list(range(part[0], part[-1] + 1))
        if culprits.isdisjoint(part):
            failed -= set(part)
        else:
            failed |= set(part)
            search.halve(part)
    assert failed >= culprits  # never guessed away
    if len(culprits) < max(limit, 20):
        assert failed == culprits
    assert len(tried) == len({tuple(part) for part in tried})  # nothing twice
    assert len(tried) <= 4 + 2 * 6 * min(len(culprits), limit + 1) + 2 * count
