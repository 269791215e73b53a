"""Few, large calls where calls are the cost, with the same guarantees and limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import themis
from tests.clocks import Clock
from themis.engine import runner as runner_module
from themis.subjects import base as base_module

MOST = 14  # calls of a score with the default settings, …
MUCH = 2**14  # … that have fewer inputs

SIZES = {"sex": 2, "race": 5, "education": 16, "age": 70, "hours": 100, "gain": 100}
SCHEMA = themis.Schema({name: range(size) for name, size in SIZES.items()})


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Calls are cut by the time that they take: none, unless a test moves the clock."""
    return Clock.put_into(monkeypatch, runner_module, base_module)


class Counted:
    """A function of a table that keeps the sizes of its calls; `bias` is against one race."""

    def __init__(self, bias: float = 12.0) -> None:
        self.bias, self.sizes = bias, list[int]()

    def __call__(self, table: Any) -> Any:
        self.sizes.append(len(table["race"]))
        points = np.asarray(table["age"]) * 0.5 + table["hours"] + 2 * table["education"]
        return points - self.bias * (np.asarray(table["race"]) == 4) > 90


class Model:
    """A model that wants an array, or a DataFrame if it names its features."""

    def __init__(self, *names: str) -> None:
        self.rule = Counted()
        if names:
            self.feature_names_in_ = np.array(names)

    def predict(self, rows: Any) -> Any:
        framed = hasattr(self, "feature_names_in_")
        return self.rule(dict(zip(SIZES, rows.to_numpy().T if framed else rows.T, strict=True)))


def tabular(bias: float) -> tuple[Any, Counted]:
    rule = Counted(bias)
    return themis.batch(rule), rule


def subjects() -> list[tuple[Any, Counted]]:
    models = [Model(*SIZES), Model()]
    biased = [tabular(bias) for bias in (0.0, 0.5, 2.0, 12.0, 80.0)]
    return [*biased, *((model, model.rule) for model in models)]


@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize("place", range(7))
def test_a_default_score_takes_few_calls_and_each_is_counted(place: int, measure: str) -> None:
    """One input alone comes first, and is not run alone again."""
    subject, rule = subjects()[place]
    audit = themis.Audit(subject, SCHEMA, seed=1)
    score = getattr(audit, measure)("race")
    account = audit.runner.account
    assert account.calls == len(rule.sizes) <= MOST
    assert score.executions == account.executions == sum(rule.sizes)
    assert (rule.sizes[0], rule.sizes.count(1)) == (1, 1)


def second_value(table: Any) -> Any:
    """A column for each value that occurs: among inputs with one value it is another one."""
    return np.searchsorted(np.unique(table["sex"]), table["sex"]) == 1


def points(table: Any) -> Any:
    own = 2 * table["education"] + table["hours"] / 4 + table["age"] / 10
    return own + 3 * (table["race"] == 0)


def among_her_own(table: Any) -> Any:
    """Among others of her sex, no woman is treated differently."""
    women = table["sex"] == 0
    return table["hours"] >= np.where(women & (women.mean() < 0.9), 65, 50)


OF_CALLS = {
    "gives points": ("race", lambda table: points(table) + 6 * second_value(table) > 34),
    "takes points": ("race", lambda table: points(table) - 6 * second_value(table) > 26),
    "among her own": ("sex", among_her_own),
}


