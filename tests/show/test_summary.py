"""Is a result read in ten seconds, true in each of its figures, and whole in any width?"""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests import report_results as samples
from tests.show.test_display import causal, group, result
from themis.results.model import Result
from themis.show.terminal.parts import Sentence, make_console, render
from themis.show.terminal.results import render_result

FAIR = causal(against=("sex",), score=0.0, low=0.0, high=0.02, direction=(), witnesses=())


def shown(told: Result, width: int = 80) -> str:
    told = replace(told, subject={"kind": "command"})
    return render_result(told, file=io.StringIO(), width=width)


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80, 100])
def test_nothing_is_cut_and_no_line_is_too_long(width: int) -> None:
    long = causal(against=("a characteristic with long name", "another one"))
    page = shown(result(causal(), group(), FAIR, long), width)
    assert max(map(cell_len, page.splitlines())) <= width
    flat = " ".join(page.split())
    figures = ("11.3 %", "6.3 – 16.3", "20.0 pts", "15.0 – 25.0", "0.45 – 0.78", "at most 2.0")
    assert all(each in flat for each in figures)
    assert "…" not in page


def test_of_very_many_sets_those_that_differ_are_not_left_out() -> None:
    calm = [replace(FAIR, against=(f"c{place}",)) for place in range(24)]
    page = shown(result(*calm, causal()))
    assert "■ decision changes" in page
    assert page.count("○ decision changes") == 19
    assert "… and 5 more sets: -v" in page


def test_a_result_is_printed_in_one_line() -> None:
    text = str(samples.result(samples.causal()))
    assert "\n" not in text
    assert text.startswith("For 11.3 % of test inputs the decision changes when only race")


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_letters_of_two_columns_and_long_words_stay_within_the_lines(width: int) -> None:
    text = "女性の申請者 " * 9 + "x" * 100 + " أنثى " + "日本語" * 30
    lines = render([Sentence(text, first="example: ")], make_console(width=width)).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith(" " * 9) for line in lines[1:])
    assert "".join(lines).replace(" ", "") == f"example:{text}".replace(" ", "")
