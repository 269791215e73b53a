"""What an audit measures with: a subject in its runner, the inputs, and its outputs as views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from themis.audit.given import (
    CachePlace,
    decisions_of,
    open_recall,
    spread,
)
from themis.audit.notes import odd_outputs
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.errors import Mistake, RequestError, suggest
from themis.events import Listener
from themis.inputs.characteristics import Value
from themis.inputs.documents import has_documents
from themis.inputs.people import People, Unknown
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.results.model import Measure, Score
from themis.results.notes import Note
from themis.results.outcomes import Errors, Outcomes, Proxy
from themis.results.parts import Naming
from themis.scores.noise import NoiseProbe
from themis.scores.privacy import shared_outputs
from themis.scores.reruns import Rerunner
from themis.scores.scorer import Scorer
from themis.settings import Settings, check_cost, check_repeats
from themis.subjects.base import CostKind, Subject
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from
from themis.subjects.outputs import Output, Similarity, Statistic, as_outputs
from themis.subjects.readings import Reading

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from themis.engine.suites import Suite
    from themis.scores.domain import Domain
    from themis.scores.people import PeopleRun
    from themis.search.searcher import Searcher


@dataclass(eq=False)
class View:
    """One output as it is measured; an audit has one of each, which is part of what it is asked."""

    scorer: Scorer

    @property
    def sampler(self) -> Sampler:
        """The run, seen through this output."""
        return self.scorer.sampler

    @cached_property
    def searcher(self) -> Searcher:
        """Searches for sets that change this output."""
        from themis.search.searcher import Searcher

        return Searcher(self.sampler, self.scorer)

    @property
    def lacks_favourable(self) -> bool:
        """Whether there are outputs, and none so far was one that `favourable` names."""
        reading = self.sampler.reading
        seen = len(reading.labels.labels) > 0
        return seen and reading.has_favourable and not reading.labels.favourable.any()


Columns: TypeAlias = tuple[int, ...]
Wanted: TypeAlias = tuple[Columns, Measure, View]  # a score: of which set, and how


class Views:
    """The outputs of an audit; without declared ones, the decision is the only one."""

    def __init__(
        self, sampler: Sampler, outputs: Sequence[Output], people: People | None = None
    ) -> None:
        self.outputs = outputs
        self._scorer = Scorer(sampler, people)
        self._known: dict[tuple[int, Statistic], View] = {}

    @property
    def whole(self) -> Sampler:
        """A run that draws from all inputs, also where this one draws from a profile."""
        return self._scorer.whole

    def of(self, name: str | None, statistic: Statistic | None = None) -> View:
        """The output of this name; the first one if none is given."""
        place = self._place(name)
        chosen = statistic or "rate"
        if (place, chosen) not in self._known:
            reading = Reading(self._scorer.sampler.runner.labels, place, chosen)
            self._known[place, chosen] = View(self._scorer.reading_as(reading))
        return self._known[place, chosen]

    def named(self, name: str | None) -> Output:
        """The declared output of this name; the first one if none is given."""
        return self.outputs[self._place(name)]

    def for_groups(self, name: str | None, statistic: Statistic | None = None) -> View:
        """The output for a group score: of its mean, unless its rate is asked for or all it has."""
        if not self.outputs:
            return self.of(None)
        output = self.named(name)
        if statistic is None:
            statistic = next(iter(output.statistics), None)
        if statistic is None or statistic not in output.statistics:
            raise RequestError([no_groups(output)])
        return self.of(output.name, statistic)

    def searched(self, name: str | None, measures: Sequence[Measure]) -> View:
        """The output for a search; group scores are of rates where there are some."""
        if "group" not in measures or not self.outputs:
            return self.of(name)
        output = self.named(name)
        return self.for_groups(name, "rate" if "rate" in output.statistics else None)

    def searchable(self, measures: Sequence[Measure]) -> tuple[Measure, ...]:
        """Those of these measures that the first output has."""
        has_groups = not self.outputs or bool(self.outputs[0].statistics)
        return tuple(each for each in measures if each != "group" or has_groups)

    def measured(
        self, measures: Sequence[Measure], only: str | None = None
    ) -> Iterator[tuple[Measure, View]]:
        """Every score that a set gets: of each output, by each measure it has; or of one only."""
        if only is not None:
            for measure in measures:
                yield measure, self.searched(only, [measure])
            return
        for output in self.outputs or (None,):
            name = None if output is None else output.name
            for measure in measures:
                if measure != "group" or output is None:
                    yield measure, self.of(name)
                else:
                    for statistic in output.statistics:
                        yield measure, self.of(name, statistic)

    def wanted(
        self, sets: Iterable[Columns], measures: Sequence[Measure], only: str | None = None
    ) -> list[Wanted]:
        """The scores of these sets, one set after the other."""
        return [(columns, *each) for columns in sets for each in self.measured(measures, only)]

    def notes(self, favourable: Iterable[Value]) -> Iterator[Note]:
        """What is odd about the outputs."""
        runner = self._scorer.sampler.runner
        wanted = tuple(favourable)
        for output in self.outputs or (None,):
            reading = self.of(None if output is None else output.name).sampler.reading
            own = wanted if output is None else (output.favourable or wanted)
            about = None if len(self.outputs) < 2 or output is None else output.name
            yield from odd_outputs(runner, reading, own, about)

    @property
    def people_run(self) -> PeopleRun | None:
        """The people of the profile that inputs are drawn from, if there is one."""
        return self._scorer.people_run

    @property
    def whole_domain(self) -> Domain | None:
        """Every input that occurs, where all of them were run and held."""
        return self._scorer.whole_domain

    def shared_outputs(self, run: PeopleRun) -> set[Value]:
        """The outputs of these people that name nobody."""
        names = [each.name for each in self.outputs]
        readings = [self.of(name).sampler.reading for name in names or (None,)]
        return set[Value]().union(*(shared_outputs(run, each) for each in readings))

    def _place(self, name: str | None) -> int:
        names = [each.name for each in self.outputs]
        if name is None:
            return 0
        if name not in names:
            remedy = suggest(name, names) if names else "declare it: Audit(…, outputs=[…])"
            raise RequestError(
                [Mistake("unknown-output", "output", f"there is no output {name!r}", remedy)]
            )
        return names.index(name)


def no_groups(output: Output) -> Mistake:
    """That nothing says which values of an output are favourable."""
    return Mistake(
        "no-group-score",
        f"outputs.{output.name}",
        "nothing says which outputs are favourable, and it is no number with a scale",
        "give it favourable = [...], a cut, or min and max",
    )


@dataclass(frozen=True, kw_only=True)
class Handling:
    """How the subject is run and its outputs are read: what is given beside the settings."""

    favourable: tuple[Value, ...]
    labels: Mapping[str, Iterable[str]] | None
    outputs: tuple[Output, ...]
    similar_texts: Similarity
    max_failures: float
    max_undecided: float
    repeats: int
    deterministic: bool
    cost: CostKind | None
    cache: CachePlace
    executor: str | Executor | None
    show_rows: bool
    listen: Listener

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Handling:
        """That of an audit's arguments; raises RequestError where they make no sense."""
        check_repeats(given["repeats"])
        check_cost(given["cost"])
        own = {each.name: given[each.name] for each in fields(cls)}
        own["favourable"], own["outputs"] = tuple(own["favourable"]), as_outputs(own["outputs"])
        return cls(**own)

    @property
    def naming(self) -> Naming | None:
        """The words of reports that follow from it, if any do."""
        usual = self.favourable == DEFAULT_FAVOURABLE
        if usual and not self.show_rows:
            return None
        return Naming(favourable=() if usual else self.favourable, rows=self.show_rows)


