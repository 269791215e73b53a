"""Searches that only decide: the same sets for less, no scores, and every output says so."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from themis.errors import RequestError

SPACE = themis.Schema(
    sex=["female", "male"],
    race=["green", "purple", "blue"],
    age=themis.Integers(18, 80, bins=[30]),
    income=themis.Integers(0, 100_000, step=100),
    savings=themis.Integers(0, 100_000, step=100),
)
AMONG = ("sex", "race", "age")


def loan(person: dict[str, Any]) -> bool:
    needed = 30_000 + (40_000 if person["sex"] == "female" and person["age"] < 30 else 0)
    return bool(person["income"] + person["savings"] / 2 >= needed)


@pytest.mark.parametrize("cost", ["executions", "calls"])
def test_the_same_sets_are_found_for_less_and_measured_when_asked_for(cost: Any) -> None:
    audit, other = (themis.Audit(loan, SPACE, seed=1, cost=cost) for _ in range(2))
    only = audit.search(0.2, among=AMONG, decide_only=True)
    whole = other.search(0.2, among=AMONG)
    assert only.found == whole.found == (("sex", "age"),)
    assert (len(only.minimal_sets), len(whole.minimal_sets)) == (0, 1)
    assert (only.decide_only, whole.decide_only) == (True, False)
    assert only.conclusive
    assert only.executions < 0.9 * whole.executions
    assert audit.search(0.2, among=AMONG).minimal_sets


def test_scores_that_cost_nothing_are_given_where_every_input_was_run() -> None:
    small = themis.Schema(race=["green", "purple"], savings=range(10))
    audit = themis.Audit(lambda person: person["race"] == "green", small, seed=1)
    found = audit.search(0.5, decide_only=True)
    assert found.method == "exact"
    assert [each.score for each in found.minimal_sets] == [1.0]
    assert not found.decide_only


def test_a_found_set_is_run_again_for_noise_all_the_same() -> None:
    decided = themis.Audit(loan, SPACE, seed=1).search_all(0.2, among=AMONG, decide_only=True)
    assert decided.spent.noise > 0 == decided.spent.explanations


def test_the_papers_search_can_not_only_decide() -> None:
    audit = themis.Audit(loan, SPACE, stopping="paper", deterministic=True)
    with pytest.raises(RequestError, match="decide_only: the paper's search measures every set"):
        audit.search(0.2, among=AMONG, decide_only=True)
