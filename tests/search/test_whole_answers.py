"""Searches that ran every input answer by the definitions: ties, and thresholds of 0 and 1."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import themis
from tests.worlds import Case, cases
from themis.audit.checker import run_checks
from themis.results.verdicts import Check
from themis.search import whole_domain

Set = tuple[str, ...]
Scores = dict[Set, Fraction]


def ratios(case: Case, measure: str) -> Scores:
    """Every set's score by Definitions 3.6 and 3.7, in ratios of whole numbers."""
    world, names = case.world, case.schema.names
    weights: dict[tuple[Any, ...], int] = {}
    for values, _ in world.inputs():
        each = [v.weight(value) for v, value in zip(world.variables, values, strict=True)]
        weights[values] = int(np.prod(each))
    score = _flipping if measure == "causal" else _spread
    sizes = range(1, len(names) + 1)
    sets = [places for size in sizes for places in combinations(range(len(names)), size)]
    return {tuple(names[p] for p in places): score(world, weights, places) for places in sets}


def _flipping(world: Any, weights: dict[Any, int], places: tuple[int, ...]) -> Fraction:
    outputs: dict[Any, set[Any]] = {}
    for values in weights:
        outputs.setdefault(_without(values, places), set()).add(world.output(values))
    flips = sum(w for v, w in weights.items() if len(outputs[_without(v, places)]) > 1)
    return Fraction(flips, sum(weights.values()))


def _spread(world: Any, weights: dict[Any, int], places: tuple[int, ...]) -> Fraction:
    good: dict[Any, int] = {}
    total: dict[Any, int] = {}
    for values, weight in weights.items():
        group = tuple(values[p] for p in places)
        total[group] = total.get(group, 0) + weight
        good[group] = good.get(group, 0) + weight * (world.output(values) in world.favourable)
    rates = [Fraction(good[group], total[group]) for group in total]
    return max(rates) - min(rates)


def _without(values: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(value for place, value in enumerate(values) if place not in places)


def reaching(scores: Scores, threshold: Fraction) -> set[Set]:
    """The minimal sets of Definition 3.9; at 0, those that matter at all."""
    above = [set(s) for s, d in scores.items() if (d >= threshold if threshold else d > 0)]
    return {s for s in scores if set(s) in above and not any(o < set(s) for o in above)}


def thresholds(scores: Scores) -> list[Fraction]:
    fixed = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)]
    return [*fixed, *sorted({score for score in scores.values() if score > 0})[:3]]


def assert_defined(result: themis.SearchResult, scores: Scores, threshold: Fraction) -> None:
    assert set(result.found) == reaching(scores, threshold)
    assert set(result.ties) == {s for s in result.found if threshold and scores[s] == threshold}
    assert result.conclusive
    assert not result.undecided
    for each in result.minimal_sets:
        assert each.low == each.high == pytest.approx(float(scores[each.against]), abs=1e-9)
    for decided in result.tested:
        score = scores[decided.against]
        reaches = score >= threshold if threshold else score > 0
        assert (decided.decision == "above") == reaches


WORLDS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


MEASURES = st.sampled_from(["causal", "group"])


@WORLDS
@given(cases(binned=False, most=3), MEASURES)
def test_exact_searches_answer_by_the_definition_ties_included(case: Case, measure: Any) -> None:
    scores = ratios(case, measure)
    audit = case.audit(deterministic=True)
    for threshold in thresholds(scores):
        result = audit.search(float(threshold), measure)
        assert result.method == "exact"
        assert_defined(result, scores, threshold)


