"""Whole commands about the people of a profile, held against plain counts of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from themis import Audit, Integers, Output, Schema, Values
from themis.audit.plan import make_plan

SCHEMA = Schema(
    sex=Values(["f", "m"], protected=True),
    race=["g", "p"],
    income=Integers(0, 99),
    pay=Integers(0, 10**6),
)
PLACES = np.arange(300)
PEOPLE = {
    "sex": np.where(PLACES % 2, "m", "f"),
    "race": np.where(PLACES // 2 % 2, "p", "g"),
    "income": PLACES * 7 % 100,
    "pay": PLACES % 3 * 1_000,
}


def limit(person: Any) -> dict[str, Any]:
    """Half of the people lose 100, the others 5, which is tolerated."""
    less = 100 if person["income"] < 50 else 5
    amount = 500 + person["income"] - (less if person["sex"] == "f" else 0)
    return {"limit": amount, "rank": ["a", "b"] if amount > 450 else ["b", "a"]}


LIMIT = Output(name="limit", at="/limit", min=0, max=1000, distance="threshold", tolerance=10)
RANK = Output(name="rank", at="/rank", distance="ranking")


def rows() -> list[dict[str, Any]]:
    return [dict(zip(PEOPLE, each, strict=True)) for each in zip(*PEOPLE.values(), strict=True)]


@pytest.mark.parametrize("apparent", [False, True])
def test_what_is_tolerated_is_no_pair_and_no_noise(apparent: bool) -> None:
    other = {"f": "m", "m": "f"}
    true = np.mean([
        abs(limit(each)["limit"] - limit({**each, "sex": other[each["sex"]]})["limit"]) > 10
        for each in rows()
    ])  # fmt: skip
    if apparent:
        result = Audit(limit, SCHEMA, outputs=[LIMIT]).apparent(PEOPLE, against=["sex"])
        (score,) = [each for each in result.scores
                    if each.measure == "causal" and each.population == "rows"
                    and each.counterfactuals == "generated"]  # fmt: skip
    else:
        score = Audit(limit, SCHEMA, outputs=[LIMIT], profile=PEOPLE).causal("sex")
    assert (score.score, score.low, score.high) == (true, true, true)
    assert score.reruns is not None
    assert not score.reruns.differing
    assert score.witnesses
    assert all(abs(one - two) > 10 for one, two in (each.outputs for each in score.witnesses))


def test_several_outputs_and_rankings_of_people_are_measured_and_foreseen() -> None:
    audit = Audit(limit, SCHEMA, outputs=[LIMIT, RANK], profile=PEOPLE)
    assert make_plan(audit).forecast.executions > 0
    result = audit.everything()
    assert {each.output for each in result.scores} == {"limit", "rank"}
    assert all(each.low <= each.score <= each.high for each in result.scores)


@pytest.mark.parametrize("share", [1, 2])
def test_a_score_of_people_that_equals_the_threshold_is_listed_as_a_tie(share: int) -> None:
    """A third is no sum of halves: rounding must not decide."""
    decide = {(sex, pay): int(sex == "m" and pay < 1_000 * share) for sex in "fm"
              for pay in (0, 1_000, 2_000)}  # fmt: skip
    audit = Audit(lambda p: decide.get((p["sex"], p["pay"]), 0), SCHEMA, profile=PEOPLE)
    found = audit.search(share / 3, measure="group", among=["sex"])
    assert found.found == (("sex",),)
    assert found.ties == (("sex",),)
    assert found.method == "exact"


def test_groups_that_occur_are_compared_however_many_there_might_be() -> None:
    audit = Audit(lambda p: int(p["pay"] == 1_000), SCHEMA, profile=PEOPLE)
    score = audit.group("pay")
    found = audit.search(0.2, measure="group", among=["pay", "sex"])
    assert (score.method, score.score) == ("exact", 1.0)
    assert found.found == (("pay",),)
    assert not found.undecided
    assert isinstance(found, themis.SearchResult)
