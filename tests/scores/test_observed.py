"""Observed rates: one set of inputs, whose margins add up, with intervals that hold together."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests import report_results as samples
from themis import Audit, Output, Schema, Values
from themis.results.model import Result
from themis.results.outcomes import Observed
from themis.results.withheld import withheld
from themis.scores.observed import Counted, observed_rates
from themis.show.words.scores import impact
from themis.statistics.proportions import ProportionRule, ratio_of, sampled_rate

SEX = Values(["f", "m"], protected=True)
RACE = Values(["green", "purple", "blue"], weights=[5, 3, 2], protected=True)
SIZES = ("inputs", "favourable", "undecided", "share")


def _pay(person: Any) -> int:
    return int(person["income"] >= (30 if person["sex"] == "m" else 40))


def _margins_add_up(observed: Observed) -> None:
    """Each table sums to the whole, and a pair's table to those of its parts."""
    tables = {each.against: each for each in observed.tables}
    for table in observed.tables:
        for name in ("inputs", "favourable", "undecided"):
            whole = sum(getattr(each, name) for each in table.categories)
            assert whole == getattr(observed, name)
        assert sum(each.share for each in table.categories) == pytest.approx(1)
    for (first, second), size in itertools.product(
        (names for names in tables if len(names) == 2), SIZES
    ):
        for name in (first, second):
            sums: Counter[Any] = Counter()
            for each in tables[first, second].categories:
                sums[each.values[name]] += getattr(each, size)
            for each in tables[name,].categories:
                assert sums[each.values[name]] == pytest.approx(getattr(each, size), abs=1e-9)


def _audit(seed: int = 0, subject: Any = _pay, **settings: Any) -> Audit:
    schema = Schema(sex=SEX, race=RACE, income=range(100), savings=range(10**6))
    return Audit(subject, schema, seed=seed, **settings)


