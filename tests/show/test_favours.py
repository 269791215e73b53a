"""Are rates that tell nothing, as no output was favourable or every one was, called that?"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import themis
from tests import report_results as samples
from tests.projects import enter, run, write_project
from tests.report_results import plain
from themis.results.model import Result
from themis.results.notes import Note
from themis.results.parts import Group
from themis.show.reports.ci import render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_quiet, render_result
from themis.show.words.wording import favour_remedy

WRITE = "write favourable = [1]"


def rates(rate: float, **changes: Any) -> Any:
    groups = tuple(
        Group({"race": each}, rate, max(0, rate - 0.1), min(1, rate + 0.1), 69)
        for each in ("green", "purple")
    )
    ends = {"score": 0.0, "low": 0.0, "high": 0.096}
    return samples.group(against=("race",), groups=groups, **{**ends, **changes})


def of(*scores: Any, **changes: Any) -> Result:
    note = Note.of("no-favourable-output", outputs=[1, 0], favourable=["1"])
    return samples.result(*scores, **{"notes": (note,), **changes})


def everywhere(result: Result) -> dict[str, str]:
    """What each format says, on one line."""
    shown = {
        "terminal": render_result(result, file=io.StringIO(), width=100, everything=True),
        "quiet": render_quiet(result, file=io.StringIO()),
        "page": render_page(result),
        "markdown": render_markdown(result),
        "junit": render_junit(result),
    }
    return {name: " ".join(plain(text).split()) for name, text in shown.items()}


@pytest.mark.parametrize("name", ["terminal", "quiet", "page", "markdown", "junit"])
def test_no_favourable_output_is_said_instead_of_equal_rates(name: str) -> None:
    text = everywhere(of(rates(0)))[name].replace("&#91;", "[").replace("&#93;", "]")
    assert "o output was favourable, so rates of favourable decisions say nothing" in text
    assert WRITE in text
    assert "No difference found" not in text
    assert "ruled out" not in text


@pytest.mark.parametrize(
    ("outputs", "favourable", "remedy"),
    [
        ([1, 0], ["1"], ": write favourable = [1]"),
        (["1", "0"], [1], ': write favourable = ["1"]'),
        ([True, False], ["True"], ": write favourable = [true]"),
        (["Yes", "No"], ["yes"], ': write favourable = ["Yes"]'),
        (["a", "b"], ["1"], ""),
    ],
)
def test_what_to_write_is_what_looks_the_same(
    outputs: list[Any], favourable: list[Any], remedy: str
) -> None:
    assert favour_remedy({"outputs": outputs, "favourable": favourable}) == remedy


def test_an_assertion_says_it_once_and_rules_nothing_out() -> None:
    audit = themis.Audit(
        lambda person: int(person["age"] > 3),
        themis.Schema(sex=["f", "m"], age=themis.Integers(0, 10**6)),
        favourable=["1"],
    )
    with pytest.raises(themis.InconclusiveError) as error:
        audit.group("sex").assert_below(0.05)
    text = " ".join(str(error.value).split())
    assert "No output was favourable, so rates of '1' say nothing about sex" in text
    assert "ruled out" not in text


def test_a_search_for_groups_finds_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    path = write_project(tmp_path, "return int(person['race'] == 'green')")
    path.write_text(path.read_text().replace("favourable = [1]", 'favourable = ["1"]'))
    done = run("search", "--threshold", "0.1", "--measure", "group", "-q")
    said = " ".join(done.stdout.split())
    assert "No output was favourable, so rates of '1' say nothing about any" in said
    assert WRITE in said
