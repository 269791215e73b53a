"""The stopping rules keep their promises: exact coverage where it can be had, else simulated.

"Exact" is a sum over all sample paths by dynamic programming: no simulation noise at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import signal, special, stats

from themis.statistics import proportions as estimation
from themis.statistics.groups import GroupRule, GroupState
from themis.statistics.intervals import binomial_inclusion
from themis.statistics.proportions import Interval, PaperRule, ProportionRule, anytime_interval

ROUNDING = 1e-12
FAR_TOO_MANY = 200_000  # rows of a run; a rule that goes on is broken, and must not fill memory

# --- one proportion: exact coverage -------------------------------------------------------


Look = tuple[int, NDArray[np.bool_]]  # a sample size, and for each count whether the run stops


def stops_of(rule: ProportionRule, coarse_to: int = 0) -> list[Look]:
    gamma = estimation.TAIL_SHARE * (1 - rule.confidence)
    table = []
    for n in rule.looks(coarse_to):
        x = np.arange(n + 1)
        stop = binomial_inclusion(x, n, rule.error, gamma)
        table.append((n, stop | (n == rule.max_samples)))
    return table


def covered(table: list[Look], p: float, error: float) -> float:
    """Follow the probabilities of all counts from look to look, and take out what stops."""
    alive, last, coverage = np.ones(1), 0, 0.0
    for n, stop in table:
        alive, last = np.convolve(alive, stats.binom.pmf(np.arange(n - last + 1), n - last, p)), n
        stopped = np.where(stop, alive, 0.0)
        coverage += stopped[np.abs(np.arange(n + 1) / n - p) <= error + ROUNDING].sum()
        alive = alive - stopped
    assert alive.sum() < 1e-9, "every run ends"
    return float(coverage)


def hardest_proportions(table: list[Look], error: float, many: int) -> NDArray[np.float64]:
    """An even grid, and proportions just beyond the error of counts at which a run stops.

    Coverage jumps exactly there, so that its minimum lies beside one of them.
    """
    edges = [np.flatnonzero(stop) / n + error + 1e-9 for n, stop in table]
    beside = np.concatenate(edges)
    beside = np.random.default_rng(0).choice(beside[beside < 0.5], many)
    return np.concatenate([np.linspace(0, 0.5, many + 1), beside])


HARD = [(0.95, 0.05), (0.99, 0.05), (0.9, 0.1), (0.99, 0.02)]
CASES = [
    *((*each, 0, 100) for each in [*HARD[:3], (0.8, 0.2)]),
    (0.95, 0.01, 0, 4),
    *((*each, coarse_to, 60) for each in HARD for coarse_to in (200, 10**6)),
]


@pytest.mark.parametrize(("confidence", "error", "coarse_to", "many"), CASES)
@pytest.mark.slow
def test_proportion_rule_covers_with_its_confidence(
    confidence: float, error: float, coarse_to: int, many: int
) -> None:
    """However few looks there are."""
    table = stops_of(ProportionRule(confidence, error), coarse_to)
    hardest = hardest_proportions(table, error, many)
    assert min(covered(table, p, error) for p in hardest) >= confidence


@pytest.mark.parametrize("coarse_to", [0, 10**6])
def test_a_larger_tail_share_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, coarse_to: int
) -> None:
    monkeypatch.setattr(estimation, "TAIL_SHARE", 0.6)
    table = stops_of(ProportionRule(0.95, 0.05), coarse_to)
    assert min(covered(table, p, 0.05) for p in np.linspace(0.3, 0.5, 81)) < 0.95


@pytest.mark.parametrize("error", [0.01, 0.05, 0.5, 0.99, 1.0, 3.0])
def test_looks_rise_to_max_samples_and_the_last_one_stops(error: float) -> None:
    rule = ProportionRule(0.95, error)
    looks = list(rule.looks())
    assert looks[0] == rule.first_look
    if error == 0.05:  # the least size at which no success at all stops
        assert [rule.done(0, looks[0] - back) for back in (0, 1)] == [True, False]
    assert looks[-1] == rule.max_samples
    assert all(0 < earlier < later for earlier, later in itertools.pairwise(looks))
    assert all(rule.done(x, looks[-1]) for x in (0, looks[-1] // 2, looks[-1]))


# --- any time, with unknown rows ----------------------------------------------------------


def missed_ends(rule: ProportionRule, certain: float, unknown: float) -> tuple[float, float]:
    """The chances that the low end is above the certain share, the high end below the possible.

    Both by following the probabilities of all pairs of counts from look to look.
    """
    alive, last, missed = np.ones((1, 1)), 0, np.zeros(2)
    for n in rule.looks():
        more = np.arange(n - last + 1)
        flips, others = np.meshgrid(more, more, indexing="ij")
        step = stats.multinomial.pmf(
            np.stack([flips, others, n - last - flips - others], axis=-1),
            n - last,
            [certain, unknown, 1 - certain - unknown],
        )
        alive, last = np.maximum(signal.fftconvolve(alive, step), 0.0), n
        stop = np.array([rule.done(x, n) for x in range(n + 1)])
        low, high = np.arange(n + 1)[:, None], np.add.outer(np.arange(n + 1), np.arange(n + 1))
        ends = stop[:, None] & stop[np.minimum(high, n)]
        gone = np.where(ends, alive, 0.0)
        missed += (
            gone[(low / n - rule.error > certain + ROUNDING).ravel()].sum(),
            gone[high / n + rule.error < certain + unknown - ROUNDING].sum(),
        )
        alive = alive - gone
    return float(missed[0]), float(missed[1])


@pytest.mark.parametrize(
    ("certain", "unknown"),
    [(0.27, 0.05), *(pytest.param(*each, marks=pytest.mark.slow) for each in (
        (0.06, 0.02), (0.1, 0.2), (0.45, 0.1), (0.5, 0.01), (0.75, 0.2), (0.9, 0.05)))],
)  # fmt: skip
def test_planned_looks_cover_with_unknown_rows(certain: float, unknown: float) -> None:
    """Whatever the unknown ones are, the truth is between the certain and the possible share.

    So it is missed at most as often as both of them together.
    """
    assert sum(missed_ends(ProportionRule(0.9, 0.1), certain, unknown)) <= 0.1


def test_a_larger_tail_share_would_be_noticed_with_unknown_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimation, "TAIL_SHARE", 2.0)
    assert sum(missed_ends(ProportionRule(0.9, 0.1), 0.27, 0.05)) > 0.1


def split_evidence(p: float, low: int, high: int, n: int) -> float:
    """The supermartingale of the proof: θ > p judged on the low rows, θ < p on the high ones."""

    def part(x: int, share: float) -> float:
        if share < 1e-200:
            return 0.0  # at most too little: the claim is "at least"
        mixture = special.betaln(0.5 + x, 0.5 + n - x) - special.betaln(0.5, 0.5)
        return float(share * np.exp(mixture - special.xlogy(x, p) - special.xlog1py(n - x, -p)))

    above = part(low, special.betaincc(0.5 + low, 0.5 + n - low, p))
    return above + part(high, special.betainc(0.5 + high, 0.5 + n - high, p))


@given(st.data())
def test_what_an_anytime_interval_leaves_out_has_the_evidence_against_it(
    data: st.DataObject,
) -> None:
    n = data.draw(st.integers(1, 400))
    low = data.draw(st.integers(0, n))
    high = data.draw(st.integers(low, n))
    confidence = data.draw(st.sampled_from([0.2, 0.8, 0.95]))
    ends = anytime_interval(low, high, n, confidence)
    needed = (1 - ROUNDING * 1e3) / (1 - confidence)
    assert ends.low <= ends.score <= ends.high
    if ends.low > 0:
        assert split_evidence(ends.low, low, high, n) >= needed
    if ends.high < 1:
        assert split_evidence(ends.high, low, high, n) >= needed


def test_the_level_without_unknown_rows_would_be_too_much_with_them() -> None:
    # The end at α instead of α/(1+α): evidence is missing, so that the proof needs the change.
    end = anytime_interval(150, 150, 400, 0.5).low
    assert split_evidence(end, 150, 400, 400) < 2.0


def test_anytime_interval_holds_with_unknown_rows_at_every_look_at_once() -> None:
    rng = np.random.default_rng(8)
    runs, p, alpha = 1500, 0.3, 0.2
    low, high = np.zeros(runs, dtype=int), np.zeros(runs, dtype=int)
    missed, last = np.zeros(runs, dtype=bool), 0
    for n in np.unique(np.geomspace(5, 2000, 40).astype(int)):
        # Half a percent is unknown, successes and failures alike.
        kinds = rng.multinomial(n - last, [p - 0.005, 0.005, 0.005, 1 - p - 0.005], size=runs)
        low, high, last = low + kinds[:, 0], high + kinds[:, :3].sum(axis=1), n
        ends = estimation.mixture_ends(low, high, n, alpha)
        missed |= (p < ends[0]) | (p > ends[1])
    assert 0.01 < missed.mean() <= alpha


# --- groups on the same contexts ----------------------------------------------------------

Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, Numbers], NDArray[np.bool_]]


def same_context(rng: np.random.Generator, rows: int, rates: Numbers) -> NDArray[np.bool_]:
    """Outcomes that depend on the context: every group compares it with its own threshold."""
    return rng.random((rows, 1)) < rates


def own_chance(rng: np.random.Generator, rows: int, rates: Numbers) -> NDArray[np.bool_]:
    """Outcomes that don't: every group has a chance of its own."""
    return rng.random((rows, len(rates))) < rates


