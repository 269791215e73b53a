"""Where the flips are: a few conditions on the context that most flips meet, checked afresh.

One half of the rows suggests regions, the other half says how much of the flips they hold. When to
stop a run depends on which rows flip, never on who they are; so, given which rows flip, the people
of the second half are independent draws that the suggestion has not seen, and a fixed-n interval
holds for them.

How well a simple condition on one characteristic tells them is F·KL(c ‖ s): F flips, of which a
share c meets it, as a share s of all rows does. If flips had nothing to do with it, more than
ln(1/p) would be seen with a chance of at most p (Chernoff's bound). Many conditions are looked at,
so each is charged the logarithm of how many of its kind there are; what is left is evidence.

A few such conditions together are a suggestion, to be checked on other rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.engine.sampler import LEFT_SHARE
from themis.inputs.characteristics import Characteristic, Value
from themis.inputs.schema import Schema
from themis.results.parts import Region
from themis.statistics.intervals import clopper_pearson
from themis.statistics.special import xlogy
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.readings import FLIP, UNKNOWN, Reading

LISTED = 6  # values that a condition lists at most
TABLE = 4_096  # up to this many values rows are counted by their codes

Floats = NDArray[np.float64]

_LEAST = 1e-300  # in place of 0, so that a ratio exists


@dataclass(frozen=True)
class Condition:
    """The codes that a column may have: from `low` to `high`, or some values, or all but some."""

    column: int
    low: int = 0
    high: int = 0
    values: tuple[int, ...] = ()
    excluded: bool = False  # the values are those that it may not have

    def holds(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which inputs meet it."""
        own = codes[:, self.column]
        if not self.values:
            return np.asarray((own >= self.low) & (own <= self.high))
        return np.isin(own, self.values, invert=self.excluded)

    def charge(self, schema: Schema) -> float:
        """The logarithm of the number of such conditions on this column."""
        size = schema.characteristics[self.column].size
        if self.values:
            count = schema.characteristics[self.column].code_count
            return math.log(2 * LISTED * math.comb(count, len(self.values)))
        if self.low > 0 and self.high < size - 1:
            return math.log(3 * size * (size + 1) / 2)
        return math.log(3 * size)

    def text(self, schema: Schema) -> str:
        """The condition as it is read: `age ≥ 40`, `education is one of HS, BA`."""
        characteristic = schema.characteristics[self.column]
        name = characteristic.name
        if self.values:
            shown = [_written(characteristic.value(code)) for code in self.values]
            if self.values == (characteristic.missing_code,):
                return f"{name} is {'not ' if self.excluded else ''}missing"
            if len(shown) == 1:
                return f"{name} {'≠' if self.excluded else '='} {shown[0]}"
            return f"{name} is {'none' if self.excluded else 'one'} of {', '.join(shown)}"
        low, high = (_written(characteristic.value(code)) for code in (self.low, self.high))
        if self.low == self.high:
            return f"{name} = {low}"
        if self.low == 0:
            return f"{name} ≤ {high}"
        return (
            f"{name} ≥ {low}"
            if self.high == characteristic.size - 1
            else f"{low} ≤ {name} ≤ {high}"
        )


def evidence(flips: float, inside: float, share: float) -> float:
    """F·KL(c ‖ s) of so many flips, a share `inside` of which lies where a `share` of rows does.

    0 where flips are not more frequent inside than outside.
    """
    if inside <= share:
        return 0.0
    outside = (1 - inside) * math.log((1 - inside) / (1 - share)) if inside < 1 else 0.0
    return flips * (inside * math.log(inside / share) + outside) if share > 0 else math.inf


def _all_evidence(inside: Floats, share: Floats) -> Floats:
    """The same of one flip, for many conditions at once."""
    share = np.maximum(share, _LEAST)
    rest = np.maximum(1.0 - inside, 0.0)
    known = xlogy(inside, inside / share) + xlogy(rest, rest / np.maximum(1.0 - share, _LEAST))
    return np.where(inside > share, known, 0.0)


@dataclass(frozen=True)
class Proposal:
    """A condition, and the shares of all flips and of all rows that meet it (and those before)."""

    condition: Condition
    inside: float
    share: float


