"""The result of given rows: their scores, known outcomes and proxies, each measured once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from themis.audit.apparatus import Apparatus
from themis.audit.family import Family
from themis.audit.given import warn_of
from themis.audit.notes import unlike_rows
from themis.audit.rows import (
    RowRequest,
    drawn_views,
    missing_proxies,
    named_sets,
    row_errors,
    row_measures,
    row_outcomes,
    row_proxies,
    row_scores,
)
from themis.audit.run import Work
from themis.errors import RequestError
from themis.inputs.beside import with_features, with_groups
from themis.inputs.people import People, Unknown, columns_read, people_of
from themis.inputs.row_files import rows_of
from themis.results.model import Result
from themis.results.notes import Ending
from themis.results.parts import Naming
from themis.scores.people import PeopleRun
from themis.scores.proxies import ranked
from themis.settings import Settings


def measure_rows(
    apparatus: Apparatus,
    people: People,
    request: RowRequest,
    settings: Settings,
    naming: Naming | None,
) -> Result:
    """What is wanted of these people, beside all inputs if that is wanted, too."""
    asked, sampler, whole = apparatus.asked, apparatus.sampler, apparatus.whole_views
    apparatus.runner.failures.personal = not apparatus.handling.show_rows
    family = Family.of(settings, row_measures(request, whole))
    question = (people.digest, str(request), family.settings)

    def measure_all(work: Work) -> None:
        work.outcomes, work.errors, work.proxies = asked.observed.get(question, ((), (), ()))
        work.people_run = asked.runs.get(question)
        if work.add_known(asked.answers(question)):
            work.observe(
                chain.from_iterable(request.sets), output=request.output, rows=work.people_run
            )
            return
        views = drawn_views(people, sampler, whole) if request.draws else whole
        run = work.people_run = views.people_run or PeopleRun(sampler, people)
        work.outcomes = row_outcomes(request, run, whole, settings)
        work.errors = row_errors(request, run, whole)
        for score in row_scores(request, run, views, whole, family.settings):
            work.add(score)
        work.observe(chain.from_iterable(request.sets), output=request.output, rows=run)
        for proxy in row_proxies(request, run, whole, settings):
            work.proxies = ranked([*work.proxies, proxy])

    unlike = () if request.only_data else unlike_rows(people, whole.whole.population)
    work = Work(apparatus, family, people.facts)
    work.do(measure_all)
    result = work.result("apparent", naming, unlike)
    result = replace(result, notes=(*result.notes, *missing_proxies(result, request, people)))
    if result.stopped is Ending.DONE or not request.proxies:  # else some may be missing
        asked.keep(question, result.scores, settings)
        asked.observed[question] = result.outcomes, result.errors, result.proxies
        asked.runs[question] = work.people_run
    return result


def people_asked(
    apparatus: Apparatus,
    rows: Any,
    against: str | Iterable[Any] | None,
    default_sets: Sequence[Sequence[str]],
    *,
    features: Any,
    label: str | None,
    unknown: Unknown | None,
    weights: str | Sequence[float] | None,
) -> tuple[People, list[list[str]]]:
    """The people that rows describe, or the profile, and the names of the sets they have.

    `features` are columns beside the rows, each of which is a set.
    """
    schema, sets = apparatus.schema, named_sets(default_sets if against is None else against)
    named = {name for each in sets for name in each}
    if rows is None and features is not None:
        problem, remedy = "there are no rows that they stand beside", "give the rows, too"
        raise RequestError.one("sensitive-features", "sensitive_features", problem, remedy)
    if rows is None:
        lacking = named - schema.column_by_name.keys()
        return apparatus.own_people(label, unknown, weights, lacking), sets
    given = rows_of(rows, only=columns_read(schema, weights, label) | named)
    if features is not None:
        given, names = with_features(given, features)
        sets = [*(sets if against is not None else []), *([each] for each in names)]
        named |= {*names}
    way, own = unknown or "keep", schema.with_extra({})
    if apparatus.remake is None:  # a ready-made subject is as it is
        way, own = "drop" if way == "keep" else way, schema
    own = with_groups(own, given, named)
    # Otherwise what only a profile's rows have is unknown for others.
    people = people_of(given, own, weights=weights, unknown=way, label=label)
    if given is not rows:
        warn_of(people.facts)
    return people, sets
