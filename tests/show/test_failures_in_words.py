"""Do headlines claim nothing that failures left open?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests import report_results as samples
from themis import Audit, Integers, Schema
from themis.results.parts import Account
from themis.show.words.headlines import headline
from themis.show.words.scores import account_text

SMALL = Schema(sex=["female", "male"], income=Integers(0, 90))
LARGE = Schema(sex=["female", "male"], income=Integers(0, 1_000), age=Integers(18, 1_000))


def audit_of(fails: Callable[[Mapping[str, Any]], bool], schema: Schema) -> Audit:
    """Of a fair program that fails for some people."""

    def decide(person: Mapping[str, Any]) -> int:
        if fails(person):
            raise ValueError("no rule")
        return int(person["income"] > 40)

    return Audit(decide, schema, seed=1, max_failures=1.0)


@pytest.mark.parametrize("schema", [SMALL, LARGE])
def test_nothing_is_known_where_nothing_could_be_compared(schema: Schema) -> None:
    said = headline(audit_of(lambda person: person["sex"] == "female", schema).causal("sex"))
    assert said.startswith(
        "Nothing is known about an effect of sex: no two outputs could be compared for "
    )
    assert "at most 100 %" in said


@pytest.mark.parametrize("schema", [SMALL, LARGE])
def test_an_effect_is_undecided_where_most_failed(schema: Schema) -> None:
    said = headline(audit_of(lambda person: person["income"] > 20, schema).causal("sex"))
    assert said.startswith("Undecided for sex: the decision changed for none of ")


def test_an_effect_is_ruled_out_although_a_few_failed() -> None:
    said = headline(audit_of(lambda person: person["income"] == 990, LARGE).causal("sex"))
    assert said.startswith("No effect of sex found: the decision changed for none of ")


def test_a_difference_is_undecided_where_a_group_failed() -> None:
    said = headline(audit_of(lambda person: person["sex"] == "female", LARGE).group("sex"))
    assert said.startswith("Undecided for rates of favourable decisions between female and male: ")
    assert "they differed by" in said


def test_what_was_tried_again_is_not_said_to_fail() -> None:
    result = replace(samples.result(), account=Account(744, 195, 10, 610))
    assert account_text(result).endswith("10 explanations, 610 given again after failures")