@pytest.mark.parametrize("rule", OF_CALLS)
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_what_only_one_side_of_a_call_shows_is_seen(measure: str, rule: str) -> None:
    against, decide = OF_CALLS[rule]
    for seed in range(4):
        audit = themis.Audit(themis.batch(decide), SCHEMA, seed=seed)
        assert getattr(audit, measure)(against).stopped == "inconsistent", seed


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("share", [0.0002, 0.001, 0.002])
def test_rare_noise_of_a_whole_domain_is_not_blamed_on_calls(share: float) -> None:
    """The extreme groups are those with the noise, and each of their inputs is run again often."""
    schema = themis.Schema(g=range(20), x=range(20), y=range(10))
    found = []
    for seed in range(40):
        rng = np.random.default_rng(10_000 + seed)

        def decide(table: Any, rng: np.random.Generator = rng) -> Any:
            noise = rng.random(len(table)) < share
            return ((table["x"] + table["y"]) % 2 == 0) ^ noise

        audit = themis.Audit(themis.batch(decide), schema, seed=seed, confidence=0.9, cost="calls")
        score = audit.group("g")
        found.append(score.stopped)
        assert score.low == 0
    assert found.count("inconsistent") == 0 < found.count("noise")


@pytest.mark.parametrize("one_in", [2, 1000])
@pytest.mark.parametrize("values", [40, 300])
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_so_do_sets_with_many_values_whatever_the_effect(
    measure: str, values: int, one_in: int
) -> None:
    """Calls in which the subject has much to do are its own work."""
    sizes: list[int] = []

    def decide(table: Any) -> Any:
        sizes.append(len(table["job"]))
        mixed = np.asarray(table["job"]) * 7_919 + np.asarray(table["rest"]) * 104_729
        return (mixed ^ mixed >> 7) * 2_654_435_761 % 2**32 // 3 % one_in == 0

    schema = themis.Schema(job=range(values), rest=range(10**7), sex=["f", "m"])
    getattr(themis.Audit(themis.batch(decide), schema, seed=1), measure)("job")
    assert sum(size < MUCH for size in sizes) <= MOST, sizes


def test_saving_executions_takes_more_calls_and_is_what_a_limit_of_executions_does() -> None:
    calls, saved, limited = (
        themis.Audit(tabular(12.0)[0], SCHEMA, seed=1, cost=cost, max_executions=limit)
        for cost, limit in (("calls", None), ("executions", None), ("calls", 10**6))
    )
    assert not limited.runner.saves_calls or limited.causal("race")
    for measure in ("causal", "group"):
        scores = [getattr(audit, measure)("race") for audit in (calls, saved, limited)]
        assert scores[1].samples == scores[2].samples
    assert saved.runner.account.calls > 2 * calls.runner.account.calls
    assert saved.runner.account.sampling < calls.runner.account.sampling


def test_what_is_saved_depends_on_the_kind_unless_somebody_says_it() -> None:
    def row(person: dict[str, Any]) -> bool:
        return bool(person["race"] == 1)

    for subject, usual in ((row, "executions"), (tabular(0)[0], "calls"), (Model(), "calls")):
        for cost in ("calls", "executions", None):
            runner = themis.Audit(subject, SCHEMA, **({"cost": cost} if cost else {})).runner
            assert runner.saves_calls == ((cost or usual) == "calls")
    with pytest.raises(themis.RequestError, match="calls or executions"):
        themis.Audit(row, SCHEMA, cost="time")  # type: ignore[arg-type]


# The same answers --------------------------------------------------------------------------


def truth(bias: float) -> tuple[float, float]:
    """The causal and the group score of race, by running everybody."""
    education, age, hours = np.meshgrid(np.arange(16), np.arange(70), np.arange(100))
    points = age * 0.5 + hours + 2 * education
    favoured, other = points > 90, points - bias > 90
    return float((favoured != other).mean()), float(favoured.mean() - other.mean())


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("cost", ["calls", "executions"])
@pytest.mark.parametrize("bias", [0.0, 3.0, 12.0, 40.0])
def test_intervals_hold_whatever_is_saved(bias: float, cost: Any) -> None:
    causal, group = truth(bias)
    for seed in range(4):
        audit = themis.Audit(tabular(bias)[0], SCHEMA, seed=seed, confidence=0.999, cost=cost)
        for score, true in ((audit.causal("race"), causal), (audit.group("race"), group)):
            assert score.method == "sampled"
            assert score.low <= true <= score.high
            assert score.high - score.low <= 0.1 + 1e-9


