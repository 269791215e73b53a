"""Confirming: what discriminated in a replay is run again, until it is more than noise leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.inputs.assignments import Places
from themis.inputs.keys import InputKeys
from themis.statistics.reruns import fewest_reruns, lasts_beyond_noise
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells

CONFIDENCE = 0.99  # that nothing of a subject that does not discriminate is confirmed
FIRST = 0.8 * (1.0 - CONFIDENCE)  # of what may be wrong, for the first pair of each test
SECOND = 1.0 - CONFIDENCE - FIRST  # the rest is for what is run again after that
MARGIN = 1.1  # more time than running again will probably take
ONE_PAIR = 2 * fewest_reruns(FIRST / 2)  # executions, if it is alone
TRIES = 5  # of running a pair again: a failure says nothing of chance

Flags = NDArray[np.bool_]

# Cells of pairs, then and again, and which pairs: those that have outputs, and came out the same.
Comparison = Callable[[Cells, Cells, Places], tuple[Flags, Flags]]


@dataclass
class Confirmation:
    """Pairs of inputs with different outputs, of several kinds that are judged apart.

    A pair is confirmed where it came out the same in every rerun, and the pairs of its kind that
    did are more than noise leaves. Of a test with several pairs, one is enough.
    """

    inputs: NDArray[np.int64]  # of each pair, the numbers of two of the codes
    codes: NDArray[np.int64]  # different ones
    kinds: Places
    tests: Places  # that the pairs are of
    alpha: float = FIRST  # what may be wrong about all of them
    lasting: Flags = field(init=False)  # came out the same so far
    confirmed: Flags = field(init=False)
    apart: Flags = field(init=False)  # no two of these of one kind share an input

    def __post_init__(self) -> None:
        self.apart = np.zeros(len(self.kinds), dtype=bool)
        for own in self._by_kind():
            self.apart[own] = sharing_none(self.inputs[own])
        self.lasting = np.ones(len(self.kinds), dtype=bool)
        self.confirmed = np.zeros(len(self.kinds), dtype=bool)

    def needs(self, among: int = 1) -> Places:
        """How many executions the first 1, 2, 3 … pairs take, unless answers depend on chance.

        Their kinds are judged among so many at least.
        """
        kinds, size = list(self._by_kind()), len(self.kinds)
        if not size:
            return np.zeros(0, dtype=np.int64)
        present = sum((np.cumsum(own) > 0).astype(np.int64) for own in kinds)
        fewest = [self._fewest(number) for number in range(1, max(len(kinds), among) + 1)]
        most = np.array(fewest)[np.maximum(present, among) - 1]
        reruns, since = np.zeros((len(kinds), size), np.int64), []
        for place, own in enumerate(kinds):
            apart = np.cumsum(self.apart & own)
            reruns[place] = np.where(apart, -(-most // np.maximum(apart, 1)), 0)
            since.append(self._first_pairs(own))
        needed = np.zeros(size, dtype=np.int64)
        changes = np.flatnonzero(np.diff(reruns, axis=1).any(axis=0)) + 1
        for start, stop in pairwise([0, *changes.tolist(), size]):
            needed[start:stop] = _executions(reruns[:, start], np.stack(since), size)[start:stop]
        return needed

    def _first_pairs(self, own: Flags) -> Places:
        """The first of these pairs that each input is in; their number if it is in none."""
        since = np.full(len(self.codes), len(own))
        inputs, first = np.unique(self.inputs[own], return_index=True)
        since[inputs] = np.flatnonzero(own)[first // 2]
        return since

    def needs_at_most(self, more: Places, among: int, shared: int) -> Places:
        """How many executions these pairs take with any of so many more, of so many kinds at most.

        No input is in more than `shared` pairs. A pair is chosen if it shares no input with those
        chosen before, and so keeps out at most 2 (shared − 1) others. Then k pairs of a kind take
        at most ⌈fewest (2 shared − 1) / k⌉ reruns of 2 k inputs, and none more than `fewest`.
        """
        among = max(among, 1)
        fewest = self._fewest(among)
        known = int(self.needs(among)[-1]) if len(self.kinds) else 0
        each = known + 2 * fewest * more
        together = 2 * among * fewest * (2 * shared - 1) + 2 * (len(self.kinds) + more)
        return np.maximum(np.minimum(each, together), ONE_PAIR)

    def _fewest(self, kinds: int) -> int:
        """How many reruns of pairs that share no input one of so many kinds takes."""
        return fewest_reruns(self.alpha / kinds / 2)

    def within(self, executions: float) -> tuple[int, int]:
        """How many of the first pairs to run again, and up to which one others after these.

        So many executions are enough for as many as possible. One more kind makes all kinds take
        more reruns; then it may take less to run again what is before it, and the rest after that.
        """
        needs = self.needs()
        alone = _affordable(needs, executions)
        best = alone, alone
        firsts = np.sort(np.unique(self.kinds, return_index=True)[1])[1:]
        for first in firsts[needs[firsts - 1] <= executions].tolist():
            rest = self.part(slice(first, None), SECOND).needs()
            whole = first + _affordable(rest, executions - needs[first - 1])
            best = (first, whole) if whole > best[1] else best
        return best

    def part(self, which: slice, alpha: float) -> Confirmation:
        """Some of the pairs, by themselves."""
        pairs = self.inputs[which], self.codes, self.kinds[which], self.tests[which]
        return Confirmation(*pairs, alpha)

    def run(self, runner: Runner, before: Cells, again: Comparison, times: Iterator[int]) -> bool:
        """Run the pairs again as often as it takes; whether the budget was enough for that.

        `before` are the cells of the codes as they were first; `again` says which pairs came out
        the same. `times` number the reruns.
        """
        active, reruns, enough = np.arange(len(self.kinds)), 0, True
        while active.size and enough:
            reruns += 1
            same, enough = self._rerun(active, runner, before, again, times)
            active = active[same]
            self._judge(active, reruns)
            active = active[~np.isin(self.tests[active], self.tests[self.confirmed])]
        return enough

    def _rerun(
        self,
        active: Places,
        runner: Runner,
        before: Cells,
        again: Comparison,
        times: Iterator[int],
    ) -> tuple[Flags, bool]:
        """Which of these pairs came out the same once more; whether the budget was enough."""
        came, missing = np.zeros(len(active), dtype=bool), np.arange(len(active))
        for time in islice(times, TRIES):
            which = active[missing]
            pairs = self.inputs[which]
            asked = np.unique(pairs)
            cells = np.full(len(self.codes), NOT_RUN, dtype=before.dtype)
            cells[asked] = _run_again(runner, self.codes[asked], time)
            known, same = again(before[pairs], cells[pairs], which)
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


def affordable(runner: Runner, kept: float = 0.0) -> float:
    """How many inputs the budget less some seconds allows to run, by what one has taken so far."""
    each, left = runner.seconds_per_execution, runner.seconds_left - kept
    timely = max(left, 0.0) / (MARGIN * runner.runs * each) if each else math.inf
    return min(runner.executions_left, timely)


def _executions(reruns: Places, since: NDArray[np.int64], size: int) -> Places:
    """How many executions the first 1, 2, 3 … pairs take, whose kinds take so many reruns each.

    `since` has the first pair of each kind (row) that each input is in. An input is run as often as
    the kind that takes most of those that it is in.
    """
    order = np.argsort(-reruns, kind="stable")
    soonest = np.minimum.accumulate(since[order], axis=0)
    more = -np.diff(reruns[order], append=0)
    counts = [np.cumsum(np.bincount(each, minlength=size + 1))[:size] for each in soonest]
    total: Places = more @ np.stack(counts)
    return total


def _affordable(needs: Places, executions: float) -> int:
    """How many of the first pairs, of which these are the needs, so many executions allow."""
    enough = np.flatnonzero(needs <= executions)
    return int(enough[-1]) + 1 if len(enough) else 0


def _run_again(runner: Runner, inputs: NDArray[np.int64], time: int) -> Cells:
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