def run_groups(
    rule: GroupRule, draw: Draw, rates: Numbers, rng: np.random.Generator, hidden: float = 0.0
) -> tuple[GroupState, int]:
    """A run to its end, and its executions; of the first group some successes may be hidden, of
    the second some failures.
    """
    state, executions, last = rule.start(len(rates)), 0, 0
    for contexts in rule.looks():
        assert contexts < FAR_TOO_MANY, "the rule does not end"
        true = draw(rng, contexts - last, rates)[:, state.active]
        unknown = np.zeros(true.shape, dtype=bool)
        if hidden:
            unknown = (rng.random(true.shape) < hidden) & (true == [True, False])
        executions += true.size
        state.add(true & ~unknown, true | unknown)
        state.look()
        last = contexts
        if state.done:
            break
    return state, executions


def group_coverage(
    rule: GroupRule, draw: Draw, rates: Numbers, runs: int, *, hidden: float = 0.0
) -> tuple[float, float]:
    """The share of runs whose ends hold the truth, and mean executions."""
    rng = np.random.default_rng(3)
    truth, hits, total = rates.max() - rates.min(), 0, 0
    for _ in range(runs):
        state, executions = run_groups(rule, draw, rates, rng, hidden)
        interval = state.interval()
        assert interval.low <= interval.score <= interval.high
        hits += interval.low <= truth + ROUNDING and truth <= interval.high + ROUNDING
        total += executions
    return hits / runs, total / runs


