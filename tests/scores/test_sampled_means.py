"""Do sampled means of groups contain the truth, and take few executions?"""

from __future__ import annotations

from typing import Any

import pytest

import themis

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
