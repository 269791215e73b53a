"""Everything for a reader: each protected characteristic, their pairs, and a search among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from themis.audit.apparatus import Apparatus
from themis.audit.family import Family
from themis.audit.precision import precise_at_once
from themis.audit.run import Sought, Work
from themis.audit.views import Views
from themis.errors import RequestError
from themis.events import Forecast, StepBegun
from themis.inputs.schema import Schema
from themis.results.model import Measure
from themis.settings import Settings

MEASURES: tuple[Measure, ...] = ("causal", "group")
SUITE_INPUTS = 30_000  # of a domain that nobody asked to run, for each set: a megabyte
THRESHOLD = 0.05  # of the search, unless somebody asks for another


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

    def forecast(
        self, apparatus: Apparatus, settings: Settings, *, at_once: bool = False
    ) -> Forecast:
        """What it will cost, after a few trials."""
        from themis.audit.forecast import Forecaster

        views, columns_of = apparatus.views, apparatus.schema.columns_of
        scored, sets = list(views.measured(self.measures)), list(map(columns_of, self.sets))
        if at_once:
            settings = precise_at_once(apparatus, settings, [(each, scored) for each in sets])
        asked = [(columns, *each) for columns in sets for each in scored]
        among = columns_of(self.among, where="among") if self.among else ()
        forecaster = Forecaster(views.of(None), settings)
        return forecaster.forecast(asked, among, self.max_size, self.threshold)

    def measure(
        self, work: Work, apparatus: Apparatus, settings: Settings, *, at_once: bool = False
    ) -> None:
        """Say what it will cost; then measure set by set, and search."""
        views, columns_of = apparatus.views, apparatus.schema.columns_of
        scored = list(views.measured(self.measures))
        scores = [(columns_of(names), *view) for names in self.sets for view in scored]
        among = columns_of(self.among, where="among") if self.among else ()
        steps = len(scores) + bool(among)
        if at_once:
            settings = work.be_precise([(columns_of(names), scored) for names in self.sets])
            if apparatus.suite is not None:
                apparatus.suite.most_of_domain = SUITE_INPUTS
        listen = apparatus.handling.listen
        listen(self.forecast(apparatus, settings))
        for number, score in enumerate(scores, start=1):
            listen(StepBegun(number, steps))
            work.measure(*score)
        work.observe(chain.from_iterable(columns for columns, *_ in scores), may_run=True)
        if among:
            listen(StepBegun(steps, steps))
            if apparatus.suite is not None:  # what a search tries would be many times as much
                apparatus.suite.holds_all = True
            searched = views.searchable(self.measures)
            work.search(Sought(searched, self.threshold, among, self.max_size))
