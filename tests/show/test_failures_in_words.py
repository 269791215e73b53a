"""Do headlines claim nothing that failures left open?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from themis import Audit, Integers, Schema
from themis.show.words.headlines import headline

SMALL = Schema(sex=["female", "male"], income=Integers(0, 90))
LARGE = Schema(sex=["female", "male"], income=Integers(0, 1_000), age=Integers(18, 1_000))
FAILING: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "women": lambda person: person["sex"] == "female",
    "most": lambda person: person["income"] > 20,
    "few": lambda person: person["income"] == 990,
}


@pytest.mark.parametrize(
    ("schema", "failing", "measure", "said"),
    [
        (SMALL, "women", "causal", "Nothing is known about an effect of sex: no two outputs could"),
        (LARGE, "women", "causal", "Nothing is known about an effect of sex: no two outputs could"),
        (SMALL, "most", "causal", "Undecided for sex: the decision changed for none of "),
        (LARGE, "most", "causal", "Undecided for sex: the decision changed for none of "),
        (LARGE, "few", "causal", "No effect of sex found: the decision changed for none of "),
        (LARGE, "women", "group", "Undecided for rates of favourable decisions between female and"),
    ],
)
def test_what_failures_left_open_is_not_claimed(
    schema: Schema, failing: str, measure: str, said: str
) -> None:
    def decide(person: Mapping[str, Any]) -> int:
        if FAILING[failing](person):
            raise ValueError("no rule")
        return int(person["income"] > 40)

    score = getattr(Audit(decide, schema, seed=1, max_failures=1.0), measure)("sex")
    assert headline(score).startswith(said)
