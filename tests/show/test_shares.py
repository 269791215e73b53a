"""Does every share that is shown say what it rests on?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import themis
from themis.results.model import CausalScore
from themis.show.words.explanations import change_sentence
from themis.show.words.values import figure, percent_sure, share_text
from themis.statistics.proportions import anytime_interval

LARGE = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], savings=range(1_000), income=range(10**6)
)


def loan(table: themis.InputTable) -> Any:
    return table["savings"] > np.where(table["race"] == "green", 500, 650)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((3 / 26, 3, 26, 0.02, 0.3), "3 of 26"),
        ((0.0, 0, 99, 0.0, 0.1), "0 of 99"),
        ((0.25, 25, 100, 0.15, 0.37), "25.0 % (15.0 – 37.0 %)"),
        ((0.0, 0, 200, 0.0, 0.023), "0 % (at most 2.3 %)"),
        ((0.0, 0, 20_000, 0.0, 0.0004), "0 % (below 0.1 %)"),
        ((0.25, 25, 100), "25.0 %"),  # nothing was estimated
        ((0.25, 3, 26), "25.0 %"),  # those that were counted weigh differently
        ((0.25, None, 26), "25.0 %"),  # of an earlier version
    ],
)
def test_a_share_of_few_is_shown_as_counts_and_others_with_ends(given: Any, shown: str) -> None:
    assert share_text(*given) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (15_812.4, "15,810"),
        (1_170_000.0, "1,170,000"),
        (4.5e9, "4,500,000,000"),
        (-81_430.0, "-81,430"),
        (99_999.0, "100,000"),
        (1_234.4, "1,234"),
        (0.062_54, "0.06254"),
        (0.000_123, "0.000123"),
        (0.0, "0"),
        (123e12, "123,000,000,000,000"),
        (1.5e15, "1.5e+15"),
        (1.5e-5, "1.5e-05"),
    ],
)
def test_numbers_have_four_digits_and_no_powers_of_ten(number: float, shown: str) -> None:
    assert figure(number) == shown


def test_directions_of_a_sampled_score_have_counts_and_ends_that_fit_them() -> None:
    score = themis.Audit(themis.batch(loan), LARGE, seed=1).causal("race")
    (harm,) = score.direction
    assert harm.lost_count == round(harm.lost * harm.contexts) > 0
    assert harm.gained_count == 0 == harm.gained_low
    ends = anytime_interval(harm.lost_count, harm.lost_count, harm.contexts, score.confidence)
    assert (harm.lost_low, harm.lost_high) == (ends.low, ends.high)
    assert harm.lost_low is not None
    assert harm.lost_low < 0.15 < ends.high  # the truth
    assert f"({math.floor(1000 * harm.lost_low) / 10} – " in change_sentence(harm)


def test_directions_of_a_whole_domain_are_exact_and_have_counts() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(26))
    audit = themis.Audit(lambda p: p["savings"] > (5 if p["race"] == "green" else 8), schema)
    (harm,) = audit.causal("race").direction
    assert (harm.lost_count, harm.gained_count, harm.contexts, harm.lost_low) == (3, 0, 26, None)
    assert "3 of 26 lose the favourable decision, 0 of 26 gain it" in change_sentence(harm)


def test_people_who_weigh_differently_are_not_shown_as_counts() -> None:
    schema = themis.Schema(race=["green", "purple"], savings=range(26))
    audit = themis.Audit(lambda p: p["savings"] > (5 if p["race"] == "green" else 8), schema)
    rows = {"race": ["green"] * 4, "savings": [3, 6, 7, 20], "w": [1, 5, 1, 1]}
    result = audit.apparent(rows, "race", weights="w", measures=["causal"], only_data=True)
    harm = next(s for s in result.scores if isinstance(s, CausalScore) and s.direction).direction[0]
    assert (harm.lost, harm.lost_count) == (0.75, 2)
    assert "75.0 % lose the favourable decision, 0 % gain it" in change_sentence(harm)


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(0.99, "99"), (0.9975, "99.75"), (0.99875, "99.875"), (1 - 0.01 / 11, "99.909"), (0.5, "50")],
)
def test_a_confidence_has_few_digits_and_is_never_more_than_it_is(
    confidence: float, shown: str
) -> None:
    assert percent_sure(confidence) == shown
    assert float(shown) <= 100 * confidence + 1e-9
