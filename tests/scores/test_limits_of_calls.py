"""Limits of executions and of time hold where few, large calls are made."""

from __future__ import annotations

from typing import Any

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
