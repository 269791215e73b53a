"""Does the terminal say what was measured, and hold its shape whatever it is given?"""

from __future__ import annotations

import io
import itertools
import re
import threading
from typing import Any

import pytest
from rich.cells import cell_len

from tests import report_results as samples
from tests.clocks import Clock
from tests.report_results import causal, group, notes, result
from themis.events import Activity, Began, Progress, RowsRead
from themis.results.comparison import compare
from themis.results.model import Result
from themis.results.parts import Group, Harm, Witness
from themis.show.terminal import parts, progress
from themis.show.terminal.parts import make_console
from themis.show.terminal.progress import ProgressLine
from themis.show.terminal.results import (
    render_checks,
    render_differences,
    render_result,
    render_search,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PEOPLE = ({"race": "green", "age": 30}, {"race": "purple", "age": 30})


def text(shown: Result, *, width: int = 80) -> str:
    """All details: what is in view by default is in `test_summary`."""
    return render_result(shown, file=io.StringIO(), width=width, everything=True)


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


READABLE = {"1", "2", "31", "32", "35"}  # bold, dim, red, green, magenta: on light and on dark


def test_no_colour_is_unreadable_on_light_or_dark_terminals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    found = samples.small_search()
    pages = [
        render_result(samples.all_facts(), file=Terminal(), width=80, everything=True),
        render_checks(samples.checked(samples.all_facts()), file=Terminal(), width=80),
        render_search(found, file=Terminal(), width=80, everything=True),
        render_result(samples.apparent(), file=Terminal(), width=80, everything=True),
        render_differences(compare(found, found), file=Terminal(), width=80),
    ]
    used = {
        code
        for page in pages
        for codes in re.findall(r"\x1b\[([\d;]*)m", page)
        for code in codes.split(";")
        if code not in ("", "0")
    }
    assert {"1", "2", "31", "35"} <= used <= READABLE
    assert parts.ShellLine("themis score").style == ""


def test_no_color_is_respected_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = render_result(result(causal()), file=Terminal(), width=80)
    assert "\x1b[1;31m" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    shown = render_result(result(causal()), file=Terminal(), width=80)
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown)


def test_console_is_not_wider_than_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert make_console(io.StringIO()).width == 100


def test_progress_line_says_where_a_measurement_stands() -> None:
    line = ProgressLine(enabled=False)
    assert line.line().plain.startswith("loading")
    line.listen(Progress("causal", ("race", "sex"), 351, 702, 0.063, 0.163, 1404))
    shown = line.line().plain
    assert shown.startswith("causal race,sex · sampling 351 of 702, ")
    assert "left · 6.3 % to 16.3 % · 1,404 executions · " in shown


def test_progress_line_names_what_follows_the_sampling_and_what_is_left_of_it() -> None:
    line = ProgressLine(enabled=False)
    line.listen(Progress("causal", ("sex",), 233, 233, 0.06, 0.16, 1_404))
    activity = [Activity("sampling", 1_404)]
    line.listen(Began(lambda: activity[0]))
    assert line.line().plain.startswith("causal sex · sampling 233 of 233 · 6.0 % to 16.0 %")
    activity[0] = Activity("noise", 1_500)
    assert line.line().plain.startswith("causal sex · checking for noise · 6.0 % to")
    assert "1,500 executions" in line.line().plain
    activity[0] = Activity("explanations", 1_510, planned=60)
    shown = line.line().plain
    assert shown.startswith("causal sex · explaining, up to 60 to go · 6.0 % to")
    activity[0] = Activity("explanations", 1_570, planned=0)
    assert line.line().plain.startswith("causal sex · explaining · 6.0 % to")
    activity[0] = Activity("sampling", 1_600)
    assert "explaining" not in line.line().plain


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

    def say(text: str) -> None:
        if text.startswith(words):
            heard.set()

    with ProgressLine(enabled=False, say=say, delay_seconds=0.001) as line:
        line.listen(Began(lambda: Activity("noise", 1_200, 30)))
        line.listen(Progress("causal", ("race",), 100, 400, 0.1, 0.3, 1_000))
        assert heard.wait(60)


def test_the_live_line_shows_how_much_was_read_until_something_runs() -> None:
    line = ProgressLine(enabled=False)
    line.listen(RowsRead(120_000_000, 500_000_000))
    assert line.line().plain == "read 120 MB of 500 MB"
    line.listen(RowsRead(500_000_000, 500_000_000))
    assert line.line().plain.startswith("loading")


def test_the_beginning_says_what_is_going_on() -> None:
    """A model may take seconds to load, and a slow subject minutes to try."""
    line = ProgressLine(enabled=False)
    assert line.line().plain.startswith("loading · ")
    line.listen(Began(lambda: Activity("sampling", 0)))
    assert line.line().plain.startswith("running · ")
    line.listen(Began(lambda: Activity("sampling", 24)))
    assert line.line().plain.startswith("running · 24 executions · ")
