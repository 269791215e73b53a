"""Pairs of many groups: candidates give the numbers of all pairs, whatever the outcomes are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.statistics import pairs, spreads
from themis.statistics.intervals import bet_fractions, difference_excluded, difference_upper
from themis.statistics.pairs import AllPairs, Bets, CandidatePairs, least_differing
from themis.statistics.spreads import GroupRule, GroupState

Outcomes = Callable[[np.random.Generator, int, int], Any]


def independent(rng: np.random.Generator, rows: int, groups: int) -> Any:
    return rng.random((rows, groups)) < np.linspace(0.3, 0.6, groups)


def in_common(rng: np.random.Generator, rows: int, groups: int) -> Any:
    """Groups of a few kinds, which share their contexts."""
    return rng.random((rows, 1)) < np.arange(groups) % 4 / 8 + 0.2


def nearly_the_same(rng: np.random.Generator, rows: int, groups: int) -> Any:
    return (rng.random((rows, 1)) < 0.5) ^ (rng.random((rows, groups)) < 0.02)


def opposed(rng: np.random.Generator, rows: int, groups: int) -> Any:
    """As far from each other as can be: no bound on what differs helps."""
    return (rng.random((rows, 1)) < 0.5) ^ (np.arange(groups)[None, :] % 2 == 0)


KINDS: tuple[Outcomes, ...] = (independent, in_common, nearly_the_same, opposed)


def states_of(rule: GroupRule, groups: int) -> tuple[GroupState, GroupState]:
    """The same run twice: with all pairs, and with candidates."""
    states = rule.start(groups), rule.start(groups)
    bets = Bets(rule.evidence, bet_fractions(rule.error))
    states[0]._seen.pairs = AllPairs(groups, bets)
    states[1]._seen.pairs = CandidatePairs(groups, bets)
    return states


@settings(max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 14),
    st.sampled_from([0.0, 0.03]),
    st.sampled_from([None, 0.4]),
    st.integers(0, 2**32),
)
def test_candidates_end_like_all_pairs(
    draw: Outcomes, groups: int, unknown: float, decide_below: float | None, seed: int
) -> None:
    rng, rule = np.random.default_rng(seed), GroupRule(0.9, 0.12, decide_below)
    whole, some = states_of(rule, groups)
    last = 0
    for contexts in itertools.islice(rule.looks(), 7):
        low = draw(rng, contexts - last, groups)[:, whole.active]
        high = low | (rng.random(low.shape) < unknown) if unknown else low
        cut = int(rng.integers(0, contexts - last + 1))
        whole.add(low, high)
        for part in (slice(0, cut), slice(cut, None)):
            some.add(low[part], low[part] if high is low else high[part])
        whole.look()
        some.look()
        assert (some.low, some.high) == (whole.low, whole.high)
        assert some.active.tolist() == whole.active.tolist()
        assert (some.champions, some.done) == (whole.champions, whole.done)
        last = contexts


@pytest.mark.parametrize("draw", [in_common, nearly_the_same])
def test_of_many_groups_few_pairs_are_counted(
    monkeypatch: pytest.MonkeyPatch, draw: Outcomes
) -> None:
    counted = []
    ends = CandidatePairs._ends

    def counting(own: CandidatePairs, first: Any, *rest: Any) -> Any:
        counted.append(len(first))
        return ends(own, first, *rest)

    monkeypatch.setattr(CandidatePairs, "_ends", counting)
    rng, state, looks = np.random.default_rng(1), GroupRule(0.99, 0.05).start(600), 0
    last = 0
    for contexts in itertools.islice(GroupRule(0.99, 0.05).looks(), 12):
        state.add(*[draw(rng, contexts - last, 600)[:, state.active]] * 2)
        state.look()
        last, looks = contexts, looks + 1
    assert sum(counted) < looks * 600 * 599 / 10


def test_few_groups_are_counted_in_full_and_many_by_candidates() -> None:
    assert isinstance(GroupRule(0.95, 0.05).start(pairs.FEW)._seen.pairs, AllPairs)
    assert isinstance(GroupRule(0.95, 0.05).start(pairs.FEW + 1)._seen.pairs, CandidatePairs)


@given(st.integers(1, 40), st.floats(0.0, 0.999), st.sampled_from([5.0, 40.0, 2_000.0]))
def test_no_pair_below_the_least_number_of_differing_rows_is_above_the_limit(
    rows: int, limit: float, evidence: float
) -> None:
    bets = Bets(evidence, bet_fractions(0.05))
    least = least_differing(bets, rows, limit)
    plus, minus = (axis.ravel() for axis in np.mgrid[: rows + 1, : rows + 1])
    there = plus + minus <= rows
    plus, minus = plus[there], minus[there]
    ends = bets.upper(plus, minus, rows)
    above = plus + minus >= least[plus - minus + rows]
    assert (above | (ends <= limit)).all()
    assert (ends[above] > limit - 1e-6).all()  # and the bound is no wider than it has to be


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30), st.floats(-0.9, 0.99))
def test_an_end_is_excluded_where_it_is_at_most_the_mean(
    plus: int, zero: int, minus: int, mean: float
) -> None:
    end = float(difference_upper([plus], [zero], [minus], 40.0)[0])
    excluded = bool(difference_excluded([plus], [zero], [minus], mean, 40.0)[0])
    assert excluded == (end <= mean) or abs(end - mean) < 1e-9


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(0, 50)), min_size=2))
def test_an_end_does_not_depend_on_what_is_solved_with_it(counts: list[Any]) -> None:
    plus, zero, minus = np.array(counts).T
    together = difference_upper(plus, zero, minus, 40.0)
    for place, each in enumerate(counts):
        assert difference_upper(*([part] for part in each), 40.0)[0] == together[place]


@pytest.mark.parametrize("groups", [2, 3, 7])
def test_champions_and_the_spread_are_those_of_all_pairs(groups: int) -> None:
    rng = np.random.default_rng(groups)
    for _ in range(200):
        low = rng.integers(0, 6, groups)
        high = low + rng.integers(0, 3, groups)
        state = GroupRule(0.95, 0.05).start(groups)
        state.favourable_low, state.favourable_high = low, high
        state._choose_champions()
        apart = np.where(np.eye(groups, dtype=bool), -100, low[:, None] - high[None, :])
        assert state.champions == divmod(int(apart.argmax()), groups)
        wide = (low / 7)[:, None] - (high / 7)[None, :]
        np.fill_diagonal(wide, 0.0)
        assert spreads._widest(low / 7, high / 7) == max(wide.max(), 0.0)


@pytest.mark.parametrize("kind", [AllPairs, CandidatePairs])
def test_before_anything_is_seen_groups_may_differ_altogether(kind: Any) -> None:
    pairs = kind(3, Bets(4.6, (0.1, 0.3)))
    assert pairs.high == 1.0


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_truths_are_counted_like_numbers(kind: Outcomes, groups: int) -> None:
    """A shortcut for two groups of plain truths gives what all others give."""
    bets = Bets(40.0, bet_fractions(0.05))
    truths, numbers = AllPairs(groups, bets), AllPairs(groups, bets)
    rows = kind(np.random.default_rng(7), 300, groups)
    truths.add(rows, rows)
    numbers.add(rows.astype(np.int8), rows.astype(np.int8))
    for each in (truths, numbers):
        each.look()
    assert (truths._plus == numbers._plus).all()
    assert (truths._minus == numbers._minus).all()
    assert truths.high == numbers.high


def test_bets_are_halved_until_one_is_small_enough() -> None:
    assert bet_fractions(0.1) == (1.0, 0.5, 0.25, 0.125)  # 1.25 times the error, exactly
    assert bet_fractions(0.099) == (1.0, 0.5, 0.25, 0.125, 0.0625)
