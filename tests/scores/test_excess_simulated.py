"""Do the ends of the excess hold for whole audits, whatever a subject does? Truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import themis
from themis.results.model import ExcessScore

CONTEXTS, RUNS, CONFIDENCE = 8, 40, 0.8
MOST = 8  # runs that may be wrong, on average
KINDS = ("certain", "nearly certain", "coins", "shifted")


@dataclass(frozen=True)
class World:
    """Chances of decisions: contexts × assignments × decisions; the last may be no answer."""

    chances: NDArray[np.float64]
    fails: bool = False

    @property
    def schema(self) -> themis.Schema:
        contexts, assignments, _ = self.chances.shape
        return themis.Schema(
            group=range(assignments), context=range(contexts), rest=themis.Integers(0, 10**6)
        )

    def excess(self, failed: int = 0) -> float:
        """The score, if everything that failed were this decision."""
        chances = self.chances
        if self.fails:
            chances = chances[..., :-1] + chances[..., -1:] * (np.arange(2) == failed)
        apart = chances[:, :, None] - chances[:, None]
        return float(((apart**2).sum(axis=3) / 2).mean(axis=0).max())

    def beside(self, one: int, other: int) -> dict[str, float]:
        """What stands beside the score of a pair; decision 0 is favourable."""
        p, q = self.chances[:, one], self.chances[:, other]
        within = 1 - (p**2 + q**2).sum(axis=1) / 2
        return {
            "across": float((1 - (p * q).sum(axis=1)).mean()),
            "within": float(within.mean()),
            "gap": float((p - q)[:, 0].mean()),
        }

    def audit(self, seed: int, *, drift: float = 0.0, **options: Any) -> themis.Audit:
        """An audit of a subject that answers so; `drift` is what decision 0 gains in 10,000."""
        rng, asked = np.random.default_rng(seed), 0

        def decide(table: themis.InputTable) -> Any:
            nonlocal asked
            chances = self.chances[table["context"], table["group"]].copy()
            moved = drift * np.minimum((asked + np.arange(len(chances))) / 10_000, 1)
            chances[:, 0], chances[:, 1] = chances[:, 0] + moved, chances[:, 1] - moved
            asked += len(chances)
            numbers = (rng.random((len(chances), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
            answers = np.minimum(numbers, chances.shape[1] - 1).astype(object)
            answers[(answers == chances.shape[1] - 1) & self.fails] = None
            return answers

        usual = {"confidence": CONFIDENCE, "error": 0.1, "favourable": [0], "max_failures": 1}
        return themis.Audit(themis.batch(decide), self.schema, seed=seed, **usual | options)


def world(kind: str, assignments: int, decisions: int) -> World:
    """Context 0 is as the kind says, of each assignment otherwise; the others know no group."""
    rng = np.random.default_rng(assignments * decisions)
    chances = np.empty((CONTEXTS, assignments, decisions))
    usual = np.eye(decisions)[rng.integers(decisions, size=CONTEXTS)]
    noise = {"certain": 0.0, "nearly certain": 0.04, "coins": 1.0, "shifted": 0.6}[kind]
    chances[:] = (usual * (1 - noise) + noise / decisions)[:, None]
    if kind != "coins":
        turned = np.arange(assignments) % 2 == 1
        part = slice(0, 2 if kind != "shifted" else CONTEXTS)
        chances[part, turned] = np.roll(chances[part, turned], 1, axis=2)
    return World(chances)


def missed(each: World, scores: list[ExcessScore]) -> dict[str, int]:
    """In how many runs the ends missed the score and what stands beside it."""
    wrong = dict.fromkeys(("score", "across", "within", "gap"), 0)
    for score in scores:
        wrong["score"] += not score.low - 1e-9 <= each.excess() <= score.high + 1e-9
        pair = [int(labels["group"]) for labels in score.pair]
        for name, truth in each.beside(*pair).items():
            share = getattr(score, name)
            wrong[name] += not share.low - 1e-9 <= truth <= share.high + 1e-9
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("decisions", [2, 4])
@pytest.mark.parametrize("assignments", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.some_slow(core=1, full=2)
def test_ends_hold_wherever_a_run_ends(kind: str, assignments: int, decisions: int) -> None:
    each = world(kind, assignments, decisions)
    budgets = [None, *np.random.default_rng(1).integers(60, 2_000, RUNS - 1).tolist()]
    scores = [
        each.audit(seed, max_executions=None if seed % 4 == 0 else budget).excess("group")
        for seed, budget in enumerate(budgets)
    ]
    wrong = missed(each, scores)
    assert max(wrong.values()) <= MOST, wrong


@pytest.mark.slow
@pytest.mark.parametrize("assignments", [2, 5])
def test_of_certain_subjects_it_is_the_causal_score_or_for_more_than_two_less(
    assignments: int,
) -> None:
    rng = np.random.default_rng(3)
    for seed in range(8):
        decided = rng.integers(3, size=(CONTEXTS, assignments))
        each = World(np.eye(3)[decided])
        audit = each.audit(seed, confidence=0.99)
        causal = (decided != decided[:, :1]).any(axis=1).mean()
        assert (each.excess() == causal) if assignments == 2 else (each.excess() <= causal)
        one, other = audit.excess("group"), audit.causal("group")
        assert one.low <= causal
        assert other.low - 1e-9 <= causal <= other.high + 1e-9
        assert one.within.score == 0


@pytest.mark.slow
def test_failures_and_refusals_that_depend_on_the_group_leave_the_truth_within() -> None:
    fails = World(np.array([[[0.5, 0.45, 0.05], [0.6, 0.1, 0.3]]] * CONTEXTS), fails=True)
    scores = [fails.audit(seed).excess("group") for seed in range(RUNS)]
    for failed in (0, 1):  # whatever it would have decided
        truth = fails.excess(failed)
        assert sum(not score.low <= truth <= score.high for score in scores) <= MOST
    refuses = World(fails.chances)
    assert max(
        missed(refuses, [refuses.audit(n).excess("group") for n in range(RUNS)]).values()
    ) <= (MOST)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_a_drift_that_all_share_changes_nothing(shift: float) -> None:
    each = World(np.array([[[0.2, 0.8], [0.2 + shift, 0.8 - shift]]] * CONTEXTS))
    scores = [each.audit(seed, drift=0.5).excess("group") for seed in range(RUNS)]
    assert sum(not score.low <= each.excess() <= score.high for score in scores) <= MOST
