"""Do table and cards of a report say what was found, draw it truly, and name who loses?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests import report_results as samples
from tests.show.test_report_page import Document
from themis.results.model import CheckResult, Result, Score
from themis.results.notes import Ending
from themis.results.parts import Harm, Naming
from themis.show.reports.findings import hundred_text, mark_of, of_hundred
from themis.show.reports.page import render_page
from themis.show.svg import dots
from themis.show.terminal.results import render_result

CALM: dict[str, Any] = {"score": 0.0, "low": 0.0, "high": 0.02}
CHECK = CheckResult(
    name="c", measure="causal", against=("race",), search=False, max_score=0.05,
    confidence=0.99, verdict="violated", score=0.113, low=0.063, high=0.163,
)  # fmt: skip


def cards(result: Result) -> list[str]:
    """The text of each card, in the order of the page."""
    found = re.findall("<article.*?</article>", render_page(result), re.DOTALL)
    return [Document(re.sub("(</[a-z0-9]+>)", r" \1", each)).text for each in found]


@pytest.mark.parametrize(
    ("score", "verdict", "said"),
    [
        (samples.causal(), None, "difference found"),
        (samples.causal(**CALM), None, "no difference found"),
        (samples.causal(**CALM, stopped=Ending.BUDGET), None, "undecided"),
        (samples.causal(), "violated", "over the limit"),
        (samples.causal(), "holds", "within the limit"),
        (samples.causal(), "not enough evidence", "undecided"),
        (samples.causal(), "accepted", "accepted"),
    ],
)
def test_a_card_says_first_what_was_found(score: Score, verdict: Any, said: str) -> None:
    checks = () if verdict is None else (replace(CHECK, verdict=verdict),)
    result = samples.result(score, checks=checks)
    assert mark_of([score], result).word == said
    assert cards(result)[0].startswith(said)


@pytest.mark.parametrize(
    ("share", "number", "text"),
    [
        (0.0, 0, "0 of 100"),
        (0.001, 1, "fewer than 1 of 100"),
        (0.129, 13, "13 of 100"),
        (0.165, 17, "17 of 100"),
        (0.999, 99, "more than 99 of 100"),
        (1.0, 100, "100 of 100"),
    ],
)
def test_a_share_is_a_number_of_dots(share: float, number: int, text: str) -> None:
    assert (of_hundred(share), hundred_text(share)) == (number, text)
    drawn = dots(number, None, text)
    counts = {kind: path.count("h0") for path, kind in re.findall('d="(.*?)" class="(.*?)"', drawn)}
    assert counts.get("on", 0) == number
    assert sum(counts.values()) == 100


def test_the_dots_up_to_a_limit_are_outlined() -> None:
    page = render_page(samples.result(samples.causal(), checks=(CHECK,)))
    counts = {kind: path.count("h0") for path, kind in re.findall('d="(.*?)" class="(.*?)"', page)}
    assert (counts["limit"], counts["on"], counts["rest"]) == (5, 11, 89)
    assert 'class="limit"' not in render_page(samples.result(samples.causal()))


def test_who_loses_is_told_for_each_direction() -> None:
    harm = Harm({"race": "green"}, {"race": "purple"}, 0.3, 0.1, 10, 3, 1)
    (card,) = cards(samples.result(samples.causal(direction=(harm,))))
    assert "3 of 10 get the favourable decision as green but not as purple" in card
    assert "1 of 10 get the favourable decision as purple but not as green" in card
    one_way = replace(harm, gained=0.0, gained_count=0)
    (card,) = cards(samples.result(samples.causal(direction=(one_way,))))
    assert "3 of 10 get the favourable decision as green but not as purple" in card
    assert "as purple but not as green" not in card  # nobody


def test_a_combination_has_a_card_only_if_it_shows_more_than_its_parts() -> None:
    part = samples.causal(score=0.1, low=0.08, high=0.12)
    both = samples.causal(against=("race", "sex"), score=0.1, low=0.08, high=0.12)
    assert len(cards(samples.result(part, both))) == 1
    more = replace(both, score=0.3, low=0.28, high=0.32)
    assert len(cards(samples.result(part, more))) == 2
    calm = replace(both, score=0.0, low=0.0, high=0.05)
    assert len(cards(samples.result(part, calm))) == 1
    assert len(cards(samples.result(both))) == 1  # its parts are not there


def test_protected_characteristics_are_in_view_and_others_are_folded() -> None:
    result = samples.result(samples.causal(against=("age",), low=0.1), samples.causal())
    schema = {"inputs": {"race": {"values": [0, 1], "protected": True}, "age": [1, 2]}}
    (card,) = cards(replace(result, schema=schema))
    assert "protected race" in card
    page = Document(render_page(replace(result, schema=schema))).text
    assert "1 set that is not protected" in page
    plain = {"inputs": {"race": [0, 1], "age": [1, 2]}}
    assert len(cards(replace(result, schema=plain))) == 2


def test_given_people_stand_beside_all_inputs_and_come_first() -> None:
    rows = samples.causal(score=0.3, low=0.25, high=0.35, population="rows")
    within = replace(rows, counterfactuals="within", score=0.2)
    (card,) = cards(samples.result(samples.causal(), rows, within))
    assert "30 of 100 in the rows" in card
    assert "11 of 100 of test inputs" in card
    assert "20 of 100" not in card
    assert "For 30.0 % of the people in the rows" in card
    assert "For 11.3 %" not in card


def test_a_report_begins_with_what_was_tested() -> None:
    result = samples.result(samples.causal())
    named = Naming(name="Loan screen", version="7", owner="Credit", purpose="Loans", auditor="Us")
    page = Document(render_page(replace(result, report=named))).text
    assert page.startswith("Loan screen, version 7: Themis report")
    assert "Loans · owner: Credit · tested by Us · 1 March 2026" in page
    own = Document(render_page(replace(result, report=Naming(program="loan:decide")))).text
    assert own.startswith("loan:decide: Themis report")


def test_a_large_search_is_a_matrix_of_pairs() -> None:
    page = render_page(samples.wide_search())
    matrix = re.search('<table class="pairs">.*?</table>', page, re.DOTALL)
    assert matrix is not None
    search = samples.wide_search().searches[0]
    cells = re.findall('class="cell (.*?)"', matrix[0])
    assert len(cells) == len(search.among) * (len(search.among) + 1) // 2


def test_what_rows_show_among_themselves_is_folded_and_not_without_anything_else() -> None:
    rows = samples.causal(population="rows")
    within = replace(rows, counterfactuals="within", score=0.2)
    page = render_page(samples.result(samples.causal(), rows, within))
    assert "<summary>Within the rows: compared with each other only" in page
    alone = render_page(samples.result(within))
    assert "Within the rows" not in alone
    assert "compared among the rows only" in alone
    facts = {"file": "a.csv", "rows": 2, "used": 2, "dropped": 0, "distinct": 2, "ignored": []}
    result = replace(samples.result(samples.causal(), rows, within), data=facts)
    short, whole = (render_result(result, width=100, everything=each) for each in (False, True))
    assert short.count("decision changes") == 2
    assert "decision differs between rows" not in short
    assert whole.count("Pairs who differ") == 2
