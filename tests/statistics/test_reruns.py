"""How many pairs are run again, and what that shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from themis.statistics.reruns import REPEATED, explained_by_noise, fewest_reruns, reruns_for

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
