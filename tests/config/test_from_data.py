"""Does `themis init --from` write a file that describes the rows, and say what it guessed?"""

from __future__ import annotations

import csv
import json
import math
import random
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.projects import enter, run
from themis.config.from_json_schema import draft_from_json_schema
from themis.config.from_rows import draft_from_data
from themis.config.reader import read_config
from themis.errors import RequestError
from themis.inputs.characteristics import Integers, Reals
from themis.inputs.schema import Schema
from themis.inputs.tables import read_table


def write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def guessed(path: Path, folder: Path, **options: Any) -> Schema:
    """The schema of the file that is written, which must be valid."""
    draft = draft_from_data(read_table(path), source=path.name, **options)
    config = folder / "themis.toml"
    config.write_text(draft.text(), encoding="utf-8")
    return read_config(config).schema


def of(name: str, values: list[Any], folder: Path, **options: Any) -> Any:
    """The characteristic that one column becomes."""
    columns = {name: values, "other": [index % 3 for index in range(len(values))]}
    schema = guessed(write_csv(folder / "rows.csv", columns), folder, **options)
    return next((each for each in schema if each.name == name), None)


def text_of(path: Path, **options: Any) -> str:
    return draft_from_data(read_table(path), source=path.name, **options).text()


# --- single columns -------------------------------------------------------------------------
RNG = random.Random(0)
GAINS = [0] * 184 + [index * 1_000 for index in range(1, 17)]
ORIGINS = [f"origin {index}" for index in range(60) for _ in range(1 + (index < 50))]
AGES = [20] * 25 + list(range(21, 46)) + list(range(50, 100))
CUBES = [7 * index**3 % 4_000_037 for index in range(300)]
EVENLY = "too many values for weights: without a profile, drawn evenly"
PEOPLE = [f"person {index}" for index in range(30)]
COLUMNS_AND_GUESSES: list[tuple[list[Any], Any, str]] = [  # values, guess, what is said
    (
        ["white"] * 6 + ["black"] * 3 + ["asian"],
        {"values": ["asian", "black", "white"], "weights": [0.1, 0.3, 0.6]},
        "",
    ),
    (["100+", "9 to 20", "21 to 99", "0 to 8"] * 5, ["0 to 8", "9 to 20", "21 to 99", "100+"], ""),
    (["True", "FALSE", "true"], {"values": [False, True], "weights": [0.333, 0.667]}, ""),
    ([1000 + 250 * n for n in range(40)], {"min": 1000, "step": 250, "bins": None}, "250 or a mul"),
    (
        [0] * 184 + [n * 1_000 for n in range(1, 9)] * 2,
        {"values": [n * 1_000 for n in range(9)]},
        "",
    ),
    (GAINS, {"bins": [1_000], "weights": [0.92, 0.08]}, "bins of about as many rows each"),
    ([*range(0, 400, 4)] * 2, {"min": 0, "max": 400, "step": 4, "bins": None}, ""),
    ([f"{0.05 * n:.2f}" for n in range(30)], {"min": 0.0, "max": 1.5, "step": 0.05}, ""),
    ([RNG.uniform(-3, 7) for _ in range(200)], {"min": -3.0, "max": 7.0, "step": 0.01}, "rounded"),
    (["007", "012", "007"], {"values": ["007", "012"]}, "numbers with leading zeros are"),
    (
        ["north", "NA", "", "south", "?"],
        {"values": ["north", "south"], "missing": 0.6},
        "3 rows have no value here ('NA', '?'); if the subject takes 'NA', '?' instead",
    ),
    (["yes", *[""] * 19], {"values": ["yes"], "missing": 0.95}, "if no value means something"),
    (CUBES, {"min": 0}, EVENLY),
    (["same"] * 30, None, "column: left out: it is the same in all rows"),
    (PEOPLE, None, "column: left out: it names the rows"),
    ([*range(7, 37)], None, "column: left out: it names the rows"),
    ([f"street {n % 60}" for n in range(300)], None, "left out: 60 different texts are too many"),
    ([""] * 30, None, "column: left out: it is empty"),
]


