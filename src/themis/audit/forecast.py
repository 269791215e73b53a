"""Forecasts: what scores, searches and looking for noise will cost, from a few rows of each set.

How many rows a score takes depends on how often decisions change and on how groups differ, which a
few first rows tell roughly. What one set ran the next does not run again. `FACTOR` says how far off
a forecast may be; a test holds it against what several subjects then took.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import COARSE_CELLS, Sampler
from themis.engine.variants import MOST_WHOLE, Variants, own_columns
from themis.inputs.assignments import Assignments
from themis.results.model import Measure
from themis.scores.explanations.regions import MORE_CELLS, MORE_FLIPS, MORE_TIMES, SPARE
from themis.scores.group import favourable_ends, shares_contexts
from themis.scores.noise import SHARE
from themis.scores.reruns import GROUP_MOST, SHARE_LEFT
from themis.scores.scorer import EXACT_LIMIT, EXPENSIVE_WIDTH
from themis.settings import Settings, Stopping
from themis.statistics.numbers import FEW as FEW_NUMBERS
from themis.statistics.proportions import ProportionRule
from themis.statistics.reruns import (
    RERUNS_SHARE,
    exact_reruns,
    interval_confidence,
    reruns_for,
)
from themis.statistics.spreads import GroupRule
from themis.subjects.decisions import NO_COUNTERFACTUAL, Cells
from themis.subjects.readings import FLIP

FACTOR = 3  # a forecast is within this factor of what is spent then
PLAIN = 300  # executions that make pairs plain, about
PILOT = 40  # rows that tell how often decisions change
WIDEST = 64  # sets with more assignments are not tried
SPREAD = 3.0  # rows of a group score for each unit of log evidence, variance and 1 / error²
SEARCH_SHARE = 0.3  # of what the scores cost, if there is something to find; as measured
# Where few calls are wanted, as measured: of a score, to look for noise, and to explain a finding
# and run it again.
CALLS, LOOKS, FINDING_CALLS = 2, 3, 5
OWN_SECONDS = 1e-4  # that an execution takes beside the subject
CALL_SECONDS = 1e-2  # the same of a large call
USUAL_SPREAD = 0.05  # of given people's rates, where a few of them do not tell
LEAST_ABOVE = 0.02  # by which the lower end of a sampled group score is above 0, if it is
MOST_SETS = 1_000  # that are looked at one by one
LARGE = 3  # sets of so many characteristics are not among the scores


@dataclass(frozen=True)
class Part:
    """What one set adds to the executions: of those before it, nothing is run again."""

    name: str
    executions: int
    exact: bool  # every input will be run


@dataclass(frozen=True)
class Forecast:
    """What a command will cost, give or take FACTOR."""

    parts: tuple[Part, ...]
    executions: int
    calls: int
    seconds: float | None  # None: nothing was run that tells
    scores: int
    among: int = 0  # so many characteristics are searched
    search: int = 0  # what the search adds to the executions
    again: int = 0  # what is run again, to look for noise
    explaining: int = 0  # what shows where decisions change, and makes pairs plain


@dataclass(frozen=True)
class _Seen:
    """What the first rows of a set show."""

    flips: float  # share of rows in which decisions differ
    density: float = field(default=1.0, kw_only=True)  # share of the variants that exist
    variance: float  # of the difference between the extreme groups
    apart: float  # how far these are apart, less what chance may do
    people: float = field(default=USUAL_SPREAD, kw_only=True)  # the same, of given people's groups

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
            cost = min(self._cost(columns, measure), left)
            left -= cost
            costs[columns] = costs.get(columns, 0) + cost
            sampled += 0 if (columns, measure) in self._exact else cost
            exact |= {columns} if self._whole else set()
        names = self.sampler.runner.schema.names
        parts = tuple(Part(",".join(names[c] for c in columns), self._with_runs(cost),
                           columns in exact) for columns, cost in costs.items())  # fmt: skip
        scored = sum(costs.values())
        found = self._search(sampled, among, max_size, threshold)
        if any(measure == "group" for _, measure in asked):
            found += self._search_apart(among, max_size)
        searched = min(found, left)
        noise = self._noise(scored + searched, asked, found > 0)
        search, again = self._with_runs(searched), self._with_runs(noise)
        explaining = self._with_runs(min(self._explaining(asked), left))
        total = sum(part.executions for part in parts) + search + again + explaining
        steps = len(asked) + bool(among)
        effort = self._effort(total, steps)
        return Forecast(parts, total, *effort, steps, len(among), search, again, explaining)

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
        if self._whole:
            return 0
        if self._is_exact(assignments):
            self._whole = True
            return self._size()
        if self._is_exact_of_people(assignments, measure):
            self._exact.add((columns, measure))
            changed = columns if measure == "causal" else ()
            return round(self._cover(changed, self._size(), self._saved(columns, measure)))
        if measure == "group" and not shares_contexts(self.sampler, assignments):
            return self._groups_apart(columns)
        rows = self._rows_of(columns, measure)
        return round(self._cover(columns, rows, self._saved(columns, measure)))

    def _groups_apart(self, columns: tuple[int, ...]) -> int:
        """Of groups that share no contexts; the people of a profile are run once each."""
        rows, width = self._group_rows(columns), self._width(self.sampler.assignments(columns))
        listed = self.sampler.population.listed
        if listed is None or not self.sampler.runner.remembers:
            return rows * width
        sizes = np.unique(listed[:, columns], axis=0, return_counts=True)[1]
        drawn = float(_distinct(rows, sizes).sum())
        known = self._covered.get(frozenset(), 0)
        new = round(drawn * (1 - known / len(listed)))
        self._covered[frozenset()] = known + new
        return new

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
        if not self.sampler.population.profile:
            return rows
        return round(float(_distinct(rows, np.array([self._size()]))[0]))

    def _saved(self, columns: tuple[int, ...], measure: Measure) -> float:
        """The part of a row that is left out since it flips early; small rows are run whole."""
        assignments = self.sampler.assignments(columns)
        if measure == "group" or self._width(assignments) <= 2 or self.sampler.runner.saves_calls:
            return 0.0
        return self._seen[columns].flips / 2

    def _cover(self, columns: tuple[int, ...], rows: int, saved: float) -> float:
        """The cells of these rows that no set before ran: by which columns are changed."""
        schema, new = self.sampler.runner.schema, 0.0
        density = self._seen[columns].density if columns in self._seen else 1.0
        changes = chain.from_iterable(combinations(columns, n) for n in range(len(columns) + 1))
        for changed in map(frozenset, changes):
            levels = math.prod(schema.characteristics[c].possible_count - 1 for c in changed)
            levels = min(levels, self.settings.max_assignments)
            known = self._covered.get(changed, 0)
            part = (1.0 - saved) * density if changed else 1.0
            new += levels * max(rows - known, 0) * part
            self._covered[changed] = max(rows, known)
        return new

    def _width(self, assignments: Assignments) -> int:
        return min(assignments.count, self.settings.max_assignments)

    @property
    def _rule(self) -> ProportionRule:
        return ProportionRule(self.settings.confidence, self.settings.error)

    def _causal_rows(self, columns: tuple[int, ...]) -> int:
        flips, rule = self._seen[columns].flips, self._rule
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
        rule = GroupRule(interval_confidence(self.settings.confidence), error)
        evidence = math.log(rule.evidence)
        reach = error if seen.apart > error else math.sqrt(2) * error
        return round(evidence / (2 * error) + SPREAD * evidence * seen.variance / reach**2)

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
        states = sampler.reading.row_states(cells, own, tried.tolerances)
        flips = (float((states == FLIP).sum()) + 0.5) / (rows + 1.0)
        low, high = self._outcomes(cells)
        usual = (cells >= 0).mean(axis=0) > 0.5  # not what only inputs without a value have
        known = (cells >= 0)[:, usual].all(axis=1) if usual.any() else usual[:0]
        density = float((cells != NO_COUNTERFACTUAL).mean())
        if not known.any():
            return _Seen(flips, 0.2, 0.0, density=density)
        good = ((np.asarray(low, dtype=float) + np.asarray(high, dtype=float)) / 2)[known][:, usual]
        found = self._spread(good, flips, shares=shares_contexts(sampler, assignments))
        return replace(found, density=density, people=self._apart_as_they_are(columns, rows))

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

    def _apart_as_they_are(self, columns: tuple[int, ...], rows: int) -> float:
        """How far the groups of the first people of a profile are apart, less what chance does."""
        sampler = self.sampler
        if not sampler.population.profile:
            return USUAL_SPREAD
        codes = sampler.base.rows(0, rows)
        cells = sampler.tables.known_outputs(codes, 0)
        listed = sampler.population.listed
        if listed is not None and len(listed) <= self.rows:  # all of them
            codes, cells = listed, sampler.runner.run(listed)
        cells = sampler.reading.cells(cells)
        good = np.asarray(self._of_groups.reading.share_ends(cells)[0], dtype=float)
        if good.min() == good.max():
            return 0.0  # then there is nothing to run again
        own = np.unique(codes[:, columns], axis=0, return_inverse=True)[1].ravel()
        sizes = np.bincount(own)
        rates = np.bincount(own, good) / sizes
        best, worst = int(rates.argmax()), int(rates.argmin())
        spread = float(rates[best] - rates[worst])
        if codes is listed:
            return spread
        chance = 2 * sum(0.25 / sizes[group] for group in (best, worst))  # they are the extremes
        return math.sqrt(max(spread**2 - chance, USUAL_SPREAD**2))

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
        size = min(max_size or len(among), len(among))
        larger = chain.from_iterable(combinations(among, n) for n in range(LARGE, size + 1))
        flips = max((each.flips for each in self._seen.values()), default=0.0)
        cells = 0.0
        if flips < threshold:  # else most of them contain a set that was found
            rows = self._rule.first_look
            rows = min(rows, self._size()) if self.sampler.population.profile else rows
            cells = sum(self._cover(each, rows, 0.0) for each in larger)
        found = flips > max(threshold - self.settings.error, 1 / PILOT)
        return round(cells + SEARCH_SHARE * scores * found)

    def _search_apart(self, among: Sequence[int], max_size: int | None) -> int:
        """What it takes to decide sets by groups that share no contexts: each is drawn by itself.

        Their groups are taken to differ as much as those of the nearest set that has a score.
        """
        population = self.sampler.population
        if self._whole or population.profile or not population.schema.constraints:
            return 0
        size, cells = min(max_size or len(among), len(among)), 0
        larger = chain.from_iterable(combinations(among, n) for n in range(LARGE, size + 1))
        for each in islice(larger, MOST_SETS):
            assignments = self.sampler.assignments(each)
            if not shares_contexts(self.sampler, assignments):
                nearest = max(self._seen, key=lambda known: len(set(known) & set(each)))
                cells += self._group_rows(nearest) * self._width(assignments)
        return cells

    def _explaining(self, asked: Sequence[tuple[tuple[int, ...], Measure]]) -> int:
        """What causal scores run to say where decisions change, of a subject that takes tables."""
        runner, found = self.sampler.runner, 0
        if self._whole or runner.traits.external or not runner.traits.vectorised:
            return 0
        for columns, measure in asked:
            seen, known = self._seen[columns], (columns, measure) in self._exact
            if measure == "causal" and seen.changes and not known:
                rows = self._rows_of(columns, "causal")
                width = self._width(self.sampler.assignments(columns))
                spare = SPARE if runner.saves_calls else 1
                more = spare * max(MORE_FLIPS / seen.flips - rows, 0.0)
                found += round(min(more, MORE_TIMES * rows, MORE_CELLS // width)) * width + PLAIN
        return found

    def _noise(
        self, sampling: int, asked: Sequence[tuple[tuple[int, ...], Measure]], searched: bool
    ) -> int:
        """A share of all executions is made again, and so is what each finding rests on."""
        if not self.settings.looks_for_noise:
            return 0
        alpha = RERUNS_SHARE * (1.0 - self.settings.confidence) / 2
        again = self.settings.probe if self.settings.probe is not None else sampling // SHARE
        pairs = 0
        for columns, measure in asked:
            if measure == "group" and self.sampler.population.profile:
                pairs += self._group_reruns(columns, alpha)
            elif self._seen[columns].changes:
                pairs += reruns_for(SHARE_LEFT, alpha) * (1 + searched)
        return again + 2 * pairs

    def _group_reruns(self, columns: tuple[int, ...], alpha: float) -> int:
        """Inputs of each extreme group of people: as far as their outputs are not averaged."""
        above, kept, people = self._seen[columns].people, 1.0, self._size()
        if not above:
            return 0
        if (columns, "group") not in self._exact:
            above = max(above - self.settings.error, LEAST_ABOVE)
            draws = self._group_rows(columns) * self._width(self.sampler.assignments(columns))
            repeated = 1.0 - float(_distinct(draws, np.array([people]))[0]) / draws
            kept = repeated if self.sampler.runner.remembers else 0.0
        return min(exact_reruns(above, alpha, kept), GROUP_MOST)


def _distinct(draws: int, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many different ones so many draws from each of these meet, as is to be expected."""
    return np.asarray(sizes * -np.expm1(-draws / sizes))
