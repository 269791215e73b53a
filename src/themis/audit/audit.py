"""An audit: one subject, one schema, one seed; everything measured in it shares what was run."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from themis.audit.family import Family
from themis.audit.notes import sparse, with_commands
from themis.audit.replay import replay_tests
from themis.audit.rows import CounterfactualChoice, RowRequest, row_measures, row_scores, sets_of
from themis.audit.run import Work, start_budget
from themis.audit.saved_tests import read_tests
from themis.audit.views import View, Views
from themis.engine.cache import Cache, default_path
from themis.engine.recall import Recall
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.engine.suites import Suite
from themis.errors import Mistake, RequestError, SubjectError
from themis.events import Listener, SearchListener, ignore
from themis.inputs.assignments import set_name
from themis.inputs.characteristics import Value
from themis.inputs.people import People, Unknown, columns_read, people_of
from themis.inputs.population import Population
from themis.inputs.row_files import ReadListener, hear_nothing
from themis.inputs.rows import read_rows, rows_of
from themis.inputs.schema import Schema
from themis.results.model import (
    CausalScore,
    GroupScore,
    Measure,
    Noise,
    Result,
    Score,
    SearchResult,
)
from themis.results.notes import Note
from themis.results.replays import Replay
from themis.scores.noise import NoiseProbe
from themis.search.searcher import Accepted, SearchPlan, weigh_search
from themis.settings import Settings, Stopping, check_repeats
from themis.subjects.answers import AnswerLabels
from themis.subjects.base import Subject
from themis.subjects.decisions import DEFAULT_FAVOURABLE, Labels
from themis.subjects.loading import loaded_output, subject_from, subject_from_options
from themis.subjects.meanings import Meanings, favourable_mistakes
from themis.subjects.outputs import Output, Statistic, as_outputs

if TYPE_CHECKING:
    from themis.config.reader import Config

CachePlace = str | Path | Literal[False] | None


class Audit:
    """Measures how much a subject discriminates.

    `subject` is a function of a dictionary, `themis.batch(f)`, `themis.keywords(f)`, or an object
    with `predict`. `labels` say which texts mean the same decision, a label and its patterns, with
    `*` and `?` as in file names; then `favourable` names labels. The settings given here are the
    defaults of every measurement. With `family` the confidence is that of all scores of one call
    of `score`, `search_all` or `apparent` together, and not of each by itself. `cache` is a file
    that keeps the decisions of subjects outside of this process for later runs. With `repeats` each
    output is the majority, or the mean, of so many runs. With `profile`, rows of people (a table,
    dictionaries or a path), inputs are drawn from them instead of from all that the schema allows,
    by `profile_weights` (a column or numbers) if given. `suite` is a file that gets the tests that
    were made up, with their outputs. `close`, or a `with` statement, makes it complete and ends the
    processes that a subject keeps alive.

    >>> schema = Schema(race=["green", "purple"], savings=range(0, 100))
    >>> def loan(person):
    ...     return person["savings"] > (50 if person["race"] == "green" else 60)
    >>> audit = Audit(loan, schema, seed=42)
    >>> audit.causal("race").score
    0.1
    """

    suite: Suite | None = None  # the file that gets the tests, if one was asked for

    def __init__(
        self,
        subject: Any,
        schema: Schema,
        *,
        seed: int = 0,
        stopping: Stopping | Literal["certified", "paper"] = Stopping.CERTIFIED,
        favourable: Iterable[Value] = DEFAULT_FAVOURABLE,
        labels: Mapping[str, Iterable[str]] | None = None,
        outputs: Iterable[Output] | Output | None = None,
        confidence: float = 0.99,
        family: bool = False,
        error: float = 0.05,
        max_executions: int | None = None,
        max_seconds: float | None = None,
        max_assignments: int = 1_000,
        max_failures: float = 0.0,
        max_undecided: float = 0.0,
        repeats: int = 1,
        deterministic: bool = False,
        probe: int | None = None,
        max_noise: float | None = None,
        cache: CachePlace = None,
        profile: Any = None,
        profile_weights: str | Sequence[float] | None = None,
        suite: str | Path | None = None,
        listen: Listener = ignore,
    ) -> None:
        self.schema = schema
        self._people = _profile(profile, schema, profile_weights)
        self.settings = Settings(
            confidence=confidence,
            family=family,
            error=error,
            seed=seed,
            stopping=stopping,  # type: ignore[arg-type]  # text becomes a Stopping
            max_executions=max_executions,
            max_seconds=max_seconds,
            max_assignments=max_assignments,
            probe=probe,
            max_noise=max_noise,
        )
        check_repeats(repeats)
        self._favourable = tuple(favourable)
        declared = as_outputs(outputs)
        decisions = _decisions(self._favourable, labels, declared)
        own = subject_from(subject, schema)
        if declared:
            own.structured = True
        self._cache_notes: list[Note] = []
        self.runner = Runner(
            own,
            decisions,
            max_failures=max_failures,
            max_undecided=max_undecided,
            recall=self._open_recall(own, cache, decisions.layout),
            runs=repeats,
        )
        self.population = Population.of(schema)
        if self._people is not None:
            self.population = Population.of_people(schema, self._people.codes, self._people.weights)
        self.sampler = Sampler(self.population, self.runner, seed, listen)
        if suite is not None:
            runner = self.runner
            self.suite = Suite(Path(suite), schema, runner.labels, runner.failures)
            self.sampler.tables.suite = self.suite
        self._closer = weakref.finalize(self, _close, self.runner, self.suite)
        self._views = self._whole_views = Views(self.sampler, declared, self._people)
        if self._people is not None:
            self._whole_views = Views(self._views.whole, declared)
        same: dict[str, Any] = {
            **{name: getattr(self.settings, name) for name in Settings.names()},
            "favourable": self._favourable,
            "labels": labels,
            "outputs": declared or None,
            "max_failures": max_failures,
            "max_undecided": max_undecided,
            "repeats": repeats,
            "deterministic": deterministic,
            "cache": cache,
            "listen": listen,
        }
        self._remake: Callable[[Schema], Audit] | None = None
        if own is not subject:
            self._remake = lambda wider: Audit(subject, wider, **same)
        names = [each.name for each in declared]
        self.probe = NoiseProbe(self.sampler, names, trusted=deterministic)

    @classmethod
    def from_file(
        cls,
        path: str | Path = "themis.toml",
        *,
        jobs: int | None = None,
        cache: CachePlace = None,
        trust_pickle: bool = False,
        **overrides: Any,
    ) -> Audit:
        """The audit that a `themis.toml` (or `[tool.themis]`) describes.

        `jobs` is the number of processes of a command or worker. Their decisions, and those of web
        services, are kept in `.themis/cache.sqlite` beside the file, or in `cache`; `cache=False`
        keeps them nowhere. Other keyword arguments override what the file says.
        """
        from themis.config.reader import read_config

        config = read_config(Path(path))
        return cls.from_config(
            config, jobs=jobs, cache=cache, trust_pickle=trust_pickle, **overrides
        )

    @classmethod
    def from_config(
        cls,
        config: Config,
        *,
        jobs: int | None = None,
        cache: CachePlace = None,
        trust_pickle: bool = False,
        listen_to_rows: ReadListener = hear_nothing,
        **overrides: Any,
    ) -> Audit:
        """The audit that a file describes which was read already; options as of `from_file`.

        `listen_to_rows` hears how many bytes of the profile's rows were read, and of how many.
        """
        from themis.config.reader import placing

        spec = config.subject
        settings = config.settings
        with placing(config):
            outputs = [loaded_output(each, config.folder) for each in config.outputs]
        options: dict[str, Any] = {
            "favourable": spec.favourable,
            "labels": spec.labels,
            "outputs": outputs,
            "max_failures": spec.max_failures,
            "max_undecided": spec.max_undecided,
            "repeats": spec.repeats,
            "deterministic": spec.deterministic,
            **{name: getattr(settings, name) for name in Settings.names()},
        }

        def make(schema: Schema, profile: People | None = None) -> Audit:
            with placing(config):
                subject = subject_from_options(
                    spec.kind,
                    spec.options,
                    schema,
                    config.folder,
                    jobs=jobs,
                    trust_pickle=trust_pickle,
                    version=spec.version,
                )
            kept = default_path(config.folder) if subject.traits.external else None
            given = {"profile": profile, **options, **overrides}
            audit = cls(subject, schema, **given, cache=kept if cache is None else cache)
            audit._remake = make
            return audit

        if config.profile is None:
            return make(config.schema)
        with placing(config):
            people = people_of(
                read_rows(
                    config.folder / config.profile.data,
                    only=columns_read(config.schema, config.profile.weights),
                    listen=listen_to_rows,
                ),
                config.schema,
                weights=config.profile.weights,
                unknown=config.profile.unknown,
                where="profile.data",
            )
        return make(people.schema, people)

    def close(self) -> None:
        """End the processes of the subject and let others use the cache; may be used again.

        A suite is complete then, and gets nothing more.
        """
        _close(self.runner, self.suite)

    def __enter__(self) -> Audit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def first_output(self) -> str | None:
        """The name of the first declared output, which is meant where none is named."""
        return next((each.name for each in self._views.outputs), None)

    def lacks_favourable(self, output: str | None = None) -> bool:
        """Whether there are outputs, and none so far was one that `favourable` names."""
        reading = self._views.of(output).sampler.reading
        seen = len(reading.labels.labels) > 0
        return seen and reading.has_favourable and not reading.labels.favourable.any()

    @property
    def all_inputs(self) -> Population:
        """The inputs that the schema allows, whomever they are drawn from."""
        return self._views.whole.population

    @property
    def profile_facts(self) -> Mapping[str, Any] | None:
        """What was given as profile, and how much of it fits; None without one."""
        return None if self._people is None else self._people.facts

    @property
    def cache_notice(self) -> Note | None:
        """What the user should know about the cache, if anything."""
        return next(iter(self._cache_notes), None)

    @property
    def noise(self) -> Noise | None:
        """How often inputs got another decision when they were run again, as known so far."""
        return self.probe.noise(self.settings.confidence)

    def _open_recall(self, subject: Subject, cache: CachePlace, layout: str) -> Recall | None:
        if cache is None or cache is False:
            return None
        if not subject.traits.external:
            self._cache_notes.append(Note.of("cache-not-used"))
            return None
        opened = Cache(Path(cache))
        if opened.is_taken:
            own = opened.writer == os.getpid() or None
            note = Note.of("cache-in-use", path=str(cache), process=opened.writer, own=own)
            self._cache_notes.append(note)
        return Recall(opened, subject, layout)

    def causal(self, *against: str, output: str | None = None, **settings: Any) -> CausalScore:
        """The causal score of a set (Def. 3.7): `audit.causal("race", error=0.01)`."""
        score = self._measure(against, "causal", self._views.of(output), settings)
        assert isinstance(score, CausalScore)
        return score

    def group(
        self,
        *against: str,
        output: str | None = None,
        statistic: Statistic | None = None,
        **settings: Any,
    ) -> GroupScore:
        """The group score of a set (Def. 3.5, 3.6): `audit.group("race", "sex")`.

        `statistic` says of which figure of a number: its "mean", or the "rate" above its cut.
        """
        view = self._views.for_groups(output, statistic)
        score = self._measure(against, "group", view, settings)
        assert isinstance(score, GroupScore)
        return score

    def score(
        self,
        sets: Iterable[Sequence[str]],
        measures: Sequence[Measure] = ("causal", "group"),
        *,
        output: str | None = None,
        limit: float | None = None,
        command: str = "score",
    ) -> Result:
        """Several sets and measures within one budget, as one result that can be saved.

        All outputs are measured, or only the one that `output` names. With a `limit` findings are
        run again as often as a verdict on it needs.
        """
        columns = [self.schema.columns_of(each) for each in sets]
        views = list(self._views.measured(measures, output))
        family = Family.of(self.settings, [measure for measure, _ in views] * len(columns))

        def measure_all(work: Work) -> None:
            for each in columns:
                for measure, view in views:
                    work.add(view.scorer.measure(each, measure, family.settings), limit)

        return self._run(command, measure_all, family)

    def search(
        self,
        threshold: float,
        measure: Measure = "causal",
        among: Iterable[str] | None = None,
        max_size: int | None = None,
        *,
        output: str | None = None,
        prune: bool = True,
        listen: SearchListener | None = None,
        **settings: Any,
    ) -> SearchResult:
        """All minimal sets whose score reaches a threshold (Def. 3.9); at 0, those above it.

        `among` restricts the characteristics that sets are made of, `max_size` the sets' size.
        With the stated confidence the whole answer holds: every found set is above threshold −
        error, and no set above threshold + error was missed. Where every input was run, which a
        search does once it is no dearer than to go on, the answer is exact.
        """
        family = Family.of_searches(self.settings.changed(**settings), [measure])
        own, columns = family.settings, self._among(among)
        start_budget(self.runner, own, self.probe)
        (result,) = self._views.searched(output, [measure]).searcher.search(
            [measure], threshold, columns, max_size, own, self.probe, prune=prune, listen=listen
        )
        self._look(own)
        result = weigh_search(result, self.probe, own)
        result = family.search(result)
        if self.runner.fails_too_often:
            raise SubjectError(self.runner.failure_message(), result=result)
        return result

    def search_plan(
        self, among: Iterable[str] | None = None, max_size: int | None = None
    ) -> SearchPlan:
        """How many sets a search would look at, and what that costs at the least."""
        return self._views.of(None).searcher.plan(self._among(among), max_size, self.settings)

    def search_all(
        self,
        threshold: float,
        measures: Sequence[Measure] = ("causal",),
        among: Iterable[str] | None = None,
        max_size: int | None = None,
        *,
        output: str | None = None,
        prune: bool = True,
        accepted: Accepted | None = None,
        listen: SearchListener | None = None,
    ) -> Result:
        """Searches for several measures within one budget, as one result that can be saved.

        With `accepted` it is for a check: found sets are held against the threshold right away.
        """
        columns = self._among(among)
        family = Family.of_searches(self.settings, measures)

        def find_all(work: Work) -> None:
            searcher = self._views.searched(output, measures).searcher
            work.add_searches(
                searcher.search(
                    measures,
                    threshold,
                    columns,
                    max_size,
                    family.settings,
                    self.probe,
                    prune=prune,
                    accepted=accepted,
                    listen=listen,
                )
            )

        return self._run("search", find_all, family)

    def apparent(
        self,
        rows: Any = None,
        against: str | Iterable[Any] | None = None,
        *,
        measures: Sequence[Measure] = ("causal", "group"),
        output: str | None = None,
        counterfactuals: CounterfactualChoice | None = None,
        unknown: Unknown = "drop",
        weights: str | Sequence[float] | None = None,
        draw: bool = False,
        only_data: bool = False,
    ) -> Result:
        """The scores of given people (Def. 3.8), beside those of all inputs unless `only_data`.

        `rows` is a table of pandas, polars or Arrow, a list of dictionaries, a dictionary of
        columns, or a path; `weights` a column of it, or a number for each row. Without rows
        they are those of the audit's profile. Counterfactuals of the causal score are "generated"
        (every admissible assignment), looked for "within" the rows, or "both"; `unknown` says
        what to do with rows that do not fit the schema. With `draw` the rows are sampled from,
        with intervals, where running them all is dearer.
        """
        if rows is None:
            people = self._own_people()
        else:
            given = rows_of(rows, only=columns_read(self.schema, weights))
            people = people_of(given, self.schema, weights=weights, unknown=unknown)
        sets = sets_of(self.schema, against)
        request = RowRequest(sets, measures, output, counterfactuals, draw, only_data)
        if people.schema != self.schema:
            with self._widened(people.schema) as wider:
                return wider._apparent(people, request)
        return self._apparent(people, request)

    def _own_people(self) -> People:
        if self._people is None:
            problem = "there are no rows to measure"
            remedy = "name a file or a table of people, or give a profile"
            raise RequestError([Mistake("no-rows", "rows", problem, remedy)])
        return self._people

    def _apparent(self, people: People, request: RowRequest) -> Result:
        whole = self._whole_views
        family = Family.of(self.settings, row_measures(request, whole))

        def measure_all(work: Work) -> None:
            for score in row_scores(request, people, self.sampler, whole, family.settings):
                work.add(score)

        return self._run("apparent", measure_all, family, data=people.facts)

    def _widened(self, schema: Schema) -> Audit:
        """The same audit with a wider schema; this one is closed."""
        if self._remake is None:
            problem = "a ready-made subject can't take a wider schema"
            remedy = "give the function or model itself, or widen the schema"
            raise RequestError([Mistake("extend", "unknown", problem, remedy)])
        self.close()
        audit = self._remake(schema)
        audit.settings = self.settings
        audit.sampler.keep_on_interrupt = self.sampler.keep_on_interrupt
        return audit

    def replay(
        self,
        source: Result | str | Path,
        *,
        listen: Callable[[int, int], None] | None = None,
    ) -> Replay:
        """What became of saved tests: those of a suite, or the witnesses of a result.

        `source` is a result or the path of either. Every input is run afresh. `listen` gets the
        number of inputs run so far and of all.
        """
        saved = read_tests(source, self.schema, self._views.outputs)
        start_budget(self.runner, self.settings)
        keep = self.sampler.keep_on_interrupt
        return replay_tests(self.runner, saved, listen=listen, keep_on_interrupt=keep)

    def _among(self, among: Iterable[str] | None) -> tuple[int, ...]:
        names = self.schema.names if among is None else among
        return self.schema.columns_of(names, where="--among")

    def _run(
        self,
        command: str,
        measure: Callable[[Work], None],
        family: Family,
        *,
        data: Mapping[str, Any] | None = None,
    ) -> Result:
        """Measure within the budget, and make what was learned a result."""
        work = Work(self.sampler, self.probe, family)
        work.do(measure)
        notes = [*sparse(self.population), *self._views.notes(self._favourable)]
        own = self.profile_facts if data is None else data
        return work.result(command, notes=notes, cache_notes=self._cache_notes, data=own)

    def _measure(
        self, against: tuple[str, ...], measure: Measure, view: View, settings: Any
    ) -> Score:
        family = Family.of(self.settings.changed(**settings), [measure])
        own = family.settings
        names = [name for part in against for name in part.split(",")]
        columns = self.schema.columns_of(names, where="against")
        start_budget(self.runner, own, self.probe)
        score = view.scorer.measure(columns, measure, own)
        score = self.probe.confirm(score, own)
        self._look(own)
        score = self.probe.weigh(score, own)
        score = family.score(with_commands(score, self.runner.subject))
        if self.runner.fails_too_often:
            raise SubjectError(self.runner.failure_message(), result=score)
        return score

    def _look(self, settings: Settings) -> None:
        """Look for noise among all inputs."""
        with self.runner.spending_reserve():
            self.probe.look(settings)

    def __repr__(self) -> str:
        return f"Audit({self.runner.subject.kind}, against any of {set_name(self.schema.names)})"


def _decisions(
    favourable: tuple[Value, ...],
    labels: Mapping[str, Iterable[str]] | None,
    outputs: tuple[Output, ...],
) -> Labels | AnswerLabels:
    """The decisions of a subject; raises RequestError where its labels make no sense."""
    if labels is None:
        return AnswerLabels(outputs) if outputs else Labels(favourable)
    meanings = Meanings(labels)
    mistakes = []
    if outputs:
        problem, remedy = "the outputs have labels of their own", "give them to Output(labels=…)"
        mistakes.append(Mistake("labels", "labels", problem, remedy))
    if favourable != DEFAULT_FAVOURABLE:
        found = favourable_mistakes(favourable, labels)
        mistakes += (Mistake("labels", "favourable", *each) for each in found)
    if mistakes:
        raise RequestError(mistakes)
    return Labels(favourable, meanings)


def _profile(given: Any, schema: Schema, weights: str | Sequence[float] | None) -> People | None:
    if given is None or isinstance(given, People):
        return given
    rows = rows_of(given, only=columns_read(schema, weights))
    return people_of(rows, schema, weights=weights, where="profile")


def _close(runner: Runner, suite: Suite | None) -> None:
    try:
        runner.close()
    finally:
        if suite is not None:
            suite.close()
