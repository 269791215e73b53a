"""Are verdicts on many sets right as a whole, and is nothing new where nothing changed?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests.simulations.counting import simulate
from tests.simulations.families import AtALimit, AtTheLimit, Family, Together, Unchanged, at_limits

VOUCHED = {"deterministic": True}  # somebody is wrong about that, and nothing is run again


@pytest.mark.parametrize(
    ("family", "runs"),
    [
        (Family(5, "group"), 10),
        (Family(5, "causal"), 20),
        pytest.param(Family(20, "group"), 4, marks=pytest.mark.long),
    ],
    ids=lambda each: getattr(each, "name", each),
)
@pytest.mark.slow
def test_sets_at_the_limit_are_not_convicted(family: Family, runs: int) -> None:
    assert not simulate(family, runs).surely_above(1 - family.confidence, cells=3)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_these_runs_would_show_it_if_estimates_convicted(measure: Any) -> None:
    tally = simulate(Family(5, measure, "estimates"), 10)
    assert tally.surely_above(0.1, cells=3)


@pytest.mark.some_slow(core=6)
@pytest.mark.parametrize("sets", [5, 20, 50])
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_every_set_is_at_the_limit(measure: str, sets: int) -> None:
    subject, rng = AtTheLimit(sets, measure), np.random.default_rng(1)
    count = 800_000 // max(sets, 20)
    columns = {
        each.name: each.decode(rng.integers(each.size, size=count)) for each in subject.schema
    }
    for name in subject.names:
        no, yes = (
            subject(themis.InputTable({**columns, name: np.full(count, value)}, count))
            for value in (0, 1)
        )
        score = np.mean(no != yes) if measure == "causal" else abs(np.mean(yes) - np.mean(no))
        limit = Family(sets, measure).limit  # type: ignore[arg-type]
        assert score == pytest.approx(limit, abs=0.015)


@pytest.mark.parametrize("task", ["score", "search"])
@pytest.mark.parametrize("how", ["diff", "baseline"])
@pytest.mark.parametrize("domain", ["sampled", "whole"])
@pytest.mark.slow
def test_nothing_is_new_where_nothing_changed(how: Any, task: Any, domain: Any) -> None:
    for measure in ("causal", "group"):
        unchanged = Unchanged(how, task, measure, domain, 0.01)  # type: ignore[arg-type]
        tally = simulate(unchanged, 6)
        assert not tally.surely_above(2 * (1 - unchanged.confidence), cells=16)


@pytest.mark.slow
def test_what_a_baseline_left_open_would_often_seem_new_if_it_were_not_told_apart() -> None:
    heedless = {"max_noise": 1.0}  # else all sets are undecided, and nothing could seem new
    unchanged = Unchanged("baseline", "search", "group", "whole", 0.005, options=heedless)
    assert not simulate(unchanged, 24).convicted
    assert simulate(replace(unchanged, rule="not known"), 36).convicted >= 3


QUICK = [
    AtALimit("holds", "score", "causal"),
    AtALimit("holds", "search check", "group"),
    AtALimit("accepted", "check", "group"),
    AtALimit("not accepted", "check", "causal"),
]
SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in at_limits() if each not in QUICK]


@pytest.mark.some_slow(core=4, full=2)
@pytest.mark.parametrize("cell", [*QUICK, *SLOW], ids=lambda cell: cell.name)
def test_nobody_is_cleared_or_convicted_right_at_a_limit(cell: AtALimit) -> None:
    assert not simulate(cell, 8).surely_above(1 - cell.confidence, cells=len(QUICK))


@pytest.mark.parametrize("cell", QUICK, ids=lambda cell: cell.name)
@pytest.mark.long
def test_these_runs_would_show_it_if_estimates_cleared(cell: AtALimit) -> None:
    guessed = replace(cell, rule="estimates")
    assert simulate(guessed, 25).surely_above(1 - cell.confidence, cells=len(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_ten_scores_are_right_together(measure: Any) -> None:
    assert not simulate(Together(10, measure, "score"), 12).surely_above(0.1, cells=2)


@pytest.mark.long
def test_one_of_ten_scores_is_often_wrong_where_each_is_right_by_itself() -> None:
    alone = Together(10, "causal", "score", family=False)
    assert simulate(alone, 8).convicted > simulate(replace(alone, family=True), 8).convicted + 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["diff", "baseline"])
def test_noise_would_seem_new_if_nothing_were_run_again(how: Any) -> None:
    unchanged = Unchanged(how, "score", "group", "whole", 0.01)
    assert not simulate(unchanged, 20).convicted
    assert simulate(replace(unchanged, options=VOUCHED), 20).surely_above(0.1, cells=2)
