"""Proxies: associations, changes and differences equal a brute-force count of a small world."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy import stats

import themis
from themis.results.notes import Ending
from themis.results.outcomes import Proxy
from themis.results.saved import result_from_dict, result_schema
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.verdicts import verdict

SEXES, JOBS, LEVELS = ["f", "m"], ["clerk", "nurse", "judge"], [0, 1, 2, 3]
RULE = "not (job == 'judge' and level < 2)"
SCHEMA = themis.Schema(
    sex=themis.Values(SEXES, protected=True), job=JOBS, level=range(4), region=["n", "s"]
).where(RULE)


def is_real(person: dict[str, Any]) -> bool:
    return not (person["job"] == "judge" and person["level"] < 2)


def world(seed: int) -> tuple[list[dict[str, Any]], Any]:
    """Random people of whom sex goes with the job, and a random program that ignores the region."""
    rng = np.random.default_rng(seed)
    table = {key: bool(rng.random() < 0.5) for key in itertools.product(SEXES, JOBS, LEVELS)}
    people = []
    while len(people) < 60:
        sex = str(rng.choice(SEXES))
        job = str(rng.choice(JOBS, p=[0.7, 0.2, 0.1] if sex == "f" else [0.2, 0.3, 0.5]))
        person = {"sex": sex, "job": job, "level": int(rng.integers(4)), "region": "n"}
        person |= {"region": str(rng.choice(["n", "s"])), "weight": int(rng.integers(1, 4))}
        people += [person] if is_real(person) else []
    return people, lambda person: table[person["sex"], person["job"], person["level"]]


def difference(people: list[dict[str, Any]], decide: Any) -> float | None:
    rates = {}
    for sex in SEXES:
        own = [person for person in people if person["sex"] == sex]
        total = sum(person["weight"] for person in own)
        if total:
            rates[sex] = sum(p["weight"] for p in own if decide(p)) / total
    return max(rates.values()) - min(rates.values()) if len(rates) > 1 else None


def cramer(people: list[dict[str, Any]], name: str) -> float:
    """The corrected V, from scipy's chi-square."""
    values = sorted({person[name] for person in people})
    table = np.zeros((2, len(values)))
    for person in people:
        table[SEXES.index(person["sex"]), values.index(person[name])] += person["weight"]
    n, k = table.sum(), len(values)
    square = stats.chi2_contingency(table, correction=False).statistic / n
    square = max(0.0, square - (k - 1) / (n - 1))
    sides = [each - (each - 1) ** 2 / (n - 1) for each in (2, k)]
    return math.sqrt(square / (min(sides) - 1))


def proxies(people: Any, decide: Any, schema: themis.Schema = SCHEMA, **options: Any) -> Any:
    audit = themis.Audit(decide, schema, max_executions=options.pop("max_executions", None))
    return audit.apparent(people, "sex", proxies=True, only_data=True, **options)


@pytest.mark.parametrize("seed", range(4))
def test_proxies_equal_a_brute_force_count(seed: int) -> None:
    people, decide = world(seed)
    found = {each.name: each for each in proxies(people, decide, weights="weight").proxies}
    assert found.keys() == {"job", "level", "region"}
    total = sum(person["weight"] for person in people)
    for name, values in {"job": JOBS, "level": LEVELS, "region": ["n", "s"]}.items():
        proxy = found[name]
        assert proxy.association == pytest.approx(cramer(people, name))
        assert proxy.difference == pytest.approx(difference(people, decide))
        assert not proxy.at_least
        assert [each.value for each in proxy.settings] == values
        changed = dict.fromkeys(range(len(people)), False)
        for value, setting in zip(values, proxy.settings, strict=True):
            given = [{**person, name: value} for person in people]
            real = [place for place, person in enumerate(given) if is_real(person)]
            for place in real:
                changed[place] |= decide(given[place]) != decide(people[place])
            unreal = sum(p["weight"] for i, p in enumerate(people) if i not in real)
            assert setting.unreal == unreal
            assert setting.people == total - unreal
            assert setting.difference == pytest.approx(difference([given[i] for i in real], decide))
            assert setting.before == pytest.approx(difference([people[i] for i in real], decide))
            assert setting.low <= setting.difference <= setting.high
        weight = sum(people[place]["weight"] for place in changed if changed[place])
        assert proxy.changed == pytest.approx(weight / total)
    assert found["region"].changed == 0
    assert not found["region"].may_stand_in
    strengths = [each.association * each.changed for each in found.values()]
    assert strengths == sorted(strengths, reverse=True)


def test_intervals_hold_for_every_value_that_might_have_been_tried() -> None:
    people, decide = world(5)
    proxy = proxies(people, decide).proxies[0]
    parts = 2 * (1 + 3 + 4 + 2)  # groups × (as they are, and each value of each characteristic)
    assert (proxy.low, proxy.high) == pytest.approx(sampled_ends(people, decide, parts))


