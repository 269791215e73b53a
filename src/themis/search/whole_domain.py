"""Searching a small domain: every input is run once, then every set's score is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.results.model import TestedSet
from themis.results.notes import Note
from themis.scores.exact import Domain, rounded
from themis.scores.group import GroupInputs
from themis.scores.noise import Finding
from themis.scores.witnesses import KEPT, Flips, Pairs
from themis.search.lattice import Lattice, members
from themis.search.walk import SearchRequest
from themis.statistics.thresholds import Decision
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, Cells
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
    seed: int

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
        return cls(request, cells, weights, sampler.reading, schema.names, sampler.seed)

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
        reason = Note.of("exact-score", score=low)
        if high > low:
            spelled = not (self.cells == FAILED).any() or None
            reason = Note.of("score-between", low=low, high=high, spelled=spelled)
        names = tuple(self.names[column] for column in columns)
        return TestedSet(names, decision, (reason,), self.cells.size, low)

    def finding(self, mask: int) -> Finding:
        columns = tuple(self.request.columns[place] for place in members(mask))
        if self.request.measure == "group":
            return self._extremes(columns)
        others = [c for c in range(self.cells.ndim) if c not in columns]
        order = [*others, *columns]
        shape = [self.cells.shape[c] for c in columns]
        width = math.prod(shape)
        table = self.cells.transpose(order).reshape(-1, width)
        weights = self.weights.transpose(order).reshape(-1, width).sum(axis=1)
        known = table >= 0
        first = known.argmax(axis=1)
        other = known & (table != table[np.arange(len(table)), first][:, None])
        places = np.flatnonzero(other.any(axis=1) & (weights > 0))
        places = np.random.default_rng(self.seed).permutation(places)[:KEPT]
        contexts = [self.cells.shape[c] for c in others]
        codes = np.empty((len(places), 2, self.cells.ndim), np.int64)
        columns_of = (first[places], other[places].argmax(axis=1))
        for side, at in enumerate(columns_of):
            if others:
                codes[:, side, others] = np.stack(np.unravel_index(places, contexts), 1)
            codes[:, side, columns] = np.stack(np.unravel_index(at, shape), 1)
        outputs = np.stack([table[places, at] for at in columns_of], axis=1)
        return Flips(Pairs(codes, outputs), weights[places], self.reading)

    def _extremes(self, columns: tuple[int, ...]) -> Finding:
        """The inputs of the groups with the highest and the lowest rate."""
        others = tuple(c for c in range(self.cells.ndim) if c not in columns)
        total = self.weights.sum(axis=others)
        favourable = self.reading.labels.is_favourable(self.cells)
        rates = (self.weights * favourable).sum(axis=others) / np.where(total > 0, total, 1.0)
        best = int(np.where(total > 0, rates, -1.0).argmax())
        worst = int(np.where(total > 0, rates, 2.0).argmin())
        shape = [self.cells.shape[c] for c in columns]

        def draw(group: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
            levels = dict(zip(columns, np.unravel_index(group, shape), strict=True))
            inside = self.weights[tuple(levels.get(c, slice(None)) for c in range(self.cells.ndim))]
            chosen = rng.choice(inside.size, count, p=inside.ravel() / inside.sum())
            codes = np.empty((count, self.cells.ndim), np.int64)
            for column, level in levels.items():
                codes[:, column] = level
            if others:
                places = np.unravel_index(chosen, inside.shape)
                codes[:, others] = np.stack(places, axis=1)
            return codes, self.cells[tuple(codes.T)]

        return GroupInputs(draw, best, worst, self.reading, kept=1.0)

    def causal(self, columns: tuple[int, ...]) -> tuple[float, float]:
        """The causal score, at least and at most (they differ where executions failed)."""
        merged = self.reading.merged(self.cells)
        flips = _flips(merged, columns)
        open_rows = (self.cells == FAILED).any(axis=columns)
        if merged is not self.cells:  # outputs that differ only in spelling
            open_rows |= _flips(self.cells, columns)
        open_rows &= ~flips
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
        failed = (self.cells == FAILED) | self.reading.is_spelled(self.cells)
        if not failed.any():
            spread = rounded(certain.max() - certain.min())
            return spread, spread
        possible = (self.weights * (favourable | failed)).sum(axis=others)[occurs] / total[occurs]
        low = max(0.0, rounded(certain.max() - possible.min()))
        return low, rounded(possible.max() - certain.min())


def _flips(cells: NDArray[Any], columns: tuple[int, ...]) -> NDArray[np.bool_]:
    """In which contexts two outputs differ."""
    largest = cells.max(axis=columns)
    unsigned = np.dtype(f"u{cells.itemsize}")
    smallest = cells.view(unsigned).min(axis=columns)
    return np.asarray((largest >= 0) & (smallest != largest.view(unsigned)))
