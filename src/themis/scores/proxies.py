"""Proxies: characteristics that may stand in for a set, among given people.

One goes with the set as far as its values tell the set's groups (`association`), and it matters as
far as decisions change when it alone is changed. For each of its values in turn everybody is given
that value, and the groups' rates are compared again. Nobody is given a combination that constraints
forbid, or a value in place of a missing one: such people are left out, counted, and the others are
compared with themselves as they are.

Of more than MOST values, so many are tried: of numbers those of the people at 5 %, 15 %, … 95 % of
the rows in their order, be they between the steps; of others the most frequent that the schema has.

Redrawn, each person gets one of these values by chance, as often as the people have them. That is
averaged, not drawn: a group's rate is the mean of its rates with each value, and its ends are the
means of their ends, which hold for whatever shares, since the ends of all values hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import Characteristic
from themis.inputs.following import follow
from themis.inputs.keys import summed
from themis.inputs.schema import Schema
from themis.results.outcomes import Proxy, Setting
from themis.scores.people import PeopleRun
from themis.scores.privacy import PeopleGroups
from themis.statistics.intervals import Flags, Floats
from themis.statistics.proportions import Interval, association, sampled_rate, spread_of
from themis.subjects.decisions import NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import Reading

MOST = 10  # values of one characteristic that are tried

Rates = dict[int, Interval]  # of each group


def proxies_of(
    run: PeopleRun, reading: Reading, sets: Sequence[tuple[int, ...]], confidence: float
) -> Iterator[Proxy]:
    """Every characteristic that is neither protected nor in a set, beside each set.

    The people must have been run. Raises BudgetEndedError where the budget ends.
    """
    schema = run.people.schema
    others = candidates(schema, sets)
    groups = [PeopleGroups.of(run, columns) for columns in sets]
    free = [schema.characteristics[column] for column in others]
    possible = sum(each.size + each.numeric * len(each.extra) for each in free)
    rates = sum(len(each.labels) for each in groups) * (1 + possible)  # any might have been tried
    sampled = confidence if run.people.are_counted else None
    alpha = (1.0 - sampled) / rates if sampled is not None and rates else None
    for column in others:
        table = _Table.of(run, reading, column)
        for each in groups:
            yield _Beside(run, reading, each, table, sampled, alpha).proxy()


def candidates(schema: Schema, sets: Iterable[tuple[int, ...]]) -> list[int]:
    """The columns that may stand in for sets: given, free, not protected, and in none of them."""
    taken = {column for each in sets for column in each} | schema.unread
    taken |= {schema.column_by_name[name] for name in schema.protected}
    return [column for column in schema.free if column not in taken]


def ranked(proxies: Iterable[Proxy]) -> tuple[Proxy, ...]:
    """Those of each set together, the strongest first."""
    given = list(proxies)
    sets = list(dict.fromkeys(each.against for each in given))
    return tuple(sorted(given, key=lambda each: (sets.index(each.against), -each.strength)))


def tried_values(
    characteristic: Characteristic, codes: NDArray[Any], weights: Floats
) -> dict[int, float]:
    """The codes of the values that everybody is given in turn, and how often people have each."""
    chances, size = characteristic.value_weights, characteristic.size
    if size <= MOST:
        totals = summed(np.minimum(codes, size).astype(np.int64), weights, size + 1)
        return {c: float(totals[c]) for c in range(size) if chances is None or chances[c] > 0}
    shared = _is_shared(characteristic, codes)
    own, totals = _totals(codes[shared], weights[shared])
    if not characteristic.numeric:
        common = np.sort(np.argsort(-totals, kind="stable")[:MOST])
        return dict(zip(own[common].tolist(), totals[common].tolist(), strict=True))
    steps = _at(characteristic, own, totals, (np.arange(MOST) + 0.5) / MOST)
    return {code: float(steps.count(code)) for code in steps}


def levels_of(
    characteristic: Characteristic, codes: NDArray[Any], weights: Floats
) -> NDArray[np.int64]:
    """A number for each person's value; of many values, for a range or for all rare ones."""
    own, totals = _totals(codes, weights)
    if len(own) <= MOST:
        return np.searchsorted(own, codes)
    shared = _is_shared(characteristic, codes)
    if characteristic.numeric and shared.any():
        parts = _totals(codes[shared], weights[shared])
        cuts = list(dict.fromkeys(_at(characteristic, *parts, np.arange(1, MOST) / MOST)))
        numbers = characteristic.column(np.append(codes[shared], cuts)).astype(float)
        levels = np.full(len(codes), MOST)  # what is missing
        levels[shared] = np.searchsorted(np.sort(numbers[shared.sum() :]), numbers[: shared.sum()])
        return levels
    common = np.sort(own[np.argsort(-totals, kind="stable")[: MOST - 1]])
    return np.where(np.isin(codes, common), np.searchsorted(common, codes), MOST)


