"""Do order or neighbours convict? Subjects that remember, and functions that look at other rows.

The whole table of them is in benchmarks/verdicts.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import themis
from tests.simulations.counting import simulate
from tests.simulations.dependent import Case, MovesWithTheCall, cases
from tests.simulations.states import STATES
from themis.inputs.streams import MIXING, BaseInputs
from themis.scores import causal, reruns
from themis.scores.reruns import Rerunner

VOUCHED = {"deterministic": True}  # somebody is wrong about that, and nothing is run again
SEEN = [name for name in STATES if not name.startswith("drifts")]


@pytest.mark.parametrize("subject", list(STATES)[::3])
def test_workers_that_remember_are_not_convicted(subject: str) -> None:
    assert is_harmless(Case(subject, "worker", "check", "sampled"), runs=1)


def any_of_b(table: themis.InputTable) -> Any:
    return table["x"] > (60_000 if (table["race"] == 1).any() else 30_000)


def many(table: themis.InputTable) -> Any:
    return table["x"] > (60_000 if len(table["x"]) >= 64 else 30_000)


@pytest.mark.parametrize(
    ("rule", "cost", "noticed"),
    [
        (any_of_b, "executions", False),
        (any_of_b, "calls", False),
        (many, "calls", False),
        (many, "executions", True),
    ],
)
def test_which_rules_about_a_call_go_unreported_is_documented(
    rule: Any, cost: Any, noticed: bool
) -> None:
    """In docs/noise.md; where one is noticed by now, the page has to say so."""
    schema = themis.Schema(race=["a", "b"], x=themis.Integers(0, 99_999))
    result = themis.Audit(themis.batch(rule), schema, seed=0, cost=cost).score([["race"]])
    assert {each.stopped == "inconsistent" for each in result.scores} == {noticed}
    assert all(each.low == 0 for each in result.scores)


def test_models_that_look_at_other_rows_are_not_convicted() -> None:
    pytest.importorskip("pandas")
    assert is_harmless(Case("centres", "model", "check", "sampled"), runs=2)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
@pytest.mark.some_slow(core=1, full=4)
def test_nobody_who_depends_on_others_is_convicted_by_any_command(case: Case) -> None:
    pytest.importorskip("pandas")
    assert is_harmless(case, runs=1)


def is_harmless(case: Case, *, runs: int) -> bool:
    """Whether nobody is convicted, and what can be seen is reported."""
    tally = simulate(case, runs)
    return tally.convicted == 0 and tally.reported == (runs if case.shows else tally.reported)


MANY_KINDS = themis.Schema(kind=range(40), income=range(100), rest=range(10**6))


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kinds are run in one call and others in the next."""
    monkeypatch.setattr(causal, "COARSE_CELLS", 0)
    monkeypatch.setattr(causal, "MOSTLY", 0.0)


def floors_of_kinds(seeds: Any) -> list[float]:
    """What is left of group scores of 40 kinds, some of which were run in other calls before."""
    floors = []
    for seed in seeds:
        subject = themis.batch(MovesWithTheCall(seed))
        audit = themis.Audit(subject, MANY_KINDS, seed=seed, confidence=0.9, favourable=["yes"])
        audit.causal("kind")
        floors.append(audit.group("kind").floor)
    return floors


@pytest.mark.slow
@pytest.mark.usefixtures("few_at_once")
def test_noise_that_the_inputs_of_a_call_share_convicts_no_group() -> None:
    assert max(floors_of_kinds(range(40))) == 0.0


# Would it be noticed? ---------------------------------------------------------------------


def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are run as they come: each context, one assignment after the other."""
    drawn = BaseInputs.generator

    class Unmixed:
        def permutation(self, what: Any) -> Any:
            return np.arange(what) if isinstance(what, int) else np.asarray(what)

        def random(self, size: Any) -> Any:
            return np.zeros(size)

    def generator(self: BaseInputs, purpose: int, *key: int) -> Any:
        return Unmixed() if purpose == MIXING else drawn(self, purpose, *key)

    monkeypatch.setattr(BaseInputs, "generator", generator)


@pytest.mark.parametrize("kind", ["worker", "row function"])
def test_alternation_would_convict_if_inputs_were_run_in_order(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    case = Case("alternates", kind, "score", "sampled", measures=("group",), options=VOUCHED)
    assert not case.run(0).convicted
    in_order(monkeypatch)
    assert case.run(0).convicted


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("subject", SEEN)
def test_memory_convicts_if_nothing_is_run_again(subject: str) -> None:
    assert simulate(Case(subject, "row function", "check", "sampled", options=VOUCHED), 3).convicted


@pytest.mark.parametrize("subject", ["centres", "standardises", "counts rows"])
def test_neighbours_convict_if_nothing_is_run_again(subject: str) -> None:
    assert simulate(
        Case(subject, "table function", "check", "sampled", options=VOUCHED), 2
    ).convicted


@pytest.mark.slow
@pytest.mark.usefixtures("few_at_once")
def test_noise_of_calls_convicts_if_it_is_taken_for_that_of_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def averaged(self: Rerunner, finding: Any, *facts: Any) -> Any:
        return self._rerun_members(finding, *facts, finding.kept)

    monkeypatch.setattr(Rerunner, "_rerun_groups", averaged)
    monkeypatch.setattr(Rerunner, "after_noise", lambda _, score, __: score)
    assert max(floors_of_kinds(range(40))) > 0.02


def test_cases_are_different_and_have_every_kind() -> None:
    every = list(cases())
    assert len({each.name for each in every}) == len(every)
    assert {each.kind for each in every} == {"worker", "row function", "table function", "model"}
    assert all(replace(each, task="score").shows == each.shows for each in every)


def convicted_by_coins(runs: int) -> int:
    """How often one is convicted that draws for each call which race it hurts, of a hundredth."""
    schema = themis.Schema(race=["green", "purple"], income=range(100))
    convicted = 0
    for seed in range(runs):
        coins = np.random.default_rng(seed)

        def decide(people: themis.InputTable, coins: np.random.Generator = coins) -> Any:
            purple = people["race"] == "purple"
            hurt = purple == (coins.random() < 0.5)
            return np.where(people["income"] == 3, hurt, people["income"] >= 50)

        score = themis.Audit(themis.batch(decide), schema, seed=seed).causal("race")
        try:
            score.assert_below(0.001)
        except themis.DiscriminationError:
            convicted += 1
        except themis.InconclusiveError:
            pass
    return convicted


@pytest.mark.slow
def test_a_coin_for_each_call_convicts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert convicted_by_coins(60) == 0
    monkeypatch.setattr(reruns, "MIXED_CALLS", 1)
    assert convicted_by_coins(160) > 4
