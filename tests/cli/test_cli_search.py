"""Does `themis search` say which sets there are, whom they hurt, and what is not known?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.projects import FAIR, SMALL, Project, run
from tests.report_results import result
from tests.results.test_checks import SCORE, SEARCHED
from themis.events import Activity, Began, Progress, SearchProgress
from themis.results.model import Result, SearchResult
from themis.results.notes import Ending
from themis.show.reports.ci import render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.progress import ProgressLine
from themis.show.terminal.results import render_search
from themis.show.words.searches import search_headline

SEARCH = ("search", "--threshold", "0.1")


def words(text: str) -> str:
    return " ".join(text.split())


def found(*options: str) -> Any:
    """The result as JSON, which has no NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(run(*SEARCH, "--json", *options).stdout, parse_constant=refuse)


# Done: 0 ----------------------------------------------------------------------------------
def test_search_says_which_sets_and_whom_they_hurt(project: Project) -> None:
    project()
    done = run(*SEARCH, "-v")
    assert done.exit_code == 0, done.output
    shown = words(done.stdout)
    assert shown.startswith(
        "2 minimal combinations of characteristics change the decision for about 10 %"
    )
    for said in (
        *("green → purple: ", "race green purple decision 1 0 both: sex "),
        "15 combinations of 4 characteristics: ",
        "every set listed is above 5 %, and no set above 15 % is missing",
    ):
        assert said in shown


def test_the_papers_search_is_not_said_to_be_certified(project: Project) -> None:
    project()
    paper = ("--stopping", "paper", "--among", "race,sex")
    assert "that this list is right is not certified" in words(run(*SEARCH, *paper, "-v").stdout)
    assert found(*paper)["search"]["sets_tested"] == 2
    assert found(*paper, "--no-prune")["search"]["sets_tested"] == 3


# Wrong usage: 2 ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        (["--threshold", "2", "--max-size", "0"], ["--threshold: must lie", "--max-size: must"]),
        (["--threshold", "0.1", "--among", "rase"], ["--among: there is no", "mean 'race'?"]),
        (["--threshold", "0.1", "--no-prune"], ["--no-prune: the certified", "--stopping paper"]),
        (["--threshold", "0.1", "--error", "7"], ["--error: must lie"]),
        (["--threshold", "0.1", "-o", "no/where.json"], ["--output: there is no folder"]),
    ],
)
def test_wrong_requests_run_nothing(
    project: Project, arguments: list[str], mistakes: list[str]
) -> None:
    project(f"open('ran', 'w').close()\n{FAIR}")
    done = run("search", *arguments)
    assert done.exit_code == 2
    assert all(mistake in done.stderr for mistake in mistakes)
    assert not Path("ran").exists()


# A failing subject: 3; a budget that ends: 4; an interrupt: 130 -------------------------------
def test_allowed_failures_leave_sets_undecided(project: Project) -> None:
    body = "if person['income'] >= 50: raise ValueError\nreturn 1"
    project(body, inputs=SMALL, subject="max_failures = 0.9")
    done = run(*SEARCH, "-v")
    assert done.exit_code == 4
    for said in ("undecided", "executions failed", "except those undecided", "failed: crash"):
        assert said in words(done.stdout)


@pytest.mark.parametrize("budget", [1, 30, 1500, 3000])
def test_json_of_any_budget_is_json(project: Project, budget: int) -> None:
    project()
    data = found("--max-executions", str(budget))
    assert data["executions"] <= budget
    ended = run(*SEARCH, "-q", "--max-executions", str(budget))
    assert (ended.exit_code == 0) == (data["stopped"] == "done")


def test_markup_and_control_characters_in_names_are_shown_literally(project: Project) -> None:
    inputs = '"[bold]r\\u001b[31m" = ["[red]x[/red]", "b\\nc"]\nage = { min = 0, max = 9 }\n'
    project("return int('red' in str(person))", inputs=inputs)
    shown = run(*SEARCH, "-v").stdout
    assert "[bold]r\\x1b[31m" in shown
    assert re.search(r" \[red\]x\[/red\]  b\\nc\n", shown)
    assert "\x1b" not in shown


