"""What does a replay say of tests for which its budget was too small?"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.clocks import Clock
from themis.engine import runner as runner_module
from themis.show.reports.comparisons import Topic, render_comparison
from themis.subjects import base as base_module

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


def unfair(share: int) -> Any:
    """Decides by sex for this share of a hundred incomes."""
    return lambda person: int(person["sex"] == "f" and person["income"] * 37 % 100 < share)


@pytest.mark.parametrize("share", [100, 15])
def test_a_larger_budget_never_confirms_less_and_calls_nothing_noise(
    share: int, tmp_path: Path
) -> None:
    path, before = write_pairs(tmp_path / "suite.csv", 40), 0
    for most in (1, 10, 79, 80, *range(81, 170, 8), 300):
        found = themis.Audit(unfair(share), SCHEMA, max_executions=most).replay(path)
        assert found.executions <= most
        assert found.inputs == min(most, 80)
        assert found.count("unclear") == 0
        assert found.count("still") >= before
        assert (found.stopped == "budget") == bool(found.count("unconfirmed", "not run"))
        assert found.conclusive == (found.stopped == "done")
        before = found.count("still")
        for suffix in ("md", "html") if found.count("unconfirmed") else ():
            document = render_comparison(found, Path(f"replay.{suffix}"), Topic())
            assert "not run again often enough to confirm" in document
            assert ("confirmed to discriminate" in document) == (before == 0)
            assert "different decisions when run again" not in document
    assert before == sum(income * 37 % 100 < share for income in range(40))


@pytest.mark.parametrize("most", [0.5, 1.0, 3.0])
def test_a_limit_of_time_holds_while_tests_are_run_and_run_again(
    most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pairs(tmp_path / "suite.csv", 50)
    clock = Clock.put_into(monkeypatch, runner_module, base_module)

    def decide(person: Person) -> int:
        clock.now += 0.01
        return int(person["sex"] == "f")

    started = clock.now
    found = themis.Audit(decide, SCHEMA, max_seconds=most).replay(path)
    assert clock.now - started <= most + 0.02
    assert found.count("unclear") == 0
    assert (found.count("still"), found.stopped) == ((50, "done") if most > 2 else (0, "budget"))
