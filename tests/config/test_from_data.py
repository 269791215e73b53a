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

from tests.projects import run
from themis.config.from_json_schema import draft_from_json_schema
from themis.config.from_rows import draft_from_data
from themis.config.reader import Config, read_config
from themis.inputs.characteristics import Integers, Reals
from themis.inputs.schema import Schema
from themis.inputs.tables import read_table

ROWS, FILE = Path("rows.csv"), Path("themis.toml")


def write_csv(columns: dict[str, list[Any]], path: Path = ROWS) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])


def written(draft: Any) -> tuple[Config, str]:
    """The file of a draft, which must be valid, and its text without the ends of lines."""
    FILE.write_text(draft.text(), encoding="utf-8")
    return read_config(FILE), unwrapped()


def unwrapped() -> str:
    return " ".join(FILE.read_text("utf-8").replace("\n#", " ").split())


def drafted(columns: dict[str, list[Any]], **options: Any) -> tuple[Config, str]:
    write_csv(columns)
    return written(draft_from_data(read_table(ROWS), source="rows.csv", **options))


def guess(values: list[Any], **options: Any) -> tuple[Any, str]:
    """What a column becomes, None if it is left out, and the text of the file."""
    columns = {"column": values, "other": [index % 3 for index in range(len(values))]}
    config, text = drafted(columns, **options)
    return config.schema.to_dict()["inputs"].get("column"), text


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
def test_a_column_becomes_what_it_looks_like_and_what_is_guessed_is_said(case: int) -> None:
    values, expected, said = COLUMNS_AND_GUESSES[case]
    spec, text = guess(values)
    assert expected == (
        {key: spec.get(key) for key in expected} if isinstance(expected, dict) else spec
    )
    assert said in text
    assert (EVENLY in text) == (values is CUBES)


def test_a_protected_column_is_always_kept() -> None:
    spec, _ = guess(AGES, protected=["column"])  # bins of 1, 25, 29 and 25 values
    assert (spec["bins"], spec["weights"], spec["protected"]) == ([21, 46, 75], [0.25] * 4, True)
    spec, text = guess(ORIGINS, protected=["column"])
    assert (spec["values"], spec["protected"]) == ([f"origin {n}" for n in range(50)], True)
    assert "the 50 most frequent of 60 texts, 91% of the rows" in text


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
    values: list[Any], ends: tuple[float, float]
) -> None:
    spec, _ = guess(values)
    assert (spec["min"], spec["max"]) == ends
    assert all((float(each) - ends[0]) % spec.get("step", 1) == 0 for each in values)
    assert ends[0] <= min(map(float, values)) <= max(map(float, values)) <= ends[1]


@pytest.mark.parametrize("outlier", [47_000.17, 5_000_000.17])
def test_no_comment_has_a_number_of_one_row(outlier: float) -> None:
    rng = random.Random(0)
    values = [round(rng.gauss(30_000, 3_000), 2) for _ in range(399)] + [outlier]
    _, text = guess(values)
    assert "in the rows" in text
    assert set(re.findall(r"\d+\.\d+", text.replace(",", ""))).isdisjoint(map(str, values))


# --- the target -----------------------------------------------------------------------------


def test_the_target_is_no_input_and_tells_what_is_favourable() -> None:
    favourable = {"1": 1, "True": True, "approved": "approved", ">50K": ">50K", "fine": "fine"}
    others = ("0", "False", "denied", "<=50K", "bad")
    decisions = [*zip(others, favourable.items(), strict=True), ("2", ("1", 1))]
    for other, (good, value) in decisions:
        columns = {"race": ["a", "b"] * 5, "decided": [good, other] * 5}
        config, text = drafted(columns, target="decided")
        assert (config.schema.names, config.subject.favourable) == (("race",), (value,))
        assert "guessed from column 'decided'" in text
    _, text = drafted({"race": ["a", "b"], "decided": ["blue", "red"]}, target="decided")
    assert "a mere guess" in text


def test_a_target_of_many_numbers_is_an_output_with_a_scale() -> None:
    races = ["a", "b"] * 50
    for values in ([index / 7 for index in range(100)], [index % 40 for index in range(100)]):
        config, text = drafted({"race": races, "price": values}, target="price")
        assert "[outputs] price = { min = 0.0, max = " in text
        (output,) = config.outputs
        assert output.scale is not None
        assert output.scale[1] >= 1.25 * max(values)
        assert output.statistics == ("mean",)
    write_csv({"race": races, "said": [f"t {n}" for n in range(100)]})
    draft = draft_from_data(read_table(ROWS), source="rows.csv", target="said")
    assert "these are measurements" in draft.text().replace("\n# ", " ")


