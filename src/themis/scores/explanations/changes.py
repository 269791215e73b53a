"""What changes of value do: who loses by one, how often, and what only two together change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import Value
from themis.results.model import CausalScore
from themis.results.parts import Crossing, Harm, Joint, Witness
from themis.scores.explanations.witnesses import FlipPool, Pairs
from themis.statistics.intervals import Flags, Floats
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import Reading

Counts = NDArray[np.int64]

WIDTH_LIMIT = 256  # sets with more assignments get no matrix of changes

Ends = Callable[[Counts, Counts], tuple[Floats, Floats]]  # of shares: successes among trials


class HarmTally:
    """Counts, over whole rows of a table, what each change of assignment does to the decision."""

    def __init__(self, assignments: Assignments, reading: Reading) -> None:
        self.assignments = assignments
        self.reading = reading
        width = assignments.count
        # Weights that lose by a change and of all, and contexts that do, whatever they weigh.
        self._lost, self._known, self._losses, self._counted = np.zeros((4, width, width))
        self._weighted = False
        self._flipped = self._pairs = 0.0
        self._crossing = self._all = 0.0  # weights of contexts: with both kinds of outputs, of all
        self.contexts = self._crossed = 0

    def add(self, cells: Cells, weights: Floats | None = None) -> None:
        """Count rows in which every assignment was tried."""
        known = cells >= 0
        good = self.reading.labels.is_favourable(cells)
        weight: Any = np.ones(len(cells)) if weights is None else weights
        counted, losses = _counts(known, good)
        self._counted += counted
        self._losses += losses
        if (weight == weight[:1]).all():
            one = float(weight[0]) if len(weight) else 0.0
            counted, losses = one * counted, one * losses
        else:
            self._weighted = True
            counted, losses = _counts(known, good, weight)
        self._known += counted
        self._lost += losses
        total = known.sum(axis=1, dtype=np.float64)
        pairs = total * (total - 1.0)
        apart = self._apart(cells, total)
        share = np.divide(apart, pairs, out=np.zeros(len(cells)), where=pairs > 0)
        self._flipped += float((share * weight).sum())
        lost = (pairs == 0) & (cells == FAILED).any(axis=1)  # nothing is left to compare
        self._pairs += float(weight[~lost].sum())
        crosses = (known & good).any(axis=1) & (known & ~good).any(axis=1)
        self._crossing += float(weight[crosses].sum())
        self._all += float(weight.sum())
        self._crossed += int(crosses.sum())
        self.contexts += len(cells)

    def crossing(self, ends: Ends | None = None) -> Crossing | None:
        """How often a change is one between favourable and other outputs, if not all are."""
        reading, kinds = self.reading, self.reading.labels.favourable
        if reading.graded or not reading.has_favourable or len(kinds) < 3 or not self._all:
            return None
        if kinds.all() or not kinds.any():
            return None
        low = high = None
        if ends is not None and not self._weighted:
            both = ends(np.array([self._crossed]), np.array([self.contexts]))
            low, high = (float(each[0]) for each in both)
        count = None if self._weighted else self._crossed
        return Crossing(self._crossing / self._all, self.contexts, count, low, high)

    def _apart(self, cells: Cells, total: Floats) -> Floats:
        """For each row the sum of the distances of all its ordered pairs of outputs."""
        if not self.reading.graded:
            ordered = np.sort(cells, axis=1)
            new = np.ones(ordered.shape, dtype=bool)
            new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
            starts = np.flatnonzero(new)
            lengths = np.diff(np.append(starts, ordered.size)).astype(np.float64)
            known, rows = ordered.ravel()[starts] >= 0, starts // ordered.shape[1]
            return np.asarray(total**2 - np.bincount(rows[known], lengths[known] ** 2, len(cells)))
        result = np.zeros(len(cells))
        for shift in range(1, cells.shape[1]):
            for column in range(cells.shape[1] - shift):
                first, second = cells[:, column], cells[:, column + shift]
                result += 2 * self.reading.distances(first, second)
        return result

    def losers(self, count: int) -> list[int]:
        """The assignments that lose most by a change to them, in so many rows at the least."""
        if not self.reading.has_favourable:
            return []
        most = self._losses.max(axis=0)  # by the worst change to each
        order = np.argsort(-most, kind="stable")
        return [int(place) for place in order if most[place] >= count]

    @classmethod
    def of(cls, assignments: Assignments, reading: Reading) -> HarmTally | None:
        """An empty tally; None for a set with too many assignments."""
        return cls(assignments, reading) if cls.fits(assignments, reading) else None

    @staticmethod
    def fits(assignments: Assignments, reading: Reading) -> bool:
        """Whether a set has few enough assignments to compare them all: distances take longer."""
        return assignments.count <= (WIDTH_LIMIT // 8 if reading.graded else WIDTH_LIMIT)

    @property
    def flip_rate(self) -> float | None:
        """How often one change of the set, to any other assignment, changes the output."""
        return self._flipped / self._pairs if self._pairs else None

    def changes(self, ends: Ends | None = None, count: int = 20) -> tuple[Harm, ...]:
        """The changes that cost most people the favourable decision, the worst first.

        `ends` gives the interval of a share where contexts were sampled; with different weights
        there is none.
        """
        if not self.reading.has_favourable:
            return ()
        rate = np.divide(
            self._lost, self._known, out=np.zeros_like(self._lost), where=self._known > 0
        )
        first, second = np.nonzero((rate > 0) & (rate >= rate.T))
        keep = (first < second) | (rate[first, second] > rate[second, first])
        first, second = first[keep], second[keep]
        order = np.argsort(-rate[first, second], kind="stable")[:count]
        first, second = first[order], second[order]
        losses = np.rint(np.stack([self._losses[first, second], self._losses[second, first]]))
        contexts = np.rint(self._counted[first, second])
        lows = highs = np.full((len(order), 2), None)
        if ends is not None and not self._weighted and len(order):
            trials = np.tile(contexts, 2).astype(np.int64)
            both = ends(losses.ravel().astype(np.int64), trials)
            lows, highs = (each.reshape(2, -1).T for each in both)
        places = zip(first.tolist(), second.tolist(), lows.tolist(), highs.tolist(), strict=True)
        return tuple(
            Harm(
                change_from=self.assignments.labels(one),
                change_to=self.assignments.labels(other),
                lost=float(rate[one, other]),
                gained=float(rate[other, one]),
                contexts=round(self._counted[one, other]),
                lost_count=round(self._losses[one, other]),
                gained_count=round(self._losses[other, one]),
                lost_low=low[0],
                lost_high=high[0],
                gained_low=low[1],
                gained_high=high[1],
            )
            for one, other, low, high in places
        )


def _counts(known: Flags, good: Flags, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """For each two assignments the rows that have both, and those that lose by the change."""
    there, favourable = known.astype(np.float64), (known & good).astype(np.float64)
    each: Any = 1 if weight is None else weight[:, None]
    lost = (each * favourable).T @ (there - favourable)  # nothing is left of what cancels out
    return (each * there).T @ there, lost


class JointTally:
    """Counts inputs that change by one of two characteristics alone, and only by both.

    It keeps the first pair that needs both.
    """

    def __init__(self, variants: Variants, reading: Reading) -> None:
        self._variants, self._reading = variants, reading
        self._weight = self._only = 0.0
        self._alone = np.zeros(2)
        self._inputs = self._only_count = 0
        self._weighted = False
        self._example: Pairs | None = None

    @staticmethod
    def of(variants: Variants, reading: Reading) -> JointTally | None:
        """A tally, where there is something to count: a set of two whose table is not too wide."""
        two = len(variants.assignments.columns) == 2
        fits = two and variants.complete and variants.assignments.count <= WIDTH_LIMIT
        return JointTally(variants, reading) if fits and not reading.graded else None

    def add(self, rows: Rows, cells: Cells, weights: Floats | None = None) -> None:
        """Count rows in which every assignment was tried; a row is its base input."""
        own, each = own_columns(self._variants, rows), np.arange(len(rows))
        clear = ~((cells == FAILED) | (cells == NOT_RUN)).any(axis=1) & (cells[each, own] >= 0)
        table = cells.reshape(len(cells), *self._variants.assignments.shape)
        first, second = np.unravel_index(own, self._variants.assignments.shape)
        alone = np.stack([_varies(table, 1)[each, second], _varies(table, 2)[each, first]])
        only = clear & _varies(cells, 1) & ~alone.any(axis=0)
        weight = np.ones(len(rows)) if weights is None else weights
        self._weighted |= bool((weight != weight[:1]).any())
        self._weight += float(weight[clear].sum())
        self._alone += (alone * clear * weight).sum(axis=1)
        self._only += float(weight[only].sum())
        self._inputs += int(clear.sum())
        self._only_count += int(only.sum())
        if self._example is None and only.any():
            self._example = self._pair(rows, cells, own, np.flatnonzero(only))

    def _pair(
        self, rows: Rows, cells: Cells, own: NDArray[np.int64], places: NDArray[np.int64]
    ) -> Pairs | None:
        """An input and a variant with another output, between which each single change was run."""
        shape = self._variants.assignments.shape
        for row in places[:50].tolist():
            first, second = np.unravel_index(own[row], shape)
            table = cells[row].reshape(shape)
            needs = (table >= 0) & (table != table[first, second])
            needs &= (table[:, [second]] >= 0) & (table[[first], :] >= 0)
            if needs.any():
                other = int(np.ravel_multi_index(np.argwhere(needs)[0], shape))
                columns = np.array([own[row], other])
                inputs = rows.inputs(self._variants, np.array([row, row]), columns)
                return Pairs(inputs[None], cells[row, columns][None])
        return None

    def joint(self, ends: Ends | None = None) -> Joint | None:
        """What was counted; `ends` gives the interval of a share where inputs were sampled."""
        if not self._inputs or not self._weight:
            return None
        names = self._variants.assignments.names
        shares = (self._alone / self._weight).tolist()
        counted = None if self._weighted else self._only_count
        found = Joint(
            dict(zip(names, shares, strict=True)), self._only / self._weight, self._inputs, counted
        )
        if ends is None or self._weighted:
            return found
        low, high = ends(np.array([self._only_count]), np.array([self._inputs]))
        return replace(found, only_low=float(low[0]), only_high=float(high[0]))

    def explain(self, score: CausalScore, ends: Ends | None = None) -> CausalScore:
        """The score with what is only joint, and before its other witnesses one that shows it."""
        first = tuple(self._witness()) if score.witnesses else ()
        known = [_people(each) for each in first]
        others = (each for each in score.witnesses if _people(each) not in known)
        return replace(score, joint=self.joint(ends), witnesses=(*first, *others))

    def _witness(self) -> Iterator[Witness]:
        if self._example is not None:
            pool = FlipPool(self._variants.assignments, self._reading)
            own = self._reading.labels.labels[int(self._example.outputs[0, 0])]
            for shown in pool.witnesses(self._example):
                yield replace(shown, joint=0 if shown.outputs[0] == own else 1)


def _people(witness: Witness) -> list[dict[str, Value]]:
    """The two of a pair, whoever comes first."""
    return sorted(witness.inputs, key=repr)


def _varies(table: NDArray[Any], axis: int) -> Flags:
    """Whether the known outputs along an axis are not all the same."""
    known = table >= 0
    most = np.where(known, table, -1).max(axis=axis)
    least = np.where(known, table, np.iinfo(table.dtype).max).min(axis=axis)
    varies: Flags = known.any(axis=axis) & (most > least)
    return varies