def sampled_ends(people: list[dict[str, Any]], decide: Any, parts: int) -> tuple[float, float]:
    """The ends of the difference if 1 − 0.99 is divided into so many parts."""
    ends = []
    for sex in SEXES:
        own = [decide(person) for person in people if person["sex"] == sex]
        x, n, tail = sum(own), len(own), 0.01 / parts / 2
        low = stats.beta.ppf(tail, x, n - x + 1) if x else 0.0
        ends.append((low, stats.beta.ppf(1 - tail, x + 1, n - x) if x < n else 1.0))
    f, m = ends
    return max(0.0, f[0] - m[1], m[0] - f[1]), max(f[1] - m[0], m[1] - f[0])


@pytest.mark.parametrize("hours", [(10.5, 60.5), (10.5, 60), (10, 60), (None, None)])
def test_numbers_between_the_steps_are_tried_as_they_are(hours: tuple[Any, Any]) -> None:
    schema = themis.Schema(sex=SEXES, hours=themis.Integers(0, 100, missing=0.1))
    people = [{"sex": sex, "hours": own} for sex, own in zip(SEXES, hours, strict=True)]
    (proxy,) = proxies(people, lambda person: (person["hours"] or 0) > 40, schema).proxies
    assert [each.value for each in proxy.settings] == [each for each in hours if each is not None]
    assert proxy.changed == (0.0 if hours == (None, None) else 1.0)


@pytest.mark.parametrize("beyond", [0, 0.5])
def test_a_range_that_goes_with_the_set_is_associated_with_it(beyond: float) -> None:
    schema = themis.Schema(sex=SEXES, hours=range(1_000), shoe=range(1_000))
    rng = np.random.default_rng(1)
    people = [
        {
            "sex": sex,
            "hours": int(rng.integers(0, 400)) + 500 * (sex == "m") + beyond,
            "shoe": int(shoe) + beyond,
        }
        for sex, shoe in zip(rng.choice(SEXES, 500), rng.integers(0, 1_000, 500), strict=True)
    ]
    found = {e.name: e for e in proxies(people, lambda p: p["hours"] > 600, schema).proxies}
    assert found["hours"].association > 0.9
    assert found["hours"].may_stand_in
    assert found["shoe"].association < 0.1
    smallest, largest = found["hours"].extremes
    assert smallest.difference == largest.difference == 0  # everybody is treated alike then


def test_what_follows_a_characteristic_is_changed_with_it() -> None:
    schema = themis.Schema(
        sex=SEXES,
        job=JOBS,
        robe=themis.derived("job", {"clerk": False, "nurse": False, "judge": True}),
    )
    people = [{"sex": sex, "job": job} for sex, job in itertools.product(SEXES, JOBS[:2])]
    (proxy,) = proxies(people, lambda person: person["robe"], schema).proxies
    assert proxy.name == "job"  # what is derived cannot be set by itself
    assert proxy.changed == 1.0


def test_a_budget_that_ends_keeps_what_was_found_and_may_be_asked_again() -> None:
    people, decide = world(6)
    audit = themis.Audit(decide, SCHEMA, deterministic=True)
    options: dict[str, Any] = {"proxies": True, "only_data": True, "measures": ["group"]}
    whole = themis.Audit(decide, SCHEMA, deterministic=True).apparent(people, "sex", **options)
    audit.settings = audit.settings.changed(max_executions=whole.executions - 2)
    short = audit.apparent(people, "sex", **options)
    assert short.stopped is Ending.BUDGET
    assert 0 < len(short.proxies) < 3
    assert audit.apparent(people, "sex", **options).proxies == whole.proxies  # the rest of it
    assert audit.apparent(people, "sex", **options).executions == 0


def test_proxies_change_no_verdict_and_say_that_nothing_is_caused() -> None:
    people, decide = world(8)
    plain = themis.Audit(decide, SCHEMA).apparent(people, "sex", only_data=True)
    result = proxies(people, decide)
    assert verdict(result) == verdict(plain)
    saved = json.loads(json.dumps(result.to_dict()))
    jsonschema.validate(saved, result_schema())
    again = result_from_dict(saved)
    assert again.to_dict() == result.to_dict()
    assert isinstance(again.proxies[0], Proxy)
    first = again.proxies[0]
    assert first.may_stand_in
    for page in (
        render_markdown(again),
        render_page(again),
        render_result(again, width=100, everything=True),
    ):
        text = " ".join(page.split())
        assert f"{first.name} may stand in for sex" in text
        assert "None of this says what causes what" in text
        assert "random sample" in text
    shown = " ".join(render_result(again, width=100, everything=True).split())
    unreal, some = sum(each.unreal for each in first.settings), 60 * len(first.settings)
    assert f"{unreal} of {some} combinations of these people with values of job are unreal" in shown
    (left,) = {each.value: each for each in first.extremes if each.unreal}.values()
    assert f"Without the {left.unreal} people for whom job {left.value} is unreal" in shown
    assert f"differ by {100 * left.before:.1f} points as the others are" in shown


def test_drawing_and_proxies_contradict_each_other() -> None:
    people, decide = world(8)
    with pytest.raises(themis.RequestError, match="proxies need every row"):
        proxies(people, decide, draw=True)
