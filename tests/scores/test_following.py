"""Scores of sets that something follows, against brute force from the definitions."""

from __future__ import annotations

import random
from typing import Any

import pytest

import themis
from tests.tied_worlds import LEADER, TiedWorld, random_world
from themis.engine import memory
from themis.results.model import CausalScore
from themis.scores import scorer

SEEDS = (5, 8)
MORE = [pytest.param(seed, marks=pytest.mark.slow) for seed in (2, *range(9, 18))]


def check_witnesses(world: TiedWorld, score: CausalScore, *, drawn: bool = True) -> None:
    """One of the two is a variant of the other, which occurs, and they get what they show."""
    occur = [row for row, _ in world.inputs]
    for witness in score.witnesses:
        one, two = witness.inputs
        assert any(
            world.variant(first, {name: second[name] for name in score.against}) == second
            and (first in occur or not drawn)
            for first, second in ((one, two), (two, one))
        )
        assert witness.outputs == (world.decide(one), world.decide(two))
        assert set(witness.differs_in) <= {*score.against, *score.followed}
        assert world.valid(one)
        assert world.valid(two)


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("seed", [*SEEDS, *MORE])
def test_exact_scores_are_those_of_the_definitions(seed: int, binned: bool) -> None:
    world = random_world(seed, binned=binned)
    audit = world.audit(deterministic=True)
    for names in world.sets():
        causal, group = audit.causal(*names), audit.group(*names)
        assert causal.method == group.method == "exact"
        assert causal.score == pytest.approx(float(world.causal(names)), abs=1e-9)
        assert group.score == pytest.approx(float(world.group(names)), abs=1e-9)
        check_witnesses(world, causal)


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("seed", [*SEEDS, *MORE])
def test_scores_of_given_rows_are_those_of_the_definitions(seed: int) -> None:
    """Rows stay as they are, also those that are never drawn."""
    world = random_world(seed)
    rows = some_rows(world, seed)
    audit = world.audit(deterministic=True)
    of_profile = themis.Audit(
        world.decide, world.schema, seed=1, profile=rows, deterministic=True
    )  # fmt: skip
    for names in world.sets():
        result = audit.apparent(rows, against=[names], counterfactuals="both", only_data=True)
        generated, within = (
            next(s for s in result.scores if s.measure == "causal" and s.counterfactuals == how)
            for how in ("generated", "within")
        )
        truth = float(world.generated(rows, names))
        assert generated.score == pytest.approx(truth, abs=1e-9)
        assert within.score == pytest.approx(float(world.within(rows, names)), abs=1e-9)
        assert of_profile.causal(*names).score == pytest.approx(truth, abs=1e-9)
        for score in (generated, within):
            assert isinstance(score, CausalScore)
            check_witnesses(world, score, drawn=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_on_a_profile_finds_the_minimal_sets(seed: int) -> None:
    world = random_world(seed)
    rows = [row for row in some_rows(world, seed, 60) if is_derived(world, row)]
    audit = themis.Audit(world.decide, world.schema, seed=1, profile=rows)
    scores = {names: world.generated(rows, names) for names in world.sets()}
    threshold = sorted(set(scores.values()))[-1]
    above = [set(names) for names, score in scores.items() if score >= threshold]
    found = audit.search(float(threshold))
    assert found.method == "exact"
    assert all(set(names) in above for names in found.found)
    assert all(any(set(names) <= each for names in found.found) for each in above)


def test_a_profile_with_another_title_than_the_derived_one_is_searched_by_sampling() -> None:
    world = random_world(5)
    rows = some_rows(world, 0)
    assert not all(is_derived(world, row) for row in rows)
    audit = themis.Audit(world.decide, world.schema, seed=1, profile=rows)
    found = audit.search(0.4, error=0.1)
    assert found.method == "sampled"
    for names in world.sets():
        if world.generated(rows, names) > 0.5:
            listed = (*found.found, *found.undecided)
            assert any(set(each) <= set(names) for each in listed)


def is_derived(world: TiedWorld, row: dict[str, Any]) -> bool:
    return world.titles is None or row["title"] == world.titles[row[LEADER]]


def some_rows(world: TiedWorld, seed: int, most: int = 25) -> list[dict[str, Any]]:
    rows = [dict(zip(world.names, key, strict=True)) for key in world.outputs]
    chosen = random.Random(seed).sample(rows, min(len(rows), most))
    return [row for row in chosen if world.valid(row)]


@pytest.mark.parametrize("seed", [pytest.param(8, marks=pytest.mark.slow), *MORE])
def test_sampled_intervals_hold(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 99.99 % confidence none of these intervals may miss."""
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(memory, "WHOLE_LIMIT", 0 if seed % 2 else memory.WHOLE_LIMIT)
    for binned in (False, True):
        world = random_world(seed, binned=binned)
        audit = world.audit(confidence=0.9999, deterministic=True)
        sets = world.sets()
        random.Random(seed).shuffle(sets)
        for names in [(LEADER,), *sets[:5]]:
            causal, group = audit.causal(*names), audit.group(*names)
            assert causal.low - 1e-9 <= world.causal(names) <= causal.high + 1e-9
            assert group.low - 1e-9 <= world.group(names) <= group.high + 1e-9
            check_witnesses(world, causal)


@pytest.mark.parametrize("stopping", ["certified", "paper"])
def test_only_groups_that_occur_are_compared(
    stopping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    couples = themis.Schema(
        {each.name: each for each in ADULT if each.name in ("sex", "relationship", "hours")}
    )
    audit = themis.Audit(by_relationship, couples, seed=1, stopping=stopping)
    score = audit.group("sex", "relationship")
    assert score.method == "sampled"
    groups = {tuple(group.values.values()) for group in score.groups}
    assert ("Male", "Husband") in groups
    assert ("Female", "Wife") in groups
    assert not {("Female", "Husband"), ("Male", "Wife")} & groups


def test_the_paper_s_procedures_let_followers_follow() -> None:
    world = random_world(5)
    causal = world.audit(stopping="paper").causal(LEADER)
    assert abs(causal.score - float(world.causal((LEADER,)))) < 0.15
    check_witnesses(world, causal)


ADULT = themis.Schema(
    age=themis.Integers(17, 90, bins=[30, 50]),
    sex=themis.Values(["Female", "Male"], protected=True),
    race=["White", "Black", "Asian"],
    relationship=themis.Values(
        ["Husband", "Wife", "Unmarried", "Own-child"],
        follows="sex",
        as_={"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
    ),
    title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}),
    hours=themis.Integers(1, 99),
)


def by_relationship(row: dict[str, Any]) -> bool:
    return row["relationship"] == "Husband" and row["hours"] > 30


def test_a_husband_becomes_a_wife() -> None:
    audit = themis.Audit(by_relationship, ADULT, seed=1)
    score = audit.causal("sex")
    assert score.followed == ("relationship", "title")
    first, second = score.witnesses[0].inputs
    assert (first["sex"], first["relationship"], first["title"]) == ("Male", "Husband", "Mr")
    assert (second["sex"], second["relationship"], second["title"]) == ("Female", "Wife", "Ms")
    assert {name: first[name] for name in ("age", "race", "hours")} == {
        name: second[name] for name in ("age", "race", "hours")
    }
    assert abs(score.score - 0.5 * 69 / 99) < 0.05  # of four relationships two are couples
    assert audit.causal("sex", "relationship").followed == ("title",)
    assert audit.causal("race").followed == ()


def test_what_followed_is_saved_and_said() -> None:
    result = themis.Audit(by_relationship, ADULT, seed=1).score([["sex"]], ["causal"])
    data = result.to_dict()
    assert data["scores"][0]["followed"] == ["relationship", "title"]
    assert data["schema"]["inputs"]["title"] == {
        "from": "sex",
        "values": {"Female": "Ms", "Male": "Mr"},
    }
    html = result._repr_html_()
    assert "when sex is changed, and relationship and title with it" in html
