"""What an audit measures with: a subject in its runner, the inputs, and its outputs as views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from themis.audit.given import (
    CachePlace,
    check_decisions,
    check_suite,
    decisions_of,
    open_recall,
    spread,
)
from themis.audit.views import View, Views
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.errors import RequestError
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
from themis.scores.reruns import Rerunner
from themis.settings import Settings, check_cost, check_repeats
from themis.subjects.base import CostKind, Subject
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from
from themis.subjects.outputs import Output, Similarity, as_outputs

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from themis.engine.suites import Suite
    from themis.scores.people import PeopleRun


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
        self.asked = Asked()
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
        check_decisions(made, handling.favourable, handling.labels)
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

        check_suite(self.people, show_rows=self.handling.show_rows)
        runner, of_people = self.runner, self.people is not None
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


def question_of(
    columns: tuple[int, ...],
    measure: Measure,
    view: View,
    settings: Settings,
    limit: float | None = None,
) -> object:
    """What a score answers; an audit keeps its views, so that each has an identity."""
    return (columns, measure, id(view), settings, limit)


Seen: TypeAlias = tuple[tuple[Outcomes, ...], tuple[Errors, ...], tuple[Proxy, ...]]


class Asked:
    """The answers that measuring again would not change."""

    def __init__(self) -> None:
        self._answers: dict[object, tuple[Score, ...]] = {}
        self.observed: dict[object, Seen] = {}  # in rows
        self.runs: dict[object, PeopleRun | None] = {}  # of these rows

    def answers(self, question: object) -> tuple[Score, ...]:
        """What was answered; nothing if it was not asked before."""
        return self._answers.get(question, ())

    def keep(self, question: object, scores: Sequence[Score], settings: Settings) -> None:
        """Take note of an answer, unless a budget or an interrupt cut it off."""
        if all(_is_settled(each, settings) for each in scores):
            self._answers.setdefault(question, tuple(scores))


def _is_settled(score: Score, settings: Settings) -> bool:
    return not score.stopped.is_early and (score.is_checked or not settings.is_limited)