# --- whole files ----------------------------------------------------------------------------

COLUMNS: dict[str, list[Any]] = {
    "race": ["green", "purple", "green", "green"] * 10,
    "age": [18 + index for index in range(0, 40)][::-1],
    "rate": [0.5 * (index % 17) for index in range(40)],
    "employed": [index % 3 == 0 for index in range(40)],
    'größe "b" x.y': [["north", "south", None][index % 3] for index in range(40)],
    "": ["p", "q"] * 20,
}


def test_nested_and_mixed_values_of_json_lines_are_said() -> None:
    columns = {"tags": [["a"], ["b"]], "mixed": [1, "one"], "clash": [1, True], "ok": ["a", "b"]}
    columns |= {"code": ["1", "2"], "truth": ["true", "false"], "level": [1, 2]}
    path, rows = Path("a.jsonl"), zip(*columns.values(), strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows))
    config, text = written(draft_from_data(read_table(path), source="a.jsonl"))
    mixed, ok, code, truth, level = config.schema.characteristics
    assert (mixed.name, ok.name) == ("mixed", "ok")
    assert code.values + truth.values + level.values == ("1", "2", "false", "true", 1, 2)
    assert "tags: left out: its values are lists or objects" in text
    assert "clash: left out: the value" in text


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
    columns: dict[str, list[str]], protect: bool
) -> None:
    columns["sound"] = ["a", "b"] * 15
    config, text = drafted(columns, protected=list(columns) if protect else [])
    for each in config.schema:
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


def test_the_command_writes_a_file_that_only_lacks_the_subject() -> None:
    write_csv(COLUMNS, Path("people.csv"))
    result = run("init", "--from", "people.csv", "--protected", "race,age", "--target", "employed")
    assert result.exit_code == 0, result.output
    assert "4 of 5 columns became characteristics" in result.output
    assert "the column without a name: left out" in unwrapped()
    assert "there is no module 'subject'" in run("validate").output
    Path("subject.py").write_text("def decide(person):\n    return person['race'] == 'x'\n")
    assert run("validate").exit_code == 0
    checked = run("check", "-q")
    assert checked.exit_code == 0, checked.output
    config = read_config(FILE)
    assert config.schema.names == ("race", "age", "rate", 'größe "b" x.y')
    assert [each.against for each in config.checks] == [("race",), ("age",)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--from nothing.csv", "can't be read"),
        ("--protected race", "there are no columns without --from"),
        ("--from words.txt", "is not a file that can be converted"),
        ("--from api.yaml", "describes no object"),
        ("--from broken.parquet", "can't be read as Parquet"),
        ("--from broken.jsonl", "broken.jsonl:2: is no JSON object"),
        ("--from settings.xml --target race", "only rows of data"),
        ("--object net:Net", "--object: there are no columns without --from"),
        ("--from rows.csv --object net:Net", "--object: there is no file with weights"),
        ("--from rows.csv --model model.pkl", "--trust-pickle"),
        (
            "--from rows.csv --protected racee,race",
            "there is no column 'racee'; did you mean 'race'?",
        ),
        ("--from rows.csv --target ages", "--target: there is no column 'ages'; did you mean 'age"),
    ],
)
def test_wrong_requests_are_mistakes_and_write_nothing(arguments: str, words: str) -> None:
    write_csv(COLUMNS)
    Path("words.txt").write_text("hello")
    Path("api.yaml").write_text("openapi: 3.0.0\n")
    Path("broken.parquet").write_text("PAR1 no")
    Path("broken.jsonl").write_text('{"a": 1}\n[2]\n')
    Path("settings.xml").write_text("<settings/>")
    Path("model.pkl").write_bytes(b"nonsense")
    result = run("init", *arguments.split())
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert not FILE.exists()


# --- JSON Schema ----------------------------------------------------------------------------

SUM = {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "nullable": True}
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
    "allOf": [{"$ref": "#/$defs/more"}],
    "$defs": {
        "flag": {"type": "boolean"},
        "loop": {"$ref": "#/$defs/loop"},
        "more": {"properties": {"sum": SUM}},  # as OpenAPI 3.0 writes it
    },
}


