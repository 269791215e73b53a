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

from tests.projects import enter, run
from tests.report_results import notes
from tests.show.test_display import causal, group, result, text
from themis.results.model import CheckResult
from themis.results.parts import Group
from themis.show.terminal.parts import IntervalBar, Sentence, make_console, render
from themis.show.terminal.results import limit_text, render_checks
from themis.show.words.headlines import interval

CHECK = CheckResult(
    name="causal race at most 0.05", measure="causal", against=("race",), search=False,
    max_score=0.05, confidence=0.99, verdict="violated", score=0.113, low=0.063, high=0.163,
)  # fmt: skip


def bar(width: int, **fields: Any) -> str:
    console = Console(file=io.StringIO(), width=width)
    (shown,) = IntervalBar(**fields).__rich_console__(console, console.options)
    assert isinstance(shown, Text)
    return shown.plain


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