@pytest.mark.slow
def test_coarse_steps_of_both_scores_cover_with_their_confidence() -> None:
    runs, wrong = 120, {"causal": 0, "group": 0}
    truths = dict(zip(wrong, truth(12.0), strict=True))
    for seed in range(runs):
        audit = themis.Audit(tabular(12.0)[0], SCHEMA, seed=seed, confidence=0.9, probe=0)
        for measure, true in truths.items():
            score = getattr(audit, measure)("race")
            wrong[measure] += not score.low <= true <= score.high
    assert all(count <= 0.15 * runs for count in wrong.values())


# What takes the time -------------------------------------------------------------------------


def test_an_answer_that_only_one_input_alone_gets_is_noticed() -> None:
    def decide(table: Any) -> Any:
        own = 2 * table["education"] + table["hours"] / 4 + 12 * (table["race"] == 0) > 20
        return own if len(own) > 1 else ~own

    audit = themis.Audit(themis.batch(decide), SCHEMA, seed=1)
    audit.causal("race")
    assert audit.probe.found


def test_a_slow_function_gets_few_inputs_before_its_speed_is_known(clock: Clock) -> None:
    sizes = []

    def decide(table: Any) -> Any:
        sizes.append(len(table["race"]))
        if len(sizes) == 2:
            raise KeyboardInterrupt
        clock.now += 0.05
        return table["race"] == 0

    with pytest.raises(KeyboardInterrupt):
        themis.Audit(themis.batch(decide), SCHEMA, seed=1).group("race")
    assert sizes[0] == 1
    assert sizes[1] <= 40


PEOPLE = [{name: place % size for name, size in SIZES.items()} for place in range(500)]
ASKED = {
    "search": lambda audit: audit.search(0.1, among=["sex", "race"]),
    "apparent": lambda audit: audit.apparent(PEOPLE, ["race"]),
    "everything": lambda audit: audit.everything(),
}


@pytest.mark.parametrize("asked", ASKED)
def test_no_call_begins_when_the_time_is_over(clock: Clock, asked: str) -> None:
    begin, began = clock.now, list[float]()

    def decide(table: Any) -> Any:
        began.append(clock.now - begin)
        clock.now += 0.1 * len(table["race"])
        return (table["age"] > 30) & (table["race"] > 0)

    each = {name: themis.Values(range(n), protected=n < 6) for name, n in SIZES.items()}
    ASKED[asked](themis.Audit(themis.batch(decide), themis.Schema(each), max_seconds=3.0))
    assert began[1] == pytest.approx(0.1), "one input comes first"
    assert max(began) <= 3.0 + 1e-9
    assert clock.now - begin <= 5.0


@pytest.mark.parametrize("last", [2, 3])
def test_groups_that_differ_in_the_first_calls_only_are_not_held_against_a_subject(
    last: int,
) -> None:
    """What was confirmed in such a call is run again once answers are seen to have changed."""
    for seed in range(6):
        calls = itertools.count(1)

        def decide(table: Any, calls: Iterator[int] = calls) -> Any:
            worse = 10 if next(calls) <= last else 0
            return table["hours"] > 40 + worse * (table["race"] == 4)

        score = themis.Audit(themis.batch(decide), SCHEMA, seed=seed).group("race")
        assert score.score > 0.02, "it was seen"
        assert score.floor == 0.0, seed


def test_nothing_that_a_look_foresaw_is_left_for_the_next_question() -> None:
    """A score of 0 is not run again, so that nothing goes along; nor does it later."""
    subject, rule = tabular(12.0)
    audit = themis.Audit(subject, SCHEMA, seed=1)
    assert audit.causal("sex").score == 0
    before = sum(rule.sizes)
    assert audit.group("race", max_executions=100).reruns is not None
    assert sum(rule.sizes) - before <= 100


# Limits of executions and of time hold where few, large calls are made ------------------------


