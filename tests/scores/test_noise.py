"""Can noise pass for discrimination? Simulations with fixed seeds, and what is said about it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from tests.engine.test_repeats import noisy
from tests.projects import Project, run
from themis.audit.checker import run_checks
from themis.engine.runner import Runner
from themis.results.notes import Ending
from themis.results.verdicts import Check
from themis.scores.reruns import ENOUGH
from themis.show.terminal.results import render_result
from themis.show.words.headlines import headline
from themis.statistics.intervals import placebo_at_most

SCHEMA = themis.Schema(
    race=["green", "purple"],
    region=range(5),
    district=range(70),
    income=range(100),
    savings=themis.Integers(0, 10**6),
)
SETS = {2: "race", 5: "region", 70: "district"}


def limit(name: str, score: float) -> Check:
    return Check(against=(name,), max_score=score, name="check")


def table_subject(share: Any, *, gap: int = 0, seed: int = 0) -> Any:
    """A decision about a table, with another limit for each race and so many random flips."""
    rng = np.random.default_rng(seed)

    def decide(table: themis.InputTable) -> Any:
        usual = table["income"] >= np.where(table["race"] == "green", 50, 50 + gap)
        odds = share(table) if callable(share) else share
        return usual != (rng.random(len(table)) < odds)

    return themis.batch(decide)


def coins(table: themis.InputTable) -> Any:
    """Noise of a few people: the decision about them is a coin toss, about others there is none."""
    return np.where(table["savings"] % 50 == 0, 0.5, 0.0)


# A fair subject never seems to discriminate; `audit.test_false_verdicts` has most of it ---------
def test_noise_of_a_fair_subject_is_said_and_without_the_probe_it_is_found_guilty() -> None:
    for width, error in ((2, 0.01), (5, 0.01), (70, 0.1)):
        check = limit(SETS[width], 0.002)
        aware, trusting = (
            run_checks(themis.Audit(table_subject(0.01), SCHEMA, error=error, **options), [check])
            for options in ({}, {"deterministic": True})
        )
        (score,), (answer,) = aware.scores, aware.checks
        assert answer.verdict == "not enough evidence"
        assert "does not always give the same decision: noise alone gives" in answer.reason
        assert (score.low, score.stopped, score.conclusive) == (0, "noise", False)
        assert trusting.checks[0].verdict == "violated"


@pytest.mark.parametrize("seed", range(40))
def test_noise_in_a_domain_that_is_run_whole_is_no_exact_score(seed: int) -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(100))
    score = themis.Audit(noisy(0.01, seed=seed), schema, seed=seed).causal("race")
    assert score.method == "exact"
    assert score.low == 0
    assert score.conclusive == (score.high == 0)  # by chance there was none


# The numbers hold ----------------------------------------------------------------------------
@pytest.mark.parametrize("width", [2, 70])
@pytest.mark.parametrize("share", [0.02, coins], ids=["everywhere", "coins"])
@pytest.mark.slow
def test_true_placebo_and_true_rate_are_in_their_intervals(width: int, share: Any) -> None:
    odds = np.array([0.02]) if share == 0.02 else np.array([0.5] + [0.0] * 49)

    def truth(runs: int) -> float:
        return float((1 - odds**runs - (1 - odds) ** runs).mean())

    runs = 60
    wrong_rates = wrong_placebos = compared = 0
    for seed in range(runs):
        subject = table_subject(share, seed=seed)
        audit = themis.Audit(subject, SCHEMA, seed=seed, error=0.2, confidence=0.8)
        placebo, noise = audit.causal(SETS[width]).placebo, audit.noise
        wrong_rates += not noise.low <= truth(2) <= noise.high
        if placebo is not None:  # else no noise was found
            compared += 1
            wrong_placebos += not placebo.low <= truth(width) <= placebo.high
    assert compared > 0.9 * runs
    assert wrong_rates <= 0.2 * runs
    assert wrong_placebos <= 0.2 * runs


@pytest.mark.slow
@pytest.mark.parametrize(("cost", "widest"), [("executions", 0.1), ("calls", 0.11)])
def test_true_score_is_in_the_interval_with_noise_that_is_allowed(cost: Any, widest: float) -> None:
    asked: dict[str, Any] = {"error": 0.02, "probe": 3_000, "max_noise": 0.02, "cost": cost}
    for seed in range(20):
        subject = table_subject(0.003, gap=20, seed=seed)
        score = themis.Audit(subject, SCHEMA, seed=seed, **asked).causal("race")
        assert score.conclusive
        assert score.placebo is not None
        assert score.low <= 0.2 <= score.high
        assert score.high - score.low <= widest  # reruns take off a little, the placebo adds some


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(0.001, 1), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 80),
)
def test_bound_on_the_placebo_holds_for_any_noise(inputs: list[list[float]], runs: int) -> None:
    chances = [np.array(each) / sum(each) for each in inputs]
    rate = float(np.mean([1 - (p**2).sum() for p in chances]))
    placebo = float(np.mean([1 - (p**runs).sum() for p in chances]))
    assert placebo <= placebo_at_most(rate, runs, two_outputs=False) + 1e-9
    if all(len(each) <= 2 for each in inputs):
        bound = placebo_at_most(rate, runs, two_outputs=True)
        assert placebo <= bound + 1e-9
        assert bound <= placebo_at_most(rate, runs, two_outputs=False) + 1e-9
    if runs >= 2:
        assert rate <= placebo + 1e-9


# Repeats bring noise under control -----------------------------------------------------------
@pytest.mark.slow
def test_verdicts_are_right_when_each_output_is_the_majority_of_five_runs() -> None:
    noisy = 0
    for seed in range(25):
        for gap, expected in ((20, "violated"), (0, "holds")):
            subject = table_subject(0.01, gap=gap, seed=seed)
            audit = themis.Audit(subject, SCHEMA, seed=seed, error=0.02, repeats=5)
            result = run_checks(audit, [limit("race", 0.1)])
            noisy += result.noise.differing > 0  # a majority is wrong once in a hundred thousand
            noticed = any(note.code == "inconsistent-example" for note in result.notes)
            open_ = ["not enough evidence"] if noticed else []
            assert result.checks[0].verdict in [expected, *open_]
    assert noisy <= 2


def test_noise_that_repeats_do_not_remove_is_still_found() -> None:
    audit = themis.Audit(table_subject(coins), SCHEMA, error=0.02, repeats=5, seed=1)
    result = audit.score([["race"]], ["causal"])
    assert result.noise.differing > 0
    assert result.scores[0].stopped == "noise"
    assert "although each is the majority of 5 runs" in flat(render_result(result))


# Numbers and several outputs -----------------------------------------------------------------
LIMIT = themis.Output(name="limit", at="limit", min=0, max=1_000, distance="relational")


def credit(noise: float, *, gap: float = 0.0, seed: int = 0) -> Any:
    """A decision without noise, and a limit that is off by so much, up or down."""
    rng = np.random.default_rng(seed)

    def decide(table: themis.InputTable) -> Any:
        less = np.where(table["race"] == "green", 0.0, gap)
        amount = 5.0 * table["income"] + 300 - less + noise * (2 * rng.random(len(table)) - 1)
        return {"limit": amount, "granted": table["income"] >= 50 + less / 10}

    return themis.batch(decide)


def test_noise_of_one_output_does_not_touch_another() -> None:
    granted = themis.Output(name="granted", at="granted")
    audit = themis.Audit(credit(100, gap=100), SCHEMA, outputs=[LIMIT, granted], error=0.02)
    noisy_one, other = audit.score([["race"]], ["causal"]).scores
    assert (noisy_one.output, noisy_one.stopped) == ("limit", "noise")
    assert noisy_one.placebo.low <= 200 / 3 / 1_000 <= noisy_one.placebo.high  # of two runs
    assert (other.output, other.conclusive) == ("granted", True)
    assert (other.notes, other.placebo) == ((), None)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.slow
def test_fair_number_with_noise_is_never_taken_for_discrimination(seed: int) -> None:
    audit = themis.Audit(credit(100, seed=seed), SCHEMA, outputs=LIMIT, error=0.01, seed=seed)
    for name in ("race", "region"):
        score = audit.causal(name)
        assert score.score > 0.05
        assert (score.low, score.stopped) == (0.0, "noise")


def test_jitter_far_below_the_differences_is_no_noise() -> None:
    audit = themis.Audit(credit(1e-6, gap=100), SCHEMA, outputs=LIMIT)
    score = audit.causal("race")
    assert (score.conclusive, score.placebo, audit.noise.differing) == (True, None, 0)
    assert score.low <= 0.1 <= score.high


def test_means_of_repeats_have_less_noise() -> None:
    rates = []
    for repeats in (1, 9):
        subject = credit(100, gap=200)
        audit = themis.Audit(subject, SCHEMA, outputs=LIMIT, repeats=repeats, probe=2_000)
        score = audit.causal("race")
        rates.append(audit.noise.rate)
        assert score.low <= 0.2 <= score.high
    assert rates[1] < rates[0] / 2


# Searches ------------------------------------------------------------------------------------
def test_search_lists_what_noise_does_not_explain() -> None:
    for seed in range(4):
        subject = table_subject(0.01, gap=40, seed=seed)
        audit = themis.Audit(subject, SCHEMA, seed=seed)
        found = audit.search(0.2, among=["race", "region"])
        assert found.found == (("race",),)
        assert found.minimal_sets[0].low > 0.15
        assert found.stopped == "noise"
        audit = themis.Audit(table_subject(0.01, gap=40), SCHEMA, seed=seed, repeats=5)
        again = audit.search(0.2, among=["race", "region"])
        assert (again.found, again.stopped) == ((("race",),), "done")


@pytest.mark.parametrize("vectorised", [False, True])
def test_search_of_a_subject_without_noise_is_left_as_it_is(vectorised: bool) -> None:
    subject = table_subject(0.0, gap=40) if vectorised else noisy(0.0, gap=40)
    with_probe, without = (
        themis.Audit(subject, SCHEMA, deterministic=trusting).search_all(
            0.2, among=["race", "region"]
        )
        for trusting in (None, True)
    )
    assert with_probe.noise.differing == 0
    repeats, others = with_probe.spent.noise, without.executions
    assert repeats <= (2 * ENOUGH if vectorised else others // 20) + 2 * ENOUGH
    for with_reruns, plain in zip(with_probe.scores, without.scores, strict=True):
        assert (with_reruns.reruns.made > 50, with_reruns.reruns.differing) == (True, 0)
        assert replace(with_reruns, reruns=plain.reruns) == plain
    assert with_probe.executions - repeats == without.executions
    assert [each.found for each in with_probe.searches] == [e.found for e in without.searches]


# What is said --------------------------------------------------------------------------------
def flat(text: str) -> str:
    return " ".join(text.split())


def test_pairs_that_do_not_come_out_again_are_noise_even_if_no_other_input_shows_any() -> None:
    race = themis.Values(["green", "purple"], weights=[1, 1e-9])  # nobody is drawn purple
    schema = themis.Schema(race=race, income=range(100), savings=themis.Integers(0, 10**6))
    coin = np.random.default_rng(3)

    def decide(person: dict[str, Any]) -> int:
        return int(person["race"] == "purple" and coin.random() < 0.2)

    result = themis.Audit(decide, schema, error=0.02).score([["race"]], ["causal"])
    assert result.noise.differing == 0
    assert result.scores[0].stopped == "noise"
    assert "warning: the subject does not always give the same" in flat(render_result(result))


def test_failures_when_run_again_are_not_taken_for_noise() -> None:
    runs: Counter[tuple[Any, ...]] = Counter()

    def decide(person: dict[str, Any]) -> int:
        key = tuple(person.values())
        runs[key] += 1
        if runs[key] > 1 and person["savings"] % 2:
            raise TimeoutError("busy")
        return int(person["income"] >= (50 if person["race"] == "green" else 60))

    audit = themis.Audit(decide, SCHEMA, probe=60, max_failures=0.5)
    result = audit.score([["race"]], ["causal"])
    assert 10 < result.noise.inputs < 50
    assert result.noise.differing == 0
    assert result.scores[0].conclusive
    assert result.failures["crash"]["count"] > 10


def test_verdict_given_before_noise_was_found_is_taken_back() -> None:
    coin = np.random.default_rng(1)

    def checked(*checks: Check) -> themis.Result:
        asked = itertools.count(1)

        def decide(person: dict[str, Any]) -> int:
            odd = next(asked) > 3_000 and coin.random() < 0.03
            return int((person["income"] >= (50 if person["race"] == "green" else 65)) != odd)

        return run_checks(themis.Audit(decide, SCHEMA, seed=2), list(checks))

    first = limit("race", 0.05)
    assert checked(first).checks[0].verdict == "violated"
    result = checked(first, limit("income", 0.5))
    assert [each.verdict for each in result.checks] == ["not enough evidence"] * 2
    assert result.scores[0].stopped == "noise"


INPUTS = """\
race = { values = ["green", "purple"], protected = true }
income = { min = 0, max = 99 }
savings = { min = 0, max = 999999 }
"""
ASKED = "[run]\nerror = 0.02\n[[checks]]\nagainst = ['race']\nmax_score = 0.1\n"


@pytest.mark.parametrize(("needed", "with_repeats"), [(50, 0), (80, 1)])
def test_commands_end_with_4_unless_repeats_help(
    project: Project, needed: int, with_repeats: int
) -> None:
    usual = f'person["income"] >= (50 if person["race"] == "green" else {needed})'
    body = f"return int(({usual}) != (coin.random() < 0.01))"
    head = "import random\ncoin = random.Random(7)"
    project(body, head=head, inputs=INPUTS, extra=ASKED)
    search = ["search", "--threshold", "0.1", "--among", "race", "--probe", "300"]
    for command in (search, ["score"], ["check"]):
        done = run(*command)
        assert done.exit_code == 4, (command, done.stdout)
        assert "does not always give the same decision" in flat(done.stdout)
    assert "undecided: the subject does not always give the same decision" in flat(done.stdout)
    done = run("check", "--repeats", "9")
    assert done.exit_code == with_repeats, done.stdout
    assert "does not always" not in flat(done.stdout)
    assert run("score", "--repeats", "9").exit_code == 0


@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_probe_ends_where_every_input_was_run_again(size: int) -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(size))
    for probe in (None, 1_000):
        audit = themis.Audit(lambda person: person["income"] > 1, schema, probe=probe)
        audit.search_all(0.1)
        noise = audit.search_all(0.2).noise
        assert noise is None or noise.inputs <= 2 * size


def test_what_the_probe_runs_does_not_depend_on_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(40))

    def noise_of(batch: int) -> Any:
        monkeypatch.setattr(Runner, "batch_size", batch)

        def loan(table: themis.InputTable) -> Any:
            if (table["income"] == 7).any():
                raise ValueError("no income of 7")
            return table["income"] > np.where(table["race"] == "green", 13, 25)

        audit = themis.Audit(themis.batch(loan), schema, seed=3, max_failures=1.0)
        result = audit.score([["race"]]).to_dict()
        measured = [result["account"][name] for name in ("sampling", "noise", "explanations")]
        return result["noise"], measured, result["cache_hits"]

    assert noise_of(1) == noise_of(7) == noise_of(10_000)
    assert 60 < noise_of(7)[0]["inputs"] <= 78  # those that fail are not among them


def test_an_impact_ratio_of_a_noisy_domain_that_was_run_once_is_no_exact_one() -> None:
    rng = np.random.default_rng(4)
    schema = themis.Schema(sex=["f", "m"], age=range(60))
    score = themis.Audit(lambda _: bool(rng.random() < 0.5), schema, seed=1).group("sex")
    assert (score.method, score.four_fifths) == ("exact", "unclear")
    assert score.impact_ratio_low < 0.8 < score.impact_ratio <= 1.0
    assert "(because of noise)" in headline(score)


@pytest.mark.parametrize(("max_noise", "stopped"), [(0.02, Ending.NOISE), (1.0, Ending.EXHAUSTED)])
def test_noise_that_may_explain_too_much_of_exact_rates_leaves_them_open(
    max_noise: float, stopped: Ending
) -> None:
    rng = np.random.default_rng(4)
    schema = themis.Schema(sex=["f", "m"], age=range(60))

    def decide(person: dict[str, Any]) -> bool:
        return bool((person["age"] > 30) != (rng.random() < 0.2))

    score = themis.Audit(decide, schema, seed=1, max_noise=max_noise).group("sex")
    assert (score.method, score.stopped) == ("exact", stopped)
    assert score.high > score.score + 0.02
    assert score.conclusive is (max_noise == 1.0)


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.5), (0.9, 1.0), (0.0, 0.1)])
def test_few_inputs_that_are_decided_by_chance_are_no_acquittal(low: float, high: float) -> None:
    schema = themis.Schema(sex=["f", "m"], x=range(20))
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def decide(person: dict[str, Any], rng: np.random.Generator = rng) -> bool:
            return bool(rng.random() < (high if person["sex"] == "m" else low))

        score = themis.Audit(decide, schema, seed=seed, error=0.02).group("sex")
        again = themis.Audit(decide, schema, seed=seed)
        search = again.search((high - low) / 2, among=["sex"], measure="group")
        wrong += not score.low <= high - low <= score.high
        wrong += search.conclusive and not search.found
    assert wrong <= 3, "whoever answers alike twice throughout can't be found out"
