"""Does a suite hold the tests that were run, so that others can check them from the file alone?"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import themis
from tests.projects import SMALL, Project, run
from tests.worlds import Case, cases
from themis.engine.suite_files import OwnColumns

SUFFIXES = pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
SCHEMA = themis.Schema(
    race=["green", "purple", "blue"],
    sex=["f", "m"],
    age=themis.Integers(18, 80, bins=[40, 60]),
    income=themis.Integers(0, 99_999),
    rate=themis.Reals(0, 1, step=0.01),
)


def loan(person: dict[str, Any]) -> int:
    needed = 30_000 if person["race"] == "green" else 45_000
    return int(int(person["income"]) > needed + 20_000 * (int(person["age"]) < 30))


def loans(table: Any) -> Any:
    needed = np.where(table["race"] == "green", 30_000, 45_000)
    return (table["income"] > needed + 20_000 * (table["age"] < 30)).astype(int)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a suite as plain values; of a CSV, all of them are texts."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def numbered(rows: list[dict[str, Any]], against: str) -> dict[Any, list[dict[str, Any]]]:
    """The rows of each test against a set."""
    found = defaultdict(list)
    for row in rows:
        if row["against"] == against and row["test"] not in ("", None):
            found[row["test"]].append(row)
    return found


def flips(rows: list[dict[str, Any]], against: str) -> tuple[int, int]:
    """How many tests against a set have different outputs, and how many there are."""
    found = numbered(rows, against)
    return sum(len({row["output"] for row in each}) > 1 for each in found.values()), len(found)


@SUFFIXES
@pytest.mark.parametrize("subject", [loan, themis.batch(loans)], ids=["rows", "batch"])
def test_the_causal_score_can_be_counted_in_the_file(
    suffix: str, subject: Any, tmp_path: Path
) -> None:
    path = tmp_path / f"suite{suffix}"
    with themis.Audit(subject, SCHEMA, seed=3, suite=path) as audit:
        scores = {against: audit.causal(against) for against in ("race", "age")}
    rows = read(path)
    assert len(rows) == audit.suite.rows
    for against, score in scores.items():
        different, count = flips(rows, against)
        assert score.method == "sampled"
        assert (different / count, count) == (pytest.approx(score.score), score.samples)


def test_the_group_score_can_be_counted_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    with themis.Audit(themis.batch(loans), SCHEMA, suite=path) as audit:
        score = audit.group("race")
    rows = [row for row in read(path) if row["against"] == "race"]
    for group in score.groups:
        own = [row["favourable"] for row in rows if row["race"] == group.values["race"]]
        counted = own[: group.samples]  # of a group that can't be extreme any more, not all
        assert (np.mean(counted), len(counted)) == (pytest.approx(group.rate), group.samples)


@SUFFIXES
def test_rows_of_a_test_differ_in_nothing_but_the_set(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    with themis.Audit(themis.batch(loans), SCHEMA, error=0.1, suite=path) as audit:
        audit.score([["race"], ["race", "age"]])
        audit.search(0.2, among=["race", "sex", "age"])
    rows = read(path)
    seen = set()
    for against in {row["against"] for row in rows}:
        for number, test in numbered(rows, against).items():
            assert number not in seen, "a number belongs to one test"
            seen.add(number)
            context = [n for n in SCHEMA.names if n not in against.split(",")]
            assert len({tuple(row[name] for name in context) for row in test}) == 1
            assert sum(row["base"] in (True, "true") for row in test) <= 1
            inputs = [tuple(row[name] for name in SCHEMA.names) for row in test]
            assert len(set(inputs)) == len(inputs), "no input stands in a test twice"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(most=3), search=st.booleans(), paper=st.booleans())
def test_every_output_is_what_the_subject_says_and_every_execution_is_there(
    tmp_path_factory: pytest.TempPathFactory, case: Case, search: bool, paper: bool
) -> None:
    path = tmp_path_factory.mktemp("suite") / "suite.jsonl"
    asked = []

    def decide(row: dict[str, Any]) -> Any:
        asked.append(tuple(row.values()))
        return case.decide(row)

    options: dict[str, Any] = {"favourable": case.world.favourable, "error": 0.2}
    options["stopping"] = "paper" if paper else "certified"
    with themis.Audit(decide, case.schema, suite=path, **options) as audit:
        if search:
            audit.search(0.3, max_size=2)
        else:
            audit.score([case.names])
    rows = read(path)
    for row in rows:
        values = {name: row[name] for name in case.schema.names}
        assert row["output"] == case.decide(values)
        assert row["favourable"] == (row["output"] in case.world.favourable)
    present = {tuple(row[name] for name in case.schema.names) for row in rows}
    assert not set(asked) - present


@SUFFIXES
def test_a_small_domain_is_written_once_for_each_set(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    schema = themis.Schema(race=["green", "purple"], income=range(0, 100))
    subject = themis.batch(lambda table: table["income"] > 30 + 30 * (table["race"] == "purple"))
    with themis.Audit(subject, schema, suite=path) as audit:
        for against, sets in (("race", 1), ("race", 1), ("income", 2)):
            assert audit.causal(against).method == "exact"
            audit.group(against)
            assert audit.suite.rows == sets * schema.size
    rows = read(path)
    assert (flips(rows, "race"), flips(rows, "income")) == ((30, 100), (2, 2))
    with pytest.raises(themis.RequestError, match="is complete"):
        audit.causal("race", "income")


@SUFFIXES
def test_every_declared_output_has_its_columns(suffix: str, tmp_path: Path) -> None:
    def offer(person: dict[str, Any]) -> dict[str, Any]:
        hotels = ["Ibis", "Ritz"] if person["race"] == "green" else ["Ritz", "Ibis"]
        granted = "yes" if loan(person) else "no"
        return {"granted": granted, "limit": person["income"] / 8, "hotels": hotels}

    outputs = [
        themis.Output(name="granted", at="/granted", favourable=["yes"]),
        themis.Output(name="limit", at="/limit", min=0, max=20_000, distance="relational"),
        themis.Output(name="hotels", at="/hotels", distance="ranking"),
    ]
    path = tmp_path / f"suite{suffix}"
    with themis.Audit(offer, SCHEMA, outputs=outputs, error=0.2, suite=path) as audit:
        audit.score([["race"]])
        audit.search(0.2, among=["race", "sex"], output="granted")
    rows = read(path)
    assert len(rows) > 100
    for row in rows:
        expected = offer({**row, "income": int(row["income"])})
        assert row["output.granted"] == expected["granted"]
        good = expected["granted"] == "yes"
        assert row["favourable.granted"] in (good, json.dumps(good))
        assert float(row["output.limit"]) == expected["limit"]
        assert row["favourable.limit"] in (None, "")
        hotels = row["output.hotels"]
        assert (json.loads(hotels) if isinstance(hotels, str) else hotels) == expected["hotels"]


def test_writing_costs_no_executions_and_changes_no_result(tmp_path: Path) -> None:
    def measured(**options: Any) -> Any:
        with themis.Audit(themis.batch(loans), SCHEMA, seed=5, error=0.1, **options) as audit:
            found = audit.search(0.2, among=["race", "sex", "age"]).to_dict()
            result = audit.score([["race"], ["sex", "age"]]).to_dict()
        del result["timing"]
        return found, result

    assert measured() == measured(suite=tmp_path / "suite.csv")


def test_failures_stand_in_the_suite_with_their_kind(tmp_path: Path) -> None:
    def decide(person: dict[str, Any]) -> Any:
        if person["age"] == 33:
            raise ValueError("33")
        return 0.5 if person["age"] == 34 else loan(person)

    path = tmp_path / "suite.jsonl"
    with themis.Audit(decide, SCHEMA, suite=path, max_failures=1.0) as audit:
        audit.causal("race")
    rows = read(path)
    assert {33, 34, 35} <= {row["age"] for row in rows}
    for row in rows:
        kind = {33: "crash", 34: "invalid output"}.get(row["age"])
        assert row["failure"] == kind
        assert [row[each] is None for each in ("output", "favourable")] == [kind is not None] * 2


def test_what_was_run_is_there_when_the_run_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "suite.csv"
    asked = []

    def decide(person: dict[str, Any]) -> int:
        if len(asked) == 1_000:
            raise KeyboardInterrupt
        asked.append(person)
        return loan(person)

    audit = themis.Audit(decide, SCHEMA, suite=path)
    audit.sampler.block_rows = 5
    with pytest.raises(KeyboardInterrupt):
        audit.causal("race", error=0.01)
    audit.close()
    rows = read(path)
    assert 1_000 - 5 * 3 <= len(rows) <= 1_000
    assert all(int(row["output"]) == loan(row) for row in rows)


def test_names_that_clash_get_a_prefix(tmp_path: Path) -> None:
    schema = themis.Schema({"output": ["a", "b"], "test": range(0, 2), "x": ["p", "q"]})
    path = tmp_path / "suite.csv"
    with themis.Audit(lambda person: person["output"] == "a", schema, suite=path) as audit:
        audit.causal("output")
    rows = read(path)
    assert list(rows[0]) == [
        "themis_test", "themis_against", "themis_base", "output", "test", "x",
        "themis_output", "themis_favourable", "themis_failure",
    ]  # fmt: skip
    assert all((row["output"] == "a") == (row["themis_output"] == "true") for row in rows)
    assert OwnColumns.beside(["test", "themis_base"], ["output"]).test == "themis_themis_test"


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@SUFFIXES
@settings(max_examples=10, deadline=None)
@given(
    values=st.lists(texts.filter(lambda text: text.strip() == text), min_size=2, unique=True),
    name=texts.filter(lambda text: text.strip() and not set(text) & set(",`nr")),
    number=st.integers(-(2**61), 2**61),
)
def test_any_text_and_number_comes_out_of_the_file_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, values: Any, name: str, number: int
) -> None:
    large = themis.Integers(number, number + 10**6)
    schema = themis.Schema({name: values, "n": large, "r": themis.Reals(-1, 1, step=1e-6)})
    ran = set()

    def decide(person: dict[str, Any]) -> bool:
        row = (person[each] for each in schema.names)
        ran.add(tuple(map(str, row) if suffix == ".csv" else row))
        return True

    path = tmp_path_factory.mktemp("suite") / f"suite{suffix}"
    with themis.Audit(decide, schema, suite=path, max_executions=300, probe=0) as audit:
        audit.causal(name)
    assert {tuple(row[each] for each in schema.names) for row in read(path)} == ran


# --- mistakes and the command ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("suite.txt", "is of no known kind; end it in .csv, .jsonl"),
        ("no/suite.csv", "is in a folder that is not there"),
        (".", "is of no known kind"),
    ],
)
def test_a_place_for_no_suite_is_a_mistake_before_anything_runs(
    name: str, words: str, project: Project
) -> None:
    project("open('ran', 'w')\nreturn 1", inputs=SMALL)
    result = run("score", "--suite", name)
    assert result.exit_code == 2
    assert f"--suite: '{name}' {words}" in result.output
    assert not Path("ran").exists()


def test_a_full_disk_ends_the_suite_and_not_the_run(project: Project) -> None:
    project()
    Path("suite.csv").symlink_to("/dev/full")
    result = run("score", "--suite", "suite.csv", "--against", "race")
    assert result.exit_code == 2
    assert "■ decision changes" in result.output
    assert "could not be written to the end: No space left on device" in result.output
    assert "it is not complete; make room" in " ".join(result.output.split())
    assert " rows in " not in result.output  # nobody knows how many


def test_without_pyarrow_there_is_no_parquet_but_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(themis.RequestError, match="needs pyarrow"):
        themis.Audit(loan, SCHEMA, suite=tmp_path / "suite.parquet")
    with themis.Audit(loan, SCHEMA, suite=tmp_path / "suite.csv") as audit:
        audit.causal("race")
    assert len(read(tmp_path / "suite.csv")) == audit.suite.rows


@pytest.mark.parametrize("command", ["score --against race", "search --threshold 0.2", "check"])
def test_the_commands_write_a_suite_and_say_so(command: str, project: Project) -> None:
    project(inputs=SMALL, extra='[[checks]]\nagainst = ["race"]\nmax_score = 0.9\n')
    result = run(*command.split(), "--suite", "suite.jsonl")
    assert result.exit_code == 0, result.output
    rows = read(Path("suite.jsonl"))
    assert f"{len(rows):,} rows in suite.jsonl" in result.output
    assert flips(rows, "race")[0] > 0
