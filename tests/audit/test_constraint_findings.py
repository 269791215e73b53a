"""Differences between groups that constraints make are said to be theirs, and no others are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.projects import enter, run, write_project
from themis.audit.notes import made_by_constraints
from themis.results.notes import Note
from themis.show.reports.page import render_page

INPUTS = """\
age = { min = 18, max = 65, bins = [30, 45], protected = true }
years = { min = 0, max = 49 }

[constraints]
"grown up" = "age - years >= 16"
"""


SCHEMA = themis.Schema(
    age=themis.Integers(18, 65, bins=[30, 45]), years=range(0, 50), sex=["f", "m"]
)
LINKED = SCHEMA.where(adult="age - years >= 16")


def by_years(person: Any) -> bool:
    """Reads nothing but the years, which the constraint links to the age."""
    return bool(person["years"] >= 10)


def by_age(person: Any) -> bool:
    return bool(person["age"] >= 40)


def notes(result: themis.Result) -> list[Note]:
    return [note for note in result.notes if note.code == "made-by-constraints"]


def test_a_difference_that_a_constraint_alone_makes_is_said_to_be_its() -> None:
    more = LINKED.where(old="age > 20", few="years < 49", women="sex == 'f' or years > 1")
    result = themis.Audit(by_years, more).score([["age"]])
    causal, group = result.scores
    assert causal.high == 0 or causal.score == 0
    assert group.low > 0.1
    (note,) = notes(result)
    assert note.values["against"] == ["age"]
    assert note.values["constraints"] == {"adult": "age - years >= 16"}  # which alone links it
    assert note.values["linked"] == ["years"]
    said = "may come from the constraint adult (age - years >= 16), which links age with years"
    assert said in str(note)
    without = themis.Audit(by_years, LINKED.without("adult")).score([["age"]])
    assert without.scores[1].low == 0
    assert not notes(without)


@pytest.mark.parametrize(
    ("decide", "schema", "against"),
    [
        (by_age, LINKED, "age"),  # the set itself matters
        (by_years, SCHEMA, "age"),  # nothing is linked, and nothing differs
        (by_years, LINKED, "years"),  # the other side of the link: it matters
        (by_years, LINKED, "sex"),  # no constraint reads it
        (by_years, SCHEMA.where("age > 20"), "age"),  # one that links nothing
        (by_years, LINKED, "age,years"),  # the link is within the set
    ],
)
def test_a_difference_of_the_set_itself_gets_no_such_note(
    decide: Any, schema: themis.Schema, against: str
) -> None:
    result = themis.Audit(decide, schema).score([against.split(",")])
    assert not notes(result)


@pytest.mark.parametrize(
    ("seen", "changed", "apart", "is_said"),
    [(0, 0.04, 0.08, True), (0, 0.04, 0.07, False), (0.05, 0.1, 0.5, True), (0.06, 0.1, 0.5, False),
     (0, 0, 0, False)],
)  # fmt: skip
def test_half_of_the_difference_at_least_must_be_certain(
    seen: float, changed: float, apart: float, is_said: bool
) -> None:
    causal, group = themis.Audit(by_years, LINKED).score([["age"]]).scores
    scores = [replace(causal, score=seen, high=changed), replace(group, low=apart)]
    assert len(list(made_by_constraints(scores, LINKED))) == is_said
    assert not list(made_by_constraints(scores[1:], LINKED))  # the causal score is not known


def test_people_who_are_given_are_linked_by_more_than_constraints() -> None:
    people = [{"age": 20 + n % 40, "years": max(0, n % 40 - 5), "sex": "f"} for n in range(200)]
    result = themis.Audit(by_years, LINKED, profile=people).score([["age"]])
    assert {score.population for score in result.scores} == {"profile"}
    assert not notes(result)


def test_that_most_inputs_have_no_counterfactual_is_said() -> None:
    schema = themis.Schema(sex=["f", "m"], title=["Mrs", "Mr"], points=range(50))
    fixed = schema.where(title="(sex == 'f') == (title == 'Mrs')")

    def by_sex(person: Any) -> bool:
        return bool(person["sex"] == "m")

    codes = {each.code: each for each in themis.Audit(by_sex, fixed).score([["sex"]]).notes}
    assert codes["few-counterfactuals"].values["share"] == 1
    assert "the causal score says nothing about them" in str(codes["few-counterfactuals"])
    for other in (schema, schema.where(some="sex == 'f' or points < 40")):
        found = {each.code for each in themis.Audit(by_sex, other).score([["sex"]]).notes}
        assert "few-counterfactuals" not in found


def test_the_command_line_offers_the_run_without_it_and_that_run_is_calm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, "return int(person['years'] >= 10)", inputs=INPUTS)
    done = run("score", "-o", "result.json")
    command = "themis score --without-constraint 'grown up'"
    assert command in done.output
    assert "warning: the rates of the groups of age differ" in done.output
    saved = themis.read_result("result.json")
    assert command in render_page(saved).replace("&#x27;", "'")
    again = run("score", "--without-constraint", "grown up", "--json")
    data = json.loads(again.stdout)
    assert data["schema"]["constraints"] == {}
    assert data["source"]["command"] == command
    assert all(score["low"] == 0 for score in data["scores"])
    wrong = run("score", "--without-constraint", "grownup")
    assert wrong.exit_code == 2
    assert "--without-constraint: there is no constraint 'grownup'; did you mean" in wrong.output