@dataclass(frozen=True)
class Column:
    """One characteristic of all rows, prepared for counting."""

    number: int
    characteristic: Characteristic
    values: NDArray[Any]  # codes that are counted, rising
    places: NDArray[Any]  # of each row among them

    @classmethod
    def of(cls, schema: Schema, number: int, codes: NDArray[Any]) -> Column:
        """From the codes of all rows."""
        characteristic = schema.characteristics[number]
        if characteristic.size <= TABLE:
            every = np.arange(characteristic.code_count)
            return cls(number, characteristic, every, codes[:, number])
        values, places = np.unique(codes[:, number], return_inverse=True)
        return cls(number, characteristic, values, places)

    def proposals(
        self, rows: NDArray[np.int64], flips: Floats, weights: Floats
    ) -> Iterator[Proposal]:
        """Conditions that tell the flips among these rows best.

        `flips` and `weights` hold what each of these rows counts, each with a sum of at most 1.
        """
        size, places = len(self.values), self.places[rows]
        inside = np.bincount(places, flips, minlength=size).astype(float)
        share = np.bincount(places, weights, minlength=size).astype(float)
        if not self.characteristic.ordered:
            yield from self._lists(inside, share)
            return
        there = int(np.searchsorted(self.values, self.characteristic.missing_code))
        if there:
            yield from self._ranges(inside[:there], share[:there])
        if (
            there < size
            and self.values[there] == self.characteristic.missing_code
            and (self.characteristic.missing is not None)
        ):
            missing = (self.characteristic.missing_code,)
            counted = float(inside[there]), float(share[there])
            yield Proposal(Condition(self.number, values=missing), *counted)
            others = float(inside[:there].sum()), float(share[:there].sum())
            yield Proposal(Condition(self.number, values=missing, excluded=True), *others)

    def _ranges(self, inside: Floats, share: Floats) -> Iterator[Proposal]:
        """The best "at least", the best "at most", and each with the best other end."""
        c, s = np.zeros(len(inside) + 1), np.zeros(len(share) + 1)
        np.cumsum(inside, out=c[1:])
        np.cumsum(share, out=s[1:])
        low = _best_place(c[-1] - c[:-1], s[-1] - s[:-1])
        high = _best_place(c[1:], s[1:])
        above = low + _best_place(c[low + 1 :] - c[low], s[low + 1 :] - s[low])
        below = _best_place(c[high + 1] - c[: high + 1], s[high + 1] - s[: high + 1])
        for first, last in ((low, len(inside) - 1), (0, high), (low, above), (below, high)):
            counted = float(c[last + 1] - c[first]), float(s[last + 1] - s[first])
            yield Proposal(self._range(first, last), *counted)

    def _range(self, first: int, last: int) -> Condition:
        """From one counted value to another; the outermost ones stand for the whole rest."""
        low = 0 if first == 0 else int(self.values[first])
        end = last == np.searchsorted(self.values, self.characteristic.missing_code) - 1
        high = self.characteristic.size - 1 if end else int(self.values[last])
        return Condition(self.number, low, high)

    def _lists(self, inside: Floats, share: Floats) -> Iterator[Proposal]:
        """The values with most flips for their share, one to six; or all but those with fewest.

        Values that only rows have are never listed: each would name somebody.
        """
        listed = self.values < self.characteristic.first_extra
        occurs = np.flatnonzero(listed & (share > 0))
        own = float(inside[~listed].sum()), float(share[~listed].sum())
        if not len(occurs):
            return
        order = occurs[np.argsort(-inside[occurs] / share[occurs], kind="stable")]
        c, s = np.cumsum(inside[order]), np.cumsum(share[order])
        known = _all_evidence(c, s)
        chosen = int(np.argmax(known[:LISTED])) + 1
        some = Condition(self.number, values=self._codes(order[:chosen]))
        yield Proposal(some, float(c[chosen - 1]), float(s[chosen - 1]))
        last = len(order) - 1
        first = max(last - LISTED, 0)
        kept = first + int(np.argmax(known[first:last])) + 1 if last else 0
        if kept > chosen:
            others = Condition(self.number, values=self._codes(order[kept:]), excluded=True)
            yield Proposal(others, float(c[kept - 1]) + own[0], float(s[kept - 1]) + own[1])

    def _codes(self, places: NDArray[Any]) -> tuple[int, ...]:
        return tuple(sorted(self.values[places].tolist()))


