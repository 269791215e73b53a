"""A set whose exact score equals the threshold is shown as a tie, wherever a search is shown."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import themis
from tests.report_results import plain
from themis.results.model import Result
from themis.results.saved import result_from_dict, result_schema
from themis.show.notebook import html_of
from themis.show.reports.ci import findings, render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.searches import render_search, render_search_headlines

TIE = "Exactly at 30 %, a tie: race."


@pytest.fixture(scope="module")
def result() -> Result:
    schema = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10))

    def decide(row: dict[str, Any]) -> bool:
        return bool(row["income"] + 3 * (row["race"] == "green") >= 5)

    return themis.Audit(decide, schema).search_all(0.3, among=["race", "sex"])


def test_a_terminal_marks_a_tie_and_does_not_say_more_than(result: Result) -> None:
    shown = " ".join(render_search(result).split())
    assert (
        "1 minimal combination of characteristics changes the "
        "decision for at least 30 % of test inputs"
    ) in shown
    assert "exact, a tie" in shown
    assert "every set listed is at least 30 %, and no set of at least 30 % is missing" in shown
    assert TIE in shown
    assert "at least 30 %" in render_search_headlines(result)


def test_a_saved_result_has_its_ties(result: Result) -> None:
    data = json.loads(json.dumps(result.to_dict()))
    jsonschema.Draft202012Validator(result_schema()).validate(data)
    assert data["search"]["ties"] == [["race"]]
    reasons = {tuple(each["against"]): each["reasons"] for each in data["search"]["sets"]}
    assert reasons["race",] == [
        {"code": "equals-threshold", "values": {"score": 0.3, "measure": "causal"}}
    ]
    assert result_from_dict(data).searches[0].ties == (("race",),)


def test_reports_mark_a_tie(result: Result) -> None:
    (found,) = findings(result)
    assert found.title == "causal score of race is exactly 30 %"
    assert 'type="at the threshold"' in render_junit(result)
    for shown in (render_page(result), str(html_of(result)), render_markdown(result)):
        assert TIE in plain(shown)
    assert "a tie: its score is 30 %, exactly the threshold" in plain(render_page(result))


def test_a_set_that_contains_a_tie_is_not_said_to_contain_one_above(result: Result) -> None:
    assert result.searches[0].why("race", "sex") == "follows: it contains race, which is a tie"


def test_without_a_tie_nothing_is_said_of_one(result: Result) -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(10))
    audit = themis.Audit(lambda row: row["income"] + 3 * (row["race"] == "green") >= 5, schema)
    other = audit.search_all(0.29, among=["race"])
    assert "ties" not in other.to_dict()["search"]
    assert "tie" not in render_search(other)
