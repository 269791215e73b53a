"""A set whose exact score equals the threshold is shown as a tie, wherever a search is shown."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from themis.results.model import Result
from themis.show.terminal.searches import render_search, render_search_headlines

TIE = "Exactly at 30 %, a tie: race."


@pytest.fixture(scope="module")
def result() -> Result:
    schema = themis.Schema(race=["green", "purple"], sex=["f", "m"], income=range(10))

    def decide(row: dict[str, Any]) -> bool:
        return bool(row["income"] + 3 * (row["race"] == "green") >= 5)

    return themis.Audit(decide, schema).search_all(0.3, among=["race", "sex"])


def test_a_terminal_marks_a_tie_and_does_not_say_more_than(result: Result) -> None:
    shown = " ".join(render_search(result, everything=True).split())
    assert (
        "Among race and sex, 1 minimal combination changes the "
        "decision for at least 30 % of test inputs"
    ) in shown
    assert "exact, a tie" in shown
    assert "every set listed is at least 30 %, and no set of at least 30 % is missing" in shown
    assert TIE in shown
    assert "at least 30 %" in render_search_headlines(result)


def test_a_set_that_contains_a_tie_is_not_said_to_contain_one_above(result: Result) -> None:
    assert result.searches[0].why("race", "sex") == "follows: it contains race, which is a tie"
