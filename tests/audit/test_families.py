"""Is 1 − confidence divided among all that a command measures, beforehand, where that is asked?"""

from __future__ import annotations

import json
from typing import Any

import pytest

import themis
from themis.audit.checker import run_checks
from themis.results.comparison import compare
from themis.results.model import Result
from themis.results.saved import result_from_dict
from themis.results.verdicts import Check
from themis.settings import Settings
from themis.show.words.scores import how_sure_together
from themis.show.words.searches import checks_guarantee
from themis.testing.claims import Turns

SCHEMA = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10**6))
SETS = [["race"], ["sex"]]


def decide(table: themis.InputTable) -> Any:
    return table["income"] >= 300_000 + 150_000 * (table["race"] == "purple")


def audit(**settings: Any) -> themis.Audit:
    return themis.Audit(themis.batch(decide), SCHEMA, seed=5, **settings)


def ends(result: Result) -> list[Any]:
    return [
        (each.low, each.high, each.samples, getattr(each, "groups", ())) for each in result.scores
    ]


def test_scores_of_a_family_are_those_of_the_divided_confidence() -> None:
    together = audit(family=True, confidence=0.94).score(SETS)
    # a causal score is one statement; of groups there are two: their spread, and their rates
    alone = audit(confidence=0.99).score(SETS)
    assert ends(together) == ends(alone)
    assert {(each.confidence, each.family) for each in together.scores} == {(0.94, 4)}
    assert {(each.confidence, each.family) for each in alone.scores} == {(0.99, None)}
    for family in (True, False):
        both, one = (audit(family=family).score(each) for each in (SETS, SETS[:1]))
        assert (ends(both)[0] == ends(one)[0]) == (not family)


def test_a_single_score_has_the_whole_confidence_for_itself_and_its_groups() -> None:
    assert audit(family=True).causal("race").low == audit().causal("race").low
    shared = audit(family=True, confidence=0.98).group("race")
    assert (shared.confidence, shared.family) == (0.98, 1)
    assert shared.groups == audit(confidence=0.99).group("race").groups
    whole = audit(family=True).score([["race"]], ["group"])
    assert how_sure_together(whole) is None


def test_checks_of_a_family_divide_what_their_rounds_share() -> None:
    checks = [
        Check(against=("race",), max_score=0.1),
        Check(against=("sex",), measure="group", max_score=0.1),
        Check(search=True, max_score=0.3),
    ]
    own = audit(family=True, confidence=0.96)
    together, alone = run_checks(own, checks), run_checks(audit(confidence=0.99), checks)
    assert own.settings == Settings(family=True, confidence=0.96, seed=5)
    assert [(e.low, e.high) for e in together.checks] == [(e.low, e.high) for e in alone.checks]
    assert {(each.confidence, each.family) for each in together.checks} == {(0.96, 3)}
    assert checks_guarantee(together) == "Decided checks: 96 % confidence for all 3 together."
    assert checks_guarantee(alone) == "Decided checks: 99 % confidence each."


def test_a_search_counts_as_one_and_its_sets_have_a_part_of_it() -> None:
    alone = audit().search_all(0.1, among=["race", "sex"])
    together = audit(family=True).search_all(0.1, among=["race", "sex"])
    assert together.searches[0].found == alone.searches[0].found == (("race",),)
    (wide,), (narrow,) = together.scores, alone.scores
    assert (wide.confidence, wide.family) == (0.99, 2)
    assert wide.samples > narrow.samples  # as precise, and surer:
    # a quarter of the assignments are those of race, and half of its part is for its score
    surer = audit(confidence=1 - 0.01 / 4 / 2).search_all(0.1, among=["race", "sex"])
    assert ends(together) == ends(surer)
    assert together.searches[0].confidence == 0.99
    saved = json.loads(json.dumps(together.to_dict()))
    assert result_from_dict(saved).searches[0].family == saved["search"]["family"] == 2
    assert alone.to_dict()["search"]["family"] is None
    assert how_sure_together(together) == (
        "All intervals and lists of sets hold together with 99 % confidence."
    )
    both = audit(family=True).search_all(0.1, ["causal", "group"], among=["race", "sex"])
    assert str(how_sure_together(both)).startswith("All intervals and lists of sets hold")
    assert audit(family=True).search(0.1, among=["race", "sex"]).minimal_sets[0].family == 2


def test_scores_of_rows_count_all_that_is_measured() -> None:
    rows = [{"race": race, "sex": "f", "income": n} for race in ("green", "purple") for n in (1, 2)]
    for asked in ({}, {"only_data": True}, {"counterfactuals": "generated"}):
        result = audit(family=True).apparent(rows, SETS, **asked)
        assert {each.family for each in result.scores} == {len(result.scores)}


def test_tests_of_a_session_share_and_claims_of_a_test_take_ever_smaller_parts() -> None:
    turns, asked = Turns(tests=5), Settings(family=True, confidence=0.9)
    parts = [1 / turns.next(asked, "causal").parts for _ in range(40)]
    assert sum(parts) == pytest.approx(1 / 5)
    family = Turns(tests=5).next(asked, "group")
    assert (family.parts, family.members) == (20, 5)
    assert family.settings.confidence == pytest.approx(1 - 0.1 / 20)


def test_a_family_is_saved_and_compared_as_one() -> None:
    together = audit(family=True).score(SETS)
    saved = json.loads(json.dumps(together.to_dict()))
    assert [each["family"] for each in saved["scores"]] == [4] * 4
    assert result_from_dict(saved).family == 4
    assert audit().score(SETS).to_dict()["scores"][0]["family"] is None
    assert compare(together, together).confidence == pytest.approx(0.98)
    assert compare(audit().score(SETS), together).confidence == pytest.approx(1 - 0.04 - 0.01)