EQUAL_2, EQUAL_16 = np.full(2, 0.3), np.full(16, 0.3)
SPREAD_16 = np.linspace(0.2, 0.8, 16)


@pytest.mark.parametrize(
    ("rates", "draw", "runs", "at_most"),
    [
        (EQUAL_2, same_context, 20, 112),
        (EQUAL_2, own_chance, 60, 1_600),
        (np.array([0.3, 0.6]), own_chance, 60, 4_300),
        (EQUAL_16, own_chance, 20, 20_000),
        (SPREAD_16, same_context, 40, 6_000),
        (SPREAD_16, own_chance, 40, 10_000),
    ],
)
@pytest.mark.slow
def test_group_rule_covers_and_costs_what_is_documented(
    rates: Numbers, draw: Draw, runs: int, at_most: int
) -> None:
    coverage, executions = group_coverage(GroupRule(0.05, 0.05), draw, rates, runs)
    # So few runs (seeded) find gross errors only: see the test below. benchmarks/coverage.py has
    # the many, with a coverage between .98 and 1 in each of these cases.
    assert coverage >= 0.95
    assert executions <= at_most


def test_a_group_rule_with_too_little_evidence_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GroupRule, "evidence", 2.5)
    rates = np.array([0.3, 0.6])
    assert group_coverage(GroupRule(0.05, 0.05), own_chance, rates, 100)[0] < 0.9


def test_unknown_outcomes_do_not_keep_a_run_open_and_its_ends_still_hold() -> None:
    rule, rates = GroupRule(0.05, 0.05), np.array([0.3, 0.6])
    assert group_coverage(rule, own_chance, rates, 60, hidden=0.1)[0] >= 0.95


@pytest.mark.parametrize("copies", [1, 25], ids=["few groups", "many"])
@pytest.mark.parametrize(("least", "hidden"), [(0.05, 0.0), (0.0, 0.6)])
def test_whether_groups_reach_1_is_decided_although_many_are_dropped_early(
    copies: int, least: float, hidden: float
) -> None:
    rates = np.tile([1.0, 0.9, least, 0.1, least, 0.9], copies)
    for seed in range(12):
        rng, rule = np.random.default_rng(seed), GroupRule(0.05, 0.025, decide_below=1.0)
        state, rows = rule.start(len(rates)), 8
        while not (state.done or state.low > 0.95 or state.high < 1.0):
            assert state.trials.max() < 4_000, "the rule does not end"
            true = rng.random((rows, len(rates))) < rates
            unknown = (rng.random(true.shape) < hidden) & (rates == least)
            state.add((true & ~unknown)[:, state.active], (true | unknown)[:, state.active])
            state.look()
            rows = rows * 23 // 20


