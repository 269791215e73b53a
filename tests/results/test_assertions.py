"""Do scores and searches pass, fail and stay open as their intervals say?"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from tests.show.test_display import causal
from tests.show.test_notebook import SEARCHED
from themis.results.model import CheckResult
from themis.results.notes import Ending
from themis.testing.claims import AuditInTest

SCHEMA = themis.Schema(race=["green", "purple"], income=range(1000), age=range(1000))


def loan(person: dict[str, Any]) -> bool:
    return bool(person["income"] > (300 if person["race"] == "green" else 380))


def verdict(score: Any, limit: float) -> str:
    try:
        score.assert_below(limit)
    except themis.DiscriminationError:
        return "violated"
    except themis.InconclusiveError:
        return "open"
    return "holds"


@given(
    ends=st.lists(st.floats(0, 0.99), min_size=3, max_size=3).map(sorted), limit=st.floats(0, 0.99)
)
def test_a_verdict_is_given_only_when_the_interval_is_on_one_side(
    ends: list[float], limit: float
) -> None:
    low, point, high = ends
    said = verdict(causal(low=low, score=point, high=high), limit)
    rounding = 1e-12 if limit > 0 else 0.0
    assert (said == "holds") == (high - limit <= rounding)
    assert (said == "violated") == (low - limit > rounding)


def test_errors_are_assertion_errors_with_the_score() -> None:
    with pytest.raises(
        AssertionError, match=r"causal race 0\.113 \[0\.063, 0\.163\] is above 0\.05"
    ) as error:
        causal().assert_below(0.05)
    assert isinstance(error.value, themis.DiscriminationError)
    assert isinstance(error.value, themis.ThemisError)
    assert error.value.outcome == causal()
    again = pickle.loads(pickle.dumps(error.value))  # other processes get it by its public name
    assert str(again) == str(error.value)


@pytest.mark.parametrize("limit", [5, -0.1, 1, True, "0.1", None])
def test_limits_that_make_no_sense_are_refused(limit: Any) -> None:
    with pytest.raises(themis.RequestError, match=r"write 0\.05 for 5 %"):
        causal().assert_below(limit)


def test_a_run_that_was_cut_off_or_a_search_that_left_sets_open_is_not_conclusive() -> None:
    causal().assert_conclusive()
    with pytest.raises(themis.InconclusiveError, match="the budget ended"):
        causal(stopped=Ending.BUDGET).assert_conclusive()
    with pytest.raises(themis.InconclusiveError):
        SEARCHED.assert_nothing_found()  # the found set may be below, another is undecided
    with pytest.raises(themis.DiscriminationError, match=r"1 minimal set found \(race\)"):
        replace(SEARCHED, minimal_sets=(causal(low=0.12),)).assert_nothing_found()
    replace(SEARCHED, minimal_sets=(), found=(), undecided=()).assert_nothing_found()


@pytest.mark.parametrize(
    ("limit", "said"), [(0.2, "holds"), (0.1, "holds"), (0.06, "violated"), (0.01, "violated")]
)
def test_claims_are_narrowed_to_the_truth_of_eight_percent(limit: float, said: str) -> None:
    answers: list[CheckResult] = []
    audit = themis.Audit(loan, SCHEMA, seed=1)
    test = AuditInTest(audit, record=lambda check, answer, executions: answers.append(answer))
    assert verdict(test.causal("race"), limit) == said
    assert [each.verdict for each in answers] == [said]


def test_a_claim_leaves_settings_alone_and_runs_nothing_until_it_is_needed() -> None:
    audit = themis.Audit(loan, SCHEMA, seed=1)
    before = audit.settings
    claim = AuditInTest(audit, {"error": 0.02}).causal("race", confidence=0.9)
    assert repr(claim) == "causal score against race"
    assert not hasattr(claim, "__array__")
    assert not hasattr(claim, "_repr_png_")
    assert audit.runner.executions == 0
    claim.assert_below(0.3)
    assert claim.low > 0
    assert audit.runner.executions > 0
    assert repr(claim).startswith("causal score against race: 0.0")
    assert audit.settings == before
