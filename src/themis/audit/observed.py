"""Which inputs the observed rates of a result count: what was run anyway, or a fixed number."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations
from typing import TYPE_CHECKING, Literal

from themis.audit.apparatus import Apparatus
from themis.inputs.schema import Schema
from themis.results.observed import Observed
from themis.scores.observed import Counted, observed_rates
from themis.settings import Settings
from themis.statistics.proportions import ProportionRule

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun


def observed(
    apparatus: Apparatus,
    columns: Iterable[int],
    settings: Settings,
    *,
    output: str | None = None,
    rows: PeopleRun | None = None,
    may_run: bool = False,
) -> tuple[Observed, ...]:
    """The rates by protected characteristic and pairs of them; of these columns if none is.

    Counted are all given people, or the whole domain, where they were run. Otherwise, if anything
    may be run for it, the first base inputs: as many as a share takes at most at this precision.
    Nothing where neither is possible, or the budget ends before.
    """
    views, schema = apparatus.views, apparatus.schema
    counted = _known(apparatus, rows)
    if counted is None and may_run and rows is None:
        count = ProportionRule(settings.confidence, settings.error).max_samples
        counted = Counted.of_first(apparatus.sampler, count, views.people_run)
    sets = _sets(schema, columns)
    if counted is None or not sets:
        return ()
    readings = [view.sampler.reading for _, view in views.measured(["group"], output)]
    return observed_rates(counted, readings, sets, settings.confidence)


def _known(apparatus: Apparatus, rows: PeopleRun | None) -> Counted | None:
    """What was run whole."""
    kind: Literal["profile", "rows"] = "profile" if rows is None else "rows"
    run = rows or apparatus.views.people_run
    if run is not None:
        return Counted.of_people(run, kind)
    domain = apparatus.views.whole_domain
    return None if domain is None else Counted.of_domain(apparatus.schema, domain)


def _sets(schema: Schema, columns: Iterable[int]) -> list[tuple[int, ...]]:
    """Single characteristics and pairs: of the protected ones, or of these columns."""
    protected = [c for c in schema.free if schema.names[c] in schema.protected]
    chosen = protected or sorted(set(columns))
    return [*chain(combinations(chosen, 1), combinations(chosen, 2))]
