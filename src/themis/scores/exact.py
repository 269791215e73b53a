"""The whole domain: every input that occurs is run, for scores by the definitions themselves."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import KEPT, Memory
from themis.engine.sampler import Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.following import follow
from themis.inputs.schema import Schema
from themis.inputs.streams import MIXING
from themis.results.model import Measure
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN, Cells

CHUNK = 2**18
DENSE_LIMIT = 2**25  # cells of a table that is built whole
MOST_SHARES = 10_000  # distinct weights of inputs that are looked at for a common denominator
LARGEST_DENOMINATOR, LARGEST_TOTAL = 10**8, 2**53


@dataclass(frozen=True)
class Domain:
    """Every input that occurs, its answer and its probability.

    Where a profile is measured, or something follows others: also inputs without weight, which are
    variants of those that occur.
    """

    codes: NDArray[Any]
    cells: Cells
    weights: NDArray[np.float64]

    @property
    def occurring(self) -> Domain:
        """Only the inputs that have a weight."""
        return self.part(self.weights > 0)

    def part(self, chosen: NDArray[np.bool_]) -> Domain:
        """Only these inputs."""
        if chosen.all():
            return self
        return Domain(self.codes[chosen], self.cells[chosen], self.weights[chosen])

    def weighted(self, schema: Schema, codes: NDArray[Any], weights: NDArray[np.float64]) -> Domain:
        """The same with the weights of these inputs, which are in it, instead of its own."""
        keys = schema.input_keys.of
        of_all = keys(self.codes)
        order = np.argsort(of_all)
        shares = np.zeros(len(of_all))
        shares[order[np.searchsorted(of_all, keys(codes), sorter=order)]] = weights
        return replace(self, weights=shares / shares.sum())

    def table(self, assignments: Assignments, seen: Cells) -> Cells:
        """The outputs of all variants of those that occur: rows × values of the set's columns.

        `seen` are the outputs of the domain. What is not in it is no counterfactual.
        """
        base, keys = self.occurring.codes, assignments.schema.input_keys
        known = Memory(keys, seen.dtype)
        known.add(keys.of(self.codes), seen)
        values = set_values(assignments)
        touching = assignments.schema.touching(assignments.changed)
        cells = np.empty((len(base), len(values)), dtype=seen.dtype, order="F")
        for place, own in enumerate(values):
            codes = base.copy(order="F")
            codes[:, list(assignments.columns)] = own
            follow(assignments.followed, base, codes)
            cells[:, place] = known.look_up(keys.of(codes))
            cells[~touching.admits(base, codes), place] = NO_COUNTERFACTUAL
        cells[cells == NOT_RUN] = NO_COUNTERFACTUAL
        return cells


def set_values(assignments: Assignments) -> NDArray[np.int64]:
    """All joint codes of a set's columns; of one with bins, of all their members."""
    each = [assignments.schema.characteristics[c] for c in assignments.columns]
    codes = [
        one.possible_levels(np.arange(one.possible_count))
        if one.bin_starts is None
        else np.arange(one.code_count)
        for one in each
    ]
    return np.stack([axis.ravel() for axis in np.meshgrid(*codes, indexing="ij")], axis=1)


DIGITS = 12  # of a sum of weights that mean something
SUM_BITS = 52  # of whole numbers whose sum a float still has exactly


def rounded(share: float) -> float:
    """A sum of weights without the noise of its last digits: three tenths are not above 0.3."""
    return round(float(share), DIGITS)


