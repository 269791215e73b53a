"""Are the metrics of a result its scores, under names that logs of experiments take?"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest

import themis

SCHEMA = themis.Schema(sex=["f", "m"], town=["A", "B"], age=range(20, 40))
PEOPLE = [{"sex": "fm"[i % 2], "town": "AB"[i % 3 > 1], "age": 20 + i % 20} for i in range(60)]


def hire(person: Any) -> bool:
    return bool(person["age"] >= 30 + 3 * (person["sex"] == "f"))


def test_each_score_of_a_result_has_three_numbers() -> None:
    measured = themis.Audit(hire, SCHEMA).apparent(PEOPLE, ["sex"])
    metrics = measured.to_metrics()
    assert len(metrics) == 3 * len(measured.scores) == 15
    rows, within, _, inputs, _ = measured.scores
    assert metrics["causal/sex/rows/score"] == rows.score == 0.15
    assert metrics["causal/sex/rows/within/high"] == within.high
    assert metrics["causal/sex/low"] == inputs.low
    assert {type(each) for each in metrics.values()} == {float}


def test_names_fit_the_logs_of_others() -> None:
    odd = themis.Schema({"sex é": ["f", "m"], "a/../b": [0, 1], "a_.._b": [0, 1], "..": [0, 1]})
    audit = themis.Audit(lambda person: sum(v in ("f", 1) for v in person.values()) > 1, odd)
    metrics = audit.score([["sex é"], ["a/../b"], ["a_.._b"], ["..", "sex é"], [".."]]).to_metrics()
    assert len(metrics) == 5 * 2 * 3
    for name in metrics:
        assert re.fullmatch(r"[\w.\-/]+", name)
        assert posixpath.normpath(name) == name


def test_several_outputs_are_told_apart() -> None:
    outputs = [
        themis.Output(name="hired", at="/hired"),
        themis.Output(name="pay", at="/pay", min=0, max=10),
    ]
    audit = themis.Audit(lambda p: {"hired": hire(p), "pay": p["age"] % 7}, SCHEMA, outputs=outputs)
    names = set(audit.score("sex").to_metrics())
    assert {"hired/causal/sex/score", "hired/group/sex/low", "pay/causal/sex/high"} <= names
    assert "pay/group-mean/sex/score" in names


def test_what_was_not_measured_has_no_key() -> None:
    cut = themis.Audit(hire, SCHEMA, max_executions=1, deterministic=True).score("sex")
    assert cut.scores
    assert not any(each.samples for each in cut.scores)
    assert cut.to_metrics() == {}
    never = themis.Audit(lambda person: False, SCHEMA).score("sex")
    assert set(never.to_metrics()) == {f"causal/sex/{end}" for end in ("score", "low", "high")}


def test_what_documents_may_not_show_is_in_no_metric() -> None:
    pay = themis.Output(name="pay", min=0, max=100)
    schema = themis.Schema(race=["a", "b", "c"], age=range(40))
    rows = [{"race": race, "age": age} for race, n in (("a", 9), ("c", 3)) for age in range(n)]

    def metrics(*, show_rows: bool) -> dict[str, float]:
        audit = themis.Audit(
            lambda person: 5 * (person["race"] == "c") + person["age"] / 10, schema,
            outputs=pay, show_rows=show_rows, deterministic=True,
        )  # fmt: skip
        return audit.apparent(rows, "race", measures=["group"], only_data=True).to_metrics()

    assert metrics(show_rows=False) == {}  # it would tell the mean of three people
    assert metrics(show_rows=True)["pay/group-mean/race/rows/score"] == pytest.approx(0.047)
