"""Do sampled means, of groups and of distances, contain the truth and take few executions?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests.report_results import plain
from themis.show.terminal.results import render_result

SCHEMA = themis.Schema(
    sex=["female", "male"], hours=range(10, 61), income=range(100), children=range(20)
)
LIMIT = themis.Output(name="limit", min=0, max=5000)


def a_tenth_less(person: dict[str, Any]) -> float:
    return (1000 + 40 * person["hours"]) * (0.9 if person["sex"] == "female" else 1.0)


def rarely_nothing(person: dict[str, Any]) -> float:
    """Women get 40 more, but those with 19 children nothing."""
    if person["sex"] == "male":
        return 1000
    return 0 if person["children"] == 19 else 1040


TRUTHS = {a_tenth_less: (2160 / 5000, 2400 / 5000), rarely_nothing: (988 / 5000, 1000 / 5000)}


@pytest.mark.parametrize("subject", TRUTHS)
@pytest.mark.parametrize("seed", range(3))
def test_the_truth_is_within_the_ends(subject: Any, seed: int) -> None:
    audit = themis.Audit(subject, SCHEMA, outputs=[LIMIT], seed=seed, error=0.02)
    score = audit.group("sex")
    women, men = TRUTHS[subject]
    assert score.method == "sampled"
    assert score.low <= abs(men - women) <= score.high
    for group in score.groups:
        truth = women if group.values["sex"] == "female" else men
        assert group.low <= truth <= group.high


@pytest.mark.parametrize(
    ("error", "most"), [(0.05, 650), (0.02, 1_000), (0.01, 2_000), (0.005, 4_000)]
)
def test_a_difference_that_hardly_varies_is_found_with_few_executions(
    error: float, most: int
) -> None:
    """Outcomes drawn at random would take 3,700, 12,000 and 55,000; the first would find none."""
    audit = themis.Audit(a_tenth_less, SCHEMA, outputs=[LIMIT], seed=1, error=error)
    score = audit.group("sex")
    assert score.low > 0
    assert score.high - score.low <= 2 * error
    assert score.executions < most


# Causal scores by degrees ---------------------------------------------------------------------
PREMIUM = themis.Output(name="premium", min=0, max=5000, distance="relational")
MANY = themis.Schema(sex=["f", "m"], age=range(18, 80), city=range(9), x=range(100_000))


def dearer(table: themis.InputTable) -> Any:
    return 100 + 20 * (table["sex"] == "f") + table["age"]


def everything(table: themis.InputTable) -> Any:
    """The whole scale, or nothing: distances of 0 and 1."""
    return 5000 * ((table["x"] % 10 < 3) & (table["sex"] == "f") & (table["city"] < 8))


@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("stopping", ["certified", "paper"])
def test_what_changed_a_little_for_everybody_changed(seed: int, stopping: Any) -> None:
    """Of the distance of 0.004 nothing was seen in 106 rows, and "changed for none" was said."""
    options: Any = {"outputs": [PREMIUM], "stopping": stopping, "seed": seed}
    audit = themis.Audit(themis.batch(dearer), MANY, **options)
    score = audit.causal("sex")
    assert score.score == pytest.approx(0.004)
    assert score.low <= 0.004 <= score.high
    assert len(score.witnesses) == 10
    shown = " ".join(plain(render_result(audit.score([["sex"]], ["causal"]))).split())
    assert "changes by 0.4 %" in shown
    assert "none of" not in shown


@pytest.mark.parametrize("against", ["sex", "city"])
@pytest.mark.parametrize("error", [0.05, 0.02])
def test_distances_of_zero_and_one_take_what_flips_take(against: str, error: float) -> None:
    scores = []
    for output in (PREMIUM, replace(PREMIUM, distance="exact")):
        options: Any = {"outputs": [output], "cost": "executions", "error": error, "seed": 3}
        scores.append(themis.Audit(themis.batch(everything), MANY, **options).causal(against))
    degrees, flips = scores
    assert (degrees.score, degrees.low, degrees.high) == (flips.score, flips.low, flips.high)
    assert degrees.samples == flips.samples
    assert degrees.account.sampling <= flips.account.sampling + flips.samples


@pytest.mark.parametrize(("error", "most"), [(0.05, 110), (0.01, 560)])
def test_a_change_that_hardly_varies_takes_few_rows(error: float, most: int) -> None:
    options: Any = {"outputs": [PREMIUM], "cost": "executions", "error": error, "seed": 1}
    assert themis.Audit(themis.batch(dearer), MANY, **options).causal("sex").samples <= most


def test_failures_and_a_budget_leave_honest_ends_by_degrees() -> None:
    def failing(table: themis.InputTable) -> Any:
        answers = np.asarray(dearer(table), dtype=object)
        answers[table["x"] % 10 == 0] = None
        return answers

    for limits in ({}, {"max_executions": 150}):
        options: Any = {"outputs": [PREMIUM], "max_failures": 0.5, "seed": 1, **limits}
        score = themis.Audit(themis.batch(failing), MANY, **options).causal("sex")
        assert score.unknown > 0
        assert score.score < 0.004 < 0.1036 <= score.high
        assert score.low <= 0.9 * 0.004
