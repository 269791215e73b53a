"""Do table and cards of a report say what was found, draw it truly, and name who loses?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests import report_results as samples
from tests.show.test_report_page import Document
from themis.results.model import CheckResult, Result
from themis.results.notes import Ending
from themis.results.parts import Naming
from themis.show.reports.document import dots
from themis.show.reports.findings import hundred_text, of_hundred
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result

CHECK = CheckResult(
    name="c", measure="causal", against=("race",), search=False, max_score=0.05,
    confidence=0.99, verdict="violated", score=0.113, low=0.063, high=0.163,
)  # fmt: skip


def cards(result: Result) -> list[str]:
    """The text of each card, in the order of the page."""
    found = re.findall("<article.*?</article>", render_page(result), re.DOTALL)
    return [Document(re.sub("(</[a-z0-9]+>)", r" \1", each)).text for each in found]


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({}, None, "difference found"),
        ({"low": 0.0, "high": 0.02, "score": 0.0}, None, "no difference found"),
        ({"low": 0.0, "stopped": Ending.BUDGET}, None, "undecided"),
        ({}, "violated", "over the limit"),
        ({}, "holds", "within the limit"),
        ({}, "not enough evidence", "undecided"),
        ({}, "accepted", "accepted"),
    ],
)
def test_a_card_says_first_what_was_found(changes: Any, verdict: Any, said: str) -> None:
    checks = () if verdict is None else (replace(CHECK, verdict=verdict),)
    result = samples.result(samples.causal(**changes), checks=checks)
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
    counts = dots_of(dots(number, None, text))
    assert counts.get("on", 0) == number
    assert sum(counts.values()) == 100


def test_the_dots_up_to_a_limit_are_outlined() -> None:
    page = render_page(samples.result(samples.causal(), checks=(CHECK,)))
    counts = dots_of(page)
    assert (counts["limit"], counts["on"], counts["rest"]) == (5, 11, 89)
    assert 'class="limit"' not in render_page(samples.result(samples.causal()))


def dots_of(page: str) -> dict[str, int]:
    """How many dots there are of each kind."""
    return {kind: path.count("h0") for path, kind in re.findall('d="(.*?)" class="(.*?)"', page)}


def test_protected_characteristics_are_in_view_and_others_are_folded() -> None:
    result = samples.result(samples.causal(against=("age",), low=0.1), samples.causal())
    schema = {"inputs": {"race": {"values": [0, 1], "protected": True}, "age": [1, 2]}}
    (card,) = cards(replace(result, schema=schema))
    assert "protected race" in card
    page = Document(render_page(replace(result, schema=schema))).text
    assert "1 set that is not protected" in page
    plain = {"inputs": {"race": [0, 1], "age": [1, 2]}}
    assert len(cards(replace(result, schema=plain))) == 2


def test_a_report_begins_with_what_was_tested() -> None:
    result = samples.result(samples.causal())
    named = Naming(name="Loan screen", version="7", owner="Credit", purpose="Loans", auditor="Us")
    page = Document(render_page(replace(result, report=named))).text
    assert page.startswith("Loan screen, version 7: Themis report")
    assert "Loans · owner: Credit · tested by Us · 1 March 2026" in page
    own = Document(render_page(replace(result, report=Naming(program="loan:decide")))).text
    assert own.startswith("loan:decide: Themis report")


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


def test_a_large_search_is_a_matrix_of_pairs() -> None:
    page = render_page(samples.wide_search())
    matrix = re.search('<table class="pairs">.*?</table>', page, re.DOTALL)
    assert matrix is not None
    search = samples.wide_search().searches[0]
    cells = re.findall('class="cell (.*?)"', matrix[0])
    assert len(cells) == len(search.among) * (len(search.among) + 1) // 2