@pytest.mark.parametrize("case", range(len(COLUMNS_AND_GUESSES)))
def test_a_column_becomes_what_it_looks_like_and_what_is_guessed_is_said(
    case: int, tmp_path: Path
) -> None:
    values, expected, said = COLUMNS_AND_GUESSES[case]
    guess = of("column", values, tmp_path)
    spec = None if guess is None else Schema(column=guess).to_dict()["inputs"]["column"]
    found = {k: spec.get(k) for k in expected} if isinstance(expected, dict) else spec
    assert found == expected
    text = _unwrapped(tmp_path / "themis.toml")
    assert said in text
    assert (EVENLY in text) == (values is CUBES)


def _unwrapped(path: Path) -> str:
    return " ".join(path.read_text().replace("\n#", " ").split())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (AGES, {"bins": [21, 46, 75], "weights": [0.25] * 4}),  # of 1, 25, 29 and 25 values
        (ORIGINS, {"values": [f"origin {index}" for index in range(50)]}),
    ],
)
def test_a_protected_column_is_always_kept(
    values: list[Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    guess = of("column", values, tmp_path, protected=["column"])
    spec = Schema(column=guess).to_dict()["inputs"]["column"]
    assert {key: spec[key] for key in expected} == expected
    assert spec["protected"]
    if values is ORIGINS:
        told = "the 50 most frequent of 60 texts, 91% of the rows"
        assert told in _unwrapped(tmp_path / "themis.toml")


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([17, *range(20, 80), 83], (16, 84)),
        ([17] * 5 + [*range(20, 80)] + [83] * 4, (17, 84)),
        ([*range(1, 13), 98_765], (0, 100_000)),
        ([*range(-98_765, -98_700), *[0] * 5], (-100_000, 0)),
        ([*range(-70, -3)] * 2, (-70, -4)),
        ([3 + 7 * index for index in range(20)], (3, 143)),  # on the grid, and none below 0
        ([*range(3, 18)], (2, 18)),
        ([f"{100 + index / 8}" for index in range(99)], (100.0, 112.5)),
    ],
)
def test_ends_of_a_range_that_few_rows_have_are_rounded_outward(
    values: list[Any], ends: tuple[float, float], tmp_path: Path
) -> None:
    drafted = of("number", values, tmp_path)
    assert (drafted.min, drafted.max) == ends
    assert all((float(each) - drafted.min) % drafted.step == 0 for each in values)
    assert drafted.min <= min(map(float, values)) <= max(map(float, values)) <= drafted.max


@pytest.mark.parametrize("outlier", [47_000.17, 5_000_000.17])
def test_no_comment_has_a_number_of_one_row(tmp_path: Path, outlier: float) -> None:
    rng = random.Random(0)
    values = [round(rng.gauss(30_000, 3_000), 2) for _ in range(399)] + [outlier]
    of("salary", values, tmp_path)
    text = (tmp_path / "themis.toml").read_text()
    assert "in the rows" in text
    found = set(re.findall(r"\d+\.\d+", text.replace(",", "")))
    assert found.isdisjoint(map(str, values))


def test_names_that_toml_must_quote_are_quoted_and_others_left_out(tmp_path: Path) -> None:
    names = ["marital status", "größe", 'a "b"', "x.y", "-", "1"]
    columns = {name: ["p", "q"] for name in [*names, "", "a,b"]}
    schema = guessed(write_csv(tmp_path / "rows.csv", columns), tmp_path)
    assert list(schema.names) == names
    assert "# the column without a name: left out" in (tmp_path / "themis.toml").read_text()


# --- the target -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        (["0", "1"], (1,)),
        (["True", "False"], (True,)),
        (["denied", "approved"], ("approved",)),
        (["<=50K", ">50K"], (">50K",)),
        (["bad", "fine"], ("fine",)),
        (["2", "1"], (1,)),
    ],
)
def test_the_target_is_no_input_and_tells_what_is_favourable(
    decisions: list[str], expected: tuple[Any, ...], tmp_path: Path
) -> None:
    columns = {"race": ["a", "b"] * 5, "decided": decisions * 5}
    path = write_csv(tmp_path / "rows.csv", columns)
    (tmp_path / "themis.toml").write_text(text_of(path, target="decided"))
    config = read_config(tmp_path / "themis.toml")
    assert config.schema.names == ("race",)
    assert config.subject.favourable == expected
    assert "guessed from column 'decided'" in text_of(path, target="decided")


