"""The Python interface: settings, results, and what a notebook or a terminal shows of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import themis

SCHEMA = themis.Schema(race=["green", "purple"], savings=range(1000), id=range(10**6))


def loan(person: dict[str, Any]) -> bool:
    return bool(person["savings"] > (500 if person["race"] == "green" else 600))


def test_a_measurement_has_settings_of_its_own_and_sets_may_have_commas() -> None:
    audit = themis.Audit(loan, SCHEMA, seed=1)
    narrow = audit.causal("race", error=0.02, confidence=0.9)
    assert (narrow.error, narrow.confidence) == (0.02, 0.9)
    assert audit.causal("race", "race").error == 0.05
    assert audit.group("savings,race").against == ("race", "savings")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidense": 0.9}, "confidense: there is no such setting; did you mean 'confidence'"),
        ({"seed": 2}, "the seed belongs to the whole audit"),
        ({"error": 5}, "error: must lie between 0 and 1, got 5"),
        ({"error": 5, "confidence": 99}, "confidence: must lie.*\n.*error: must lie"),
        ({"max_executions": 0}, "max_executions: must be a whole number of at least 1"),
    ],
)
def test_wrong_settings_say_all_that_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(themis.RequestError, match=message):
        themis.Audit(loan, SCHEMA).causal("race", **changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Path("themis.toml"), r"a file is read by Audit\.from_file\('themis\.toml'\)"),
        (SimpleNamespace(columns=["race"]), r"SimpleNamespace is no schema; .* Schema\.from_frame"),
        (["race"], r"list is no schema; write for example Schema\("),
    ],
)
def test_what_is_no_schema_is_said(given: Any, message: str) -> None:
    with pytest.raises(themis.RequestError, match=message):
        themis.Audit(loan, given)


def test_the_result_is_plain_json_that_says_the_same_every_time() -> None:
    def once() -> dict[str, Any]:
        data = themis.Audit(loan, SCHEMA, seed=3).score([["race"]]).to_dict()
        del data["timing"]
        return data

    first = once()
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    assert first == once()
    assert [score["measure"] for score in first["scores"]] == ["causal", "group"]
    assert themis.Schema.from_dict(first["schema"]) == SCHEMA


def test_subjects_whose_outputs_are_never_favourable_are_pointed_out() -> None:
    result = themis.Audit(lambda row: "yes", SCHEMA).score([["race"]])
    assert "no output was favourable: the subject gave 'yes'" in str(result.notes[0])
    constant = themis.Audit(lambda row: 1, SCHEMA).score([["race"]])
    assert "the same output, 1, in all" in str(constant.notes[0])


def test_a_ratio_over_some_of_the_groups_never_clears_the_four_fifths_line() -> None:
    schema = themis.Schema(a=range(100), b=range(10**6))
    audit = themis.Audit(themis.batch(lambda t: t["a"] != 57), schema, max_assignments=50)
    result = audit.group("a")
    assert result.lower_bound
    assert result.four_fifths != "above"


def test_the_papers_rule_executes_what_its_algorithm_would() -> None:
    calls: list[Any] = []
    audit = themis.Audit(lambda row: calls.append(row) or True, SCHEMA, seed=1, stopping="paper")
    result = audit.causal("race")
    assert result.samples == 11  # nothing seen after SAMPLING_THRESHOLD: it stops at once
    assert len(calls) == 22  # each k₀ and its one variant
    assert (result.low, result.high) == (0.0, 0.05)
    assert "not what it holds" in str(result.notes[0])
    assert [each.samples for each in audit.group("race").groups] == [11, 11]


def test_the_group_score_names_who_is_favoured_and_where_four_fifths_lies() -> None:
    def decide(row: dict[str, Any]) -> bool:
        return bool(row["savings"] > (100 if row["race"] == "green" else 800))

    result = themis.Audit(decide, SCHEMA, seed=1).group("race")
    named = [each and each.values["race"] for each in (result.most_favoured, result.least_favoured)]
    assert (named, result.four_fifths) == (["green", "purple"], "below")
    assert result.impact_ratio == pytest.approx(0.2 / 0.9, abs=0.1)


def test_witnesses_are_not_alike() -> None:
    schema = themis.Schema(race=list("abcd"), job=list("xyz"), savings=range(1000), id=range(10**6))
    audit = themis.Audit(
        lambda row: row["savings"] > 200 * "abcd".index(row["race"]), schema, seed=1
    )
    witnesses = audit.causal("race").witnesses
    changes = {tuple(each["race"] for each in witness.inputs) for witness in witnesses}
    jobs = {witness.inputs[0]["job"] for witness in witnesses}
    assert len(witnesses) == 10
    assert len(changes) >= 5
    assert jobs == {"x", "y", "z"}