def test_a_json_schema_is_converted_as_it_says_and_the_rest_has_its_reason() -> None:
    draft = draft_from_json_schema(APPLICANT, source="schema.json", protected=["race"])
    config, text = written(draft)
    assert config.schema.to_dict()["inputs"] == {
        "race": {"values": ["green", "purple"], "protected": True},
        "age": {"min": 18, "max": 99},
        "income": {"min": 0, "max": 100_000, "step": 100},
        "rate": {"min": 0.0, "max": 1.0, "step": 0.05},
        "score": {"min": 0.01, "max": 10.0, "step": 0.01, "missing": 0.05},
        "employed": [False, True],
        "status": {"values": ["single", "married"], "missing": 0.05},
        "sum": {"min": 1, "max": 9, "missing": 0.05},
    }
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


def test_protected_columns_and_the_target_are_guessed_by_name_and_said() -> None:
    for folder in ("data", "audit"):
        Path(folder).mkdir()
    write_csv(LOANS, Path("data/rows.csv"))
    said = run("init", "--from", "data/rows.csv", "-o", "audit/themis.toml").output
    assert "protected, a guess from the names: Applicant_Sex, age\n" in said
    assert "left out: loan_decision: taken for what is decided" in said
    Path("audit/themis.toml").rename(FILE)
    config = read_config(FILE)
    assert config.profile is not None
    assert config.profile.data == "../data/rows.csv", "as the written file has to call it"
    assert config.schema.protected == ("Applicant_Sex", "age")
    assert config.schema.names == ("Applicant_Sex", "age", "account age", "mortgage")
    assert "Applicant_Sex: protected is a guess from its name" in unwrapped()
    assert config.subject.favourable == ("granted",)
    for most, words in ((8, "rows.csv: the first 8 rows, 5 columns"), (60, "rows.csv: 60 rows, 5")):
        rows = read_table("data/rows.csv", most=most)
        assert words in draft_from_data(rows, source="rows.csv").text()


@pytest.mark.parametrize(
    ("column", "values", "options", "asked"),
    [
        ("hired", ["0", "1"], "", True),
        ("was Refused", ["yes", "no"], "", True),
        ("hired", ["0", "1", "2"], "", False),
        ("hired", ["0", "1"], "--target hired", False),
        ("employed", ["yes", "no"], "", False),
    ],
)
def test_a_binary_column_that_is_named_like_a_decision_is_asked_about(
    column: str, values: list[str], options: str, asked: bool
) -> None:
    write_csv({"sex": ["f", "m"] * 30, column: values * (60 // len(values))})
    said = run("init", "--from", "rows.csv", *options.split()).output
    again = shlex.join(["--target", column, "--force"])
    assert (f"is {column} what is decided?" in said) == (again in said) == asked
    assert ("named like a decision" in unwrapped()) == asked
    if asked:
        assert run("init", "--from", "rows.csv", *shlex.split(again)).exit_code == 0
        assert read_config(FILE).schema.names == ("sex",)


@pytest.mark.parametrize("trained", [["sex", "income", "age"], ["age", "income", "sex"]])
def test_a_model_without_names_of_columns_is_held_against_known_outcomes(
    trained: list[str],
) -> None:
    skops, linear = pytest.importorskip("skops.io"), pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    frame = {"sex": rng.integers(0, 2, 400), "income": rng.integers(0, 100, 400)}
    frame["age"] = rng.integers(18, 80, 400)
    target = (frame["age"] > 40 + 10 * frame["sex"]).astype(int)
    write_csv({name: each.tolist() for name, each in {**frame, "class": target}.items()})
    inputs = np.stack([frame[name] for name in trained], axis=1)
    skops.dump(linear.LogisticRegression(max_iter=999).fit(inputs, target), "some.skops")
    said = " ".join(run("init", "--from", "rows.csv", "--model", "some.skops").output.split())
    assert "of 400 rows of the table its decision is their 'class'; always deciding" in said
    share = said.partition("in the order of [inputs]: sex, income, age. For ")[2].partition(" %")[0]
    assert (float(share) > 90) == (trained[0] == "sex")
    assert "Make sure that it was trained in this order" in " ".join(run("validate").output.split())
