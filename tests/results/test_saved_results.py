"""Saved results: the JSON of every command there and back, and edited files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests import report_results as samples
from tests.projects import enter, run, write_project
from themis.errors import RequestError
from themis.results.saved import read_result, result_from_dict
from themis.show.terminal.results import render_checks


@pytest.mark.parametrize("name", ["check", "everything", "audit", "apparent", "outcomes"])
def test_a_saved_result_is_read_back_as_it_was(name: str) -> None:
    result = samples.SAMPLES[name]()
    again = samples.saved(result)
    assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())
    assert [type(each) for each in again.scores] == [type(each) for each in result.scores]
    for mine, other in zip(result.searches, again.searches, strict=True):
        assert mine.found == other.found
        assert [e.against for e in other.minimal_sets] == [e.against for e in mine.minimal_sets]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "no such file"),
        ("{", "can't be read as JSON"),
        ("[1]", "no result of Themis"),
        ('{"themis": "9", "scores": [], "format": 3}', "has format 3"),
        ('{"themis": "9", "scores": [], "format": 1}', "has format 1, this Themis reads format 2"),
        ('{"themis": "9", "scores": [{"measure": "group"}], "format": 2}', "score: is missing"),
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


# Files that were edited -------------------------------------------------------------------
CHECK = '[[checks]]\nagainst = ["race"]\nmax_score = 0.1\n'
SEARCH = "[[checks]]\nsearch = true\nmax_score = 0.2\n"


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The JSON of a result with scores, searches and checks, in a folder with its subject."""
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, extra=CHECK + SEARCH)
    assert run("check", "-o", "good.json").exit_code == 1
    assert run("score", "-o", "after.json", "--error", "0.2").exit_code == 0
    return json.loads((tmp_path / "good.json").read_text())


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("scores", 0, "score"), "abc", "scores[0].score: must be a valid number, got 'abc'"),
        (("scores", 0, "score"), math.nan, "scores[0].score: must be a finite number, got nan"),
        (("scores", 0, "against"), "race", "scores[0].against: must be a list, got 'race'"),
        (
            ("scores", 0, "measure"),
            "mine",
            "scores[0].measure: must be 'causal', 'group' or",
        ),
        (("scores",), 5, "scores: must be a list, got 5"),
        (("schema", "inputs"), 5, "schema.inputs: must be an object, got 5"),
        (("schema", "inputs", "race"), 5, "schema.inputs.race: "),
        (("search", "threshold"), None, "search.threshold: must be a valid number, got nothing"),
        (("search", "sets", 0, "decision"), "?", "search.sets[0].decision: must be 'above'"),
        (("checks", 0, "verdict"), "fine", "checks[0].verdict: must be 'holds'"),
    ],
)
@pytest.mark.slow
@pytest.mark.some_slow(core=1, full=2)
def test_what_no_result_can_hold_is_refused_with_its_place(
    saved: Any, place: tuple[Any, ...], value: Any, words: str
) -> None:
    put(saved, place, value)
    Path("edited.json").write_text(json.dumps(saved))
    for command in (
        "report edited.json",
        "diff good.json edited.json",
        "diff edited.json good.json",
        "replay edited.json",
        "check --baseline edited.json",
    ):
        done = run(*command.split())
        assert done.exit_code == 2, (command, done.output)
        assert f"edited.json: {words}" in done.stderr, command
        assert "; measure again, or restore it" in done.stderr
    assert not list(Path().glob("*.html"))


def test_all_faults_of_a_file_are_told_at_once_with_their_places() -> None:
    data = json.loads(json.dumps(samples.known_outcomes().to_dict()))
    put(data, ("outcomes",), None)
    put(data, ("scores", 0, "witnesses"), None)
    put(data, ("scores", 1, "confidence"), "0")
    put(data, ("seed",), 1.5)
    with pytest.raises(RequestError) as caught:
        result_from_dict(data)
    assert len(caught.value.mistakes) == 4
    for place in ("outcomes", "scores[0].witnesses"):
        assert f"{place}: must be a list, got nothing" in str(caught.value)


def put(data: Any, place: tuple[Any, ...], value: Any) -> None:
    *path, last = place
    for key in path:
        data = data[key]
    data[last] = value


# Endings and notes ---------------------------------------------------------------------------


def test_a_note_of_a_later_version_is_kept_and_shown_by_its_code(saved: Any) -> None:
    saved["notes"] = [{"code": "later-code", "values": {"share": 0.1}}]
    Path("later.json").write_text(json.dumps(saved))
    result = read_result("later.json")
    assert result.to_dict()["notes"] == saved["notes"]
    assert "warning: later-code (share 0.1)" in render_checks(result)


def test_a_result_nested_deep_is_refused_in_one_line(saved: Any) -> None:
    saved["source"]["deep"] = "here"
    nested = "[" * 100_000 + "]" * 100_000
    Path("deep.json").write_text(json.dumps(saved).replace('"here"', nested))
    done = run("report", "deep.json")
    assert done.exit_code == 2
    said = "error[result]: deep.json: is nested too deep; measure again, or restore it"
    assert done.stderr.splitlines() == [said]
