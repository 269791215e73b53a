"""Sampled scores and means: intervals that hold, whatever the batches, the budget, the failures."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from tests.oracle import Variable, World
from tests.report_results import plain
from themis.engine import runner as runner_module
from themis.engine.account import Budget
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.inputs.population import Population
from themis.scores import scorer
from themis.scores.causal import measure_causal
from themis.scores.group import measure_group
from themis.scores.question import Question
from themis.settings import Settings
from themis.show.terminal.results import render_result
from themis.subjects import base as base_module
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from

RACES = ["green", "purple", "blue"]


def schema(
    *, constrained: bool = False, weighted: bool = False, bins: bool = False
) -> themis.Schema:
    result = themis.Schema(
        race=themis.Values(RACES, weights=[0.7, 0.2, 0.1] if weighted else None),
        age=themis.Integers(0, 19, bins=[7, 14] if bins else None),
        income=range(30),
        city=themis.Values(["A", "B"], weights=[0.9, 0.1] if weighted else None),
    )
    return result.where("not (age < 5 and income > 20)") if constrained else result


def decide(table: themis.InputTable) -> Any:
    """Depends on everything, with interactions."""
    race = np.searchsorted(sorted(RACES), table["race"])
    wobble = (table["age"] * 7 + table["income"] * 3 + (table["city"] == "A") * 5) % 11
    return (table["income"] + wobble > 12 + 3 * race + table["age"] / 4).astype(int)


def sampler(subject: Any, space: themis.Schema, seed: int, **options: Any) -> Sampler:
    runner = Runner(subject_from(subject, space), Labels(), max_failures=1.0)
    return Sampler(Population.of(space), runner, seed, **options)


def sampled(sample: Sampler, measure: str, *names: str, **settings: Any) -> Any:
    """A score from base inputs, also where the whole domain could be run."""
    assignments = sample.assignments(sample.population.schema.columns_of(names))
    procedure = measure_causal if measure == "causal" else measure_group
    return procedure(Question(sample, assignments, measure, Settings(**settings))).score


SPACES = {
    "plain": schema(),
    "constrained": schema(constrained=True),
    "weighted": schema(weighted=True),
    "weighted, constrained": schema(weighted=True, constrained=True),
    "bins": schema(bins=True),
    "bins, weighted": schema(bins=True, weighted=True),
    "bins, constrained": schema(bins=True, constrained=True),
    "bins, constrained alone": schema(bins=True).where("3 <= age < 16"),
    "bins, constrained in the set": schema(bins=True).where(
        "age < 9 or race != 'blue'", "age != 2 or race == 'green'"
    ),
}


SOME = ("plain", "bins, constrained in the set")
SIMULATED = [pytest.param(name, marks=[] if name in SOME else pytest.mark.slow) for name in SPACES]


def world(name: str) -> World:
    """The same space by brute force."""

    def valid(row: dict[str, Any]) -> bool:
        age, race = row["age"], row["race"]
        if name == "bins, constrained alone":
            return bool(3 <= age < 16)
        if name == "bins, constrained in the set":
            return bool((age < 9 or race != "blue") and (age != 2 or race == "green"))
        return "constrained" not in name or not (age < 5 and row["income"] > 20)

    ages, weighted = tuple(range(20)), "weighted" in name
    variables = (
        Variable("race", tuple(RACES), weights=(0.7, 0.2, 0.1) if weighted else None),
        Variable("age", ages, (ages[:7], ages[7:14], ages[14:]) if "bins" in name else None),
        Variable("income", tuple(range(30))),
        Variable("city", ("A", "B"), weights=(0.9, 0.1) if weighted else None),
    )
    return World(variables, valid, lambda row: int(decide(row)))


@pytest.mark.parametrize("names", [("race",), ("race", "age")], ids=",".join)
@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.slow
@pytest.mark.some_slow(core=1, full=2)
def test_interval_contains_the_exact_score_as_often_as_stated(
    name: str, names: tuple[str, ...], measure: str
) -> None:
    confidence, runs = 0.9, 25
    truth, covered = getattr(world(name), measure)(set(names)), 0
    for seed in range(runs):
        sample = sampler(themis.batch(decide), SPACES[name], seed)
        result = sampled(sample, measure, *names, confidence=confidence, error=0.08)
        assert result.conclusive
        covered += result.low - 1e-12 <= truth <= result.high + 1e-12
        if measure == "causal":
            assert result.high - result.low <= 0.16 + 1e-9
    # 0.9 less three standard deviations of so many coin tosses
    assert covered / runs >= confidence - 3 * (0.1 * 0.9 / runs) ** 0.5


DRAWN_APART = ("plain", "weighted, constrained", "bins, weighted", "bins, constrained in the set")


@pytest.mark.parametrize("name", DRAWN_APART)
@pytest.mark.slow
def test_result_does_not_depend_on_the_batch_size(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)

    def measured(block_rows: int | None) -> str:
        audit = themis.Audit(
            themis.batch(decide), SPACES[name], seed=7, error=0.08, confidence=0.95
        )
        audit.sampler.block_rows = block_rows
        data = audit.score([["race"], ["race", "age"], ["age"]]).to_dict()
        del data["timing"], data["subject"]
        return json.dumps(data)

    assert measured(None) == measured(5) == measured(17)


LARGE = themis.Schema(
    race=RACES, age=themis.Integers(18, 120), income=themis.Integers(0, 10**9), id=range(10**6)
)


def large(table: themis.InputTable) -> Any:
    return table["income"] > 5e8 + 1e8 * (table["race"] == "green") - 1e6 * table["age"]


def test_a_domain_beyond_64_bits_is_sampled_and_counted_exactly() -> None:
    huge = themis.Schema({f"c{i}": range(1000) for i in range(30)})
    assert huge.size == 1000**30
    audit = themis.Audit(themis.batch(lambda t: t["c0"] >= 500), huge, seed=3)
    assert audit.causal("c0").score == 1.0
    assert audit.group("c1").high < 0.2


def test_asking_again_executes_nothing_and_a_superset_reuses_what_its_subsets_ran() -> None:
    audit, fresh = (themis.Audit(themis.batch(large), LARGE, seed=1) for _ in range(2))
    first, again = audit.causal("race"), audit.causal("race")
    assert (first.executions > 0, again.executions, again.cache_hits > 0) == (True, 0, True)
    assert (again.score, again.low, again.witnesses) == (first.score, first.low, first.witnesses)
    audit.group("race")
    shared, alone = (each.group("race", "age", max_executions=9_000) for each in (audit, fresh))
    assert shared.score == pytest.approx(alone.score, abs=0.2)
    assert shared.cache_hits > 0


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_the_execution_budget_is_never_exceeded_and_the_end_is_said(measure: str) -> None:
    audit = themis.Audit(themis.batch(large), LARGE, seed=1, max_executions=50)
    result = getattr(audit, measure)("race")
    assert result.executions <= 50
    assert (result.stopped, result.conclusive) == ("budget", False)
    assert result.low < result.high
    assert "budget" in str(result.notes[0])


@pytest.mark.slow
def test_interval_of_a_budgeted_run_covers_the_truth() -> None:
    truth = themis.Audit(themis.batch(decide), schema(), error=0.001).causal("race").score
    covered = 0
    for seed in range(200):
        sample = sampler(themis.batch(decide), schema(), seed)
        sample.runner.start(Budget(max_executions=150))
        result = sampled(sample, "causal", "race", confidence=0.9, error=0.01)
        covered += result.low <= truth <= result.high
    assert covered >= 180 - 3 * (200 * 0.09) ** 0.5


@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize("names", [("race",), ("age",)])
def test_failed_executions_widen_the_interval_to_every_possible_answer(
    measure: str, names: tuple[str, ...]
) -> None:
    def answer(row: dict[str, Any], instead: int | None = None) -> int:
        if (row["age"] * 31 + row["income"] * 17) % 10:
            return int(row["income"] > 12 + 2 * RACES.index(row["race"]))
        if instead is None:
            raise RuntimeError("no answer")
        return instead

    result = sampled(sampler(answer, schema(), 5), measure, *names, confidence=0.99, error=0.08)
    assert result.unknown > 0
    for instead in (0, 1):
        whole = themis.Audit(partial(answer, instead=instead), schema())
        truth = getattr(whole, measure)(*names).score
        assert result.low - 1e-9 <= truth <= result.high + 1e-9


def test_too_many_assignments_give_a_lower_bound_that_says_so() -> None:
    audit = themis.Audit(themis.batch(large), LARGE, seed=2)
    result = audit.causal("id", "age")
    assert (result.lower_bound, result.high) == (True, 1.0)
    assert result.score <= 0.2
    assert "lower bound" in " ".join(map(str, result.notes))
    assert audit.causal("income").low > 0.9
    assert not audit.causal("race").lower_bound


def test_a_lower_bound_never_exceeds_the_truth() -> None:
    space = schema()
    truth = themis.Audit(themis.batch(decide), space, error=0.001).causal("age", "income").score
    for seed in range(40):
        sample = sampler(themis.batch(decide), space, seed)
        result = sampled(sample, "causal", "age", "income", max_assignments=30, error=0.1)
        assert result.low <= truth <= result.high


def test_members_of_bins_are_inside_them_however_large_they_are() -> None:
    for edge in (2**31 - 5, 2**32 - 10, 10**10):
        schema = themis.Schema(x=themis.Integers(0, edge + 4000, bins=[edge]), y=range(10))
        audit = themis.Audit(lambda person, edge=edge: person["x"] >= edge, schema)
        assert audit.causal("x").low > 0.9
        assert audit.group("x").low > 0.9


@pytest.mark.parametrize("vectorised", [False, True])
@pytest.mark.parametrize("repeats", [1, 5])
def test_a_time_budget_is_met_within_a_few_executions(
    monkeypatch: pytest.MonkeyPatch, vectorised: bool, repeats: int
) -> None:
    clock = Clock.put_into(monkeypatch, runner_module, base_module)
    begin, pause, seconds = clock.now, 0.05, 0.5

    def slow(table: Any) -> Any:
        clock.now += pause * (len(table) if vectorised else 1)
        return table["a"] > 50

    subject = themis.batch(slow) if vectorised else slow
    schema = themis.Schema(sex=["f", "m"], a=range(100))
    audit = themis.Audit(subject, schema, max_seconds=seconds, repeats=repeats)
    assert audit.causal("sex").stopped == "budget"
    assert clock.now - begin <= seconds + pause * (4.5 + 4 * repeats)


@pytest.mark.parametrize("vectorised", [False, True])
def test_several_outputs_may_be_favourable_where_a_difference_is_run_again(
    vectorised: bool,
) -> None:
    schema = themis.Schema(a=range(2), b=range(100), c=range(10**6))

    def decide(given: Any) -> Any:
        best = given["a"] * 30 + given["b"] > 60
        answers = np.select([best, given["b"] > 40], ["yes", "maybe"], "no")
        return answers if vectorised else str(answers)

    subject = themis.batch(decide) if vectorised else decide
    score = themis.Audit(subject, schema, favourable=["yes", "maybe"]).group("a")
    assert 0 < score.low <= 0.1 <= score.high


# Do sampled means, of groups and of distances, contain the truth and take few executions? -----


SCHEMA = themis.Schema(
    sex=["female", "male"], hours=range(10, 61), income=range(100), children=range(20)
)
LIMIT = themis.Output(name="limit", min=0, max=5000)


def a_tenth_less(person: dict[str, Any]) -> float:
    return (1000 + 40 * person["hours"]) * (0.9 if person["sex"] == "female" else 1.0)


def rarely_nothing(person: dict[str, Any]) -> float:
    """Women get 40 more, but those with 19 children nothing."""
    if person["sex"] == "male":
        return 1000
    return 0 if person["children"] == 19 else 1040


TRUTHS = {a_tenth_less: (2160 / 5000, 2400 / 5000), rarely_nothing: (988 / 5000, 1000 / 5000)}


@pytest.mark.parametrize("subject", TRUTHS)
@pytest.mark.parametrize("seed", range(3))
def test_the_truth_is_within_the_ends(subject: Any, seed: int) -> None:
    score = themis.Audit(subject, SCHEMA, outputs=[LIMIT], seed=seed, error=0.02).group("sex")
    women, men = TRUTHS[subject]
    assert score.method == "sampled"
    assert score.low <= abs(men - women) <= score.high
    truths = {"female": women, "male": men}
    assert all(each.low <= truths[each.values["sex"]] <= each.high for each in score.groups)


@pytest.mark.parametrize(
    ("error", "most"), [(0.05, 650), (0.02, 1_000), (0.01, 2_000), (0.005, 4_000)]
)
def test_a_difference_that_hardly_varies_is_found_with_few_executions(
    error: float, most: int
) -> None:
    """Outcomes drawn at random would take 3,700, 12,000 and 55,000; the first would find none."""
    score = themis.Audit(a_tenth_less, SCHEMA, outputs=[LIMIT], seed=1, error=error).group("sex")
    assert score.low > 0
    assert score.high - score.low <= 2 * error
    assert score.executions < most


# Causal scores by degrees ---------------------------------------------------------------------
PREMIUM = themis.Output(name="premium", min=0, max=5000, distance="relational")
MANY = themis.Schema(sex=["f", "m"], age=range(18, 80), city=range(9), x=range(100_000))


def dearer(table: themis.InputTable) -> Any:
    return 100 + 20 * (table["sex"] == "f") + table["age"]


def everything(table: themis.InputTable) -> Any:
    """The whole scale, or nothing: distances of 0 and 1."""
    return 5000 * ((table["x"] % 10 < 3) & (table["sex"] == "f") & (table["city"] < 8))


def graded(subject: Any, *, output: themis.Output = PREMIUM, **options: Any) -> themis.Audit:
    return themis.Audit(themis.batch(subject), MANY, outputs=[output], **options)


@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("stopping", ["certified", "paper"])
def test_what_changed_a_little_for_everybody_changed(seed: int, stopping: Any) -> None:
    """Of the distance of 0.004 nothing was seen in 106 rows, and "changed for none" was said."""
    audit = graded(dearer, stopping=stopping, seed=seed)
    score = audit.causal("sex")
    assert score.score == pytest.approx(0.004)
    assert score.low <= 0.004 <= score.high
    assert len(score.witnesses) == 10
    shown = " ".join(plain(render_result(audit.score([["sex"]], ["causal"]))).split())
    assert "changes by 0.4 %" in shown
    assert "none of" not in shown


@pytest.mark.parametrize("against", ["sex", "city"])
@pytest.mark.parametrize("error", [0.05, 0.02])
def test_distances_of_zero_and_one_take_what_flips_take(against: str, error: float) -> None:
    asked: Any = {"cost": "executions", "error": error, "seed": 3}
    degrees, flips = (
        graded(everything, output=output, **asked).causal(against)
        for output in (PREMIUM, replace(PREMIUM, distance="exact"))
    )
    assert (degrees.score, degrees.low, degrees.high) == (flips.score, flips.low, flips.high)
    assert degrees.samples == flips.samples
    assert degrees.account.sampling <= flips.account.sampling + flips.samples


@pytest.mark.parametrize(("error", "most"), [(0.05, 110), (0.01, 560)])
def test_a_change_that_hardly_varies_takes_few_rows(error: float, most: int) -> None:
    audit = graded(dearer, cost="executions", error=error, seed=1)
    assert audit.causal("sex").samples <= most


@pytest.mark.parametrize("limit", [None, 150])
def test_failures_and_a_budget_leave_honest_ends_by_degrees(limit: int | None) -> None:
    def failing(table: themis.InputTable) -> Any:
        answers = np.asarray(dearer(table), dtype=object)
        answers[table["x"] % 10 == 0] = None
        return answers

    score = graded(failing, max_failures=0.5, seed=1, max_executions=limit).causal("sex")
    assert score.unknown > 0
    assert score.score < 0.004 < 0.1036 <= score.high
    assert score.low <= 0.9 * 0.004
