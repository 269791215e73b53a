"""Does the built-in example show what it says: equal rates, and people treated unequally?"""

from __future__ import annotations

import numpy as np
import pytest

from themis.cli.demo import SETS, decide_loan, demo_audit, loan_schema
from themis.results.model import CausalScore, GroupScore, Score


@pytest.fixture(scope="module")
def scores() -> dict[tuple[str, str], Score]:
    result = demo_audit().score(SETS, command="demo")
    return {(score.against[0], score.measure): score for score in result.scores}


def test_domain_is_far_too_large_to_try_everything() -> None:
    assert loan_schema().size > 10**14


def test_race_is_discriminated_against_by_both_measures(
    scores: dict[tuple[str, str], Score],
) -> None:
    causal, group = scores["race", "causal"], scores["race", "group"]
    assert isinstance(causal, CausalScore)
    assert isinstance(group, GroupScore)
    assert causal.low > 0.1
    assert group.low > 0.1
    assert group.four_fifths == "below"
    assert causal.direction[0].change_to == {"race": "purple"}
    assert causal.direction[0].gained == 0


def test_sex_looks_equal_by_group_and_flips_individuals(
    scores: dict[tuple[str, str], Score],
) -> None:
    assert scores["sex", "causal"].low > 0.1
    assert scores["sex", "group"].high < 0.03


@pytest.mark.slow
def test_stated_intervals_hold_the_truth_of_a_large_sample(
    scores: dict[tuple[str, str], Score],
) -> None:
    audit = demo_audit()
    rows = demo_audit(seed=7).sampler.base.rows(0, 20_000)
    people = [audit.schema.decode_row(row) for row in rows]
    flips = {
        name: np.mean(
            [
                len({decide_loan({**person, name: value}) for value in values}) > 1
                for person in people
            ]
        )
        for name, values in (("race", ("green", "purple")), ("sex", ("female", "male")))
    }
    for name, share in flips.items():
        score = scores[name, "causal"]
        assert score.low - 0.01 < share < score.high + 0.01
