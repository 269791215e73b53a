"""Proxies: associations, changes and differences equal a brute-force count of a small world."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy import stats

import themis
from tests.report_results import saved
from themis.results.notes import Ending
from themis.results.saved import result_schema
from themis.results.withheld import withheld
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
    ends = []
    for sex in SEXES:
        own = [decide(person) for person in people if person["sex"] == sex]
        x, n, tail = sum(own), len(own), 0.01 / parts / 2
        low = stats.beta.ppf(tail, x, n - x + 1) if x else 0.0
        ends.append((low, stats.beta.ppf(1 - tail, x + 1, n - x) if x < n else 1.0))
    f, m = ends
    expected = max(0.0, f[0] - m[1], m[0] - f[1]), max(f[1] - m[0], m[1] - f[0])
    assert (proxy.low, proxy.high) == pytest.approx(expected)


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
    sex = rng.choice(SEXES, 500)
    hours = rng.integers(0, 400, 500) + 500 * (sex == "m") + beyond
    people = {"sex": sex, "hours": hours, "shoe": rng.integers(0, 1_000, 500) + beyond}
    found = {e.name: e for e in proxies(people, lambda p: p["hours"] > 600, schema).proxies}
    assert found["hours"].association > 0.9
    assert found["hours"].may_stand_in
    assert found["shoe"].association < 0.1
    smallest, largest = found["hours"].extremes
    assert smallest.difference == largest.difference == 0  # everybody is treated alike then


def test_what_follows_a_characteristic_is_changed_with_it() -> None:
    robe = themis.derived("job", {"clerk": False, "nurse": False, "judge": True})
    schema = themis.Schema(sex=SEXES, job=JOBS, robe=robe)
    people = [{"sex": sex, "job": job} for sex, job in itertools.product(SEXES, JOBS[:2])]
    (proxy,) = proxies(people, lambda person: person["robe"], schema).proxies
    assert (proxy.name, proxy.changed) == ("job", 1.0)  # what is derived can't be set by itself


def test_a_budget_that_ends_keeps_what_was_found_and_may_be_asked_again() -> None:
    people, decide = world(6)
    asked: dict[str, Any] = {"proxies": True, "only_data": True, "measures": ["group"]}
    audit, other = (themis.Audit(decide, SCHEMA, deterministic=True) for _ in range(2))
    whole = other.apparent(people, "sex", **asked)
    audit.settings = audit.settings.changed(max_executions=whole.executions - 2)
    short, rest, again = (audit.apparent(people, "sex", **asked) for _ in range(3))
    assert short.stopped is Ending.BUDGET
    assert 0 < len(short.proxies) < 3
    assert rest.proxies == whole.proxies
    assert again.executions == 0


def test_proxies_change_no_verdict_and_say_that_nothing_is_caused() -> None:
    people, decide = world(8)
    without = themis.Audit(decide, SCHEMA).apparent(people, "sex", only_data=True)
    result = proxies(people, decide)
    assert verdict(result) == verdict(without)
    jsonschema.validate(result.to_dict(), result_schema())
    again = saved(result)
    assert again.to_dict() == result.to_dict()
    first = again.proxies[0]
    assert first.may_stand_in
    terminal = render_result(again, width=100, everything=True)
    for page in (render_markdown(again), render_page(again), terminal):
        text = " ".join(page.split())
        assert f"{first.name} may stand in for sex" in text
        assert "None of this says what causes what" in text
        assert "random sample" in text
    with pytest.raises(themis.RequestError, match="proxies need every row"):
        proxies(people, decide, draw=True)


def redrawn_rates(people: list[dict[str, Any]], decide: Any, name: str, values: Any) -> Any:
    """Each group's rate, by one draw of everything that may be drawn, and everybody's."""
    owns = [person for person in people if person[name] in values]
    share = {v: sum(p["weight"] for p in owns if p[name] == v) for v in values}
    total, rates = sum(share.values()), dict.fromkeys([*SEXES, "all"], 0.0)
    for group in rates:
        for value in values:
            own = [{**p, name: value} for p in people if group in ("all", p["sex"])]
            own = [p for p in own if is_real(p)]
            good = sum(p["weight"] for p in own if decide(p)) / sum(p["weight"] for p in own)
            rates[group] += share[value] / total * good
    return rates


@pytest.mark.parametrize("seed", range(4))
def test_redrawing_equals_a_count_of_everybody_with_every_value(seed: int) -> None:
    people, decide = world(seed)
    found = {each.name: each for each in proxies(people, decide, weights="weight").proxies}
    for name, values in {"job": JOBS, "level": LEVELS, "region": ["n", "s"]}.items():
        rates, redrawn = redrawn_rates(people, decide, name, values), found[name].redrawn
        assert redrawn.difference == pytest.approx(abs(rates["f"] - rates["m"]))
        assert redrawn.rate == pytest.approx(rates["all"])
        assert redrawn.low <= redrawn.difference <= redrawn.high
        assert (redrawn.people, redrawn.undecided) == (sum(p["weight"] for p in people), 0)
    assert found["region"].redrawn.difference == pytest.approx(found["region"].difference)


def test_ten_values_stand_for_a_tenth_of_the_people_each() -> None:
    schema = themis.Schema(sex=SEXES, hours=range(1_000))
    hours = [5] * 50 + list(range(100, 900, 16))  # half of them have the same
    people = [{"sex": SEXES[n % 2], "hours": own} for n, own in enumerate(hours)]
    (proxy,) = proxies(people, lambda p: p["hours"] > 5 and p["sex"] == "m", schema).proxies
    assert len(proxy.settings) == 6
    assert proxy.redrawn.difference == pytest.approx(0.5)
    assert proxy.redrawn.rate == pytest.approx(0.25)


def test_redrawing_says_nothing_where_a_group_can_have_no_value() -> None:
    schema = themis.Schema(sex=SEXES, job=JOBS).where("sex == 'm' or job != 'judge'")
    pairs = [each for each in itertools.product(SEXES, JOBS) if each != ("f", "judge")]
    people = [{"sex": sex, "job": job} for sex, job in pairs * 9]
    (proxy,) = proxies(people, lambda p: p["job"] != "nurse", schema).proxies
    assert (proxy.redrawn, proxy.lowered) == (None, None)


def drawn_proxies(seed: int, alpha: float | None = None) -> bool:
    """Whether all ends hold for people drawn from a world of which all is known."""
    rng = np.random.default_rng(seed)
    chances = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)
    favours = np.random.default_rng(1).random((2, 3, 2)) < 0.5
    schema = themis.Schema(sex=SEXES, job=JOBS, region=["n", "s"])
    places = rng.choice(12, 80, p=chances.ravel())
    sex, job, region = np.unravel_index(places, chances.shape)
    people = [
        {"sex": SEXES[s], "job": JOBS[j], "region": "ns"[r]}
        for s, j, r in zip(sex.tolist(), job.tolist(), region.tolist(), strict=True)
    ]

    def decide(p: dict[str, Any]) -> bool:
        place = SEXES.index(p["sex"]), JOBS.index(p["job"]), "ns".index(p["region"])
        return bool(favours[place])

    audit = themis.Audit(decide, schema, confidence=0.8, deterministic=True)
    result = audit.apparent(people, "sex", proxies=True, only_data=True, measures=["group"])
    own = chances.sum(axis=(1, 2))
    for proxy, axis in ((p, {"job": 1, "region": 2}[p.name]) for p in result.proxies):
        others = chances.sum(axis=axis) / own[:, None]  # of each group, what it has besides
        rates = (np.moveaxis(favours, axis, 2) * others[:, :, None]).sum(axis=1)  # by value
        counts = np.bincount((job, region)[axis - 1], minlength=rates.shape[1])
        truths = [abs(rate[0] - rate[1]) for rate in rates.T]
        mixed = rates @ (counts / counts.sum())
        told = [*proxy.settings, proxy.redrawn]
        for truth, each in zip([*truths, abs(mixed[0] - mixed[1])], told, strict=True):
            if not each.low - 1e-9 <= truth <= each.high + 1e-9:
                return False
    return True


def test_all_differences_hold_together_also_the_redrawn_ones() -> None:
    assert sum(map(drawn_proxies, range(60))) >= 0.8 * 60


def test_ends_that_were_not_divided_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from themis.scores import proxies as module

    whole = module.sampled_rate
    monkeypatch.setattr(module, "sampled_rate", lambda x, n, alpha: whole(x, n, 0.5))
    assert sum(map(drawn_proxies, range(40))) < 0.8 * 40


def test_the_ranking_is_measured_and_no_advice() -> None:
    people = [{"sex": s, "hours": h, "town": t}
              for s, many in (("f", 20), ("m", 60)) for h in range(0, 80, 2) if h < many + 20
              for t in "ab"]  # fmt: skip
    schema = themis.Schema(
        sex=themis.Values(SEXES, protected=True), hours=range(100), town=["a", "b"]
    )
    result = proxies(people, lambda p: p["hours"] >= 30, schema)
    hours, town = sorted(result.proxies, key=lambda each: each.name)
    assert hours.redrawn.difference == pytest.approx(0.0)
    assert town.redrawn.difference == pytest.approx(town.difference)
    assert hours.lowered > 0.2
    shown = " ".join(render_markdown(result).split())
    assert "Measured, not advice" in shown
    ranking = shown.split("Redrawn | Favourable")[1]
    assert ranking.index("| hours |") < ranking.index("| town |")


def test_what_is_left_of_few_people_is_not_shown() -> None:
    people = [{"sex": "f" if n < 4 else "m", "town": "ab"[n % 2]} for n in range(40)]
    schema = themis.Schema(sex=themis.Values(SEXES, protected=True), town=["a", "b"])
    result = proxies(people, lambda p: p["town"] == "a" or p["sex"] == "m", schema)
    (whole,), (shown,) = result.proxies, withheld(result).proxies
    assert {each.fewest for each in (*whole.settings, whole.redrawn)} == {4}
    for each in (*shown.settings, shown.redrawn):
        assert (each.difference, each.low, each.high, each.before, each.rate) == (None,) * 5
    assert "Measured, not advice" not in render_markdown(withheld(result))
    assert saved(result).to_dict()["proxies"] == result.to_dict()["proxies"]