def test_what_is_no_decision_is_not_taken_for_one(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", {"race": ["a", "b"], "decided": ["blue", "red"]})
    assert "a mere guess" in text_of(path, target="decided")
    for values in ([index / 7 for index in range(100)], [index % 40 for index in range(100)]):
        path = write_csv(tmp_path / "rows.csv", {"race": ["a", "b"] * 50, "price": values})
        text = text_of(path, target="price")
        assert "\n[outputs]\nprice = { min = 0.0, max = " in text
        (tmp_path / "themis.toml").write_text(text)
        (output,) = read_config(tmp_path / "themis.toml").outputs
        assert output.scale is not None
        assert output.scale[1] >= 1.25 * max(values)
        assert output.statistics == ("mean",)
    path = write_csv(
        tmp_path / "rows.csv", {"race": ["a", "b"] * 50, "said": [f"t {n}" for n in range(100)]}
    )
    assert "these are measurements" in text_of(path, target="said").replace("\n# ", " ")


# --- whole files ----------------------------------------------------------------------------

COLUMNS: dict[str, list[Any]] = {
    "race": ["green", "purple", "green", "green"] * 10,
    "age": [18 + index for index in range(0, 40)][::-1],
    "rate": [0.5 * (index % 17) for index in range(40)],
    "employed": [index % 3 == 0 for index in range(40)],
    "city": [["north", "south", None][index % 3] for index in range(40)],
}


def test_nested_and_mixed_values_of_json_lines_are_said(tmp_path: Path) -> None:
    columns = {"tags": [["a"], ["b"]], "mixed": [1, "one"], "clash": [1, True], "ok": ["a", "b"]}
    columns |= {"code": ["1", "2"], "truth": ["true", "false"], "level": [1, 2]}
    path, rows = tmp_path / "a.jsonl", zip(*columns.values(), strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows))
    mixed, ok, code, truth, level = guessed(path, tmp_path)
    assert (mixed.name, ok.name) == ("mixed", "ok")
    assert code.values + truth.values + level.values == ("1", "2", "false", "true", 1, 2)
    text = (tmp_path / "themis.toml").read_text()
    assert "# tags: left out: its values are lists or objects" in text
    assert "# clash: left out: the value" in text


cell = st.one_of(
    st.sampled_from(["", "NA", "x", "true", "False", "0", "1", "-3", "007", "1e3", "1e400", "inf"]),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(-50, 50).map(str),
    st.floats(allow_nan=True).map(str),
    st.decimals(-100, 100, places=2).map(str),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=4),
)
column = st.one_of(
    st.lists(cell, min_size=30, max_size=30),
    st.lists(st.integers(-(2**63), 2**63).map(str), min_size=30, max_size=30),
    st.lists(st.floats(allow_nan=False, allow_infinity=False).map(str), min_size=30, max_size=30),
    st.lists(st.sampled_from(["a", "b", "c "]), min_size=30, max_size=30),
)
name = st.text(  # a tab or ; that is not in quotes may be taken for what separates the names
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0\t;"), max_size=6
).map(str.strip)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(name, column, min_size=1, max_size=4), st.booleans())
@example({"age": ["30", "40"] * 14 + ["30\x1f", "40"]}, False)  # blank to strip(), not to int()
def test_whatever_the_rows_the_file_is_valid_and_lists_hold_their_values(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[str]], protect: bool
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    columns["sound"] = ["a", "b"] * 15
    path = write_csv(folder / "rows.csv", columns)
    schema = guessed(path, folder, protected=list(columns) if protect else [])
    text = (folder / "themis.toml").read_text()
    for each in schema:
        assert each.name in columns
        if isinstance(each, Integers):
            texts = [value.strip() for value in columns[each.name]]
            present = {int(text) for text in texts if text.lstrip("+-").isdecimal()}
            assert all(each.encode(number) is not None for number in present)
        elif isinstance(each, Reals) and "rounded" not in text:
            for value in columns[each.name]:
                if value.strip() and value.lower() not in ("na", "nan", "?"):
                    assert each.encode(float(value.strip())) is not None, value
        assert each.weights is None or math.isclose(sum(each.weights), 1, abs_tol=0.05)
        assert each.weights is None or min(each.weights) > 0