def _is_shared(characteristic: Characteristic, codes: NDArray[Any]) -> Flags:
    """Which values may be anybody's: none that is missing, and no text that only rows have."""
    beyond = characteristic.first_extra if characteristic.numeric else characteristic.code_count
    return (codes < characteristic.size) | (codes >= beyond)


def _totals(codes: NDArray[Any], weights: Floats) -> tuple[NDArray[Any], Floats]:
    own, places = np.unique(codes, return_inverse=True)
    return own, summed(places, weights, len(own))


def _at(
    characteristic: Characteristic, codes: NDArray[Any], totals: Floats, shares: Floats
) -> list[int]:
    """The codes of the people at these shares of all of them, in the order of their numbers."""
    order = np.argsort(characteristic.column(codes).astype(float), kind="stable")
    reached = np.cumsum(totals[order]) / totals.sum()
    places = np.minimum(np.searchsorted(reached, shares - 1e-12), len(order) - 1)
    return codes[order][places].tolist() if len(codes) else []


# What everybody gets ----------------------------------------------------------------------------
@dataclass(frozen=True)
class _Table:
    """The outputs of everybody with each value of one characteristic."""

    characteristic: Characteristic
    levels: NDArray[np.int64]  # of each person as they are
    values: dict[int, float]  # and how often people have them
    cells: list[Cells]  # of each value: everybody's output, NO_COUNTERFACTUAL where it is unreal

    @classmethod
    def of(cls, run: PeopleRun, reading: Reading, column: int) -> _Table:
        schema, codes = run.people.schema, run.codes
        characteristic = schema.characteristics[column]
        values = tried_values(characteristic, codes[:, column], run.weights)
        assignments = Assignments(schema, (column,))
        cells = []
        for place, value in enumerate(values):
            cells.append(reading.cells(_given(run, assignments, value)))
            run.tell(assignments, "causal", (place + 1) / len(values))
        levels = levels_of(characteristic, codes[:, column], run.weights)
        return cls(characteristic, levels, values, cells)


def _given(run: PeopleRun, assignments: Assignments, value: int) -> Cells:
    """Everybody's answer with one value of a characteristic, and with all that follows it."""
    codes = run.codes
    changed = np.array(codes, order="F")
    changed[:, assignments.columns[0]] = value
    follow(assignments.followed, codes, changed)
    real = assignments.schema.admits(codes, changed)
    answers = np.full(len(codes), NO_COUNTERFACTUAL, dtype=run.answers.dtype)
    answers[real] = run.outputs(changed[real])
    return answers


