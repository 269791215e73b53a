"""Does every share that is shown say what it rests on?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import themis
from themis.results.model import CausalScore
from themis.show.words.explanations import change_sentence
from themis.statistics.proportions import anytime_interval

LARGE = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], savings=range(1_000), income=range(10**6)
)


def loan(table: themis.InputTable) -> Any:
    return table["savings"] > np.where(table["race"] == "green", 500, 650)


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
