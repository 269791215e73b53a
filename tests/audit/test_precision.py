"""How precise scores are where nobody says: by counts alone, exact only of consistent subjects."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.projects import run, write_project
from themis.audit.forecast import SUITE_INPUTS
from themis.results.model import Result

FREE = themis.Integers(0, 10**9)  # makes a domain too large to run


def schema(**more: Any) -> themis.Schema:
    return themis.Schema(
        sex=themis.Values(["f", "m"], protected=True), income=range(2_000), age=range(50), **more
    )


@themis.batch
def by_table(table: Any) -> Any:
    return np.asarray(table["income"]) > 900 + 50 * (np.asarray(table["sex"]) == "f")


def by_row(person: Any) -> bool:
    return bool(person["income"] > 900 + 50 * (person["sex"] == "f"))


def measured(subject: Callable[..., Any], inputs: themis.Schema, **options: Any) -> Result:
    with themis.Audit(subject, inputs, **options) as audit:
        return audit.score([["sex"]], at_once=True)


def chosen(result: Result) -> list[Any]:
    return [dict(each.values) for each in result.notes if each.code == "precise-at-once"]


def test_what_can_be_run_at_once_is_exact_and_right() -> None:
    result = measured(by_table, schema())
    assert chosen(result) == [{}]
    assert [each.method for each in result.scores] == ["exact", "exact"]
    assert [each.score for each in result.scores] == [0.025, 0.025]


@pytest.mark.parametrize(
    ("subject", "sets", "error"), [(by_table, 1, 0.01), (by_table, 9, 0.02), (by_row, 1, 0.02)]
)
def test_what_is_too_large_to_run_is_as_narrow_as_is_cheap(
    subject: Callable[..., Any], sets: int, error: float
) -> None:
    more = {f"group{n}": ["a", "b", "c"] for n in range(1, sets)}
    with themis.Audit(subject, schema(free=FREE, **more)) as audit:
        names = ["sex", *more]
        result = audit.score([[name] for name in names], ["group"], at_once=True)
    assert chosen(result) == [{"error": error}]
    assert {each.error for each in result.scores} == {error}
    assert all(each.high - each.low <= 2 * error + 1e-9 for each in result.scores)


@pytest.mark.parametrize(
    "options",
    [{"cost": "executions"}, {"max_executions": 10**6}, {"max_seconds": 600.0}],
    ids=lambda options: next(iter(options)),
)
def test_what_is_limited_or_dear_keeps_its_error(options: dict[str, Any]) -> None:
    result = measured(by_table, schema(), **options)
    assert chosen(result) == []
    assert {each.error for each in result.scores} == {0.05}


def test_a_subject_that_contradicts_itself_is_sampled_and_not_run_whole() -> None:
    rng = np.random.default_rng(1)

    @themis.batch
    def noisy(table: Any) -> Any:
        income = np.asarray(table["income"])
        return income + rng.normal(0, 200, len(income)) > 900

    result = measured(noisy, schema())
    assert [each.method for each in result.scores] == ["sampled", "sampled"]
    assert result.executions < 200_000


def test_a_domain_that_is_exact_anyway_is_no_choice() -> None:
    small = themis.Schema(sex=themis.Values(["f", "m"], protected=True), income=range(40))
    result = measured(lambda person: person["income"] > 20, small)
    assert chosen(result) == []
    assert {each.method for each in result.scores} == {"exact"}


def test_a_whole_audit_chooses_for_its_scores_and_not_for_its_search() -> None:
    inputs = schema(free=FREE, race=themis.Values(["x", "y"], protected=True))
    with themis.Audit(by_table, inputs) as audit:
        result = audit.everything(at_once=True)
    assert {each.error for each in result.scores} == {0.01}
    assert {each.error for each in result.searches} == {0.05}


def test_the_suite_of_an_audit_holds_whole_tests_of_a_part_of_a_large_domain(
    tmp_path: Path,
) -> None:
    place = tmp_path / "suite.csv"
    with themis.Audit(by_table, schema(), suite=place) as audit:
        result = audit.everything(at_once=True)
    assert result.scores[0].method == "exact"
    rows = list(csv.DictReader(place.read_text().splitlines()))
    assert 0.9 * SUITE_INPUTS < len(rows) < 1.1 * SUITE_INPUTS
    tests: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        tests.setdefault(row["test"], []).append(row)
    assert all({row["sex"] for row in each} == {"f", "m"} for each in tests.values())
    assert len({(each[0]["income"], each[0]["age"]) for each in tests.values()}) == len(tests)


@pytest.mark.parametrize(
    ("named", "options", "error"),
    [("", (), 0.01), ("error = 0.03", (), 0.03), ("", ("--error", "0.05"), 0.05),
     ("exact = false", (), 0.05)],
)  # fmt: skip
def test_only_what_neither_file_nor_command_line_names_is_chosen(
    tmp_path: Path, named: str, options: tuple[str, ...], error: float
) -> None:
    inputs = 'sex = { values = ["f", "m"], protected = true }\nincome = { min = 0, max = 10_00'
    body, extra = "return person['income'] > 9", f"[run]\nseed = 1\n{named}\n"
    inputs = f"{inputs}0_000_000 }}\n"
    config = write_project(tmp_path, body, inputs=inputs, subject='call = "batch"', extra=extra)
    done = run("score", str(config), "--json", *options)
    assert {each["error"] for each in json.loads(done.stdout)["scores"]} == {error}
    if not options:  # `validate` has none of them
        assert f"to ± {100 * error:g} points" in run("validate", str(config)).stdout
