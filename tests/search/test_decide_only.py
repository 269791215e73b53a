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


def search(*, decide_only: bool, **options: Any) -> themis.SearchResult:
    audit = themis.Audit(options.pop("subject", loan), SPACE, seed=1, **options)
    return audit.search(0.2, among=AMONG, decide_only=decide_only)


@pytest.fixture(scope="module")
def decided() -> themis.Result:
    return themis.Audit(loan, SPACE, seed=1).search_all(0.2, among=AMONG, decide_only=True)


@pytest.mark.parametrize("cost", ["executions", "calls"])
def test_the_same_sets_are_found_for_less_and_none_is_measured(cost: Any) -> None:
    only = search(decide_only=True, cost=cost)
    whole = search(decide_only=False, cost=cost)
    assert only.found == whole.found == (("sex", "age"),)
    assert not only.minimal_sets
    assert len(whole.minimal_sets) == 1
    assert only.decide_only
    assert not whole.decide_only
    assert only.conclusive
    assert only.executions < 0.9 * whole.executions


def test_scores_that_cost_nothing_are_given_where_every_input_was_run() -> None:
    small = themis.Schema(race=["green", "purple"], savings=range(10))
    audit = themis.Audit(lambda person: person["race"] == "green", small, seed=1)
    found = audit.search(0.5, decide_only=True)
    assert found.method == "exact"
    assert [each.score for each in found.minimal_sets] == [1.0]
    assert not found.decide_only


def test_what_was_only_decided_is_measured_when_that_is_asked_for_later() -> None:
    audit = themis.Audit(loan, SPACE, seed=1)
    assert not audit.search(0.2, among=AMONG, decide_only=True).minimal_sets
    assert audit.search(0.2, among=AMONG).minimal_sets


def test_a_found_set_is_run_again_for_noise_all_the_same(decided: themis.Result) -> None:
    assert decided.account is not None
    assert decided.account.noise
    assert not decided.account.explanations


def test_the_papers_search_can_not_only_decide() -> None:
    with pytest.raises(RequestError, match="decide_only: the paper's search measures every set"):
        search(decide_only=True, stopping="paper", deterministic=True)
