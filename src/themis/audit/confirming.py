"""Confirming: what discriminated in a replay is run again, until it is more than noise leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.audit.outcomes import Outcome, Pairs, sides_now, unique_rows
from themis.inputs.assignments import Places
from themis.results.replays import STATES
from themis.statistics.reruns import lasts_beyond_noise
from themis.subjects.decisions import NOT_RUN, Cells

CONFIDENCE = 0.99  # that nothing of a subject that does not discriminate is confirmed
FIRST = 0.8 * (1.0 - CONFIDENCE)  # of what may be wrong, for the first pair of each test
SECOND = 1.0 - CONFIDENCE - FIRST  # the rest is for the other pairs of tests whose first one fell

Flags: TypeAlias = NDArray[np.bool_]
# The cells of these rows of the saved tests, run once more: NOT_RUN where the budget ended before.
Again: TypeAlias = Callable[[Places], Cells]


class Confirmation:
    """Pairs of saved tests that differ, to be run again; `alpha` may be wrong about all of them.

    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves. A kind is an output in which tests differ, and whether they did
    before. Of a test with several pairs, one is enough.
    """

    def __init__(self, outcome: Outcome, pairs: Pairs, alpha: float, again: Again) -> None:
        self.outcome, self.tests, self.rows, self.again = outcome, pairs.tests, pairs.rows, again
        self.outputs = pairs.outputs
        places, numbers = unique_rows(outcome.saved.codes[pairs.rows.reshape(-1)])
        self.one_of_each = pairs.rows.reshape(-1)[places]  # a row of each input
        self.inputs = numbers.reshape(-1, 2)
        self.first = outcome.now[self.one_of_each].astype(outcome.runner.labels.dtype)
        kinds = 2 * pairs.outputs + outcome.did[pairs.tests]
        self.kinds: list[Flags] = [kinds == kind for kind in np.unique(kinds)]
        self.alpha = alpha / max(len(self.kinds), 1)
        self.apart = np.zeros(len(kinds), dtype=bool)  # no two of these of one kind share an input
        for own in self.kinds:
            self.apart[own] = sharing_none(self.inputs[own])
        self.lasting = np.ones(len(kinds), dtype=bool)  # came out the same so far
        self.confirmed = np.zeros(len(kinds), dtype=bool)

    def run(self) -> bool:
        """Run the pairs again as often as it takes; whether the budget was enough for that."""
        active, reruns, enough = np.arange(len(self.tests)), 0, True
        try:
            while active.size and enough:
                reruns += 1
                same, enough = self._rerun(active)
                active = active[same]
                self._judge(active, reruns)
                active = active[~np.isin(self.tests[active], self.tests[self.confirmed])]
        finally:  # also where it is interrupted, or fails too often
            self._tell()
        return enough

    def _rerun(self, active: Places) -> tuple[Flags, bool]:
        """Which of these pairs came out the same once more; whether the budget was enough."""
        came, missing = np.zeros(len(active), dtype=bool), np.arange(len(active))
        for _ in range(5):  # of running a pair again: a failure says nothing of chance
            which = active[missing]
            asked = np.unique(self.inputs[which])
            cells = np.full(len(self.first), NOT_RUN, dtype=self.first.dtype)
            cells[asked] = self.again(self.one_of_each[asked])
            known, same = self._compare(which, cells)
            self.lasting[which[known & ~same]] = False
            came[missing] = same
            missing = missing[~known]
            if (cells[asked] == NOT_RUN).any():
                return came, False
            if not missing.size:
                break
        return came, True

    def _compare(self, which: Places, now: Cells) -> tuple[Flags, Flags]:
        """Which pairs have an output, then and now; which differ in it as they did."""
        outputs, pairs, size = self.outputs[which], self.inputs[which].T, len(which)
        cells = np.concatenate([self.first[pairs].reshape(-1), now[pairs].reshape(-1)])
        places = np.arange(4 * size).reshape(4, size)
        known, same = np.zeros((2, size), dtype=bool)
        for output, side in enumerate(sides_now(self.outcome.runner, cells)):
            has = (side.numbers.reshape(4, size) >= 0).all(axis=0) & (outputs == output)
            known |= has
            same[has] = side.differs_alike(*places[:, has]) if has.any() else False
        return known, same

    def _judge(self, came: Places, reruns: int) -> None:
        """Confirm pairs that came out the same in all reruns, if noise would leave fewer."""
        for own in self.kinds:
            lasting = came[own[came]]
            self.confirmed[lasting] |= lasts_beyond_noise(
                len(lasting),
                int(own.sum()),
                int(self.apart[lasting].sum()),
                reruns,
                self.alpha,
                all_last=bool(self.lasting[own].all()),
            )

    def _tell(self) -> None:
        """Say what became of the tests; what was not run again often enough is left as it is."""
        outcome = self.outcome
        outcome.states[self.tests[~self.lasting]] = STATES.index("unclear")
        for place in np.flatnonzero(self.confirmed).tolist():
            test = int(self.tests[place])
            outcome.states[test] = STATES.index("still" if outcome.did[test] else "new")
            outcome.shown.setdefault(test, tuple(self.rows[place].tolist()))


def sharing_none(pairs: NDArray[np.int64]) -> Flags:
    """Pairs of which no two share an input: each that shares none with those before it."""
    taken: set[int] = set()
    apart = np.zeros(len(pairs), dtype=bool)
    for place, pair in enumerate(pairs.tolist()):
        if taken.isdisjoint(pair):
            taken.update(pair)
            apart[place] = True
    return apart