Remake: TypeAlias = "Callable[..., Apparatus]"  # of a schema, and of people to draw from


class Apparatus:
    """All that an audit is built of, and the answers that it has given so far.

    With `people` inputs are drawn from them. `suite` is the file that gets the tests.
    """

    read_profile: Callable[..., People | None]  # again, in another way

    def __init__(
        self,
        subject: Any,
        schema: Schema,
        handling: Handling,
        *,
        seed: int,
        people: People | None = None,
        suite: str | Path | None = None,
    ) -> None:
        self.schema, self.people, self.handling = schema, people, handling
        self.answers = Answers()
        self._opening_notes: list[Note] = []
        decisions = decisions_of(
            handling.favourable, handling.labels, handling.outputs, handling.similar_texts
        )
        made = subject_from(subject, schema)
        self.remake: Remake | None = None  # with a wider schema
        if not isinstance(subject, Subject):
            self.remake = partial(Apparatus, subject, handling=handling, seed=seed)
        self._wider: dict[str, Apparatus] = {}  # by schemas, which rows asked for
        self.runner = self._runner(made, decisions)
        self.population = Population.of(schema)
        if people is not None:
            self.population = Population.of_people(schema, people.codes, people.weights)
        self.sampler = Sampler(self.population, self.runner, seed, handling.listen)
        self.suite = None if suite is None else self._suite(Path(suite))
        self.sampler.tables.suite = self.suite
        self.views = self.whole_views = Views(self.sampler, handling.outputs, people)
        if people is not None:
            self.whole_views = Views(self.views.whole, handling.outputs)
        names = [each.name for each in handling.outputs]
        self.probe = NoiseProbe(
            self.sampler, Rerunner(self.sampler, names, trusted=handling.deterministic)
        )

    def _runner(self, made: Subject, decisions: Labels) -> Runner:
        handling, notes = self.handling, self._opening_notes
        own = spread(made, handling.executor, notes)
        if handling.outputs:
            own.structured = True
        if handling.labels is None:
            usual = handling.favourable == DEFAULT_FAVOURABLE
            RequestError.refuse(made.decision_mistakes(None if usual else handling.favourable))
        runner = Runner(
            own,
            decisions,
            max_failures=handling.max_failures,
            max_undecided=handling.max_undecided,
            recall=open_recall(own, handling.cache, decisions.layout, notes),
            runs=handling.repeats,
            cost=handling.cost,
        )
        runner.failures.personal = self.people is not None and not handling.show_rows
        runner.failures.unsaid = has_documents(self.schema) and not handling.show_rows
        return runner

    def _suite(self, path: Path) -> Suite:
        from themis.engine.suites import Suite

        runner, of_people = self.runner, self.people is not None
        if of_people and not self.handling.show_rows:
            problem = "it would hold rows of people, those of the profile"
            remedy = "allow it: show_rows=True; or leave the profile out"
            raise RequestError.one("suite-of-people", "suite", problem, remedy)
        return Suite(path, self.schema, runner.labels, runner.failures, of_people=of_people)

    def own_people(
        self, label: str | None, unknown: Unknown | None, weights: Any, beside: Collection[str]
    ) -> People:
        """The people of the profile, read again if they are asked for in another way.

        Raises RequestError without a profile, and with weights: a profile has its own.
        """
        if self.people is None:
            problem = "there are no rows to measure"
            remedy = "name a file or a table of people, or give a profile"
            raise RequestError.one("no-rows", "rows", problem, remedy)
        if weights is not None:
            problem = "there are no rows besides those of the profile, which says what they weigh"
            remedy = "give it to the profile, or give the rows"
            raise RequestError.one("weights", "weights", problem, remedy)
        if label is None and unknown is None and not beside:
            return self.people
        people = self.read_profile(label, unknown, beside)
        assert people is not None
        return people

    def widened(self, people: People) -> Apparatus:
        """The same with the wider schema of some rows; this one is closed.

        Where a context has values in rows only, inputs are drawn from these people. Raises
        RequestError where the subject is ready-made for its schema.
        """
        if self.remake is None:
            problem = "a ready-made subject can't take a wider schema"
            remedy = "give the function or model itself, or widen the schema"
            raise RequestError.one("ready-made", "unknown", problem, remedy)
        self.close()
        schema, own = people.schema, people if people.schema.open else None
        described = f"{schema.to_dict()} {schema.extra} {own and own.digest}"
        if described not in self._wider:
            self._wider[described] = self.remake(schema, people=own)
        wider = self._wider[described]
        wider.sampler.keep_on_interrupt = self.sampler.keep_on_interrupt
        wider.runner.heed = self.runner.heed
        return wider

    @property
    def facts(self) -> Mapping[str, Any] | None:
        """What was given as profile, and how much of it fits; None without one."""
        return None if self.people is None else self.people.facts

    @property
    def cache_notes(self) -> tuple[Note, ...]:
        """What the user should know about the cache so far."""
        recall = self.runner.recall
        if recall is None or not recall.damaged:
            return tuple(self._opening_notes)
        damage = Note.of("cache-damaged", path=str(recall.cache.path), decisions=recall.damaged)
        return (*self._opening_notes, damage)

    def close(self) -> None:
        """End the processes of the subject, and make the suite complete."""
        try:
            self.runner.close()
        finally:
            if self.suite is not None:
                self.suite.close()


Seen: TypeAlias = tuple[tuple[Outcomes, ...], tuple[Errors, ...], tuple[Proxy, ...]]


class Answers:
    """The answers that measuring again would not change."""

    def __init__(self) -> None:
        self._answers: dict[object, tuple[Score, ...]] = {}
        self.observed: dict[object, Seen] = {}  # in rows
        self.runs: dict[object, PeopleRun | None] = {}  # of these rows

    def to(self, question: object) -> tuple[Score, ...]:
        """What was answered; nothing if it was not asked before."""
        return self._answers.get(question, ())

    def keep(self, question: object, scores: Sequence[Score], settings: Settings) -> None:
        """Take note of an answer, unless a budget or an interrupt cut it off."""
        if all(_is_settled(each, settings) for each in scores):
            self._answers.setdefault(question, tuple(scores))


def _is_settled(score: Score, settings: Settings) -> bool:
    return not score.stopped.is_early and (score.is_checked or not settings.is_limited)