def summed(places: NDArray[Any], weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The sum of the weights at each place, right to the last digits however many they are.

    What is a multiple of a small power of two is summed without any rounding, the rest by itself.
    """
    if len(weights) and weights.min() == weights.max():
        return np.bincount(places, minlength=count).astype(float) * float(weights[0])
    _, scale = math.frexp(float(weights.sum()))
    whole = np.rint(np.ldexp(weights, SUM_BITS - scale))
    rest = weights - np.ldexp(whole, scale - SUM_BITS)
    sums = np.ldexp(np.bincount(places, whole, count), scale - SUM_BITS)
    return np.asarray(sums + np.bincount(places, rest, count))


def run_domain(sampler: Sampler) -> Domain | None:
    """Run every input that occurs and was not run yet; None when the budget ends before.

    Subjects that run input by input get them in random order, so that what they remember of earlier
    ones has nothing to do with any characteristic.
    """
    population = sampler.population
    assert population.size is not None
    order = np.arange(population.size)
    if not sampler.runner.traits.vectorised:
        order = sampler.base.generator(MIXING).permutation(order)
    cells = _known(sampler)
    order = order[cells[order] == NOT_RUN]
    sampler.runner.ledger.remember(population.size - len(order))
    began = clock = time.monotonic()
    try:
        for first, last in sampler.blocks(0, len(order), 1):
            for start in range(first, last, CHUNK):
                indices = order[start : min(start + CHUNK, last)]
                cells[indices] = sampler.runner.run(population.combinations(indices))
            now = time.monotonic()
            each = min((now - began) / last, (now - clock) / (last - first))
            if each * (len(order) - last) > sampler.runner.seconds_left:
                break  # a cache file held the first ones: time is left to sample
            clock = now
    except BudgetEndedError:
        pass
    finally:
        run = order[cells[order] != NOT_RUN]
        if len(run) < len(order) and sampler.tables.suite is not None:
            sampler.tables.suite.add_singles((), population.combinations(run), cells[run])
    if len(run) < len(order):
        return None
    every = np.arange(population.size)
    return Domain(population.combinations(every), cells, population.probabilities(every))


def count_missing(sampler: Sampler) -> int:
    """How many inputs that occur were not run yet, as far as that is remembered."""
    return int((_known(sampler) == NOT_RUN).sum())


def _known(sampler: Sampler) -> Cells:
    """The outputs of all inputs that occur, NOT_RUN where they are not known."""
    every = np.arange(sampler.population.size or 0)
    if not sampler.runner.remembers or sampler.runner.memory.is_empty:
        return np.full(len(every), NOT_RUN, dtype=sampler.runner.labels.dtype)
    parts = [
        sampler.runner.known(sampler.population.combinations(every[start : start + CHUNK]))
        for start in range(0, len(every), CHUNK)
    ]
    return np.concatenate(parts)


def whole_numbers(shares: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Whole numbers in the ratio of these shares of one; None where there are no small ones."""
    distinct, places, counts = np.unique(shares, return_inverse=True, return_counts=True)
    if len(distinct) > MOST_SHARES:
        return None
    ratios = [Fraction(share).limit_denominator(LARGEST_DENOMINATOR) for share in distinct.tolist()]
    common = math.lcm(*(each.denominator for each in ratios))
    total = sum(each * count for each, count in zip(ratios, counts.tolist(), strict=True))
    if common > LARGEST_TOTAL or total != 1:
        return None
    return np.array([int(each * common) for each in ratios], dtype=np.int64)[places]


def can_be_exact(sampler: Sampler, assignments: Assignments, measure: Measure) -> bool:
    """Whether the definitions can be computed from the outputs of the whole domain.

    Bins whose members stand for them matter to causal scores alone.
    """
    if measure == "causal" and len(assignments.binned) > (not sampler.reading.needs_tolerances):
        return False  # of a graded reading not even one
    chosen = set(assignments.columns)
    if assignments.schema.ties:
        return _fits_by_input(sampler, assignments)
    width = math.prod(assignments.schema.code_counts[c] for c in chosen)
    blocks = sampler.population.blocks
    contexts = math.prod(b.size or 1 for b in blocks if chosen.isdisjoint(b.columns))
    return width * contexts <= DENSE_LIMIT


def _fits_by_input(sampler: Sampler, assignments: Assignments) -> bool:
    """Whether the table of all inputs that occur, each with its own variants, can be built."""
    size = sampler.population.size
    width = math.prod(assignments.schema.code_counts[c] for c in assignments.columns)
    if size is None:
        return False
    return size * width <= DENSE_LIMIT and sampler.runner.schema.size <= KEPT
