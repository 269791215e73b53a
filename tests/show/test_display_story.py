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
from tests.projects import enter, process, run, write_project
from tests.report_results import notes, plain
from tests.show.test_display import causal, group, result, text
from themis.results.model import CheckResult, GroupScore, Score
from themis.results.notes import Ending
from themis.results.parts import Witness
from themis.show.notebook import html_of
from themis.show.terminal.checks import render_checks
from themis.show.terminal.parts import IntervalBar, Sentence, in_encoding, make_console, render
from themis.show.terminal.results import render_result
from themis.show.terminal.scores import show_difference
from themis.show.terminal.searches import render_search
from themis.show.words import scores as score_words
from themis.show.words.verdicts import overview
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
    assert overview(scores, PLAIN) == said


def test_several_sets_begin_with_the_verdict_and_all_bars() -> None:
    shown = text(result(causal(), group(), FAIR)).splitlines()
    assert shown[0].startswith("The decision changes with race (for 11.3 % of test inputs)")
    rows = [line for line in shown[:8] if "▒" in line]
    assert [row.split()[:2] for row in rows] == [
        ["race", "causal"],
        ["race", "group"],
        ["sex", "causal"],
    ]
    assert shown.index("race " + "─" * 75) > 5


def test_one_set_begins_with_its_own_headline() -> None:
    shown = text(result(causal(), group())).splitlines()
    assert shown[0].startswith("race ──")
    assert shown[1].startswith("For 11.3 % of test inputs the decision changes when only race")


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


def test_doubts_about_checks_stand_below_their_verdict() -> None:
    shown = render_checks(
        result(causal(), checks=(CHECK,), **DOUBTFUL), file=io.StringIO(), width=80
    ).splitlines()
    assert shown[0] == "The check is violated"
    assert shown[1].startswith("failed: crash")


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


def test_narrow_checks_keep_their_names_on_one_line() -> None:
    checked = result(causal(), checks=(CHECK, replace(CHECK, verdict="holds")))
    lines = render_checks(checked, file=io.StringIO(), width=60).splitlines()
    assert lines.count("  causal race at most 0.05") == 2
    assert "    violated  11.3 % (6.3 % – 16.3 %)" in lines


def test_plain_encodings_get_plain_bars() -> None:
    assert in_encoding("███▒▒··┃ 5 – 6 →", "ascii") == "###++..| 5 - 6 >"
    assert in_encoding("日", "ascii") == "?"
    assert in_encoding("█ 日", "utf-8") == "█ 日"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp850"])
def test_plain_encodings_keep_what_signs_mean(encoding: str) -> None:
    assert in_encoding("3 ≤ age ≤ 9, pay ≥ 5, sex ≠ 'f'", encoding) == (
        "3 <= age <= 9, pay >= 5, sex != 'f'"
    )
    assert in_encoding("10.1\u202f% ✅ ⚠️ “a”", encoding).isascii() == (encoding != "cp1252")
    assert "?" not in in_encoding("10.1\u202f%, 3\u00a0s ✅ ☑️ ⚠️ “a” − Cramér", encoding)


def test_longer_plain_signs_leave_columns_where_they_are() -> None:
    lines = ["age ≥ 3   12 %  yes", "all       13 %  no"]
    shown = in_encoding("\n".join(lines), "ascii").split("\n")
    assert shown == ["age >= 3  12 %  yes", "all       13 %  no"]


def test_sentences_of_plain_signs_fit_their_lines() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    text = render([Sentence("a ≥ 5 " * 20)], make_console(file, width=30))
    assert "a >= 5" in text
    assert max(map(len, text.splitlines())) <= 30


def test_a_pipe_without_unicode_shows_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path)
    done = process("score", "--against", "race", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert re.search(r"causal score 0\.\d+ +0 % #+\+\+*\.+ \d+ %", done.stdout)
    assert "?" not in done.stdout


# --- people -------------------------------------------------------------------------------


def shown_difference(witness: Witness, width: int) -> str:
    return render(show_difference(witness, width=width), make_console(io.StringIO(), width=width))


def test_a_pair_is_a_diff_of_what_differs() -> None:
    people = ({"sex": "f", "race": "green", "age": 30}, {"sex": "m", "race": "green", "age": 40})
    lines = shown_difference(Witness(people, ("yes", "no")), 80).splitlines()
    assert [line.split() for line in lines] == [
        ["sex", "│", "f", "‹", "m"],
        ["age", "│", "30", "‹", "40"],
        ["decision", "│", "yes", "no"],
        ["both", "have", "race", "green"],
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_diff_never_exceeds_the_terminal(width: int) -> None:
    names = {f"characteristic_{n}": "z" * 50 for n in range(30)}
    people = ({**names, "x" * 50: "日本語" * 20}, {**names, "x" * 50: "b" * 90})
    shown = shown_difference(Witness(people, ("y" * 90, False)), width)
    assert max(map(cell_len, shown.splitlines())) <= width
    assert "+ 18 more" in " ".join(shown.split())


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

EQUAL = group(
    score=0.037, low=0.0, high=0.087, impact_ratio=1.0,
    groups=(
        themis.Group({"race": "green"}, 0.64, 0.415, 0.829, 75),
        themis.Group({"race": "purple"}, 0.64, 0.415, 0.829, 75),
    ),
)  # fmt: skip


def test_equal_rates_are_said_to_be_equal_whatever_the_score_is_moved_to() -> None:
    assert EQUAL.observed == 0
    said = (
        "the rates seen are 0 points apart, and equal rates are possible; the score is moved "
        "to within ± 5 points of both ends of the interval, to 0.037"
    )
    assert said in " ".join(text(result(EQUAL)).split())
    assert "the rates seen are 0 points apart" in plain(html_of(EQUAL))
    row = next(line for line in text(result(causal(), EQUAL, FAIR)).splitlines() if "group" in line)
    assert row.split()[:4] == ["race", "group", "0", "points"], "not 3.7"


def test_nothing_is_said_about_a_score_that_was_not_moved() -> None:
    assert score_words.seen(group()) is None
    assert score_words.seen(replace(EQUAL, method="exact")) is None
    wide = replace(EQUAL, score=0.02, low=0.02, high=0.5)
    assert "moved into the interval, to 0.020" in str(score_words.seen(wide))


def test_the_score_of_a_real_run_is_what_was_observed() -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(1000), age=range(1000))
    audit = themis.Audit(lambda person: person["income"] > 360, schema, seed=42)
    score = audit.group("race")
    assert isinstance(score, GroupScore)
    assert score.observed == score.score == score.low == 0
    assert 0 < score.high <= 2 * score.error


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


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_an_overview_fits_whatever_the_names(width: int) -> None:
    nasty = ("z" * 60, "[red]boo[/red]", "日本語" * 20, "a\nb")
    scores = [causal(against=(name,)) for name in nasty] + [group(against=nasty)]
    shown = text(result(*scores), width=width)
    assert max(map(cell_len, shown.splitlines())) <= width


def test_a_search_draws_its_threshold() -> None:
    schema = themis.Schema(race=["green", "purple"], income=range(10))
    audit = themis.Audit(lambda p: p["income"] > (3 if p["race"] == "green" else 5), schema)
    shown = render_search(audit.search_all(0.1), file=io.StringIO(), width=80)
    assert "┃ 10 %" in shown
    assert render_result(audit.search_all(0.1), file=io.StringIO(), width=80)
    assert all("┃" in line for line in shown.splitlines() if "█" in line)
