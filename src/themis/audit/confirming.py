"""Confirming: what discriminated in a replay is run again, until it is more than noise leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Places
from themis.inputs.keys import InputKeys
from themis.statistics.reruns import lasts_beyond_noise
from themis.subjects.decisions import NOT_RUN, Cells

CONFIDENCE = 0.99  # that nothing of a subject that does not discriminate is confirmed
FIRST = 0.8 * (1.0 - CONFIDENCE)  # of what may be wrong, for the first pair of each test
SECOND = 1.0 - CONFIDENCE - FIRST  # the rest is for the other pairs of tests whose first one fell
TRIES = 5  # of running a pair again: a failure says nothing of chance

Flags = NDArray[np.bool_]

# Cells of some inputs, by their numbers, in one more run: NOT_RUN where the budget ended before.
Again = Callable[[Places], Cells]
# Which pairs have outputs then and now, and which came out the same: of cells of the pairs.
Comparison = Callable[[Cells, Cells, Places], tuple[Flags, Flags]]


@dataclass
class Confirmation:
    """Pairs of inputs with different outputs, of several kinds that are judged apart.

    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves. Of a test with several pairs, one is enough.
    """

    inputs: NDArray[np.int64]  # of each pair, the numbers of two inputs
    kinds: Places
    tests: Places  # that the pairs are of
    alpha: float  # what may be wrong about all of them
    lasting: Flags = field(init=False)  # came out the same so far
    confirmed: Flags = field(init=False)
    apart: Flags = field(init=False)  # no two of these of one kind share an input

    def __post_init__(self) -> None:
        self.apart = np.zeros(len(self.kinds), dtype=bool)
        for own in self._by_kind():
            self.apart[own] = sharing_none(self.inputs[own])
        self.lasting = np.ones(len(self.kinds), dtype=bool)
        self.confirmed = np.zeros(len(self.kinds), dtype=bool)

    def run(self, first: Cells, again: Again, compare: Comparison) -> bool:
        """Run the pairs again as often as it takes; whether the budget was enough for that.

        `first` has the cells of all inputs as they were first.
        """
        active, reruns, enough = np.arange(len(self.kinds)), 0, True
        while active.size and enough:
            reruns += 1
            same, enough = self._rerun(active, first, again, compare)
            active = active[same]
            self._judge(active, reruns)
            active = active[~np.isin(self.tests[active], self.tests[self.confirmed])]
        return enough

    def _rerun(
        self, active: Places, first: Cells, again: Again, compare: Comparison
    ) -> tuple[Flags, bool]:
        """Which of these pairs came out the same once more; whether the budget was enough."""
        came, missing = np.zeros(len(active), dtype=bool), np.arange(len(active))
        for _ in range(TRIES):
            which = active[missing]
            pairs = self.inputs[which]
            asked = np.unique(pairs)
            cells = np.full(len(first), NOT_RUN, dtype=first.dtype)
            cells[asked] = again(asked)
            known, same = compare(first[pairs], cells[pairs], which)
            self.lasting[which[known & ~same]] = False
            came[missing] = same
            missing = missing[~known]
            if (cells[asked] == NOT_RUN).any():
                return came, False
            if not missing.size:
                break
        return came, True

    def _judge(self, came: Places, reruns: int) -> None:
        """Confirm pairs that came out the same in all reruns, if noise would leave fewer."""
        alpha = self.alpha / max(len(np.unique(self.kinds)), 1)
        for own in self._by_kind():
            lasting = came[own[came]]
            self.confirmed[lasting] |= lasts_beyond_noise(
                len(lasting),
                int(own.sum()),
                int(self.apart[lasting].sum()),
                reruns,
                alpha,
                all_last=bool(self.lasting[own].all()),
            )

    def _by_kind(self) -> Iterator[Flags]:
        yield from (self.kinds == kind for kind in np.unique(self.kinds))


def sharing_none(pairs: NDArray[np.int64]) -> Flags:
    """Pairs of which no two share an input: each that shares none with those before it."""
    taken: set[int] = set()
    apart = np.zeros(len(pairs), dtype=bool)
    for place, pair in enumerate(pairs.tolist()):
        if taken.isdisjoint(pair):
            taken.update(pair)
            apart[place] = True
    return apart


def unique_rows(codes: NDArray[np.int64]) -> tuple[Places, Places]:
    """The places of the first of equal rows, in order; and for each row, which of them it is."""
    keys = InputKeys.among(codes).of(codes)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]
