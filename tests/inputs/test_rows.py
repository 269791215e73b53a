"""Rows of people: read from files and tables, encoded, and told about where they do not fit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from themis.inputs.encoding import encode_values
from themis.inputs.people import People, people_of
from themis.inputs.tables import read_table, rows_of

SCHEMA = themis.Schema(
    race=["green", "purple"],
    member=[True, False],
    grade=[1, 2, 3],
    age=themis.Integers(18, 90, step=2),
    rate=themis.Reals(0.0, 1.0, step=0.1),
).where(adult="age >= 20 or grade == 1")

RECORDS: list[dict[str, Any]] = [
    {"race": "green", "member": True, "grade": 1, "age": 18, "rate": 0.3},
    {"race": "purple", "member": False, "grade": 3, "age": 90, "rate": 1.0},
    {"race": "green", "member": True, "grade": 2, "age": 40, "rate": 0.7},
]


def values_of(people: People) -> list[dict[str, Any]]:
    return [people.schema.decode_row(row) for row in people.codes]


def every_kind(folder: Path) -> dict[str, Any]:
    """The same rows in every form that can be given."""
    frame = pd.DataFrame(RECORDS)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "rows.parquet")
    lines = "\n".join(json.dumps(each) for each in RECORDS)
    (folder / "rows.jsonl").write_text(f"{lines}\n\n", encoding="utf-8")
    (folder / "european.csv").write_text(
        "race;member;grade;age;rate\ngreen;true;1;18;0.3\npurple;false;3;90;1\ngreen;true;2;40;.7",
        encoding="utf-8-sig",
    )
    categories = frame.astype({"race": "category", "grade": "Int64"})
    return {
        **{each.name: each for each in sorted(folder.iterdir())},
        "pandas": frame,
        "categories": categories,
        "polars": pl.DataFrame(RECORDS),
        "lazy polars": pl.DataFrame(RECORDS).lazy(),
        "arrow": pa.Table.from_pylist(RECORDS),
        "records": RECORDS,
        "columns": {name: [each[name] for each in RECORDS] for name in RECORDS[0]},
        "arrays": {name: frame[name].to_numpy() for name in frame.columns},
    }


def test_every_form_of_table_gives_the_same_people(tmp_path: Path) -> None:
    for kind, rows in every_kind(tmp_path).items():
        assert values_of(people_of(rows_of(rows), SCHEMA)) == RECORDS, kind


def test_texts_of_a_csv_stay_as_they_are_written_but_for_the_names(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text('n, code ,"yes",text,gap\n 1,007,true,"a,b",\n1_0,010,False,c,3\n', "utf-8")
    assert {name: column.tolist() for name, column in read_table(file).columns.items()} == {
        "n": [" 1", "1_0"],
        "code": ["007", "010"],
        "yes": ["true", "False"],
        "text": ["a,b", "c"],
        "gap": [None, "3"],
    }


def test_types_of_json_lines_and_parquet_are_kept(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "whole": [1, 2**60 + 1, None],
        "real": [0.5, float("nan"), 2.0],
        "truth": [True, None, False],
        "text": ["", " 1", None],
        "list": [[1], [], None],
    }
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    only_parquet: dict[str, Any] = {
        "day": pa.array([date(2020, 2, 1), None, None]),
        "id": pa.array([Decimal(10**30), Decimal(1), None], pa.decimal128(38, 0)),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None]),
        "band": pa.DictionaryArray.from_arrays([2, None, 2], ["unused", "too", "high"]),
        "nothing": pa.nulls(3),
        "object": pa.array([{"on": date(2020, 2, 1)}, None, None]),
    }
    pq.write_table(pa.table(columns | only_parquet), tmp_path / "rows.pq", row_group_size=2)
    expected = {**columns, "real": [0.5, None, 2.0], "list": ["[1]", "[]", None]}
    for name in ("rows.jsonl", "rows.pq"):
        rows = read_table(tmp_path / name)
        found = {each: rows.columns[each].tolist() for each in columns}
        assert repr(found) == repr(expected), name
    assert {each: rows.columns[each].tolist() for each in only_parquet} == {
        "day": ["2020-02-01", None, None],
        "id": [10**30, 1, None],
        "price": [1.5, 2.0, None],
        "band": ["high", None, "high"],
        "nothing": [None, None, None],
        "object": ['{"on": "2020-02-01"}', None, None],
    }
    assert (rows.lines, rows.place(1)) == (None, 2)


def test_lines_are_those_of_the_file_whatever_a_row_takes(tmp_path: Path) -> None:
    table, objects = tmp_path / "rows.csv", tmp_path / "rows.jsonl"
    table.write_bytes(b'\xef\xbb\xbf\n  \na,b\r\n\n1,"two\r\nlines"\r\n,\n3,4\n \t\n5,6')
    objects.write_text('\n{"a": 1}\n \n{"b": 2}\n{}\n', "utf-8")
    rows = read_table(table)
    assert [rows.place(row) for row in range(len(rows))] == [5, 8, 10]
    assert rows.columns["b"].tolist() == ["two\r\nlines", "4", "6"]
    rows = read_table(objects)
    assert [rows.place(row) for row in range(len(rows))] == [2, 4, 5]
    columns = {name: column.tolist() for name, column in rows.columns.items()}
    assert columns == {"a": [1, None, None], "b": [None, 2, None]}
    table.write_text('a\n1\n\n""\n', "utf-8")  # an empty cell is a row, a blank line is not
    assert read_table(table).columns["a"].tolist() == ["1", None]


@pytest.mark.parametrize(
    ("name", "header", "names"),
    [
        ("a.csv", "a;b, c;d", ["a", "b, c", "d"]),
        ("a.csv", '"a;b;c",d', ["a;b;c", "d"]),
        ("a.csv", "a\tb, c", ["a", "b, c"]),
        ("a.csv", "a,b;c", ["a", "b;c"]),
        ("a.tsv", "a, b, c\td", ["a, b, c", "d"]),
        ("a.tsv", "income, yearly", ["income, yearly"]),
        ("a.csv", "a", ["a"]),
    ],
)
def test_the_separator_is_found_in_the_header(
    tmp_path: Path, name: str, header: str, names: list[str]
) -> None:
    separator = "\t" if "\t" in header else ";" if header.count(";") == len(names) - 1 > 1 else ","
    row = separator.join("x" * len(names))
    (tmp_path / name).write_text(f"{header}\n{row}\n", "utf-8")
    assert list(read_table(tmp_path / name).columns) == names


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rows.csv", "a,b\n1,2\n1,2,3\n", "rows.csv:3: has 3 cells, the header has 2; put"),
        ("rows.csv", "a,a\n1,2\n", "rows.csv:1: has the column 'a' twice"),
        ("rows.csv", "é,e\u0301\n1,2\n", "rows.csv:1: has the column 'é' (in Unicode forms that"),
        ("rows.jsonl", '{"é": 1}\n{"e\u0301": 1}', "has the column 'é' (in Unicode forms that"),
        ("rows.csv", "a,b\n", "rows.csv: holds no rows"),
        ("rows.csv", "\n\n", "rows.csv: has no header"),
        ("rows.csv", "a,b\n1\n", "rows.csv:2: has 1 of 2 cells; write"),
        ("rows.csv", 'a,b\n1,"2\n3,4\n', "rows.csv:2: is no CSV"),
        ("rows.csv", 'a,b\n1,"2"3\n', "rows.csv:2: is no CSV: ',' expected after '\"'"),
        ("rows.csv", "a\n1\n\udcff\n", "rows.csv:3: is not UTF-8 text; save it as UTF-8"),
        ("rows.jsonl", '{"a": 1}\n\n[1]\n', "rows.jsonl:3: is no JSON object; write"),
        ("rows.jsonl", '{"a": 1}\n{"a" 2}', "rows.jsonl:2: is no JSON object (Expecting ':'"),
        ("rows.jsonl", "\n", "rows.jsonl: holds no rows"),
        ("rows.jsonl", "\n{}\n\udcff", "rows.jsonl:3: is not UTF-8 text"),
        ("rows.parquet", "nonsense", "rows.parquet: can't be read as Parquet"),
        ("rows.xls", "nonsense", "rows.xls: is of no kind that can be read; name a file that"),
        # No mistake has a text of the row:
        ("rows.csv", "a,b\n1,2,Jane Doe\nJane Doe\n", "rows.csv:2: has 3 cells"),
        ("rows.csv", 'a,b\n1,"2" Jane Doe\n', "rows.csv:2: is no CSV"),
        (
            "rows.jsonl",
            '{"a": "Jane Doe"\n["Jane Doe"]\n{"Jane Doe" 1}\n{"a": Jane Doe}\n',
            "rows.jsonl:1: is no JSON object",
        ),
        ("rows.jsonl", '{"a": "Jane Doe", "b": ' + "7" * 5_000 + "}\n", "rows.jsonl:1: is no JSON"),
    ],
)
def test_a_file_that_cant_be_read_tells_where_and_why_and_no_text_of_the_row(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(themis.RequestError) as caught:
        read_table(tmp_path / name)
    assert said in str(caught.value)
    assert not re.search("Jane|Doe|777", str(caught.value))


@pytest.mark.parametrize("rows", [3, "no.csv", [1, 2], {"a": [1], "b": [1, 2]}, [], {}])
def test_what_is_no_table_is_a_mistake(rows: Any) -> None:
    with pytest.raises(themis.RequestError):
        rows_of(rows)


MISFITS = [
    ("race", "blue", "unknown value"),
    ("race", None, "missing value"),
    ("race", ["green"], "unknown value"),
    ("age", 16, "out of range"),
    ("age", 19, "off step"),
    ("age", "forty", "not a number"),
    ("age", "N/A", "missing value"),
    ("race", " ? ", "missing value"),
    ("rate", 0.25, "off step"),
    ("rate", -0.1, "out of range"),
]


@pytest.mark.parametrize(("name", "value", "reason"), MISFITS)
def test_a_row_that_does_not_fit_is_left_out_and_told(name: str, value: Any, reason: str) -> None:
    rows = rows_of([RECORDS[1], {**RECORDS[1], name: value}, RECORDS[2]])
    people = people_of(rows, SCHEMA, unknown="drop")
    assert values_of(people) == [RECORDS[1], RECORDS[2]]
    assert (people.facts["rows"], people.facts["used"], people.facts["dropped"]) == (3, 2, 1)
    (told,) = people.facts["reasons"]
    assert (told["where"], told["reason"], told["rows"]) == (name, reason, 1)
    assert told["examples"][0]["row"] == 2
    with pytest.raises(themis.RequestError, match=f"(?s)(row 2.*{reason}|{reason}.*row 2)"):
        people_of(rows, SCHEMA, unknown="error")


KEPT = [("race", "blue", "blue"), ("grade", "4", 4), ("age", "92.0", 92), ("rate", "0.25", 0.25)]


@pytest.mark.parametrize(("name", "value", "kept"), KEPT)
def test_a_value_that_the_schema_lacks_is_kept_for_its_row(
    name: str, value: Any, kept: Any
) -> None:
    rows = [RECORDS[1], {**RECORDS[1], name: value}, RECORDS[2]]
    people = people_of(rows_of(rows), SCHEMA)
    assert values_of(people) == [RECORDS[1], {**RECORDS[1], name: kept}, RECORDS[2]]
    assert type(people.schema.decode_row(people.codes[1])[name]) is type(kept)
    assert people.facts["dropped"] == 0
    between = {"between_steps": True} if name == "rate" else {}
    assert people.facts["kept"] == [{"name": name, "rows": 1, "values": [kept], **between}]
    assert people.schema.to_dict() == SCHEMA.to_dict()


OTHER = themis.Schema(race=themis.Values(["green", "purple", "blue"], weights=[1, 0, 3]))


@pytest.mark.parametrize(
    ("rows", "schema", "told"),
    [
        ([{**RECORDS[1], "age": 18}], SCHEMA, ["adult", "breaks the constraint", 1]),
        ([{"race": "purple"}], OTHER, ["race", "weight 0 in the schema", 1]),
        ([{"race": None}], OTHER, ["race", "missing value", 1]),
        ([{**RECORDS[1], "age": "forty"}], SCHEMA, ["age", "not a number", 1]),
        ([{**RECORDS[1], "member": "maybe"}], SCHEMA, ["member", "unknown value", 1]),
        ([{**RECORDS[1], "race": ""}] * 9, SCHEMA, ["race", "missing value", 9]),
    ],
)
def test_what_can_not_be_kept_is_left_out_and_told(
    rows: list[dict[str, Any]], schema: themis.Schema, told: list[Any]
) -> None:
    fitting = RECORDS[1] if schema is SCHEMA else {"race": "green"}
    facts = people_of(rows_of([fitting, *rows]), schema).facts
    (reason,) = json.loads(json.dumps(facts["reasons"]))
    assert [reason["where"], reason["reason"], reason["rows"]] == told
    assert [each["row"] for each in reason["examples"]] == list(range(2, min(len(rows), 5) + 2))
    assert told[0] != "adult" or reason["examples"][0]["value"] == {"age": 18, "grade": 3}
    assert (facts["dropped"], "kept" in facts) == (len(rows), False)


def test_copies_are_one_person_and_weights_add_up() -> None:
    rows = {**{n: [r[n] for r in RECORDS * 2] for n in RECORDS[0]}, "w": [1, 2, 3, 4, 5, 0]}
    people = people_of(rows_of(rows), SCHEMA, weights="w")
    assert people.weights.tolist() == [5, 7, 3]
    assert people.counts.tolist() == [2, 2, 1]
    assert people.facts["weightless"] == 1
    assert people.facts["weights"] == "w"


@pytest.mark.parametrize(
    ("rows", "weights", "said"),
    [
        ({"race": ["green"], "w": [1]}, "W", "did you mean 'w'"),
        ({"race": ["green"]}, "race", "is a characteristic"),
        ({"race": ["green", "green"]}, [1.0], "1 weight for 2 rows"),
        ({"race": ["green", "purple"], "w": [-1, "x"]}, "w", "weight that is no number of at le"),
        ({"Race": ["green"]}, None, "did you mean 'Race'?"),
    ],
)
def test_columns_and_weights_that_are_wrong_are_mistakes(
    rows: Any, weights: Any, said: str
) -> None:
    with pytest.raises(themis.RequestError, match=re.escape(said)):
        people_of(rows_of(rows), themis.Schema(race=["green", "purple"]), weights=weights)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from([0.01, 0.1, 1.0, 2.5]),
    st.lists(st.integers(-50_000, 150_000), min_size=1, max_size=30),
    st.booleans(),
    st.booleans(),
)
def test_numbers_off_the_grid_are_kept_as_they_are_written(
    step: float, cents: list[int], as_text: bool, whole: bool
) -> None:
    """By definition: a number as it is written, on its step or behind all others, in its bin."""
    limits: dict[str, Any] = {"min": 0.0, "max": 1_000.0, "step": step, "bins": [500.0]}
    spec: Any = themis.Reals(**limits)
    if whole:
        spec = themis.Integers(0, 1_000, step=max(int(step), 1), bins=[500])
    values = [f"{cent / 100:.2f}" if as_text else cent / 100 for cent in cents]
    people = people_of(rows_of({"x": values}), themis.Schema(x=spec))
    (own,) = people.schema.characteristics
    for row, code in zip(people.schema.decode_rows(people.codes), people.codes[:, 0], strict=True):
        number, exact = row["x"], Fraction(str(row["x"]))
        listed = 0 <= exact <= 1_000 and exact % Fraction(str(spec.step)) == 0
        assert (code < own.size) == listed
        within = 0 <= number <= 1_000
        assert own.level_of(np.array([code]))[0] == (int(number >= 500) if within else -1)
    assert sorted({row["x"] for row in people.schema.decode_rows(people.codes)}) == sorted(
        {cent / 100 for cent in cents}
    )


def test_numbers_beyond_the_precision_of_floats_are_not_mixed_up() -> None:
    big = 2**60
    spec = themis.Integers(big, big + 10, step=2, name="x")
    found = encode_values(spec, [big, big + 1, big + 2, str(big + 4)])
    assert found.codes[:-1].tolist() == [0, -1, 1, 2]
    assert found.misfits.keys() == {"off step", "missing value"}


NUMBERS = st.one_of(
    st.decimals(-30, 130, places=2).map(str),
    st.integers(-5, 130).map(str),
    st.floats(-1e3, 1e3).map(str),
    st.sampled_from(
        ["NA", "", " 7 ", "1_0", "007", "1e3", "-0", "-0.0", "inf", "nan", "x", "9" * 30]
    ),
    st.integers(-5, 130),
    st.floats(-1e3, 1e3),
    st.just(2**61 + 1),
)


@given(
    st.lists(NUMBERS, max_size=12, unique_by=str),
    st.sampled_from(
        [
            themis.Integers(0, 100, step=5, missing=0.1, name="x"),
            themis.Reals(0.0, 99.5, step=0.5, bins=[50.0], weights=[0, 1], name="x"),
            themis.Reals(-20.0, 120.0, step=0.01, missing=0.5, name="x"),
        ]
    ),
    st.booleans(),
)
def test_values_that_are_encoded_together_mean_what_each_means_alone(
    values: list[Any], each: Any, keep: bool
) -> None:
    together = encode_values(each, values, keep=keep)
    seen = replace(each, extra=together.extra)
    reasons = {place: reason for reason, places in together.misfits.items() for place in places}
    for place, value in enumerate(values):
        alone = encode_values(each, [value], keep=keep)
        found = [reason for reason, places in alone.misfits.items() if 0 in places]
        assert found == ([reasons[place]] if place in reasons else [])
        if place not in reasons:
            own = replace(each, extra=alone.extra).value(int(alone.codes[0]))
            shared = seen.value(int(together.codes[place]))
            assert (own, type(own)) == (shared, type(shared))
        if isinstance(value, int | float) and reasons.get(place) != "weight 0 in the schema":
            code = each.encode(value)
            is_listed = place not in reasons and together.codes[place] < each.first_extra
            assert together.codes[place] == code if is_listed else code is None
        assert each.encode(True) is None
