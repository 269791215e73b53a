"""What is only known of people: its groups equal a plain count, and no change of it is claimed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import themis
from tests import oracle
from tests.oracle import Variable, World
from tests.worlds import Case, cases
from themis.results.finding import finding
from themis.results.verdicts import Check, judge_score
from themis.show.reports.ci import render_junit
from themis.show.terminal.results import render_search
from themis.show.words.headlines import headline
from themis.show.words.verdicts import verdict

GROUPS = ("f", "m", "x")
TINY = settings(max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))


def with_group(case: Case, place: int) -> Case:
    """The same subject, and a characteristic that it does not get among the others."""
    known = themis.Values(GROUPS, protected=True, role="group")
    inputs = [(each.name, each) for each in case.schema]
    inputs.insert(place, ("known", known))
    constraints = {each.name: each.text for each in case.schema.constraints}
    variables, own = list(case.world.variables), case.world
    variables.insert(place, Variable("known", GROUPS))

    def given(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in row if name != "known"}

    def refuses_more(row: dict[str, Any]) -> Any:
        assert "known" not in row
        return own.decide(row)

    world = World(
        tuple(variables),
        lambda row: own.valid(given(row)),
        lambda row: own.decide(given(row)),
        favourable=own.favourable,
    )
    schema = themis.Schema(dict(inputs)).constrained(constraints)
    return replace(case, schema=schema, decide=refuses_more, world=world)


@TINY
@given(case=cases(most=3), place=st.integers(0, 2), data=st.data())
def test_scores_with_a_group_column_are_those_of_the_definitions(
    case: Case, place: int, data: Any
) -> None:
    case = with_group(case, place)
    rows = data.draw(
        st.lists(st.sampled_from([v for v, _ in case.world.inputs()]), min_size=1, max_size=25)
    )
    weighed = [(row, 1.0) for row in rows]
    audit = case.audit(max_failures=1.0)
    table = {v.name: [row[i] for row in rows] for i, v in enumerate(case.world.variables)}
    found = audit.apparent(table, [["known"], ["known", *case.names]], only_data=True)
    for score in found.scores:
        names = set(score.against)
        if score.measure == "group":
            assert score.score == pytest.approx(oracle.group(case.world, weighed, names)[0])
        elif score.counterfactuals == "within":
            assert score.score == pytest.approx(oracle.causal_within(case.world, weighed, names)[0])
        if score.measure == "causal" and names == {"known"}:
            assert (score.score, score.low, score.high) == (0, 0, 0)
    exact = case.audit(exact=True)
    binned = [each.name for each in case.schema if each.bin_starts is not None]
    if set(binned).isdisjoint(case.names):
        both = exact.causal("known", *case.names).score
        assert both == pytest.approx(case.world.causal({"known", *case.names}))
    assert exact.group("known", *case.names).score == pytest.approx(
        case.world.group({"known", *case.names})
    )


def loan(person: dict[str, Any]) -> bool:
    assert set(person) == {"race", "income"}
    return bool(person["income"] > (10 if person["race"] == "g" else 12))


SCHEMA = themis.Schema(
    sex=themis.Values(["f", "m"], protected=True, role="group"),
    race=themis.Values(["g", "p"], protected=True),
    income=range(20),
)


def people(count: int = 600, seed: int = 1) -> list[dict[str, Any]]:
    """Rows where men have higher incomes; `repaid` is a known outcome."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        sex = str(rng.choice(["f", "m"]))
        income = int(rng.integers(0, 20 if sex == "m" else 14))
        race = str(rng.choice(["g", "p"]))
        repaid = int(income + rng.normal(0, 4) > 9)
        rows.append({"sex": sex, "race": race, "income": income, "repaid": repaid})
    return rows


def rate(rows: list[dict[str, Any]], **own: Any) -> float:
    """How many of those with these values are approved."""
    chosen = [row for row in rows if all(row[name] == value for name, value in own.items())]
    return sum(loan({"race": row["race"], "income": row["income"]}) for row in chosen) / len(chosen)


def test_outcomes_and_proxies_by_a_group_column_are_a_plain_count() -> None:
    rows = people()
    audit = themis.Audit(loan, SCHEMA, seed=1)
    found = audit.apparent(rows, "sex", label="repaid", proxies=True, only_data=True)
    for each in found.outcomes[0].groups:
        expected = rate(rows, sex=each.values["sex"], repaid=1)
        assert each.true_positive_rate.rate == pytest.approx(expected)
    (proxy,) = found.proxies
    assert (proxy.name, proxy.changed) == ("income", 1)
    assert proxy.association > 0.3


