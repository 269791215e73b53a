"""Missing values, rows as they are and characteristics that belong together, all at once."""

from __future__ import annotations

import random
import warnings
from itertools import combinations
from typing import Any, Literal

import pytest

import themis
from tests.joint_worlds import (
    CHOICES,
    LEADER,
    SETS,
    TITLE,
    Features,
    JointWorld,
    Weighed,
    binned_columns,
    covering_array,
    joint_world,
)
from themis.engine import memory
from themis.errors import RowsWarning
from themis.inputs import population
from themis.results.model import CausalScore
from themis.scores import scorer

World = tuple[Features, int]


def numbered(array: list[Features], first: int = 0) -> list[World]:
    return [(features, seed) for seed, features in enumerate(array, first)]


def slow(worlds: list[World]) -> list[Any]:
    return [pytest.param(*each, marks=pytest.mark.slow) for each in worlds]


EVERY = numbered(covering_array(1))
FITTING = numbered(covering_array(1, off_grid=False), 100)  # of inputs; rows are of no interest
MORE = slow(numbered(covering_array(2), 200))
PLAIN = [each for each in FITTING if each[0]["bins"] == "none"]
BINNED = [each for each in FITTING if each[0]["bins"] != "none"]
CLOSE = 1e-9


def audit(world: JointWorld, *, as_table: bool = False, **options: Any) -> themis.Audit:
    subject = themis.batch(world.decide_table) if as_table else world.decide
    return themis.Audit(subject, world.schema, seed=1, deterministic=True, **options)


def test_every_two_choices_come_together() -> None:
    for one, two in combinations(CHOICES, 2):
        found = {(features[one], features[two]) for features, _ in EVERY}
        assert len(found) == len(CHOICES[one]) * len(CHOICES[two])


def check_witnesses(world: JointWorld, score: CausalScore) -> None:
    for witness in score.witnesses:
        one, two = witness.inputs
        assert any(
            world.are_counterfactuals(first, second, score.against)
            for first, second in ((one, two), (two, one))
        )
        assert witness.outputs == (world.output(one), world.output(two))
        assert world.valid(one)
        assert world.valid(two)


@pytest.mark.some_slow(core=9, full=3)
@pytest.mark.parametrize(("features", "seed"), [*PLAIN, *BINNED, *MORE])
def test_exact_scores_are_those_of_the_definitions(features: Features, seed: int) -> None:
    world = joint_world(features, seed)
    run = audit(world, as_table=seed % 2 == 0, confidence=0.9999)
    for names in SETS:
        causal, group, truth = run.causal(*names), run.group(*names), world.causal(names)
        assert group.method == "exact"
        if binned_columns(features).isdisjoint(names):
            assert causal.method == "exact"
            assert causal.score == pytest.approx(truth, abs=CLOSE)
        assert causal.low - CLOSE <= truth <= causal.high + CLOSE
        expected = world.group(names)
        assert expected is None or group.score == pytest.approx(expected, abs=CLOSE)
        check_witnesses(world, causal)


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize(("features", "seed"), EVERY)
def test_what_flips_under_a_set_flips_under_every_superset(features: Features, seed: int) -> None:
    world = joint_world(features, seed)
    inputs = [row for row, _ in [*world.inputs, *usable(world, world.rows(features, seed))]]
    flips = {names: [world.flips(row, names) for row in inputs] for names in SETS}
    for one, other in combinations(SETS, 2):
        if set(one) < set(other):
            assert all(b >= a - CLOSE for a, b in zip(flips[one], flips[other], strict=True))


def usable(world: JointWorld, rows: Weighed) -> Weighed:
    return [(row, weight) for row, weight in rows if row.get(TITLE) != "lost"]


def as_given(rows: Weighed, features: Features) -> list[dict[str, Any]]:
    leave_out = {TITLE} if features["derived"] == "left out" else set()
    return [{name: row[name] for name in row if name not in leave_out} for row, _ in rows]


@pytest.mark.some_slow(core=8, full=4)
@pytest.mark.parametrize(("features", "seed"), EVERY)
def test_scores_of_given_rows_are_those_of_the_definitions(features: Features, seed: int) -> None:
    world = joint_world(features, seed)
    given = world.rows(features, seed)
    rows, run = usable(world, given), audit(world, as_table=seed % 2 == 1)
    weights = [weight for _, weight in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if len(rows) < len(given) else "error", RowsWarning)
        result = run.apparent(
            as_given(given, features),
            against=SETS,
            counterfactuals="both",
            weights=weights,
            only_data=True,
        )
    assert result.data["dropped"] == len(given) - len(rows)
    found = {(in_order(s.against), s.measure, s.counterfactuals): s for s in result.scores}
    for names in SETS:
        generated, within = (found[names, "causal", how] for how in ("generated", "within"))
        assert generated.samples == within.samples == len(rows)
        assert within.score == pytest.approx(world.within(names, rows), abs=CLOSE)
        truth = world.causal(names, rows)
        if generated.method == "exact":
            assert generated.score == pytest.approx(truth, abs=CLOSE)
        else:
            assert binned_columns(features).intersection(names)
            assert generated.low - CLOSE <= truth <= generated.high + CLOSE
        expected = world.group(names, rows)
        group = found[names, "group", "generated"]
        assert expected is None or group.score == pytest.approx(expected, abs=CLOSE)
        check_witnesses(world, generated)
        check_witnesses(world, within)


