"""Questions: which set is measured, of which output, how well; what an answer rests on, and costs.

Within `ending_early` what was learned stays when the budget ends in a batch, or by an interrupt.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from themis.engine.account import Spent
from themis.engine.runner import Runner
from themis.engine.sampler import AnyTimeEnds, Sampler
from themis.engine.tables import Tables
from themis.engine.variants import Variants, all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.results.model import Measure, Score, SearchResult
from themis.results.notes import Ending, Note, ended_early
from themis.results.parts import Account
from themis.scores.explanations.witnesses import FlipPool
from themis.settings import Settings
from themis.statistics.intervals import Floats
from themis.statistics.proportions import Interval
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading

S = TypeVar("S", bound=Score)
Part = TypeVar("Part", bound=Score | SearchResult)

# So many random inputs of a group, with the outputs that they had.
Members = Callable[[int, int, np.random.Generator], tuple[NDArray[Any], Cells]]


@dataclass
class Question:
    """How large is the score of this set? It is answered from the sampler's output."""

    sampler: Sampler
    assignments: Assignments
    measure: Measure
    settings: Settings
    base: BaseInputs | None = None  # of given people, instead of the sampler's own
    cost: Callable[[], Spent] = field(init=False)  # since it was asked

    def __post_init__(self) -> None:
        self.cost = self.sampler.runner.metered()

    @property
    def reading(self) -> Reading:
        """The output that is measured."""
        return self.sampler.reading

    @cached_property
    def variants(self) -> Variants:
        """The columns of the set's table: all assignments, or some of very many."""
        most = self.settings.max_assignments
        return Variants.of(self.assignments, limit=most, base=self.base or self.sampler.base)

    @cached_property
    def every(self) -> Variants:
        """All assignments, however many."""
        return all_variants(self.assignments)

    @property
    def tries_all(self) -> bool:
        """Whether no assignment is left out because there are very many."""
        return self.assignments.count <= self.settings.max_assignments

    def tell(self, samples: int, expected: int, ends: AnyTimeEnds | None = None) -> None:
        """Report progress."""
        self.sampler.tell(self.measure, self.assignments, samples, expected, ends)

    def fields(
        self,
        interval: Interval,
        *,
        method: Literal["exact", "sampled"],
        stopped: Ending,
        samples: int,
        notes: Iterable[Note] = (),
    ) -> dict[str, Any]:
        """The fields that every score has: the interval, what was asked, how it ended, its cost."""
        early = (ended_early(stopped, samples),) if stopped.is_early else ()
        return {
            "method": method,
            "stopped": stopped,
            "samples": samples,
            "notes": (*early, *notes),
            "measure": self.measure,
            "against": self.assignments.names,
            "score": interval.score,
            "low": interval.low,
            "high": interval.high,
            "confidence": self.settings.confidence,
            "error": self.settings.error,
            "stopping": self.settings.stopping,
            "executions": self.cost().executions,
            "cache_hits": self.cost().cache_hits,
            **self.reading.details(),
        }


def drawing_from(sampler: Sampler, population: Population, branch: tuple[int, ...] = ()) -> Sampler:
    """The same run on base inputs of their own: of another population, or from another branch."""
    own = copy.copy(sampler)
    own.population = population
    own.base = BaseInputs(population, sampler.seed, branch=branch)
    own.tables = Tables(own.base, own.runner)
    own.tables.suite = sampler.tables.suite
    return own


@dataclass(frozen=True)
class GroupInputs:
    """Inputs of the groups that a score rests on, to be run again.

    `draw` gives so many random ones of a group, with the outputs that they had. `kept` is the share
    of the rows whose outputs were remembered from earlier ones: their noise is not averaged.
    """

    draw: Members
    best: int
    worst: int
    reading: Reading
    kept: float


class Scored(NamedTuple):
    """A score, and what it rests on, to be run again: flips, or inputs of two groups."""

    score: Score
    finding: FlipPool | GroupInputs | None = None

    def then(self, change: Callable[[Any], Score]) -> Scored:
        """The same with a score that was changed."""
        return self._replace(score=change(self.score))


def passes(rng: np.random.Generator, weights: Floats, count: int) -> NDArray[np.int64]:
    """So many places by their weights: each as often as the others where they weigh the same."""
    if (weights == weights[0]).all():
        orders = [rng.permutation(len(weights)) for _ in range(-(-count // len(weights)))]
        return np.concatenate(orders)[:count]
    return rng.choice(len(weights), count, p=weights / weights.sum())


# Early ends -----------------------------------------------------------------------------------
@dataclass
class EarlyEnd:
    """Why something ended early; None if it did not."""

    ending: Ending | None = None


@contextmanager
def ending_early(*, keeps_interrupts: bool) -> Iterator[EarlyEnd]:
    """Within, the end of the budget ends that alone; so does an interrupt, unless it is raised."""
    early = EarlyEnd()
    try:
        yield early
    except BudgetEndedError:
        early.ending = Ending.BUDGET
    except KeyboardInterrupt:
        if not keeps_interrupts:
            raise
        early.ending = Ending.INTERRUPTED


# Accounts -------------------------------------------------------------------------------------
def account_of(spent: Spent) -> Account:
    """What was spent, as a result has it."""
    return Account(spent.sampling, spent.noise, spent.explanations, spent.isolating)


def metered(runner: Runner, make: Callable[[], Part]) -> Part:
    """What `make` gives, with the executions that this took added to its account."""
    before = runner.account
    return charged(make(), runner, before)


def charged(part: Part, runner: Runner, before: Spent) -> Part:
    """The part, with the executions since then added to its account."""
    account = (part.account or Account()) + account_of(runner.account - before)
    return replace(part, executions=account.total, account=account)


def asked_again(part: Part) -> Part:
    """An answer that was given before: all of it is known, and nothing is executed."""
    hits = part.cache_hits + part.executions
    free = replace(part, executions=0, account=Account(), cache_hits=hits)
    if isinstance(free, SearchResult):
        return replace(free, minimal_sets=tuple(map(asked_again, free.minimal_sets)))
    return free
