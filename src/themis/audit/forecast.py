"""A whole audit, and what scores, searches and looking for noise will cost.

How many rows a score takes depends on how often decisions change and on how groups differ, which a
few first rows tell roughly. What one set ran the next does not run again. `FACTOR` says how far off
a forecast may be; a test holds it against what several subjects then took.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

import numpy as np

from themis.audit.apparatus import Apparatus, Columns, View, Views, Wanted
from themis.audit.precision import MEASURES, THRESHOLD, Family
from themis.audit.run import Sought, Work
from themis.engine.blocks import MOST_WHOLE
from themis.engine.sampler import COARSE_CELLS
from themis.engine.variants import Variants, own_columns
from themis.errors import RequestError
from themis.events import Forecast, Part, StepBegun
from themis.inputs.assignments import Assignments
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.scores.group import shares_contexts
from themis.scores.noise import SHARE
from themis.scores.reruns import SHARE_LEFT
from themis.settings import Settings
from themis.statistics.excess import FEWEST_TIMES, fitting_times
from themis.statistics.groups import GroupRule
from themis.statistics.proportions import ProportionRule
from themis.statistics.reruns import RERUNS_SHARE, interval_confidence, reruns_for
from themis.subjects.decisions import Cells
from themis.subjects.readings import FLIP

SUITE_INPUTS = 30_000  # of a domain that nobody asked to run, for each set: a megabyte


@dataclass(frozen=True)
class Everything:
    """What a whole audit measures."""

    sets: tuple[tuple[str, ...], ...]  # single characteristics, pairs, what else the file names
    among: tuple[str, ...]  # that the search makes sets of; none: there is no search
    threshold: float = THRESHOLD
    max_size: int | None = None
    measures: tuple[Measure, ...] = MEASURES

    @classmethod
    def of(
        cls,
        schema: Schema,
        named: Sequence[tuple[str, ...]],
        threshold: float = THRESHOLD,
        max_size: int | None = None,
        measures: Sequence[Measure] = MEASURES,
    ) -> Everything:
        """The protected characteristics and their pairs, and the sets that a file names."""
        free = {schema.names[column] for column in schema.free}
        protected = [name for name in schema.protected if name in free]
        sets = chain(combinations(protected, 1), combinations(protected, 2), named)
        distinct: dict[frozenset[str], tuple[str, ...]] = {}
        for each in sets:
            distinct.setdefault(frozenset(each), each)
        if not distinct:
            problem = "nothing is said to be protected, so there is nothing to audit"
            remedy = "write protected = true at a characteristic, or name sets in [run] against"
            raise RequestError.one("no-set", "inputs", problem, remedy)
        among = tuple(protected) if len(protected) > 1 else ()
        return cls(tuple(distinct.values()), among, threshold, max_size, tuple(measures))

    def family(self, settings: Settings, views: Views) -> Family:
        """All scores, the searches, and what those find: one statement."""
        measures = [measure for measure, _ in views.measured(self.measures)]
        scores = Family.of(settings, measures * len(self.sets))
        return scores.with_searches(views.searchable(self.measures)) if self.among else scores

    def wanted(self, apparatus: Apparatus) -> list[Wanted]:
        """Its scores."""
        return apparatus.views.wanted(map(apparatus.schema.columns_of, self.sets), self.measures)

    def forecast(self, apparatus: Apparatus, settings: Settings) -> Forecast:
        """What it will cost, after a few trials."""
        forecaster = Forecaster(apparatus.views.of(None), settings)
        among = self._columns(apparatus.schema)
        return forecaster.forecast(self.wanted(apparatus), among, self.max_size, self.threshold)

    def _columns(self, schema: Schema) -> Columns:
        return schema.columns_of(self.among, where="among") if self.among else ()

    def measure(
        self, apparatus: Apparatus, settings: Settings, work: Work, *, at_once: bool = False
    ) -> None:
        """Say what it will cost; then measure set by set, and search."""
        scores, among = self.wanted(apparatus), self._columns(apparatus.schema)
        steps, suite = len(scores) + bool(among), apparatus.suite
        if at_once:
            settings = work.be_precise(scores)
            if suite is not None:
                suite.most_of_domain = SUITE_INPUTS
        listen = apparatus.handling.listen
        listen(self.forecast(apparatus, settings))
        for number, score in enumerate(scores, start=1):
            listen(StepBegun(number, steps))
            work.measure(score)
        work.observe(chain.from_iterable(columns for columns, *_ in scores), may_run=True)
        if among:
            listen(StepBegun(steps, steps))
            if suite is not None:  # what a search tries would be many times as much
                suite.holds_all = True
            searched = apparatus.views.searchable(self.measures)
            work.search(Sought(searched, self.threshold, among, self.max_size))


PILOT = 40  # rows that tell how often decisions change


@dataclass(frozen=True)
class _Seen:
    """What the first rows of a set show."""

    flips: float = 0.2  # share of rows in which decisions differ
    change: float = 0.2  # the variance of how far they do
    between: float = 0.2  # the variance of the difference between the extreme groups

    @property
    def changes(self) -> bool:
        """Whether some decisions were seen to change."""
        return self.flips > 1 / PILOT


@dataclass
class Forecaster:
    """Adds up what sets cost one after the other, in one run; `view` is of the first output."""

    view: View
    settings: Settings
    rows: int = PILOT
    _covered: dict[frozenset[int], int] = field(default_factory=dict)  # rows, by what is changed
    _seen: dict[Columns, _Seen] = field(default_factory=dict)
    _whole: bool = False  # every input will have been run
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.sampler, self.runner = self.view.sampler, self.view.sampler.runner

    def forecast(
        self,
        asked: Sequence[Wanted],
        among: Sequence[int] = (),
        max_size: int | None = None,
        threshold: float = 0.0,
    ) -> Forecast:
        """What these scores cost in this order, then a search among columns, and noise."""
        sets = list(dict.fromkeys(columns for columns, *_ in asked))
        for columns in sets:
            self._seen[columns] = self._try(columns)
        costs, exact, left = dict.fromkeys(sets, 0), dict.fromkeys(sets, True), self._all_inputs()
        for each in asked:
            columns, measure, _ = each
            is_exact = self._is_exact(*each)
            cost = self._cost(each, exact=is_exact)
            if measure != "excess":  # which asks again what was run
                cost = min(cost, left)
                left -= cost
            costs[columns] += cost
            exact[columns] &= is_exact
        scored, measures = sum(costs.values()), {measure for _, measure, _ in asked}
        found = self._search(scored, measures, among, max_size, threshold)
        if "excess" not in measures:
            found = min(found, left)
        names, runs = self.runner.schema.names, self.runner.runs
        parts = tuple(
            Part(",".join(names[c] for c in columns), runs * cost, exact[columns])
            for columns, cost in costs.items()
        )
        again = runs * self._noise(scored + found, asked)
        total, steps = runs * (scored + found) + again, len(asked) + bool(among)
        tokens, spend = self.runner.foresee(total)
        return Forecast(
            parts, total, *self._effort(total, steps), steps, len(among), runs * found, again,
            tokens=tokens.total, spend=spend, guessed=tokens.estimated > 0,
        )  # fmt: skip

    def _effort(self, executions: int, steps: int) -> tuple[int, float | None]:
        """How many calls so many executions are, and how long they take, as far as was seen."""
        runner, spent = self.runner, self.runner.account
        if not spent.calls or not spent.executions:
            return executions, None
        elapsed, calls = time.monotonic() - self._started, runner.pace.calls
        if runner.saves_calls:
            found = sum(each.changes for each in self._seen.values())
            # As measured: of a score, to look for noise, to explain a finding and run it again.
            count = 2 * steps + 3 + 5 * found + round(executions / runner.longest_call)
            own = count * (calls.seconds_alone + 1e-2)  # a large call's beside the subject
            return count, elapsed + own + executions * calls.seconds_each
        count = max(round(executions * spent.calls / spent.executions), 1)
        each = (runner.pace.for_each or 0.0) + 1e-5  # an execution's beside the subject
        return count, elapsed + executions * each

    # --- one score -------------------------------------------------------------------------

    def _is_exact(self, columns: Columns, measure: Measure, view: View) -> bool:
        """Whether all that the score needs is run, or nothing: 0 by construction."""
        if self._is_unread(columns, measure) or (self._whole and measure != "excess"):
            return True
        scorer, question = view.scorer, view.scorer.question(columns, measure, self.settings)
        if not scorer.is_exact(question):
            return False
        return scorer.cost_of_all(question) <= self.runner.executions_left

    def _is_unread(self, columns: Columns, measure: Measure) -> bool:
        return measure != "group" and self.runner.schema.unread.issuperset(columns)

    def _cost(self, asked: Wanted, *, exact: bool) -> int:
        """New executions of one score; what it runs is covered from then on."""
        columns, measure, _ = asked
        size, assignments = self.sampler.population.size or 0, self.sampler.assignments(columns)
        of_people = self.sampler.population.profile
        if self._is_unread(columns, measure) or (self._whole and measure != "excess"):
            return 0
        if exact and not of_people:
            self._whole = True
            return size
        if exact:
            return self._cover(columns if measure == "causal" else (), size)
        width = min(assignments.count, self.settings.max_assignments)
        if measure == "excess":  # with two answers to each input it varies as decisions change
            flips = self._seen[columns].flips
            rows = FEWEST_TIMES**2 * self._rows_of(min(flips, 0.25)) / fitting_times(flips)
            return round(rows * assignments.count)
        seen = self._seen[columns]
        rows = self._rows_of(seen.change if measure == "causal" else seen.between)
        if measure == "causal":  # a share: decided after so many rows whatever it is
            coarse = COARSE_CELLS // min(width, MOST_WHOLE) if self.runner.saves_calls else 0
            rule = ProportionRule(self.settings.confidence, self.settings.error)
            rows = min(max(rows, coarse), rule.max_samples)
        rows = min(rows, size) if of_people else rows
        if measure == "group" and not shares_contexts(self.sampler, assignments):
            return rows * width
        return self._cover(columns, rows)

    def _all_inputs(self) -> int:
        """More than all inputs are not run where what was run is remembered.

        Of a profile's people variants are run that are nobody's own.
        """
        population = self.sampler.population
        if not self.runner.remembers:
            return sys.maxsize
        valid = None if population.profile else population.size
        return self.runner.schema.size if valid is None else valid

    def _cover(self, columns: Columns, rows: int) -> int:
        """The cells of these rows that no set before ran: by which columns are changed."""
        schema, new = self.runner.schema, 0
        changes = chain.from_iterable(combinations(columns, n) for n in range(len(columns) + 1))
        for changed in map(frozenset, changes):
            levels = math.prod(schema.characteristics[c].possible_count - 1 for c in changed)
            known = self._covered.get(changed, 0)
            new += min(levels, self.settings.max_assignments) * max(rows - known, 0)
            self._covered[changed] = max(rows, known)
        return new

    def _rows_of(self, variance: float) -> int:
        """As many as make the interval of a mean narrow enough."""
        error = self.settings.error
        rule = GroupRule(1.0 - interval_confidence(self.settings.confidence), error)
        evidence = math.log(rule.evidence)
        # Three rows for each unit of log evidence, variance and 1 / error², as measured.
        return round(evidence / (2 * error) + 3.0 * evidence * variance / (2 * error**2))

    # --- the first rows --------------------------------------------------------------------

    def _try(self, columns: Columns) -> _Seen:
        """What a few whole rows of a set show; where they are too many, what its parts show."""
        sampler, reading = self.sampler, self.sampler.reading
        assignments = sampler.assignments(columns)
        rows = int(min(self.rows, self.runner.executions_left // (4 * assignments.count)))
        is_exact = self._is_exact(columns, "causal", self.view)
        is_known = is_exact and not sampler.population.profile
        if is_known or assignments.count > 64 or rows < 2:
            parts = [self._seen[part] for part in self._seen if set(part) < set(columns)]
            return max(parts, key=lambda each: each.flips, default=_Seen())
        variants = Variants.of(assignments, limit=self.settings.max_assignments, base=sampler.base)
        tried, cells = sampler.tables.fill(variants, 0, rows, reading=reading)
        own = own_columns(variants, tried) if reading.graded else None
        changed = np.asarray(reading.settled_states(cells, own) == FLIP, dtype=float)
        flips, least = (float(changed.sum()) + 0.5) / (rows + 1.0), 0.5 / rows
        change = flips * (1.0 - flips)
        if own is not None and reading.averages:
            change = float(reading.row_distances(cells, own).var()) + least / rows
        return replace(_Seen(flips, change), between=max(self._between(assignments, cells), least))

    def _between(self, assignments: Assignments, cells: Cells) -> float:
        """The variance between the extreme groups: in common contexts, or of separate draws."""
        reading = self.sampler.reading
        if reading.output is not None and reading.output.statistics:
            reading = replace(reading, statistic=reading.output.statistics[0])
        low, high = reading.share_ends(cells)
        usual = (cells >= 0).mean(axis=0) > 0.5  # not what only inputs without a value have
        known = (cells >= 0)[:, usual].all(axis=1)
        if not usual.any() or not known.any():
            return 0.2
        good = (np.add(low, high, dtype=float) / 2)[known][:, usual]
        rates = good.mean(axis=0)
        best, worst = good[:, rates.argmax()], good[:, rates.argmin()]
        shares = shares_contexts(self.sampler, assignments)
        return float((best - worst).var() if shares else best.var() + worst.var())

    # --- beside the scores -----------------------------------------------------------------

    def _search(
        self,
        scores: int,
        measures: set[Measure],
        among: Sequence[int],
        max_size: int | None,
        threshold: float,
    ) -> int:
        """What deciding all sets takes beyond the scores; a share of these if some are found."""
        if self._whole or not among:
            return 0
        flips = max((each.flips for each in self._seen.values()), default=0.0)
        if flips > max(threshold - self.settings.error, 1 / PILOT):
            return round(0.3 * scores)  # as measured
        measure: Measure = "excess" if "excess" in measures else "causal"
        plan = self.view.searcher.plan(tuple(among), max_size, self.settings, threshold, measure)
        return max(plan.executions - scores, 0)

    def _noise(self, sampling: int, asked: Sequence[Wanted]) -> int:
        """A share of all executions is made again, and so is what each finding rests on."""
        sets = [columns for columns, measure, _ in asked if measure != "excess"]
        if not self.settings.looks_for_noise or not sets:  # nothing of an excess is run again
            return 0
        alpha = RERUNS_SHARE * (1.0 - self.settings.confidence) / 2
        again = self.settings.probe if self.settings.probe is not None else sampling // SHARE
        found = sum(self._seen[columns].changes for columns in sets)
        return again + 2 * found * reruns_for(SHARE_LEFT, alpha)
