"""Exact scores equal the definitions: of domains that are held or swept, also if they end early."""

from __future__ import annotations

import gc
import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import themis
from tests.clocks import Clock
from tests.joint_worlds import FREE, LEADER, SETS, plain_world
from tests.worlds import Case, cases
from themis.engine import runner as runner_module
from themis.events import Progress
from themis.inputs.keys import summed
from themis.results.notes import Ending
from themis.scores import domain, scorer
from themis.scores import domain as exact_module
from themis.subjects import base as base_module

SLOW = settings(max_examples=120, derandomize=True, suppress_health_check=list(HealthCheck))


@SLOW
@given(cases(binned=False))
def test_scores_equal_the_definitions_and_run_every_valid_input_once(case: Case) -> None:
    audit, world, names = case.audit(), case.world, set(case.names)
    causal, group = audit.causal(*case.names), audit.group(*case.names)
    assert causal.method == group.method == "exact"
    assert causal.score == pytest.approx(world.causal(names), abs=1e-9)
    assert group.low == group.score == group.high == pytest.approx(world.group(names), abs=1e-9)
    assert (causal.account.sampling, group.account.sampling) == (len(world.inputs()), 0)
    assert bool(causal.witnesses) == (causal.score > 0)


@pytest.mark.parametrize("failing", [0, 30])
@pytest.mark.parametrize(("method", "ids", "most"), [("exact", 1, None), ("sampled", 9_999, 2_000)])
def test_means_are_those_of_the_answers_that_came(
    method: str, ids: int, most: int | None, failing: int
) -> None:
    def price(person: dict[str, Any]) -> float:
        if person["age"] < failing:
            raise ValueError
        return 5.0 if person["sex"] == "f" else 5.25

    schema = themis.Schema(sex=["f", "m"], age=range(1_000), id=range(ids))
    outputs = [themis.Output(name="price", min=0, max=10)]
    audit = themis.Audit(
        price, schema, outputs=outputs, max_failures=0.2, max_executions=most, exact=not most
    )
    score = audit.group("sex", output="price")
    assert score.method == method
    assert sorted(group.rate for group in score.groups) == pytest.approx([0.5, 0.525], abs=1e-12)
    assert all(group.low <= group.rate <= group.high for group in score.groups)
    assert score.score == pytest.approx(0.025, abs=1e-12)
    assert score.low - 1e-12 <= 0.025 <= score.high + 1e-12
    assert not failing or score.low < 0.025 < score.high


# Sums of many small weights: an exact score is right to its last digit ------------------------


@pytest.mark.parametrize("kind", ["equal", "few", "any", "none"])
def test_sums_are_those_without_rounding(kind: str) -> None:
    rng = np.random.default_rng(0)
    count = 0 if kind == "none" else 300_000
    weights = {
        "equal": np.full(count, 1 / 3e6),
        "few": rng.choice([0.7e-6, 0.1e-6, 3e-9], count),
        "any": rng.exponential(1e-6, count),
        "none": np.empty(0),
    }[kind]
    places = rng.integers(0, 3, count)
    sums = summed(places, weights, 4)
    truth = [math.fsum(weights[places == place]) for place in range(4)]
    assert sums == pytest.approx(truth, rel=4e-16)


def decide(table: Any) -> Any:
    return table["rest"] % 10 >= 5 + 3 * (table["sex"] == "f")


@pytest.mark.parametrize("share", [None, 0.7])
@pytest.mark.parametrize("measure", ["group", "causal"])
def test_a_score_that_equals_its_limit_is_not_above_it(measure: str, share: float | None) -> None:
    """It was by 10⁻¹² and more where a million inputs had been added up one by one."""
    race = themis.Values(list("abc"), weights=share and [share, 0.2, 1 - share - 0.2])
    schema = themis.Schema(sex=["f", "m"], race=race, rest=range(200_000))
    audit = themis.Audit(themis.batch(decide), schema)
    score = getattr(audit, measure)("sex", "race", exact=True)
    assert score.method == "exact"
    assert Fraction(str(score.score)) == Fraction(3, 10)
    score.assert_below(0.3)