@pytest.mark.parametrize(("features", "seed"), [*EVERY[::18], *slow(EVERY[1::2])])
@pytest.mark.some_slow(core=1, full=3)
def test_a_profile_is_measured_as_the_definitions_say(features: Features, seed: int) -> None:
    world = joint_world(features, seed)
    rows = usable(world, world.rows(features, seed))
    profile, weights = as_given(rows, features), [weight for _, weight in rows]
    run = audit(world, profile=profile, profile_weights=weights, confidence=0.9999, error=0.1)
    truth = {names: world.causal(names, rows) for names in SETS}
    for names in SETS:
        causal, group = run.causal(*names), run.group(*names)
        assert causal.low - CLOSE <= truth[names] <= causal.high + CLOSE
        assert causal.method == "sampled" or causal.score == pytest.approx(truth[names], abs=CLOSE)
        expected = world.group(names, rows)
        assert expected is None or group.score == pytest.approx(expected, abs=CLOSE)
        check_witnesses(world, causal)
    check_search(run.search(0.3, error=0.1), truth, 0.3, 0.1)


def check_search(found: Any, truth: dict[Any, float], threshold: float, error: float) -> None:
    """What is certain: found sets are above, and no set far above is missed."""
    assert all(truth[names] >= threshold - error - CLOSE for names in map(in_order, found.found))
    listed = [set(names) for names in (*found.found, *found.undecided)]
    for names, score in truth.items():
        assert score <= threshold + error or any(each <= set(names) for each in listed)
    if found.method == "exact":
        above = [set(names) for names, score in truth.items() if score >= threshold - 1e-12]
        minimal = {frozenset(s) for s in above if not any(other < s for other in above)}
        assert {frozenset(names) for names in found.found} == minimal


def in_order(names: Any) -> tuple[str, ...]:
    return next(each for each in SETS if set(each) == set(names))


@pytest.mark.parametrize(("features", "seed"), [*EVERY[21:22], *slow(EVERY[::2])])
@pytest.mark.some_slow(core=1, full=3)
def test_people_who_are_drawn_from_rows_are_those_of_the_definitions(
    features: Features, seed: int
) -> None:
    world = joint_world(features, seed)
    rows = usable(world, world.rows(features, seed))
    given, weights = as_given(rows, features), [weight for _, weight in rows]
    run = audit(world, confidence=0.9999, error=0.1)
    result = run.apparent(given, against=SETS, weights=weights, only_data=True, draw=True)
    for score in result.scores:
        names = in_order(score.against)
        truth = (world.causal if score.measure == "causal" else world.group)(names, rows)
        assert truth is None or score.low - CLOSE <= truth <= score.high + CLOSE
        if isinstance(score, CausalScore):
            check_witnesses(world, score)
    paper = audit(world, profile=given, profile_weights=weights, stopping="paper")
    for names in SETS:
        check_witnesses(world, paper.causal(*names))
        assert all(0 <= each.rate <= 1 for each in paper.group(*names).groups)


@pytest.mark.some_slow(core=3, full=3)
@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize(("features", "seed"), [*PLAIN, *slow(BINNED)])
def test_a_search_finds_the_minimal_sets(
    features: Features, seed: int, measure: Literal["causal", "group"]
) -> None:
    world = joint_world(features, seed)
    score = world.causal if measure == "causal" else world.group
    truth = {names: score(names) or 0.0 for names in SETS}
    scores = sorted({0.0, *(round(score, 9) for score in truth.values())})
    run = audit(world, confidence=0.9999)
    for place in {1, (len(scores) + 1) // 2} if len(scores) > 1 else ():
        threshold = (scores[place - 1] + scores[place]) / 2
        found = run.search(threshold, measure=measure, error=0.1)
        assert found.method == "exact" or features["bins"] != "none"
        check_search(found, truth, threshold, 0.1)


@pytest.mark.parametrize(("features", "seed"), [*FITTING[:1], *slow([FITTING[8], *FITTING[1::3]])])
@pytest.mark.some_slow(core=1, full=3)
def test_sampled_intervals_hold(
    features: Features, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 99.99 % confidence none of these intervals may miss.

    Some worlds are not remembered, and some are drawn by rejection.
    """
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    if seed % 2:
        monkeypatch.setattr(memory, "WHOLE_LIMIT", 0)
    if seed % 3:
        monkeypatch.setattr(population, "ENUMERATION_LIMIT", 0)
    world = joint_world(features, seed)
    run, paper = audit(world, confidence=0.9999, error=0.1), audit(world, stopping="paper")
    for names in [(LEADER,), *random.Random(seed).sample(SETS[1:], 2)]:
        causal, group, expected = run.causal(*names), run.group(*names), world.group(names)
        assert causal.method == "sampled"
        assert causal.low - CLOSE <= world.causal(names) <= causal.high + CLOSE
        assert expected is None or group.low - CLOSE <= expected <= group.high + CLOSE
        check_witnesses(world, causal)
        check_witnesses(world, paper.causal(*names))  # its interval is not certified
        paper.group(*names)
