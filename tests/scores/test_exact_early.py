"""Exact scores that end early: what was run is kept, and what was not may be anything."""

from __future__ import annotations

from typing import Any

import pytest

import themis
from tests.clocks import Clock
from themis.engine import runner as runner_module
from themis.events import Progress
from themis.results.notes import Ending
from themis.scores import domain as exact_module
from themis.scores import scorer
from themis.subjects import base as base_module

Row = dict[str, Any]
TITLE = themis.derived("sex", {"m": "Mr", "f": "Ms", "d": "Mx"})
PREMIUM = themis.Output(name="premium", min=0, max=100, distance="relational")


def approved(row: Row) -> bool:
    return bool(row["income"] + 8 * (row["sex"] == "m") > 20 + row["age"] % 4)


def priced(row: Row) -> int:
    return int(row["income"] + 30 * (row["sex"] == "m") + row["age"] % 4)


CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "plain": (approved, {"income": range(40)}, {}),
    "following": (approved, {"income": range(40), "title": TITLE}, {}),
    "numbers": (priced, {"income": range(40)}, {"outputs": [PREMIUM]}),
}


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("against", ["sex", "income"])
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_ends_are_what_the_rest_could_still_do(
    name: str, against: str, measure: str, swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, more, options = CASES[name]
    schema = themis.Schema(sex=["m", "f", "d"], age=range(10), **more)
    if swept:  # nothing is held
        monkeypatch.setattr(scorer, "EXACT_LIMIT", 0)
        monkeypatch.setattr(exact_module, "PIECE", 30)
    told: list[Any] = []

    def score(most: int) -> Any:
        asked = 0

        def interrupted(row: Row) -> Any:
            nonlocal asked
            asked += 1
            if asked > most:
                raise KeyboardInterrupt
            return decide(row)

        told.clear()
        asked_for = {"exact": True, "deterministic": True, "listen": told.append, **options}
        audit = themis.Audit(interrupted, schema, **asked_for)
        audit.sampler.keep_on_interrupt = True
        return getattr(audit, measure)(against)

    truth = score(10**9)
    assert (truth.low, truth.method, truth.stopped) == (truth.high, "exact", Ending.EXHAUSTED)
    widths = [truth.high - truth.low]
    for most in (1_150, 800, 300, 130 if swept else 40):
        early = score(most)
        assert early.stopped is Ending.INTERRUPTED
        assert 0 < early.samples <= most
        assert early.low <= early.score <= early.high
        assert early.low - 1e-9 <= truth.score <= early.high + 1e-9
        progress = [each for each in told if isinstance(each, Progress)]
        assert all(each.low - 1e-9 <= truth.score <= each.high + 1e-9 for each in progress)
        widths.append(early.high - early.low)
    assert widths == sorted(widths)
    assert widths[1] < 0.9


@pytest.mark.parametrize("measure", ["causal", "group"])
def test_time_that_ends_in_the_middle_leaves_what_was_run(
    monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    clock, asked = Clock.put_into(monkeypatch, runner_module, base_module, exact_module), 0

    def slow_at_last(row: Row) -> bool:
        nonlocal asked
        asked += 1
        clock.now += 0.005 + 30 * (asked == 1_000)
        return approved(row)

    schema = themis.Schema(sex=["m", "f", "d"], age=range(10), income=range(40))
    audit = themis.Audit(slow_at_last, schema, exact=True, deterministic=True, max_seconds=20)
    early = getattr(audit, measure)("sex")
    assert (early.stopped, early.method) == (Ending.BUDGET, "exact")
    assert 0 < early.samples <= 1_200
    assert early.low < early.score < early.high < 1
