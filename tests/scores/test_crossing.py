"""Of three or more outputs: which changes are between a favourable one and another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

import themis
from themis.results.saved import result_from_dict
from themis.results.withheld import withheld
from themis.show.terminal.results import render_result

GROUPS, AGES = ("a", "b", "c"), range(60)


def triage(person: Mapping[str, Any]) -> str:
    level = person["age"] // 10 + GROUPS.index(person["group"])
    return "urgent" if level > 5 else "soon" if level > 3 else "later"


def schema(**more: Any) -> themis.Schema:
    return themis.Schema(group=themis.Values(GROUPS, protected=True), age=AGES, **more)


def outputs(age: int) -> set[str]:
    return {triage({"group": group, "age": age}) for group in GROUPS}


def test_an_exact_share_is_that_of_its_definition() -> None:
    with themis.Audit(triage, schema(), favourable=["urgent"]) as audit:
        score = audit.causal("group")
    crossing = score.crossing
    assert crossing is not None
    every = [outputs(age) for age in AGES]
    assert score.score == pytest.approx(sum(len(each) > 1 for each in every) / 60)
    assert crossing.share == pytest.approx(
        sum("urgent" in each and len(each) > 1 for each in every) / 60
    )
    assert (crossing.inputs, crossing.low, crossing.high) == (60, None, None)


def test_a_sampled_share_lies_within_its_ends_and_is_shown_beside_the_total() -> None:
    truth = sum("urgent" in outputs(age) and len(outputs(age)) > 1 for age in AGES) / 60
    with themis.Audit(triage, schema(free=range(10**7)), favourable=["urgent"]) as audit:
        result = audit.score([["group"]])
    crossing = result.scores[0].crossing
    assert crossing is not None
    assert crossing.low < truth < crossing.high
    saved = result_from_dict(json.loads(json.dumps(result.to_dict())))
    assert "change between favourable" in " ".join(render_result(saved).split())


@pytest.mark.parametrize(
    ("decide", "favourable"),
    [
        (triage, ["urgent", "soon", "later"]),
        (triage, ["none of them"]),
        (lambda person: person["age"] > 5, [True]),
    ],
    ids=["all favourable", "none", "two outputs"],
)
def test_where_it_would_say_nothing_new_nothing_is_said(decide: Any, favourable: Any) -> None:
    with themis.Audit(decide, schema(), favourable=favourable) as audit:
        assert audit.causal("group", "age").crossing is None


def test_documents_do_not_say_it_of_few_people() -> None:
    few = [{"group": group, "age": 45} for group in GROUPS]
    many = [{"group": group, "age": age} for group, age in product(GROUPS, AGES)]
    shown = {}
    for name, rows in {"few": few, "many": many}.items():
        with themis.Audit(triage, schema(), favourable=["urgent"], profile=rows) as audit:
            (score,) = withheld(audit.score([["group"]], ["causal"])).scores
        shown[name] = score.crossing is not None
    assert shown == {"few": False, "many": True}
