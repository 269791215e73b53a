"""The excess: how often outputs differ after a change, minus how often when asked again.

In each context every assignment is asked m times, at the times 1 … m. What is compared is asked at
different times, so that a subject that drifts from one time to the next differs from itself as
much as from others: with the outputs x and y of two assignments as indicators, and D = x − y, a
context says ½ · the mean of ⟨D at i, D at j⟩ over all i ≠ j, whose expectation is ½·Σ(p − q)².
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.statistics.groups import GroupRule
from themis.statistics.intervals import Flags, Floats, bet_fractions
from themis.statistics.numbers import OF_CHOSEN, Bets, Grid, Tally, in_units, mean_upper
from themis.statistics.proportions import Interval

UNKNOWN, IMPOSSIBLE = -1, -2  # outputs: it failed; the context has no such variant
FEWEST_TIMES = 2
TIMES = ((0.05, 2), (0.15, 3), (1.0, 5))  # up to such a share within, so many take the fewest runs
_SUM_BITS, _DIGITS = 42, 12  # of numbers that are added up, and of their mean


@dataclass(frozen=True)
class ExcessRule:
    """Stops once the largest excess of two assignments is known to ± error with 1 − `alpha`.

    The guarantee is that of `GroupRule`, for all looks at once: half of α is for a martingale for
    each pair, of which only the largest has to be covered, half for one on a champion that is
    chosen before each look's contexts. Contexts must be independent draws.
    """

    alpha: float
    error: float

    def looks(self) -> Iterator[int]:
        """Numbers of contexts at which to call `look`."""
        return GroupRule(self.alpha, self.error).looks()

    def contexts_without(self, ceiling: float) -> int:
        """So many contexts show that an excess is below this, if no decision ever differs."""
        evidence = 2.0 * len(bet_fractions(self.error)) / ((1.0 - OF_CHOSEN) * self.alpha)
        return math.ceil(-math.log(evidence) / math.log1p(-ceiling))

    @property
    def most_contexts(self) -> int:
        """So many contexts are about enough for coins that are asked twice: variance ¼."""
        return math.ceil(math.log(2.0 / self.alpha) / (2.0 * self.error**2))


class Compared(NamedTuple):
    """What contexts say of each pair of assignments: rows × pairs, at least and at most."""

    excess: tuple[Floats, Floats]
    across: tuple[Floats, Floats]
    within: tuple[Floats, Floats]


@dataclass(frozen=True)
class PairEnds:
    """One pair of assignments: how often it differs, from itself and with the change."""

    pair: tuple[int, int]
    within: Interval
    across: Interval
    gap: Interval | None  # the first one's rate of favourable outputs minus the other's


class ExcessState:
    """What a run under `ExcessRule` has counted: `add` contexts, then `look`."""

    def __init__(self, rule: ExcessRule, assignments: int, *, rates: bool) -> None:
        self.assignments = assignments
        self.times = FEWEST_TIMES  # that each input of the next contexts is asked
        self.count, self.unknown = 0, 0
        self.champion: int | None = None  # a pair's number; no bet before the first look
        pairs, finest = len(self._pairs[0]), bet_fractions(rule.error)[-1] / 5.0
        self._signed, self._shares = Grid.around_zero(finest), Grid.of_distances(finest)
        self._above, self._below = Bets(self._signed, pairs), Bets(self._signed, 1)
        self._begin(rule)
        self._sums = np.zeros((2, pairs), dtype=np.int64)  # exact, in whatever order they come
        self._beside = {
            name: (*(Tally.of_none(grid, (pairs,)) for _ in range(2)), np.zeros_like(self._sums[0]))
            for name, grid in self._grids(rates=rates)
        }

    def go_on(self, rule: ExcessRule) -> None:
        """Go on under another rule, whose guarantee is its own: of all contexts, these included."""
        self._begin(rule)
        if self.count:
            self.look()

    def _begin(self, rule: ExcessRule) -> None:
        self.rule, self._fractions = rule, bet_fractions(rule.error)
        self.low, self.high, self._upper = 0.0, 1.0, np.ones(len(self._pairs[0]))
        self._choose()

    def _grids(self, *, rates: bool) -> Iterator[tuple[str, Grid]]:
        yield from (("across", self._shares), ("within", self._shares))
        if rates:
            yield "gap", self._signed

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        one, other = np.triu_indices(self.assignments, 1)
        return one, other

    def add(
        self,
        outputs: NDArray[np.signedinteger],
        favourable: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Count contexts: contexts × assignments × times, as numbers of outputs.

        `favourable` is the share of favourable outputs of each context and assignment, at least
        and at most.
        """
        step = max((1 << 20) // (self.assignments * outputs.shape[2]) ** 2, 1)  # comparisons
        for first in range(0, len(outputs), step):
            part = slice(first, first + step)
            own = None if favourable is None else tuple(each[part] for each in favourable)
            self._add(outputs[part], own)

    def _add(
        self, outputs: NDArray[np.signedinteger], favourable: tuple[Floats, ...] | None
    ) -> None:
        compared = compare(outputs, *self._pairs)
        least, most = compared.excess
        self.count += len(outputs)
        self.unknown += int((outputs == UNKNOWN).any(axis=(1, 2)).sum())
        self._above.count(in_units(most))
        if self.champion is not None:
            self._below.count(in_units(-least[:, [self.champion]]))
        self._sums += _added(least), _added(most)
        self._note("across", *compared.across)
        self._note("within", *compared.within)
        if favourable is not None:
            (low, high), (one, other) = favourable, self._pairs
            impossible = outputs[:, :, 0] == IMPOSSIBLE
            gone = impossible[:, one] | impossible[:, other]
            ends = low[:, one] - high[:, other], high[:, one] - low[:, other]
            self._note("gap", *(np.where(gone, 0.0, each) for each in ends))

    def _note(self, name: str, least: Floats, most: Floats) -> None:
        low, high, sums = self._beside[name]
        grid = self._signed if name == "gap" else self._shares
        # of a share what is missing to 1, and of a difference its other sign
        behind = -least if name == "gap" else 1.0 - least
        low.count(..., grid.tally(in_units(behind)))
        high.count(..., grid.tally(in_units(most)))
        sums += _added((least + most) / 2.0)

    def look(self) -> None:
        """Renew the ends, choose the next contexts' champion and, once, how often each is asked."""
        evidence = 2.0 / self.rule.alpha
        self._upper = np.minimum(self._upper, self._above.upper(evidence, self._fractions))
        self.high = min(self.high, max(float(self._upper.max(initial=0.0)), 0.0))
        if self.champion is not None:
            behind = self._below.upper(evidence, self._fractions)
            self.low = max(self.low, -float(behind[0]))
        else:
            self.times = self._fitting()
        self.champion = int(self._sums[0].argmax()) if len(self._upper) else None
        self._choose()

    def _choose(self) -> None:
        if len(self._upper):
            self._above.choose(self.champion or 0, self.rule.error)
            self._below.choose(0, self.rule.error)

    def _fitting(self) -> int:
        within = self._means(self._beside["within"][2])
        seen = float(within.mean()) if len(within) else 0.0
        return fitting_times(seen)

    @property
    def crossed(self) -> bool:
        """Whether the ends contradict each other: contexts are no independent draws then."""
        return self.low > self.high

    @property
    def done(self) -> bool:
        """Whether the excess is known to ± error, but for outputs that stay unknown."""
        least, most = self.seen
        return bool(self.high - self.low <= 2.0 * self.rule.error + max(most - least, 0.0))

    @property
    def seen(self) -> tuple[float, float]:
        """The largest excess that was seen, as unknown outputs make it the least and the most."""
        least, most = (float(self._means(each).max(initial=0.0)) for each in self._sums)
        return least, most

    @property
    def interval(self) -> Interval:
        """The largest excess that was seen, and its ends, which are made to contain it."""
        seen = min(max(float(self._means(self._sums[0]).max(initial=0.0)), 0.0), 1.0)
        return Interval(seen, min(self.low, seen), max(self.high, seen))

    def shown(self) -> PairEnds | None:
        """The pair with the largest excess, with ends that hold jointly over all pairs."""
        if not self.count or not len(self._upper):
            return None
        pair = int(self._sums[0].argmax())
        own = {name: self._ends(name, pair) for name in self._beside}
        one, other = (int(each[pair]) for each in self._pairs)
        return PairEnds((one, other), own["within"], own["across"], own.get("gap"))

    def _ends(self, name: str, pair: int) -> Interval:
        low, high, sums = self._beside[name]
        grid = self._signed if name == "gap" else self._shares
        evidence = 2.0 * len(self._upper) / self.rule.alpha
        counts = np.hstack([grid.counts(each.take([pair])) for each in (low, high)])
        behind, most = mean_upper(counts, grid.points, evidence, self._fractions).tolist()
        least = -behind if name == "gap" else 1.0 - behind
        seen = float(self._means(sums)[pair])
        return Interval(seen, min(least, seen), max(most, seen))

    def _means(self, sums: NDArray[np.int64]) -> Floats:
        return np.asarray(np.round(sums / (max(self.count, 1) << _SUM_BITS), _DIGITS))


def fitting_times(within: float) -> int:
    """How often each input is best asked, where so many decisions differ when asked again."""
    return next(times for most, times in TIMES if within <= most)


def _added(numbers: Floats) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(np.ldexp(numbers, _SUM_BITS)).astype(np.int64).sum(axis=0)
    return whole


def compare(
    outputs: NDArray[np.signedinteger], one: NDArray[np.int64], other: NDArray[np.int64]
) -> Compared:
    """What each context says of each pair; outputs are contexts × assignments × times."""
    times = outputs.shape[2]
    apart = ~np.eye(times, dtype=np.bool_)
    differ = outputs[:, :, None, :, None] != outputs[:, None, :, None, :]
    share = (differ & apart).sum(axis=(3, 4)) / (times * (times - 1))
    failed, gone = (outputs == UNKNOWN).any(axis=2), (outputs == IMPOSSIBLE).any(axis=2)
    open_pairs: Flags = failed[:, one] | failed[:, other]
    none: Flags = gone[:, one] | gone[:, other]
    own = np.diagonal(share, axis1=1, axis2=2)
    across, within = share[:, one, other], (own[:, one] + own[:, other]) / 2.0

    def ends(seen: Floats, least: float) -> tuple[Floats, Floats]:
        seen = np.where(none, 0.0, seen)
        doubt = open_pairs & ~none
        if not doubt.any():
            return seen, seen
        return np.where(doubt, least, seen), np.where(doubt, 1.0, seen)

    return Compared(ends(across - within, -1.0 / (times - 1)), ends(across, 0.0), ends(within, 0.0))
