"""Estimates with proofs of a part: they hold as often as stated, are narrow, and are cheaper."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from tests.simulated_flips import SimulatedBook, constant_first
from themis.search.causal_decider import TriedInputs
from themis.search.found_sets import SpotRule, spot_estimate
from themis.statistics.proportions import Interval, ProportionRule

RULE = SpotRule(confidence=0.9, error=0.05)
RUNS = 60


def estimate(book: SimulatedBook, rule: SpotRule = RULE) -> Interval:
    return spot_estimate(TriedInputs(book, 1), rule)  # type: ignore[arg-type]


def covered(share: float, found: float, failing: float = 0.0) -> float:
    """How often the interval holds the true share."""
    ends = [estimate(SimulatedBook(s, share, found, 500, failing)) for s in range(RUNS)]
    return sum(each.low <= share <= each.high for each in ends) / RUNS


@pytest.mark.parametrize(
    ("share", "found", "failing"),
    [
        *((share, found, 0.0) for found in (0.5, 0.95) for share in (0.0, 0.8, 0.1, 0.5, 1.0)),
        (0.8, 0.9, 0.2),  # some inputs can't be settled
    ],
)
@pytest.mark.slow
@pytest.mark.some_slow(core=1, full=2)
def test_the_interval_holds_as_often_as_stated(share: float, found: float, failing: float) -> None:
    assert covered(share, found, failing) >= RULE.confidence


@pytest.mark.slow
def test_a_sample_of_the_easy_ones_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedBook, "shuffled", constant_first)
    monkeypatch.setattr(SimulatedBook, "probe_again", lambda self, mask, states, budget: states)
    assert covered(0.8, 0.5) < 0.5


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_the_interval_is_as_narrow_as_asked_and_the_score_within_it(share: float) -> None:
    for seed in range(20):
        one = estimate(SimulatedBook(seed, share, 0.9, 500))
        assert one.high - one.low <= 2 * RULE.error
        assert one.high - RULE.error <= one.score <= one.low + RULE.error


def test_a_wide_interval_has_the_likeliest_score_and_not_one_of_its_ends() -> None:
    for seed in range(20):
        one = estimate(SimulatedBook(seed, 0.5, 0.9, 500, failing=0.3))
        assert one.high - one.low > 2 * RULE.error
        assert one.low + 0.1 < one.score < one.high


def test_a_fraction_of_the_proofs_is_needed() -> None:
    rule = ProportionRule(0.99, 0.05)
    all_of_them = next(n for n in rule.looks() if rule.done(round(0.8 * n), n)) * 0.2
    books = [SimulatedBook(seed, 0.8, 0.97, 5_000) for seed in range(20)]
    for book in books:
        estimate(book, SpotRule(rule.confidence, rule.error))
    assert sum(book.proofs for book in books) / len(books) < all_of_them / 2


WIDE = themis.Schema(a=range(40), b=range(50), c=range(30), d=range(40))


def sums(table: themis.InputTable) -> Any:
    return table["a"] + table["b"] + 3 * table["c"] + table["d"] > 107


@pytest.mark.parametrize(("confidence", "error"), [(0.5, 0.9), (0.5, 0.45), (0.9, 0.3)])
def test_coarse_requests_are_answered_from_a_few_inputs(confidence: float, error: float) -> None:
    audit = themis.Audit(themis.batch(sums), WIDE, seed=1, confidence=confidence, error=error)
    (score,) = audit.search(0.75, among=["a", "b"]).minimal_sets
    assert score.low <= 0.9 <= score.high
    assert 1 <= score.samples <= 40


def test_a_budget_that_ends_in_between_leaves_a_wider_interval_that_holds() -> None:
    audit = themis.Audit(themis.batch(sums), WIDE, seed=1, max_executions=15_000)
    (score,) = audit.search(0.75, among=["a", "b"]).minimal_sets
    assert score.stopped == "budget"
    assert score.executions < 15_000
    assert score.low <= 0.9 <= score.high
    assert score.high - score.low > 0.1


def test_the_stages_share_what_may_be_wrong() -> None:
    assert sum(stage.alpha for stage in RULE.stages()) == pytest.approx(1 - RULE.confidence)


def test_failures_do_not_make_the_score_of_a_found_set_cost_more_than_a_plain_one() -> None:
    def decide(person: dict[str, int]) -> bool:
        if person["y"] % 100 == 0:
            raise ValueError
        return person["sex"] == 1 and person["x"] < 300

    schema = themis.Schema(sex=range(2), x=range(1_000), y=range(10**6))
    audits = [themis.Audit(decide, schema, seed=3, max_failures=0.1) for _ in range(2)]
    plain = audits[0].causal("sex")
    (found,) = audits[1].search(0.1, among=["sex"]).minimal_sets
    assert plain.unknown > 0
    assert (found.samples, found.low, found.high) == (plain.samples, plain.low, plain.high)
