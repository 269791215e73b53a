"""Forecasts: what scores, searches and looking for noise will cost, from a few rows of each set.

How many rows a score takes depends on how often decisions change and on how groups differ, which a
few first rows tell roughly. What one set ran the next does not run again. `FACTOR` says how far off
a forecast may be; a test holds it against what several subjects then took.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import COARSE_CELLS, Sampler
from themis.engine.variants import MOST_WHOLE, Variants, own_columns
from themis.events import Forecast, Part
from themis.inputs.assignments import Assignments
from themis.results.model import Measure
from themis.scores.excess import MOST_SEARCHED
from themis.scores.group import favourable_ends, shares_contexts
from themis.scores.noise import SHARE
from themis.scores.reruns import SHARE_LEFT
from themis.scores.scorer import EXACT_LIMIT, EXPENSIVE_WIDTH
from themis.search.lattice import largest_size
from themis.settings import Settings, Stopping
from themis.statistics.excess import FEWEST_TIMES, fitting_times
from themis.statistics.groups import GroupRule
from themis.statistics.numbers import FEW as FEW_NUMBERS
from themis.statistics.proportions import ProportionRule
from themis.statistics.reruns import (
    RERUNS_SHARE,
    interval_confidence,
    reruns_for,
)
from themis.subjects.decisions import NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import FLIP

PILOT = 40  # rows that tell how often decisions change
WIDEST = 64  # sets with more assignments are not tried
SPREAD = 3.0  # rows of a group score for each unit of log evidence, variance and 1 / error²
SEARCH_SHARE = 0.3  # of what the scores cost, if there is something to find; as measured
# Where few calls are wanted, as measured: of a score, to look for noise, and to explain a finding
# and run it again.
CALLS, LOOKS, FINDING_CALLS = 2, 3, 5
OWN_SECONDS = 1e-5  # that an execution takes beside the subject
CALL_SECONDS = 1e-2  # the same of a large call
MOST_SETS = 1_000  # that are looked at one by one
LARGE = 3  # sets of so many characteristics are not among the scores


@dataclass(frozen=True)
class _Seen:
    """What the first rows of a set show."""

    flips: float  # share of rows in which decisions differ, or how far they do on average
    density: float = field(default=1.0, kw_only=True)  # share of the variants that exist
    variance: float  # of the difference between the extreme groups
    apart: float  # how far these are apart, less what chance may do
    degrees: float | None = field(default=None, kw_only=True)  # the variance of how far they do

    @property
    def changes(self) -> bool:
        """Whether some decisions were seen to change."""
        return self.flips > 1 / PILOT


@dataclass
class Forecaster:
    """Adds up what sets cost one after the other, in one run."""

    sampler: Sampler
    settings: Settings
    rows: int = PILOT
    _covered: dict[frozenset[int], int] = field(default_factory=dict)  # rows, by what is changed
    _seen: dict[tuple[int, ...], _Seen] = field(default_factory=dict)
    _whole: bool = False  # every input will have been run
    _exact: set[tuple[tuple[int, ...], Measure]] = field(default_factory=set)  # of given people
    _started: float = field(default_factory=time.monotonic)

    def forecast(
        self,
        scores: Iterable[tuple[tuple[int, ...], Measure]],
        among: Sequence[int] = (),
        max_size: int | None = None,
        threshold: float = 0.0,
    ) -> Forecast:
        """What these scores cost in this order, then a search among columns, and noise."""
        asked = list(scores)
        for columns in dict.fromkeys(columns for columns, _ in asked):
            self._seen[columns] = self._try(columns)
        costs: dict[tuple[int, ...], int] = {}
        exact: set[tuple[int, ...]] = set()
        left, sampled = self._all_inputs(), 0
        for columns, measure in asked:
            cost = self._cost(columns, measure)
            if measure != "excess":  # which asks again what was run
                cost = min(cost, left)
                left -= cost
            costs[columns] = costs.get(columns, 0) + cost
            sampled += 0 if (columns, measure) in self._exact else cost
            of_set = ((each, one) for each, one in asked if each == columns)
            if self._whole or self._exact.issuperset(of_set):
                exact.add(columns)
        names = self.sampler.runner.schema.names
        parts = tuple(Part(",".join(names[c] for c in columns), self._with_runs(cost),
                           columns in exact) for columns, cost in costs.items())  # fmt: skip
        scored = sum(costs.values())
        found = self._search(sampled, among, max_size, threshold)
        if any(measure == "group" for _, measure in asked):
            found += self._search_apart(among, max_size)
        searched = min(found, left)
        if any(measure == "excess" for _, measure in asked):
            searched += self._search_again(among, max_size)
        noise = self._noise(scored + searched, asked, found > 0)
        search, again = self._with_runs(searched), self._with_runs(noise)
        total = sum(part.executions for part in parts) + search + again
        steps = len(asked) + bool(among)
        effort = self._effort(total, steps)
        tokens, spend = self.sampler.runner.foresee(total)
        return Forecast(
            parts, total, *effort, steps, len(among), search, again,
            tokens=tokens.total, spend=spend, guessed=tokens.estimated > 0,
        )  # fmt: skip

    def _effort(self, executions: int, steps: int) -> tuple[int, float | None]:
        """How many calls so many executions are, and how long they take, as far as was seen."""
        runner = self.sampler.runner
        spent = runner.account
        if not spent.calls or not spent.executions:
            return executions, None
        elapsed, seconds = time.monotonic() - self._started, runner.seconds_per_execution or 0.0
        if runner.saves_calls:
            found = sum(each.changes for each in self._seen.values())
            calls = CALLS * steps + LOOKS + FINDING_CALLS * found
            calls += round(executions / runner.longest_call)
            each, own = runner.pace.calls.seconds_each, runner.pace.calls.seconds_alone
            return calls, elapsed + calls * (own + CALL_SECONDS) + executions * each
        calls = max(round(executions * spent.calls / spent.executions), 1)
        return calls, elapsed + executions * (seconds + OWN_SECONDS)

    def _with_runs(self, executions: int) -> int:
        """Each output takes a majority of the runs at the least: three quarters of them."""
        runs = self.sampler.runner.runs
        return executions if runs == 1 else round(0.75 * runs * executions)

    # --- one score -------------------------------------------------------------------------

    def _cost(self, columns: tuple[int, ...], measure: Measure) -> int:
        """New executions of one score; what it runs is covered from then on."""
        assignments = self.sampler.assignments(columns)
        unread = self.sampler.runner.schema.unread
        if measure != "group" and unread.issuperset(columns):  # 0 by construction
            self._exact.add((columns, measure))
            return 0
        if measure == "excess":
            return self._again(columns, columns)
        if self._whole:
            return 0
        if self._is_exact(assignments):
            self._whole = True
            return self._size()
        if self._is_exact_of_people(assignments, measure):
            self._exact.add((columns, measure))
            changed = columns if measure == "causal" else ()
            return round(self._cover(changed, self._size()))
        if measure == "group" and not shares_contexts(self.sampler, assignments):
            return self._rows_of(columns, measure) * self._width(assignments)
        rows = self._rows_of(columns, measure)
        return round(self._cover(columns, rows))

    def _again(self, columns: tuple[int, ...], like: tuple[int, ...]) -> int:
        """What the excess of a set takes whose decisions change as those of another one.

        With two answers to each input its variance is about as large as they change often; twice
        as many take half as many executions.
        """
        flips = self._seen[like].flips
        rows = self._rows_of_means(min(flips, 0.25), math.sqrt(2) * self.settings.error)
        asked = FEWEST_TIMES**2 * rows / fitting_times(flips)
        return round(asked * self.sampler.assignments(columns).count)

    def _size(self) -> int:
        return self.sampler.population.size or 0

    def _all_inputs(self) -> int:
        """More than all inputs are not run where what was run is remembered.

        Of a profile's people variants are run that are nobody's own.
        """
        runner, population = self.sampler.runner, self.sampler.population
        if not runner.remembers:
            return sys.maxsize
        valid = None if population.profile else population.size
        return runner.schema.size if valid is None else valid

    def _is_exact(self, assignments: Assignments) -> bool:
        """Whether everything is run, because sampling might cost as much."""
        population, width = self.sampler.population, assignments.count
        if self.settings.stopping is Stopping.PAPER or population.size is None:
            return False
        if population.profile:
            return False
        if not self.sampler.runner.traits.vectorised:
            width = min(width, EXPENSIVE_WIDTH)
        most = math.inf if self.settings.exact else min(self._rule.max_samples * width, EXACT_LIMIT)
        return population.size <= min(most, self.sampler.runner.executions_left)

    def _is_exact_of_people(self, assignments: Assignments, measure: Measure) -> bool:
        """Whether all people of a profile are run, because sampling might cost as much."""
        population, settings = self.sampler.population, self.settings
        if not population.profile or settings.stopping is not Stopping.CERTIFIED:
            return False
        width, people = self._width(assignments), self._size()
        fits = assignments.count <= settings.max_assignments and not assignments.binned
        if measure == "causal" and not fits:
            return False
        most = math.inf if settings.exact else self._rule.max_samples
        if measure == "causal":
            return people <= most and people * width <= self.sampler.runner.executions_left
        return people <= min(most * width, self.sampler.runner.executions_left)

    def _rows_of(self, columns: tuple[int, ...], measure: Measure) -> int:
        rows = self._causal_rows(columns) if measure == "causal" else self._group_rows(columns)
        return min(rows, self._size()) if self.sampler.population.profile else rows

    def _cover(self, columns: tuple[int, ...], rows: int) -> float:
        """The cells of these rows that no set before ran: by which columns are changed."""
        schema, new = self.sampler.runner.schema, 0.0
        density = self._seen[columns].density if columns in self._seen else 1.0
        changes = chain.from_iterable(combinations(columns, n) for n in range(len(columns) + 1))
        for changed in map(frozenset, changes):
            levels = math.prod(schema.characteristics[c].possible_count - 1 for c in changed)
            levels = min(levels, self.settings.max_assignments)
            known = self._covered.get(changed, 0)
            new += levels * max(rows - known, 0) * (density if changed else 1.0)
            self._covered[changed] = max(rows, known)
        return new

    def _width(self, assignments: Assignments) -> int:
        return min(assignments.count, self.settings.max_assignments)

    @property
    def _rule(self) -> ProportionRule:
        return ProportionRule(self.settings.confidence, self.settings.error)

    def _causal_rows(self, columns: tuple[int, ...]) -> int:
        flips, rule, degrees = self._seen[columns].flips, self._rule, self._seen[columns].degrees
        if degrees is not None:
            return self._rows_of_means(degrees, self.settings.error)
        coarse = 0
        if self.sampler.runner.saves_calls:
            width = min(self._width(self.sampler.assignments(columns)), MOST_WHOLE)
            coarse = COARSE_CELLS // width
        looks = rule.looks(coarse)
        return next((n for n in looks if rule.done(round(flips * n), n)), rule.max_samples)

    def _group_rows(self, columns: tuple[int, ...]) -> int:
        """As many as make the interval of a difference narrow enough; its variance tells.

        Where the lower end is 0 the upper one may be twice the error: the middle of the two, unless
        the groups are seen to be apart.
        """
        seen, error = self._seen[columns], self.settings.error
        reach = error if seen.apart > error else math.sqrt(2) * error
        return self._rows_of_means(seen.variance, reach)

    def _rows_of_means(self, variance: float, reach: float) -> int:
        error = self.settings.error
        rule = GroupRule(1.0 - interval_confidence(self.settings.confidence), error)
        evidence = math.log(rule.evidence)
        return round(evidence / (2 * error) + SPREAD * evidence * variance / reach**2)

    # --- the first rows --------------------------------------------------------------------

    def _try(self, columns: tuple[int, ...]) -> _Seen:
        """What a few whole rows of a set show; where they are too many, what its parts show."""
        sampler = self.sampler
        assignments = sampler.assignments(columns)
        rows = int(min(self.rows, sampler.runner.executions_left // (4 * assignments.count)))
        if self._is_exact(assignments) or assignments.count > WIDEST or rows < 2:
            parts = [self._seen[part] for part in self._seen if set(part) < set(columns)]
            largest = max(parts, key=lambda each: each.flips, default=None)
            return largest or _Seen(flips=0.2, variance=0.2, apart=0.0)
        variants = Variants.of(assignments, limit=self.settings.max_assignments, base=sampler.base)
        tried, cells = sampler.tables.fill(variants, 0, rows, reading=sampler.reading)
        own = own_columns(variants, tried) if sampler.reading.graded else None
        degrees = None
        changed = np.asarray(sampler.reading.settled_states(cells, own) == FLIP, dtype=float)
        if own is not None and sampler.reading.averages:
            changed = sampler.reading.row_distances(cells, own)
            degrees = float(changed.var()) if ((changed > 0) & (changed < 1)).any() else None
        flips = (float(changed.sum()) + 0.5) / (rows + 1.0)
        low, high = self._outcomes(cells)
        usual = (cells >= 0).mean(axis=0) > 0.5  # not what only inputs without a value have
        known = (cells >= 0)[:, usual].all(axis=1) if usual.any() else usual[:0]
        density = float((cells != NO_COUNTERFACTUAL).mean())
        if not known.any():
            return _Seen(flips, 0.2, 0.0, density=density, degrees=degrees)
        good = ((np.asarray(low, dtype=float) + np.asarray(high, dtype=float)) / 2)[known][:, usual]
        found = self._spread(good, flips, shares=shares_contexts(sampler, assignments))
        return replace(found, density=density, degrees=degrees)

    def _outcomes(self, cells: Cells) -> tuple[NDArray[Any], NDArray[Any]]:
        """What a score would count of the first rows: numbers, or 0 and 1."""
        sampler = self._of_groups
        if cells.shape[1] <= FEW_NUMBERS:
            return sampler.reading.share_ends(cells)
        return favourable_ends(sampler, cells, 0, len(cells))

    @property
    def _of_groups(self) -> Sampler:
        """The run as group scores see it: by means where there are some."""
        reading = self.sampler.reading
        if reading.output is None or not reading.output.statistics:
            return self.sampler
        return self.sampler.reading_as(replace(reading, statistic=reading.output.statistics[0]))

    def _spread(self, good: NDArray[np.float64], flips: float, *, shares: bool) -> _Seen:
        """The variance between the extreme groups: in common contexts, or of separate draws."""
        rates = good.mean(axis=0)
        best, worst = int(rates.argmax()), int(rates.argmin())
        variance = float((good[:, best] - good[:, worst]).var())
        if not shares:
            variance = float(good[:, best].var() + good[:, worst].var())
        variance = max(variance, 0.5 / len(good))
        apart = float(rates[best] - rates[worst]) - 2 * math.sqrt(variance / len(good))
        return _Seen(flips, variance, max(apart, 0.0))

    # --- beside the scores -----------------------------------------------------------------

    def _search(
        self, scores: int, among: Sequence[int], max_size: int | None, threshold: float
    ) -> int:
        """Of sets that are no scores the cells that deciding takes; of findings, a share.

        What exact scores of people decide is not run again.
        """
        if self._whole or not among:
            return 0
        flips = max((each.flips for each in self._seen.values()), default=0.0)
        cells = 0.0
        if flips < threshold:  # else most of them contain a set that was found
            rows = self._rule.first_look
            rows = min(rows, self._size()) if self.sampler.population.profile else rows
            cells = sum(self._cover(each, rows) for each in _larger(among, max_size))
        found = flips > max(threshold - self.settings.error, 1 / PILOT)
        return round(cells + SEARCH_SHARE * scores * found)

    def _search_apart(self, among: Sequence[int], max_size: int | None) -> int:
        """What it takes to decide sets by groups that share no contexts: each is drawn by itself.

        Their groups are taken to differ as much as those of the nearest set that has a score.
        """
        population = self.sampler.population
        if self._whole or population.profile or not population.schema.constraints:
            return 0
        cells = 0
        for each in _larger(among, max_size):
            assignments = self.sampler.assignments(each)
            if not shares_contexts(self.sampler, assignments):
                cells += self._group_rows(self._nearest(each)) * self._width(assignments)
        return cells

    def _search_again(self, among: Sequence[int], max_size: int | None) -> int:
        """What it takes to decide by their excess sets that have no score."""
        cost = 0
        for each in _larger(among, max_size):
            if self.sampler.assignments(each).count <= MOST_SEARCHED:
                cost += self._again(each, self._nearest(each))
        return cost

    def _nearest(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """The set with a score that has most of these columns."""
        return max(self._seen, key=lambda known: len(set(known) & set(columns)))

    def _noise(
        self, sampling: int, asked: Sequence[tuple[tuple[int, ...], Measure]], searched: bool
    ) -> int:
        """A share of all executions is made again, and so is what each finding rests on."""
        asked = [each for each in asked if each[1] != "excess"]  # nothing of it is run again
        if not self.settings.looks_for_noise or not asked:
            return 0
        alpha = RERUNS_SHARE * (1.0 - self.settings.confidence) / 2
        again = self.settings.probe if self.settings.probe is not None else sampling // SHARE
        found = sum(self._seen[columns].changes for columns, _ in asked)
        return again + 2 * found * reruns_for(SHARE_LEFT, alpha) * (1 + searched)


def _larger(among: Sequence[int], max_size: int | None) -> Iterator[tuple[int, ...]]:
    """The first of the sets of these columns that are no scores."""
    size = largest_size(max_size, len(among))
    larger = chain.from_iterable(combinations(among, n) for n in range(LARGE, size + 1))
    return islice(larger, MOST_SETS)
