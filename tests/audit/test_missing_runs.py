"""Whole runs with missing values: files, suites, replays, caches and results know them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.engine.test_suites import read
from tests.projects import enter, run

SCHEMA = themis.Schema(
    race=themis.Values(["green", "blue"], missing=0.2),
    income=themis.Integers(0, 3, missing=0.25),
    member=themis.Values([False, True], missing=0.5, missing_as_counterfactual=True),
)


def decide(row: dict[str, Any]) -> int:
    return int(row["race"] == "green" or (row["income"] or 0) > 2 or row["member"] is None)


def fair(row: dict[str, Any]) -> int:
    return int((row["income"] or 0) > 2)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_suite_is_written_read_and_replayed(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    with themis.Audit(decide, SCHEMA, seed=1, suite=path) as audit:
        audit.causal("race")
        audit.causal("member")
    written = {tuple(row[name] for name in SCHEMA.names) for row in read(path)}
    nothing = "" if suffix == ".csv" else None
    assert len(written) == 3 * 5 * 3
    assert sum(value == nothing for row in written for value in row) == 15 + 9 + 15
    again, changed = (themis.Audit(each, SCHEMA, seed=1).replay(path) for each in (decide, fair))
    assert (again.count("still"), again.count("fixed"), again.changed) == (8 + 8, 0, 0)
    assert not again.unknown_rows
    assert (changed.count("still"), changed.count("fixed")) == (0, 8 + 8)


def test_no_value_in_a_suite_is_no_empty_text(tmp_path: Path) -> None:
    schema = themis.Schema(a=themis.Values(["", "x"], missing=0.3), b=range(4))
    audit = themis.Audit(
        lambda row: row["a"] is None and row["b"] > 1, schema, suite=tmp_path / "suite.jsonl"
    )
    audit.causal("b")
    audit.close()
    replay = audit.replay(tmp_path / "suite.jsonl")
    assert replay.count("still") > 0
    assert replay.changed == 0


CONFIG = """
version = 1

[subject]
kind = "command"
command = ["sh", "loan.sh"]
deterministic = true
arguments = "json"
favourable = ["1"]

[inputs]
race = { values = ["green", "blue"], protected = true, missing = 0.1 }
income = { min = 0, max = 3, missing = 0.25 }

[constraints]
known = "race is not missing or income is not missing"
"""
PROGRAM = """\
case "$(cat)" in
  *'"income": null'*) echo 1 ;;
  *'"race": "blue"'*) echo 0 ;;
  *) echo 1 ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "themis.toml").write_text(CONFIG)
    (tmp_path / "loan.sh").write_text(PROGRAM)
    enter(tmp_path, monkeypatch)
    return tmp_path


def test_a_file_with_missing_values_is_run_cached_and_shown(project: Path) -> None:
    first = run("score", "-o", "first.json", "--cache", "c.db", "--suite", "s.csv")
    assert first.exit_code == 0, first.output
    saved = json.loads((project / "first.json").read_text())
    causal = next(each for each in saved["scores"] if each["measure"] == "causal")
    assert causal["score"] == pytest.approx(0.9 * 0.75 / (1 - 0.025), abs=1e-9)
    second = run("score", "-o", "second.json", "--cache", "c.db")
    assert json.loads((project / "second.json").read_text())["executions"] < saved["executions"]
    assert second.exit_code == 0
    for command in (["replay", "s.csv"], ["replay", "first.json"]):
        assert run(*command).exit_code == 1  # they still discriminate
    shown = run("report", "first.json", "--format", "html,md,junit,sarif", "-o", "out")
    assert shown.exit_code == 0, shown.output
    assert "10.0 % missing" in run("validate").output
