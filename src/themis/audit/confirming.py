"""Confirming: what discriminated in a replay is run again, until it is more than noise leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.inputs.assignments import Places
from themis.inputs.keys import InputKeys
from themis.statistics.reruns import fewest_reruns, lasts_beyond_noise
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells

CONFIDENCE = 0.99  # that nothing of a subject that does not discriminate is confirmed

Flags = NDArray[np.bool_]
Comparison = Callable[[Cells, Cells, Places], Flags]  # cells of pairs, then and again, and which


@dataclass
class Confirmation:
    """Pairs of inputs with different outputs, of several kinds that are judged apart.

    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves.
    """

    inputs: NDArray[np.int64]  # of each pair, the numbers of two of the codes
    codes: NDArray[np.int64]  # different ones
    kinds: Places
    lasting: Flags = field(init=False)  # came out the same so far
    confirmed: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.lasting = np.ones(len(self.kinds), dtype=bool)
        self.confirmed = np.zeros(len(self.kinds), dtype=bool)

    @classmethod
    def of(cls, first: NDArray[np.int64], second: NDArray[np.int64], kinds: Places) -> Confirmation:
        """The pairs of these rows of codes."""
        codes = np.concatenate([first, second])
        places, numbers = unique_rows(codes)
        return cls(numbers.reshape(2, -1).T, codes[places], kinds)

    def executions(self) -> int:
        """How many executions it takes, unless answers depend on chance."""
        alpha = self._alpha()
        needed = [
            -(-fewest_reruns(alpha / 2) // self._independent(kind)) * len(np.unique(pairs))
            for kind, pairs in self._pairs_by_kind()
        ]
        return sum(needed)

    def run(self, runner: Runner, before: Cells, again: Comparison) -> None:
        """Run the pairs again as often as it takes, and the budget allows.

        `before` are the cells of the codes as they were first; `again` says which pairs came out
        the same.
        """
        reruns = 0
        while (active := np.flatnonzero(self.lasting & ~self.confirmed)).size:
            reruns += 1
            asked = np.unique(self.inputs[active])
            cells = np.full(len(self.codes), NOT_RUN, dtype=before.dtype)
            cells[asked] = _rerun(runner, self.codes[asked], reruns)
            pairs = self.inputs[active]
            missing = (cells[pairs] == NOT_RUN).any(axis=1)
            self.lasting[active] = missing | again(before[pairs], cells[pairs], active)
            if missing.any():
                return
            self._judge(reruns)

    def _judge(self, reruns: int) -> None:
        for kind, _ in self._pairs_by_kind():
            own = self.kinds == kind
            lasting = own & self.lasting
            self.confirmed[lasting] |= lasts_beyond_noise(
                int(lasting.sum()), int(own.sum()), self._independent(kind), reruns, self._alpha()
            )

    def _independent(self, kind: int) -> int:
        """How many pairs of a kind share no input, at least."""
        return int(sharing_none(self.inputs[self.kinds == kind]).sum())

    def _pairs_by_kind(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for kind in np.unique(self.kinds).tolist():
            yield kind, self.inputs[self.kinds == kind]

    def _alpha(self) -> float:
        return (1.0 - CONFIDENCE) / max(len(np.unique(self.kinds)), 1)


def _rerun(runner: Runner, inputs: NDArray[np.int64], time: int) -> Cells:
    """Run inputs once more, in another order, as far as the budget goes."""
    again = np.full(len(inputs), NOT_RUN, dtype=runner.labels.dtype)
    order = np.random.default_rng([len(inputs), time]).permutation(len(inputs))
    place = 0
    with suppress(BudgetEndedError):
        while place < len(inputs):
            size = int(min(runner.batch_size, len(inputs) - place, runner.executions_left))
            if size < 1 or runner.out_of_time:
                break
            runner.heed()
            part = order[place : place + size]
            again[part] = runner.repeat(inputs[part], again=time)
            place += size
    return again


def sharing_none(pairs: NDArray[np.int64]) -> Flags:
    """Pairs of which no two share an input: each that shares none with those before it."""
    taken: set[int] = set()
    apart = np.zeros(len(pairs), dtype=bool)
    for place, (one, other) in enumerate(pairs.tolist()):
        if one not in taken and other not in taken:
            apart[place] = True
            taken |= {one, other}
    return apart


def unique_rows(codes: NDArray[np.int64]) -> tuple[Places, Places]:
    """The places of the first of equal rows, in order; and for each row, which of them it is."""
    keys = InputKeys.among(codes).of(codes)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]
