"""The annex: what an auditor has to file is there, counted rightly, and claims no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests import report_results as samples
from tests.show.test_report_page import Document
from themis import Audit, Schema, Values
from themis.results.parts import Naming
from themis.show.reports.annex import ABSENT, HERE, references, render_annex
from themis.show.reports.page import render_page
from themis.show.words.searches import set_counts
from themis.show.words.wording import Wording

PEOPLE = {"sex": ["f"] * 60 + ["m"] * 59 + ["x"], "income": list(range(60)) * 2}
SCHEMA = Schema(sex=Values(["f", "m", "x"], protected=True), income=range(60))


def annex(result: Any) -> str:
    return " ".join(Document(render_annex(result)).text.split())


def test_the_annex_says_what_was_tested_with_what_and_why_on_test_data() -> None:
    naming = Naming(name="Loan screen", purpose="Loans", why_test_data="It is not in use yet")
    text = annex(replace(samples.demo(), report=naming))
    assert "Loan screen" in text
    assert "It is not in use yet" in text
    assert f"Themis {themis.__version__}" in text
    assert "Inputs were generated at random from the schema" in text
    assert text.count("to be filled in") == 5  # owner, auditor, in use since, independence, why


def test_rows_of_an_unknown_category_are_counted_and_rare_categories_named() -> None:
    rows = {**PEOPLE, "sex": [*PEOPLE["sex"][:-6], *[None] * 5, "x"]}
    schema = Schema(sex=Values(["f", "m", "x"], protected=True, missing=0.1), income=range(60))
    result = Audit(lambda p: int(p["income"] > 20), schema).apparent(rows, "sex", only_data=True)
    text = annex(result)
    assert "Of an unknown category: sex 5." in text
    assert "sex unknown5" in text
    assert "Fewer than 2 % of the people in the rows: sex x." in text
    assert "here those of too few to judge have no ratio" in text
    assert "none was left out" not in text
    assert "Inputs were generated" not in text
    common = {"sex": ["f", "m"] * 60, "income": list(range(60)) * 2}
    result = Audit(lambda p: int(p["income"] > 20), SCHEMA).apparent(common, "sex", only_data=True)
    assert "No category has fewer than 2 % of the people in the rows." in annex(result)


def _number(person: Any) -> float:
    return float(person["income"] + (10 if person["sex"] == "m" else 0))


@pytest.mark.parametrize("way", ["exact", "rows", "sampled"])
def test_scoring_rates_are_shares_above_the_median_of_all(way: str) -> None:
    output = themis.Output(min=0, max=100)
    schema = SCHEMA if way != "sampled" else Schema(
        sex=Values(["f", "m", "x"], protected=True), income=range(60), other=range(10**6)
    )  # fmt: skip
    audit = Audit(_number, schema, outputs=output)
    if way == "rows":
        score = next(s for s in audit.apparent(PEOPLE, "sex", only_data=True).scores
                     if s.measure == "group")  # fmt: skip
        numbers = [_number({"sex": s, "income": i}) for s, i in zip(*PEOPLE.values(), strict=True)]
        of = np.array(PEOPLE["sex"])
    else:
        score = audit.group("sex", statistic="mean")
        numbers = [_number({"sex": s, "income": i}) for s in "fmx" for i in range(60)]
        of = np.repeat(["f", "m", "x"], 60)
    above = np.array(numbers) > np.median(numbers)
    for group in score.groups:
        expected = float(above[of == group.values["sex"]].mean())
        assert group.above_median == pytest.approx(expected, abs=0.1 if way == "sampled" else 0.01)


def test_figures_have_their_names_elsewhere_and_what_is_missing_is_said_to_be() -> None:
    def statuses(result: Any) -> dict[str, str]:
        return {each.named: each.status for rows in references(result).values() for each in rows}

    audit = Audit(lambda p: int(p["income"] > 20), SCHEMA)
    rates, causal = (audit.score([["sex"]], [each]) for each in ("group", "causal"))
    parity = "demographic parity (statistical parity)"
    assert (statuses(rates)[parity], statuses(causal)[parity]) == (HERE, ABSENT)
    for name in (
        "equalized odds, equality of opportunity, predictive equality",
        "intersections of sex and race or ethnicity (§ 5-301)",
    ):
        assert statuses(rates)[name] == ABSENT
    text = annex(rates)
    assert "information and no legal advice" in text
    for name in ("ISO/IEC TR 24027", "MEASURE 2.11", "Local Law 144", "Annex IV"):
        assert name in text
    numbers = Audit(_number, SCHEMA, outputs=themis.Output(min=0, max=100))
    for name in ("Above the median", "Scoring rate"):
        assert name in annex(numbers.score([["sex"]], ["group"]))
    assert "Above the median" not in text


def test_error_rates_are_in_the_annex_where_outcomes_are_known() -> None:
    schema = themis.Schema(sex=["f", "m"], income=range(100))
    rows = {
        "sex": ["f", "m"] * 40,
        "income": [*range(80)],
        "repaid": [number % 3 > 0 for number in range(80)],
    }
    audit = themis.Audit(lambda person: person["income"] > 40, schema)
    plain, known = (audit.apparent(rows, "sex", label=label) for label in (None, "repaid"))
    assert "Known outcomes" not in render_annex(plain)
    page = render_annex(known)
    assert "Known outcomes" in page
    assert "false positive rate" in page
    assert page.count("not in this result") < render_annex(plain).count("not in this result")


def test_names_of_eeo1_categories_are_in_the_annex_alone_beside_the_words_of_the_file() -> None:
    values = {"sex": {"female": "women"}}
    naming = Naming(values=values, eeo1={"sex": {"female": "Female (EEO-1)"}})
    result = replace(samples.audit(), report=naming)
    text = annex(result)
    assert "Female (EEO-1) women88" in text
    assert "Female (EEO-1) · green women · green" in text
    assert "male93" in text  # without a name it is as it is
    assert "EEO-1" not in render_page(result)


def test_of_a_weighted_domain_the_share_is_shown_and_nothing_is_called_estimated() -> None:
    schema = Schema(sex=Values(["f", "m"], protected=True, weights=[3, 1]), income=range(10))
    audit = Audit(lambda p: int(p["income"] > (5 if p["sex"] == "f" else 4)), schema)
    text = annex(audit.score(["sex"], ["group"]))
    assert "all 20 test inputs, each with its own values" in text
    assert "Rates and shares are by weight, counts are not. Nothing is estimated." in text
    assert "1075.0 %440.0 %" in text.replace("\u00a0", " ")


def test_a_search_says_what_it_did_not_search() -> None:
    text = annex(samples.audit())
    assert "3 combinations of 2 characteristics:" in text
    assert "; not searched: income and savings." in text
    assert "not searched" not in set_counts(samples.audit().searches[0], Wording())