def test_a_sampled_search_that_met_every_input_answers_by_the_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no rows foreseen nothing is run for the sake of exactness: sampling has to meet it."""
    monkeypatch.setattr(whole_domain, "ROWS", 0)
    methods = []

    @WORLDS
    @given(cases(binned=False, weighted=False, most=3), MEASURES, st.integers(0, 6))
    def check(case: Case, measure: Any, number: int) -> None:
        scores = ratios(case, measure)
        threshold = thresholds(scores)[: number + 1][-1]
        audit = case.audit(deterministic=True, error=0.04)
        result = audit.search(float(threshold), measure)
        assert result.stopped == "done"
        met_all = audit.runner.executions == len(case.world.inputs())
        methods.append(result.method)
        assert (result.method == "exact") == met_all
        if met_all:
            assert_defined(result, scores, threshold)

    check()
    assert methods.count("exact") >= 15


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_thirds_tie_although_no_float_is_a_third(measure: Any) -> None:
    space = themis.Schema(a=range(2), b=range(3))
    one = themis.batch(lambda t: (t["a"] == 1) & (t["b"] == 0))
    two = themis.batch(lambda t: t["a"] + t["b"] > 1)  # of a's groups, a third and two thirds
    for subject in (one, two):
        audit = themis.Audit(subject, space)
        assert ("a",) in audit.search(1 / 3, measure).ties
        assert ("a",) not in audit.search(1 / 3 + 1e-11, measure).found


# When all is run ----------------------------------------------------------------------------
NARROW = themis.Schema(a=range(2), b=range(2), rest=range(1_000))


def near(table: themis.InputTable) -> Any:
    return (table["a"] == 1) & (table["rest"] < 500) | (table["b"] == 1) & (table["rest"] < 490)


def test_a_search_that_would_go_on_for_longer_runs_what_is_missing_and_the_next_is_free() -> None:
    for budget in (None, NARROW.size):  # one that ends with the last input
        audit = themis.Audit(themis.batch(near), NARROW, error=0.02, deterministic=True)
        result = audit.search(0.25, among=["a", "b"], max_executions=budget)
        assert (result.method, result.executions) == ("exact", NARROW.size)
        assert result.conclusive
        assert result.minimal_sets[0].low == result.minimal_sets[0].high
        for measure in ("causal", "group"):
            again = audit.search(0.9, measure, among=["a", "b"])  # type: ignore[arg-type]
            assert (again.method, again.executions) == ("exact", 0)


def test_a_check_holds_when_a_score_only_equals_its_limit() -> None:
    """At most the limit is allowed, so that sets which contain a tie are looked at as well."""
    space = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10))
    audit = themis.Audit(lambda row: row["income"] + 3 * (row["race"] == "green") >= 5, space)
    checks = [Check(search=True, max_score=limit) for limit in (0.3, 0.29)]
    answers = run_checks(audit, checks, among=["race", "sex"]).checks
    assert [each.verdict for each in answers] == ["holds", "violated"]


def test_what_equals_the_threshold_leaves_open_whether_a_larger_set_is_above() -> None:
    space = themis.Schema(race=["green", "purple"], income=range(10))
    audit = themis.Audit(lambda row: row["income"] + 3 * (row["race"] == "green") >= 5, space)
    with pytest.raises(themis.InconclusiveError, match="exactly at the limit"):
        audit.search(0.3, among=["race"]).assert_nothing_found()
    for threshold in (0.4, 1):
        audit.search(threshold, among=["race"]).assert_nothing_found()
    with pytest.raises(themis.DiscriminationError):
        audit.search(0, among=["race"]).assert_nothing_found()


def test_a_known_score_that_failures_leave_between_two_ends_is_not_said_to_be_one_of_them() -> None:
    schema = themis.Schema(age=themis.Integers(0, 19, bins=[10]), sex=["f", "m"], income=range(30))

    def decide(person: dict[str, Any]) -> bool:
        if person["income"] == 7:
            raise ValueError
        return bool(person["income"] > (10 if person["sex"] == "m" else 20))

    audit = themis.Audit(decide, schema, max_failures=0.5, deterministic=True)
    score = audit.group("sex")
    assert (score.low, score.high) == (0.3, pytest.approx(0.3 + 2 / 30))
    found = audit.search(0.1, "group", among=["sex", "age"])
    (tested,) = (each for each in found.tested if each.against == ("sex",))
    assert (tested.decision, tested.was_counted, tested.is_exact) == ("above", True, False)
    assert "between 30.0 points and 36.7 points: executions failed" in tested.reason


@pytest.mark.parametrize("threshold", [1 / 3, 0.333333333333])
def test_scores_of_weights_that_are_no_whole_numbers_tie_too(threshold: float) -> None:
    sex = themis.Values(["f", "m"], weights=[0.4123456789012, 0.7654321098765])
    schema = themis.Schema(sex=sex, job=list("abc"), x=[0, 1])
    subject = themis.batch(lambda table: (table["sex"] == "m") | (table["job"] != "a"))
    result = themis.Audit(subject, schema, seed=1).search(threshold, measure="group")
    assert ("sex",) in result.found
    assert result.method == "exact"


def test_weighted_shares_of_who_loses_have_no_remainders() -> None:
    rng = np.random.default_rng(0)
    jobs, towns = ([f"{k}{i}" for i in range(n)] for k, n in (("j", 40), ("t", 30)))
    schema = themis.Schema(
        sex=["f", "m", "x", "y"],
        job=themis.Values(jobs, weights=rng.random(40).tolist()),
        town=themis.Values(towns, weights=rng.random(30).tolist()),
    )
    cut, need = rng.random((40, 30)), {"f": 0.6, "m": 0.4, "x": 0.6, "y": 0.6}

    def decide(table: themis.InputTable) -> Any:
        job, town = ([int(each[1:]) for each in table[name]] for name in ("job", "town"))
        return cut[job, town] > [need[each] for each in table["sex"]]

    audit = themis.Audit(themis.batch(decide), schema, seed=1)
    found = {score.against: score for score in audit.search(0.05, max_size=1).minimal_sets}
    score = found["sex",]
    assert isinstance(score, themis.CausalScore)
    assert score.direction
    assert {harm.gained for harm in score.direction} == {0.0}
    assert min(harm.lost for harm in score.direction) > 0.1


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_what_a_sample_showed_again_does_not_vouch_for_the_whole_domain(noise: float) -> None:
    """A fair function whose answers are flipped at random: no set is listed."""
    schema = themis.Schema(sex=range(2), race=range(3), kids=range(4), income=range(20))
    for seed in range(6):
        rng = np.random.default_rng(seed)

        def decide(table: themis.InputTable, rng: np.random.Generator = rng) -> Any:
            return (table["income"] > 9) ^ (rng.random(len(table["sex"])) < noise)

        audit = themis.Audit(themis.batch(decide), schema, seed=seed)
        assert audit.search(0.05, among=["sex", "race", "kids"]).found == ()
