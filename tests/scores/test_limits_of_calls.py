"""Limits of executions and of time hold where few, large calls are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from tests.scores.test_few_calls import SCHEMA, tabular
from themis.engine import runner as runner_module
from themis.subjects import base as base_module


@pytest.mark.parametrize("asked", ["causal", "group", "search", "group search"])
@pytest.mark.parametrize("limit", [50, 500, 5_000, 50_000])
def test_a_limit_holds_also_where_calls_are_few(
    monkeypatch: pytest.MonkeyPatch, asked: str, limit: int
) -> None:
    """One of ten million and more does not make them many."""
    monkeypatch.setattr(runner_module, "MANY_EXECUTIONS", 1)
    subject, rule = tabular(12.0)
    audit = themis.Audit(subject, SCHEMA, seed=1, max_executions=limit)
    assert audit.runner.traits.cost == "calls"
    if "search" in asked:
        among, measure = ["race", "sex", "education"], "group" if "group" in asked else "causal"
        audit.search(0.1, among=among, measure=measure)
    else:
        getattr(audit, asked)("race")
    assert 0 < sum(rule.sizes) <= limit


def test_a_whole_domain_is_run_within_a_limit_of_time_where_calls_are_what_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call takes a millisecond, however many inputs it has: a few do not tell that."""
    clock = Clock.put_into(monkeypatch, runner_module, base_module)

    def decide(table: Any) -> Any:
        clock.now += 0.001
        return table["rest"] > 90_000 + 900 * (table["sex"] == "f")

    schema = themis.Schema(sex=["f", "m"], rest=range(10**5), kids=range(5))
    audit = themis.Audit(themis.batch(decide), schema, seed=1)
    assert audit.causal("sex", exact=True, max_seconds=20).method == "exact"


@pytest.mark.parametrize("limit", [None, 10.0, 30.0, 300.0])
@pytest.mark.parametrize("seconds", [0.3, 0.6])
def test_calls_that_take_long_with_any_number_of_inputs_are_made_large(
    monkeypatch: pytest.MonkeyPatch, seconds: float, limit: float | None
) -> None:
    """One call with one input tells nothing of what one more takes, the second one does."""
    clock = Clock.put_into(monkeypatch, runner_module, base_module)
    begin, rng = clock.now, np.random.default_rng(0)

    def decide(table: Any) -> Any:
        clock.now += seconds * rng.uniform(1.0, 1.1)
        return table["rest"] * 7919 % 1000 > 500 + 300 * (table["sex"] == "f")

    schema = themis.Schema(sex=["f", "m"], race=list("abc"), kids=range(4), rest=range(10**5))
    score = themis.Audit(themis.batch(decide), schema, seed=46, max_seconds=limit).causal("sex")
    assert score.conclusive
    assert score.high - score.low <= 0.1
    assert clock.now - begin <= 20 * seconds


def slow_at_first(inputs: int, calls: int) -> float:
    return 0.4 if calls else 5.0


TAKES = {
    "the square": lambda inputs, calls: 1e-4 * inputs**2,
    "the cube": lambda inputs, calls: 1e-6 * inputs**3,
    "a leap": lambda inputs, calls: 0.01 if inputs < 100 else 2.5,
    "slow at first": slow_at_first,
}


@pytest.mark.parametrize("measure", ["causal", "search", "everything"])
@pytest.mark.parametrize("takes", TAKES)
def test_limits_hold_where_twice_the_inputs_take_more_than_twice_as_long(
    monkeypatch: pytest.MonkeyPatch, takes: str, measure: str
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module)
    begin, sizes = clock.now, list[int]()

    def decide(table: Any) -> Any:
        clock.now += TAKES[takes](len(table["sex"]), len(sizes))
        sizes.append(len(table["sex"]))
        return table["rest"] * 7919 % 1000 > 500 + 300 * (table["sex"] == "f")

    protected = {"sex": ["f", "m"], "race": list("abc"), "kids": range(4)}
    each = {name: themis.Values(list(own), protected=True) for name, own in protected.items()}
    schema = themis.Schema(**each, rest=range(10**5))
    audit = themis.Audit(themis.batch(decide), schema, seed=3, max_seconds=10)
    if measure == "causal":
        score = audit.causal("sex")
        assert score.low > 0.0
        assert score.high < 0.4
    else:
        getattr(audit, measure)(*[0.1] * (measure == "search"))
    assert clock.now - begin <= 11.0
    assert sum(sizes) >= 500
