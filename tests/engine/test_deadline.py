"""Does a run keep its time while a batch is run, and keep what was answered before?"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from tests.external import (
    GATE,
    PYTHON_GATE,
    close_gate,
    finish,
    open_gate,
    processes_in,
    ran,
    serving_loans,
    start,
    stored,
    wait_until,
    write_command,
    write_worker,
)
from tests.slotted import Slotted
from themis import Audit, Integers, Schema
from themis.audit import checker as checker_module
from themis.audit.checker import run_checks
from themis.audit.plan import make_plan
from themis.engine import runner as runner_module
from themis.engine.account import Ledger, Purpose
from themis.engine.runner import Runner
from themis.results.model import Measure
from themis.results.notes import Ending
from themis.results.verdicts import Check
from themis.subjects import base as base_module
from themis.subjects.base import BudgetEndedError
from themis.subjects.functions import RowFunction
from themis.subjects.labels import Labels

PATIENT = "timeout_seconds = 900\ndeterministic = true"


# Programs and services that never answer --------------------------------------------------
@contextmanager
def command(folder: Path) -> Iterator[Path]:
    yield write_command(folder, before=GATE, options=PATIENT)


@contextmanager
def worker(folder: Path) -> Iterator[Path]:
    yield write_worker(folder, before=PYTHON_GATE, options=f"{PATIENT}\nstart_seconds = 900")


@contextmanager
def service(folder: Path) -> Iterator[Path]:
    with serving_loans(folder) as loans:
        yield loans.write(options=f"{PATIENT}\nconcurrency = 2")


Kind = Callable[[Path], Any]


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("kind", [command, worker, service])
def test_a_run_whose_subject_never_answers_ends_with_its_time(tmp_path: Path, kind: Kind) -> None:
    with kind(tmp_path) as config:
        (tmp_path / f"loan.{'py' if kind is worker else 'sh'}.log").touch()
        close_gate(tmp_path, 0)
        saved = tmp_path / "result.json"
        arguments = ("score", str(config), "--against", "race", "--max-seconds", "1")
        stdout, stderr = finish(start(*arguments, "-o", str(saved)), expect=4)
    assert "not measured: the budget ended" in " ".join(stdout.split())
    assert "fail" not in stdout + stderr
    result = json.loads(saved.read_text())
    assert (result["stopped"], result["executions"], result["failures"]) == ("budget", 0, {})
    assert {each["stopped"] for each in result["scores"]} == {"budget"}
    wait_until(lambda: not processes_in(tmp_path))


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize(("kind", "least"), [(command, 18), (worker, 5), (service, 18)])
def test_what_was_answered_before_the_deadline_is_counted_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, least: int
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module)

    def let_time_pass() -> None:
        wait_until(lambda: len(ran(tmp_path)) >= 20)
        clock.now += 1.0

    jobs = None if kind is service else 1
    with kind(tmp_path) as config:
        close_gate(tmp_path, 20)  # within the first batch
        thread = threading.Thread(target=let_time_pass)
        thread.start()
        with themis.Audit.from_file(config, jobs=jobs, max_executions=64, max_seconds=0.5) as audit:
            score = audit.causal("race")
            assert audit.runner.failures.total == 0
        thread.join()
        open_gate(tmp_path)
        known = stored(tmp_path)
        assert (score.stopped, score.samples, score.executions) == ("budget", 0, known)
        assert least <= known <= 20
        with themis.Audit.from_file(config, max_executions=64) as audit:
            again = audit.causal("race")
    assert (again.executions, again.cache_hits) == (64 - known, known)


# Functions: wherever time ends, nothing more is called ------------------------------------
class Hurried:
    """A function whose time is over behind its n-th call, and that counts all its calls."""

    def __init__(self, clock: Clock, most: float, savings: int = 1_000) -> None:
        self.clock, self.most, self.calls = clock, most, 0
        races, sexes, incomes = ["green", "purple"], ["f", "m"], range(0, 100, 5)
        self.schema = themis.Schema(race=races, sex=sexes, income=incomes, savings=range(savings))

    def __call__(self, person: dict[str, Any]) -> int:
        self.calls += 1
        if self.calls == self.most:
            self.clock.now += 1_000.0
        hard = person["race"] == "purple" and person["sex"] == "f"
        return int(person["income"] >= (60 if hard else 30))

    def audit(self, *, error: float = 0.1, **settings: Any) -> themis.Audit:
        return themis.Audit(self, self.schema, error=error, max_seconds=100.0, **settings)

    def rows(self, count: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng(1)
        drawn = [rng.integers(0, each.size, count).tolist() for each in self.schema]
        return [self.schema.decode_row(np.array(row)) for row in zip(*drawn, strict=True)]


def replay(subject: Hurried) -> Any:
    most, subject.most = subject.most, -1
    result = subject.audit().score([["race"]], ["causal"])
    subject.most, subject.calls = most, 0
    return subject.audit().replay(result)


def check(subject: Hurried) -> Any:
    checks = [Check(against=("race",), max_score=0.1), Check(search=True, max_score=0.1)]
    return run_checks(subject.audit(), checks, among=["race", "sex"])


BOTH: list[Measure] = ["causal", "group"]
AMONG = ["race", "sex"]
MEASURES: dict[str, Callable[[Hurried], Any]] = {
    "causal": lambda subject: subject.audit().causal("race"),
    "group": lambda subject: subject.audit().group("race"),
    "search": lambda subject: subject.audit().search(0.1, among=AMONG),
    "scores": lambda subject: subject.audit().score([["race"]], BOTH),
    "paper": lambda subject: subject.audit(stopping="paper").score([["race"]], BOTH),
    "paper search": lambda subject: subject.audit(stopping="paper").search(0.1, among=AMONG),
    "searches": lambda subject: subject.audit().search_all(0.1, BOTH, AMONG),
    "apparent": lambda subject: subject.audit().apparent(subject.rows(60), [["race"]]),
    "replay": replay,
    "check": check,
}


@pytest.mark.some_slow(core=3, full=3)
@pytest.mark.parametrize("savings", [1_000, 3])  # so few inputs that all of them are run
@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_is_called_once_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch, measure: str, savings: int
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module, checker_module)
    undisturbed = Hurried(clock, -1, savings)
    MEASURES[measure](undisturbed)
    total = undisturbed.calls
    assert total > 20 or measure == "replay"
    for most in sorted({1, 2, 3, *np.linspace(4, total - 1, 6).astype(int).tolist()}):
        subject = Hurried(clock, most, savings)
        answered = MEASURES[measure](subject)
        assert subject.calls == answered.executions == most
        assert answered.stopped in ("budget", "done", "error reached", "exhausted")


@pytest.mark.parametrize(
    ("measure", "purpose"), [("causal", "noise"), ("group", "noise"), ("causal", "explanations")]
)
def test_what_the_deadline_cuts_off_behind_a_score_is_only_lacking(
    monkeypatch: pytest.MonkeyPatch, measure: Measure, purpose: Purpose
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module)
    subject, counting = Hurried(clock, -1), Ledger.counting_as
    whole = subject.audit(error=0.05).score([["race"]], [measure])
    audit = subject.audit(error=0.05)

    def counting_late(ledger: Ledger, counted: Purpose) -> Any:
        clock.now += 1_000.0 * (counted == purpose)
        return counting(ledger, counted)

    monkeypatch.setattr(Ledger, "counting_as", counting_late)
    cut = audit.score([["race"]], [measure])
    first, second = (
        (each.score, each.high, each.samples, each.stopped)
        for (each,) in (cut.scores, whole.scores)
    )
    assert first == second
    assert getattr(cut.account, purpose) == 0 < getattr(whole.account, purpose)
    assert [each.scores[0].is_checked for each in (cut, whole)] == [False, True]
    assert cut.scores[0].reruns is None


def test_a_deadline_is_that_of_a_batch_and_not_of_the_subject() -> None:
    subject = RowFunction(lambda person: 1, themis.Schema(race=["green", "purple"]))
    assert themis.Audit(subject, subject.schema, max_seconds=1e-9).causal("race").samples == 0
    batch = subject.load(np.array([[0], [1]]))
    assert batch.run().outputs == [1, 1]
    subject.deadline = 0.0
    with pytest.raises(BudgetEndedError):
        batch.run()
    assert subject.unfinished is not None
    assert subject.unfinished.outputs == []


def test_what_an_interrupted_batch_did_run_is_counted() -> None:
    def interrupted(person: dict[str, str]) -> int:
        if person["race"] == "orange":
            raise KeyboardInterrupt
        return 1 if person["race"] == "green" else 1 // 0

    schema = themis.Schema(race=["green", "purple", "orange"])
    runner = Runner(RowFunction(interrupted, schema), Labels(), max_failures=1.0)
    with pytest.raises(KeyboardInterrupt):
        runner.run(np.array([[0], [1], [2]]))
    assert runner.account.sampling == runner.asked == 2


def test_a_plan_is_made_after_a_budget_has_ended(tmp_path: Path) -> None:
    with themis.Audit.from_file(write_command(tmp_path), max_seconds=0.001) as audit:
        audit.causal("race")
        assert all(trial.output is not None for trial in make_plan(audit).trials)


def test_what_a_slow_service_answered_until_the_time_was_over_is_measured() -> None:
    schema = Schema(race=["green", "purple"], income=Integers(0, 1_000), age=Integers(18, 1_000))
    left = itertools.count(100, -1)

    def decide(person: dict[str, Any]) -> int:
        if next(left) == 0:  # the time is over when it has answered so many inputs
            raise BudgetEndedError
        return int(person["income"] > 500)

    audit = Audit(Slotted(16, decide, schema), schema, seed=1, max_seconds=600.0)
    score = audit.causal("race")
    assert score.stopped is Ending.BUDGET
    assert score.samples >= 32
