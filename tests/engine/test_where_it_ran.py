"""Does a result name what ran it, and is a cluster that is not there found in time?"""

from __future__ import annotations

import json
import math
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import SMALL, enter, run, write_project
from themis.audit.run import Work
from themis.engine.executors import spread
from themis.errors import SubjectError

SCHEMA = themis.Schema(race=["green", "purple"], savings=range(1000))


def loan(person: dict[str, Any]) -> int:
    return int(person["savings"] > (500 if person["race"] == "green" else 600))


def measured(executor: Executor | str | None, subject: Any = loan) -> themis.Result:
    return themis.Audit(subject, SCHEMA, seed=1, executor=executor).score([["race"]])


@pytest.mark.parametrize("executor", ["processes:4", ThreadPoolExecutor(2)])
def test_a_pool_that_was_not_needed_is_not_named(
    executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", math.inf)
    assert measured(executor).timing["executor"] == "in process"


def test_a_pool_that_ran_inputs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    with ThreadPoolExecutor(2) as executor:
        assert measured(executor).timing["executor"] == "ThreadPoolExecutor"


def test_what_was_measured_before_a_cluster_was_lost_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, "return int(person['race'] == 'green')", inputs=SMALL)
    measure = Work.measure

    def lost(work: Work, *args: Any, **options: Any) -> object:
        if work._scores:
            raise SubjectError("the cluster is gone")
        return measure(work, *args, **options)

    monkeypatch.setattr(Work, "measure", lost)
    done = run("score", "-o", "result.json")
    assert done.exit_code == 3
    assert "error: the cluster is gone" in done.stderr
    saved = json.loads((tmp_path / "result.json").read_text())
    assert [each["measure"] for each in saved["scores"]] == ["causal"]
    assert saved["stopped"] == "failed"
