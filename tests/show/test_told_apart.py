"""Can values shown beside each other be told apart, and do sentences name those who count?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import pytest

from tests.report_results import causal, group, observed, plain, result
from themis.results.model import Result
from themis.results.parts import Group, Naming, Witness
from themis.show.notebook import html_of
from themis.show.reports.annex import render_annex
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.headlines import headline
from themis.show.words.values import LONGEST, LONGEST_TEXT, cut_name, told_apart
from themis.show.words.wording import Wording, brought, wording

SAME = "Department of Social Affairs and Integration"
ENDS = [f"{SAME}, {end}" for end in ("North", "South", "East")]
MIDDLES = [f"{SAME} {place} of the city and the county" for place in ("north", "south", "east")]


def cells(made: Result) -> str:
    """What a notebook shows of each score; of a whole result it shows no pairs."""
    return " ".join(map(html_of, made.scores))


SHOWN = {render_page: 3, render_annex: 3, render_markdown: 2, cells: 3, render_result: 2}


def long_values(values: list[str]) -> Result:
    rates = (0.6, 0.4, 0.5)
    groups = tuple(Group({"dept": v}, r, r, r, 100) for v, r in zip(values, rates, strict=True))
    inputs = ({"dept": values[0]}, {"dept": values[1]})
    outputs = tuple(f"Approved by the office of consumer loans, {end}" for end in ("A", "B"))
    return result(
        causal(against=("dept",), witnesses=(Witness(inputs, outputs),), direction=()),
        group(against=("dept",), groups=groups),
        schema={"inputs": {"dept": {"values": values}}, "constraints": {}},
        observed=(observed((("dept",), [(each,) for each in values])),),
    )


@pytest.mark.parametrize("values", [ENDS, MIDDLES])
@pytest.mark.parametrize("show", SHOWN)
def test_long_values_can_be_told_apart_in_every_format(
    show: Callable[[Result], str], values: list[str]
) -> None:
    made = long_values(values)
    words = wording(made)
    labels = [words.label({"dept": each}) for each in values]
    assert len(set(labels)) == 3
    text = " ".join(plain(unescape(re.sub("<[^>]*>", " ", show(made)))).split())
    assert [label in text for label in labels[: SHOWN[show]]] == [True] * SHOWN[show]
    pairs = () if show is render_annex else ("loans, A", "loans, B")
    assert [end in text for end in pairs] == [True] * len(pairs)


def test_a_name_keeps_its_beginning_and_its_end_and_is_whole_where_another_looks_the_same() -> None:
    assert cut_name(ENDS[0]) == "Department of Social Aff…, North"
    assert len(cut_name(ENDS[0])) == LONGEST
    assert [len(cut_name("x" * 99, most)) for most in (1, 2, 3, 9)] == [1, 2, 3, 9]
    words = wording(long_values(MIDDLES))
    assert words.value("dept", MIDDLES[0]) == MIDDLES[0]
    assert words.label({"dept": MIDDLES[1]}, most=20) == MIDDLES[1]
    assert len(Wording().label({"dept": MIDDLES[1]}, most=20)) == 20


MANY = {
    "in the midst": [f"{'x' * 400}{number:05}{'y' * 395}" for number in range(5_000)],
    "in their length": ["x" * (800 + number) for number in range(5_000)],
}


@pytest.mark.parametrize("values", MANY.values(), ids=MANY)
def test_many_long_values_are_numbered_within_the_limit(values: list[str]) -> None:
    words, again = (Wording(known=lambda _: values) for _ in range(2))
    assert words.value("dept", "short") == "short"
    shown = [words.value("dept", each) for each in values]
    assert len(set(shown)) == len(values)
    assert max(map(len, shown)) <= LONGEST_TEXT
    ends = [(each[:24], each.split(" #")[0][-7:]) for each in shown]
    assert ends == [(each[:24], each[-7:]) for each in values]
    assert [again.value("dept", each) for each in values[2::-1]] == shown[2::-1]
    assert len(set(told_apart(values[:200]))) == 200
    assert told_apart(values[:3]) == told_apart(values[2::-1])[::-1]


def test_a_value_that_is_listed_nowhere_is_longer_than_what_is_listed() -> None:
    words = Wording(known=lambda _: ["x" * 900, "x" * 100])
    assert words.value("dept", "x" * 100) == "x" * 100
    assert len(words.value("dept", "z" * 10_000)) == LONGEST_TEXT


def people(race: str, rate: float, number: int) -> Group:
    return Group({"race": race}, rate, rate, rate, number, few=number < 5, people=number)


def test_of_equal_groups_the_largest_that_is_named_is_the_lowest_or_highest() -> None:
    groups = [people("green", 1.0, 60), people("blue", 1.0, 2), people("red", 0.0, 40),
              people("purple", 0.0, 1)]  # fmt: skip
    unnamed = [Group({}, 0.0, 0.0, 0.0, 90, people=90), Group({}, 1.0, 1.0, 1.0, 90, people=90)]
    for made in (groups, groups[::-1], [*unnamed, *groups]):
        score = group(groups=tuple(made), score=1.0, low=1.0, high=1.0, method="exact")
        assert "between red and green, the lowest and highest" in headline(score)
    alike = group(groups=tuple(people(race, 0.5, 9) for race in ("green", "red")))
    assert alike.most_favoured is not alike.least_favoured


LONG = ["L" * 150 + each + "L" * 149 for each in "AB"]


@pytest.mark.parametrize("favourable", LONG)
def test_a_long_favourable_output_can_be_told_from_another_one(favourable: str) -> None:
    pair = Witness(({"race": "a"}, {"race": "b"}), (LONG[0], LONG[1]))
    made = result(causal(witnesses=(pair,), direction=()), report=Naming(favourable=(favourable,)))
    words = wording(made)
    for text in (words.rates, words.favour()):
        assert f"LL #{LONG.index(favourable) + 1}'" in text
        assert "LL…L" in text
        assert len(text) <= LONGEST_TEXT + len("rates of ''")
    alone = wording(replace(made, scores=()))
    assert alone.favour() == f"'{cut_name(favourable)}'"
    assert brought([replace(made.scores[0], naming=made.report)]).rates == words.rates
