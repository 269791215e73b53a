"""Subjects that answer at random, whose excess is known: fair ones, and one that is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import themis
from tests.simulations.counting import Run, randomness
from tests.simulations.noisy import checked, judged

LIMIT, ERROR = 0.03, 0.02
CALLS = 3_000  # answers after which a subject that drifts has drifted through


@dataclass(frozen=True)
class AtRandom:
    """One kind of randomness, and how it is asked."""

    kind: Literal["coins", "nearly certain", "drift", "failures"]
    task: Literal["score", "search", "search check"]
    budget: int | None = None  # executions
    confidence: float = 0.9
    guilty: bool = False  # .9 against .1 in a tenth of contexts: an excess of .064

    @property
    def name(self) -> str:
        """All factors in one line."""
        truth = "guilty" if self.guilty else "fair"
        return f"{truth}, {self.kind}, {self.task}, budget {self.budget}, {self.confidence:.0%}"

    def run(self, number: int) -> Run:
        """One run, with random numbers of its own."""
        subject = Answers(self, randomness(self.name, number))
        with themis.Audit(
            themis.batch(subject),
            themis.Schema(sex=range(2), region=range(3), context=range(10**6)),
            seed=number,
            confidence=self.confidence,
            error=ERROR,
            max_executions=self.budget,
            max_failures=1,
        ) as audit:
            return Run(*self._ask(audit), subject.executions)

    def _ask(self, audit: themis.Audit) -> tuple[bool, bool]:
        among = ["sex", "region"]
        if self.task == "score":
            return judged(audit.excess("sex"), LIMIT)
        if self.task == "search":
            (search,) = audit.search_all(LIMIT, ["excess"], among=among).searches
            return bool(search.found), not search.conclusive
        (answer,) = checked(audit, self.task, ["sex"], among, ["excess"], LIMIT).checks
        open_check = answer.verdict == "not enough evidence"
        return answer.verdict == "violated" or bool(answer.sets), open_check


class Answers:
    """A function of a table that draws each answer."""

    def __init__(self, cell: AtRandom, rng: np.random.Generator) -> None:
        self._cell, self._rng, self.executions = cell, rng, 0

    def __call__(self, table: themis.InputTable) -> Any:
        count = len(table)
        asked = self.executions + np.arange(count)
        self.executions += count
        context, kind = table["context"], self._cell.kind
        chance = np.full(count, 0.5)
        if kind == "nearly certain":
            chance = np.where(context % 2 == 0, 0.98, 0.01)
        elif kind == "drift":
            chance = np.clip(asked / CALLS, 0.1, 0.9)
        if self._cell.guilty:
            turned = np.where(table["sex"] == 0, 0.9, 0.1)
            chance = np.where(context % 10 == 0, turned, context % 2 == 0)
        answers = (self._rng.random(count) < chance).astype(object)
        if kind == "failures":
            answers[(self._rng.random(count) < 0.05) & (table["sex"] == 0)] = None
        return answers


def cells(runs: int) -> list[tuple[AtRandom, int]]:
    """Fair subjects of every kind, asked in every way, with as many runs each."""
    return [
        (AtRandom(kind, task, budget), runs)
        for kind in ("coins", "nearly certain", "drift", "failures")
        for task in ("score", "search", "search check")
        for budget in (None, 50, 500)
    ]
