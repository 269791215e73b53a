"""Known outcomes and numbers: rates and errors by group equal Fairlearn's and a plain count."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import fairlearn.metrics
import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from scipy import stats
from sklearn.metrics import accuracy_score, mean_absolute_error, precision_score

import themis
from tests.report_results import saved
from themis.results.notes import Ending
from themis.results.outcomes import Outcomes, Rate
from themis.results.withheld import withheld
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.verdicts import verdict

SCHEMA = themis.Schema(
    sex=themis.Values(["f", "m"], protected=True),
    race=themis.Values(["a", "b", "c"], protected=True),
    income=range(50),
)
NAMES = ("selection_rate", "true_positive_rate", "false_positive_rate")


def decide(person: Any) -> bool:
    return bool(person["income"] > (20 if person["sex"] == "m" else 25))


def people(seed: int, count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], count)
    race = rng.choice(["a", "b", "c"], count, p=[0.6, 0.3, 0.1])
    income = rng.integers(0, 50, count)
    repaid = income + rng.normal(0, 10, count) + 5 * (sex == "m") > 25
    return pd.DataFrame({"sex": sex, "race": race, "income": income, "repaid": repaid})


def measured(rows: Any, against: Any = (["sex"], ["race"]), **options: Any) -> themis.Result:
    subject = options.pop("decide", decide)
    options = {"label": "repaid", "only_data": True, **options}
    return themis.Audit(subject, SCHEMA, max_failures=1.0).apparent(rows, against, **options)


def test_rates_differences_and_ratios_are_those_of_fairlearn() -> None:
    frame = people(1)
    guessed = [decide(person) for person in frame.to_dict("records")]
    rates = {name: getattr(fairlearn.metrics, name) for name in NAMES}
    rates |= {"precision": precision_score, "accuracy": accuracy_score}
    found = measured(frame).outcomes
    assert [each.against for each in found] == [("sex",), ("race",), ("sex", "race")]
    for table in found:
        groups = frame[list(table.against)]
        given = {"y_true": frame["repaid"], "y_pred": guessed, "sensitive_features": groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = MetricFrame(metrics=rates, **given)
            for name, mine in table.metrics.items():
                rate, _, kind = name.rpartition("_")
                if rate in ("precision", "accuracy"):
                    expected = getattr(theirs, kind)()[rate]
                else:
                    expected = getattr(fairlearn.metrics, name)(**given)
                assert mine == pytest.approx(expected), name
        assert len(table.groups) == len(theirs.by_group)
        for group in table.groups:
            own = theirs.by_group.loc[place_of(group, table.against)]
            assert {name: rate.rate for name, rate in group.rates()} == pytest.approx(dict(own))


def place_of(group: Any, against: tuple[str, ...]) -> Any:
    """Where pandas has a group: by its values, or by its only one."""
    place = tuple(group.values[name] for name in against)
    return place if len(place) > 1 else place[0]


def test_weights_missing_outcomes_and_failures_count_as_a_plain_count_has_them() -> None:
    frame = people(3)
    frame["weight"] = np.random.default_rng(3).choice([1, 2, 5], len(frame))
    frame["repaid"] = ["" if place % 7 == 0 else str(v) for place, v in enumerate(frame["repaid"])]

    def fails(person: Any) -> bool:
        if person["income"] % 11 == 5:
            raise ValueError("no")
        return decide(person)

    (table,) = measured(frame, "sex", decide=fails, weights="weight").outcomes
    for group in table.groups:
        own = frame[frame["sex"] == group.values["sex"]]
        assert {name: (r.count, r.of) for name, r in group.rates()} == plain_rates(own)
        assert all(rate.rate == rate.count / rate.of for _, rate in group.rates())
        assert group.people == own["weight"].sum()
    assert table.unlabelled == frame.loc[frame["repaid"] == "", "weight"].sum() > 0
    assert table.undecided == frame.loc[frame["income"] % 11 == 5, "weight"].sum() > 0


def plain_rates(rows: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """How many, and of how many, row by row."""
    ran = [row for row in rows.itertuples() if row.income % 11 != 5]
    decided = [(row.weight, decide(row._asdict()), row.repaid) for row in ran]
    known = [(w, yes, outcome == "True") for w, yes, outcome in decided if outcome]
    right = sum(w for w, yes, good in known if yes and good)
    wrong = sum(w for w, yes, good in known if yes and not good)
    bad = sum(w for w, _, good in known if not good)
    return {
        "selection_rate": (sum(w for w, yes, _ in decided if yes), sum(w for w, *_ in decided)),
        "true_positive_rate": (right, sum(w for w, _, good in known if good)),
        "false_positive_rate": (wrong, bad),
        "precision": (right, right + wrong),
        "accuracy": (right + bad - wrong, sum(w for w, *_ in known)),
    }


def test_fractional_weights_leave_no_interval() -> None:
    frame = people(4)
    frame["chosen"] = [decide(person) for person in frame.to_dict("records")]
    weights = 0.5 + np.arange(len(frame)) % 3
    result = measured(frame, "sex", weights=weights.tolist())
    (table,) = result.outcomes
    assert table.confidence is None
    for group in table.groups:
        inside = frame["sex"] == group.values["sex"]
        expected = np.average(frame["chosen"][inside], weights=weights[inside])
        assert group.selection_rate.rate == pytest.approx(expected)
        assert group.selection_rate.low is None
    assert all(gap.difference is not None and gap.low is None for gap in table.gaps)
    assert "No intervals" in render_markdown(result)


def row(sex: str, income: int, repaid: Any, times: int = 1) -> list[dict[str, Any]]:
    return [{"sex": sex, "race": "a", "income": income, "repaid": repaid}] * times


def test_a_rate_of_nobody_is_none_with_a_reason_and_never_zero() -> None:
    rows = [*row("f", 40, True, 5), *row("m", 40, True, 3), *row("m", 10, False, 4)]
    result = measured(rows, "sex")
    (table,) = result.outcomes
    assert table.groups[0].false_positive_rate == Rate(None, 0, 0)
    gaps = {gap.name: (gap.difference, gap.why) for gap in table.gaps}
    assert gaps["false_positive_rate"] == (None, "one-group")
    assert gaps["equalized_odds"][0] is None
    assert gaps["equal_opportunity"][0] == 0
    shown = render_result(result, width=100, everything=True)
    assert "false positive rate of sex f: nobody has an unfavourable outcome" in shown
    assert "false positive rate: fewer than two groups have this rate" in shown
    narrow = render_result(result, width=60, everything=True)
    table = narrow.partition("Outcomes known")[2].partition("points")[0]
    assert "accuracy" in table
    assert "…" not in table  # a number that is cut says something else


def test_outcomes_are_read_as_outputs_are_written() -> None:
    frame = people(5)
    expected = measured(frame).outcomes
    for spelled in ({True: "true", False: "false"}, {True: 1, False: 0}, {True: "1", False: "0.0"}):
        found = measured(frame.assign(repaid=frame["repaid"].map(spelled))).outcomes
        assert [each.groups for each in found] == [each.groups for each in expected]


@pytest.mark.parametrize(
    ("change", "options", "problem"),
    [
        ({"repaid": "yess"}, {}, "'yess', which is none of the outputs; say which outcomes"),
        ({"repaid": "yess"}, {"label_favourable": ["yes"]}, "did you mean 'yess'?"),
        ({}, {"label": "repayed"}, "no column 'repayed'; did you mean 'repaid'?"),
        ({}, {"label": "race"}, "label: 'race' is a characteristic"),
        ({}, {"weights": "repaid"}, "label: 'repaid' is the column of weights"),
        ({"repaid": None}, {}, "'repaid' has no value in any row"),
        ({"repaid": range(400)}, {}, "'repaid' has 400 different values, more than 100"),
        ({}, {"draw": True}, "draw: known outcomes need every row"),
        ({}, {"label": None, "label_favourable": [1]}, "label_favourable: there is no column"),
    ],
)
def test_outcomes_that_make_no_sense_are_mistakes(
    change: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(themis.RequestError) as caught:
        measured(people(7).assign(**change), **options)
    assert problem in str(caught.value)


def test_one_minus_confidence_is_divided_by_all_rates_of_all_tables() -> None:
    alpha = 0.01 / (5 * (2 + 3 + 6))
    for table in measured(people(14)).outcomes:
        for _, rate in (each for group in table.groups for each in group.rates()):
            x, n = rate.count, rate.of
            low = stats.beta.ppf(alpha / 2, x, n - x + 1) if x else 0.0
            high = stats.beta.ppf(1 - alpha / 2, x + 1, n - x) if x < n else 1.0
            assert (rate.low, rate.high) == pytest.approx((low, high))


TWO = {"labels": {"approved": ["approved"], "denied": ["denied"]}}


@pytest.mark.parametrize(
    ("outcomes", "declared", "most"),
    [
        (("yes", "no"), {}, 50),  # after the first people
        (("yes", "denied"), {}, 400),  # one of them is an output: the other may come
        (("yes", "denied"), TWO, 0),  # known before
    ],
)
def test_outcomes_that_are_no_outputs_are_noticed_early(
    outcomes: tuple[str, str], declared: dict[str, Any], most: int
) -> None:
    asked: list[Any] = []

    def subject(person: Any) -> str:
        asked.append(person)
        return "approved" if decide(person) else "denied"

    frame = people(9)
    frame["repaid"] = np.where(frame["repaid"], *outcomes)
    audit = themis.Audit(subject, SCHEMA, favourable=["approved"], **declared)
    with pytest.raises(themis.RequestError, match=r"'yes', .*label_favourable=\[…\]"):
        audit.apparent(frame, "sex", label="repaid")
    assert len(asked) <= most


def test_known_outcomes_and_proxies_are_of_the_named_output() -> None:
    def subject(person: Any) -> dict[str, int]:
        return {"loan": int(decide(person)), "card": int(person["sex"] == "m")}

    outputs = [themis.Output(name=n, at=f"/{n}", favourable=[1]) for n in ("loan", "card")]
    audit = themis.Audit(subject, SCHEMA, outputs=outputs)
    asked: dict[str, Any] = {"label": "repaid", "only_data": True, "proxies": True}
    for name, named in (("loan", {}), ("card", {"output": "card"})):
        result = audit.apparent(people(10), "sex", **named, **asked)
        assert {each.output for each in (*result.outcomes, *result.proxies)} == {name}
        parity = result.outcomes[0].metrics["demographic_parity_difference"]
        assert (parity == 1.0) == (name == "card")
        text = " ".join(render_result(result, everything=True).split())
        assert f"Outcomes known from repaid, beside the output {name}: true as" in text
        assert f"beside the output {name}" in render_markdown(result)


def test_outcomes_change_no_score_no_verdict_and_cost_nothing() -> None:
    frame = people(9)
    without, beside = measured(frame, label=None), measured(frame)
    assert not without.outcomes
    for one, other in zip(without.scores, beside.scores, strict=True):
        free = {"executions": 0, "cache_hits": 0, "account": None}  # the first to ask runs the rows
        assert replace(one, **free) == replace(other, **free)
    assert (without.executions, verdict(without)) == (beside.executions, verdict(beside))


def test_an_interrupt_ends_the_run_also_while_outcomes_are_looked_at() -> None:
    calls = []

    def interrupted(person: Any) -> bool:
        calls.append(person)
        if len(calls) == 50:
            raise KeyboardInterrupt
        return decide(person)

    audit = themis.Audit(interrupted, SCHEMA)
    audit.sampler.keep_on_interrupt = True
    result = audit.apparent(people(18), "sex", label="repaid")
    assert result.stopped is Ending.INTERRUPTED
    assert len(calls) == 50


def test_a_budget_that_ends_leaves_the_rates_of_those_who_were_run() -> None:
    result = themis.Audit(decide, SCHEMA, max_executions=100, deterministic=True).apparent(
        people(19), "sex", label="repaid", only_data=True
    )
    (table,) = result.outcomes
    assert result.stopped is Ending.BUDGET
    assert table.undecided > 0
    assert sum(group.selection_rate.of for group in table.groups) == 400 - table.undecided


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_outcomes_and_proxies_become_frames(library: Any) -> None:
    result = measured(people(17), proxies=True)
    frame = themis.to_frame(result.outcomes, library)
    assert frame.shape[0] == 2 + 3 + 6
    first = result.outcomes[0].groups[0]
    assert (frame["group"][0], frame["accuracy_high"][0]) == ("f", first.accuracy.high)
    tried = themis.to_frame(result.proxies, library)
    assert tried.shape[0] == sum(len(each.settings) for each in result.proxies) == 2 * 10
    assert tried["difference"][0] == pytest.approx(result.proxies[0].settings[0].difference)


@pytest.mark.slow
def test_all_intervals_hold_together_if_rows_are_a_random_sample() -> None:
    """Drawn again and again from a population whose rates are known."""
    confidence, sets = 0.8, [["sex"], ["race"]]
    whole = people(13, 200_000)
    truth = {each.against: each for each in measured(whole).outcomes}
    held, runs = 0, 200
    for seed in range(runs):
        drawn = whole.sample(250, replace=True, random_state=seed)
        audit = themis.Audit(decide, SCHEMA, confidence=confidence)
        found = audit.apparent(drawn, sets, label="repaid", measures=["group"], only_data=True)
        held += all(holds(each, truth[each.against]) for each in found.outcomes)
    assert held >= confidence * runs - 3 * np.sqrt(runs * confidence * (1 - confidence))


def holds(found: Outcomes, truth: Outcomes) -> bool:
    known = {tuple(each.values.values()): each for each in truth.groups}
    for group in found.groups:
        true = dict(known[tuple(group.values.values())].rates())
        for name, rate in group.rates():
            if rate.rate is not None and not rate.low <= true[name].rate <= rate.high:
                return False
    if any(rate.rate is None for group in found.groups for _, rate in group.rates()):
        return True  # differences are then of fewer groups
    true_gaps = {gap.name: gap for gap in truth.gaps}
    return all(
        gap.low <= true_gaps[gap.name].difference <= gap.high
        and gap.ratio_low <= true_gaps[gap.name].ratio <= gap.ratio_high
        for gap in found.gaps
        if gap.ratio is not None
    )


# Errors of numbers by group: equal to scikit-learn's through Fairlearn ------------------------


INSURED = themis.Schema(
    sex=themis.Values(["female", "male"], protected=True),
    region=["north", "south"],
    income=themis.Reals(0.0, 100.0, step=0.5),
)


def premium(table: Any) -> Any:
    return 20 + 3 * np.asarray(table["income"]) + 15 * (np.asarray(table["sex"]) == "male")


def insured(count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    sex = rng.choice(["female", "male"], count)
    region = rng.choice(["north", "south"], count, p=[0.9, 0.1])
    income = np.round(rng.uniform(0, 100, count), 2)
    rows = pd.DataFrame({"sex": sex, "region": region, "income": income})
    rows = pd.concat([rows, rows.iloc[:50]], ignore_index=True)  # some people are twice there
    cost = 10 + 3.3 * rows["income"] + rng.normal(0, 20, len(rows))
    return rows.assign(cost=cost.where(rng.random(len(rows)) > 0.05))


def priced(rows: Any, against: Any = (["sex"], ["region"]), **options: Any) -> themis.Result:
    output = themis.Output(name="premium", min=0, max=500, distance="relational")
    audit = themis.Audit(themis.batch(premium), INSURED, outputs=output)
    return audit.apparent(rows, against, label="cost", only_data=True, **options)


def test_errors_and_calibration_are_those_of_scikit_learn_by_group() -> None:
    rows = insured()
    result = priced(rows)
    known = rows.dropna(subset="cost").rename(columns={"cost": "known"})
    known["output"] = premium(known)
    tenth = (10 * (known["output"].rank() - 0.5) / len(known)).astype(int)
    metrics = {
        "mean_error": lambda truth, output: float(np.mean(output - truth)),
        "mean_absolute_error": mean_absolute_error,
    }
    assert [each.against for each in result.errors] == [("sex",), ("region",), ("sex", "region")]
    for table in result.errors:
        groups = known[list(table.against)]
        fair = MetricFrame(
            metrics=metrics,
            y_true=known["known"],
            y_pred=known["output"],
            sensitive_features=groups,
        )
        for group in table.groups:
            own = fair.by_group.loc[place_of(group, table.against)]
            assert group.mean_error == pytest.approx(own["mean_error"])
            assert group.mean_absolute_error == pytest.approx(own["mean_absolute_error"])
            inside = (groups == [group.values[name] for name in table.against]).all(axis=1)
            means = known[inside].groupby(tenth)[["known", "output"]].mean()
            for number, each in enumerate(group.tenths):
                if number in means.index:
                    expected = tuple(means.loc[number])
                    assert (each.known, each.output) == pytest.approx(expected)
                else:
                    assert (each.known, each.output) == (None, None)
        assert table.metrics == pytest.approx(
            {f"{name}_difference": value for name, value in fair.difference().items()}
        )


def test_weights_count_rows_that_often() -> None:
    rows = insured(60).assign(times=lambda table: np.arange(len(table)) % 3)
    (weighed,) = priced(rows, ["sex"], weights="times").errors
    (repeated,) = priced(rows.loc[rows.index.repeat(rows["times"])], ["sex"]).errors
    for one, other in zip(weighed.groups, repeated.groups, strict=True):
        assert one.mean_error == pytest.approx(other.mean_error)
        assert one.mean_absolute_error == pytest.approx(other.mean_absolute_error)


def test_errors_are_saved_and_shown_and_those_of_few_people_are_not() -> None:
    rows = insured()
    result = priced(rows.assign(region=np.where(rows.index < 3, "south", "north")))
    again = saved(result)
    assert again.to_dict()["errors"] == result.to_dict()["errors"]
    (region,) = (each for each in withheld(again).errors if each.against == ("region",))
    assert [each.people for each in region.groups if each.mean_error is None] == [3]
    for text in (render_markdown(again), render_page(again)):
        assert "Known numbers" in text
        assert "mean absolute error" in text.lower()
