"""Sentences about one of several outputs, about small groups, and where nothing was found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import themis
from tests import report_results as samples
from themis.results.model import GroupScore, Result
from themis.results.parts import Group
from themis.results.withheld import withheld, withheld_check
from themis.show.parts.groups import group_table, rate_interval
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import make_console, render
from themis.show.terminal.results import render_checks
from themis.show.words.headlines import headline, interval
from themis.show.words.searches import check_interval
from themis.show.words.verdicts import clauses
from themis.show.words.wording import Wording


def _of_two_outputs() -> Result:
    """Checks of the same set of two outputs, both violated."""
    granted = samples.causal(output="granted", low=0.2, score=0.2, high=0.2)
    limit = samples.causal(output="limit", low=0.03, score=0.03, high=0.03, direction=())
    check = replace(
        samples.checked(samples.result(granted)).checks[0],
        against=("race",),
        search=False,
        verdict="violated",
        sets=(),
    )
    checks = [
        replace(check, name=f"causal race of {each.output}", output=each.output, max_score=most,
                score=each.score, low=each.low, high=each.high)
        for each, most in ((granted, 0.1), (limit, 0.01))
    ]  # fmt: skip
    return replace(samples.result(granted, limit), checks=tuple(checks))


def test_a_check_shows_the_people_of_its_own_output() -> None:
    result = _of_two_outputs()
    first, _, second = render_checks(result, width=80).partition("causal race of limit: violated")
    assert "lose a favourable output of granted" in first
    assert "of granted" not in second
    assert first.startswith("Both checks are violated")


def _few_at_the_top(**changes: Any) -> GroupScore:
    groups = (
        Group({}, 1.0, 1.0, 1.0, 4, few=True, people=4),
        Group({"race": "purple"}, 0.5, 0.5, 0.5, 90, people=90),
        Group({"race": "blue"}, 0.45, 0.45, 0.45, 90, people=90),
    )
    ends = {"score": 0.55, "low": 0.55, "high": 0.55, "method": "exact"}
    return samples.group(**{"groups": groups, "population": "profile", **ends, **changes})


def test_a_mean_of_few_people_is_not_shown_and_said_not_to_be() -> None:
    kind = {"statistic": "mean", "scale": (0.0, 8000.0), "impact_ratio": None}
    shown = withheld(_few_at_the_top(**kind))
    untold = "how much is not shown, as that would tell of fewer than 5 people"
    assert headline(shown) == (
        f"Mean outputs differ between groups of race in the profile; {untold}"
    )
    assert f"({untold})" in clauses([shown], Wording())
    assert interval(shown) == "not shown"
    assert [rate_interval(shown, each) for each in shown.groups] == ["exact", "exact"]
    table = render(drawn([group_table(shown, Wording(), most=9)]), make_console(width=80))
    assert "8,000" not in table
    inside = _few_at_the_top(**kind, score=0.05, low=0.05, high=0.05)
    inside = replace(inside, groups=(replace(inside.groups[0], rate=0.47), *inside.groups[1:]))
    assert "; means of fewer than 5 people are not shown (" in headline(withheld(inside))
    assert interval(withheld(inside)) == "exact"  # the difference is that of the others
    check = replace(samples.checked(samples.result(shown)).checks[0], measure="group",
                    against=("race",), low=0.55, high=0.55)  # fmt: skip
    assert check_interval(check) == "exact"
    assert check_interval(withheld_check(check, [_few_at_the_top(**kind)])) == "not shown"


def test_a_search_of_numbers_says_no_false_counts() -> None:
    def price(person: dict[str, Any]) -> float:
        return 200.0 + 3 * person["age"] + (20 if person["sex"] == "f" else 0)

    schema = themis.Schema(sex=["f", "m"], age=range(100), km=range(10_000))
    output = themis.Output(name="price", min=0, max=1000, distance="relational")
    audit = themis.Audit(price, schema, outputs=[output], seed=3)
    (tested,) = audit.search(0.1, among=["sex"]).tested
    assert tested.reason == f"decided by how far outputs differ for {tested.samples} inputs"
    (tested,) = audit.search(0.1, measure="group", among=["sex"]).tested
    assert tested.estimate == pytest.approx(0.02)
    tolerant = themis.Output(name="price", min=0, max=1000, distance="threshold", tolerance=5)
    audit = themis.Audit(price, schema, outputs=[tolerant], seed=3)
    (tested,) = audit.search(0.1, among=["sex"]).tested
    assert tested.reason == f"{tested.samples} of {tested.samples} inputs get a different output"
