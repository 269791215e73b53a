"""Is a set that cannot be changed called fair? Nothing was tried, and nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from themis.audit.checker import run_checks
from themis.results.finding import finding
from themis.results.verdicts import Check
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.words.headlines import headline
from themis.show.words.verdicts import verdict

ONE: dict[str, Any] = {
    "a value": {"race": ["green"]},
    "a weight": {"race": themis.Values(["green", "purple"], weights=[1, 0])},
}


def by_race(person: dict[str, Any]) -> bool:
    return bool(person["race"] == "green" and person["age"] > 3)


def schemas() -> list[themis.Schema]:
    own = themis.Schema.from_dict(
        {
            "inputs": {"race": {"values": ["green", "purple"]}, "age": {"min": 0, "max": 9}},
            "constraints": {"only": "race == 'green'"},
        }
    )
    return [*(themis.Schema(**each, age=range(10)) for each in ONE.values()), own]


@pytest.mark.parametrize("schema", schemas(), ids=[*ONE, "a constraint"])
def test_a_set_with_one_value_is_not_called_fair(schema: themis.Schema) -> None:
    result = themis.Audit(by_race, schema).score("race")
    causal, group = result.scores
    assert headline(causal) == "There is nothing to change: no test input can have another race"
    assert "single group of race" in headline(group)
    assert [finding(each).state for each in result.scores] == ["open", "open"]
    assert verdict(result).word == "undecided"
    for page in (render_page(result), render_markdown(result)):
        assert "never changes" not in page
        assert "exactly none" not in page
        assert "nothing is known about it" in page


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_a_limit_on_a_set_with_one_value_is_not_decided(measure: Any) -> None:
    audit = themis.Audit(by_race, schemas()[0])
    check = Check(name="one", measure=measure, against=("race",), max_score=0.1)
    (found,) = run_checks(audit, [check]).checks
    assert found.verdict == "not enough evidence"
    assert found.reason in (
        "no test input can have another race, as the schema leaves a single value: nothing was "
        "changed, and nothing is known about it",
        "there is a single group of race, so there is nothing to compare",
    )