# Rendering of made-up results -------------------------------------------------------------
def searched(*found: str, **changes: Any) -> SearchResult:
    sets = {"found": (found,), "minimal_sets": (replace(SCORE, against=found),)}
    return replace(SEARCHED, **{**sets, **changes})


@pytest.mark.parametrize("shown", [render_search, render_junit, render_page, render_markdown])
@pytest.mark.parametrize("undecided", [(), (("age",),)])
def test_nothing_is_said_of_0_combinations(
    shown: Callable[[Result], str], undecided: tuple[tuple[str, ...], ...]
) -> None:
    ended = Ending.BUDGET
    search = searched("race", undecided=undecided, stopped=ended)
    unmeasured = replace(SCORE, samples=0, stopped=ended)
    told = words(shown(result(unmeasured, command="search", searches=(search,), stopped=ended)))
    assert "0 combinations" not in told
    assert "wider than asked" not in told, "it was not measured"


def test_a_set_with_an_undecided_part_is_not_called_minimal() -> None:
    ended = searched("race", stopped=Ending.BUDGET)
    assert "all combinations are decided" in search_headline(ended)
    for undecided, said in (("age", "1 minimal combination "), ("race", "1 combination ")):
        search = searched("race", "sex", undecided=((undecided,),))
        assert said in search_headline(search)


def test_live_line_shows_what_was_heard_last() -> None:
    line = ProgressLine(enabled=False)
    line.listen(SearchProgress("causal", ("race", "sex"), 12, 4, 511, 39_453))
    assert line.line().plain.startswith("causal 12 of 511 sets · 4 found · 39,453 executions · ")
    assert line.line().plain.endswith("last race,sex")
    line.listen(Began(lambda: Activity("explanations", 50_000, planned=9)))
    assert "4 found · explaining, up to 9 to go · 50,000 exec" in line.line().plain
    line.listen(Began(lambda: Activity("sampling", 60_000)))
    line.listen(Progress("group", ("race",), 5, 10, 0.1, 0.2, 60_000))
    assert line.line().plain.startswith("group race · sampling 5 of 10")


# Outputs by name --------------------------------------------------------------------------
TERMS = """\
[outputs.granted]
at = "/granted"
favourable = [1]
[outputs.limit]
at = "/limit"
min = 0
max = 100
distance = "threshold"
tolerance = 5
"""
BANK = "return {'granted': 1, 'limit': 10 if person['race'] == 'green' else 60}"


def test_the_headline_says_which_output_was_searched(project: Project) -> None:
    project(BANK, inputs=SMALL, extra=TERMS)
    assert found("--of", "limit")["search"]["output"] == "limit"
    for options, said in (
        (("--of", "limit"), "1 minimal combination of characteristics changes limit by more than"),
        ((), "No combination of characteristics changes granted for"),
    ):
        assert run(*SEARCH, "-q", *options).stdout.startswith(said)
    done = run(*SEARCH, "-q", "--of", "limit", "--measure", "group")
    assert "has groups whose means of limit differ" in done.stdout
    assert "99 % confidence): race" in done.stdout


def test_an_output_that_is_not_there_is_said_with_the_option(project: Project) -> None:
    project(BANK, inputs=SMALL, extra=TERMS)
    done = run(*SEARCH, "--of", "limits")
    assert done.exit_code == 2
    unknown = "error[unknown-output]: --of: there is no output"
    assert done.stderr == f"{unknown} 'limits'; did you mean 'limit'?\n"
    project(FAIR, inputs=SMALL)
    assert run(*SEARCH, "--of", "foo").stderr == (
        f"{unknown} 'foo'; declare it in the file as [outputs.foo], or leave --of out\n"
    )
