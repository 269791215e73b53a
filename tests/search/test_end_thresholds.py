"""Sampled searches at the ends: which sets matter at all (0), which always do (1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from tests.simulated_flips import SimulatedBook
from themis.search.causal_decider import CausalDecider
from themis.search.deciding import SearchRequest
from themis.settings import Settings
from themis.show.words.searches import guarantee, search_headline
from themis.statistics import thresholds
from themis.statistics.thresholds import ThresholdRule

RUNS, DELTA, ERROR = 120, 0.2, 0.1


def decisions(share: float, threshold: float, found: float = 0.7, cost: int = 500) -> list[str]:
    """What is decided about sets under which this share of the inputs flips."""
    settings = Settings(error=ERROR)
    request = SearchRequest(None, settings, "causal", threshold, (0,), 1)  # type: ignore[arg-type]
    books = [SimulatedBook(seed, share, found, cost) for seed in range(RUNS)]
    deciders = [CausalDecider(book, request) for book in books]  # type: ignore[arg-type]
    return [each.decide(1, DELTA).decision for each in deciders]


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("cost", [1, 500], ids=["all proofs", "spot proofs"])
def test_at_0_a_set_is_below_although_it_reaches_the_error_as_seldom_as_stated(cost: int) -> None:
    answers = decisions(ERROR, 0.0, cost=cost)
    assert "undecided" not in answers
    assert answers.count("below") / RUNS <= DELTA
    assert set(decisions(0.0, 0.0, cost=cost)) == {"below"}  # never found without a flip


@pytest.mark.slow
def test_at_1_a_set_is_found_although_it_only_reaches_1_less_the_error_as_seldom_as_stated() -> (
    None
):
    answers = decisions(1.0 - ERROR, 1.0)
    assert "undecided" not in answers
    assert answers.count("above") / RUNS <= DELTA
    assert set(decisions(1.0, 1.0)) == {"above"}  # never below without an input that stays


def test_fewer_inputs_than_the_rule_asks_for_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design = thresholds._fixed_design

    def hasty(floor: float, ceiling: float, delta: float) -> tuple[int, int]:
        samples, cut = design(floor, ceiling, delta)
        return samples // 4, cut if floor == 0 else samples // 4

    monkeypatch.setattr(thresholds, "_fixed_design", hasty)
    assert decisions(ERROR, 0.0, cost=1).count("below") / RUNS > 1.5 * DELTA
    assert decisions(1.0 - ERROR, 1.0).count("above") / RUNS > 1.5 * DELTA


# Groups -------------------------------------------------------------------------------------
GROUPS = themis.Schema(sex=range(2), age=range(1_000), id=range(10**6))


def searched(gap: float, threshold: float, runs: int) -> list[str]:
    """What group searches decide about sex, where this many points lie between the two."""

    def decide(table: themis.InputTable) -> Any:
        codes = [np.asarray(table[name], dtype=np.uint64) for name in ("sex", "age", "id")]
        mixed = (codes[0] * 7919 + codes[1] * 104_729 + codes[2]) * np.uint64(0x9E3779B97F4A7C15)
        chance = (mixed >> np.uint64(40)) / 2**24  # of each input, as good as independent
        return chance < (1 - gap) / 2 + gap * codes[0]

    answers = []
    for seed in range(runs):
        audit = themis.Audit(
            themis.batch(decide), GROUPS, seed=seed, confidence=0.8, error=0.2, deterministic=True
        )
        result = audit.search(threshold, "group", among=["sex"])
        assert result.method == "sampled"
        answers.append(result.tested[0].decision)
    return answers


@pytest.mark.parametrize("runs", [25, pytest.param(80, marks=pytest.mark.slow)])
def test_group_searches_at_the_ends_are_wrong_as_seldom_as_stated(runs: int) -> None:
    fair = searched(0.0, 0.0, runs)
    assert fair.count("above") / runs <= 0.2  # of groups that do not differ
    assert fair.count("below") / runs >= 0.8
    assert searched(0.2, 0.0, runs).count("below") / runs <= 0.2  # the gap reaches the error
    assert searched(0.8, 1.0, runs).count("above") / runs <= 0.2  # and here 1 − error
    assert set(searched(1.0, 1.0, 10)) == {"above"}


def test_groups_that_are_found_for_a_lower_end_of_0_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided = ThresholdRule.decide_ends

    def lenient(limits: ThresholdRule, low: float, high: float) -> Any:
        return "above" if low >= limits.floor else decided(limits, low, high)

    monkeypatch.setattr(ThresholdRule, "decide_ends", lenient)
    assert searched(0.0, 0.0, 20).count("above") / 20 > 0.3


@pytest.mark.parametrize("more", [{}, {"c": range(10**6)}], ids=["from memory", "large"])
@pytest.mark.parametrize("seed", [0, 5, 11])
def test_a_group_search_at_1_ends_where_no_pair_was_seen_to_agree_yet(
    seed: int, more: dict[str, Any]
) -> None:
    def decide(group: str, luck: int, **_: int) -> bool:
        return group == "p" and luck < 9

    schema = themis.Schema(group=["p", "q", "r"], luck=range(10), **more)
    limits = {"max_executions": 5_000, "max_seconds": 60}  # the latter for answers from memory
    audit = themis.Audit(themis.keywords(decide), schema, seed=seed, **limits)
    result = audit.search(1.0, "group", among=["group"])
    assert [each.decision for each in result.tested] == ["below"]
    assert result.executions + result.cache_hits < 2_000


# What is said, and what noise can do -----------------------------------------------------------
LARGE = themis.Schema(race=range(4), sex=range(2), income=range(1_000), id=range(10**6))


def test_one_flip_finds_a_set_at_0_and_what_is_below_is_below_the_error() -> None:
    subject = themis.batch(lambda table: (table["income"] < 300) & (table["sex"] == 1))
    audit = themis.Audit(subject, LARGE, seed=1)
    result, group = (audit.search(0, m, among=["race", "sex"]) for m in ("causal", "group"))  # type: ignore[arg-type]
    assert result.found == group.found == (("sex",),)
    assert result.minimal_sets[0].reruns is not None
    assert result.conclusive
    assert "every set listed is above 0 %, and no set above 5 % is missing" in guarantee(result)
    told = [search_headline(each) for each in (result, group, audit.search(0, among=["race"]))]
    assert told == [
        "Among race and sex, 1 minimal combination changes the decision for some test inputs "
        "(99 % confidence)",
        "Among race and sex, 1 minimal combination has groups whose rates of favourable decisions "
        "differ (99 % confidence)",
        "For race alone, no combination changes the decision for more than 5 % of test inputs "
        "(99 % confidence)",
    ]


def test_at_0_flips_that_do_not_come_again_find_nothing() -> None:
    rng = np.random.default_rng(3)
    for vouched in (False, True):
        audit = themis.Audit(lambda _: rng.random() < 0.1, LARGE, seed=1, deterministic=vouched)
        assert bool(audit.search(0, among=["race", "sex"]).found) == vouched


def test_at_1_a_sampled_search_claims_1_less_the_error_and_an_exact_one_claims_1() -> None:
    always = themis.batch(lambda table: table["sex"] == 1)
    sampled = themis.Audit(always, LARGE, seed=1).search(1, among=["race", "sex"])
    exact = themis.Audit(always, themis.Schema(race=range(4), sex=range(2))).search(1)
    none = themis.Audit(themis.batch(lambda t: t["income"] > 9), LARGE).search(1, among=["race"])
    assert (sampled.method, exact.method) == ("sampled", "exact")
    assert sampled.found == exact.found == exact.ties == (("sex",),)
    assert not sampled.ties
    assert not none.found
    assert "every set listed is above 95 %, and no set at 100 % is missing" in guarantee(sampled)
    assert [search_headline(each) for each in (sampled, exact, none)] == [
        "Among race and sex, 1 minimal combination changes the decision for "
        "at least 95 % of test inputs (99 % confidence)",
        "Among race and sex, 1 minimal combination changes the decision for "
        "100 % of test inputs (exact: every input was run)",
        "For race alone, no combination changes the decision for as much as 100 % of test inputs "
        "(99 % confidence)",
    ]
