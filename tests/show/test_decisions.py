"""Does a search claim of each set what is proven, and no more?"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from tests.report_results import result
from tests.show.test_notebook import SEARCHED
from tests.show.test_report_page import Document
from themis.settings import Stopping
from themis.show.reports.page import render_page
from themis.show.terminal.searches import render_search
from themis.show.words.decisions import unlisted_words


def test_a_set_that_was_excluded_is_not_called_below_the_threshold() -> None:
    assert SEARCHED.why("age") == "not above 15 %: none of 80 inputs flips"
    assert SEARCHED.why("race").startswith("above 5 %: ")
    assert SEARCHED.why("race,age") == "follows: it contains race, which is above 5 %"


def test_pages_and_terminals_say_what_is_proven() -> None:
    searched = replace(result(command="search"), searches=(SEARCHED,), scores=())
    page = Document(render_page(searched)).text.replace("\u202f", " ").replace("\xa0", " ")
    terminal = render_search(searched, file=io.StringIO(), width=100, everything=True)
    for text in (page, terminal):
        assert "not above 15 %" in text
        assert "below the threshold" not in text
        assert "below:" not in text
    assert "not above 15 %  none of 80" in terminal


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "not above 15 %"),
        ({"method": "exact"}, "below 10 %"),
        ({"method": "exact", "threshold": 0.0}, "not above 0 %"),
        ({"threshold": 0.0}, "not above 5 %"),
        ({"threshold": 1.0}, "below 100 %"),
        ({"stopping": Stopping.PAPER}, "below 10 %"),  # what it estimates
        ({"measure": "group"}, "not above 15 points"),
    ],
)
def test_how_much_is_excluded(changes: dict[str, Any], words: str) -> None:
    assert unlisted_words(replace(SEARCHED, **changes)) == words
