"""What an audit is asked about given rows: their scores, known outcomes and proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from themis.audit.apparatus import Apparatus, Views, Wanted, no_groups
from themis.audit.given import warn_of
from themis.audit.precision import Family
from themis.audit.run import Work
from themis.engine.sampler import Sampler
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import Value
from themis.inputs.people import (
    MOST_VALUES,
    KnownNumbers,
    People,
    Unknown,
    columns_read,
    people_of,
    with_features,
    with_groups,
)
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.tables import rows_of
from themis.results.model import Measure, Result
from themis.results.notes import Ending, Note
from themis.results.outcomes import Errors, Outcomes, Proxy
from themis.results.parts import Naming
from themis.scores.privacy import of_people
from themis.scores.question import Scored, charged
from themis.settings import Settings
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from themis.scores.apparent import Counterfactuals
    from themis.scores.people import PeopleRun

CounterfactualChoice = Literal["generated", "within", "both"]


@dataclass(frozen=True)
class RowRequest:
    """Which scores of given rows are wanted."""

    sets: Sequence[tuple[int, ...]]  # columns of the schema
    measures: Sequence[Measure]
    output: str | None = None  # of several; None: all of them
    counterfactuals: CounterfactualChoice | None = None  # None: both, as far as they cost nothing
    draw: bool = False  # sample from the rows instead of running them all
    only_data: bool = False  # not of all inputs as well
    favourable: tuple[Value, ...] | None = None  # known outcomes; None: those that are outputs
    labelled: bool = False  # there is a column of known outcomes
    proxies: bool = False  # what may stand in for the sets

    def __post_init__(self) -> None:
        RequestError.refuse(self._mistakes())

    def _mistakes(self) -> Iterator[Mistake]:
        given, known = self.counterfactuals, get_args(CounterfactualChoice)
        if given is not None and given not in known:
            problem = f"there are no counterfactuals {given!r}"
            yield Mistake("counterfactuals", "counterfactuals", problem, suggest(given, known))
        if self.draws and given in ("within", "both"):
            yield Mistake(
                "draw-within",
                "draw",
                "counterfactuals within the rows need every row, and drawing runs some of them",
                'leave it out, or use the counterfactuals "generated"',
            )
        if self.draws and (self.proxies or self.labelled):
            what = "proxies" if self.proxies else "known outcomes"
            problem = f"{what} need every row, and drawing runs some of them"
            yield Mistake("draw-all", "draw", problem, "leave it out")

    @property
    def draws(self) -> bool:
        """Whether rows are drawn: the excess asks contexts again, and not everybody."""
        return self.draw or "excess" in self.measures

    def kinds(self, measure: Measure) -> tuple[Counterfactuals, ...]:
        """The counterfactuals of a measure, in the order in which they are looked at."""
        if measure == "group" or self.draws or self.counterfactuals == "generated":
            return ("generated",)
        return ("within",) if self.counterfactuals == "within" else ("generated", "within")

    def scores(
        self, schema: Schema, views: Views, whole: Views
    ) -> Iterator[tuple[Wanted, Counterfactuals | None]]:
        """The scores of the rows, set by set, each time before those of all inputs: of no kind."""
        for columns in self.sets:
            is_read = not schema.unread.issuperset(columns)  # else all else is the same
            for measure, view in views.measured(self.measures, self.output):
                for kind in self.kinds(measure)[: None if is_read else 1]:
                    yield (columns, measure, view), kind
            if is_read and not self.only_data:
                for measure, view in whole.measured(self.measures, self.output):
                    yield (columns, measure, view), None


def measure_rows(
    apparatus: Apparatus,
    people: People,
    request: RowRequest,
    settings: Settings,
    naming: Naming | None,
) -> Result:
    """What is wanted of these people, beside all inputs if that is wanted, too."""
    from themis.scores.people import PeopleRun
    from themis.scores.proxies import ranked

    answers, sampler, whole = apparatus.answers, apparatus.sampler, apparatus.whole_views
    apparatus.runner.failures.personal = not apparatus.handling.show_rows
    planned = request.scores(people.schema, whole, whole)
    family = Family.of(settings, [measure for (_, measure, _), _ in planned])
    question = (people.digest, str(request), family.settings)

    def measure_all(work: Work) -> None:
        work.outcomes, work.errors, work.proxies = answers.observed.get(question, ((), (), ()))
        work.people_run = answers.runs.get(question)
        if work.add_known(answers.to(question)):
            work.observe(
                chain.from_iterable(request.sets), output=request.output, rows=work.people_run
            )
            return
        views = drawn_views(people, sampler, whole) if request.draws else whole
        run = work.people_run = views.people_run or PeopleRun(sampler, people)
        rows = _Rows(request, run, whole, settings)
        work.outcomes, work.errors = rows.outcomes(), rows.errors()
        for wanted, kind in request.scores(people.schema, views, whole):
            work.add(rows.score(wanted, kind, family.settings))
        work.observe(chain.from_iterable(request.sets), output=request.output, rows=run)
        for proxy in rows.proxies():
            work.proxies = ranked([*work.proxies, proxy])

    work = Work(apparatus, family, people.facts)
    work.do(measure_all)
    result = work.result("apparent", naming)
    result = replace(result, notes=(*result.notes, *missing_proxies(result, request, people)))
    if result.stopped is Ending.DONE or not request.proxies:  # else some may be missing
        answers.keep(question, result.scores, settings)
        answers.observed[question] = result.outcomes, result.errors, result.proxies
        answers.runs[question] = work.people_run
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


@dataclass(frozen=True)
class _Rows:
    """What is measured of these people, by the outputs of an audit."""

    request: RowRequest
    run: PeopleRun
    whole: Views
    settings: Settings

    @property
    def _reading(self) -> Reading:
        return self.whole.of(self.request.output).sampler.reading

    @property
    def _numbers(self) -> KnownNumbers | None:
        """The known outcomes, where they are numbers like the outputs."""
        of_numbers = isinstance(self._reading.labels, NumberPart)
        return self.run.people.numbers if of_numbers and self.request.favourable is None else None

    def outcomes(self) -> tuple[Outcomes, ...]:
        """The rates beside known outcomes, where rows have some; runs everybody."""
        from themis.scores.outcomes import check_outcomes, favourable_mistakes, known_outcomes

        run, request, of_numbers = self.run, self.request, self._numbers is not None
        known, numbers = run.people.known, run.people.numbers
        if known is None and numbers is not None and not of_numbers:
            different = len(np.unique(numbers.values))
            problem = f"{numbers.label!r} has {different:,} different values, more than "
            remedy = "name a column with the decisions that would have been right"
            raise RequestError.one("label", "label", f"{problem}{MOST_VALUES}", remedy)
        if known is None or of_numbers:
            return ()
        RequestError.refuse(favourable_mistakes(known, request.favourable or ()))
        reading, look = self._decided(), None
        if request.favourable is None:
            look = partial(check_outcomes, run, known, reading)
            look()
        self._run_all(look)
        confidence = self.settings.confidence
        return known_outcomes(run, reading, request.sets, request.favourable, confidence)

    def errors(self) -> tuple[Errors, ...]:
        """The errors of outputs that are numbers, where rows have known ones; runs everybody."""
        from themis.scores.outcomes import known_errors

        numbers = self._numbers
        if numbers is None:
            return ()
        self._run_all()
        return tuple(known_errors(self.run, numbers, self._reading, self.request.sets))

    def proxies(self) -> Iterator[Proxy]:
        """What may stand in for the sets, where that was asked; runs everybody, and variants."""
        if self.request.proxies:
            from themis.scores.proxies import proxies_of

            reading, confidence = self._decided(), self.settings.confidence
            self._run_all()
            yield from proxies_of(self.run, reading, self.request.sets, confidence)

    def score(self, wanted: Wanted, kind: Counterfactuals | None, settings: Settings) -> Scored:
        """A score of the rows by counterfactuals of a kind; of all inputs where that is None."""
        from themis.scores.apparent import measure_people

        columns, measure, view = wanted
        question = view.scorer.question(columns, measure, settings)
        if kind is None:
            return view.scorer.measure(question)
        if self.request.draws:
            return view.scorer.measure(question).then(partial(replace, population="rows"))
        runner, before = self.run.sampler.runner, self.run.sampler.runner.account
        measured = measure_people(self.run, question, kind)
        score = charged(measured.score, runner, before)
        own = of_people(score, "rows", self.run, view.sampler.reading)
        return measured._replace(score=own)

    def _run_all(self, look: Callable[[], None] | None = None) -> None:
        """Run everybody as they are, as far as the budget goes; `look` at the first ones."""
        assignments = Assignments(self.run.people.schema, self.request.sets[0])
        if self.run.run(assignments, "group", look) is Ending.INTERRUPTED:
            raise KeyboardInterrupt

    def _decided(self) -> Reading:
        """The output that people are compared by; raises RequestError without favourable ones."""
        if not self._reading.has_favourable:
            mistake = no_groups(self.whole.named(self.request.output))
            problem = "nothing says which outputs are favourable, and rates of those are compared"
            remedy = "give it favourable = [...] or a cut"
            raise RequestError([replace(mistake, problem=f"{problem} here", remedy=remedy)])
        return self._reading


def missing_proxies(result: Result, request: RowRequest, people: People) -> Iterator[Note]:
    """Which characteristics were not looked at before the run ended."""
    if request.proxies:
        from themis.scores.proxies import candidates

        names = [people.schema.names[column] for column in candidates(people.schema, request.sets)]
        seen = {each.name for each in result.proxies}
        missing = [name for name in names if name not in seen]
        if missing:
            yield Note.of("proxies-missing", names=missing)


def drawn_views(people: People, sampler: Sampler, whole: Views) -> Views:
    """Views whose scores are sampled from the rows where running all of them costs more."""
    population = Population.of_people(people.schema, people.codes, people.weights)
    drawing = Sampler(
        population, sampler.runner, sampler.seed, sampler.listen, sampler.keep_on_interrupt
    )
    return Views(drawing, whole.outputs, people)


def named_sets(against: str | Iterable[Any]) -> list[list[str]]:
    """The names of the sets that a caller means: one, or several."""
    given = [against] if isinstance(against, str) else list(against)
    if given and all(isinstance(each, str) for each in given):
        return [[name.strip() for text in given for name in text.split(",")]]
    return [[each] if isinstance(each, str) else list(each) for each in given]


def sets_of(schema: Schema, against: str | Iterable[Any]) -> list[tuple[int, ...]]:
    """The same sets by their columns; raises RequestError where there are none."""
    sets = named_sets(against)
    if not sets:
        problem = "nothing is said to be protected, so there is nothing to measure by default"
        raise RequestError([Mistake("no-set", "against", problem, 'give against=["race"]')])
    return [schema.columns_of(each, where="against") for each in sets]


def favourable_outcomes(
    label: str | None, given: Iterable[Value] | Value | None
) -> tuple[Value, ...] | None:
    """The known outcomes that a caller calls favourable: one, several, or none."""
    if given is None:
        return None
    if label is None:
        problem = "there is no column of known outcomes"
        raise RequestError.one("label-favourable", "label_favourable", problem, "give the label")
    return tuple(given) if isinstance(given, list | tuple | set | frozenset) else (given,)  # type: ignore[return-value]
