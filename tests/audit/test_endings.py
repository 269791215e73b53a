"""Is it said truly how a run ended, what was not measured, and what a number rests on?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

import themis
from tests.projects import BIASED, Project, process, run
from themis.results.comparison import compare
from themis.results.model import Result
from themis.results.saved import read_result, result_schema
from themis.show.parts.cautions import cautions
from themis.show.reports.ci import render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.method import facts
from themis.show.terminal.results import render_differences
from themis.show.words.explanations import counted_people
from themis.show.words.verdicts import verdict


def said(done: Any) -> str:
    """What stands on stdout, as if the terminal were wide."""
    return " ".join(done.stdout.split())


def junit_counts(result: Result) -> tuple[str, str]:
    """The numbers of tests and of errors."""
    suites = ElementTree.fromstring(render_junit(result))
    return suites.attrib["tests"], suites.attrib["errors"]


# A budget that ends between scores --------------------------------------------------------


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("executions", ["1", "600"])
def test_scores_that_the_budget_does_not_reach_are_named_and_end_with_4(
    project: Project, executions: str
) -> None:
    project()
    done = run("score", "--max-executions", executions, "-o", "result.json", "-v")
    assert done.exit_code == 4
    data = json.loads(Path("result.json").read_text())
    jsonschema.validate(data, result_schema())
    missing = [each for each in data["scores"] if not each["samples"]]
    assert len(data["scores"]) == 4
    assert {(each["stopped"], each["low"], each["high"]) for each in missing} == {("budget", 0, 1)}
    text, quiet = said(done), said(run("score", "--max-executions", executions, "-q"))
    assert f"inconclusive: {len(missing)} of 4 scores: not measured, because the budget end" in text
    assert "max_executions =" not in text  # that of the file may be larger
    for each in missing:
        name = f"The {each['measure']} score of {each['against'][0]} is unknown: the budget ended"
        assert name in text
        assert name in quiet


# What is exact, and what is not -----------------------------------------------------------
CHECKS = """
[[checks]]
against = ["race"]
max_score = 0.05
"""


@pytest.mark.parametrize(
    ("body", "options"), [(BIASED, ["--max-executions", "1"]), ("raise ValueError", [])]
)
def test_checks_without_evidence_are_not_called_exact(
    project: Project, body: str, options: list[str]
) -> None:
    project(body, extra=CHECKS)
    shown = said(run("check", *options, "-o", "result.json"))
    assert "exact" not in shown
    for text in (shown, render_markdown(read_result("result.json"))):
        assert "No check is decided." in text


# Failures and odd outputs -----------------------------------------------------------------
ONE_IN_HUNDRED = "if person['income'] == 7: raise ValueError\nreturn 1"
SMALL_DOMAIN = """\
race = { values = ["green", "purple"], protected = true }
income = { min = 0, max = 99 }
"""


def test_the_same_output_is_not_claimed_of_executions_that_failed(project: Project) -> None:
    for body, output in (
        (ONE_IN_HUNDRED, "1, in every execution that did not fail"),
        ("return 1", "1, in all 200 executions"),
    ):
        project(body, inputs=SMALL_DOMAIN, subject="max_failures = 0.05")
        shown = said(run("score"))
        assert f"the same output, {output}" in shown
        assert ("failed: crash" in shown) == (body == ONE_IN_HUNDRED)


# Interrupts -------------------------------------------------------------------------------
INTERRUPTED = "if person['income'] == 50: os.kill(os.getpid(), 2)\nreturn person['income'] > 40"


@pytest.mark.slow
def test_an_interrupt_while_every_input_is_run_shows_the_search_so_far(project: Project) -> None:
    project(INTERRUPTED, inputs=SMALL_DOMAIN, extra="[[checks]]\nsearch = true\nmax_score = 0.1")
    done = process("search", "--threshold", "0.1", "-o", "result.json")
    assert done.returncode == 130
    assert "Not finished (it was interrupted)" in said(done)
    assert "3 combinations of 2 characteristics: 0 tested, 3 not checked" in said(done)
    assert read_result("result.json").searches[0].stopped == "interrupted"
    checked = process("check")
    assert checked.returncode == 130
    assert "undecided: it was interrupted with 3 combinations not checked" in said(checked)


@pytest.mark.parametrize("options", [[], ["-q"]])
@pytest.mark.slow
def test_an_interrupt_before_the_first_score_is_said(project: Project, options: list[str]) -> None:
    project("os.kill(os.getpid(), 2)\nreturn 1", inputs=SMALL_DOMAIN)
    done = process("score", *options)
    assert done.returncode == 130
    assert done.stdout == "nothing was measured: it was interrupted\n"


def test_without_the_command_an_interrupted_search_is_an_interrupt() -> None:
    def decide(person: dict[str, Any]) -> int:
        if person["age"] == 5:
            raise KeyboardInterrupt
        return 1

    with pytest.raises(KeyboardInterrupt):
        themis.Audit(decide, themis.Schema(sex=["f", "m"], age=range(9))).search(0.1)


# Runs that fail ---------------------------------------------------------------------------
def test_a_failed_run_says_so_in_the_result_and_in_reports(project: Project) -> None:
    project("raise ValueError")
    assert run("score", "-o", "result.json").exit_code == 3
    result = read_result("result.json")
    assert result.stopped == "failed"
    jsonschema.validate(result.to_dict(), result_schema())
    assert junit_counts(result) == ("1", "1")
    assert "**Nothing was measured: the subject failed too often.**" in render_markdown(result)
    assert verdict(result).sentence == "Nothing was measured: the subject failed too often"
    assert dict(facts(result))["Ended"] == "the subject failed too often"
    assert "before: the subject failed too often" in map(str, compare(result, result).open)
    project(ONE_IN_HUNDRED, inputs=SMALL_DOMAIN)  # beside scores
    run("score", "-o", "scores.json")
    result = read_result("scores.json")
    assert (result.stopped, verdict(result).state) == ("failed", "open")
    assert {each.kind for each in cautions(result)} >= {"failed", "ended early"}
    assert junit_counts(result) == ("3", "1")


# Who is counted, and one of them ----------------------------------------------------------
def test_people_with_a_failed_execution_are_not_counted_among_those_who_lose() -> None:
    def decide(person: dict[str, Any]) -> int:
        return int(1 // (person["age"] - 24 * (person["race"] == "c")) > 0 or person["race"] > "a")

    schema = themis.Schema(race=["a", "b", "c"], age=range(1, 26))
    score = themis.Audit(decide, schema, max_failures=0.5).causal("race")
    counted = set()
    for harm in score.direction:
        first, second = (each["race"] for each in (harm.change_from, harm.change_to))
        both = [age for age in range(1, 26) if age != 24 or "c" not in (first, second)]
        lost = sum(
            decide({"race": first, "age": age}) > decide({"race": second, "age": age})
            for age in both
        )
        assert (harm.lost, harm.contexts) == (pytest.approx(lost / len(both)), len(both))
        counted.add(harm.contexts)
    assert counted == {24, 25}
    assert counted_people(score) == "24 to 25 test inputs for each change"


def test_a_person_without_any_comparison_is_not_in_the_flip_rate() -> None:
    def decide(person: dict[str, Any]) -> int:
        if person["age"] == 7 and person["sex"] == "m":
            raise ValueError
        return int(person["age"] < 12 and person["sex"] == "f")

    schema = themis.Schema(sex=["f", "m"], age=range(25))
    score = themis.Audit(decide, schema, max_failures=0.5).causal("sex")
    (harm,) = score.direction
    assert (harm.lost, harm.contexts) == (pytest.approx(11 / 24), 24)
    assert score.flip_rate == pytest.approx(11 / 24)
    assert counted_people(score) == "24 test inputs, each tried with every value"


def test_the_only_group_of_all_inputs_is_no_distance_from_itself() -> None:
    schema = themis.Schema(sex=["f"], age=range(9))
    score = themis.Audit(lambda each: 1 // each["age"], schema, max_failures=1.0).group("sex")
    assert (score.unknown, score.low, score.high) == (1, 0.0, 0.0)


def test_results_without_scores_are_not_compared() -> None:
    full = themis.Audit(lambda _: 1, themis.Schema(sex=["f", "m"], age=range(9))).score([["sex"]])
    empty = replace(full, scores=())
    for before, after, missing in (
        (empty, empty, {"before: nothing was measured", "after: nothing was measured"}),
        (full, empty, {"after: nothing was measured"}),
        (empty, full, {"before: nothing was measured"}),
    ):
        found = compare(before, after)
        assert missing <= set(map(str, found.open))
        text = render_differences(found)
        assert "Nothing was compared" in text
        assert "exact" not in text
    assert "Nothing was sampled." in render_differences(compare(full, full))
