"""Is what a replay keeps back of a limited budget enough to run again what discriminates?"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from themis.audit import replay as replay_module
from themis.audit.confirming import Confirmation
from themis.audit.replay import _Run
from themis.audit.saved_tests import read_tests
from themis.engine import runner as runner_module
from themis.subjects import base as base_module
from themis.subjects.decisions import NOT_RUN

SCHEMA = themis.Schema(sex=["f", "m"], income=range(1000))
Person = dict[str, Any]


def write_pairs(path: Path, tests: int) -> Path:
    """A suite of so many tests by sex, which share no input and all discriminated."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["test", "against", "base", *SCHEMA.names, "output"])
        for test in range(tests):
            for sex in "fm":
                writer.writerow([test + 1, "sex", str(sex == "f").lower(), sex, test, sex])
    return path


def write_star(path: Path, schema: themis.Schema) -> Path:
    """A test for each characteristic, all of the same base input."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["test", "against", "base", *schema.names, "output"])
        for name in schema.names:
            for value in "ab":
                row = [value if each == name else "a" for each in schema.names]
                writer.writerow([name, name, str(value == "a").lower(), *row, value])
    return path


def unfair(share: int) -> Any:
    """Decides by sex for this share of a hundred incomes."""
    return lambda person: int(person["sex"] == "f" and person["income"] * 37 % 100 < share)


@pytest.mark.parametrize("share", [100, 60, 15])
def test_a_larger_budget_never_confirms_less_and_leaves_nothing_unspent(
    share: int, tmp_path: Path
) -> None:
    path, before = write_pairs(tmp_path / "suite.csv", 200), 1
    for most in (*range(18, 60), *range(60, 400, 13)):
        found = themis.Audit(unfair(share), SCHEMA, max_executions=most).replay(path)
        assert found.executions == most
        assert found.count("still") >= before, most
        assert found.count("unclear") == 0, most
        assert found.count("unconfirmed") <= 2, most
        before = found.count("still")
    assert before >= 40 * share // 100


def test_tests_that_share_an_input_are_confirmed_as_far_as_the_budget_goes(tmp_path: Path) -> None:
    schema = themis.Schema({f"c{place}": ["a", "b"] for place in range(100)})
    path, before = write_star(tmp_path / "suite.csv", schema), 1
    for most in (18, 20, 60, 150, 400, 700, 900):
        found = themis.Audit(lambda person: len(set(person.values())), schema, max_executions=most)
        replay = found.replay(path)
        assert replay.executions <= most
        assert replay.count("still") >= max(before, most // 10 - 2)
        before = replay.count("still")


def test_of_a_budget_that_is_too_small_to_confirm_anything_nothing_is_kept_back(
    tmp_path: Path,
) -> None:
    path = write_pairs(tmp_path / "suite.csv", 20)
    found = themis.Audit(unfair(100), SCHEMA, max_executions=10).replay(path)
    assert (found.executions, found.count("unconfirmed"), found.stopped) == (10, 5, "budget")
    fair = themis.Audit(unfair(0), SCHEMA, max_executions=30).replay(path)
    assert (fair.executions, fair.count("fixed")) == (30, 15)


@pytest.mark.parametrize(
    ("most", "slower"), [(0.5, 1.0), (0.5, 1.05), (1.0, 1.0), (1.0, 1.5), (3.0, 1.0), (3.0, 1.5)]
)
def test_what_was_run_again_within_the_time_is_confirmed(
    most: float, slower: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an input takes longer than it did when it is run again."""
    path = write_pairs(tmp_path / "suite.csv", 200)
    clock = Clock.put_into(monkeypatch, runner_module, base_module)
    asked: set[int] = set()

    def decide(person: Person) -> int:
        key = 2 * person["income"] + (person["sex"] == "f")
        clock.now += 0.01 * (slower if key in asked else 1.0)
        asked.add(key)
        return int(person["sex"] == "f")

    started = clock.now
    found = themis.Audit(decide, SCHEMA, max_seconds=most).replay(path)
    assert clock.now - started <= most + 0.02
    assert found.count("unclear") == 0
    assert found.count("still") >= 10 * most
    assert found.stopped == "budget"


@pytest.mark.parametrize("most", [1.45, 1.5, 1.6, 2.0])
def test_an_early_failure_does_not_keep_later_tests_from_being_run_in_time(
    most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it takes 1.27 seconds."""
    path = write_pairs(tmp_path / "suite.csv", 300)
    clock = Clock.put_into(monkeypatch, runner_module, base_module, replay_module)

    def decide(person: Person) -> int:
        clock.now += 0.002
        return int(person["sex"] == "f" and person["income"] in (0, 299))

    found = themis.Audit(decide, SCHEMA, max_seconds=most).replay(path)
    assert (found.count("still"), found.count("fixed"), found.stopped) == (2, 298, "done")


def test_time_that_running_again_did_not_take_is_used_for_further_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "suite.csv", 300)
    clock = Clock.put_into(monkeypatch, runner_module, base_module, replay_module)
    asked: set[int] = set()

    def decide(person: Person) -> int:
        key = 2 * person["income"] + (person["sex"] == "f")
        clock.now += 0.0001 if key in asked else 0.002
        asked.add(key)
        return int(person["sex"] == "f" and person["income"] % 10 == 0)

    started = clock.now
    found = themis.Audit(decide, SCHEMA, max_seconds=1.0).replay(path)
    assert 0.99 <= clock.now - started <= 1.01
    assert found.count("still") >= 15
    assert found.stopped == "budget"


def test_what_the_first_pairs_need_is_what_running_them_takes() -> None:
    inputs = np.array([(0, 1), (2, 3), (0, 4), (5, 6), (7, 8)])
    needs = Confirmation(
        inputs, np.arange(9)[:, None], np.array([0, 0, 0, 1, 1]), np.arange(5)
    ).needs()
    eight, nine = 8, 9  # reruns of one pair so that noise lasts in one of 200, of 400
    assert needs.tolist() == [
        2 * eight,
        4 * eight // 2,
        5 * eight // 2,
        5 * -(-nine // 2) + 2 * nine,
        5 * -(-nine // 2) + 4 * -(-nine // 2),
    ]


def test_what_an_interrupted_call_had_answered_is_kept_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module.Runner, "size_of_next", lambda *_: 5)
    calls = 0

    def decide(person: Person) -> int:
        nonlocal calls
        calls += 1
        if calls == 24:  # in a later call of a batch than its first one, and within it
            raise KeyboardInterrupt
        return int(person["income"]) % 3

    audit = themis.Audit(decide, SCHEMA)
    run = _Run.of(audit.runner, read_tests(write_pairs(tmp_path / "suite.csv", 200), SCHEMA))
    with pytest.raises(KeyboardInterrupt):
        run.go(None)
    known = np.flatnonzero(run.cells != NOT_RUN)
    assert len(known) == 23
    labels = audit.runner.labels.labels
    incomes = [SCHEMA.decode_row(run.inputs[place])["income"] for place in known]
    assert [labels[run.cells[place]] for place in known] == [int(each) % 3 for each in incomes]
