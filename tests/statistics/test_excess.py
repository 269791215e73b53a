"""The excess of subjects that answer at random: its estimator, and the ends of what it says."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.statistics.excess import IMPOSSIBLE, UNKNOWN, ExcessRule, ExcessState, compare

PAIR = np.array([0]), np.array([1])
OUTPUTS = st.integers(2, 4).flatmap(
    lambda times: st.lists(
        st.lists(st.integers(UNKNOWN, 2), min_size=times, max_size=times), min_size=2, max_size=2
    )
)


def by_definition(one: list[int], other: list[int]) -> float:
    """How often outputs of different times differ between the two, less how often within each."""
    times = [*permutations(range(len(one)), 2)]

    def apart(left: list[int], right: list[int]) -> float:
        return sum(left[i] != right[j] for i, j in times) / len(times)

    return apart(one, other) - (apart(one, one) + apart(other, other)) / 2


@given(OUTPUTS)
def test_a_context_says_what_the_definition_says_and_the_worst_where_something_failed(
    outputs: list[list[int]],
) -> None:
    (least, most), _, _ = compare(np.array([outputs]), *PAIR)
    assert -1 <= least[0, 0] <= most[0, 0] <= 1
    possible = [
        [[1 if each == UNKNOWN else each for each in side] for side in outputs],
        [[n if each == UNKNOWN else each for each in side] for n, side in enumerate(outputs)],
        [[5 + i if e == UNKNOWN else e for i, e in enumerate(side)] for side in outputs],
    ]
    for each in possible:  # whatever the failed ones would have been
        assert least[0, 0] - 1e-9 <= by_definition(*each) <= most[0, 0] + 1e-9
    if UNKNOWN not in (*outputs[0], *outputs[1]):
        assert least[0, 0] == most[0, 0] == pytest.approx(by_definition(*outputs))


def test_the_mean_is_half_of_the_squared_distance_of_distributions_even_if_times_drift() -> None:
    rng = np.random.default_rng(0)
    one, other = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    drawn = np.stack([rng.choice(3, (100_000, 3), p=each) for each in (one, other)], axis=1)
    (least, _), (across, _), (within, _) = compare(drawn, *PAIR)
    truth = ((one - other) ** 2).sum() / 2
    assert least.mean() == pytest.approx(truth, abs=0.005)
    assert (across - within).mean() == pytest.approx(truth, abs=0.005)
    drifting = rng.random((100_000, 2, 3)) < np.array([0.9, 0.5, 0.1])
    assert compare(drifting.astype(int), *PAIR).excess[0].mean() == pytest.approx(0, abs=0.005)


def test_an_assignment_that_a_context_does_not_have_alters_nothing_there() -> None:
    outputs = np.array([[[1, 1], [IMPOSSIBLE, IMPOSSIBLE]], [[1, 1], [0, 0]]])
    assert compare(outputs, *PAIR).excess[0].ravel().tolist() == [0, 1]


CASES: dict[str, tuple[list[float], float]] = {  # chances of each assignment, share that is random
    "a coin": ([0.5, 0.5], 1.0),
    "of ten, one is turned round": ([0.9, 0.1], 0.1),
    "certain": ([1.0, 0.0], 0.05),
    "a shift": ([0.6, 0.4], 1.0),
    "five": ([0.7, 0.3, 0.5, 0.5, 0.5], 1.0),
    "five equal ones": ([0.9] * 5, 1.0),
}


def run(chances: list[float], share: float, seed: int, confidence: float) -> tuple[Any, Any]:
    """A run to ± 0.1 of subjects of which a share of contexts answers with these chances."""
    rng, state = np.random.default_rng(seed), None
    state = ExcessState(ExcessRule(1 - confidence, 0.1), len(chances), rates=True)
    for target in state.rule.looks():
        shape = (target - state.count, len(chances), state.times)
        random = rng.random(shape) < np.array(chances)[:, None]
        usual = rng.random((shape[0], 1, 1)) < 0.5
        outputs = np.where(rng.random((shape[0], 1, 1)) < share, random, usual).astype(int)
        rates = outputs.mean(axis=2)
        state.add(outputs, (rates, rates))
        state.look()
        if state.done:
            return state.interval, state.shown()
    raise AssertionError


@pytest.mark.parametrize("name", CASES)
def test_ends_of_excess_across_within_and_gap_hold(name: str) -> None:
    chances, share = CASES[name]
    runs, wrong = 60, np.zeros(4, dtype=int)
    for seed in range(runs):
        interval, shown = run(chances, share, seed, 0.8)
        p, q = (chances[each] for each in shown.pair)
        own = [share * 2 * each * (1 - each) for each in (p, q)]
        truths = {
            "score": share * max((a - b) ** 2 for a in chances for b in chances),
            "across": share * (p * (1 - q) + q * (1 - p)),
            "within": sum(own) / 2,
            "gap": share * (p - q),
        }
        ends = [interval, shown.across, shown.within, shown.gap]
        for place, (truth, each) in enumerate(zip(truths.values(), ends, strict=True)):
            wrong[place] += not each.low - 1e-9 <= truth <= each.high + 1e-9
            assert each.low <= each.score <= each.high
    assert (wrong <= 20).all(), wrong  # 12 are allowed on average, 21 in one of 200 such tests


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10_000))
def test_how_contexts_are_cut_into_batches_does_not_matter(
    assignments: int, times: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    outputs = rng.integers(UNKNOWN, 3, (50, assignments, times))
    rates = (outputs == 1).mean(axis=2), (outputs != 0).mean(axis=2)
    whole, parts = (ExcessState(ExcessRule(0.01, 0.05), assignments, rates=True) for _ in range(2))
    whole.add(outputs, rates)
    for first in range(0, 50, 7):
        part = slice(first, first + 7)
        parts.add(outputs[part], (rates[0][part], rates[1][part]))
    for state in (whole, parts):
        state.look()
    assert whole.interval == parts.interval
    assert (whole.shown(), whole.times) == (parts.shown(), parts.times)
