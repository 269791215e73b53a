"""Whole audits: what they measure, how sure they are, and whether their forecast comes true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import themis
from themis import Audit, Integers, Schema, Values
from themis.audit.checker import run_checks
from themis.audit.forecast import Everything
from themis.audit.plan import make_plan
from themis.errors import RequestError
from themis.events import FACTOR, Event, Forecast, StepBegun
from themis.results.model import Result
from themis.results.saved import result_from_dict
from themis.results.verdicts import Check

TWO = Schema(
    a=Values([0, 1], protected=True), b=Values([0, 1, 2], protected=True), d=Integers(0, 10**6)
)
THREE = Schema(
    a=Values([0, 1, 2], protected=True),
    b=Values(list(range(5)), protected=True),
    c=Values(["x", "y", "z"], protected=True),
    d=Integers(0, 1000),
)
TIED = Schema(
    sex=Values(["f", "m"], protected=True),
    age=Integers(18, 90, bins=[30, 60], protected=True),
    income=Integers(0, 100_000, step=100),
).where("age > 20 or income < 50000")
SMALL = Schema(
    a=Values([0, 1], protected=True), b=Values([0, 1, 2], protected=True), d=Integers(0, 20)
)


def _threshold(table: Any) -> Any:
    return np.asarray(table["d"]) > 300_000 + 100_000 * np.asarray(table["a"])


SUBJECTS: dict[str, tuple[Any, Schema]] = {
    "no effect": (lambda p: p["d"] % 2, TWO),
    "always another decision, equal rates": (lambda p: (p["d"] + p["a"] + p["b"]) % 2, TWO),
    "one direction": (lambda p: int(p["d"] > 400_000 + 200_000 * p["a"]), TWO),
    "three characteristics": (
        lambda p: int((p["a"] == 0 and p["b"] > 2) or p["c"] == "x"), THREE
    ),
    "groups that share no contexts": (
        lambda p: int(p["income"] > (45_000 if p["age"] > 60 and p["sex"] == "f" else 30_000)),
        TIED,
    ),
    "every input is run": (lambda p: int(p["d"] > 10 + p["a"]), SMALL),
    "few calls": (themis.batch(_threshold), TWO),
    "one characteristic": (
        lambda p: int(p["d"] > 40_000 + 20_000 * p["a"]),
        Schema(a=Values([0, 1], protected=True), d=Integers(0, 100_000)),
    ),
    "values that are missing": (
        lambda p: int(p["d"] > 50_000),
        Schema(
            a=Values([0, 1], protected=True, missing=0.1),
            b=Values([0, 1, 2], protected=True),
            d=Integers(0, 100_000),
        ),
    ),
}  # fmt: skip


def audited(name: str, **settings: Any) -> tuple[Result, Forecast]:
    return with_forecast(*SUBJECTS[name], **settings)


def with_forecast(subject: Any, schema: Schema, **settings: Any) -> tuple[Result, Forecast]:
    told: list[Event] = []
    result = Audit(subject, schema, listen=told.append, **settings).everything()
    (forecast,) = (each for each in told if isinstance(each, Forecast))
    return result, forecast


def is_near(forecast: float, spent: float) -> bool:
    return forecast / FACTOR <= spent <= forecast * FACTOR


LONG = ("three characteristics", "groups that share no contexts")


@pytest.mark.some_slow(core=4, full=2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in SUBJECTS]
)
def test_an_audit_and_its_scores_cost_what_was_forecast_within_the_stated_factor(name: str) -> None:
    result, forecast = audited(name, family=True)
    assert is_near(forecast.executions, result.executions)
    assert is_near(forecast.calls, result.timing["calls"])
    subject, schema = SUBJECTS[name]
    forecast = make_plan(Audit(subject, schema)).forecast
    spent = Audit(subject, schema).score([[name] for name in schema.protected]).executions
    assert is_near(forecast.executions, spent)


@pytest.mark.parametrize(
    ("values", "d", "exact"),
    [
        (3, Integers(0, 100_000), [False, False]),
        (3, range(20), [True, True]),
        (200, range(20), [False, True]),
    ],
)
@pytest.mark.parametrize("repeats", [1, 3])
def test_the_parts_of_a_forecast_add_up(
    values: int, d: Any, exact: list[bool], repeats: int
) -> None:
    schema = Schema(a=Values([0, 1], protected=True), b=Values(range(values), protected=True), d=d)
    audit = Audit(lambda p: int(p["d"] > 10), schema, repeats=repeats)
    forecast = make_plan(audit).forecast
    said = [*(part.executions for part in forecast.parts), forecast.search, forecast.again]
    assert forecast.executions == sum(said)
    assert [part.exact for part in forecast.parts] == exact
    if exact[1] and repeats == 1:  # what is known is not run twice
        size = audit.apparatus.views.whole.population.size
        assert sum(part.executions for part in forecast.parts) == size


def test_an_audit_has_each_protected_characteristic_their_pairs_and_a_search() -> None:
    result, forecast = audited("three characteristics", error=0.1)
    sets = {each.against for each in result.scores if each.measure == "causal"}
    assert sets >= {("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")}
    assert [each.measure for each in result.searches] == ["causal", "group"]
    assert {each.among for each in result.searches} == {("a", "b", "c")}
    assert result.noise is not None
    assert result.command == "audit"
    assert [part.name for part in forecast.parts] == ["a", "b", "c", "a,b", "a,c", "b,c"]


def test_no_score_of_an_audit_is_there_twice_and_a_saved_one_is_the_same() -> None:
    result, _ = audited("one direction")
    asked = [(each.measure, each.against) for each in result.scores]
    assert len(asked) == len(set(asked))
    (causal, _) = result.searches
    assert causal.found == (("a",),)
    assert causal.minimal_sets == tuple(
        each for each in result.scores if (each.measure, each.against) == ("causal", ("a",))
    )
    again = result_from_dict(result.to_dict())
    assert again.searches[0].minimal_sets[0] in again.scores
    assert len(again.searches[0].minimal_sets) == 1


def test_the_confidence_is_divided_among_all_scores_and_the_search() -> None:
    plan = Everything.of(TWO, ())
    audit = Audit(SUBJECTS["no effect"][0], TWO, family=True)
    family = plan.family(audit.settings, audit.apparatus.views)
    # Three sets with one causal statement and two of groups each; two for the searches.
    assert family.parts == 3 * 3 + 2
    assert family.settings.confidence == pytest.approx(1 - 0.01 / 11)
    result, _ = audited("no effect", family=True)
    assert result.family == len(result.scores) + len(result.searches)
    assert {each.confidence for each in (*result.scores, *result.searches)} == {0.99}
    alone, _ = audited("no effect")
    assert result.scores[0].samples > alone.scores[0].samples


def test_of_one_characteristic_there_is_no_search_and_of_none_nothing() -> None:
    result, forecast = audited("one characteristic")
    assert (result.searches, forecast.scores) == ((), 2)
    assert {each.against for each in result.scores} == {("a",)}
    with pytest.raises(RequestError, match="nothing is said to be protected"):
        Audit(lambda p: 1, Schema(a=[0, 1], d=range(100))).everything()


@pytest.mark.parametrize("limit", [1, 20, 500])
def test_a_limit_on_executions_holds_for_the_whole_audit(limit: int) -> None:
    result, _ = audited("one direction", max_executions=limit)
    assert result.executions <= limit
    assert result.stopped == "budget"


@pytest.mark.slow
def test_listening_changes_nothing() -> None:
    subject, schema = SUBJECTS["one direction"]
    told: list[Event] = []
    loud = Audit(subject, schema, listen=told.append).everything()
    quiet = Audit(subject, schema).everything()
    assert {**loud.to_dict(), "timing": None} == {**quiet.to_dict(), "timing": None}
    steps = [each for each in told if isinstance(each, StepBegun)]
    assert steps == [StepBegun(number, 7) for number in range(1, 8)]


def _apart(gap: int) -> Audit:
    """A profile whose rates by `a` are so many points apart."""
    protected = {name: Values([0, 1], protected=True) for name in "ab"}
    schema = Schema(**protected, c=Values([0, 1, 2], protected=True), d=Integers(0, 10**6))
    at = np.arange(400)
    rows = {"a": at % 2, "b": at // 2 % 2, "c": at % 3, "d": at // 4 % 100 + gap * (at % 2)}
    return Audit(lambda p: int(p["d"] > 50), schema, profile=rows)


@pytest.mark.parametrize("gap", [3, 5, 7])
def test_a_search_lists_what_exact_scores_of_the_same_audit_show(gap: int) -> None:
    """Sampled to ± 5 points, a search for 5 points may miss 7, and list 3."""
    result = _apart(gap).everything(threshold=0.05)
    for search in result.searches:
        scores = {
            frozenset(each.against): each.score
            for each in result.scores
            if each.measure == search.measure and each.method == "exact"
        }
        above = [names for names, score in scores.items() if score >= search.threshold]
        minimal = {each for each in above if not any(other < each for other in above)}
        found = {frozenset(names) for names in search.found}
        assert {each for each in found if each in scores} == minimal
        assert not search.undecided
    assert all(each.score >= 0.05 for s in result.searches for each in s.minimal_sets)


@pytest.mark.parametrize("gap", [3, 5, 7])
def test_a_search_for_groups_of_a_profile_does_not_depend_on_what_was_asked_before(
    gap: int,
) -> None:
    """Everybody is run, as for a score; that takes fewer executions than a sample of each set."""
    first, second = _apart(gap), _apart(gap)
    second.group("a")
    among = ["a", "b", "c"]
    alone, after = (each.search(0.05, measure="group", among=among) for each in (first, second))
    assert alone.tested == after.tested
    assert {reason.code for each in alone.tested for reason in each.reasons} <= {
        "exact-score",
        "equals-threshold",
    }
    assert (("a",) in alone.found) == (gap > 3)
    assert alone.account.sampling == 400


def test_noise_makes_undecided_what_an_exact_score_put_below_a_threshold() -> None:
    """All people were run once: another run may put their groups above it."""
    rng = np.random.default_rng(3)
    audit = _apart(0)
    rows = {name: np.arange(400) % size for name, size in (("a", 2), ("b", 2), ("c", 3), ("d", 97))}
    noisy = Audit(lambda p: int(rng.random() < 0.5), audit.schema, profile=rows)
    result = noisy.everything(threshold=0.9)
    (groups,) = [each for each in result.searches if each.measure == "group"]
    assert groups.stopped == "noise"
    assert {each.decision for each in groups.tested} == {"undecided"}
    assert len(groups.undecided) == len(groups.tested)


def _people(count: int) -> dict[str, Any]:
    """People of whom one sex has more income; few distinct incomes are shared."""
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, count)
    income = np.round(rng.lognormal(10, 0.6, count) * (1 + 0.3 * sex)).astype(int)
    return {
        "sex": sex,
        "race": rng.choice(3, count, p=[0.7, 0.2, 0.1]),
        "income": np.minimum(income, 200_000),
    }


PROFILES: dict[str, tuple[int, Callable[[Any], Any], dict[str, Any]]] = {
    "all people are run, no effect": (400, lambda p: int(p["income"] > 25_000), {}),
    "all people are run three times": (
        400, lambda p: int(p["income"] > 25_000 - 8_000 * p["sex"]), {"repeats": 3}
    ),
    "one decision for all": (400, lambda p: 1, {}),
    "people are drawn": (3_000, lambda p: int(p["income"] > 25_000 - 8_000 * p["sex"]), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", PROFILES)
def test_forecasts_of_profiles_are_within_the_stated_factor(case: str) -> None:
    count, subject, settings = PROFILES[case]
    schema = Schema(
        sex=Values([0, 1], protected=True),
        race=Values([0, 1, 2], protected=True),
        income=Integers(0, 200_000),
    )
    settings = {**settings, "profile": _people(count)}
    result, forecast = with_forecast(subject, schema, **settings)
    assert is_near(forecast.executions, result.executions)
    foreseen = make_plan(Audit(subject, schema, **settings)).forecast.executions
    spent = Audit(subject, schema, **settings).score([["sex"], ["race"]]).executions
    assert is_near(foreseen, spent)


def test_forecasts_of_checks_come_true_within_the_stated_factor() -> None:
    subject, schema = SUBJECTS["one direction"]
    checks = [Check(against=("a",), max_score=0.05), Check(against=("b",), max_score=0.5)]
    forecast = make_plan(Audit(subject, schema), checks).checks
    spent = run_checks(Audit(subject, schema), checks).executions
    assert forecast is not None
    assert is_near(forecast.executions, spent)


@pytest.mark.parametrize("change", [100, 1000])
def test_scores_by_degrees_are_foreseen(change: int) -> None:
    schema = Schema(
        sex=Values(["f", "m"], protected=True),
        race=Values(list("abc"), protected=True),
        income=range(1000),
        rest=range(10**5),
    )

    def price(table: Any) -> Any:
        return np.asarray(table["income"]) + change * (np.asarray(table["sex"]) == "f")

    outputs = [themis.Output(name="price", min=0, max=5000, distance="relational")]
    options: Any = {"outputs": outputs, "seed": 1, "error": 0.01, "cost": "executions"}
    foreseen = make_plan(Audit(themis.batch(price), schema, **options)).forecast
    audit = Audit(themis.batch(price), schema, **options)
    audit.score([["sex"], ["race"]])
    assert is_near(foreseen.executions, audit.runner.account.executions)
