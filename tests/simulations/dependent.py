"""Subjects whose answers depend on the order of inputs, or on the other inputs of a call.

They discriminate against nobody, or nobody can say whether they do: what one person gets depends
on others. So nobody is convicted because of them, and where the dependence shows it is reported.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

import themis
from tests.simulations.counting import Run, fake_time
from tests.simulations.noisy import checked, judged
from tests.simulations.states import STATES
from themis.results.notes import Ending
from themis.subjects.processes.worker import WorkerSubject

LIMIT = 0.05
RACES = ["green", "purple"]

Kind = Literal["worker", "row function", "table function", "model"]
Task = Literal["score", "search", "check", "search check"]
TASKS: tuple[Task, ...] = ("score", "search", "check", "search check")


@dataclass(frozen=True)
class Case:
    """A subject, and what is asked about it."""

    subject: str
    kind: Kind
    task: Task
    domain: Literal["sampled", "whole"]
    measures: tuple[Literal["causal", "group"], ...] = ("causal", "group")
    options: dict[str, Any] = field(default_factory=dict, hash=False)  # of the audit, for tests

    @property
    def name(self) -> str:
        """All of it in one line."""
        return f"{self.subject}, {self.kind}, {self.task}, {self.domain}"

    @property
    def shows(self) -> bool:
        """Whether answers contradict each other often enough to be seen in every run."""
        return not self.subject.startswith("drifts")

    def run(self, number: int) -> Run:
        """One run, of all measures."""
        schema = schema_of(self.domain)
        subject: Any
        if self.kind == "worker":
            script = Path(__file__).with_name("states.py")
            subject = WorkerSubject(schema, [sys.executable, str(script), self.subject])
        elif self.kind == "row function":
            subject = STATES[self.subject]()
        elif self.kind == "model":
            subject = Model(NEIGHBOURS[self.subject])
        else:
            subject = themis.batch(NEIGHBOURS[self.subject])
        options = {"favourable": ["yes"], "confidence": 0.99, "seed": number, **self.options}
        with fake_time(), themis.Audit(subject, schema, **options) as audit:
            result = self._ask(audit)
        return Run(self._convicts(result), False, result.executions, reports(result))

    def _ask(self, audit: themis.Audit) -> themis.Result:
        among, measures = ["race", "sex"], self.measures
        if self.task == "score":
            return audit.score([["race"], among], measures)
        if self.task == "search":
            return audit.search_all(LIMIT, measures, among=among)
        return checked(audit, self.task, ["race"], among, measures, LIMIT)

    def _convicts(self, result: themis.Result) -> bool:
        if self.task == "score":
            return any(judged(score, LIMIT)[0] for score in result.scores)
        listed = any(search.found for search in result.searches)
        return listed or any(each.verdict == "violated" for each in result.checks)


def cases() -> Iterator[Case]:
    """All of them."""
    for domain in ("sampled", "whole"):
        for task in TASKS:
            for subject in STATES:
                yield Case(subject, "worker", task, domain)
                yield Case(subject, "row function", task, domain)
            for subject in NEIGHBOURS:
                yield Case(subject, "table function", task, domain)
            yield Case("centres", "model", task, domain)


def reports(result: themis.Result) -> bool:
    """Whether a result says that the subject contradicts itself."""
    noise = result.noise is not None and result.noise.differing > 0
    parts = (*result.scores, *result.searches)
    notes = {note.code for part in (result, *parts, *result.checks) for note in notes_of(part)}
    said = any(word in code for code in notes for word in ("noise", "inconsistent", "neighbour"))
    return noise or said or any(part.stopped is Ending.NOISE for part in parts)


def notes_of(part: Any) -> tuple[Any, ...]:
    """The notes of a result, a score or a search, or the reasons of a check."""
    return (*getattr(part, "notes", ()), *getattr(part, "reasons", ()))


def schema_of(domain: str) -> themis.Schema:
    """People of two races and sexes, and of many incomes or of few."""
    incomes = range(0, 100, 5) if domain == "whole" else range(100)
    more = {} if domain == "whole" else {"savings": themis.Integers(0, 10**8)}
    return themis.Schema(race=RACES, sex=["f", "m"], income=incomes, **more)


# Functions of a table whose answers depend on its other rows --------------------------------


def centres(table: themis.InputTable) -> Any:
    """Compares with the mean of the call, as if that were the mean of everybody."""
    purple = (table["race"] == "purple").astype(float)
    return _answers(table["income"] / 100 + 0.2 * (purple - purple.mean()) > 0.5)


def takes_the_best_half(table: themis.InputTable) -> Any:
    """Above the median of the call."""
    return _answers(table["income"] > np.quantile(table["income"], 0.5))


def standardises(table: themis.InputTable) -> Any:
    """Scales by what this call holds: alone, everybody is average."""
    scores = table["income"] + 20.0 * (table["race"] == "purple")
    return _answers((scores - scores.mean()) / (scores.std() + 1e-9) > 0.1)


def makes_dummies(table: themis.InputTable) -> Any:
    """One column per value that occurs in this call, so the weights meet other columns."""
    import pandas as pd

    dummies = pd.get_dummies(table.to_pandas()["race"]).to_numpy(dtype=float)
    weights = np.array([0.0, 0.3])[: dummies.shape[1]]
    return _answers(table["income"] / 100 + dummies @ weights > 0.5)


def counts_rows(table: themis.InputTable) -> Any:
    """Every other row is approved."""
    return _answers(np.arange(len(table)) % 2 == 0)


class MovesWithTheCall:
    """Draws its cut for each call: noise that all inputs of a call have in common."""

    def __init__(self, seed: int = 0) -> None:
        self._calls = itertools.count(1_000 * seed)

    def __call__(self, table: themis.InputTable) -> Any:
        """The answers of this call."""
        cut = np.random.default_rng(next(self._calls)).normal(50, 8)
        return _answers(table["income"] > cut)


NEIGHBOURS: dict[str, Callable[[themis.InputTable], Any]] = {
    "centres": centres,
    "takes the best half": takes_the_best_half,
    "standardises": standardises,
    "makes dummies": makes_dummies,
    "counts rows": counts_rows,
}


class Model:
    """An object with `predict`, as scikit-learn has it, that does the same."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def predict(self, frame: Any) -> Any:
        """The answers to a data frame."""
        return self._function({name: frame[name].to_numpy() for name in frame.columns})


def _answers(favourable: Any) -> Any:
    return np.where(favourable, "yes", "no")
