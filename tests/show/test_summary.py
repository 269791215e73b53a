"""Is a result read in ten seconds, true in each of its figures, and whole in any width?"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len

from tests import report_results as samples
from tests.show.test_display import OFFSET, causal, group, result
from themis.results.finding import finding
from themis.results.model import Result, Score
from themis.results.notes import Ending
from themis.results.parts import Group, Noise, Placebo
from themis.show.parts.summary import MARKS, score_lines, summaries
from themis.show.terminal.parts import Sentence, make_console, render
from themis.show.terminal.results import render_result
from themis.show.words.headlines import point
from themis.show.words.wording import PLAIN

LOAN = """\
A command subject · generated test inputs, not real people

race  ■ decision changes    11.3 %  6.3 – 16.3   green → purple: 6.6 % lose, 0 %
                                                 gain
      ■ rates differ      20.0 pts  15.0 – 25.0  green 50.0 %, purple 30.0 %
        impact ratio          0.60  0.45 – 0.78  reaches 0.80? no
        example: 1 for green, 0 for purple; both have age 30
sex   ○ decision changes       0 %  at most 2.0

99 % confidence each · 1,404 runs · 0.8 s · seed 42
narrower: --error 0.01 · details: -v · page: -o report.html
"""
FAIR = causal(against=("sex",), score=0.0, low=0.0, high=0.02, direction=(), witnesses=())


def shown(told: Result, width: int = 80) -> str:
    told = replace(told, subject={"kind": "command"})
    return render_result(told, file=io.StringIO(), width=width)


def test_two_sets_are_a_dozen_lines() -> None:
    assert shown(result(causal(), group(), FAIR)) == LOAN


KINDS: dict[str, Score] = {
    "found": causal(),
    "none": FAIR,
    "undecided": causal(score=0.02, low=0.0, high=0.07),
    "lower bound": causal(lower_bound=True, high=1.0),
    "exact": causal(method="exact", low=0.113, high=0.113),
    "rates": group(),
    "means": group(statistic="mean", scale=(0.0, 1000.0), impact_ratio=None),
    "rows": causal(population="rows"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_has_the_mark_and_the_figure_of_its_score(kind: str) -> None:
    score = KINDS[kind]
    first, *_ = score_lines(score, PLAIN)
    assert first.mark == MARKS[finding(score).state]
    assert first.value == point(score).replace(" points", " pts")


@pytest.mark.parametrize(
    ("score", "why"),
    [
        (causal(samples=0, stopped=Ending.BUDGET), "not measured: the budget ended"),
        (group(groups=group().groups[:1], score=0.0, low=0.0, high=0.0), "nothing to compare"),
    ],
)
def test_what_was_not_measured_has_no_number_but_a_reason(score: Score, why: str) -> None:
    (line,) = score_lines(score, PLAIN)
    assert (line.value, line.interval, line.detail) == ("–", "", why)


def test_noise_is_said_beside_the_number_that_it_may_explain() -> None:
    noisy = causal(placebo=Placebo(0.02, 0.01, 0.03))
    assert "noise alone gives 3.0 % or less" in " ".join(shown(result(noisy)).split())


def test_what_may_invalidate_a_result_is_there_by_default() -> None:
    failures = {"crash": {"count": 3, "input": {"age": 30}, "message": "ValueError"}}
    noise = Noise(100, 7, 0.07, 0.03, 0.14, 0.99)
    page = shown(result(causal(stopped=Ending.BUDGET), failures=failures, noise=noise))
    for said in ("failed: crash 3 times", "noise: the subject does not always", "inconclusive: 1"):
        assert said in page
    hidden = shown(result(causal(direction=OFFSET), group(score=0.01, low=0.0, high=0.03)))
    assert "but similar rates hide this" in hidden
    assert "narrower" not in page  # it would not help


def test_protected_sets_come_first_and_a_pair_is_shown_once() -> None:
    income, both = causal(against=("income",)), causal(against=("race", "sex"))
    told = replace(
        result(income, causal(), both),
        schema={"inputs": {"race": {"values": [0, 1], "protected": True}, "income": [1, 2]}},
    )
    found = summaries(told)
    assert [each.name for each in found] == ["race", "race, sex", "income"]
    assert [each.example is not None for each in found] == [True, False, True]


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


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".sarif", ".json"])
def test_the_suffix_of_the_output_names_its_format(project: Any, suffix: str) -> None:
    from pathlib import Path

    from tests.projects import run

    project()
    begins = {".html": "<!doctype html>", ".md": "## Themis", ".csv": "measure,", ".json": "{"}
    assert run("score", "--against", "race", "-o", f"r{suffix}").exit_code == 0
    assert Path(f"r{suffix}").read_text().startswith(begins.get(suffix, "{\n"))
    assert run("score", "--against", "race", "-o", f"r{suffix}").exit_code == 0  # our own
    Path(f"r{suffix}").write_text("mine\n")
    assert run("score", "--against", "race", "-o", f"r{suffix}").exit_code == 2


FEW = group(
    groups=(Group({"sex": "x"}, 1.0, 1.0, 1.0, 7, few=True), *group().groups),
    population="rows",
    method="exact",
)


def test_a_difference_that_rests_on_few_is_not_shown_beside_the_rates_of_others() -> None:
    best, worst = (f"{100 * each.rate:.1f} %" for each in group().groups)
    (line, ratio) = score_lines(FEW, PLAIN)
    assert line.detail.startswith("rests on too few people to judge; without them ")
    assert line.detail.endswith(worst)
    assert best in line.detail
    assert ratio.detail == "too few people to judge"


def test_a_pair_of_several_outputs_names_the_one_that_it_is_about() -> None:
    page = " ".join(shown(samples.outputs()).split())
    assert "example: limit is 2460 for green, 1960 for purple; both have income 49" in page


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_letters_of_two_columns_and_long_words_stay_within_the_lines(width: int) -> None:
    text = "女性の申請者 " * 9 + "x" * 100 + " أنثى " + "日本語" * 30
    lines = render([Sentence(text, first="example: ")], make_console(width=width)).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith(" " * 9) for line in lines[1:])
    assert "".join(lines).replace(" ", "") == f"example:{text}".replace(" ", "")


def test_a_note_of_two_outputs_names_their_set_once() -> None:
    noted = {"notes": samples.notes("half of the rows are left out")}
    page = shown(result(causal(output="a", **noted), causal(output="b", **noted)))
    assert "note: causal score of race: half of the rows are left out" in page


def test_a_label_of_many_values_is_not_cut_to_nothing() -> None:
    values = dict(zip("abcde", ("green", "female", "employed", "married", "north"), strict=True))
    assert PLAIN.label(values, 24) == "green · female · employed · married · north"
