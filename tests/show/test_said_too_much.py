"""Does any format claim more than the others, or than is proven?"""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import pytest

import themis
from themis.results.model import Result
from themis.results.notes import Ending
from themis.show.notebook import html_of
from themis.show.reports.annex import render_annex
from themis.show.reports.ci import render_annotations
from themis.show.reports.markdown import render_cover, render_markdown
from themis.show.reports.page import render_page
from themis.show.terminal.results import render_result
from themis.show.words.verdicts import verdict

SCHEMA = themis.Schema(sex=themis.Values(["f", "m"], protected=True), age=range(20))


def flat(text: str) -> str:
    return " ".join(text.split())


def measured(decide: Any, **options: Any) -> Result:
    return themis.Audit(decide, SCHEMA, **options).score("sex")


def test_rates_that_tell_nothing_meet_no_rule() -> None:
    result = measured(lambda person: True)
    for render in (render_page, render_annex, render_markdown, render_result, html_of):
        page = flat(render(result))
        assert "every output was favourable" in page.casefold()
        assert "it meets the four-fifths rule" not in page


def test_a_run_that_was_interrupted_says_so_in_every_format() -> None:
    whole = measured(lambda person: person["age"] > 9, error=0.2, exact=False)
    cut = replace(whole, stopped=Ending.INTERRUPTED, scores=whole.scores[:1])
    said = "the run was interrupted; what was not measured until then is missing"
    for render in (render_result, render_annotations, render_markdown, render_page):
        assert said in flat(render(cut)).replace("The run", "the run")
    assert "This run ended before that: it was interrupted." in render_annex(cut)
    assert "This run ended before that" not in render_annex(whole)
    same = "The same seed gives the same result"
    for render in (render_page, render_cover):
        assert "another one may end elsewhere" in render(cut)
        assert same not in render(cut)
        assert same in render(whole)


def test_a_score_with_failures_is_not_called_exact_in_markdown() -> None:
    def decide(person: dict[str, Any]) -> bool:
        if person["age"] == 3:
            raise ValueError
        return bool(person["age"] > 9)

    text = flat(render_markdown(measured(decide, max_failures=1.0)))
    assert "| 0 % | 0 – 5.0 % |" in text
    assert "| exact |" not in text


@pytest.mark.parametrize(("stopped", "word"), [("done", "undecided"), ("budget", "not finished")])
def test_a_search_that_noise_left_undecided_was_finished(stopped: str, word: str) -> None:
    audit = themis.Audit(lambda person: person["age"] > 9, SCHEMA)
    search = audit.search(0.1)
    open_search = replace(
        search, found=(), minimal_sets=(), undecided=(("sex",),), stopped=Ending(stopped)
    )
    result = replace(audit.score("sex"), command="search", searches=(open_search,), scores=())
    assert verdict(result).word == word


@pytest.mark.parametrize(("paired", "doubted"), [(8, False), (4, True)])
def test_rows_that_all_have_a_counterpart_are_no_reservation(paired: int, doubted: bool) -> None:
    rows = [{"sex": sex, "age": age} for age in range(4) for sex in "fm"]
    rows += [{"sex": "f", "age": 10 + age} for age in range(8 - paired)]
    audit = themis.Audit(lambda person: person["age"] > 9, SCHEMA)
    result = audit.apparent(rows, "sex", only_data=True, measures=["causal"])
    page = flat(render_page(result))
    assert ("the others count as unchanged" in page) is doubted
    assert ("with reservations" in page) is doubted
    assert ("all of 8 rows have a counterpart" in page) is not doubted


@pytest.mark.parametrize("stopping", ["paper", "certified"])
def test_a_verdict_by_the_rule_of_the_paper_is_not_called_certain(stopping: Any) -> None:
    wide = themis.Schema(sex=["f", "m"], race=["g", "p"], income=themis.Integers(0, 10**6))
    audit = themis.Audit(lambda person: person["income"] > 500_000, wide, stopping=stopping)
    result = audit.score([["sex"], ["race"]])
    assert "ruled out" in verdict(result).sentence
    for render in (render_page, render_markdown, html_of):
        page = html.unescape(flat(render(result)))
        said = "by the paper's rule, which is not certified" in page
        assert said is (stopping == "paper")


def test_a_search_of_every_input_is_not_called_exact_where_answers_vary() -> None:
    result = themis.Audit(lambda person: person["age"] > 9, SCHEMA).search_all(0.1)
    noisy = replace(result.searches[0], stopped=Ending.NOISE)
    assert "exact: every input was run" in verdict(result).sentence
    assert "(every input was run)" in verdict(replace(result, searches=(noisy,))).sentence
