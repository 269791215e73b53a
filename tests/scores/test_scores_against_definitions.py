"""Every score on a small domain equals the definition, computed by brute force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import themis
from tests.worlds import Case, cases

SLOW = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)


def binned(case: Case) -> int:
    return sum(v.bins is not None and v.name in case.names for v in case.world.variables)


@SLOW
@given(cases())
def test_group_score_equals_the_spread_of_all_rates(case: Case) -> None:
    if binned(case) > 1:
        return
    result = case.audit().group(*case.names)
    assert result.method == "exact"
    assert result.low == result.score == result.high
    assert result.score == pytest.approx(case.world.group(set(case.names)), abs=1e-9)


@SLOW
@given(cases())
def test_causal_score_equals_the_share_of_inputs_that_flip(case: Case) -> None:
    if binned(case) > 1:
        return
    result = case.audit().causal(*case.names)
    assert result.method == "exact"
    assert result.score == pytest.approx(case.world.causal(set(case.names)), abs=1e-9)


@SLOW
@given(cases())
def test_exact_mode_runs_every_valid_input_once_and_no_other(case: Case) -> None:
    if binned(case) > 1:
        return
    audit = case.audit()
    first = audit.causal(*case.names)
    assert first.account is not None
    assert first.account.sampling == len(case.world.inputs())
    second = audit.group(*case.names).account
    assert second is not None
    assert second.sampling == 0


@SLOW
@given(cases())
def test_witnesses_differ_only_in_the_set_and_get_different_outputs(case: Case) -> None:
    result = case.audit(error=0.2, confidence=0.9).causal(*case.names)
    for witness in result.witnesses:
        first, second = witness.inputs
        assert set(witness.differs_in) <= set(case.names)
        assert witness.differs_in
        assert witness.outputs[0] != witness.outputs[1]
        for row, output in zip((first, second), witness.outputs, strict=True):
            assert case.world.valid(row)
            assert case.decide(row) == output
    if result.score > 0:
        assert result.witnesses


@SLOW
@given(cases())
def test_sampled_interval_of_a_set_with_two_binned_characteristics_is_near_the_truth(
    case: Case,
) -> None:
    if binned(case) < 2:
        return
    result = case.audit(error=0.1, confidence=0.9999).causal(*case.names)
    assert result.low - 1e-9 <= case.world.causal(set(case.names)) <= result.high + 1e-9


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
