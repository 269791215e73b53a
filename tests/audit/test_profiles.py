"""Operational profiles: inputs drawn from people as they occur together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import themis
from tests import oracle
from tests.scores.test_apparent import SOME, RowCase, row_cases
from themis.inputs.people import people_of
from themis.inputs.tables import rows_of


def profile_audit(rows: RowCase, **options: Any) -> themis.Audit:
    weights = "count" if {*rows.weights} != {1.0} else None
    people = rows.columns | {"count": rows.weights}
    return rows.case.audit(profile=people, profile_weights=weights, **options)


@SOME
@given(row_cases())
@pytest.mark.slow
def test_scores_and_searches_of_a_small_profile_are_those_of_the_definitions(rows: RowCase) -> None:
    world, audit = rows.case.world, profile_audit(rows)
    for found, score in (
        (audit.causal(*rows.case.names), oracle.causal_generated),
        (audit.group(*rows.case.names), oracle.group),
    ):
        truth, _ = score(world, rows.rows, set(rows.names))
        assert (found.population, found.method) == ("profile", "exact")
        assert found.score == pytest.approx(truth)
    threshold = 0.2137  # no ratio of a few weights: nothing is decided by rounding
    result = profile_audit(rows).search_all(threshold, ("causal", "group"))
    everything = [v.name for v in world.variables]
    for search, score in zip(result.searches, (oracle.causal_generated, oracle.group), strict=True):
        above = [
            frozenset(names)
            for size in range(1, len(everything) + 1)
            for names in itertools.combinations(everything, size)
            if score(world, rows.rows, set(names))[0] > threshold + 1e-9
        ]
        minimal = {each for each in above if not any(other < each for other in above)}
        if search.method == "exact":
            assert {frozenset(names) for names in search.found} == minimal
        assert all(each.population == "profile" for each in search.minimal_sets)


def correlated(count: int = 400) -> dict[str, Any]:
    """Green people have savings and purple ones have none: race goes with savings."""
    rng = np.random.default_rng(5)
    green = np.arange(count) % 2 == 0
    return {
        "race": np.where(green, "green", "purple"),
        "savings": np.where(green, rng.integers(60, 100, count), rng.integers(0, 40, count)),
        "noise": rng.integers(0, 1_000, count),
    }


def by_savings(table: Any) -> Any:
    """A subject that does not look at race."""
    return table["savings"] >= 50


def schema(noise: int) -> themis.Schema:
    return themis.Schema(
        race=["green", "purple"],
        savings=themis.Integers(0, 99),
        noise=themis.Integers(0, 999),
        more=themis.Integers(0, noise),
    )


@pytest.mark.parametrize("size", [1, 10**6])  # exact, and sampled
def test_where_characteristics_go_together_group_may_exceed_causal(size: int) -> None:
    data = {**correlated(2_000), "more": [0, 1] * 1_000}
    subject = themis.batch(by_savings)
    audit = themis.Audit(subject, schema(size), profile=data)
    assert audit.causal("race").score == 0
    assert audit.group("race").low > 0.9
    assert themis.Audit(subject, schema(size)).group("race").high < 0.1
    audit = themis.Audit(subject, schema(size), profile=data)
    causal, group = audit.search_all(0.2, ("causal", "group"), ["race", "savings"]).searches
    assert causal.found == (("savings",),)
    assert group.found == (("race",), ("savings",))  # not pruned by the causal one


@pytest.mark.slow
def test_sampled_intervals_hold_the_scores_of_the_profile_as_often_as_stated() -> None:
    rng = np.random.default_rng(1)
    count = 3_000
    data = {
        "race": rng.choice(["green", "purple"], count, p=[0.8, 0.2]),
        "savings": rng.integers(0, 100, count),
        "noise": rng.integers(0, 1_000, count),
        "more": rng.integers(0, 10**6, count),
        "weight": rng.integers(1, 5, count),
    }

    def unfair(table: Any) -> Any:
        return table["savings"] >= np.where(table["race"] == "green", 40, 55)

    weight = data["weight"] / data["weight"].sum()
    truth = float(weight[(data["savings"] >= 40) & (data["savings"] < 55)].sum())
    rates = [
        np.average(unfair(data)[data["race"] == race], weights=weight[data["race"] == race])
        for race in ("green", "purple")
    ]
    options: Any = {"profile": data, "profile_weights": "weight", "confidence": 0.9}
    missed = 0
    for seed in range(30):
        audit = themis.Audit(themis.batch(unfair), schema(10**6), seed=seed, **options)
        causal, group = audit.causal("race"), audit.group("race")
        assert causal.method == "sampled"
        missed += not causal.low <= truth <= causal.high
        missed += not group.low - 1e-9 <= abs(rates[0] - rates[1]) <= group.high + 1e-9
    assert missed <= 12  # 6 expected at most; more than 12 of 60 at 0.1 has probability 0.005


def test_counterfactuals_and_generated_pairs_of_a_profile_respect_constraints() -> None:
    seen: list[dict[str, Any]] = []

    def loan(person: dict[str, Any]) -> bool:
        seen.append(dict(person))
        return bool(person["race"] == "purple")

    limited = themis.Schema(race=["green", "purple"], job=["none", "nurse"], age=range(90)).where(
        "not (race == 'green' and job == 'nurse')"
    )
    people = [("green", "none"), ("purple", "none"), ("purple", "nurse")]
    rows = [{"race": race, "job": job, "age": age} for race, job in people for age in range(5)] * 5
    audit = themis.Audit(loan, limited, profile=rows)
    assert audit.causal("race").score == pytest.approx(2 / 3)  # nurses have no counterfactual
    assert any(each.generated for each in audit.causal("race", "job").witnesses)
    assert not [each for each in seen if each["race"] == "green" and each["job"] == "nurse"]


def test_finding_out_how_long_a_profile_takes_is_within_the_budget() -> None:
    calls = [0]

    def loan(person: dict[str, Any]) -> bool:
        calls[0] += 1
        return bool(person["income"] > 30)

    rows = [{"race": "gp"[i % 2], "income": i} for i in range(100)]
    schema = themis.Schema(race=["g", "p"], income=range(100))
    for count in (2, 5, 100):
        calls[0] = 0
        options: Any = {"max_executions": count, "max_seconds": 60}
        themis.Audit(loan, schema, profile=rows, **options).group("race")
        assert calls[0] <= count
        calls[0] = 0
        themis.Audit(loan, schema, profile=rows[:3], **options).group("race")
        assert calls[0] <= count


def test_beside_a_profile_all_inputs_are_drawn_as_without_one() -> None:
    """What nobody but the people of the profile has can't flip generated inputs."""
    schema = themis.Schema(sex=["female", "male"], income=range(10_000_000))
    rows = [{"sex": ("female", "male")[n % 2], "income": 4_861_100 + n} for n in range(60)]

    def decide(person: dict[str, Any]) -> bool:
        return bool(person["sex"] == "male" and 4_861_100 <= person["income"] < 4_861_200)

    beside = themis.Audit(decide, schema, profile=rows).apparent(against=["sex"])
    without = themis.Audit(decide, schema).apparent(rows, against=["sex"])
    scores = [(each.measure, each.population, each.score) for each in beside.scores]
    assert scores == [(each.measure, each.population, each.score) for each in without.scores]
    assert {score for _, population, score in scores if population == "inputs"} == {0.0}


def test_a_result_says_what_the_profile_was() -> None:
    data = {**correlated(), "more": [0] * 400, "id": range(400)}
    data["savings"][3] = 1_000
    people = people_of(rows_of(data), schema(1), unknown="drop")
    audit = themis.Audit(themis.batch(by_savings), schema(1), profile=people)
    result = audit.score([["race"]])
    assert result.data is not None
    assert (result.data["rows"], result.data["used"], result.data["dropped"]) == (400, 399, 1)
    assert result.data["ignored"] == ["id"]
    assert "1 of 400 rows" in str(result.notes[0])
    assert "out of range" in str(result.notes[0])