# Groups -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Beside:
    """A characteristic beside the groups of a set; without `alpha` nothing has ends."""

    run: PeopleRun
    reading: Reading
    groups: PeopleGroups
    table: _Table
    confidence: float | None
    alpha: float | None

    def proxy(self) -> Proxy:
        """What the characteristic tells, and what it changes."""
        run, table, own = self.run, self.table, self._own
        decided, apart = own >= 0, np.zeros(len(own))
        for cells in table.cells:
            apart = np.maximum(apart, self.reading.distances(own, cells))
        weight = run.weights[decided].sum()
        changed = round(float(apart @ run.weights / weight), 12) if weight else 0.0
        failed = any(((cells < 0) & (cells != NO_COUNTERFACTUAL)).any() for cells in table.cells)
        some = len(table.values) < table.characteristic.size
        return Proxy(
            against=self.groups.names,
            name=table.characteristic.name,
            association=self._association(),
            changed=changed,
            at_least=changed < 1 and (some or failed or not decided.all()),
            **self._ends(_spread(self._rates(self.groups.inside & decided, own))),
            confidence=self.confidence,
            possible=table.characteristic.size,
            settings=tuple(map(self._setting, table.values, table.cells)),
            redrawn=self._redrawn(),
            output=self.reading.details().get("output"),
        )

    @property
    def _own(self) -> Cells:
        return self.reading.cells(self.run.answers)

    def _setting(self, value: int, cells: Cells) -> Setting:
        """The groups where everybody has a value, of those who can have it."""
        real, chosen = self._chosen(cells)
        return Setting(
            value=self.table.characteristic.value(value),
            **self._compared(self._rates(chosen, cells), self._rates(chosen, self._own), chosen),
            rate=self._rate(chosen, cells),
            **self._people(real, chosen),
        )

    def _redrawn(self) -> Setting | None:
        """The same where each person's value is redrawn; None where a group can't have some."""
        table, shares = self.table, np.array(list(self.table.values.values()))
        total = shares.sum()
        drawn = [e for e, share in zip(table.cells, shares.tolist(), strict=True) if share]
        if not total:
            return None
        shares = shares[shares > 0] / total
        parts = [self._chosen(cells) for cells in drawn]
        chosen = [own for _, own in parts]
        now = [self._rates(own, cells) for own, cells in zip(chosen, drawn, strict=True)]
        before = [self._rates(own, self._own) for own in chosen]
        of_all = [self._rate(own, cells) for own, cells in zip(chosen, drawn, strict=True)]
        if any(set(each) != set(now[0]) for each in now) or None in of_all:
            return None
        return Setting(
            value=None,
            **self._compared(_mixed(now, shares), _mixed(before, shares), np.all(chosen, axis=0)),
            rate=round(float(shares @ np.array(of_all, dtype=float)), 12),
            **self._people(np.any([real for real, _ in parts], axis=0), np.any(chosen, axis=0)),
        )

    def _chosen(self, cells: Cells) -> tuple[Flags, Flags]:
        """Who is in a group and can have a value, and who of them has decisions to compare."""
        real = self.groups.inside & (cells != NO_COUNTERFACTUAL)
        return real, real & (cells >= 0) & (self._own >= 0)

    def _people(self, real: Flags, chosen: Flags) -> dict[str, int]:
        heads, inside = self.run.heads, self.groups.inside
        return {
            "people": int(heads[chosen].sum()),
            "unreal": int(heads[inside & ~real].sum()),
            "undecided": int(heads[real & ~chosen].sum()),
        }

    def _compared(self, now: Rates, before: Rates, chosen: Flags) -> dict[str, Any]:
        """How far groups are apart, and were before, and the people of the smaller extreme one."""
        spread, was = _spread(now), _spread(before)
        fewest = None
        if spread is not None:
            sizes = self.groups.total(self.run.heads * chosen)
            ends = (max(now, key=lambda g: now[g].score), min(now, key=lambda g: now[g].score))
            fewest = int(min(sizes[each] for each in ends))
        return {**self._ends(spread), "before": was and was.score, "fewest": fewest}

    def _rate(self, chosen: Flags, cells: Cells) -> float | None:
        """How many of these people get the favourable decision."""
        weights = self.run.weights * chosen
        good = weights[self.reading.labels.is_favourable(cells)].sum()
        return round(float(good / weights.sum()), 12) if weights.any() else None

    def _rates(self, chosen: Flags, cells: Cells) -> Rates:
        """The rate of each group that has any of these people."""
        favourable, total = self.reading.labels.is_favourable(cells), self.groups.total
        heads, weights = self.run.heads * chosen, self.run.weights * chosen
        good = total(heads * favourable), total(weights * favourable)
        rates = {}
        each = zip(total(heads), total(weights), *good, strict=True)
        for group, (of, weight, few, some) in enumerate(each):
            if weight and self.alpha is not None:
                rates[group] = sampled_rate(few, of, self.alpha)
            elif weight:
                rates[group] = Interval(some / weight, some / weight, some / weight)
        return rates

    def _ends(self, spread: Interval | None) -> dict[str, Any]:
        """How far groups are apart, as a result has it; with ends where there are some."""
        if spread is None or self.alpha is None:
            return {"difference": spread and spread.score, "low": None, "high": None}
        return {"difference": spread.score, "low": spread.low, "high": spread.high}

    def _association(self) -> float:
        run, groups, table = self.run, self.groups, self.table
        weights = run.heads
        if not run.people.are_counted:
            weights = run.weights * (run.counts.sum() / run.weights.sum())
        columns = int(table.levels.max()) + 1
        cells, count = groups.own * columns + table.levels[groups.inside], len(groups.labels)
        counts = summed(cells, weights[groups.inside], count * columns)
        return round(association(counts.reshape(count, columns)), 12)


def _spread(rates: Rates) -> Interval | None:
    """How far rates are apart; None for fewer than two."""
    return spread_of([*rates.values()]) if len(rates) > 1 else None


def _mixed(parts: Sequence[Rates], shares: Floats) -> Rates:
    """The mean rate of each group, with the means of the ends: wherever those hold, these do."""
    means = {
        group: shares @ np.array([[own.score, own.low, own.high] for own in each])
        for group, each in ((group, [part[group] for part in parts]) for group in parts[0])
    }
    return {group: Interval(*each.tolist()) for group, each in means.items()}
