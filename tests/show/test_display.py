"""Does the terminal say what was measured, and hold its shape whatever it is given?"""

from __future__ import annotations

import io
import itertools
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests import report_results as samples
from tests.clocks import Clock
from tests.projects import Project, run
from tests.report_results import causal, group, notes, result
from themis.events import Activity, Began, Progress, RowsRead
from themis.results.comparison import compare
from themis.results.model import CheckResult, Result
from themis.results.parts import Group, Harm, Witness
from themis.show.terminal import parts, progress
from themis.show.terminal.parts import IntervalBar, Sentence, make_console, render
from themis.show.terminal.progress import ProgressLine
from themis.show.terminal.results import (
    limit_text,
    render_checks,
    render_differences,
    render_result,
    render_search,
)
from themis.show.words.headlines import interval

PEOPLE = ({"race": "green", "age": 30}, {"race": "purple", "age": 30})
FAIR = causal(against=("sex",), score=0.0, low=0.0, high=0.02, direction=(), witnesses=())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def text(shown: Result, *, width: int = 80, everything: bool = True) -> str:
    shown = replace(shown, subject={"kind": "command"})
    return render_result(shown, file=io.StringIO(), width=width, everything=everything)


# Widths -----------------------------------------------------------------------------------
NASTY = (
    "[red]boo[/red]",
    "a\nb\tc",
    "\x1b[31mred",
    "日本語" * 30,
    "z" * 200,
    "",
    "🙂‍👩‍🚀",
    "\ud800",
    12,
    False,
)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_value_breaks_the_page(width: int) -> None:
    scores: list[Any] = []
    for first, second in itertools.pairwise(NASTY):
        name, long = f"x{first}", "n" * 60
        people = ({name: first, long: second}, {name: second, long: second})
        harm = Harm({name: first}, {name: second}, 0.5, 0.1, 10)
        pair = Witness(people, (str(first), second))
        scores.append(causal(against=(name, long), witnesses=(pair, pair), direction=(harm,) * 5))
        groups = tuple(Group({name: value}, 0.5, 0.4, 0.6, 10) for value in (first, second))
        scores.append(group(against=(name, long), groups=groups))
    shown = text(result(*scores, notes=notes("w" * 300)), width=width)
    assert max(cell_len(line) for line in shown.splitlines()) <= width
    assert "\x1b" not in shown
    assert "[red]boo" in shown


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80, 100])
def test_nothing_is_cut_and_no_line_is_too_long(width: int) -> None:
    long = causal(against=("a characteristic with long name", "another one"))
    page = text(result(causal(), group(), FAIR, long), width=width, everything=False)
    assert max(map(cell_len, page.splitlines())) <= width
    flat = " ".join(page.split())
    figures = ("11.3 %", "6.3 – 16.3", "20.0 pts", "15.0 – 25.0", "0.45 – 0.78", "at most 2.0")
    assert all(each in flat for each in figures)
    assert "…" not in page


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


@pytest.mark.parametrize("width", [40, 80])
def test_what_a_pair_differs_in_is_not_cut(width: int) -> None:
    """Else two values with the same beginning look the same."""
    one, other = ({"job": f"skilled worker in {place}", "age": 3} for place in ("mines", "shops"))
    pair = Witness((one, other), ("1", "0"))
    shown = text(result(causal(against=("job",), witnesses=(pair,))), width=width)
    assert "mines" in shown
    assert "shops" in shown
    long = Witness(({"job": "a" * 5_000}, {"job": "b"}), ("1", "0"))
    assert len(text(result(causal(against=("job",), witnesses=(long,))), width=width)) < 3_000


def test_of_very_many_sets_those_that_differ_are_not_left_out() -> None:
    calm = [replace(FAIR, against=(f"c{place}",)) for place in range(24)]
    page = text(result(*calm, causal()), everything=False)
    assert "■ decision changes" in page
    assert page.count("○ decision changes") == 19
    assert "… and 5 more sets: -v" in page


def lines_of(sentence: Sentence, width: int) -> list[str]:
    return render(iter([sentence]), make_console(io.StringIO(), width=width)).splitlines()


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_letters_of_two_columns_and_long_words_stay_within_the_lines(width: int) -> None:
    told = "女性の申請者 " * 9 + "x" * 100 + " أنثى " + "日本語" * 30
    lines = lines_of(Sentence(told, first="example: "), width)
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith(" " * 9) for line in lines[1:])
    assert "".join(lines).replace(" ", "") == f"example:{told}".replace(" ", "")


@pytest.mark.parametrize("width", range(30, 60, 3))
def test_a_number_is_not_parted_from_its_unit_or_name(width: int) -> None:
    said = "212,000 executions · 150 answered from the cache · < 0.1 s · 12.5 % · seed 42"
    for line in lines_of(Sentence(said), width):
        assert not line.endswith(("·", "seed", "<", "12.5", "0.1"))


def test_a_word_with_a_hyphen_is_whole_in_a_failed_test() -> None:
    groups = (Group({"gender": each}, 0.5, 0.45, 0.55, 702) for each in ("non-binary", "male"))
    answer = CheckResult(
        name="group gender at most 0.05", measure="group", against=("gender",), search=False,
        max_score=0.05, confidence=0.99, verdict="violated", score=0.2, low=0.15, high=0.25,
    )  # fmt: skip
    lines = limit_text(answer, group(groups=tuple(groups))).splitlines()
    assert any("non-binary" in line.split() for line in lines)
    assert max(map(cell_len, lines)) <= 72