# --- mistakes and the command ---------------------------------------------------------------


def test_unknown_names_are_all_reported_with_suggestions(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", COLUMNS)
    with pytest.raises(RequestError) as caught:
        text_of(path, protected=["racee", "race"], target="ages")
    problems = [str(mistake) for mistake in caught.value.mistakes]
    assert problems == [
        "--protected: there is no column 'racee'; did you mean 'race'?",
        "--target: there is no column 'ages'; did you mean 'age'?",
    ]


def test_the_command_writes_a_file_that_only_lacks_the_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_csv(tmp_path / "people.csv", COLUMNS)
    result = run("init", "--from", "people.csv", "--protected", "race,age", "--target", "employed")
    assert result.exit_code == 0, result.output
    assert "4 of 4 columns became characteristics" in result.output
    assert "there is no module 'subject'" in run("validate").output
    (tmp_path / "subject.py").write_text("def decide(person):\n    return person['race'] == 'x'\n")
    assert run("validate").exit_code == 0
    checked = run("check", "-q")
    assert checked.exit_code == 0, checked.output
    assert [each.against for each in read_config(tmp_path / "themis.toml").checks] == [
        ("race",),
        ("age",),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "nothing.csv"), "can't be read"),
        (("--protected", "race"), "there are no columns without --from"),
        (("--from", "words.txt"), "is not a file that can be converted"),
        (("--from", "api.yaml"), "describes no object"),
        (("--from", "broken.parquet"), "can't be read as Parquet"),
        (("--from", "broken.jsonl"), "broken.jsonl:2: is no JSON object"),
        (("--from", "settings.xml", "--target", "race"), "only rows of data"),
        (("--object", "net:Net"), "--object: there are no columns without --from"),
        (
            ("--from", "people.csv", "--object", "net:Net"),
            "--object: there is no file with weights",
        ),
    ],
)
def test_wrong_requests_are_mistakes(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    (tmp_path / "words.txt").write_text("hello")
    (tmp_path / "api.yaml").write_text("openapi: 3.0.0\n")
    (tmp_path / "broken.parquet").write_text("PAR1 no")
    (tmp_path / "broken.jsonl").write_text('{"a": 1}\n[2]\n')
    (tmp_path / "settings.xml").write_text("<settings/>")
    result = run("init", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output


# --- JSON Schema and OpenAPI ----------------------------------------------------------------

APPLICANT = {
    "type": "object",
    "required": ["race", "age"],
    "properties": {
        "race": {"enum": ["green", "purple"], "description": "as the applicant says"},
        "age": {"type": "integer", "minimum": 18, "exclusiveMaximum": 100},
        "income": {"type": "integer", "minimum": 0, "maximum": 100_050, "multipleOf": 100},
        "rate": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.05},
        "score": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 10},
        "employed": {"$ref": "#/$defs/flag"},
        "status": {"oneOf": [{"const": "single"}, {"const": "married"}, {"type": "null"}]},
        "name": {"type": "string"},
        "debts": {"type": "array", "items": {"type": "number"}},
        "height": {"type": "number", "minimum": 0},
        "kind": {"const": "person"},
        "loop": {"$ref": "#/$defs/loop"},
        "away": {"$ref": "https://example.org/schema.json"},
    },
    "$defs": {"flag": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}},
}


def schema_of(document: Any, folder: Path, **options: Any) -> Schema:
    draft = draft_from_json_schema(document, source="schema.json", **options)
    (folder / "themis.toml").write_text(draft.text())
    return read_config(folder / "themis.toml").schema


