"""Sweeps: the exact score of a domain that is never held whole equals the definition."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import themis
from tests.joint_worlds import FREE, LEADER, SETS, plain_world
from tests.worlds import Case, cases
from themis.scores import domain, scorer

QUICK = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No domain is held, and pieces have a few inputs."""
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(domain, "PIECE", 7)


def held(measured: Any) -> Any:
    """A score without what differs where rows are sampled to explain it."""
    return replace(
        measured,
        **{
            name: None
            for name in ("account", "reruns", "joint", "crossing")
            if hasattr(measured, name)
        },
        executions=0,
        cache_hits=0,
        **{name: () for name in ("witnesses", "regions", "direction") if hasattr(measured, name)},
        **({"flip_rate": None} if hasattr(measured, "flip_rate") else {}),
    )


@QUICK
@given(case=cases())
def test_a_sweep_gives_what_the_domain_gives_that_is_held(case: Case) -> None:
    """Which is what the definitions say; of bins, causal scores are sampled both times."""
    with pytest.MonkeyPatch.context() as patch:
        whole = [getattr(case.audit(), each)(*case.names) for each in ("causal", "group")]
        patch.setattr(scorer, "EXACT_LIMIT", 0)
        patch.setattr(domain, "PIECE", 5)
        audit = case.audit(exact=True)
        swept = [getattr(audit, each)(*case.names) for each in ("causal", "group")]
    assert held(swept[1]) == held(whole[1])
    if any(each.bins is not None and each.name in case.names for each in case.world.variables):
        reasons = [note.values["reason"] for note in swept[0].notes if "exact" in note.code]
        assert reasons == ["bins"]
        return
    assert held(swept[0]) == held(whole[0])
    for witness in swept[0].witnesses:
        assert set(witness.differs_in) <= set(case.names)
        for row, output in zip(witness.inputs, witness.outputs, strict=True):
            assert case.world.valid(row)
            assert case.decide(row) == output
    assert swept[0].flip_rate == pytest.approx(whole[0].flip_rate, abs=1e-12)
    assert len(swept[0].direction) == len(whole[0].direction)
    shares = [each.crossing and each.crossing.share for each in (swept[0], whole[0])]
    assert shares[0] == (None if shares[1] is None else pytest.approx(shares[1], abs=1e-12))
    assert bool(swept[0].witnesses) == bool(whole[0].witnesses)


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_keep_missing_values_in_the_context(swept: None, seed: int) -> None:
    missing = {LEADER: "kept", FREE: "counterfactual"}
    world = plain_world(seed, binned=seed == 1, constraint="missing", **missing)
    run = world.audit(deterministic=True, exact=True)
    for names in SETS:
        causal, group, expected = run.causal(*names), run.group(*names), world.group(names)
        assert group.method == "exact"
        assert expected is None or group.score == pytest.approx(expected, abs=1e-9)
        if causal.method == "exact":
            assert causal.score == pytest.approx(world.causal(names), abs=1e-9)


@pytest.mark.parametrize("seed", [5, 8])
def test_sweeps_rewrite_what_follows(swept: None, seed: int) -> None:
    world = plain_world(seed, binned=False)
    run = world.audit(deterministic=True, exact=True)
    causal = run.causal(LEADER)
    assert causal.method == "exact"
    assert causal.score == pytest.approx(world.causal((LEADER,)), abs=1e-9)
    held_fast = run.causal("mate")
    assert [n.values["reason"] for n in held_fast.notes if n.code == "exact-not-possible"] == [
        "following"
    ]


def test_degrees_are_swept_like_decisions(swept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = themis.Schema(a=range(3), b=range(4), c=range(5))
    output = themis.Output(distance="relational", min=0, max=13, cut=6)
    audit = themis.Audit(graded, schema, outputs=output, exact=True)
    swept_score = audit.causal("a"), audit.group("a")
    monkeypatch.undo()
    audit = themis.Audit(graded, schema, outputs=output)
    assert [each.score for each in swept_score] == [audit.causal("a").score, audit.group("a").score]


def graded(row: dict[str, int]) -> int:
    return row["a"] * 3 + row["b"] + row["c"]


SIZES = {"race": 3, "sex": 2, "income": 40, "savings": 40, "age": 30}
LARGE = themis.Schema({name: range(size) for name, size in SIZES.items()})


@themis.batch
def loan(people: themis.InputTable) -> Any:
    points = people["income"] + people["savings"]
    return points > np.where(people["race"] > 0, 49, 39)


def test_a_failure_leaves_an_interval(swept: None) -> None:
    def fails(row: dict[str, int]) -> bool:
        if row["income"] == 9:
            raise ValueError
        return row["income"] + row["race"] > 5

    schema = themis.Schema(race=range(2), income=range(10), age=range(4))
    options: dict[str, Any] = {"exact": True, "max_failures": 1.0}
    audit = themis.Audit(fails, schema, **options)
    causal, group = audit.causal("race"), audit.group("race")
    assert (causal.low, causal.high, causal.unknown) == (0.1, 0.2, 4)
    assert (group.low, group.high, group.unknown) == (0.0, 0.2, 8)


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_limits_that_a_sweep_would_break_are_kept_by_sampling(swept: None, measure: str) -> None:
    few = getattr(themis.Audit(loan, LARGE, exact=True, max_executions=200_000), measure)("race")
    assert few.method == "sampled"
    assert few.executions <= 200_000
    assert [n.values["reason"] for n in few.notes if n.code == "exact-not-possible"] == [
        "max-executions"
    ]
    short = getattr(themis.Audit(loan, LARGE, exact=True, max_seconds=1e-4), measure)("race")
    assert short.method == "sampled"


def test_the_papers_procedures_are_never_exact() -> None:
    with pytest.raises(themis.RequestError, match='exact: contradicts stopping = "paper"'):
        themis.Audit(loan, LARGE, exact=True, stopping="paper")


@pytest.mark.slow
def test_memory_stays_flat_however_many_inputs_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(domain, "PIECE", 2**13)
    peaks = []
    for ages in (10, 10, 100):  # the first one imports what is needed
        schema = themis.Schema(
            {**{name: range(size) for name, size in SIZES.items()}, "age": range(ages)}
        )
        audit = themis.Audit(loan, schema, exact=True, probe=0)
        gc.collect()
        tracemalloc.start()
        assert audit.causal("race").samples == 9_600 * ages
        assert audit.group("race").samples == 9_600 * ages
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = peaks[2] - peaks[1]
    assert grown < 0.25 * 9_600 * 90, peaks  # bytes for each input: a list of them has more


def test_where_the_flips_are_is_found_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(domain, "PIECE", 4_000)
    region = themis.Values(["a", "b", "c", "d"], weights=[6, 2, 1, 1])
    schema = themis.Schema(region=region, race=range(2), income=range(100), age=range(50))

    @themis.batch
    def decide(people: themis.InputTable) -> Any:
        return (people["region"] == "b") & (people["race"] == 1)

    score = themis.Audit(decide, schema, exact=True).causal("race")
    assert score.score == 0.2
    assert score.direction[0].lost == pytest.approx(0.2)
    (found,) = score.regions
    assert [found.coverage_low > 0.99, found.share_low < 0.2 < found.share_high] == [True, True]
    assert all(row["region"] == "b" for witness in score.witnesses for row in witness.inputs)
