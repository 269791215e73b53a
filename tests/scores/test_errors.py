"""Errors of numbers by group: equal to scikit-learn's through Fairlearn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame
from sklearn.metrics import mean_absolute_error

import themis
from themis.results.withheld import withheld
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page

SCHEMA = themis.Schema(
    sex=themis.Values(["female", "male"], protected=True),
    region=["north", "south"],
    income=themis.Reals(0.0, 100.0, step=0.5),
)


def premium(table: Any) -> Any:
    return 20 + 3 * np.asarray(table["income"]) + 15 * (np.asarray(table["sex"]) == "male")


def frame(count: int = 400) -> pd.DataFrame:
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


def measured(rows: Any, **options: Any) -> themis.Result:
    output = themis.Output(name="premium", min=0, max=500, distance="relational")
    audit = themis.Audit(themis.batch(premium), SCHEMA, outputs=output, **options)
    return audit.apparent(rows, against=[["sex"], ["region"]], label="cost", only_data=True)


def signed(known: Any, output: Any) -> float:
    return float(np.mean(output - known))


def test_errors_and_calibration_are_those_of_scikit_learn_by_group() -> None:
    rows = frame()
    result = measured(rows)
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
    rows = frame(60).assign(times=lambda table: np.arange(len(table)) % 3)
    output = themis.Output(name="premium", min=0, max=500, distance="relational")
    audit = themis.Audit(themis.batch(premium), SCHEMA, outputs=output)
    asked: dict[str, Any] = {"against": ["sex"], "label": "cost", "only_data": True}
    (weighed,) = audit.apparent(rows, weights="times", **asked).errors
    often = rows.loc[rows.index.repeat(rows["times"])]
    (repeated,) = audit.apparent(often, **asked).errors
    for one, other in zip(weighed.groups, repeated.groups, strict=True):
        assert one.mean_error == pytest.approx(other.mean_error)
        assert one.mean_absolute_error == pytest.approx(other.mean_absolute_error)


def test_errors_are_saved_and_shown_and_those_of_few_people_are_not(tmp_path: Path) -> None:
    rows = frame()
    lonely = rows.assign(region=np.where(rows.index < 3, "south", "north"))
    result = measured(lonely)
    (tmp_path / "result.json").write_text(json.dumps(result.to_dict()), "utf-8")
    again = themis.read_result(tmp_path / "result.json")
    assert again.to_dict()["errors"] == result.to_dict()["errors"]
    (region,) = (each for each in withheld(again).errors if each.against == ("region",))
    assert [each.people for each in region.groups if each.mean_error is None] == [3]
    for text in (render_markdown(again), render_page(again)):
        assert "Known numbers" in text
        assert "mean absolute error" in text.lower()


def test_numbers_beside_decisions_are_no_outcomes() -> None:
    audit = themis.Audit(lambda person: person["income"] > 50, SCHEMA)
    with pytest.raises(themis.RequestError, match=r"'cost' has .* different values, more than 100"):
        audit.apparent(frame(), against=["sex"], label="cost", only_data=True)
