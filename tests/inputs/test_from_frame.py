"""Schemas from what Python has: tables, arrays, columns and categoricals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import themis
from themis import Integers, Schema
from themis.inputs.characteristics import Values


def people() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    return {
        "name": [f"Ada {index}" for index in range(200)],
        "sex": rng.choice(["f", "m"], 200, p=[0.2, 0.8]).tolist(),
        "age": rng.integers(18, 70, 200).tolist(),
        "debts": [None if index % 10 == 0 else index % 4 for index in range(200)],
        "good": (np.arange(200) % 2).tolist(),
    }


def records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize(
    "kind",
    [pd.DataFrame, pl.DataFrame, dict, records, pa.table],
    ids=["pandas", "polars", "dict", "records", "arrow"],
)
def test_a_table_becomes_a_schema_of_what_is_in_it(kind: Any) -> None:
    with pytest.warns(themis.ColumnsWarning, match="left out: name: its name says"):
        schema = Schema.from_frame(kind(people()), protected=["sex"], target="good")
    sex, age, debts = schema.characteristics
    assert ("age" in schema, "name" in schema, len(schema), schema["age"]) == (True, False, 3, age)
    assert isinstance(sex, Values)
    assert sex.values == ("f", "m")
    assert sex.weights == pytest.approx((0.2, 0.8), abs=0.08)
    assert schema.protected == ("sex",)
    assert isinstance(age, Integers)
    assert (age.min, age.max) == (18, 69)
    assert isinstance(debts, Values)
    assert (debts.values, debts.missing) == ((0, 1, 2, 3), 0.1)
    rows = kind(people())
    facts = themis.Audit(lambda person: person["age"] > 40, schema, profile=rows).apparatus.facts
    assert facts is not None
    assert (facts["used"], facts["dropped"]) == (200, 0)


MISTAKES: list[tuple[Any, str]] = [
    (
        lambda: Schema.from_frame(people(), protected=["sx"]),
        "there is no 'sx'; did you mean 'sex'",
    ),
    (lambda: Schema.from_frame(people(), target="god"), "there is no 'god'; did you mean 'good'"),
    (lambda: Schema({"é": [1, 2], "e\u0301": [1, 2]}), r"'é' \(in Unicode forms .* appears twice"),
    (
        lambda: Schema.from_frame({"é": [1, 2], "sex": ["f", "m"]}, protected=["e\u0301"]),
        r"did you mean 'é'\? It looks alike in another",
    ),
    (lambda: Schema(age=[1])["agee"], "no characteristic 'agee'; did you mean 'age'"),
    (lambda: Schema(x=COLUMN), "the value 'b' appears twice"),
]


@pytest.mark.parametrize(("make", "said"), MISTAKES)
def test_names_that_are_not_there_or_there_twice_are_told(make: Any, said: str) -> None:
    with pytest.raises(themis.ThemisError, match=said):
        make()


COLUMN = pd.Series(["b", "a", "b", "c"])


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (np.array(["a", "b"]), ("a", "b")),
        (np.array([True, False]), (True, False)),
        (COLUMN.unique(), ("b", "a", "c")),
        (COLUMN.astype("category"), ("a", "b", "c")),
        (COLUMN.astype("category").cat.categories, ("a", "b", "c")),
        (pd.Series([3, 1, 2]), (3, 1, 2)),
    ],
)
def test_values_may_come_in_arrays_columns_and_categoricals(
    given: Any, values: tuple[Any, ...]
) -> None:
    (each,) = Schema(x=given).characteristics
    assert isinstance(each, Values)
    assert each.values == values
    assert [type(value) for value in each.values] == [type(value) for value in values]


def test_a_schema_and_an_audit_show_themselves() -> None:
    schema = Schema(
        {
            "a<b": themis.Values(["a", "b"], protected=True),
            "age": Integers(18, 60, bins=[40]),
            "many": [f"v{number}" for number in range(1_000)],
        }
    ).where("age > 20")
    html = schema._repr_html_()
    assert "<td>a&lt;b</td><td>{&#x27;values&#x27;: [&#x27;a&#x27;, &#x27;b&#x27;]," in html
    assert "v999" not in html
    assert "age &gt; 20" in html
    shown = themis.Audit(lambda person: 1, schema)._repr_html_()
    assert html in shown
    assert "Test inputs are generated" in shown
    rows = [{"a<b": "a", "age": 30, "many": "v7"}] * 3
    shown = themis.Audit(lambda person: 1, schema, profile=rows)._repr_html_()
    assert "drawn from 3 rows of the table" in shown


@pytest.mark.parametrize(
    ("own", "listed"),
    [
        (["jane@example.com"], False),
        (["jane@example.com"] * 9, False),
        (["ask jane@example.com"] * 20, False),
        (["+44 20 7946 0958"], False),
        (["100000 - 200000"] * 5, True),  # many have it
        (["2020-01-31"], True),
        (["x"], True),
    ],
)
def test_a_value_that_reaches_a_person_is_not_listed(own: list[str], listed: bool) -> None:
    table = {"job": ["cook", "clerk"] * 20 + own, "sex": [*"fm" * 20, *"f" * len(own)]}
    job, _ = Schema.from_frame(table, protected=["sex"]).characteristics
    assert isinstance(job, Values)
    assert set(job.values) == {"cook", "clerk", *(own if listed else ())}


def test_a_list_of_names_is_one_set() -> None:
    schema = Schema(sex=["f", "m"], age=range(18, 60), city=["A", "B"])
    audit = themis.Audit(lambda p: p["sex"] == "f" and p["age"] > 30, schema)
    for measure in (audit.causal, audit.group):
        both = measure(["sex", "age"])
        assert both.against == ("sex", "age")
        assert both.score == measure("sex", "age").score == measure("sex,age").score


class Premium:
    """A model that knows what it reads, and has nothing but probabilities."""

    feature_names_in_ = np.array(["age", "debts"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        bad = np.clip(frame["debts"].fillna(9) / 10, 0, 1)
        return np.stack([bad, 1 - bad], axis=1)


def test_of_a_model_what_it_reads_and_what_is_protected_becomes_a_schema() -> None:
    frame = pd.DataFrame(people())
    schema = Schema.from_frame(frame, protected=["sex"], target="good", model=Premium())
    assert {each.name: each.role for each in schema} == {
        "sex": "group", "age": "input", "debts": "input",
    }  # fmt: skip
    asked = themis.model(Premium(), cut=0.85)
    assert Schema.from_frame(frame, protected="sex", model=asked) == schema
    audit = themis.Audit(asked, schema, profile=frame)
    shares = {
        each.values["sex"]: each.rate
        for each in audit.apparent(frame, against=["sex"], measures=["group"], only_data=True)
        .scores[0]
        .groups
    }
    granted = frame.assign(granted=Premium().predict_proba(frame)[:, 1] >= 0.85)
    assert shares == pytest.approx(granted.groupby("sex")["granted"].mean().to_dict())
    with pytest.raises(themis.RequestError, match="no column 'age', which the model reads"):
        Schema.from_frame(frame.drop(columns="age"), model=Premium())
