"""Searching a small domain: every input is run once, then every set's score is exact.

A score is compared with the threshold without the noise of its last digits, so that a tie is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.engine.variants import all_variants
from themis.inputs.assignments import Assignments
from themis.results.parts import TestedSet
from themis.scores.domain import Domain, Pieces, count_missing, rounded
from themis.scores.exact import SomeFlips, Table, exact_group
from themis.scores.explanations.witnesses import KEPT, FlipPool
from themis.scores.reruns import Finding
from themis.search.deciding import Decider, SearchRequest, exactly_tested
from themis.search.lattice import Lattice
from themis.statistics.intervals import Flags
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import FLIP, UNKNOWN, row_states


class Folded(NamedTuple):
    """The contexts of a set; along its own characteristics there is one place left."""

    largest: NDArray[Any]  # output
    smallest: NDArray[Any]  # output that there is: as an unsigned number, what is none is largest
    weights: NDArray[Any]

    @property
    def flips(self) -> Flags:
        """In which contexts two outputs differ."""
        differ = self.smallest != self.largest.view(self.smallest.dtype)
        return np.asarray((self.largest >= 0) & differ)

    def along(self, axis: int) -> Folded:
        """Folded along one more characteristic."""
        return Folded(
            self.largest.max(axis=axis, keepdims=True),
            self.smallest.min(axis=axis, keepdims=True),
            self.weights.sum(axis=axis, keepdims=True),
        )


@dataclass
class Folding:
    """Folds a domain, with one axis per characteristic, and keeps what it has folded last."""

    cells: Cells
    weights: NDArray[Any]
    most: int = 2**22  # contexts that are kept: as many as a domain has inputs
    _kept: dict[tuple[int, ...], Folded] = field(default_factory=dict)
    _size: int = 0  # contexts of all that is kept

    def of(self, columns: tuple[int, ...]) -> Folded:
        """The contexts of the set of these columns."""
        if not columns:
            unsigned = np.dtype(f"u{self.cells.itemsize}")
            return Folded(self.cells, self.cells.view(unsigned), self.weights)
        if (found := self._kept.get(columns)) is None:
            found = self._fold(columns)
            self._keep(columns, found)
        return found

    def _fold(self, columns: tuple[int, ...]) -> Folded:
        """From the smallest domain that is kept and lacks one of the columns, if one is."""
        by_size = sorted(columns, key=lambda column: self.cells.shape[column])
        smaller = [tuple(each for each in columns if each != column) for column in by_size]
        place = next((n for n, others in enumerate(smaller) if others in self._kept), 0)
        return self.of(smaller[place]).along(by_size[place])

    def _keep(self, columns: tuple[int, ...], found: Folded) -> None:
        self._kept[columns] = found
        self._size += found.largest.size
        while self._size > self.most and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._size -= self._kept.pop(oldest).largest.size


DENSE_LIMIT = 2**22  # inputs of a domain that is held as one block
ROWS = 8  # a sampled search runs at least about this many rows per set


def is_cheaper(
    request: SearchRequest, lattice: Lattice, left: Iterable[int], done: Iterable[int], spent: int
) -> bool:
    """Whether to run what is missing of the domain costs no more than to go on sampling.

    That takes a few rows of each set that is left, at least; and if it goes on as it went with
    those that are done, as much more as they took. What is only foreseen so counts only where no
    more is missing than was spent already.
    """
    sampler = request.sampler
    if not _is_dense(sampler, request.columns):
        return False
    size = sampler.population.size or 0
    missing = max(size - sampler.runner.asked, 0)  # at the least
    at_least = _least_cost(lattice, left, max(missing, 1))
    planned = _least_cost(lattice, done, math.inf)
    pace = max(spent / planned, 1.0) if planned else 1.0

    def pays(missing: int) -> bool:
        foreseen = at_least * pace if spent >= missing else at_least
        return missing <= min(foreseen, _affordable(sampler.runner)) or not missing

    return pays(missing) and pays(count_missing(sampler))


def _affordable(runner: Runner) -> float:
    """How many executions the budget surely allows for: in half of the time that is left."""
    seconds = runner.runs * (runner.pace.for_more or 0.0)
    timely = runner.seconds_left / (2 * seconds) if seconds else math.inf
    return min(runner.executions_left, timely)


def _is_dense(sampler: Sampler, columns: tuple[int, ...]) -> bool:
    """Whether the domain can be held as one block, and the definitions be computed from it."""
    schema = sampler.population.schema
    is_large = schema.input_keys.count > DENSE_LIMIT
    if sampler.population.size is None or is_large or any(schema.extra):
        return False
    binned = any(schema.characteristics[column].bin_starts is not None for column in columns)
    return not binned and not sampler.reading.needs_tolerances


def _least_cost(lattice: Lattice, sets: Iterable[int], enough: float) -> float:
    """What a sampled search runs at least for these sets; infinite if they are very many."""
    cost = 0
    for number, mask in enumerate(sets):
        cost += ROWS * lattice.cost(mask)
        if cost >= enough:
            break
        if number > 4_096:
            return math.inf
    return cost


@dataclass
class ExactDecider(Decider):
    """Compares exact scores with the threshold; failed executions may leave a set undecided."""

    request: SearchRequest
    domain: Domain

    def __post_init__(self) -> None:
        reading, schema = self.request.sampler.reading, self.request.schema
        seen, place = reading.cells(self.domain.cells), tuple(self.domain.codes.T)
        self._cells = np.full(schema.code_counts, NO_COUNTERFACTUAL, dtype=seen.dtype)
        self._weights = np.zeros(schema.code_counts)
        self._cells[place], self._weights[place] = seen, self.domain.weights
        self._is_plain = not (seen == FAILED).any()
        self._folding = Folding(self._cells, self._weights)

    def decide(self, mask: int, delta: float) -> TestedSet:
        assignments = self.request.question(mask).assignments
        low, high = (self._causal if self.request.measure == "causal" else self._group)(assignments)
        inputs = int(np.count_nonzero(self.domain.weights))
        return exactly_tested(assignments.names, low, high, self.request.threshold, inputs)

    def finding(self, mask: int) -> Finding:
        question = self.request.question(mask)
        sampler, assignments = question.sampler, question.assignments
        if self.request.measure == "group":
            found = exact_group(question, Pieces.of(sampler, assignments, self.domain)).finding
            assert found is not None
            return found
        flips = SomeFlips(KEPT, np.random.default_rng(sampler.seed))
        flips.add(*self._table(assignments))
        pool = FlipPool(assignments, sampler.reading)
        flips.put_into(pool, all_variants(assignments))
        return pool

    def _table(self, assignments: Assignments) -> tuple[Table, NDArray[np.int8]]:
        """All variants of a set, and which of their rows flip."""
        table = Table.of(self.domain, assignments, self.request.sampler.reading)
        return table, row_states(table.cells)

    def _causal(self, assignments: Assignments) -> tuple[float, float]:
        """The causal score, at least and at most (they differ where executions failed)."""
        missing = assignments.schema.kept_missing.keys() & {*assignments.columns}
        if self._is_plain and not missing and not assignments.followed:
            folded = self._folding.of(assignments.columns)
            flips = more = folded.weights[folded.flips].sum()
        else:
            table, states = self._table(assignments)
            flips = table.weights[states == FLIP].sum()
            more = flips + table.weights[states == UNKNOWN].sum()
        total = self.domain.weights.sum()
        return _ratio(flips, total), _ratio(more, total)

    def _group(self, assignments: Assignments) -> tuple[float, float]:
        """The group score, at least and at most."""
        kept, columns = assignments.schema.kept_missing, assignments.columns
        others = tuple(c for c in range(self._cells.ndim) if c not in columns)
        part = tuple(slice(kept.get(c) if c in columns else None) for c in range(self._cells.ndim))
        if not self._weights[part].any():  # nobody has all values of the set
            part = (slice(None),)
        cells, weights = self._cells[part], self._weights[part]
        reading = self.request.sampler.reading
        favourable = reading.labels.is_favourable(cells)
        total = weights.sum(axis=others)
        occurs = total > 0
        certain = (weights * favourable).sum(axis=others)[occurs]
        unclear = cells == FAILED
        if not unclear.any():
            spread = self._spread(certain, certain, total[occurs])
            return spread, spread
        possible = (weights * (favourable | unclear)).sum(axis=others)[occurs]
        low = self._spread(certain, possible, total[occurs])
        return max(0.0, low), self._spread(possible, certain, total[occurs])

    def _spread(self, tops: NDArray[Any], bottoms: NDArray[Any], totals: NDArray[Any]) -> float:
        """The highest rate of some less the lowest of others."""
        return rounded((tops / totals).max() - (bottoms / totals).min())


def _ratio(part: float, whole: float) -> float:
    """Their ratio without the noise of the last digits; what is tiny is not 0."""
    share = float(part) / float(whole)
    return rounded(share) or share
