"""Searching a small domain: every input is run once, then every set's score is exact.

A score is compared with the threshold as a ratio of whole numbers, so that a tie is seen as one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import follow
from themis.inputs.schema import Schema
from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.exact import Domain, count_missing, rounded, whole_numbers
from themis.scores.explanations.witnesses import KEPT, Flips, Pairs
from themis.scores.group import GroupInputs
from themis.scores.reruns import Finding
from themis.search.exact_scores import compare, exact_decision
from themis.search.folding import Folded, Folding
from themis.search.lattice import Lattice
from themis.search.request import SearchRequest
from themis.search.walk import Decider
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import Reading

DENSE_LIMIT = 2**22  # inputs of a domain that is held as one block
ROWS = 8  # a sampled search runs at least about this many rows per set
LISTED_SETS = 4_096

Part = tuple[slice, ...]  # of the domain, by characteristic


def is_cheaper(
    sampler: Sampler,
    request: SearchRequest,
    lattice: Lattice,
    left: Iterable[int],
    done: Iterable[int],
    spent: int,
) -> bool:
    """Whether to run what is missing of the domain costs no more than to go on sampling.

    That takes a few rows of each set that is left, at least; and if it goes on as it went with
    those that are done, as much more as they took. What is only foreseen so counts only where no
    more is missing than was spent already.
    """
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
    seconds = runner.runs * (runner.seconds_for_more or 0.0)
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
        if number > LISTED_SETS:
            return math.inf
    return cost


@dataclass
class ExactDecider(Decider):
    """Compares exact scores with the threshold; failed executions may leave a set undecided."""

    request: SearchRequest
    cells: NDArray[Any]  # one axis per characteristic
    weights: NDArray[Any]  # whole numbers, where they are in the ratio of such
    reading: Reading
    schema: Schema
    seed: int

    def __post_init__(self) -> None:
        self._merged = self.reading.merged(self.cells)
        self._folding = Folding(self._merged, self.weights)
        self._is_whole = self._merged is self.cells and not (self.cells == FAILED).any()

    @classmethod
    def of(cls, sampler: Sampler, domain: Domain, request: SearchRequest) -> ExactDecider:
        """From the outputs of the whole domain."""
        schema = sampler.population.schema
        shape = schema.code_counts
        seen = sampler.reading.cells(domain.cells)
        cells = np.full(shape, NO_COUNTERFACTUAL, dtype=seen.dtype)
        whole = whole_numbers(domain.weights)
        given = domain.weights if whole is None else whole
        weights = np.zeros(shape, dtype=given.dtype)
        place = tuple(domain.codes.T)
        cells[place] = seen
        weights[place] = given
        return cls(request, cells, weights, sampler.reading, schema, sampler.seed)

    def decide(self, mask: int, delta: float) -> TestedSet:
        columns = self.request.columns_of(mask)
        low, high = (
            self.causal(columns) if self.request.measure == "causal" else self.group(columns)
        )
        names = tuple(self.schema.names[column] for column in columns)
        reason = self._reason(low, high)
        inputs = int(np.count_nonzero(self.weights))
        decision = exact_decision(low, high, self._threshold)
        return TestedSet(names, decision, (reason,), inputs, rounded(float(low)))

    @property
    def _threshold(self) -> float:
        """As exact as the scores are: sums of weights that are no whole numbers are rounded."""
        is_whole = self.weights.dtype.kind in "iu"
        return self.request.threshold if is_whole else rounded(self.request.threshold)

    def _reason(self, low: Fraction, high: Fraction) -> Note:
        if high > low:
            spelled = not (self.cells == FAILED).any() or None
            ends = {"low": rounded(float(low)), "high": rounded(float(high))}
            return Note.of("score-between", **ends, spelled=spelled)
        if self._threshold > 0 and not compare(low, self._threshold):
            return Note.of("equals-threshold", score=self._threshold)
        return Note.of("exact-score", score=rounded(float(low)))

    def finding(self, mask: int) -> Finding:
        columns = self.request.columns_of(mask)
        if self.request.measure == "group":
            return self._extremes(columns)
        if Assignments(self.schema, columns).followed:
            return self._followed_flips(columns)
        codes, outputs, weights = (
            np.concatenate(each)
            for each in zip(*(self._pairs(p, columns) for p in self._parts(columns)), strict=True)
        )
        chosen = np.random.default_rng(self.seed).permutation(len(weights))[:KEPT]
        return Flips(Pairs(codes[chosen], outputs[chosen]), weights[chosen], self.reading)

    def _parts(self, columns: tuple[int, ...]) -> list[Part]:
        """The domain by which values of a set are missing; the first part is with all values.

        What is compared lies within one of them.
        """
        kept = self.schema.kept_missing
        whole = (slice(None),)
        choices = [
            (slice(0, kept[c]), slice(kept[c], None)) if c in kept and c in columns else whole
            for c in range(self.cells.ndim)
        ]
        return list(itertools.product(*choices))

    def _pairs(
        self, part: Part, columns: tuple[int, ...]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Two inputs of each context in a part that flips, their outputs, the context's weight."""
        cells = self.cells[part]
        others = [c for c in range(cells.ndim) if c not in columns]
        order = [*others, *columns]
        shape = [cells.shape[c] for c in columns]
        width = math.prod(shape)
        table = cells.transpose(order).reshape(-1, width)
        weights = self.weights[part].transpose(order).reshape(-1, width).sum(axis=1)
        known = table >= 0
        first = known.argmax(axis=1)
        other = known & (table != table[np.arange(len(table)), first][:, None])
        places = np.flatnonzero(other.any(axis=1) & (weights > 0))
        contexts = [cells.shape[c] for c in others]
        codes = np.empty((len(places), 2, cells.ndim), np.int64)
        columns_of = (first[places], other[places].argmax(axis=1))
        for side, at in enumerate(columns_of):
            if others:
                codes[:, side, others] = np.stack(np.unravel_index(places, contexts), 1)
            codes[:, side, columns] = np.stack(np.unravel_index(at, shape), 1)
        codes += np.array([each.start or 0 for each in part])
        outputs = np.stack([table[places, at] for at in columns_of], axis=1)
        return codes, outputs, weights[places]

    def _extremes(self, columns: tuple[int, ...]) -> Finding:
        """The inputs of the groups with the highest and the lowest rate."""
        others = tuple(c for c in range(self.cells.ndim) if c not in columns)
        cells, every = self._in_groups(columns)
        total = every.sum(axis=others)
        favourable = self.reading.labels.is_favourable(cells)
        rates = (every * favourable).sum(axis=others) / np.where(total > 0, total, 1.0)
        best = int(np.where(total > 0, rates, -1.0).argmax())
        worst = int(np.where(total > 0, rates, 2.0).argmin())
        shape = [cells.shape[c] for c in columns]

        def draw(group: int, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Cells]:
            levels = dict(zip(columns, np.unravel_index(group, shape), strict=True))
            inside = every[tuple(levels.get(c, slice(None)) for c in range(cells.ndim))]
            chosen = rng.choice(inside.size, count, p=inside.ravel() / inside.sum())
            codes = np.empty((count, cells.ndim), np.int64)
            for column, level in levels.items():
                codes[:, column] = level
            if others:
                places = np.unravel_index(chosen, inside.shape)
                codes[:, others] = np.stack(places, axis=1)
            return codes, cells[tuple(codes.T)]

        return GroupInputs(draw, best, worst, self.reading, kept=1.0)

    def causal(self, columns: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        """The causal score, at least and at most (they differ where executions failed)."""
        if Assignments(self.schema, columns).followed:
            return self._followed_causal(columns)
        parts = self._parts(columns)
        if self._is_whole and len(parts) == 1:
            folded = self._folding.of(columns)
            score = ratio(folded.weights[folded.flips].sum(), folded.weights.sum())
            return score, score
        low = more = total = self.weights.dtype.type(0)
        for part in parts:
            flips, open_rows = self._flips_in(self.cells[part], columns)
            weights = self.weights[part].sum(axis=columns)
            low += weights[flips].sum()
            more += weights[open_rows].sum()
            total += weights.sum()
        return ratio(low, total), ratio(low + more, total)

    def _flips_in(
        self, cells: Cells, columns: tuple[int, ...]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which contexts flip, and which may."""
        merged = self.reading.merged(cells)
        flips = _flips(merged, columns)
        open_rows = (cells == FAILED).any(axis=columns)
        if merged is not cells:  # outputs that differ only in spelling
            open_rows |= _flips(cells, columns)
        return flips, open_rows & ~flips

    def _in_groups(self, columns: tuple[int, ...]) -> tuple[Cells, NDArray[Any]]:
        """The outputs and weights of those who have all values of a set, if anybody does."""
        part = self._parts(columns)[0]
        if not self.weights[part].any():
            return self.cells, self.weights
        return self.cells[part], self.weights[part]

    def _variants(self, columns: tuple[int, ...]) -> Iterator[tuple[NDArray[Any], Cells]]:
        """Of all inputs that occur, one assignment after another: the variants and their outputs.

        The first are the inputs themselves.
        """
        assignments = Assignments(self.schema, columns)
        base = np.stack(np.nonzero(self.weights), axis=1)
        yield base, self.cells[tuple(base.T)]
        for levels in assignments.levels(np.arange(assignments.count)):
            codes = base.copy()
            codes[:, columns] = levels
            follow(assignments.followed, base, codes)
            admitted = self.schema.admits(base, codes)
            yield codes, np.where(admitted, self.cells[tuple(codes.T)], NO_COUNTERFACTUAL)

    def _followed_causal(self, columns: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        """The causal score of a set that something follows: each input has variants of its own."""
        weights = self.weights[self.weights > 0]
        outputs = np.stack([cells for _, cells in self._variants(columns)])
        flips, open_rows = self._flips_in(outputs.astype(self.cells.dtype, copy=False), (0,))
        low, more = weights[flips].sum(), weights[open_rows].sum()
        return ratio(low, weights.sum()), ratio(low + more, weights.sum())

    def _followed_flips(self, columns: tuple[int, ...]) -> Flips:
        """Inputs that flip under a set that something follows, each with one of its variants."""
        (base, own), *variants = self._variants(columns)
        second, outputs = base.copy(), own.copy()
        for codes, cells in variants:
            other = (own >= 0) & (cells >= 0) & (cells != own) & (outputs == own)
            second[other], outputs[other] = codes[other], cells[other]
        places = np.random.default_rng(self.seed).permutation(np.flatnonzero(outputs != own))[:KEPT]
        pairs = Pairs(
            np.stack([base[places], second[places]], axis=1),
            np.stack([own[places], outputs[places]], axis=1),
        )
        return Flips(pairs, self.weights[tuple(base[places].T)], self.reading)

    def group(self, columns: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        """The group score, at least and at most."""
        others = tuple(c for c in range(self.cells.ndim) if c not in columns)
        cells, weights = self._in_groups(columns)
        favourable = self.reading.labels.is_favourable(cells)
        total = weights.sum(axis=others)
        occurs = total > 0
        total = total[occurs]
        certain = (weights * favourable).sum(axis=others)[occurs]
        failed = (cells == FAILED) | self.reading.is_spelled(cells)
        if not failed.any():
            spread = _spread(certain, certain, total)
            return spread, spread
        possible = (weights * (favourable | failed)).sum(axis=others)[occurs]
        low = max(Fraction(0), _spread(certain, possible, total))
        return low, _spread(possible, certain, total)


def ratio(part: Any, whole: Any) -> Fraction:
    """Their ratio: exact for whole numbers, of others without the noise of the last digits."""
    if isinstance(part, np.integer):
        return Fraction(int(part), int(whole))
    share = float(part) / float(whole)
    return Fraction(str(rounded(share) or share))


def _spread(tops: NDArray[Any], bottoms: NDArray[Any], totals: NDArray[Any]) -> Fraction:
    """The highest rate of some less the lowest of others."""
    best, worst = int((tops / totals).argmax()), int((bottoms / totals).argmin())
    return ratio(tops[best], totals[best]) - ratio(bottoms[worst], totals[worst])


def _flips(cells: NDArray[Any], columns: tuple[int, ...]) -> NDArray[np.bool_]:
    """In which contexts two outputs differ."""
    smallest = cells.view(np.dtype(f"u{cells.itemsize}")).min(axis=columns)
    return Folded(cells.max(axis=columns), smallest, smallest).flips
