"""What changes: only by two, between favourable and other outputs, or nothing at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import themis
from tests.oracle import Variable, World
from tests.report_results import saved
from themis import Audit, Integers, Schema
from themis.audit.checker import run_checks
from themis.results.finding import finding
from themis.results.verdicts import Check
from themis.results.withheld import withheld
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.explanations import joint_pair_sentence, joint_sentences, region_sentence
from themis.show.words.headlines import headline
from themis.show.words.verdicts import verdict

SMALL = Schema(a=[0, 1], b=[0, 1, 2], d=range(10))
LARGE = Schema(a=[0, 1], b=[0, 1, 2], d=Integers(0, 99_999), e=Integers(0, 999))


def both(person: Any) -> int:
    """Who has a = 1 and b = 2 needs more; whoever has b = 1 needs a little more."""
    scale = 10_000 if person["d"] > 9 or "e" in person else 1
    need = 2 + 4 * (person["a"] == 1 and person["b"] == 2) + (person["b"] == 1)
    return int(person["d"] >= need * scale)


def truth() -> dict[str, float]:
    """The shares by the definition, input by input."""
    values = {"a": (0, 1), "b": (0, 1, 2), "d": tuple(range(10))}
    variables = tuple(Variable(name, own) for name, own in values.items())
    world = World(variables, lambda row: True, both)
    rows = [row for row, _ in world.inputs()]
    one, other, whole = (
        np.array([world.flip_chance(row, names) for row in rows])
        for names in ({"a"}, {"b"}, {"a", "b"})
    )
    only = (whole > 0) & (one == 0) & (other == 0)
    return {"a": one.mean(), "b": other.mean(), "only": only.mean()}


def test_exact_shares_are_those_of_the_definition() -> None:
    expected, score = truth(), Audit(both, SMALL).causal("a", "b")
    assert (score.method, score.joint.only_low) == ("exact", None)
    assert score.joint.alone == pytest.approx({"a": expected["a"], "b": expected["b"]})
    assert score.joint.only == pytest.approx(expected["only"])
    assert score.joint.only > 0


def test_sampled_shares_have_an_interval_that_holds_the_truth() -> None:
    score = Audit(both, LARGE, error=0.03).causal("a", "b")
    joint = score.joint
    assert score.method == "sampled"
    assert joint.only_low <= truth()["only"] <= joint.only_high
    assert joint.only_low < joint.only < joint.only_high
    (text,) = joint_sentences(score)
    assert "the decision changes only if both are changed; for" in text


def needs_the_whole_set(score: Any, decide: Any) -> bool:
    """Whether neither change of the first witness alone changes anything."""
    first = score.witnesses[0]
    base, other = first.inputs[first.joint], first.inputs[1 - first.joint]
    alone = {decide({**base, name: other[name]}) for name in ("a", "b")}
    assert set(first.differs_in) == {"a", "b"}
    return alone == {decide(base)} != {decide(other)}


def test_the_first_witness_needs_the_whole_set() -> None:
    for schema in (SMALL, LARGE):
        score = Audit(both, schema).causal("a", "b")
        assert needs_the_whole_set(score, both)
        assert "neither change alone" in str(joint_pair_sentence(score.witnesses[0], score))


def test_a_sampled_search_shows_a_pair_that_needs_the_whole_set() -> None:
    """From rows that it ran for the direction of harm anyway."""

    def decide(person: Any) -> int:
        return int(not (person["a"] == 1 and person["b"] == 2 and person["d"] > 20_000))

    schema = Schema(a=[0, 1], b=[0, 2], d=Integers(0, 99_999), e=Integers(0, 999))
    (search,) = Audit(decide, schema, seed=1).search_all(0.55, among=["a", "b"]).searches
    assert (search.method, search.found) == ("sampled", (("a", "b"),))
    (score,) = search.minimal_sets
    assert needs_the_whole_set(score, decide)
    joint = score.joint
    assert joint.only_low <= 0.2 <= joint.only_high  # a = 0 and b = 0, and d > 20,000
    assert joint.only_count == round(joint.only * joint.inputs)


def test_with_a_tolerance_no_change_means_none_beyond_it() -> None:
    score = Audit(both, SMALL).causal("a", "b")
    score = replace(score, distance="threshold 5", output="limit")
    said = "neither change alone changes the output limit by more than 5; both"
    assert said in str(joint_pair_sentence(score.witnesses[0], score))
    assert "the output limit changes by more than 5 only if both" in next(joint_sentences(score))


def test_one_characteristic_has_nothing_joint_and_neither_has_what_one_does_alone() -> None:
    assert Audit(both, SMALL).causal("b").joint is None
    score = Audit(lambda person: person["a"], SMALL).causal("a", "b")
    assert (score.joint.only, score.joint.alone) == (0.0, {"a": 1.0, "b": 0.0})
    assert all(each.joint is None for each in score.witnesses)


def crossed(person: Any) -> int:
    """Women lose where they are orange, men where they are teal."""
    worse = (person["sex"] == "women") == (person["group"] == "orange")
    return int(person["income"] >= (60 if worse else 30))


@pytest.mark.parametrize("size", [100, 100_000])
def test_who_loses_where_is_told_apart_by_direction(size: int) -> None:
    schema = Schema(
        sex=["women", "men"], group=["orange", "teal"], income=range(100), noise=Integers(0, size)
    )
    score = Audit(crossed, schema, error=0.03).causal("sex")
    text = " ".join(region_sentence(each, score) for each in score.regions)
    for sex, group in (("women", "orange"), ("men", "teal")):
        own = [each for each in score.regions if each.loses == {"sex": sex}]
        assert any(f"group = {group}" in condition for condition in own[0].conditions)
        assert f"{sex[1:]} lose where group = {group}" in text


# Of three or more outputs: which changes are between a favourable one and another -------------


GROUPS, AGES = ("a", "b", "c"), range(60)


def triage(person: Mapping[str, Any]) -> str:
    level = person["age"] // 10 + GROUPS.index(person["group"])
    return "urgent" if level > 5 else "soon" if level > 3 else "later"


def schema(**more: Any) -> themis.Schema:
    return themis.Schema(group=themis.Values(GROUPS, protected=True), age=AGES, **more)


def triaged(**options: Any) -> Audit:
    options = {"favourable": ["urgent"], "schema": schema(), **options}
    return Audit(triage, options.pop("schema"), **options)


def outputs(age: int) -> set[str]:
    return {triage({"group": group, "age": age}) for group in GROUPS}


def test_an_exact_share_is_that_of_its_definition() -> None:
    score = triaged().causal("group")
    changes = [outputs(age) for age in AGES if len(outputs(age)) > 1]
    assert score.score == pytest.approx(len(changes) / 60)
    assert score.crossing.share == pytest.approx(sum("urgent" in each for each in changes) / 60)
    assert (score.crossing.inputs, score.crossing.low, score.crossing.high) == (60, None, None)


def test_a_sampled_share_lies_within_its_ends_and_is_shown_beside_the_total() -> None:
    truth = sum("urgent" in outputs(age) and len(outputs(age)) > 1 for age in AGES) / 60
    result = triaged(schema=schema(free=range(10**7))).score([["group"]])
    crossing = result.scores[0].crossing
    assert crossing.low < truth < crossing.high
    assert "change between favourable" in " ".join(render_result(saved(result)).split())


@pytest.mark.parametrize("favourable", [["urgent", "soon", "later"], ["none of them"]])
def test_where_it_would_say_nothing_new_nothing_is_said(favourable: Any) -> None:
    assert triaged(favourable=favourable).causal("group", "age").crossing is None
    two = Audit(lambda person: person["age"] > 5, schema(), favourable=[True])
    assert two.causal("group", "age").crossing is None


def test_documents_do_not_say_it_of_few_people() -> None:
    for ages, shown in (((45,), False), (AGES, True)):
        people = [{"group": group, "age": age} for group, age in product(GROUPS, ages)]
        (score,) = withheld(triaged(profile=people).score([["group"]], ["causal"])).scores
        assert (score.crossing is not None) == shown


# Is a set that cannot be changed called fair? Nothing was tried, and nothing is known ---------


def by_race(person: dict[str, Any]) -> bool:
    return bool(person["race"] == "green" and person["age"] > 3)


def schemas() -> dict[str, themis.Schema]:
    ages = {"age": range(10)}
    weighed = themis.Values(["green", "purple"], weights=[1, 0])
    return {
        "a value": Schema(race=["green"], **ages),
        "a weight": Schema(race=weighed, **ages),
        "a constraint": Schema(race=["green", "purple"], **ages).where("race == 'green'"),
    }


@pytest.mark.parametrize("schema", schemas().values(), ids=schemas())
def test_a_set_with_one_value_is_not_called_fair(schema: themis.Schema) -> None:
    result = themis.Audit(by_race, schema).score("race")
    causal, group = result.scores
    assert headline(causal) == "There is nothing to change: no test input can have another race"
    assert "single group of race" in headline(group)
    assert [finding(each).state for each in result.scores] == ["open", "open"]
    assert verdict(result).word == "undecided"
    for page in (render_page(result), render_markdown(result)):
        assert "never changes" not in page
        assert "exactly none" not in page
        assert "nothing is known about it" in page


def test_a_limit_on_a_set_with_one_value_is_not_decided() -> None:
    reasons = {
        "causal": "no test input can have another race, as the schema leaves a single value: "
        "nothing was changed, and nothing is known about it",
        "group": "there is a single group of race, so there is nothing to compare",
    }
    checks = [Check(measure=each, against=("race",), max_score=0.1) for each in reasons]
    found = run_checks(themis.Audit(by_race, schemas()["a value"]), checks).checks
    assert [each.verdict for each in found] == ["not enough evidence"] * 2
    assert [each.reason for each in found] == list(reasons.values())
