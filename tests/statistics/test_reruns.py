"""How many pairs are run again, and what that shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from themis.statistics.reruns import (
    REPEATED,
    drift_ends,
    explained_by_noise,
    fewest_reruns,
    reruns_for,
)

alphas = st.floats(1e-9, 0.4)


@given(alphas)
def test_the_fewest_reruns_are_just_enough_against_noise_alone(alpha: float) -> None:
    count = fewest_reruns(alpha)
    assert REPEATED**count <= alpha * (1 + 1e-9)
    assert REPEATED ** (count - 1) > alpha * (1 - 1e-9)


@given(st.floats(0.01, 0.99), alphas)
def test_reruns_that_all_come_out_the_same_bound_what_noise_explains(
    share: float, alpha: float
) -> None:
    count = reruns_for(share, alpha)
    assert explained_by_noise(0, count, alpha) <= share + 1e-9
    fewest = fewest_reruns(alpha)
    assert count == fewest or explained_by_noise(0, count - 1, alpha) > share - 1e-9


@pytest.mark.parametrize(("lost", "won"), [(0.0, 0.0), (0.1, 0.3), (0.3, 0.0), (0.02, 0.02)])
def test_how_much_a_group_drifts_is_covered_as_often_as_stated(lost: float, won: float) -> None:
    runs, alpha, covered = 20, 0.1, 0.0
    for fewer in range(runs + 1):
        for more in range(runs + 1 - fewer):
            low, high = drift_ends(fewer, more, runs, alpha)
            counts = [fewer, more, runs - fewer - more]
            chance = multinomial(runs, [lost, won, 1 - lost - won]).pmf(counts)
            covered += float(chance) if low <= won - lost <= high else 0.0
    assert covered >= 1 - alpha
