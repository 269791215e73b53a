"""Pairs of groups: every ordered pair has an end, and those of very many groups hold as well."""

from __future__ import annotations

import numpy as np
import pytest

from themis.statistics.groups import MOST_COMPARED, GroupRule, SeenMany


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


def test_ends_of_very_many_groups_hold_at_every_look() -> None:
    """Of 100 runs at most 1 in 5 misses the spread, whichever groups were dropped meanwhile."""
    missed = 0
    for seed in range(100):
        rng, rates, below = np.random.default_rng(seed), np.array([0.5, 0.3, 0.3, 0.4]), False
        pairs, running = SeenMany(GroupRule(0.4, 0.05), len(rates)), np.ones(4, dtype=bool)
        for _ in range(12):
            rows = rng.random((100, 4)) < rates
            pairs.add(rows[:, running], rows[:, running], running)
            pairs.look()
            below |= pairs.high < 0.2
            keep = pairs.open_groups(0.15)
            keep[:2] = True
            pairs.drop(keep)
            running[running] = keep
        missed += below
    assert missed <= 20


def test_very_many_groups_are_settled() -> None:
    rule, groups = GroupRule(0.05, 0.1), MOST_COMPARED + 1
    state, rng, last = rule.start(groups), np.random.default_rng(1), 0
    rates = np.where(np.arange(groups) == 7, 0.8, 0.3)
    for look in rule.looks():
        rows = (rng.random((look - last, groups)) < rates)[:, state.active]
        state.add(rows, rows)
        state.look()
        last = look
        if state.done:
            break
    assert last < 2_000
    assert state.champions is not None
    assert state.champions[0] == 7
    assert state.low <= 0.5 <= state.high


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
