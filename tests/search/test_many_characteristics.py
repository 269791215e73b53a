"""Searches among many characteristics: pairs by default, protected ones first, and said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import themis
from themis.events import FACTOR

COUNT = 14


def wide(protected: tuple[str, ...] = (), count: int = COUNT) -> themis.Schema:
    names = [f"c{place}" for place in range(count)]
    return themis.Schema(
        {name: themis.Values(["a", "b"], protected=name in protected) for name in names}
    )


def odd_triple(person: Mapping[str, Any]) -> int:
    return [person[f"c{place}"] for place in (1, 2, 3)].count("a") % 2


def needs_pair(person: Mapping[str, Any]) -> int:
    return int(person["c12"] == "a" and person["c13"] == "a")


def test_of_more_than_twelve_characteristics_pairs_are_searched_and_the_rest_is_named() -> None:
    with themis.Audit(needs_pair, wide()) as audit:
        found = audit.search(0.6)
        assert (found.max_size, audit.search_plan(0.6).sets) == (2, 14 + 91)
        assert [set(each) for each in found.found] == [{"c12", "c13"}]
        (note,) = (each for each in found.notes if each.code == "larger-sets-not-searched")
        assert "more than 2 of the 14" in str(note)
        larger = audit.search(0.6, max_size=3)
    assert larger.max_size == 3
    assert not [each for each in larger.notes if each.code == "larger-sets-not-searched"]


def test_of_twelve_characteristics_all_sets_are_searched() -> None:
    schema = wide(count=12)
    with themis.Audit(odd_triple, schema) as audit:
        assert audit.search_plan(0.5).sets == 2**12 - 1
        found = audit.search(0.5, among=["c1", "c2", "c3", "c4"])
    assert found.max_size == 4


def test_where_the_budget_ends_protected_sets_were_looked_at_before_all_others() -> None:
    with themis.Audit(lambda _: 1, wide(("c10", "c13")), max_executions=600) as audit:
        found = audit.search(0.1)
    tested = [each.against for each in found.tested if each.decision != "undecided"]
    assert len(tested) < 14 + 91
    assert tested[:3] == [("c10",), ("c13",), ("c10", "c13")]


@pytest.mark.parametrize("count", [4, 8, 14])
def test_a_search_that_finds_nothing_costs_what_its_plan_says(count: int) -> None:
    with themis.Audit(lambda person: 1, wide(count=count)) as audit:
        foreseen = audit.search_plan(0.1).executions
        spent = audit.search(0.1).executions
    assert foreseen / FACTOR <= spent <= foreseen * FACTOR