FRAME = pd.DataFrame(people())
OTHERS = FRAME.drop(columns="sex")
GIVEN = themis.Schema({each.name: each for each in SCHEMA if each.name != "sex"})


@pytest.mark.parametrize(
    ("rows", "options", "name"),
    [
        (FRAME, {"against": "sex"}, "sex"),
        (FRAME, {"against": [["sex"]]}, "sex"),
        (OTHERS, {"sensitive_features": FRAME["sex"]}, "sex"),
        (FRAME, {"sensitive_features": FRAME["sex"]}, "sex"),
        (OTHERS, {"sensitive_features": FRAME[["sex"]]}, "sex"),
        (OTHERS, {"sensitive_features": {"sex": FRAME["sex"].tolist()}}, "sex"),
        (OTHERS, {"sensitive_features": FRAME["sex"].to_numpy()}, "sensitive_feature_0"),
        (OTHERS, {"sensitive_features": FRAME[["sex"]].to_numpy()}, "sensitive_feature_0"),
    ],
)
def test_people_are_compared_by_columns_of_a_frame_or_beside_it(
    rows: Any, options: dict[str, Any], name: str
) -> None:
    found = themis.Audit(loan, GIVEN).apparent(rows, label="repaid", **options)
    assert [(each.measure, each.against) for each in found.scores] == [
        ("causal", (name,)),
        ("group", (name,)),
    ]
    rates = {each.values[name]: each.rate for each in found.scores[1].groups}
    assert rates == pytest.approx({sex: rate(people(), sex=sex) for sex in "fm"})
    assert len(found.outcomes) == 1


def test_the_rows_of_a_profile_have_such_columns_too() -> None:
    audit = themis.Audit(loan, GIVEN, profile=FRAME)
    (score,) = audit.apparent(against="sex", measures=["group"], label="repaid").scores
    assert score.score == pytest.approx(rate(people(), sex="m") - rate(people(), sex="f"))
    with pytest.raises(themis.ThemisError, match="did you mean 'sex'"):
        audit.apparent(against="sxe")
    with pytest.raises(themis.ThemisError, match="give the rows, too"):
        audit.apparent(sensitive_features=FRAME["sex"])


def test_features_beside_rows_join_the_sets_that_are_named() -> None:
    ages = np.arange(len(OTHERS)) % 60 + 18
    features = {"sex": FRAME["sex"], "age": ages}
    found = themis.Audit(loan, GIVEN).apparent(
        OTHERS, "race", measures=["group"], sensitive_features=features, only_data=True
    )
    assert [each.against for each in found.scores] == [("race",), ("sex",), ("age",)]
    assert len(found.scores[2].groups) == 4, "of many numbers there are bins"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"against": "sxe"}, "no characteristic 'sxe', and no column .* did you mean 'sex'"),
        ({"sensitive_features": ["f"]}, "1 value for 600 rows; give one for each row"),
        ({"sensitive_features": FRAME["sex"].rename("race")}, "of this name with other values"),
    ],
)
def test_columns_that_make_no_groups_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(themis.ThemisError, match=said):
        themis.Audit(loan, GIVEN).apparent(FRAME, **options)


def test_of_a_profile_the_group_score_is_the_people_s() -> None:
    rows = people()
    score = themis.Audit(loan, SCHEMA, profile=rows).group("sex")
    assert score.score == pytest.approx(rate(rows, sex="m") - rate(rows, sex="f"))
    assert score.population == "profile"
    sampled = themis.Audit(loan, SCHEMA, profile=people(60_000), max_executions=4_000).group("sex")
    assert sampled.low <= 0.3 <= sampled.high or sampled.low > 0.1


