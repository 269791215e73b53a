"""Counterfactuals among the given rows (Def. 3.8 to the letter): who has another output?

Two rows are counterfactuals of each other when they have the same context and another assignment
of the set. Nothing is run for it beyond the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.subjects.decisions import Cells

Numbers = NDArray[np.int64]
Distances = Callable[[Cells, Cells], NDArray[np.float64]]


@dataclass(frozen=True)
class Counterparts:
    """What the other rows say about each row."""

    least: NDArray[np.float64]  # how far the farthest counterfactual is, at least: 0 to 1
    most: NDArray[np.float64]  # and at most; more where an execution failed or was not made
    paired: NDArray[np.bool_]  # whether there is any counterfactual of it among the rows


def compare_within(contexts: Numbers, levels: Numbers, cells: Cells) -> Counterparts:
    """Compare distinct rows, by the numbers of their context and assignment, where 1 is apart."""
    known = cells >= 0
    labels = np.maximum(cells, 0).astype(np.int64)
    here = _pair(contexts, levels)
    same_output = _pair(contexts, labels)
    both = _pair(here, labels)

    def count(keys: Numbers, chosen: NDArray[np.bool_]) -> NDArray[Any]:
        return np.bincount(keys, chosen, minlength=len(keys))[keys].astype(np.int64)

    elsewhere = count(contexts, known) - count(here, known)
    agreeing = count(same_output, known) - count(both, known)
    unclear = count(contexts, ~known) - count(here, ~known)
    paired = elsewhere + unclear > 0
    flips = known & (elsewhere > agreeing)
    possible = flips | (paired & (~known | (unclear > 0)))
    return Counterparts(flips.astype(float), possible.astype(float), paired)


def measure_within(
    contexts: Numbers, levels: Numbers, cells: Cells, distances: Distances
) -> Counterparts:
    """The same where outputs differ by degrees: the largest distance to a counterfactual."""
    order = np.argsort(contexts, kind="stable")
    where, own, outputs = contexts[order], levels[order], cells[order]
    least = np.zeros(len(order))
    unclear, paired = (np.zeros(len(order), dtype=bool) for _ in range(2))
    for shift in range(1, int(np.bincount(contexts).max(initial=1))):
        first = np.flatnonzero((where[shift:] == where[:-shift]) & (own[shift:] != own[:-shift]))
        second = first + shift
        apart = distances(outputs[first], outputs[second])
        open_pairs = (outputs[first] < 0) | (outputs[second] < 0)
        for side in (first, second):  # no row occurs twice on one side
            least[side] = np.maximum(least[side], apart)
            unclear[side] |= open_pairs
            paired[side] = True
    back = np.argsort(order)
    most = np.where(unclear, 1.0, least)
    return Counterparts(least[back], most[back], paired[back])


def find_pairs(
    contexts: Numbers, levels: Numbers, cells: Cells, rows: Numbers, distances: Distances
) -> Numbers:
    """Of each of these rows the pair with its farthest counterfactual; each pair once."""
    near = np.flatnonzero(np.isin(contexts, contexts[rows]))
    near = near[np.argsort(contexts[near], kind="stable")]
    starts = np.searchsorted(contexts[near], contexts[rows], side="left")
    stops = np.searchsorted(contexts[near], contexts[rows], side="right")
    pairs: dict[tuple[int, int], None] = {}
    for row, start, stop in zip(rows.tolist(), starts, stops, strict=True):
        others = near[start:stop]
        apart = distances(np.full(len(others), cells[row], cells.dtype), cells[others])
        partner = int(others[np.where(levels[others] != levels[row], apart, -1.0).argmax()])
        pairs[min(row, partner), max(row, partner)] = None
    return np.array(list(pairs), dtype=np.int64)


def _pair(first: Numbers, second: Numbers) -> Numbers:
    """A number for each pair of numbers, the same exactly for the same pair."""
    keys = first * (int(second.max()) + 1) + second
    numbers: Numbers = np.unique(keys, return_inverse=True)[1]
    return numbers
