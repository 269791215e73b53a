"""Whole runs where something follows: which inputs arrive at subjects, files, suites, replays."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import run, write_project
from themis.config.reader import read_config

BODY = "return int(person['relationship'] == 'Husband' and person['hours'] > 3)"


INPUTS = """\
sex = { values = ["Female", "Male"], protected = true }
relationship = { values = ["Husband", "Wife", "Unmarried"], follows = "sex", as = { Female = { Husband = "Wife" }, Male = { Wife = "Husband" } } }
title = { from = "sex", values = { Female = "Ms", Male = "Mr" } }
hours = { min = 0, max = 9 }
"""  # noqa: E501
MAYBE = INPUTS.replace("protected = true", "protected = true, missing = 0.1")
COUPLES = {
    ("Female", "Wife", "Ms"),
    ("Female", "Unmarried", "Ms"),
    ("Male", "Husband", "Mr"),
    ("Male", "Unmarried", "Mr"),
}


def schema() -> themis.Schema:
    return themis.Schema(
        sex=["Female", "Male"],
        relationship=themis.Values(
            ["Husband", "Wife", "Unmarried"],
            follows="sex",
            as_={"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
        ),
        title=themis.derived("sex", {"Female": "Ms", "Male": "Mr"}),
        hours=themis.Integers(0, 9),
    )


def decide(person: dict[str, Any]) -> int:
    return int(person["relationship"] == "Husband" and person["hours"] > 3)


@pytest.mark.parametrize("name", ["sex", "relationship"])
def test_variants_arrive_with_what_follows_the_set_and_else_as_it_says(name: str) -> None:
    seen = []

    def subject(person: dict[str, Any]) -> int:
        seen.append((person["sex"], person["relationship"], person["title"]))
        return decide(person)

    score = themis.Audit(subject, schema(), seed=1).causal(name)
    assert score.method == "exact"
    if name == "relationship":
        assert {*seen} == COUPLES | {("Female", "Husband", "Ms"), ("Male", "Wife", "Mr")}
        return
    assert {*seen} == COUPLES
    assert score.low <= 0.4 <= score.high  # two of three are couples, six of ten work enough
    differing = {tuple(witness.differs_in) for witness in score.witnesses}
    assert differing == {("sex", "relationship", "title")}


def test_rows_need_no_column_of_what_is_derived() -> None:
    people = [("Male", "Husband"), ("Female", "Husband"), ("Male", "Unmarried")]
    rows = [{"sex": sex, "relationship": each, "hours": 5} for sex, each in people]
    seen = set()

    def subject(person: dict[str, Any]) -> int:
        seen.add((person["sex"], person["relationship"], person["title"]))
        return decide(person)

    audit = themis.Audit(subject, schema(), seed=1, deterministic=True)
    result = audit.apparent(rows, against=["sex"], measures=["causal"], only_data=True)
    assert result.scores[0].score == pytest.approx(1 / 3)  # the second stays a husband
    assert seen > {
        *(("Female", "Husband", "Ms"), ("Male", "Husband", "Mr"), ("Female", "Wife", "Ms")),
    }
    assert {title for sex, _, title in seen if sex == "Male"} == {"Mr"}


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("exact", [True, False])
def test_the_tests_of_a_suite_differ_in_the_set_and_what_follows(
    exact: bool, tmp_path: Path
) -> None:
    path = tmp_path / "suite.csv"
    audit = themis.Audit(decide, schema(), seed=1, suite=path, deterministic=True)
    if exact:
        audit.causal("sex")
    else:
        audit.search(0.3, max_executions=400)
    audit.close()
    tests = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["test"] not in ("", "0"):
                tests[row["test"], row["against"]].append(row)
    assert any(len(rows) > 1 for rows in tests.values())
    free = {"sex": {"sex", "relationship", "title"}, "relationship": {"relationship"}}
    for (_, against), rows in tests.items():
        names = against.split(",")
        allowed = {other for name in names for other in free.get(name, {name})}
        if {"sex", "relationship"} <= {*names}:
            allowed |= {"title"}
        for row in rows:
            same = {n: rows[0][n] for n in schema().names if n not in allowed}
            assert same == {n: row[n] for n in schema().names if n not in allowed}
        if names == ["sex"]:
            couples = {(r["sex"], r["relationship"], r["title"]) for r in rows}
            assert couples <= COUPLES
    replay = themis.Audit(decide, schema(), seed=1).replay(path)
    assert replay.count("still") > 0
    assert replay.count("new", "fixed", "unknown") == 0
    followed = {each.against: each.followed for each in replay.sets}
    assert followed[("sex",)] == ("relationship", "title")


def test_a_file_may_have_a_leader_that_is_missing(tmp_path: Path) -> None:
    limits = '[constraints]\ntitled = "title is not missing or hours > 3"\n'
    config = write_project(tmp_path, BODY, inputs=MAYBE, extra=limits)
    checked = run("validate", str(config))
    assert checked.exit_code == 0, checked.output
    result = tmp_path / "result.json"
    done = run("score", str(config), "--measure", "causal", "-o", str(result))
    assert done.exit_code == 0, done.output
    (score,) = json.loads(result.read_text())["scores"]
    assert score["method"] == "exact"
    assert score["score"] == pytest.approx(0.9 * 0.6 * 2 / 3 / (0.9 + 0.1 * 0.6), abs=1e-9)


def test_a_file_says_the_same_as_python(tmp_path: Path) -> None:
    read = read_config(write_project(tmp_path, BODY, inputs=INPUTS)).schema.to_dict()
    assert read["inputs"].pop("sex") == {"values": ["Female", "Male"], "protected": True}
    assert read["inputs"].items() <= schema().to_dict()["inputs"].items()