@pytest.mark.parametrize("asked", ["causal", "group", "search", "group search"])
@pytest.mark.parametrize("limit", [50, 500, 5_000, 50_000])
def test_a_limit_holds_also_where_calls_are_few(
    monkeypatch: pytest.MonkeyPatch, asked: str, limit: int
) -> None:
    """One of ten million and more does not make them many."""
    monkeypatch.setattr(runner_module, "MANY_EXECUTIONS", 1)
    subject, rule = tabular(12.0)
    audit = themis.Audit(subject, SCHEMA, seed=1, max_executions=limit)
    assert audit.runner.traits.cost == "calls"
    measure, _, search = asked.partition(" ")
    if search or asked == "search":
        among = ["race", "sex", "education"]
        audit.search(0.1, among=among, measure=measure if search else "causal")
    else:
        getattr(audit, asked)("race")
    assert 0 < sum(rule.sizes) <= limit


def test_a_whole_domain_is_run_within_a_limit_of_time_where_calls_are_what_takes_it(
    clock: Clock,
) -> None:
    """A call takes a millisecond, however many inputs it has: a few do not tell that."""

    def decide(table: Any) -> Any:
        clock.now += 0.001
        return table["rest"] > 90_000 + 900 * (table["sex"] == "f")

    schema = themis.Schema(sex=["f", "m"], rest=range(10**5), kids=range(5))
    audit = themis.Audit(themis.batch(decide), schema, seed=1)
    assert audit.causal("sex", exact=True, max_seconds=20).method == "exact"


PROTECTED = {"sex": ["f", "m"], "race": list("abc"), "kids": range(4)}
PEOPLED = themis.Schema(
    {name: themis.Values(list(own), protected=True) for name, own in PROTECTED.items()},
    rest=range(10**5),
)


def unfair(table: Any) -> Any:
    return table["rest"] * 7919 % 1000 > 500 + 300 * (table["sex"] == "f")


@pytest.mark.parametrize("limit", [None, 10.0, 30.0, 300.0])
@pytest.mark.parametrize("seconds", [0.3, 0.6])
def test_calls_that_take_long_with_any_number_of_inputs_are_made_large(
    clock: Clock, seconds: float, limit: float | None
) -> None:
    """One call with one input tells nothing of what one more takes, the second one does."""
    begin, rng = clock.now, np.random.default_rng(0)

    def decide(table: Any) -> Any:
        clock.now += seconds * rng.uniform(1.0, 1.1)
        return unfair(table)

    audit = themis.Audit(themis.batch(decide), PEOPLED, seed=46, max_seconds=limit)
    score = audit.causal("sex")
    assert score.conclusive
    assert score.high - score.low <= 0.1
    assert clock.now - begin <= 20 * seconds


TAKES = {
    "the square": lambda inputs, calls: 1e-4 * inputs**2,
    "the cube": lambda inputs, calls: 1e-6 * inputs**3,
    "a leap": lambda inputs, calls: 0.01 if inputs < 100 else 2.5,
    "slow at first": lambda inputs, calls: 0.4 if calls else 5.0,
}


@pytest.mark.parametrize("measure", ["causal", "search", "everything"])
@pytest.mark.parametrize("takes", TAKES)
def test_limits_hold_where_twice_the_inputs_take_more_than_twice_as_long(
    clock: Clock, takes: str, measure: str
) -> None:
    begin, sizes = clock.now, list[int]()

    def decide(table: Any) -> Any:
        clock.now += TAKES[takes](len(table), len(sizes))
        sizes.append(len(table))
        return unfair(table)

    audit = themis.Audit(themis.batch(decide), PEOPLED, seed=3, max_seconds=10)
    if measure == "causal":
        score = audit.causal("sex")
        assert 0.0 < score.low < score.high < 0.4
    else:
        getattr(audit, measure)(*[0.1] * (measure == "search"))
    assert clock.now - begin <= 11.0
    assert sum(sizes) >= 500
