"""Known outcomes and numbers: rates and errors by group equal Fairlearn's and a plain count."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from scipy import stats
from sklearn.metrics import mean_absolute_error

import themis
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
NAMES = ("selection_rate", "true_positive_rate", "false_positive_rate", "precision", "accuracy")


def decide(person: Any) -> bool:
    return bool(person["income"] > (20 if person["sex"] == "m" else 25))


def people(seed: int, count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], count),
            "race": rng.choice(["a", "b", "c"], count, p=[0.6, 0.3, 0.1]),
            "income": rng.integers(0, 50, count),
        }
    )
    worth = frame["income"] + rng.normal(0, 10, count) + 5 * (frame["sex"] == "m")
    frame["repaid"] = worth > 25
    return frame


def measured(rows: Any, **options: Any) -> themis.Result:
    options = {"against": [["sex"], ["race"]], "label": "repaid", "only_data": True, **options}
    return themis.Audit(options.pop("decide", decide), SCHEMA, max_failures=1.0).apparent(
        rows, options.pop("against"), **options
    )


def test_rates_differences_and_ratios_are_those_of_fairlearn() -> None:
    fairlearn = pytest.importorskip("fairlearn.metrics")
    from sklearn.metrics import accuracy_score, precision_score

    frame = people(1)
    guessed = [decide(person) for person in frame.to_dict("records")]
    metrics = {name: getattr(fairlearn, name) for name in NAMES[:3]}
    metrics |= {"precision": precision_score, "accuracy": accuracy_score}
    found = measured(frame).outcomes
    assert [each.against for each in found] == [("sex",), ("race",), ("sex", "race")]
    for table in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = fairlearn.MetricFrame(
                metrics=metrics,
                y_true=frame["repaid"],
                y_pred=guessed,
                sensitive_features=frame[list(table.against)],
            )
            for name, mine in table.metrics.items():
                kind = name.rpartition("_")[2]
                rate = name.removesuffix(f"_{kind}")
                if rate in ("precision", "accuracy"):
                    expected = getattr(theirs, kind)()[rate]
                else:
                    call = getattr(fairlearn, name)
                    groups = frame[list(table.against)]
                    expected = call(frame["repaid"], guessed, sensitive_features=groups)
                assert mine == pytest.approx(expected), name
        assert len(table.groups) == len(theirs.by_group)
        for group in table.groups:
            key = tuple(group.values.values())
            own = theirs.by_group.loc[key[0] if len(key) == 1 else key]
            assert {name: rate.rate for name, rate in group.rates()} == pytest.approx(dict(own))


def test_weights_missing_outcomes_and_failures_count_as_a_plain_count_has_them() -> None:
    frame = people(3)
    frame["weight"] = np.random.default_rng(3).choice([1, 2, 5], len(frame))
    frame["repaid"] = ["" if place % 7 == 0 else str(v) for place, v in enumerate(frame["repaid"])]

    def fails(person: Any) -> bool:
        if person["income"] % 11 == 5:
            raise ValueError("no")
        return decide(person)

    result = measured(frame, decide=fails, weights="weight", against="sex")
    (table,) = result.outcomes
    for group in table.groups:
        own = frame[frame["sex"] == group.values["sex"]]
        expected = plain_rates(list(own.itertuples()))
        assert {name: (rate.count, rate.of) for name, rate in group.rates()} == expected
        assert all(rate.rate == rate.count / rate.of for _, rate in group.rates())
        assert group.people == own["weight"].sum()
    assert table.unlabelled == frame.loc[frame["repaid"] == "", "weight"].sum() > 0
    assert table.undecided == frame.loc[frame["income"] % 11 == 5, "weight"].sum() > 0


def plain_rates(rows: list[Any]) -> dict[str, tuple[int, int]]:
    """How many, and of how many, row by row."""
    decided = [(r.weight, decide(r._asdict()), r.repaid) for r in rows if r.income % 11 != 5]
    known = [(w, yes, outcome == "True") for w, yes, outcome in decided if outcome]

    def total(some: Iterator[int]) -> int:
        return sum(some)

    right = total(w for w, yes, good in known if yes and good)
    return {
        "selection_rate": (total(w for w, yes, _ in decided if yes), total(w for w, *_ in decided)),
        "true_positive_rate": (right, total(w for w, _, good in known if good)),
        "false_positive_rate": (
            total(w for w, yes, good in known if yes and not good),
            total(w for w, _, good in known if not good),
        ),
        "precision": (right, total(w for w, yes, _ in known if yes)),
        "accuracy": (
            total(w for w, yes, good in known if yes == good),
            total(w for w, *_ in known),
        ),
    }


def test_fractional_weights_leave_no_interval() -> None:
    frame = people(4)
    weights = [0.5 + place % 3 for place in range(len(frame))]
    (table,) = measured(frame, weights=weights, against="sex").outcomes
    assert table.confidence is None
    chosen = np.array([decide(person) for person in frame.to_dict("records")])
    for group in table.groups:
        inside = (frame["sex"] == group.values["sex"]).to_numpy()
        expected = np.average(chosen[inside], weights=np.array(weights)[inside])
        assert group.selection_rate.rate == pytest.approx(expected)
        assert group.selection_rate.low is None
    assert all(gap.difference is not None and gap.low is None for gap in table.gaps)
    assert "No intervals" in render_markdown(measured(frame, weights=weights, against="sex"))


def row(sex: str, income: int, repaid: Any, times: int = 1) -> list[dict[str, Any]]:
    return [{"sex": sex, "race": "a", "income": income, "repaid": repaid}] * times


def test_a_rate_of_nobody_is_none_with_a_reason_and_never_zero() -> None:
    rows = [*row("f", 40, True, 5), *row("m", 40, True, 3), *row("m", 10, False, 4)]
    result = measured(rows, against="sex")
    (table,) = result.outcomes
    women, _ = table.groups
    assert women.false_positive_rate == Rate(None, 0, 0)
    gaps = {gap.name: gap for gap in table.gaps}
    assert gaps["false_positive_rate"].difference is None
    assert gaps["false_positive_rate"].why == "one-group"
    assert gaps["equalized_odds"].difference is None
    assert gaps["equal_opportunity"].difference == 0
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
    frame = people(14)
    found = measured(frame).outcomes
    alpha = 0.01 / (5 * (2 + 3 + 6))
    for table in found:
        for group in table.groups:
            for _, rate in group.rates():
                x, n = rate.count, rate.of
                low = stats.beta.ppf(alpha / 2, x, n - x + 1) if x else 0.0
                high = stats.beta.ppf(1 - alpha / 2, x + 1, n - x) if x < n else 1.0
                assert (rate.low, rate.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("outcomes", "declared", "most"),
    [
        (("yes", "no"), {}, 50),  # after the first people
        (("yes", "denied"), {}, 400),  # one of them is an output: the other may come
        (
            ("yes", "denied"),
            {"labels": {"approved": ["approved"], "denied": ["denied"]}},
            0,
        ),  # known before
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
    frame = people(10)
    outputs = [
        themis.Output(name="loan", at="/loan", favourable=[1]),
        themis.Output(name="card", at="/card", favourable=[1]),
    ]

    def subject(person: Any) -> dict[str, int]:
        return {"loan": int(decide(person)), "card": int(person["sex"] == "m")}

    audit = themis.Audit(subject, SCHEMA, outputs=outputs)
    asked: dict[str, Any] = {"label": "repaid", "only_data": True, "proxies": True}
    first = audit.apparent(frame, "sex", **asked)
    second = audit.apparent(frame, "sex", output="card", **asked)
    assert {each.output for each in (*first.outcomes, *first.proxies)} == {"loan"}
    assert {each.output for each in (*second.outcomes, *second.proxies)} == {"card"}
    assert second.outcomes[0].metrics["demographic_parity_difference"] == 1.0
    assert first.outcomes[0].metrics["demographic_parity_difference"] < 1.0
    for result, name in ((first, "loan"), (second, "card")):
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
    confidence = 0.8
    whole = people(13, 200_000)
    truth = {each.against: each for each in measured(whole).outcomes}
    held, runs = 0, 200
    for seed in range(runs):
        drawn = whole.sample(250, replace=True, random_state=seed)
        audit = themis.Audit(decide, SCHEMA, confidence=confidence)
        found = audit.apparent(
            drawn, [["sex"], ["race"]], label="repaid", measures=["group"], only_data=True
        )
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
    rows = pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], count),
            "region": rng.choice(["north", "south"], count, p=[0.9, 0.1]),
            "income": np.round(rng.uniform(0, 100, count), 2),
        }
    )
    rows = pd.concat([rows, rows.iloc[:50]], ignore_index=True)  # some people are twice there
    cost = 10 + 3.3 * rows["income"] + rng.normal(0, 20, len(rows))
    return rows.assign(cost=cost.where(rng.random(len(rows)) > 0.05))


def priced(rows: Any, **options: Any) -> themis.Result:
    output = themis.Output(name="premium", min=0, max=500, distance="relational")
    audit = themis.Audit(themis.batch(premium), INSURED, outputs=output, **options)
    return audit.apparent(rows, against=[["sex"], ["region"]], label="cost", only_data=True)


def signed(known: Any, output: Any) -> float:
    return float(np.mean(output - known))


def test_errors_and_calibration_are_those_of_scikit_learn_by_group() -> None:
    rows = insured()
    result = priced(rows)
    known = rows.dropna(subset="cost")
    output = premium(known)
    tenth = (10 * (pd.Series(output).rank().to_numpy() - 0.5) / len(output)).astype(int)
    for table in result.errors:
        groups = known[list(table.against)]
        metrics = {"mean_error": signed, "mean_absolute_error": mean_absolute_error}
        fair = MetricFrame(
            metrics=metrics, y_true=known["cost"], y_pred=output, sensitive_features=groups
        )
        by_tenth = {
            name: MetricFrame(
                metrics=lambda truth, given, of=name: np.mean(truth if of == "known" else given),
                y_true=known["cost"],
                y_pred=output,
                sensitive_features=groups.assign(tenth=tenth),
            ).by_group
            for name in ("known", "output")
        }
        for group in table.groups:
            place = tuple(group.values[name] for name in table.against)
            own = fair.by_group.loc[place if len(place) > 1 else place[0]]
            assert group.mean_error == pytest.approx(own["mean_error"])
            assert group.mean_absolute_error == pytest.approx(own["mean_absolute_error"])
            for number, each in enumerate(group.tenths):
                for name, cells in by_tenth.items():
                    expected = cells.get((*place, number))
                    shown = getattr(each, name)
                    assert (shown is None) == (expected is None or np.isnan(expected))
                    assert shown is None or shown == pytest.approx(expected)
        assert table.metrics == pytest.approx(
            {f"{name}_difference": value for name, value in fair.difference().items()}
        )
    assert [each.against for each in result.errors] == [("sex",), ("region",), ("sex", "region")]


def test_weights_count_rows_that_often() -> None:
    rows = insured(60).assign(times=lambda table: np.arange(len(table)) % 3)
    output = themis.Output(name="premium", min=0, max=500, distance="relational")
    audit = themis.Audit(themis.batch(premium), INSURED, outputs=output)
    asked: dict[str, Any] = {"against": ["sex"], "label": "cost", "only_data": True}
    (weighed,) = audit.apparent(rows, weights="times", **asked).errors
    often = rows.loc[rows.index.repeat(rows["times"])]
    (repeated,) = audit.apparent(often, **asked).errors
    for one, other in zip(weighed.groups, repeated.groups, strict=True):
        assert one.mean_error == pytest.approx(other.mean_error)
        assert one.mean_absolute_error == pytest.approx(other.mean_absolute_error)


def test_errors_are_saved_and_shown_and_those_of_few_people_are_not(tmp_path: Path) -> None:
    rows = insured()
    lonely = rows.assign(region=np.where(rows.index < 3, "south", "north"))
    result = priced(lonely)
    (tmp_path / "result.json").write_text(json.dumps(result.to_dict()), "utf-8")
    again = themis.read_result(tmp_path / "result.json")
    assert again.to_dict()["errors"] == result.to_dict()["errors"]
    (region,) = (each for each in withheld(again).errors if each.against == ("region",))
    assert [each.people for each in region.groups if each.mean_error is None] == [3]
    for text in (render_markdown(again), render_page(again)):
        assert "Known numbers" in text
        assert "mean absolute error" in text.lower()


def test_numbers_beside_decisions_are_no_outcomes() -> None:
    audit = themis.Audit(lambda person: person["income"] > 50, INSURED)
    with pytest.raises(themis.RequestError, match=r"'cost' has .* different values, more than 100"):
        audit.apparent(insured(), against=["sex"], label="cost", only_data=True)
