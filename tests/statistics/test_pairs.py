"""Pairs of groups: every ordered pair has an end, and few rows suffice for it."""

from __future__ import annotations

import numpy as np
import pytest

from themis.statistics.groups import GroupRule


@pytest.mark.parametrize("groups", [2, 3, 7])
def test_champions_and_the_spread_are_those_of_all_pairs(groups: int) -> None:
    rng = np.random.default_rng(groups)
    for _ in range(50):
        low = rng.random((9, groups)) < rng.random(groups)
        high = low | (rng.random(low.shape) < 0.2)
        state = GroupRule(0.05, 0.05).start(groups)
        state.add(low, high)
        state.look()
        apart = low.sum(axis=0)[:, None] - high.sum(axis=0)[None, :]
        np.fill_diagonal(apart, -100)
        assert state.champions == divmod(int(apart.argmax()), groups)
        assert state.interval().score == pytest.approx(np.ptp(low.mean(axis=0)))


@pytest.mark.parametrize("groups", [2, 3, 1_000])
@pytest.mark.parametrize("numbers", [False, True])
def test_before_anything_is_seen_groups_may_differ_altogether(groups: int, numbers: bool) -> None:
    state = GroupRule(0.05, 0.1).start(groups, numbers=numbers)
    assert (state.low, state.high) == (0.0, 1.0)


@pytest.mark.parametrize("error", [0.1, 0.05, 0.02])
def test_even_groups_that_are_always_opposite_need_no_more_than_most_contexts(error: float) -> None:
    rule = GroupRule(0.005, error)
    for seed in range(4):
        state, count = rule.start(2), 0
        rng = np.random.default_rng(seed)
        for look in rule.looks():
            first = rng.integers(0, 2, look - count)
            state.add(*[np.stack([first, 1 - first], axis=1)] * 2)
            state.look()
            count = look
            if state.done:
                break
        assert rule.most_contexts / 3 < count <= rule.most_contexts
