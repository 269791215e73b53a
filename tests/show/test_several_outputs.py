"""Sentences about one of several outputs, about small groups, and where nothing was found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import themis
from tests import report_results as samples
from themis.results.model import Result
from themis.show.terminal.results import render_checks


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