def test_a_json_schema_is_converted_as_it_says_and_the_rest_has_its_reason(tmp_path: Path) -> None:
    schema = schema_of(APPLICANT, tmp_path, protected=["race"])
    assert schema.to_dict()["inputs"] == {
        "race": {"values": ["green", "purple"], "protected": True},
        "age": {"min": 18, "max": 99},
        "income": {"min": 0, "max": 100_000, "step": 100},
        "rate": {"min": 0.0, "max": 1.0, "step": 0.05},
        "score": {"min": 0.01, "max": 10.0, "step": 0.01, "missing": 0.05},
        "employed": [False, True],
        "status": {"values": ["single", "married"], "missing": 0.05},
    }
    text = _unwrapped(tmp_path / "themis.toml")
    for line in (
        "race: as the applicant says",
        "score: any number between; the step is chosen here; null in 5% of the inputs",
        "name: left out: any text is possible",
        "debts: left out: its type is 'array'",
        "height: left out: it has no maximum",
        "kind: left out: it has one value only",
        "loop: left out: its references lead nowhere",
        "away: left out: it is described elsewhere: https://example.org/schema.json",
        "may be missing; here it never is",
    ):
        assert line in text


REF = {"$ref": "#/components/schemas/Loan"}
SUM = {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "nullable": True}
LOAN = {"allOf": [{"$ref": "#/components/schemas/Person"}, {"properties": {"sum": SUM}}]}
SCHEMAS = {"Person": {"properties": {"sex": {"type": "string", "enum": ["f", "m"]}}}, "Loan": LOAN}
POST = {"requestBody": {"content": {"application/json": {"schema": REF}}}}


def test_the_request_body_of_an_openapi_description_is_found(tmp_path: Path) -> None:
    document: dict[str, Any] = {"openapi": "3.0.0", "components": {"schemas": SCHEMAS}}
    document["paths"] = {"/decide": {"post": POST}}
    assert schema_of(document, tmp_path).to_dict()["inputs"] == {
        "sum": {"min": 1, "max": 9, "missing": 0.05},
        "sex": ["f", "m"],
    }
    person = schema_of(document, tmp_path, pointer="#/components/schemas/Person")
    assert person.names == ("sex",)
    other = {"content": {"application/json": {"schema": SCHEMAS["Person"]}}}
    document["paths"]["/other"] = {"put": {"requestBody": other}}
    with pytest.raises(RequestError, match="describes 2 objects: #/components/schemas/Loan, #/"):
        schema_of(document, tmp_path)
    del document["paths"]
    with pytest.raises(RequestError, match="describes no object; name one: --from FILE#/comp"):
        schema_of(document, tmp_path)


numbers = st.one_of(st.integers(-1000, 1000), st.decimals(-100, 100, places=2).map(float))


