"""Searching a small domain: every input is run once, then every set's score is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.results.model import TestedSet
from themis.scores.exact import Domain, rounded
from themis.search.lattice import Lattice, members
from themis.search.walk import SearchRequest
from themis.statistics.thresholds import Decision
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL
from themis.subjects.readings import Reading

DENSE_LIMIT = 2**22  # inputs of a domain that is held as one block
ROWS = 8  # a sampled search runs at least about this many rows per set
LISTED_SETS = 4_096


def is_cheaper(sampler: Sampler, lattice: Lattice, columns: tuple[int, ...]) -> bool:
    """Whether running everything costs no more than a sampled search would at least."""
    population = sampler.population
    schema = population.schema
    binned = any(schema.characteristics[column].bin_starts is not None for column in columns)
    if population.size is None or schema.size > DENSE_LIMIT:
        return False
    if binned or sampler.reading.needs_tolerances:
        return False
    if population.size > sampler.runner.executions_left:
        return False
    sampled = 0
    for number, mask in enumerate(lattice.by_size()):
        sampled += ROWS * lattice.cost(mask)
        if sampled >= population.size:
            return True
        if number > LISTED_SETS:
            return True
    return False


@dataclass
class ExactDecider:
    """Compares exact scores with the threshold; failed executions may leave a set undecided."""

    request: SearchRequest
    cells: NDArray[Any]  # one axis per characteristic
    weights: NDArray[np.float64]
    reading: Reading
    names: tuple[str, ...]

    @classmethod
    def of(cls, sampler: Sampler, domain: Domain, request: SearchRequest) -> ExactDecider:
        """From the outputs of the whole domain."""
        schema = sampler.population.schema
        shape = tuple(each.size for each in schema)
        seen = sampler.reading.cells(domain.cells)
        cells = np.full(shape, NO_COUNTERFACTUAL, dtype=seen.dtype)
        weights = np.zeros(shape)
        place = tuple(domain.codes.T)
        cells[place] = seen
        weights[place] = domain.weights
        return cls(request, cells, weights, sampler.reading, schema.names)

    def takes_proofs(self, mask: int, delta: float) -> bool:
        return False

    def decide(self, mask: int, delta: float) -> TestedSet:
        columns = tuple(self.request.columns[place] for place in members(mask))
        low, high = (
            self.causal(columns) if self.request.measure == "causal" else self.group(columns)
        )
        threshold = self.request.threshold
        decision: Decision = "undecided"
        if low > threshold or high <= threshold:
            decision = "above" if low > threshold else "below"
        reason = f"its score is {low:.4g}, exactly"
        if high > low:
            reason = f"its score is between {low:.4g} and {high:.4g}: executions failed"
        names = tuple(self.names[column] for column in columns)
        return TestedSet(names, decision, reason, self.cells.size, low)

    def causal(self, columns: tuple[int, ...]) -> tuple[float, float]:
        """The causal score, at least and at most (they differ where executions failed)."""
        largest = self.cells.max(axis=columns)
        unsigned = np.dtype(f"u{self.cells.itemsize}")
        smallest = self.cells.view(unsigned).min(axis=columns)
        flips = (largest >= 0) & (smallest != largest.view(unsigned))
        open_rows = (self.cells == FAILED).any(axis=columns) & ~flips
        weights = self.weights.sum(axis=columns)
        low, more = weights[flips].sum(), weights[open_rows].sum()
        return rounded(low), rounded(low + more)

    def group(self, columns: tuple[int, ...]) -> tuple[float, float]:
        """The group score, at least and at most."""
        others = tuple(c for c in range(self.cells.ndim) if c not in columns)
        favourable = self.reading.labels.is_favourable(self.cells)
        total = self.weights.sum(axis=others)
        occurs = total > 0
        certain = (self.weights * favourable).sum(axis=others)[occurs] / total[occurs]
        failed = self.cells == FAILED
        if not failed.any():
            spread = rounded(certain.max() - certain.min())
            return spread, spread
        possible = (self.weights * (favourable | failed)).sum(axis=others)[occurs] / total[occurs]
        low = max(0.0, rounded(certain.max() - possible.min()))
        return low, rounded(possible.max() - certain.min())
