"""Is a saved result read back as it was? The JSON of every command, there and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import themis
from themis.audit import Audit
from themis.demo import demo_audit
from themis.errors import RequestError
from themis.results import Noise, Placebo, Region, Result
from themis.saved_results import read_result, result_from_dict


def measured() -> list[Result]:
    schema = themis.Schema(
        race=themis.Values(["green", "purple"], protected=True),
        age=themis.Integers(18, 60, bins=[30, 45]),
        savings=range(0, 100),
    )

    def loan(person: dict) -> bool:
        return person["savings"] > (50 if person["race"] == "green" else 60) - person["age"] / 10

    audit = Audit(loan, schema, seed=3)
    return [
        demo_audit().score([["race"], ["race", "sex"]]),
        audit.score([["race"], ["age"]]),
        audit.search_all(0.05, ("causal", "group")),
        audit.search_all(0.05, ("causal",), max_size=1),
    ]


def test_a_saved_result_is_read_back_as_it_was(tmp_path: Path) -> None:
    for number, result in enumerate(measured()):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(result.to_dict()))
        again = read_result(path)
        assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())
        assert [type(each) for each in again.scores] == [type(each) for each in result.scores]
        for mine, other in zip(result.searches, again.searches, strict=True):
            assert mine.found == other.found
            assert [each.against for each in other.minimal_sets] == [
                each.against for each in mine.minimal_sets
            ]


def test_what_is_only_said_where_it_is_used_is_read_back() -> None:
    result = demo_audit().score([["race"]], ["causal"])
    region = Region(("age > 40", "sex = female"), 0.5, 0.4, 0.6, 0.2, 2.5, 300)
    score = replace(
        result.scores[0],
        regions=(region,),
        placebo=Placebo(0.1, 0.05, 0.2),
        output="limit",
        distance="relational",
        scale=(0.0, 500.0),
        population="rows",
        counterfactuals="within",
    )
    noise = Noise(300, 3, 0.01, 0.001, 0.03, 0.99)
    full = replace(result, scores=(score,), noise=noise, data={"rows": 7})
    again = result_from_dict(json.loads(json.dumps(full.to_dict())))
    assert again.scores[0].to_dict() == score.to_dict()
    assert replace(again.scores[0], score=0, low=0, high=0, direction=(), flip_rate=0) == replace(
        score, score=0, low=0, high=0, direction=(), flip_rate=0
    )
    assert again.noise == noise
    assert again.data == {"rows": 7}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no such file"),
        ("{", "can't be read as JSON"),
        ("[1]", "no result of Themis"),
        ('{"themis": "9", "scores": [], "format": 2}', "has format 2"),
        ('{"themis": "9", "scores": [{"measure": "group"}], "format": 1}', "is damaged"),
    ],
)
def test_a_file_that_is_no_result_is_said_to_be_none(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RequestError) as caught:
        read_result(path)
    assert problem in str(caught.value)
