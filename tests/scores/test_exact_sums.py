"""Sums of many small weights: an exact score is right to its last digit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import themis
from themis.inputs.keys import summed


@pytest.mark.parametrize("kind", ["equal", "few", "any", "none"])
def test_sums_are_those_without_rounding(kind: str) -> None:
    rng = np.random.default_rng(0)
    count = 0 if kind == "none" else 300_000
    weights = {
        "equal": np.full(count, 1 / 3e6),
        "few": rng.choice([0.7e-6, 0.1e-6, 3e-9], count),
        "any": rng.exponential(1e-6, count),
        "none": np.empty(0),
    }[kind]
    places = rng.integers(0, 3, count)
    sums = summed(places, weights, 4)
    truth = [math.fsum(weights[places == place]) for place in range(4)]
    assert sums == pytest.approx(truth, rel=4e-16)


def decide(table: Any) -> Any:
    return table["rest"] % 10 >= 5 + 3 * (table["sex"] == "f")


@pytest.mark.parametrize("share", [None, 0.7])
@pytest.mark.parametrize("measure", ["group", "causal"])
def test_a_score_that_equals_its_limit_is_not_above_it(measure: str, share: float | None) -> None:
    """It was by 10⁻¹² and more where a million inputs had been added up one by one."""
    race = themis.Values(list("abc"), weights=share and [share, 0.2, 1 - share - 0.2])
    schema = themis.Schema(sex=["f", "m"], race=race, rest=range(200_000))
    audit = themis.Audit(themis.batch(decide), schema)
    score = getattr(audit, measure)("sex", "race", exact=True)
    assert score.method == "exact"
    assert Fraction(str(score.score)) == Fraction(3, 10)
    score.assert_below(0.3)


def test_no_causal_score_is_above_one() -> None:
    schema = themis.Schema(sex=["f", "m"], race=list("abc"), rest=range(100_000))
    assert themis.Audit(themis.batch(decide), schema).causal("rest", exact=True).score == 1.0


@pytest.mark.parametrize("distinct", [20, 1_000_000], ids=["copies", "distinct"])
def test_a_million_rows_of_weight_a_tenth_add_up(distinct: int) -> None:
    places = np.arange(1_000_000)
    rows = {"sex": np.where(places % 2, "f", "m"), "rest": places // 2 % (distinct // 2)}
    schema = themis.Schema(sex=["f", "m"], rest=range(500_000))
    audit = themis.Audit(themis.batch(decide), schema, error=0.001)
    weights = np.full(len(places), 0.1)
    for counterfactuals in ("generated", "within"):
        result = audit.apparent(
            rows, "sex", weights=weights, counterfactuals=counterfactuals, only_data=True
        )
        assert [Fraction(str(each.score)) for each in result.scores] == [Fraction(3, 10)] * 2