@settings(max_examples=60, deadline=None)
@given(
    low=numbers,
    width=st.integers(0, 500),
    multiple=st.none() | st.sampled_from([1, 2, 0.5, 0.05, 7]),
    kind=st.sampled_from(["integer", "number"]),
)
def test_converted_ranges_hold_only_numbers_that_the_schema_allows(
    low: float, width: int, multiple: float | None, kind: str
) -> None:
    spec = {"type": kind, "minimum": low, "maximum": low + width}
    if multiple is not None:
        spec["multipleOf"] = multiple
    document = {"properties": {"x": spec, "y": {"type": "boolean"}}}
    draft = draft_from_json_schema(document, source="x").drafts[0]
    if draft.left_out:
        return
    each = Schema.from_dict({"inputs": {"x": draft.spec}}).characteristics[0]
    for code in {0, each.size // 2, each.size - 1}:
        number = each.value(code)
        assert low - 1e-9 <= float(number) <= low + width + 1e-9
        assert kind == "number" or isinstance(number, int)
        if multiple is not None:
            assert math.isclose(math.remainder(float(number), multiple), 0, abs_tol=1e-9)


# --- suggestions ----------------------------------------------------------------------------

LOANS = {
    "Applicant_Sex": ["f", "m"] * 30,
    "age": [20 + index % 45 for index in range(60)],
    "account age": [index % 12 for index in range(60)],
    "mortgage": [index % 30 for index in range(60)],
    "loan_decision": ["granted", "denied", "denied"] * 20,
}


def test_protected_columns_and_the_target_are_guessed_by_name_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_csv(tmp_path / "rows.csv", LOANS)
    result = run("init", "--from", "rows.csv")
    assert "protected, a guess from the names: Applicant_Sex, age\n" in result.output
    assert "left out: loan_decision: taken for what is decided" in result.output
    text, config = _unwrapped(tmp_path / "themis.toml"), read_config(tmp_path / "themis.toml")
    assert config.schema.protected == ("Applicant_Sex", "age")
    assert config.schema.names == ("Applicant_Sex", "age", "account age", "mortgage")
    assert "Applicant_Sex: protected is a guess from its name" in text
    assert config.subject.favourable == ("granted",)


@pytest.mark.parametrize(
    ("column", "values", "options", "asked"),
    [
        ("hired", ["0", "1"], [], True),
        ("was Refused", ["yes", "no"], [], True),
        ("hired", ["0", "1", "2"], [], False),
        ("hired", ["0", "1"], ["--target", "hired"], False),
        ("employed", ["yes", "no"], [], False),
    ],
)
def test_a_binary_column_that_is_named_like_a_decision_is_asked_about(
    column: str,
    values: list[str],
    options: list[str],
    asked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enter(tmp_path, monkeypatch)
    write_csv(tmp_path / "rows.csv", {"sex": ["f", "m"] * 30, column: values * (60 // len(values))})
    said = run("init", "--from", "rows.csv", *options).output
    again = shlex.join(["--target", column, "--force"])
    assert (f"is {column} what is decided?" in said) == (again in said) == asked
    assert ("named like a decision" in (tmp_path / "themis.toml").read_text()) == asked
    if asked:
        assert run("init", "--from", "rows.csv", *shlex.split(again)).exit_code == 0
        assert read_config(tmp_path / "themis.toml").schema.names == ("sex",)


def test_a_draft_from_the_first_rows_says_so(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", {"sex": ["f", "m"] * 6, "age": list(range(12))})
    for most, said in ((8, "rows.csv: the first 8 rows, 2 columns"), (12, "rows.csv: 12 rows, 2")):
        assert said in draft_from_data(read_table(path, most=most), source="rows.csv").text()


def test_rows_become_the_profile_from_wherever_the_file_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    for folder in ("data", "audit"):
        (tmp_path / folder).mkdir()
    write_csv(tmp_path / "data" / "rows.csv", LOANS)
    run("init", "--from", "data/rows.csv", "-o", "audit/themis.toml")
    config = read_config(tmp_path / "audit" / "themis.toml")
    assert config.profile is not None
    assert config.profile.data == "../data/rows.csv"


@pytest.mark.parametrize("trained", [["sex", "income", "age"], ["age", "income", "sex"]])
def test_a_model_without_names_of_columns_is_held_against_known_outcomes(
    trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skops, linear = pytest.importorskip("skops.io"), pytest.importorskip("sklearn.linear_model")
    enter(tmp_path, monkeypatch)
    rng = np.random.default_rng(0)
    frame = {"sex": rng.integers(0, 2, 400), "income": rng.integers(0, 100, 400)}
    frame["age"] = rng.integers(18, 80, 400)
    target = (frame["age"] > 40 + 10 * frame["sex"]).astype(int)
    write_csv(tmp_path / "some.csv", {k: v.tolist() for k, v in {**frame, "class": target}.items()})
    inputs = np.stack([frame[name] for name in trained], axis=1)
    skops.dump(linear.LogisticRegression(max_iter=999).fit(inputs, target), "some.skops")
    said = " ".join(run("init", "--from", "some.csv", "--model", "some.skops").output.split())
    order, right = (
        "in the order of [inputs]: sex, income, age. For ",
        "of 400 rows of the table its",
    )
    assert f"{right} decision is their 'class'; always deciding" in said
    share = float(said.partition(order)[2].partition(" %")[0])
    assert (share > 90) == (trained[0] == "sex")
    assert "Make sure that it was trained in this order" in " ".join(run("validate").output.split())


def test_a_pickle_is_read_only_if_it_is_trusted(tmp_path: Path, monkeypatch: Any) -> None:
    enter(tmp_path, monkeypatch)
    write_csv(tmp_path / "rows.csv", LOANS)
    (tmp_path / "model.pkl").write_bytes(b"nonsense")
    result = run("init", "--from", "rows.csv", "--model", "model.pkl")
    assert result.exit_code == 2
    assert "--trust-pickle" in result.output
    assert not (tmp_path / "themis.toml").exists()