@pytest.mark.parametrize("profile", [None, "people"])
def test_a_causal_score_of_what_is_not_given_is_said_to_hold_by_construction(
    profile: str | None,
) -> None:
    audit = themis.Audit(loan, SCHEMA, profile=people() if profile else None)
    score = audit.causal("sex")
    assert (score.score, score.low, score.high, score.samples) == (0, 0, 0, 0)
    assert (finding(score).kind, finding(score).state) == ("unread", "open")
    assert headline(score) == (
        "Sex is not an input of this program: its causal score is 0 by construction"
    )
    told = "causal score against sex: not given to the subject, 0 by construction"
    assert str(score) == told
    checked = judge_score(Check(against=("sex",), max_score=0.05), score, 0.99)
    assert checked.verdict == "not enough evidence"
    assert [each.code for each in checked.reasons] == ["not-an-input"]
    said = verdict(audit.score(["sex"], ["causal"]))
    assert said.state == "open"
    assert "no difference" not in f"{said.word} {said.sentence}"


def test_of_generated_inputs_groups_that_nothing_goes_with_are_equal_by_construction() -> None:
    score = themis.Audit(loan, SCHEMA).group("sex")
    assert (score.high, finding(score).kind) == (0, "unread")
    assert "give rows of people" in str(score.notes[0])
    linked = SCHEMA.where("sex == 'm' or income < 10")
    men = [{"race": race, "income": income} for race in "gp" for income in range(20)]
    women = [each for each in men if each["income"] < 10]
    assert themis.Audit(loan, linked).group("sex").score == pytest.approx(rate(men) - rate(women))


@pytest.mark.parametrize("tie", ["from", "follows"])
def test_what_goes_with_a_group_column_makes_its_causal_score_a_measured_one(tie: str) -> None:
    title = (
        themis.derived("sex", {"f": "Ms", "m": "Mr"})
        if tie == "from"
        else themis.Values(["Ms", "Mr"], follows="sex", as_={"f": {"Mr": "Ms"}, "m": {"Ms": "Mr"}})
    )
    inputs = {each.name: each for each in SCHEMA if each.name != "race"}
    schema = themis.Schema({**inputs, "title": title})

    def by_title(person: dict[str, Any]) -> bool:
        assert set(person) == {"title", "income"}
        return bool(person["title"] == "Mr" and person["income"] > 9)

    audit = themis.Audit(by_title, schema)
    assert audit.causal("sex").score == 0.5
    assert audit.group("sex").score == 0.5
    assert ("sex",) in audit.search(0.1, among=["sex", "income"]).found


def test_inputs_that_are_the_same_for_the_subject_are_run_once() -> None:
    seen: list[tuple[Any, ...]] = []

    def noted(person: dict[str, Any]) -> bool:
        seen.append(tuple(person.values()))
        return loan(person)

    audit = themis.Audit(noted, SCHEMA, deterministic=True)
    for names in ("race", "sex,race", "race,income"):
        audit.causal(*names.split(","))
        audit.group(*names.split(","))
    audit.apparent(people(60), [["sex"], ["race"]], proxies=True)
    assert len(seen) == len(set(seen)) == 40


def test_reports_and_logs_have_no_number_for_what_is_not_given() -> None:
    audit = themis.Audit(loan, GIVEN)
    result = audit.apparent(FRAME, "sex", only_data=True)
    assert {name.partition("/")[0] for name in result.to_metrics()} == {"group"}
    cases = ElementTree.fromstring(render_junit(result)).iter("testcase")
    skipped = {each.get("classname"): each.find("skipped") is not None for each in cases}
    assert skipped == {"themis.causal": True, "themis.group": False}


def test_a_causal_search_leaves_out_what_is_not_given_and_says_so() -> None:
    audit = themis.Audit(loan, SCHEMA)
    result = audit.search_all(0.05, ["causal", "group"])
    causal, group = result.searches
    assert (causal.among, group.among) == (("race", "income"), ("sex", "race", "income"))
    assert causal.found == (("income",), ("race",))
    assert "sex is not given to the program and was left out" in " ".join(
        render_search(result).split()
    )
    with pytest.raises(themis.ThemisError, match="nothing of 'sex' is given to the subject"):
        audit.search(0.05, among=["sex"])
    assert audit.search(0.05, "group", among=["sex"]).found == ()


def test_a_whole_audit_has_group_columns_beside_inputs() -> None:
    result = themis.Audit(loan, SCHEMA, profile=people()).everything()
    kinds = {(each.measure, each.against): finding(each).kind for each in result.scores}
    assert kinds["causal", ("sex",)] == "unread"
    assert kinds["group", ("sex",)] == "differs"
    assert kinds["causal", ("sex", "race")] == kinds["causal", ("race",)] == "differs"
    assert "by construction" in verdict(result).sentence
