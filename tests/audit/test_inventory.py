"""Does every result say what the subject answered, how often, and what counts as what?"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.external import write_command
from tests.projects import run
from themis.results.model import Result
from themis.results.saved import result_from_dict
from themis.show.reports.annex import render_annex
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result

SCHEMA = themis.Schema(sex=["f", "m"], x=range(100))


def third(person: dict[str, Any]) -> str:
    if person["x"] == 3:
        return "perhaps"
    return "yes" if person["x"] > 5 + (person["sex"] == "f") else "no"


def measured(function: Any = third, **options: Any) -> Result:
    audit = themis.Audit(function, SCHEMA, **{"favourable": ["yes"], **options})
    return audit.score([["sex"]])


IN_FULL = partial(render_result, everything=True)


@pytest.mark.parametrize("render", [render_page, render_annex, render_markdown, IN_FULL])
def test_a_third_text_is_counted_and_said_to_be_unfavourable(render: Any) -> None:
    result = measured()
    (found,) = result.outputs
    counts = [(each.value, each.count, each.favourable) for each in found.counts]
    assert counts == [("yes", 187, True), ("no", 11, False), ("perhaps", 2, False)]
    assert result_from_dict(json.loads(json.dumps(result.to_dict()))).outputs == result.outputs
    text = " ".join(render(result).replace("&#39;", "'").replace("&#x27;", "'").split())
    assert "'yes' 187 (favourable), 'no' 11, 'perhaps' 2" in text
    assert "only 'yes' counted as favourable, and 'no' and 'perhaps' did not" in text


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({"favourable": ["yes", "perhaps"]}, True),
        ({"favourable": ["yes", "perhaps", "no"]}, False),
        ({"labels": {"yes": ["yes", "perhaps"], "no": ["no"]}}, False),
        ({"labels": {"yes": "yes", "no": "no", "open": "perhaps"}}, False),
        ({"outputs": [themis.Output(name="decision", favourable=["yes"])]}, True),
    ],
)
def test_only_what_nothing_declares_is_warned_of(options: dict[str, Any], warned: bool) -> None:
    codes = [note.code for note in measured(**options).notes]
    assert ("undeclared-outputs" in codes) == warned


def test_two_outputs_that_are_spelled_in_three_ways_are_two() -> None:
    result = measured(lambda person: ["yes", "Yes", "no"][person["x"] % 3])
    assert "undeclared-outputs" not in [note.code for note in result.notes]
    assert result.outputs[0].distinct == 2


def test_many_numbers_have_a_range_and_many_texts_are_cut() -> None:
    premium = themis.Output(name="premium", min=0, max=5000)
    (found,) = measured(lambda person: 100.5 + person["x"], outputs=[premium]).outputs
    assert (found.distinct, found.counts) == (100, ())
    assert (found.lowest, found.mean, found.highest) == (100.5, 150.0, 199.5)
    (found,) = measured(lambda person: f"{person['x'] // 2} {'x' * 999}").outputs
    assert len(found.counts) == 20
    assert found.others == 200 - 20 * 4
    assert all(len(str(each.value)) < 120 for each in found.counts)


def test_counts_are_the_same_whatever_a_cache_knew(tmp_path: Path) -> None:
    path = write_command(
        tmp_path, decide='case "$3" in *1) echo maybe;; *2) echo 0;; *) echo 1;; esac'
    )
    results = []
    for _ in range(2):
        run("score", str(path), "-o", str(tmp_path / "r.json"))
        results.append(json.loads((tmp_path / "r.json").read_text()))
    assert results[0]["executions"] > results[1]["executions"] == 0
    assert results[0]["outputs"] == results[1]["outputs"]
    assert {each["value"] for each in results[0]["outputs"][0]["counts"]} == {"0", "1", "maybe"}