def test_unknown_outcomes_counted_as_failures_would_be_wrong() -> None:
    rng, rates = np.random.default_rng(4), [0.3, 0.6]
    true = rng.random((5000, 2)) < rates
    seen = true & (rng.random(true.shape) < [1.0, 0.8])  # a fifth of one group's successes is lost
    held = []
    for high in (seen, true):
        state = GroupRule(0.05, 0.05).start(2)
        for part in (slice(0, 500), slice(500, 5000)):
            state.add(seen[part], high[part])
            state.look()
        held.append(state.low <= 0.3 <= state.high)
    assert held == [False, True]


def told_of(state: GroupState) -> list[Any]:
    """All that a state tells."""
    counts = state.active.tolist(), state.trials.tolist()
    return [state.interval(), state.champions, state.group_intervals(), *counts]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 29), min_size=1, max_size=5))
def test_the_cut_of_a_look_into_batches_changes_nothing(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    rule = GroupRule(0.1, 0.15)
    whole, cut = rule.start(5), rule.start(5)
    last = 0
    for contexts in itertools.islice(rule.looks(), 8):
        true = (rng.random((contexts - last, 5)) < [0.2, 0.3, 0.5, 0.55, 0.9])[:, whole.active]
        high = true | (rng.random(true.shape) < 0.01)
        whole.add(true, high)
        parts = (np.split(each, sorted(cuts)) for each in (true, high))
        for low_part, high_part in zip(*parts, strict=True):
            cut.add(low_part, high_part)
        whole.look()
        cut.look()
        assert told_of(whole) == told_of(cut)
        last = contexts


@pytest.mark.slow
def test_group_intervals_hold_jointly() -> None:
    rng = np.random.default_rng(6)
    rule, runs, missed = GroupRule(0.2, 0.1), 50, 0
    rates = np.linspace(0.1, 0.6, 6)
    for _ in range(runs):
        state, _ = run_groups(rule, own_chance, rates, rng)
        ends = state.group_intervals()
        missed += any(not e.low <= p <= e.high for e, p in zip(ends, rates, strict=True))
    assert missed / runs <= 0.2


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


# --- the paper's rule ---------------------------------------------------------------------


def one_at_a_time(rule: PaperRule, stream: NDArray[np.bool_]) -> tuple[int, int]:
    """Lines 2–24 of Algorithm 2 as they stand; the number of samples and the count."""
    z = stats.norm.ppf((1 + rule.confidence) / 2)
    count = r = 0
    while r < rule.max_samples:
        r += 1
        count += int(stream[r - 1])
        if r > rule.sampling_threshold:
            p = count / r
            if z * math.sqrt(p * (1 - p) / r) < rule.error:
                break
    return r, count


def in_batches(rule: PaperRule, stream: NDArray[np.bool_]) -> tuple[int, int]:
    count = r = 0
    while True:
        steps = rule.safe_steps(count, r)
        assert steps >= 1
        count, r = count + int(stream[r : r + steps].sum()), r + steps
        if rule.stops(count, r):
            return r, count


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.93, 1.0]),
    st.sampled_from([0.8, 0.95, 0.99]),
    st.sampled_from([0.03, 0.05, 0.2, 0.6]),
    st.sampled_from([0, 1, 10, 50]),
    st.sampled_from([0, 3, 40, 200]),
)
def test_batches_stop_exactly_where_the_sequential_algorithm_does(
    seed: int, p: float, confidence: float, error: float, threshold: int, cap: int
) -> None:
    rule = PaperRule(confidence, error, sampling_threshold=threshold, max_samples=cap)
    rng = np.random.default_rng(seed)
    runs = rng.integers(1, 40, size=rule.max_samples)  # blocks of equal outcomes stress the batches
    stream = np.repeat(rng.random(rule.max_samples) < p, runs)[: rule.max_samples]
    if seed % 2:
        stream = rng.random(rule.max_samples) < p
    assert in_batches(rule, stream) == one_at_a_time(rule, stream)


def test_the_paper_claims_certainty_after_eleven_failures() -> None:
    rule = PaperRule(0.99, 0.01)
    assert not rule.stops(0, 10)
    assert rule.stops(0, 11)
    assert rule.interval(0, 11) == Interval(0.0, 0.0, 0.01)
