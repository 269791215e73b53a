"""What an audit is asked about given rows, and the scores that answer it, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from themis.audit.views import Views
from themis.engine.sampler import Sampler
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.people import People
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.results.model import Measure, Score
from themis.results.notes import Note
from themis.scores.accounts import metered
from themis.scores.apparent import Counterfactuals, measure_people
from themis.scores.explaining import of_people
from themis.scores.people import PeopleRun
from themis.settings import Settings

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

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise RequestError(mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        given, known = self.counterfactuals, get_args(CounterfactualChoice)
        if given is not None and given not in known:
            problem = f"there are no counterfactuals {given!r}"
            yield Mistake("counterfactuals", "counterfactuals", problem, suggest(given, known))
        if self.draw and given in ("within", "both"):
            yield Mistake(
                "draw-within",
                "draw",
                "counterfactuals within the rows need every row, and drawing runs some of them",
                'leave it out, or use the counterfactuals "generated"',
            )

    def kinds(self, measure: Measure) -> tuple[Counterfactuals, ...]:
        """The counterfactuals of a measure, in the order in which they are looked at."""
        if measure == "group" or self.draw or self.counterfactuals == "generated":
            return ("generated",)
        return ("within",) if self.counterfactuals == "within" else ("generated", "within")


def row_measures(request: RowRequest, whole: Views) -> Iterator[Measure]:
    """The measure of each score that `row_scores` gives."""
    views = list(whole.measured(request.measures, request.output))
    for _ in request.sets:
        for measure, _ in views:
            yield from (measure for _ in request.kinds(measure))
            if not request.only_data:
                yield measure


def row_scores(
    request: RowRequest, people: People, sampler: Sampler, whole: Views, settings: Settings
) -> Iterator[Score]:
    """The scores of the rows, set by set, each time before those of all inputs."""
    run = PeopleRun(sampler, people)
    views = _drawn(people, sampler, whole) if request.draw else whole
    for columns in request.sets:
        for measure, view in views.measured(request.measures, request.output):
            for kind in request.kinds(measure):
                if request.draw:
                    score = view.scorer.measure(columns, measure, settings)
                else:
                    reading = view.sampler.reading
                    score = metered(
                        sampler.runner,
                        partial(measure_people, run, reading, columns, measure, settings, kind),
                    )
                yield of_people(score, "rows", people)
        if not request.only_data:
            for measure, view in whole.measured(request.measures, request.output):
                yield view.scorer.measure(columns, measure, settings)


def _drawn(people: People, sampler: Sampler, whole: Views) -> Views:
    """Views whose scores are sampled from the rows where running all of them costs more."""
    population = Population.of_people(people.schema, people.codes, people.weights)
    drawing = Sampler(
        population, sampler.runner, sampler.seed, sampler.listen, sampler.keep_on_interrupt
    )
    return Views(drawing, whole.outputs, people)


def sets_of(schema: Schema, against: str | Iterable[Any]) -> list[tuple[int, ...]]:
    """The sets that a caller names: one, or several."""
    given = [against] if isinstance(against, str) else list(against)
    if not given:
        problem = "nothing is said to be protected, so there is nothing to measure by default"
        raise RequestError([Mistake("no-set", "against", problem, 'give against=["race"]')])
    if all(isinstance(each, str) for each in given):
        names = [name.strip() for text in given for name in text.split(",")]
        return [schema.columns_of(names, where="against")]
    return [schema.columns_of(each, where="against") for each in given]


def left_out(facts: Mapping[str, Any] | None) -> Iterator[Note]:
    """What each score of given rows says of those that it lacks."""
    yield from (note for note in fit_notes(facts) if note.code == "rows-left-out")


def fit_notes(facts: Mapping[str, Any] | None) -> Iterator[Note]:
    """What a reader should know about rows that were left out."""
    if not facts:
        return
    if facts["dropped"]:
        counts = {name: facts[name] for name in ("file", "rows", "dropped")}
        reasons = [{**each, "examples": each["examples"][:2]} for each in facts["reasons"]]
        yield Note.of("rows-left-out", **counts, reasons=reasons)
    for kept in facts.get("kept", ()):
        yield Note.of("values-kept", **kept)
    for name, added in facts.get("extended", {}).items():
        if isinstance(added, Mapping):
            yield Note.of("range-widened", name=name, min=added["min"], max=added["max"])
        else:
            yield Note.of("values-added", name=name, values=added)