def test_no_causal_score_is_above_one() -> None:
    schema = themis.Schema(sex=["f", "m"], race=list("abc"), rest=range(100_000))
    assert themis.Audit(themis.batch(decide), schema).causal("rest", exact=True).score == 1.0


@pytest.mark.parametrize("distinct", [20, 1_000_000], ids=["copies", "distinct"])
def test_a_million_rows_of_weight_a_tenth_add_up(distinct: int) -> None:
    places = np.arange(1_000_000)
    rows = {"sex": np.where(places % 2, "f", "m"), "rest": places // 2 % (distinct // 2)}
    schema = themis.Schema(sex=["f", "m"], rest=range(500_000))
    audit = themis.Audit(themis.batch(decide), schema, error=0.001)
    weights = np.full(len(places), 0.1)
    for counterfactuals in ("generated", "within"):
        result = audit.apparent(
            rows, "sex", weights=weights, counterfactuals=counterfactuals, only_data=True
        )
        assert [Fraction(str(each.score)) for each in result.scores] == [Fraction(3, 10)] * 2


# Exact scores that end early: what was run is kept, and what was not may be anything ----------


Row = dict[str, Any]
TITLE = themis.derived("sex", {"m": "Mr", "f": "Ms", "d": "Mx"})
PREMIUM = themis.Output(name="premium", min=0, max=100, distance="relational")


def approved(row: Row) -> bool:
    return bool(row["income"] + 8 * (row["sex"] == "m") > 20 + row["age"] % 4)


def priced(row: Row) -> int:
    return int(row["income"] + 30 * (row["sex"] == "m") + row["age"] % 4)


CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "plain": (approved, {"income": range(40)}, {}),
    "following": (approved, {"income": range(40), "title": TITLE}, {}),
    "numbers": (priced, {"income": range(40)}, {"outputs": [PREMIUM]}),
}


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("against", ["sex", "income"])
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_ends_are_what_the_rest_could_still_do(
    name: str, against: str, measure: str, swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, more, options = CASES[name]
    schema = themis.Schema(sex=["m", "f", "d"], age=range(10), **more)
    if swept:  # nothing is held
        monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
        monkeypatch.setattr(exact_module, "PIECE", 30)
    told: list[Any] = []

    def score(most: int) -> Any:
        asked = 0

        def interrupted(row: Row) -> Any:
            nonlocal asked
            asked += 1
            if asked > most:
                raise KeyboardInterrupt
            return decide(row)

        told.clear()
        asked_for = {"exact": True, "deterministic": True, "listen": told.append, **options}
        audit = themis.Audit(interrupted, schema, **asked_for)
        audit.sampler.keep_on_interrupt = True
        return getattr(audit, measure)(against)

    truth = score(10**9)
    assert (truth.low, truth.method, truth.stopped) == (truth.high, "exact", Ending.EXHAUSTED)
    widths = [truth.high - truth.low]
    for most in (1_150, 800, 300, 130 if swept else 40):
        early = score(most)
        assert early.stopped is Ending.INTERRUPTED
        assert 0 < early.samples <= most
        assert early.low <= early.score <= early.high
        assert early.low - 1e-9 <= truth.score <= early.high + 1e-9
        progress = [each for each in told if isinstance(each, Progress)]
        assert all(each.low - 1e-9 <= truth.score <= each.high + 1e-9 for each in progress)
        widths.append(early.high - early.low)
    assert widths == sorted(widths)
    assert widths[1] < 0.9


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_time_that_ends_in_the_middle_leaves_what_was_run(
    monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    clock, asked = Clock.put_into(monkeypatch, runner_module, base_module, exact_module), 0

    def slow_at_last(row: Row) -> bool:
        nonlocal asked
        asked += 1
        clock.now += 0.005 + 30 * (asked == 1_000)
        return approved(row)

    schema = themis.Schema(sex=["m", "f", "d"], age=range(10), income=range(40))
    audit = themis.Audit(slow_at_last, schema, exact=True, deterministic=True, max_seconds=20)
    early = getattr(audit, measure)("sex")
    assert (early.stopped, early.method) == (Ending.BUDGET, "exact")
    assert 0 < early.samples <= 1_200
    assert early.low < early.score < early.high < 1


# Sweeps: the exact score of a domain that is never held whole equals the definition -----------


QUICK = settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No domain is held, and pieces have a few inputs."""
    monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
    monkeypatch.setattr(domain, "PIECE", 7)


def held(measured: Any) -> Any:
    """A score without what differs where rows are sampled to explain it."""
    usual = dict.fromkeys(("account", "reruns", "joint", "crossing", "flip_rate"))
    usual |= dict.fromkeys(("witnesses", "regions", "direction"), ())
    usual |= dict.fromkeys(("executions", "cache_hits"), 0)
    return replace(measured, **{n: v for n, v in usual.items() if hasattr(measured, n)})


def refused(score: Any) -> list[Any]:
    """Why it is no exact one."""
    return [each.values["reason"] for each in score.notes if each.code == "exact-not-possible"]


@QUICK
@given(case=cases())
def test_a_sweep_gives_what_the_domain_gives_that_is_held(case: Case) -> None:
    """Which is what the definitions say; of bins, causal scores are sampled both times."""
    with pytest.MonkeyPatch.context() as patch:
        whole, whole_group = case.audit().causal(*case.names), case.audit().group(*case.names)
        patch.setattr(scorer, "EXACT_LIMIT", 0)
        patch.setattr(domain, "PIECE", 5)
        audit = case.audit(exact=True)
        swept, swept_group = audit.causal(*case.names), audit.group(*case.names)
    assert held(swept_group) == held(whole_group)
    if any(each.bins is not None and each.name in case.names for each in case.world.variables):
        assert refused(swept) == ["bins"]
        return
    assert held(swept) == held(whole)
    for witness in swept.witnesses:
        assert set(witness.differs_in) <= set(case.names)
        for row, output in zip(witness.inputs, witness.outputs, strict=True):
            assert case.world.valid(row)
            assert case.decide(row) == output
    assert swept.flip_rate == pytest.approx(whole.flip_rate, abs=1e-12)
    assert len(swept.direction) == len(whole.direction)
    shares = [each.crossing and each.crossing.share for each in (swept, whole)]
    assert shares[0] == (None if shares[1] is None else pytest.approx(shares[1], abs=1e-12))
    assert bool(swept.witnesses) == bool(whole.witnesses)


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
    assert refused(run.causal("mate")) == ["following"]


def test_degrees_are_swept_like_decisions(swept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured() -> list[float]:
        schema = themis.Schema(a=range(3), b=range(4), c=range(5))
        output = themis.Output(distance="relational", min=0, max=13, cut=6)
        graded = lambda row: row["a"] * 3 + row["b"] + row["c"]  # noqa: E731
        audit = themis.Audit(graded, schema, outputs=output, exact=True)
        return [audit.causal("a").score, audit.group("a").score]

    swept_scores = measured()
    monkeypatch.undo()
    assert swept_scores == measured()


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
    audit = themis.Audit(fails, schema, exact=True, max_failures=1.0)
    causal, group = audit.causal("race"), audit.group("race")
    assert (causal.low, causal.high, causal.unknown) == (0.1, 0.2, 4)
    assert (group.low, group.high, group.unknown) == (0.0, 0.2, 8)


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_limits_that_a_sweep_would_break_are_kept_by_sampling(swept: None, measure: str) -> None:
    few = getattr(themis.Audit(loan, LARGE, exact=True, max_executions=200_000), measure)("race")
    short = getattr(themis.Audit(loan, LARGE, exact=True, max_seconds=1e-4), measure)("race")
    assert few.method == short.method == "sampled"
    assert few.executions <= 200_000
    assert refused(few) == ["max-executions"]


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