MISSING = Schema(
    sex=Values(["f", "m"], protected=True, missing=0.2),
    race=RACE,
    income=range(100),
    savings=range(10**6),
)
PEOPLE = {
    "sex": ["f", "m", None] * 40,
    "race": ["green", "purple", "blue", "grey"] * 30,
    "income": list(range(60)) * 2,
    "savings": [5] * 120,
}
KINDS: dict[str, Callable[[], Result]] = {
    "audit": samples.audit,
    "people": samples.apparent,
    "outputs": samples.outputs,
    "sample": lambda: _audit().score(["sex"], observed=True),
    "missing": lambda: Audit(_pay, MISSING).score(["sex"], observed=True),
    "rows": lambda: Audit(_pay, MISSING).apparent(PEOPLE, ["sex"], only_data=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_margins_of_all_tables_add_up_exactly(kind: str) -> None:
    result = KINDS[kind]()
    assert result.observed
    for each in result.observed:
        _margins_add_up(each)


def test_the_rates_of_a_whole_domain_are_those_of_brute_force() -> None:
    schema = Schema(sex=SEX, race=RACE, income=range(0, 100, 10))
    (observed,) = Audit(_pay, schema, exact=True).score(["sex"], ["group"]).observed
    weights = dict(zip(("green", "purple", "blue"), (0.5, 0.3, 0.2), strict=True))
    every = [
        ({"sex": sex, "race": race, "income": income}, weights[race] / 20)
        for sex, race, income in itertools.product("fm", weights, range(0, 100, 10))
    ]
    assert (observed.whole, observed.inputs, observed.weighted) == (True, 60, True)
    assert observed.confidence is None
    for each in observed.categories():
        own = [(p, w) for p, w in every if all(p[n] == v for n, v in each.values.items())]
        good = [(p, w) for p, w in own if _pay(p)]
        assert (each.inputs, each.favourable) == (len(own), len(good))
        assert each.share == pytest.approx(sum(w for _, w in own))
        assert each.rate == pytest.approx(sum(w for _, w in good) / sum(w for _, w in own))
        assert each.low is None


def test_a_sample_has_the_first_base_inputs_and_counts_what_it_runs() -> None:
    calls = []

    def counting(person: Any) -> int:
        calls.append(tuple(person.values()))
        return _pay(person)

    audit = _audit(subject=counting)
    result = audit.score(["sex"], observed=True)
    (observed,) = result.observed
    assert observed.inputs == ProportionRule(0.99, 0.05).max_samples
    assert result.executions == len(calls)
    rows = audit.schema.decode_rows(audit.sampler.base.rows(0, observed.inputs))
    for each in observed.categories():
        own = [p for p in rows if all(p[n] == v for n, v in each.values.items())]
        assert (each.inputs, each.favourable) == (len(own), sum(map(_pay, own)))
    assert not _audit().score(["sex"]).observed  # nothing is run for it unless that is asked


def test_what_scores_ran_is_not_run_again() -> None:
    plain, counted = (_audit().score(["sex"], observed=each) for each in (False, True))
    more = counted.executions - plain.executions
    assert 0 <= more < counted.observed[0].inputs / 2
    assert [each.score for each in plain.scores] == [each.score for each in counted.scores]


def _rates(seed: int, count: int, confidence: float) -> Observed:
    audit = _audit(seed)
    counted = Counted.of_first(audit.sampler, count, None)
    (found,) = observed_rates(counted, [audit.sampler.reading], [(0,), (1,), (0, 1)], confidence)
    return found


def _holds(observed: Observed) -> list[bool]:
    truth = {"f": 0.6, "m": 0.7}
    mean = 0.65
    ends = [(e.values, e.low, e.high) for e in observed.categories()]
    return [low <= truth.get(v.get("sex"), mean) <= high for v, low, high in ends]  # type: ignore


@pytest.mark.some_slow(core=1)
@pytest.mark.parametrize("count", [60, 400])
def test_the_intervals_of_all_categories_hold_together(count: int) -> None:
    runs = [_holds(_rates(seed, count, 0.8)) for seed in range(400)]
    assert np.mean([all(each) for each in runs]) >= 0.8


def test_intervals_of_each_category_by_itself_would_not_hold_together() -> None:
    """A wrong rule is noticed: with 1 − confidence undivided fewer runs have all of them right."""
    undivided = 1 - 11 * (1 - 0.8)  # what each of eleven gets then
    runs = [_holds(_rates(seed, 400, undivided)) for seed in range(100)]
    assert np.mean([all(each) for each in runs]) < 0.7


def test_categories_of_few_people_have_no_name_and_margins_still_add_up() -> None:
    rows = {
        "sex": ["f"] * 60 + ["m"] * 60,
        "race": ["green"] * 57 + ["blue"] * 3 + ["purple"] * 58 + ["blue"] * 2,
        "income": list(range(60)) * 2,
        "savings": [5] * 120,
    }
    result = _audit().apparent(rows, ["sex"], only_data=True)
    shown = withheld(result).observed[0]
    pairs = next(each for each in shown.tables if each.against == ("sex", "race"))
    unnamed = [each for each in pairs.categories if not each.values]
    assert [(each.together, each.inputs, each.rate) for each in unnamed] == [(2, 5, None)]
    for table in shown.tables:
        assert sum(each.inputs for each in table.categories) == 120
        assert sum(each.favourable for each in table.categories) == shown.favourable
    assert all((each.people or 0) >= 5 for each in shown.categories())


def test_few_inputs_are_too_few_to_say_and_no_ratio_rests_on_them() -> None:
    rows = {
        "sex": ["f"] * 60 + ["m"] * 10,
        "race": ["green"] * 70,
        "income": [35] * 30 + [45] * 30 + [99] * 10,
        "savings": [5] * 70,
    }
    (observed,) = _audit().apparent(rows, ["sex"], only_data=True).observed
    many, few = observed.tables[0].categories
    assert (many.few, many.ratio, few.few, few.ratio) == (False, 1.0, True, None)


def test_no_decision_is_counted_by_itself() -> None:
    def fails(person: Any) -> int:
        if person["race"] == "blue":
            raise ValueError
        return _pay(person)

    audit = _audit(subject=fails, max_failures=0.9)
    (observed,) = audit.score(["sex"], ["group"], observed=True).observed
    blue = next(e for e in observed.categories() if e.values == {"race": "blue"})
    assert (blue.undecided, blue.favourable, blue.rate) == (blue.inputs, 0, None)
    assert observed.undecided == blue.inputs
    _margins_add_up(observed)
    women = next(e for e in observed.categories() if e.values == {"sex": "f"})
    assert women.rate == pytest.approx(women.favourable / (women.inputs - women.undecided))


def test_noise_leaves_no_intervals() -> None:
    random = np.random.default_rng(1)
    audit = _audit(subject=lambda person: int(random.random() < 0.5))
    (observed,) = audit.score(["sex"], ["group"], observed=True).observed
    assert observed.noisy
    assert observed.confidence is None
    assert all(each.low is None for each in observed.categories())


def test_a_scoring_rate_is_a_share_above_the_median_of_the_same_inputs() -> None:
    schema = Schema(sex=SEX, income=range(100))
    audit = Audit(
        lambda p: p["income"] + 10 * (p["sex"] == "m"), schema, outputs=Output(min=0, max=200)
    )
    (observed,) = audit.score(["sex"], ["group"]).observed
    numbers = {sex: np.arange(100) + 10 * (sex == "m") for sex in "fm"}
    median = np.median(np.concatenate([*numbers.values()]))
    for each in observed.categories():
        above = int((numbers[str(each.values["sex"])] > median).sum())
        assert (each.favourable, each.low) == (above, None)


def test_a_budget_that_ends_leaves_no_rates() -> None:
    assert not _audit(max_executions=300).score(["sex"], observed=True).observed


def test_a_profile_is_counted_whole_or_drawn_from() -> None:
    rows = {
        "sex": ["f", "m"] * 400,
        "race": ["green"] * 700 + ["blue"] * 100,
        "income": [n % 97 for n in range(800)],
        "savings": list(range(800)),
    }
    (whole,) = _audit(profile=rows, exact=True).score(["sex"], ["group"]).observed
    assert (whole.population, whole.whole, whole.inputs) == ("profile", True, 800)
    (drawn,) = (
        _audit(profile=rows, error=0.1, max_assignments=2)
        .score(["income"], ["causal"], observed=True)
        .observed
    )
    assert (drawn.population, drawn.whole) == ("profile", False)
    blue = next(each for each in drawn.categories() if each.values == {"race": "blue"})
    assert blue.people == 100
    assert blue.inputs < 100


def test_sets_of_very_many_categories_are_named_and_have_no_table() -> None:
    schema = Schema(
        age=themis.Integers(18, 90, protected=True), zip=themis.Integers(0, 9, protected=True),
        savings=range(10**6),
    )  # fmt: skip
    audit = Audit(lambda p: int(p["savings"] > 10**5), schema)
    (observed,) = audit.score(["age"], ["causal"], observed=True).observed
    assert [each.against for each in observed.tables] == [("age",), ("zip",)]
    assert observed.too_many == (("age", "zip"),)


def test_an_exact_ratio_of_people_has_the_ends_of_a_random_sample_beside_it() -> None:
    result = samples.apparent()
    score = next(e for e in result.scores if e.measure == "group" and e.population == "rows")
    assert score.impact_ratio_low == score.impact_ratio_high
    alpha = (1 - score.confidence) / 2
    ends = [sampled_rate(round(e.rate * e.samples), e.samples, alpha) for e in score.groups]
    ratio = ratio_of(ends)
    assert score.as_sample == pytest.approx((ratio.low, ratio.high))
    assert "0.86 in this test; as a sample 0.60–1.00: it reaches four fifths" in str(impact(score))
    noisy = replace(score, impact_ratio_low=0.5)
    assert "as a sample" not in str(impact(noisy))


def test_a_ratio_of_people_who_weigh_or_are_drawn_is_no_exact_one_of_a_sample() -> None:
    rows = {"sex": ["f", "m"] * 60, "income": [*range(60)] * 2, "w": [0.5, 1.5] * 60}
    schema = Schema(sex=SEX, income=range(60))
    audit = Audit(lambda p: int(p["income"] > 20), schema)
    for weights, is_sample in (("w", False), (None, True)):
        found = audit.apparent(rows, "sex", measures=["group"], weights=weights, only_data=True)
        score = found.scores[0]
        assert (score.as_sample is not None) == is_sample
    generated = audit.group("sex")
    assert (generated.method, generated.as_sample) == ("exact", None)


def test_the_ends_of_a_sample_hold_for_the_people_it_was_drawn_from() -> None:
    rng, runs = np.random.default_rng(4), []
    schema = Schema(sex=SEX, income=range(60))
    audit = Audit(themis.batch(lambda t: t["income"] >= 20 + 20 * (t["sex"] == "f")), schema)
    for _ in range(60):
        rows = {"sex": rng.choice(["f", "m"], 80), "income": rng.integers(0, 60, 80)}
        given = {name: each.tolist() for name, each in rows.items()}
        score = audit.apparent(given, "sex", measures=["group"], only_data=True).scores[0]
        runs.append(score.as_sample[0] <= 0.5 <= score.as_sample[1])
    assert all(runs)  # 99 % each
