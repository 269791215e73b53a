"""An audit: one subject, one schema, one seed; everything measured in it shares what was run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from themis.audit.asked import Asked, question_of
from themis.audit.everything import (
    THRESHOLD,
    Everything,
    Steps,
    ignore_forecast,
    ignore_steps,
)
from themis.audit.family import Family
from themis.audit.forecast import Forecast, Forecaster
from themis.audit.given import (
    CachePlace,
    check_decisions,
    check_suite,
    decisions_of,
    given_people,
    open_recall,
    options_of,
    profile_of,
    spread,
    subject_of,
    warn_of,
)
from themis.audit.notes import sparse, unlike_rows, with_commands
from themis.audit.replay import replay_tests
from themis.audit.rows import (
    CounterfactualChoice,
    RowRequest,
    favourable_outcomes,
    missing_proxies,
    row_measures,
    row_outcomes,
    row_proxies,
    row_scores,
    sets_of,
)
from themis.audit.run import Work, of_rows, start_budget
from themis.audit.saved_tests import read_tests
from themis.audit.views import View, Views
from themis.engine.cache import default_path
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
from themis.inputs.rows import rows_of
from themis.inputs.schema import Schema
from themis.results.hooks import hook
from themis.results.model import CausalScore, GroupScore, Measure, Result, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.outcomes import Outcomes, Proxy
from themis.results.parts import Naming, Noise
from themis.results.replays import Replay
from themis.scores.accounts import Part, asked_again, metered
from themis.scores.noise import NoiseProbe
from themis.scores.people import PeopleRun
from themis.scores.proxies import ranked
from themis.search.searcher import Accepted, SearchPlan, check_request, weigh_search
from themis.settings import Settings, Stopping, check_cost, check_repeats
from themis.subjects.base import CostKind
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.loading import subject_from
from themis.subjects.outputs import Output, Statistic, as_outputs

if TYPE_CHECKING:
    from themis.config.reader import Config


MEASURES: tuple[Measure, ...] = ("causal", "group")
OneSet: TypeAlias = str | Sequence[str]  # the names of a set, or some of them


class Audit:
    """Measures how much a subject discriminates.

    `subject` is a function of a dictionary, `themis.batch(f)`, `themis.keywords(f)`, or an object
    with `predict`. `labels` say which texts mean the same decision, a label and its patterns, with
    `*` and `?` as in file names; then `favourable` names labels. The settings given here are the
    defaults of every measurement. With `family` the confidence is that of all scores of one call
    of `score`, `search_all` or `apparent` together, and not of each by itself. `cache` is a file
    that keeps the decisions of subjects outside of this process for later runs. With `repeats` each
    output is the majority, or the mean, of so many runs. `cost` says what takes a subject's time:
    "calls" for few, large ones, as functions of a table and models get them, or "executions", as
    few as can be, which `max_executions` implies. With `ahead`, and no `max_executions`, slots of
    programs and services that would stand idle run what will probably be needed. With `profile`,
    rows of people (a table, dictionaries or a path), inputs are drawn from them instead of from all
    that the schema allows, by `profile_weights` (a column or numbers) if given. `suite` is a file
    that gets the tests that were made up, with their outputs. Rows of people are in documents, in
    messages and in a suite only with `show_rows`. `close`, or a `with` statement, makes
    it complete and ends the processes that a subject keeps alive.

    >>> schema = Schema(race=["green", "purple"], savings=range(0, 100))
    >>> def loan(person):
    ...     return person["savings"] > (50 if person["race"] == "green" else 60)
    >>> audit = Audit(loan, schema, seed=42)
    >>> audit.causal("race").score
    0.1
    """

    suite: Suite | None = None  # the file that gets the tests, if one was asked for
    naming: Naming | None = None  # the words of reports, where a file or `favourable` has some
    _read_profile: Callable[[str], People | None]  # again, with a column of known outcomes
    _named_sets: tuple[tuple[str, ...], ...] = ()  # by the file

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
        exact: bool = False,
        max_executions: int | None = None,
        max_seconds: float | None = None,
        ahead: bool = True,
        max_assignments: int = 1_000,
        max_failures: float = 0.0,
        max_undecided: float = 0.0,
        repeats: int = 1,
        deterministic: bool = False,
        cost: CostKind | None = None,
        probe: int | None = None,
        max_noise: float | None = None,
        cache: CachePlace = None,
        executor: str | Executor | None = None,
        profile: Any = None,
        profile_weights: str | Sequence[float] | None = None,
        suite: str | Path | None = None,
        show_rows: bool = False,
        listen: Listener = ignore,
    ) -> None:
        self._people = given_people(profile, schema, profile_weights)
        self._read_profile = partial(given_people, profile, schema, profile_weights)
        if self._people is not None:
            schema = self._people.schema
            if self._people is not profile:
                warn_of(self._people.facts)
        self.schema = schema
        self.settings = Settings(
            confidence=confidence,
            family=family,
            error=error,
            seed=seed,
            stopping=stopping,  # type: ignore[arg-type]  # text becomes a Stopping
            exact=exact,
            max_executions=max_executions,
            max_seconds=max_seconds,
            ahead=ahead,
            max_assignments=max_assignments,
            probe=probe,
            max_noise=max_noise,
        )
        check_repeats(repeats)
        check_cost(cost)
        self._favourable = tuple(favourable)
        if self._favourable != DEFAULT_FAVOURABLE or show_rows:
            named = () if self._favourable == DEFAULT_FAVOURABLE else self._favourable
            self.naming = Naming(favourable=named, rows=show_rows)
        self.shows_rows = show_rows
        declared = as_outputs(outputs)
        decisions = decisions_of(self._favourable, labels, declared)
        self._opening_notes: list[Note] = []
        made = subject_from(subject, schema)
        own = spread(made, executor, self._opening_notes)
        if declared:
            own.structured = True
        check_decisions(made, self._favourable, labels)
        self.runner = Runner(
            own,
            decisions,
            max_failures=max_failures,
            max_undecided=max_undecided,
            recall=open_recall(own, cache, decisions.layout, self._opening_notes),
            runs=repeats,
            cost=cost,
        )
        self.runner.failures.personal = self._people is not None and not show_rows
        self.population = Population.of(schema)
        if self._people is not None:
            self.population = Population.of_people(schema, self._people.codes, self._people.weights)
        self.sampler = Sampler(self.population, self.runner, seed, listen)
        if suite is not None:
            check_suite(self._people, show_rows=show_rows)
            runner, of_people = self.runner, self._people is not None
            self.suite = Suite(
                Path(suite), schema, runner.labels, runner.failures, of_people=of_people
            )
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
            "cost": cost,
            "cache": cache,
            "executor": executor,
            "show_rows": show_rows,
            "listen": listen,
        }
        self._remake: Callable[[Schema], Audit] | None = None
        if made is not subject:
            self._remake = lambda wider: Audit(subject, wider, **same)
        self._asked = Asked()
        self._observed: dict[object, tuple[tuple[Outcomes, ...], tuple[Proxy, ...]]] = {}  # in rows
        self._wider: dict[str, Audit] = {}  # the same with wider schemas, which rows asked for
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

        `jobs` is the number of processes. Decisions of commands and workers, and those of web
        services, are kept in `.themis/cache.sqlite` beside the file, or in `cache`; `cache=False`
        keeps them nowhere. Other keyword arguments override what the file says.
        """
        from themis.config.reader import read_config

        config = read_config(Path(path))
        audit = cls.from_config(
            config, jobs=jobs, cache=cache, trust_pickle=trust_pickle, **overrides
        )
        warn_of(audit.profile_facts)
        return audit

    @classmethod
    def from_config(
        cls,
        config: Config,
        *,
        jobs: int | None = None,
        executor: str | Executor | None = None,
        cache: CachePlace = None,
        trust_pickle: bool = False,
        listen_to_rows: ReadListener = hear_nothing,
        **overrides: Any,
    ) -> Audit:
        """The audit that a file describes which was read already; options as of `from_file`.

        `listen_to_rows` hears how many bytes of the profile's rows were read, and of how many.
        """
        from themis.config.reader import placing

        options = {**options_of(config), **overrides}

        def make(schema: Schema, profile: People | None = None) -> Audit:
            subject = subject_of(config, schema, jobs=jobs, trust_pickle=trust_pickle)
            kept = default_path(config.folder) if subject.traits.external else None
            where = executor
            if where is None and (jobs or 1) > 1 and not subject.traits.external:
                where = f"processes:{jobs}"
            given = {"profile": profile, "executor": where, **options}
            with placing(config):
                audit = cls(subject, schema, **given, cache=kept if cache is None else cache)
            audit._remake = make
            audit._named_sets = config.against
            audit.naming = replace(config.report, rows=audit.shows_rows)
            audit._read_profile = partial(profile_of, config, listen_to_rows)
            return audit

        people = profile_of(config, listen_to_rows)
        return make(config.schema) if people is None else make(people.schema, people)

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

    @property
    def default_sets(self) -> tuple[tuple[str, ...], ...]:
        """What is measured where no set is named: the file's sets, or each protected one."""
        return self._named_sets or tuple((name,) for name in self.schema.protected)

    @property
    def score_views(self) -> list[tuple[Measure, View]]:
        """The scores that each set gets: of each output, by each measure that it has."""
        return list(self._views.measured(MEASURES))

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
    def cache_notes(self) -> tuple[Note, ...]:
        """What the user should know about the cache so far."""
        recall = self.runner.recall
        if recall is None or not recall.damaged:
            return tuple(self._opening_notes)
        damage = Note.of("cache-damaged", path=str(recall.cache.path), decisions=recall.damaged)
        return (*self._opening_notes, damage)

    @property
    def noise(self) -> Noise | None:
        """How often inputs got a different decision when run again, as known so far."""
        return self.probe.noise(self.settings.confidence)

    def causal(self, *against: OneSet, output: str | None = None, **settings: Any) -> CausalScore:
        """The causal score of a set (Def. 3.7): `audit.causal("race", error=0.01)`.

        Several names are one set, also in a list: `audit.causal(["sex", "age"])`.
        """
        score = self._measure(against, "causal", self._views.of(output), settings)
        assert isinstance(score, CausalScore)
        return score

    def group(
        self,
        *against: OneSet,
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
        asked: list[object] = []

        def measure_all(work: Work) -> None:
            for each in columns:
                for measure, view in views:
                    asked.append(self._add_score(work, each, measure, view, family, limit))

        result = self._run(command, measure_all, family)
        for question, score in zip(asked, result.scores, strict=False):
            self._asked.keep(question, [score], family.settings)
        return result

    def _add_score(
        self,
        work: Work,
        columns: tuple[int, ...],
        measure: Measure,
        view: View,
        family: Family,
        limit: float | None = None,
    ) -> object:
        """Measure one score of a command unless it was asked for before; gives the question."""
        question = question_of(columns, measure, view, family.settings, limit)
        if not work.add_known(self._asked.answers(question)):
            work.add(view.scorer.measure(columns, measure, family.settings), limit)
        return question

    def everything(
        self,
        threshold: float = THRESHOLD,
        *,
        max_size: int | None = None,
        announce: Callable[[Forecast], None] = ignore_forecast,
        listen: SearchListener | None = None,
        listen_to_steps: Steps = ignore_steps,
    ) -> Result:
        """All a reader wants: protected characteristics, their pairs, a search among them, noise.

        Each protected characteristic and each pair of them gets its scores, and so do the sets that
        a file names; the search has the protected ones that reach the threshold together, of any
        size up to `max_size`. With `family` one confidence holds for all of it. `announce` hears,
        after a few trials, what it will cost; `listen_to_steps` which step of how many begins. A
        suite gets the tests of the scores, not those of the search.
        """
        check_request(threshold, max_size)
        plan = Everything.of(self.schema, self._named_sets, threshold, max_size)
        views, searched = self.score_views, self._views.searchable(MEASURES)
        family = plan.family(self.settings, [measure for measure, _ in views], searched)
        scores = [(self.schema.columns_of(names), *view) for names in plan.sets for view in views]
        steps, among = len(scores) + bool(plan.among), self._among(plan.among) if plan.among else ()

        def measure_all(work: Work) -> None:
            asked = [(columns, measure) for columns, measure, _ in scores]
            forecaster = Forecaster(self.sampler, family.settings)
            announce(forecaster.forecast(asked, among, max_size, threshold))
            for number, score in enumerate(scores, start=1):
                listen_to_steps(number, steps)
                self._add_score(work, *score, family)
            if plan.among:
                listen_to_steps(steps, steps)
                if self.suite is not None:  # what a search tries would be many times as much
                    self.suite.holds_all = True
                searcher, own = self._views.searched(None, searched).searcher, family.settings
                work.add_searches(
                    searcher.search(
                        searched, threshold, among, max_size, own, self.probe, listen=listen
                    )
                )

        return self._run("audit", measure_all, family)

    def search(
        self,
        threshold: float,
        measure: Measure = "causal",
        among: Iterable[str] | None = None,
        max_size: int | None = None,
        *,
        output: str | None = None,
        prune: bool = True,
        decide_only: bool = False,
        listen: SearchListener | None = None,
        **settings: Any,
    ) -> SearchResult:
        """All minimal sets whose score reaches a threshold (Def. 3.9); at 0, those above it.

        `among` restricts the characteristics that sets are made of, `max_size` the sets' size.
        With the stated confidence the whole answer holds: every found set is above threshold −
        error, and no set above threshold + error was missed. Where every input was run, which a
        search does once it costs no more than to go on, the answer is exact. With `decide_only` the
        found sets are not measured: it is certain that they are above threshold − error, no more.
        """
        family = Family.of_searches(self.settings.changed(**settings), [measure])
        own, columns = family.settings, self._among(among)
        start_budget(self.runner, own, self.probe)
        (found,) = self._views.searched(output, [measure]).searcher.search(
            [measure],
            threshold,
            columns,
            max_size,
            own,
            self.probe,
            prune=prune,
            decide_only=decide_only,
            listen=listen,
        )

        def weigh() -> SearchResult:
            self._look(own)
            return self._with_example(weigh_search(found, self.probe, own), found.output)

        result = family.search(metered(self.runner, weigh))
        named = tuple(map(self._named, result.minimal_sets))
        result = replace(result, minimal_sets=named)
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
        decide_only: bool = False,
        accepted: Accepted | None = None,
        listen: SearchListener | None = None,
    ) -> Result:
        """Searches for several measures within one budget, as one result that can be saved.

        With `accepted` it is for a check: found sets are held against the threshold right away.
        With `decide_only` found sets are not measured.
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
                    decide_only=decide_only,
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
        unknown: Unknown = "keep",
        weights: str | Sequence[float] | None = None,
        draw: bool = False,
        only_data: bool = False,
        label: str | None = None,
        label_favourable: Iterable[Value] | Value | None = None,
        proxies: bool = False,
    ) -> Result:
        """The scores of given people (Def. 3.8), beside those of all inputs unless `only_data`.

        `rows` is a table of pandas, polars or Arrow, a list of dictionaries, a dictionary of
        columns, or a path; `weights` a column of it, or a number for each row. Without rows
        they are those of the audit's profile. Counterfactuals of the causal score are "generated"
        (every admissible assignment), looked for "within" the rows, or "both"; `unknown` says
        what to do with rows that do not fit the schema. With `draw` the rows are sampled from,
        with intervals, where running them all is more expensive. `label` is a column with known
        outcomes: `outcomes` of the result then has error rates by group. An outcome is favourable
        if it is a favourable output, or one of `label_favourable`. With `proxies` the result also
        says which other characteristics may stand in for the sets.
        """
        if rows is None:
            people = self._own_people(label)
        else:
            given = rows_of(rows, only=columns_read(self.schema, weights, label))
            if unknown == "keep" and self._remake is None:  # a ready-made subject is as it is
                unknown = "drop"
            people = people_of(given, self.schema, weights=weights, unknown=unknown, label=label)
            if given is not rows:
                warn_of(people.facts)
        request = RowRequest(
            sets_of(self.schema, self.default_sets if against is None else against),
            measures,
            output,
            counterfactuals,
            draw,
            only_data,
            favourable_outcomes(label, label_favourable),
            labelled=label is not None,
            proxies=proxies,
        )
        if people.schema != self.schema:
            with self._widened(people.schema) as wider:
                return wider._apparent(people, request)
        return self._apparent(people, request)

    def _own_people(self, label: str | None) -> People:
        if self._people is None:
            problem = "there are no rows to measure"
            remedy = "name a file or a table of people, or give a profile"
            raise RequestError([Mistake("no-rows", "rows", problem, remedy)])
        people = self._people if label is None else self._read_profile(label)
        assert people is not None
        return people

    def _apparent(self, people: People, request: RowRequest) -> Result:
        whole = self._whole_views
        self.runner.failures.personal = not self.shows_rows
        family = Family.of(self.settings, row_measures(request, whole))
        question = (people.digest, str(request), family.settings)

        def measure_all(work: Work) -> None:
            work.outcomes, work.proxies = self._observed.get(question, ((), ()))
            if work.add_known(self._asked.answers(question)):
                return
            run = PeopleRun(self.sampler, people)
            work.outcomes = row_outcomes(request, run, whole, self.settings)
            for score in row_scores(request, run, self.sampler, whole, family.settings):
                work.add(score)
            for proxy in row_proxies(request, run, whole, self.settings):
                work.proxies = ranked([*work.proxies, proxy])

        unlike = () if request.only_data else unlike_rows(people, whole.whole.population)
        result = self._run("apparent", measure_all, family, data=people.facts, notes=unlike)
        result = replace(result, notes=(*result.notes, *missing_proxies(result, request, people)))
        if result.stopped is Ending.DONE or not request.proxies:  # else some may be missing
            self._asked.keep(question, result.scores, self.settings)
            self._observed[question] = result.outcomes, result.proxies
        return result

    def _widened(self, schema: Schema) -> Audit:
        """The same audit with a wider schema; this one is closed."""
        if self._remake is None:
            problem = "a ready-made subject can't take a wider schema"
            remedy = "give the function or model itself, or widen the schema"
            raise RequestError([Mistake("extend", "unknown", problem, remedy)])
        self.close()
        described = f"{schema.to_dict()} {schema.extra}"
        if described not in self._wider:
            self._wider[described] = self._remake(schema)
        audit = self._wider[described]
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
        saved.personal |= self._people is not None
        return replay_tests(
            self.runner, saved, listen=listen, keep_on_interrupt=keep, rows=self.shows_rows
        )

    def _among(self, among: Iterable[str] | None) -> tuple[int, ...]:
        if among is None:
            return self.schema.free
        return self.schema.columns_of(among, where="among")

    def _run(
        self,
        command: str,
        measure: Callable[[Work], None],
        family: Family,
        *,
        data: Mapping[str, Any] | None = None,
        notes: Iterable[Note] = (),
    ) -> Result:
        """Measure within the budget, and make what was learned a result."""
        own = self.profile_facts if data is None else data
        work = Work(self.sampler, self.probe, family, own)
        work.do(measure)
        notes = [*notes, *sparse(self.population), *self._views.notes(self._favourable)]
        result = work.result(command, notes=notes, cache_notes=self.cache_notes, report=self.naming)
        return replace(result, scores=tuple(map(self._named, result.scores)))

    def _named(self, score: Score) -> Score:
        """The score with the words of this audit, for where it is shown alone."""
        return score if self.naming is None else replace(score, naming=self.naming)

    def _measure(
        self, against: tuple[OneSet, ...], measure: Measure, view: View, settings: Any
    ) -> Score:
        family = Family.of(self.settings.changed(**settings), [measure])
        own = family.settings
        parts = [[each] if isinstance(each, str) else each for each in against]
        names = [name for part in parts for text in part for name in text.split(",")]
        columns = self.schema.columns_of(names, where="against")
        question = question_of(columns, measure, view, own)
        for known in self._asked.answers(question):
            return self.probe.weigh(asked_again(known), own, may_run=False)
        start_budget(self.runner, own, self.probe)
        found = of_rows(view.scorer.measure(columns, measure, own), self.profile_facts)
        measured = self.probe.confirm(found, own)

        def weigh() -> Score:
            self._look(own)
            weighed = self._with_example(self.probe.weigh(measured, own), measured.output)
            return with_commands(weighed, self.runner.subject)

        score = self._named(family.score(metered(self.runner, weigh)))
        if self.runner.fails_too_often:
            raise SubjectError(self.runner.failure_message(), result=score)
        self._asked.keep(question, [score], own)
        return score

    def _with_example(self, part: Part, output: str | None) -> Part:
        """An answer that stands alone; of a subject that is not consistent, with an example."""
        if not self.probe.finds_in(output):
            return part
        return replace(part, notes=(*part.notes, *self.probe.examples()))

    def _look(self, settings: Settings) -> None:
        """Look for noise among all inputs."""
        with self.runner.spending_reserve():
            self.probe.look(settings)

    def _repr_html_(self) -> str:
        show = hook("audit")
        html: str = show(self.runner.subject.kind, self.schema, self.profile_facts, self.settings)
        return html

    def __repr__(self) -> str:
        return f"Audit({self.runner.subject.kind}, against any of {set_name(self.schema.names)})"


def _close(runner: Runner, suite: Suite | None) -> None:
    try:
        runner.close()
    finally:
        if suite is not None:
            suite.close()
