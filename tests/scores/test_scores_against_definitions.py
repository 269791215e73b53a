"""Every score on a small domain equals the definition, computed by brute force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import themis
from tests.worlds import Case, cases

SLOW = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@SLOW
@given(cases(binned=False))
def test_scores_equal_the_definitions_and_run_every_valid_input_once(case: Case) -> None:
    audit, world, names = case.audit(), case.world, set(case.names)
    causal, group = audit.causal(*case.names), audit.group(*case.names)
    assert causal.method == group.method == "exact"
    assert causal.score == pytest.approx(world.causal(names), abs=1e-9)
    assert group.low == group.score == group.high == pytest.approx(world.group(names), abs=1e-9)
    assert causal.account is not None
    assert group.account is not None
    assert (causal.account.sampling, group.account.sampling) == (len(world.inputs()), 0)
    assert bool(causal.witnesses) == (causal.score > 0)


def test_the_mean_is_that_of_the_answers_where_some_executions_fail() -> None:
    def price(person: dict[str, Any]) -> float:
        if person["age"] == 3:
            raise ValueError
        return 5.0 if person["sex"] == "f" else 5.25

    schema = themis.Schema(sex=["f", "m"], age=themis.Integers(0, 9))
    outputs = [themis.Output(name="price", min=0, max=10)]
    audit = themis.Audit(price, schema, outputs=outputs, max_failures=0.2)
    score = audit.group("sex", output="price")
    assert sorted(group.rate for group in score.groups) == pytest.approx([0.5, 0.525])
    assert score.score == pytest.approx(0.025)
    assert score.low < 0.025 < score.high


@pytest.mark.parametrize("failing", [0, 1])
def test_sampled_means_are_those_of_the_answers_that_came(failing: int) -> None:
    def price(person: dict[str, Any]) -> float:
        if person["age"] < 30 * failing:
            raise ValueError
        return 5.0 if person["sex"] == "f" else 5.25

    schema = themis.Schema(sex=["f", "m"], age=themis.Integers(0, 999), id=themis.Integers(0, 9999))
    outputs = [themis.Output(name="price", min=0, max=10)]
    audit = themis.Audit(price, schema, outputs=outputs, max_failures=0.2, max_executions=2_000)
    score = audit.group("sex", output="price")
    assert score.method == "sampled"
    assert sorted(group.rate for group in score.groups) == pytest.approx([0.5, 0.525], abs=1e-12)
    assert all(group.low <= group.rate <= group.high for group in score.groups)
    assert score.score == pytest.approx(0.025, abs=1e-12)
    assert score.low <= 0.025 <= score.high
