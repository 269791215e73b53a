"""Do all formats say the same of a result: its verdict, its figures, what was searched?"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import themis
from tests import report_results as samples
from tests.report_results import causal, group, result
from tests.show.test_display import Terminal
from themis.results.model import Result, Score
from themis.results.notes import Ending, Note
from themis.results.parts import Group, Naming, Noise, Placebo
from themis.show.notebook import html_of
from themis.show.parts.summary import score_lines
from themis.show.reports.annex import render_annex
from themis.show.reports.ci import render_annotations, render_junit
from themis.show.reports.markdown import render_markdown
from themis.show.reports.page import render_page
from themis.show.reports.sarif import render_sarif
from themis.show.terminal.results import render_result
from themis.show.words.headlines import headline, interval, point
from themis.show.words.verdicts import verdict
from themis.show.words.wording import PLAIN

SEARCH_FORMATS = (render_result, render_junit, render_markdown, render_page, render_annex, html_of)


def read(text: str) -> str:
    """The words of a format, without its marks."""
    text = html.unescape(re.sub(r"<!-- -->|</?span>|</?bdi>", "", text)).replace("\u00a0", " ")
    return " ".join(html.unescape(text).split())


# Scores -----------------------------------------------------------------------------------
def uneven() -> Score:
    """A group score of which some groups were settled, and tested less than the others."""
    more = np.array([50, 0, 0, 50, 0, 20, 0, 20])

    def decide(table: themis.InputTable) -> Any:
        return np.asarray(table["y"]) % 1000 < 500 + more[np.asarray(table["g"])]

    whole = themis.Integers(0, 10**6)
    schema = themis.Schema(g=range(8), x=whole, y=whole)
    audit = themis.Audit(themis.batch(decide), schema, error=0.1, max_executions=5000, seed=160)
    score = audit.score([["g"]]).scores[1]
    assert isinstance(score, themis.GroupScore)
    rates = [each.rate for each in score.groups]
    assert max(rates) - min(rates) > score.score > score.low == 0
    return score


EQUAL = (Group({"sex": "f"}, 0.64, 0.4, 0.8, 75), Group({"sex": "m"}, 0.64, 0.4, 0.8, 75))
KINDS: dict[str, Callable[[], Score]] = {
    "causal": causal,
    "causal, none": lambda: causal(score=0.0, low=0.0, high=0.05, witnesses=(), direction=()),
    "causal, undecided": lambda: causal(score=0.02, low=0.0, high=0.07, witnesses=()),
    "causal, cut off": lambda: causal(low=0.0, high=0.6, stopped=Ending.BUDGET),
    "causal, exact": lambda: causal(method="exact", low=0.129, high=0.129, score=0.129),
    "causal, noise": lambda: causal(low=0.0, placebo=Placebo(0.1, 0.09, 0.12)),
    "lower bound": lambda: causal(lower_bound=True, high=1.0),
    "group": group,
    "group, none": lambda: group(score=0.0, low=0.0, high=0.087, impact_ratio=1.0, groups=EQUAL),
    "group, uneven": uneven,
}


@pytest.mark.parametrize("kind", KINDS)
def test_terminal_page_markdown_and_notebook_have_the_same_word_and_figures(kind: str) -> None:
    score = KINDS[kind]()
    told = result(score, replace(score, against=("other",)))
    terminal = read(render_result(told, width=200, everything=True))
    page, markdown = read(render_page(told)), read(render_markdown(told))
    notebook = read(html_of(told))
    for text in (terminal, page, markdown, notebook):
        assert verdict(told).sentence in text
    assert headline(score) in terminal  # others have the sentences of findings
    for text in (page, markdown):
        assert verdict(told).word in text
    for text in (terminal, page, markdown):
        assert re.search(rf"{re.escape(point(score))}\W.*?{re.escape(interval(score))}", text)
    for text in (read(render_result(told, width=200)), notebook, page):
        for line in score_lines(score, PLAIN):
            value, ends = re.escape(line.value), re.escape(line.interval)
            assert re.search(rf"{value}\W.{{0,90}}?{ends}", text)
    pairs = re.findall(
        r"differ(?:ed)? by ([\d.]+) p", " ".join((terminal, page, markdown, notebook))
    )
    assert {float(each) for each in pairs} <= {round(100 * score.score, 1)}


@pytest.mark.parametrize(
    ("kind", "colour"), [("causal", "31"), ("causal, none", "32"), ("causal, undecided", "35")]
)
def test_a_bar_has_the_colour_of_its_verdict(kind: str, colour: str) -> None:
    shown = render_result(result(KINDS[kind]()), file=Terminal(), width=100, everything=True)
    assert f"\x1b[{colour}m" in shown


def test_markdown_has_the_cautions_of_the_page_and_says_how_many_it_left_out() -> None:
    noisy = replace(result(causal()), noise=Noise(100, 7, 0.07, 0.03, 0.14, 0.99))
    assert "noise: " in render_markdown(noisy)
    assert "more" not in render_markdown(noisy).partition("⚠️")[2].partition("\n\n")[0]
    many = replace(noisy, notes=samples.notes(*(f"caution {n}" for n in range(60))))
    shown = render_markdown(many)
    assert shown.count("⚠️") == 41
    assert "… and 21 more" in shown


def test_names_with_brackets_or_capitals_stay_whole_in_sentences() -> None:
    alone = causal(against=("income (k)",), score=0.0, low=0.0, high=0.0, method="exact")
    said = verdict(
        result(replace(alone, notes=(Note.of("nothing-to-change", against=("income (k)",)),)))
    ).sentence
    assert said.endswith("no test input can have another income (k)")
    named = replace(result(causal(), group()), report=Naming(decision="APR approval"))
    assert "; APR approval rates differ by" in verdict(named).sentence


# Searches ---------------------------------------------------------------------------------
def searched(**changes: Any) -> Result:
    """A whole audit of sex and race, whose causal search found nothing."""
    whole = samples.audit()
    nothing = {"found": (), "minimal_sets": (), "undecided": (), "stopped": Ending.DONE}
    return replace(whole, searches=(replace(whole.searches[0], **nothing, **changes),))


@pytest.mark.parametrize("shown", SEARCH_FORMATS)
@pytest.mark.parametrize(
    ("among", "size", "said"),
    [
        (("sex", "race"), 2, "mong sex and race, no combination changes the decision"),
        (("sex",), 1, "or sex alone, no combination changes the decision"),
        (("sex", "race", "income", "savings"), 4, "o combination of characteristics changes"),
        (("sex", "race", "income", "savings"), 2, "o combination of up to 2 characteristics "),
    ],
)
def test_what_is_said_of_a_search_names_what_was_searched(
    shown: Callable[[Result], str], among: tuple[str, ...], size: int, said: str
) -> None:
    text = read(shown(searched(among=among, max_size=size)))
    assert said in text
    assert ("combination of characteristics" in text) == ("of characteristics" in said)


def test_an_audit_has_its_scores_as_score_has_them_and_its_search_beside_them() -> None:
    whole = samples.audit()
    assert whole.searches[0].found
    of_scores = replace(whole, command="score", searches=())
    of_search = replace(whole, command="search")

    def reported(each: Result) -> list[set[Any]]:
        cases = ElementTree.fromstring(render_junit(each)).iter("testcase")
        results = json.loads(render_sarif(each))["runs"][0]["results"]
        return [
            set(render_annotations(each).splitlines()),
            {ElementTree.tostring(case).strip() for case in cases},
            {(e["level"], e["message"]["text"]) for e in results},
        ]

    parts = zip(reported(whole), reported(of_scores), reported(of_search), strict=True)
    for both, scores, search in parts:
        assert both == scores | search
        assert scores
        assert search
        assert not scores & search


@pytest.mark.parametrize("told", [samples.audit, samples.apparent], ids=["audit", "apparent"])
def test_no_two_findings_of_a_result_share_a_fingerprint(told: Callable[[], Result]) -> None:
    found = json.loads(render_sarif(told()))["runs"][0]["results"]
    assert len({each["partialFingerprints"]["themisSet/v1"] for each in found}) == len(found) > 2