def test_commands_to_be_copied_stay_whole_within_a_search(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shell = "test $0 = green && echo 1 || echo 0 && true && true && true && true && true"
    Path("themis.toml").write_text(
        'version = 1\n[subject]\nkind = "command"\n'
        f'command = ["sh", "-c", "{shell}", "{{race}}", "{{age}}"]\n'
        '[inputs]\nrace = ["green", "purple"]\nage = { min = 1, max = 4 }\n'
    )
    shown = run("search", "--threshold", "0.1", "-v", "--no-cache").stdout
    assert re.search(r"^  \$ .*sh -c '.*true' green \d$", shown, re.MULTILINE)


def test_console_is_not_wider_than_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert make_console(io.StringIO()).width == 100


def test_a_result_is_printed_in_one_line() -> None:
    printed = str(result(causal()))
    assert "\n" not in printed
    assert printed.startswith("For 11.3 % of test inputs the decision changes when only race")


# Bars and colours -------------------------------------------------------------------------
def test_a_limit_is_a_line_across_the_bar() -> None:
    console = Console(file=io.StringIO(), width=10)
    for limit, drawn in (
        (None, "███▒▒·····"),
        (0.1, "█┃█▒▒·····"),
        (0.8, "███▒▒···┃·"),
        (1.0, "███▒▒····┃"),
    ):
        bar = IntervalBar(low=0.3, high=0.5, limit=limit)
        (shown,) = bar.__rich_console__(console, console.options)
        assert isinstance(shown, Text)
        assert shown.plain == drawn


READABLE = {"1", "2", "31", "32", "35"}  # bold, dim, red, green, magenta: on light and on dark


def test_no_colour_is_unreadable_on_light_or_dark_terminals(colours: pytest.MonkeyPatch) -> None:
    found = samples.small_search()
    pages = [
        render_result(samples.all_facts(), file=Terminal(), width=80, everything=True),
        render_checks(samples.checked(samples.all_facts()), file=Terminal(), width=80),
        render_search(found, file=Terminal(), width=80, everything=True),
        render_result(samples.apparent(), file=Terminal(), width=80, everything=True),
        render_differences(compare(found, found), file=Terminal(), width=80),
    ]
    codes = ";".join(re.findall(r"\x1b\[([\d;]*)m", "".join(pages)))
    assert {"1", "2", "31", "35"} <= {*codes.split(";")} - {"", "0"} <= READABLE
    assert parts.ShellLine("themis score").style == ""


def test_no_color_is_respected_on_a_terminal(colours: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31m" in render_result(result(causal()), file=Terminal(), width=80)
    colours.setenv("NO_COLOR", "1")
    shown = render_result(result(causal()), file=Terminal(), width=80)
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


# The line of progress ---------------------------------------------------------------------
def test_progress_line_says_where_a_measurement_stands_and_what_follows() -> None:
    line = ProgressLine(enabled=False)

    def said() -> str:
        return line.line().plain

    assert said().startswith("loading · ")  # a model may take seconds
    line.listen(RowsRead(120_000_000, 500_000_000))
    assert said() == "read 120 MB of 500 MB"
    line.listen(RowsRead(500_000_000, 500_000_000))
    assert said().startswith("loading")
    for count, words in ((0, "running · "), (24, "running · 24 executions · ")):
        line.listen(Began(lambda count=count: Activity("sampling", count)))
        assert said().startswith(words)
    line.listen(Progress("causal", ("race", "sex"), 351, 702, 0.063, 0.163, 1404))
    assert said().startswith("causal race,sex · sampling 351 of 702, ")
    assert "left · 6.3 % to 16.3 % · 24 executions · " in said()
    line.listen(Progress("causal", ("sex",), 233, 233, 0.06, 0.16, 1_404))
    activity = [Activity("sampling", 1_404)]
    line.listen(Began(lambda: activity[0]))
    for activity[0], words in (
        (Activity("sampling", 1_404), "sampling 233 of 233 · 6.0 % to 16.0 % · 1,404 executions"),
        (Activity("noise", 1_500), "checking for noise · 6.0 % to 16.0 % · 1,500 executions"),
        (Activity("explanations", 1_510, planned=60), "explaining, up to 60 to go · 6.0 % to"),
        (Activity("explanations", 1_570, planned=0), "explaining · 6.0 % to"),
        (Activity("sampling", 1_600), "sampling 233 of 233 · 6.0 % to"),
    ):
        assert said().startswith(f"causal sex · {words}")


def test_the_first_tests_do_not_tell_how_long_the_others_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock.put_into(monkeypatch, progress)
    line = ProgressLine(enabled=False)
    line.listen(Progress("causal", ("sex",), 0, 400, 0.0, 1.0, 0))
    assert line.line().plain.startswith("causal sex · sampling 0 of 400 · 0 executions · ")
    clock.now += 2.0
    line.listen(Progress("causal", ("sex",), 2, 400, 0.0, 1.0, 4))
    assert " left" not in line.line().plain
    clock.now += 2.0
    line.listen(Progress("causal", ("sex",), 40, 400, 0.0, 1.0, 80))
    assert "sampling 40 of 400, 36 s left" in line.line().plain


def test_in_a_log_the_line_is_said_now_and_then() -> None:
    words = "causal race · checking for noise, up to 30 to go · 10.0 % to 30.0 % · 1,200 executions"
    heard = threading.Event()

    def say(told: str) -> None:
        if told.startswith(words):
            heard.set()

    with ProgressLine(enabled=False, say=say, delay_seconds=0.001) as line:
        line.listen(Began(lambda: Activity("noise", 1_200, 30)))
        line.listen(Progress("causal", ("race",), 100, 400, 0.1, 0.3, 1_000))
        assert heard.wait(60)
