"""Can values shown beside each other be told apart, and do sentences name those who count?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from tests.report_results import causal, group, plain, result
from themis.results.model import Result
from themis.results.notes import Note
from themis.results.parts import Group, Naming, Witness
from themis.results.quantities import Quantity
from themis.show.notebook import html_of
from themis.show.reports.annex import render_annex
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words import values as values_module
from themis.show.words import wording as wording_module
from themis.show.words.headlines import headline
from themis.show.words.values import LONGEST, LONGEST_TEXT, cut_name, told_apart
from themis.show.words.wording import Wording, brought, wording

SAME = "Department of Social Affairs and Integration"
ENDS = [f"{SAME}, {end}" for end in ("North", "South", "East")]
MIDDLES = [f"{SAME} {place} of the city and the county" for place in ("north", "south", "east")]
SHOWN = {render_page: 3, render_annex: 3, render_markdown: 2, html_of: 3, render_result: 2}


def long_values(values: list[str]) -> Result:
    rates = (0.6, 0.4, 0.5)
    groups = tuple(Group({"dept": v}, r, r, r, 100) for v, r in zip(values, rates, strict=True))
    inputs = ({"dept": values[0]}, {"dept": values[1]})
    outputs = tuple(f"Approved by the office of consumer loans, {end}" for end in ("A", "B"))
    return result(
        causal(against=("dept",), witnesses=(Witness(inputs, outputs),), direction=()),
        group(against=("dept",), groups=groups),
        schema={"inputs": {"dept": {"values": values}}, "constraints": {}},
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


def test_outputs_that_look_the_same_are_cut_behind_what_they_have_in_common() -> None:
    first, second = (f"{'x' * 500}{letter}{'y' * 500}" for letter in "ab")
    shown = told_apart([first, second])
    assert shown[0] != shown[1]
    assert max(map(len, shown)) <= 120
    assert told_apart([first, first, "c"]) == [cut_name(first, 120)] * 2 + ["c"]
    assert told_apart([0.1 + 0.2, 0.5]) == ["0.3", "0.5"]
    assert told_apart([0.1 + 0.2, 0.3]) == ["0.30000000000000004", "0.3"]


class Counted(list[str]):
    """Values that count how many of them were looked at."""

    looked = 0

    def __iter__(self) -> Iterator[str]:
        for each in super().__iter__():
            self.looked += 1
            yield each


FAR = ["a" * 300, "b" * 300, "ab" * 150]
MANY = {
    "in the midst": [f"{'x' * 400}{number:05}{'y' * 395}" for number in range(5_000)],
    "in two places": [
        f"{'x' * 200}{one:03}{'y' * 397}{other:03}{'z' * 197}"
        for one in range(50)
        for other in range(100)
    ],
    "in their length": ["x" * (800 + number) for number in range(5_000)],
    "near their end": [f"{'x' * 780}{number:05}{'y' * 15}" for number in range(5_000)],
}


@pytest.mark.parametrize("values", MANY.values(), ids=MANY)
def test_many_long_values_differ_within_the_limit_and_each_is_looked_at_once(
    values: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = 0

    def counted_cut(*given: Any) -> str:
        nonlocal cuts
        cuts += 1
        return cut_name(*given)

    listed = Counted(values)
    made = replace(long_values(FAR), schema={"inputs": {"dept": {"values": listed}}})
    for module in (values_module, wording_module):
        monkeypatch.setattr(module, "cut_name", counted_cut)
    words = wording(made)
    assert words.value("dept", "short") == "short"
    assert (listed.looked, cuts) == (0, 1)
    shown = [words.value("dept", each) for each in values]
    assert len(set(shown)) == len(values)
    assert max(map(len, shown)) <= LONGEST_TEXT
    assert listed.looked == len(values)
    assert cuts <= 3 * len(values) + 10
    ends = [(each[:24], each.split(" #")[0][-7:]) for each in shown]
    assert ends == [(each[:24], each[-7:]) for each in values]
    assert [wording(made).value("dept", each) for each in values[:3]] == shown[:3]


def test_long_values_show_where_they_differ_and_a_number_where_that_is_not_enough() -> None:
    differing = [f"{'x' * 400}{letter}{'y' * 400}" for letter in "ab"]
    words = Wording(known=lambda _: differing)
    shown = [words.value("dept", each) for each in differing]
    assert shown == [f"{'x' * 24}…{'x' * 21}{each}{'y' * 65}…{'y' * 7}" for each in "ab"]
    listed_nowhere = f"{'x' * 400}c{'y' * 400}"
    assert words.value("dept", listed_nowhere) not in shown
    assert len(words.value("dept", listed_nowhere)) == LONGEST_TEXT
    assert words.value("dept", "z" * 10_000) == cut_name("z" * 10_000)
    lengths = ["x" * 900, "x" * 800, "x" * 100]
    words = Wording(known=lambda _: lengths)
    longest, longer, whole = (words.value("dept", each) for each in lengths)
    assert (longer[-3:], longest[-3:], whole) == (" #1", " #2", lengths[2])
    assert told_apart(lengths) == told_apart(lengths[::-1])[::-1]
    assert len(set(told_apart(MANY["in two places"][:200]))) == 200


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
    seen = favourable[150]
    for text in (words.rates, words.favour()):
        assert seen in text
        assert "LL…L" in text
        assert len(text) <= LONGEST_TEXT + len("rates of ''")
    alone = wording(replace(made, scores=()))
    assert alone.favour() == f"'{cut_name(favourable)}'"
    assert brought([replace(made.scores[0], naming=made.report)]).rates == words.rates


def test_long_values_in_notes_on_differences_and_noise_are_cut() -> None:
    about = Quantity("group", ("race",), favours=LONG[0])
    once = str(Note.of("measured-once", name=about.name, only="after"))
    assert once == (
        f"group race (favourable: {cut_name(LONG[0])}) was measured after and not before"
    )
    risen = str(Note.of("maybe-risen", name=about.name))
    assert risen.startswith(f"group race (favourable: {cut_name(LONG[0])}) is too uncertain")
    differs = str(Note.of("favourable-differs", before=LONG[0], after=LONG[1]))
    assert len(differs) < 340
    assert "LALL" in differs
    assert "LBLL" in differs
    plain_text = str(Note.of("favourable-differs", before="yes", after="no, maybe"))
    assert "(before: yes; after: no, maybe)" in plain_text
    example = Note.of(
        "inconsistent-example", how="again", input={"job": LONG[0]}, outputs=["yes", "no"]
    )
    assert str(example).endswith(f": job {cut_name(LONG[0])}")
