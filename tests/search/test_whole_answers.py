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
    world = case.world
    names = case.schema.names
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
    ties = {s for s in result.found if scores[s] == threshold} if threshold else set()
    assert set(result.ties) == ties
    assert result.conclusive
    assert not result.undecided
    for each in result.minimal_sets:
        assert each.low == each.high == pytest.approx(float(scores[each.against]), abs=1e-9)
    decided = {each.against: each for each in result.tested}
    for names, each in decided.items():
        reaches = scores[names] >= threshold if threshold else scores[names] > 0
        assert (each.decision == "above") == reaches


WORLDS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@WORLDS
@given(cases(binned=False, most=3), st.sampled_from(["causal", "group"]))
def test_exact_searches_answer_by_the_definition_ties_included(case: Case, measure: Any) -> None:
    scores = ratios(case, measure)
    audit = case.audit(deterministic=True)
    for threshold in thresholds(scores):
        result = audit.search(float(threshold), measure)
        assert result.method == "exact"
        assert_defined(result, scores, threshold)


def without_weights(most: int) -> st.SearchStrategy[Case]:
    return cases(binned=False, weighted=False, most=most)


def test_a_sampled_search_that_met_every_input_answers_by_the_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With no rows foreseen nothing is run for the sake of exactness: sampling has to meet it."""
    monkeypatch.setattr(whole_domain, "ROWS", 0)
    methods = []

    @WORLDS
    @given(without_weights(3), st.sampled_from(["causal", "group"]), st.integers(0, 6))
    def check(case: Case, measure: Any, number: int) -> None:
        scores = ratios(case, measure)
        threshold = thresholds(scores)[min(number, len(thresholds(scores)) - 1)]
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


def test_thirds_tie_although_no_float_is_a_third() -> None:
    space = themis.Schema(a=range(2), b=range(3))
    audit = themis.Audit(themis.batch(lambda t: (t["a"] == 1) & (t["b"] == 0)), space)
    for measure in ("causal", "group"):
        assert ("a",) in audit.search(1 / 3, measure).ties  # type: ignore[arg-type]
        above = audit.search(1 / 3 + 1e-11, measure)  # type: ignore[arg-type]
        assert ("a",) not in above.found


# When all is run ----------------------------------------------------------------------------
NARROW = themis.Schema(a=range(2), b=range(2), rest=range(1_000))


def near(table: themis.InputTable) -> Any:
    return (table["a"] == 1) & (table["rest"] < 500) | (table["b"] == 1) & (table["rest"] < 490)


def test_a_search_that_would_go_on_for_longer_runs_what_is_missing() -> None:
    audit = themis.Audit(themis.batch(near), NARROW, error=0.02, deterministic=True)
    result = audit.search(0.25, among=["a", "b"])
    assert result.method == "exact"
    assert result.executions == NARROW.size
    assert result.minimal_sets[0].low == result.minimal_sets[0].high


def test_a_search_after_all_was_run_is_exact_and_free() -> None:
    audit = themis.Audit(themis.batch(near), NARROW, deterministic=True)
    audit.runner.run(audit.sampler.population.combinations(np.arange(NARROW.size)))
    for measure in ("causal", "group"):
        result = audit.search(0.9, measure, among=["a", "b"])  # type: ignore[arg-type]
        assert result.method == "exact"
        assert result.executions == 0


def test_a_budget_that_ends_with_the_last_input_does_not_leave_sets_open() -> None:
    audit = themis.Audit(themis.batch(near), NARROW, error=0.02, deterministic=True)
    assert audit.search(0.25, among=["a", "b"], max_executions=NARROW.size).conclusive


def test_a_check_holds_when_a_score_only_equals_its_limit() -> None:
    """At most the limit is allowed, so that sets which contain a tie are looked at as well."""
    space = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10))

    def decide(row: dict[str, Any]) -> bool:
        bonus = 3 * (row["race"] == "green")
        return bool(row["income"] + bonus >= 5)

    def verdict(limit: float) -> Any:
        audit, check = themis.Audit(decide, space), Check(search=True, max_score=limit)
        return run_checks(audit, [check], among=["race", "sex"]).checks[0].verdict

    assert verdict(0.3) == "holds"
    assert verdict(0.29) == "violated"


def test_what_equals_the_threshold_leaves_open_whether_a_larger_set_is_above() -> None:
    space = themis.Schema(race=["green", "purple"], income=range(10))
    audit = themis.Audit(lambda row: row["income"] + 3 * (row["race"] == "green") >= 5, space)
    with pytest.raises(themis.InconclusiveError, match="exactly at the limit"):
        audit.search(0.3, among=["race"]).assert_nothing_found()
    audit.search(0.4, among=["race"]).assert_nothing_found()
    audit.search(1, among=["race"]).assert_nothing_found()
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
    assert tested.decision == "above"
    assert tested.was_counted
    assert not tested.is_exact
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
