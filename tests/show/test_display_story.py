"""Does a terminal tell the whole story in order: verdict, doubts, bars, people, in any width?"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import themis
from tests.projects import enter, run
from tests.report_results import notes
from tests.show.test_display import causal, group, result, text
from themis.results.model import CheckResult, Score
from themis.results.notes import Ending
from themis.results.parts import Group
from themis.show.terminal.checks import limit_text, render_checks
from themis.show.terminal.parts import IntervalBar, Sentence, make_console, render
from themis.show.terminal.results import render_result
from themis.show.terminal.searches import render_search
from themis.show.words.headlines import interval
from themis.show.words.verdicts import clauses
from themis.show.words.wording import PLAIN

CHECK = CheckResult(
    name="causal race at most 0.05", measure="causal", against=("race",), search=False,
    max_score=0.05, confidence=0.99, verdict="violated", score=0.113, low=0.063, high=0.163,
)  # fmt: skip


def bar(width: int, **fields: Any) -> str:
    console = Console(file=io.StringIO(), width=width)
    (shown,) = IntervalBar(**fields).__rich_console__(console, console.options)
    assert isinstance(shown, Text)
    return shown.plain


# --- verdicts -----------------------------------------------------------------------------


FAIR = causal(against=("sex",), score=0.0, low=0.0, high=0.02)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([causal()], "The decision changes with race (for 11.3 % of test inputs)"),
        (
            [causal(), causal(against=("sex", "age")), causal(against=("job",))],
            "The decision changes with race (for 11.3 % of test inputs), sex and age together "
            "(11.3 %) and job (11.3 %)",
        ),
        (
            [causal(), FAIR],
            "The decision changes with race (for 11.3 % of test inputs); "
            "no difference found for sex (an effect above 2.0 % is ruled out)",
        ),
        ([FAIR], "No difference found for sex (an effect above 2.0 % is ruled out)"),
        (
            [causal(score=0.008, low=0.0, high=0.058), FAIR],  # seen, and not certain
            "No difference found for sex (an effect above 2.0 % is ruled out); "
            "undecided for race (changes seen: 0.8 %, at most 5.8 %)",
        ),
        (
            [FAIR, group(against=("sex",), low=0.0)],
            "No difference found for sex "
            "(an effect above 2.0 % and a gap above 25.0 points are ruled out)",
        ),
        (
            [replace(FAIR, stopped=Ending.BUDGET), replace(FAIR, against=("job",), samples=0)],
            "Undecided for sex and job",
        ),
        (
            [group(), group(against=("race", "sex"), score=0.4, low=0.25, high=0.5)],
            "Rates of favourable decisions differ by race and sex together (40.0 points) and race "
            "(20.0 points)",
        ),
        (
            [group(), group(against=("race", "sex"))],  # the pair shows nothing that race does not
            "Rates of favourable decisions differ by race (20.0 points)",
        ),
        (
            [causal(), replace(FAIR, method="exact", high=0.0)],
            "The decision changes with race (for 11.3 % of test inputs); "
            "no difference found for sex (exactly none)",
        ),
        (
            [causal(lower_bound=True, high=1.0), group()],
            "The decision changes with race (for at least 6.3 % of test inputs); "
            "rates of favourable decisions differ by race (20.0 points)",
        ),
        (
            [group(), group(against=("sex",), low=0.0)],
            "Rates of favourable decisions differ by race (20.0 points); "
            "no difference found for sex (a gap above 25.0 points is ruled out)",
        ),
        (
            [causal(output="loan"), causal(output="rate", against=("sex",))],
            "The output loan changes with race (for 11.3 % of test inputs); "
            "the output rate changes with sex (for 11.3 % of test inputs)",
        ),
        (
            [group(output="sum", statistic="mean", scale=(0, 1000))],
            "Means of sum differ by race (200)",
        ),
    ],
)
def test_the_verdict_says_what_is_certain_and_no_more(scores: list[Score], said: str) -> None:
    assert clauses(scores, PLAIN) == said


def test_one_set_begins_with_its_verdict() -> None:
    shown = text(result(causal(), group())).splitlines()
    assert shown[0].startswith("For 11.3 % of test inputs the decision changes when only race")
    assert text(result(causal())).startswith("For 11.3 % of test inputs the decision changes when")


DOUBTFUL: dict[str, Any] = {
    "failures": {"crash": {"count": 3, "input": {"age": 30}, "message": "no"}},
    "notes": notes("no output was favourable"),
}


@pytest.mark.parametrize("scores", [[causal(), FAIR], [causal()]])
def test_doubts_come_before_the_details_and_once(scores: list[Score]) -> None:
    shown = text(result(*scores, **DOUBTFUL))
    assert shown.count("failed: crash 3 times") == 1
    assert shown.count("warning: no output was favourable") == 1
    assert shown.index("11.3 %") < shown.index("failed: ") < shown.index("Pairs who differ")


# --- bars ---------------------------------------------------------------------------------


def test_a_limit_is_a_line_across_the_bar() -> None:
    assert bar(10, low=0.3, high=0.5) == "███▒▒·····"
    assert bar(10, low=0.3, high=0.5, limit=0.1) == "█┃█▒▒·····"
    assert bar(10, low=0.3, high=0.5, limit=0.8) == "███▒▒···┃·"
    assert bar(10, low=0.3, high=0.5, limit=1.0) == "███▒▒····┃"


@pytest.mark.parametrize("width", [60, 80])
def test_checks_that_do_not_hold_show_the_limit_in_their_bar(width: int) -> None:
    unsure = replace(
        CHECK, verdict="not enough evidence", low=0.03, name="b", reasons=notes("too near")
    )
    holds = replace(CHECK, verdict="holds", low=0.0, high=0.02, name="c")
    checked = result(causal(), checks=(CHECK, unsure, holds))
    lines = render_checks(checked, file=io.StringIO(), width=width).splitlines()
    assert sum("┃" in line for line in lines) == 2
    assert max(map(cell_len, lines)) <= width


# --- people -------------------------------------------------------------------------------


def test_commands_to_be_copied_stay_whole_within_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "60")
    shell = "test $0 = green && echo 1 || echo 0 && true && true && true && true && true"
    (tmp_path / "themis.toml").write_text(
        'version = 1\n[subject]\nkind = "command"\n'
        f'command = ["sh", "-c", "{shell}", "{{race}}", "{{age}}"]\n'
        '[inputs]\nrace = ["green", "purple"]\nage = { min = 1, max = 4 }\n'
    )
    shown = run("search", "--threshold", "0.1", "-v", "--no-cache").stdout
    assert re.search(r"^  \$ .*sh -c '.*true' green \d$", shown, re.MULTILINE)


# --- group scores -------------------------------------------------------------------------


# --- narrow tables ------------------------------------------------------------------------
@pytest.mark.parametrize("width", range(76, 101, 4))
def test_no_head_interval_or_word_of_a_table_is_cut(width: int) -> None:
    scores = [
        replace(each, output="interest rate", against=("gender", "ethnicity"))
        for each in (causal(), group(), group(statistic="mean", scale=(0.0, 2371.0)))
    ]
    lines = text(result(*scores, causal()), width=width).split("─")[0].splitlines()
    table = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    assert all(f" {word}" in table for word in ("measure", "score", "interest", "rate", "means"))
    assert all(interval(each) in table for each in scores)


# --- lines --------------------------------------------------------------------------------


def lines_of(sentence: Sentence, width: int) -> list[str]:
    return render(iter([sentence]), make_console(io.StringIO(), width=width)).splitlines()


def test_a_headline_breaks_before_its_interval_only_where_its_start_fits() -> None:
    said = "the groups of race are 17.4 points apart in favourable decisions (99 % confidence)"
    assert lines_of(Sentence(said, break_before=" ("), 70)[1] == "(99 % confidence)"
    assert lines_of(Sentence(said, break_before=" ("), 60) == [
        "the groups of race are 17.4 points apart in favourable",
        "decisions (99 % confidence)",
    ]


@pytest.mark.parametrize("width", range(30, 60, 3))
def test_a_number_is_not_parted_from_its_unit_or_name(width: int) -> None:
    said = "212,000 executions · 150 answered from the cache · < 0.1 s · 12.5 % · seed 42"
    for line in lines_of(Sentence(said), width):
        assert not line.endswith(("·", "seed", "<", "12.5", "0.1"))


def test_a_word_with_a_hyphen_is_whole_in_a_failed_test() -> None:
    named = group(
        groups=(
            Group({"gender": "non-binary"}, 0.5, 0.45, 0.55, 702),
            Group({"gender": "male"}, 0.3, 0.25, 0.35, 702),
        )
    )
    answer = replace(CHECK, name="group gender at most 0.05", measure="group")
    lines = limit_text(answer, named).splitlines()
    assert any(line.split()[:1] == ["non-binary"] for line in lines)
    assert max(map(cell_len, lines)) <= 72


def test_a_search_draws_its_threshold() -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(10))
    audit = themis.Audit(lambda p: p["income"] > (3 if p["race"] == "green" else 5), schema)
    shown = render_search(audit.search_all(0.1), file=io.StringIO(), width=80)
    assert render_result(audit.search_all(0.1), file=io.StringIO(), width=80)
    assert all("┃" in line for line in shown.splitlines() if "█" in line)