def _best_place(inside: Floats, share: Floats) -> int:
    """Where the evidence is largest; the middle one where no row tells several places apart."""
    known = _all_evidence(inside, share)
    places = np.flatnonzero(known >= known.max() - 1e-12)
    return int(places[len(places) // 2])


def _written(value: Value) -> str:
    if value is None:
        return "missing"
    return value if isinstance(value, str) else json.dumps(value)


def meets_all(conditions: Sequence[Condition], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which inputs meet all of these conditions."""
    inside = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        inside &= condition.holds(codes)
    return inside


FEWEST_UNCOVERED = 5  # flips that are not covered yet
REGIONS = 3
LONGEST = 3  # conditions of a region
BEAM = 2  # ways to go on that are kept while a region grows
ENOUGH = 0.8  # of the flips: no further region is looked for
SUGGESTED_LIFT = 2.0  # flips are so many times as frequent within; a check asks for less


@dataclass(frozen=True)
class Suggestion:
    """Conditions, and what is left of their evidence when their number is charged for."""

    conditions: tuple[Condition, ...] = ()
    charge: float = 0.0
    worth: float = 0.0
    lift: float = 1.0


def suggest_regions(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weights: Floats | None,
    schema: Schema,
    against: Sequence[int],
) -> list[Suggestion]:
    """Regions one after the other: each explains flips that those before it left."""
    columns = [Column.of(schema, number, codes) for number in schema.free if number not in against]
    weight = np.ones(len(codes)) if weights is None else weights
    left = np.ones(len(codes), dtype=bool)
    found: list[Suggestion] = []
    while columns and len(found) < REGIONS and _worth_looking(flips, left):
        best = _left_rows(codes, flips, weight, left, columns, schema).best()
        if not best.conditions:
            break
        found.append(best)
        left &= ~meets_all(best.conditions, codes)
    return found


def _worth_looking(flips: NDArray[np.bool_], left: NDArray[np.bool_]) -> bool:
    total, rest = int(flips.sum()), int((flips & left).sum())
    return rest >= FEWEST_UNCOVERED and rest > (1 - ENOUGH) * total and not flips[left].all()


def _left_rows(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weight: Floats,
    left: NDArray[np.bool_],
    columns: Sequence[Column],
    schema: Schema,
) -> _Rows:
    flip_weights, row_weights = weight * (flips & left), weight * left
    return _Rows(
        codes,
        int((flips & left).sum()),
        flip_weights / flip_weights.sum(),
        row_weights / row_weights.sum(),
        columns,
        schema,
    )


@dataclass
class _Rows:
    """The rows that regions before left, and what each of them counts."""

    codes: NDArray[Any]
    count: int  # of flips
    flips: Floats  # their sum is 1, as is that of the weights
    weights: Floats
    columns: Sequence[Column]
    schema: Schema

    def best(self) -> Suggestion:
        """The conditions with most evidence, grown one by one, the best few ways at a time."""
        best, top, beam = Suggestion(), 0.0, [Suggestion()]
        for _ in range(LONGEST):
            grown = {frozenset(g.conditions): g for each in beam for g in self._grown(each)}
            ranked = sorted(grown.values(), key=lambda each: -each.worth)
            dense = (each for each in ranked if each.lift >= SUGGESTED_LIFT)
            best = max(best, next(dense, best), key=lambda each: each.worth)
            beam = [each for each in ranked[:BEAM] if each.worth > top]
            if not beam:
                break
            top = beam[0].worth
        return best

    def _grown(self, start: Suggestion) -> Iterator[Suggestion]:
        """The suggestion with one more condition, on each other column."""
        rows = np.flatnonzero(meets_all(start.conditions, self.codes) & (self.weights > 0))
        flips, weights = self.flips[rows], self.weights[rows]
        taken = {each.column for each in start.conditions}
        for column in self.columns:
            if column.number not in taken:
                for proposal in column.proposals(rows, flips, weights):
                    yield self._valued((*start.conditions, proposal.condition), proposal)

    def _valued(self, conditions: tuple[Condition, ...], found: Proposal) -> Suggestion:
        """The conditions with their worth: the evidence for them, less what they cost."""
        kinds = math.log(LONGEST * math.comb(len(self.columns), len(conditions)))
        charge = kinds + sum(each.charge(self.schema) for each in conditions)
        worth = evidence(self.count, found.inside, found.share) - charge
        return Suggestion(conditions, charge, worth, found.inside / max(found.share, 1e-300))


ROWS = 20_000  # kept of a run
SUGGESTING = 2_000  # of them, at most
FEWEST = 20  # flips, half of which suggest
MORE_FLIPS = 3 * FEWEST  # wanted of a subject that takes whole batches
MORE_TIMES = 4  # as many rows as were sampled, at most
SPARE = 2  # times the rows that are expected to suffice, where calls are to be few
MORE_CELLS = 2**15
LEAST_LIFT = 1.5  # certainly; below, flips are everywhere
LEAST_COVERAGE = 0.1
MOST_LOSERS = 16  # assignments of a set that is told apart by who loses
NOBODY_KNOWS = -1  # who loses
DIRECTIONS = 2  # that are shown
MOST_UNKNOWN = 0.1  # rows that may be flips, for each that is one


# Rows from one number to another: their inputs, which flip, and who loses where that is known.
Run = Callable[[int, int], tuple[NDArray[Any], NDArray[np.int8], NDArray[np.int32] | None]]


@dataclass
class SeenRows:
    """The first rows of a run: their inputs, which of them flip, and who loses in them."""

    _codes: list[NDArray[Any]] = field(default_factory=list)
    _states: list[NDArray[np.int8]] = field(default_factory=list)
    _losing: list[NDArray[np.int32]] = field(default_factory=list)  # by assignment a bit
    count: int = 0

    def add(
        self,
        codes: NDArray[Any],
        states: NDArray[np.int8],
        losing: NDArray[np.int32] | None = None,
    ) -> None:
        """Keep these rows, as far as there is room."""
        room = ROWS - self.count
        if room > 0:
            losing = np.full(len(states), NOBODY_KNOWS, np.int32) if losing is None else losing
            self._codes.append(np.array(codes[:room], order="F"))  # a copy: blocks are let go
            self._states.append(states[:room].copy())
            self._losing.append(losing[:room].copy())
            self.count += len(self._states[-1])

    def table_of(self, loser: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inputs of the first rows that were run whole, and in which of them this one loses."""
        losing = np.concatenate(self._losing)
        unknown = np.flatnonzero(losing == NOBODY_KNOWS)
        end = int(unknown[0]) if len(unknown) else len(losing)
        return np.concatenate(self._codes)[:end], (losing[:end] >> loser) & 1 == 1

    def look_further(self, runner: Runner, run: Run, *, width: int, limit: int) -> None:
        """Run further rows where there are flips, but few, and a subject takes whole batches.

        They explain the score and are no part of it.
        """
        if runner.traits.external or not runner.traits.vectorised or not self.flips:
            return
        sampled = self.count
        cells = int(min(MORE_CELLS, runner.executions_left // LEFT_SHARE))
        last = min(sampled + min(cells // width, MORE_TIMES * sampled), limit, ROWS)
        with runner.apart():
            while self.count < last and self.flips < MORE_FLIPS and not runner.out_of_time:
                step = sampled
                if runner.saves_calls:  # so many that enough of them may flip
                    step = SPARE * self.count * (MORE_FLIPS - self.flips) // self.flips
                self.add(*run(self.count, min(self.count + step, last)))

    @property
    def flips(self) -> int:
        """How many of them flip."""
        return sum(int((each == FLIP).sum()) for each in self._states)

    def table(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inputs of which it is known, and whether they flip; none if that is too few."""
        states = np.concatenate(self._states)
        known = states != UNKNOWN
        if int((~known).sum()) > MOST_UNKNOWN * self.flips:
            known[:] = False
        return np.concatenate(self._codes)[known], (states == FLIP)[known]


def losing_bits(cells: Cells, reading: Reading) -> NDArray[np.int32] | None:
    """By row a bit for each assignment that loses there: another one gets the favourable output.

    None where there are too many assignments, or nothing is favourable. Rows must have been run
    whole; one that failed in part tells nothing.
    """
    width = cells.shape[1]
    if width > MOST_LOSERS or not reading.has_favourable:
        return None
    good = np.asarray(reading.labels.is_favourable(cells))
    loses = (cells >= 0) & ~good & good.any(axis=1, keepdims=True)
    bits: NDArray[np.int32] = (loses * (1 << np.arange(width))).sum(axis=1).astype(np.int32)
    bits[((cells == FAILED) | (cells == NOT_RUN)).any(axis=1)] = NOBODY_KNOWS
    return bits


def directed(
    losers: Sequence[int],
    labels: Callable[[int], dict[str, Value]],
    find: Callable[[int, float], tuple[Region, ...]],
    confidence: float,
) -> tuple[Region, ...]:
    """The regions of each direction: those in which one loses, for the first two that do.

    `find` gets a loser and the confidence of its part; all parts hold together.
    """
    shown = losers[:DIRECTIONS]
    own = 1.0 - (1.0 - confidence) / max(len(shown), 1)
    return tuple(
        replace(region, loses=labels(loser)) for loser in shown for region in find(loser, own)
    )


def sampled_regions(
    seen: SeenRows,
    schema: Schema,
    against: Sequence[int],
    confidence: float,
    *,
    fresh: NDArray[Any] | None = None,
    finite: bool = False,
    loser: int | None = None,
) -> tuple[Region, ...]:
    """The regions that rows of a sample show; their coverages hold together with the confidence.

    A region whose flips are no more frequent than elsewhere is shown with a chance of at most
    1 − confidence. `fresh` are further inputs, not run, that tell how many people a region has.
    With `finite` the rows were drawn without replacement. With a `loser` the flips are those in
    which this assignment loses.
    """
    codes, flips = seen.table() if loser is None else seen.table_of(loser)
    if int(flips.sum()) < FEWEST:
        return ()
    first = np.arange(0, len(codes), 2)[:SUGGESTING]
    second = np.delete(np.arange(len(codes)), first)
    found = suggest_regions(codes[first], flips[first], None, schema, against)
    alpha = (1.0 - confidence) / max(len(found), 1)
    people = codes[second] if fresh is None or len(fresh) < len(codes) else fresh
    regions = []
    for conditions in (each.conditions for each in found):
        inside = meets_all(conditions, codes[second])[flips[second]]
        low, high = clopper_pearson(int(inside.sum()), len(inside), alpha / 2)
        if finite:
            seen_before = meets_all(conditions, codes[first])[flips[first]]
            low, high = _with_those_before(low, high, seen_before, len(inside))
        residents = meets_all(conditions, people)
        least, most = clopper_pearson(int(residents.sum()), len(residents), alpha / 2)
        if low >= LEAST_LIFT * most and inside.mean() >= LEAST_COVERAGE:
            region = _region(conditions, schema, inside, (low, high), residents)
            regions.append(replace(region, share_low=least, share_high=most))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def known_regions(
    codes: NDArray[Any],
    flips: NDArray[np.bool_],
    weights: Floats,
    schema: Schema,
    against: Sequence[int],
    confidence: float,
    *,
    order: NDArray[np.int64],
) -> tuple[Region, ...]:
    """The regions of a population that is known whole: each context with its weight.

    Nothing is estimated, so ends and coverage are the same. A region is shown where flips put at
    random would hardly ever (1 − confidence) lie as close together in any such region. `order` is
    a random order of the contexts: of very many, the first ones suggest.
    """
    part = order[: 2 * SUGGESTING]
    found = suggest_regions(codes[part], flips[part], weights[part], schema, against)
    total, all_flips = float(weights.sum()), float(weights[flips].sum())
    regions, left, charge = [], np.ones(len(codes), dtype=bool), -math.log(1.0 - confidence)
    for each in found:
        inside = meets_all(each.conditions, codes)
        charge += each.charge
        own, rest = int((flips & left).sum()), inside & left
        certain = evidence(own, int((flips & rest).sum()) / max(own, 1), rest.sum() / left.sum())
        coverage = float(weights[inside & flips].sum()) / all_flips
        share = float(weights[inside].sum()) / total
        left &= ~inside
        if certain >= charge and coverage >= max(LEAST_COVERAGE, LEAST_LIFT * share):
            ends = (round(coverage, 12), round(coverage, 12))
            region = _region(each.conditions, schema, inside[flips], ends, inside)
            lift = coverage / share if share else math.inf
            regions.append(replace(region, coverage=coverage, share=share, lift=lift))
    return tuple(sorted(regions, key=lambda each: -each.coverage))


def _with_those_before(
    low: float, high: float, before: NDArray[np.bool_], others: int
) -> tuple[float, float]:
    """Ends for all flips of a finite population, of which some suggested the region.

    Those are at most this share of all flips, and what holds for the others is between the ends.
    """
    most = len(before) / (len(before) + others)
    known = float(before.mean())
    return min(low, most * known + (1 - most) * low), max(high, most * known + (1 - most) * high)


def _region(
    conditions: Sequence[Condition],
    schema: Schema,
    inside: NDArray[np.bool_],
    ends: tuple[float, float],
    residents: NDArray[np.bool_],
) -> Region:
    covered, share = float(inside.mean()), float(residents.mean())
    by_column = sorted(conditions, key=lambda each: each.column)
    return Region(
        conditions=tuple(each.text(schema) for each in by_column),
        coverage=covered,
        coverage_low=ends[0],
        coverage_high=ends[1],
        share=share,
        lift=covered / share if share else math.inf,
        flips=len(inside),
        inside=int(inside.sum()),
        inputs=len(residents),
        residents=int(residents.sum()),
    )
