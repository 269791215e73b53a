"""An audit: one subject, one schema, one seed; everything measured in it shares what was run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from themis.audit.apparatus import Apparatus, Handling, View
from themis.audit.given import (
    CachePlace,
    check_made_up,
    given_people,
    options_of,
    place_of,
    profile_of,
    schema_of,
    subject_of,
    warn_of,
)
from themis.audit.precision import MEASURES, THRESHOLD, Family, precise_at_once
from themis.audit.rows import (
    CounterfactualChoice,
    RowRequest,
    favourable_outcomes,
    measure_rows,
    people_asked,
    sets_of,
)
from themis.audit.run import Sought, Work, start_budget
from themis.engine.account import Budget
from themis.events import Forecast, Listener, ignore
from themis.inputs.assignments import set_name
from themis.inputs.characteristics import Value
from themis.inputs.people import People, Unknown
from themis.inputs.population import Population
from themis.inputs.schema import Inputs, Schema
from themis.results.hooks import hook
from themis.results.model import (
    CausalScore,
    ExcessScore,
    GroupScore,
    Measure,
    Result,
    Score,
    SearchResult,
)
from themis.results.notes import Note
from themis.results.parts import Naming, Noise
from themis.scores.explanations.regions import failed_inputs
from themis.settings import Settings, Stopping
from themis.subjects.base import CostKind
from themis.subjects.decisions import DEFAULT_FAVOURABLE
from themis.subjects.outputs import Output, Similarity, Statistic

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from themis.audit.forecast import Everything
    from themis.config.reader import Config
    from themis.results.replays import Replay
    from themis.search.searcher import SearchPlan
    from themis.search.walk import Accepted

OneSet: TypeAlias = str | Sequence[str]  # the names of a set, or some of them


class Audit:
    """Measures how much a subject discriminates.

    `subject` is a function of a dictionary, `themis.batch(f)`, `themis.keywords(f)`, or an object
    with `predict`. `labels` say which texts mean the same decision, a label and its patterns, with
    `*` and `?` as in file names; then `favourable` names labels. Without them, texts that differ
    only in case, surrounding space or final punctuation are the same decision, unless
    `similar_texts` is "different". The settings given here are the
    defaults of every measurement. With `family` the confidence is that of all scores of one call
    of `score`, `search_all` or `apparent` together, and not of each by itself. `cache` is a file
    that keeps the decisions of subjects outside of this process for later runs. With `repeats` each
    output is the majority, or the mean, of that many runs. `cost` says what takes a subject's time:
    "calls" for few, large ones, as functions of a table and models get them, or "executions", as
    few as can be, which `max_executions` implies. With `ahead`, and no `max_executions`, slots of
    programs and services that would stand idle run what will probably be needed. With `profile`,
    rows of people (a table, dictionaries or a path), inputs are drawn from them instead of from all
    that the schema allows, by `profile_weights` (a column or numbers) if given. `suite` is a file
    that gets the tests that were made up, with their outputs. Rows of people are in documents, in
    messages and in a suite only with `show_rows`. `listen` hears the events of a run, of which
    `themis.events` has all. `close`, or a `with` statement, makes the suite complete and ends the
    processes that a subject keeps alive.

    >>> schema = Schema(race=["green", "purple"], savings=range(0, 100))
    >>> def loan(person):
    ...     return person["savings"] > (50 if person["race"] == "green" else 60)
    >>> audit = Audit(loan, schema, seed=42)
    >>> audit.causal("race").score
    0.1
    """

    naming: Naming | None  # the words of reports, where a file or `favourable` has some
    _named_sets: tuple[tuple[str, ...], ...] = ()  # by the file

    def __init__(
        self,
        subject: Any,
        schema: Schema | Inputs,
        *,
        seed: int = 0,
        stopping: Stopping | Literal["certified", "paper"] = Stopping.CERTIFIED,
        favourable: Iterable[Value] = DEFAULT_FAVOURABLE,
        labels: Mapping[str, Iterable[str]] | None = None,
        outputs: Iterable[Output] | Output | None = None,
        similar_texts: Similarity = "same",
        confidence: float = 0.99,
        family: bool = False,
        error: float = 0.05,
        exact: bool = False,
        max_executions: int | None = None,
        max_seconds: float | None = None,
        max_total_tokens: int | None = None,
        max_spend: float | None = None,
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
        given, schema = locals(), schema_of(schema)  # the arguments by their names
        read_profile = partial(given_people, profile, schema, profile_weights)
        if (people := read_profile()) is not None and people is not profile:
            warn_of(people.facts)
        self.schema = schema if people is None else people.schema
        self.settings = Settings(**{name: given[name] for name in Settings.names()})
        handling = Handling.of(given)
        self.naming, self.shows_rows = handling.naming, show_rows
        apparatus = Apparatus(subject, self.schema, handling, seed=seed, people=people, suite=suite)
        apparatus.read_profile = read_profile
        self._apparatus, self._views = apparatus, apparatus.views
        Budget.of(self.settings, apparatus.runner.subject)  # refuses what nothing can keep
        self.runner, self.sampler, self.probe = apparatus.runner, apparatus.sampler, apparatus.probe
        self.population, self.suite = apparatus.population, apparatus.suite
        self._closer = weakref.finalize(self, apparatus.close)

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
        listen: Listener = ignore,
        **overrides: Any,
    ) -> Audit:
        """The audit that a file describes which was read already; options as of `from_file`."""
        from themis.config.reader import placing

        options = {**options_of(config), **overrides}
        people = profile_of(config, listen)
        schema = config.schema if people is None else people.schema
        subject_for = partial(subject_of, config, jobs=jobs, trust_pickle=trust_pickle)
        subject = subject_for(schema)
        place = place_of(config, subject, jobs, executor, cache)
        with placing(config):
            audit = cls(subject, schema, **{"profile": people, **place, **options}, listen=listen)
        audit.naming = replace(config.report, rows=audit.shows_rows)
        audit._named_sets = config.against
        audit._apparatus.read_profile = partial(profile_of, config, listen)
        again = partial(Apparatus, handling=audit._apparatus.handling, seed=audit.settings.seed)

        def remake(wider: Schema, people: People | None) -> Apparatus:
            with placing(config):
                subject = subject_for(wider)
                return again(subject, wider, suite=options.get("suite"), people=people)

        audit._apparatus.remake = remake
        return audit

    def close(self) -> None:
        """End the processes of the subject and let others use the cache; may be used again.

        A suite is complete then, and gets nothing more.
        """
        self._apparatus.close()

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def first_output(self) -> str | None:
        """The name of the first declared output, which is meant where none is named."""
        return next((each.name for each in self._views.outputs), None)

    @property
    def default_sets(self) -> tuple[tuple[str, ...], ...]:
        """What is measured where no set is named: the file's sets, or each protected one."""
        return self._named_sets or tuple((name,) for name in self.schema.protected)

    def score_views(self, measures: Sequence[Measure] = MEASURES) -> list[tuple[Measure, View]]:
        """The scores that each set gets: of each output, by each of these that it has."""
        return list(self._views.measured(measures))

    def view(self, output: str | None = None) -> View:
        """An output as it is measured; the first one if none is named."""
        return self._views.of(output)

    @property
    def all_inputs(self) -> Population:
        """The inputs that the schema allows, whomever they are drawn from."""
        return self._views.whole.population

    @property
    def profile_facts(self) -> Mapping[str, Any] | None:
        """What was given as profile, and how much of it fits; None without one."""
        return self._apparatus.facts

    @property
    def shared_outputs(self) -> set[Value] | None:
        """The outputs so far that name nobody; None where all may be shown."""
        run = self._views.people_run
        return None if run is None or self.shows_rows else self._views.shared_outputs(run)

    @property
    def cache_notes(self) -> tuple[Note, ...]:
        """What the user should know about the cache so far."""
        return self._apparatus.cache_notes

    def precise_at_once(
        self,
        settings: Settings,
        sets: Iterable[Sequence[str]] | None = None,
        measures: Sequence[Measure] = MEASURES,
    ) -> Settings:
        """How sets, by default the default ones, are measured where nobody says how precisely."""
        wanted = self.default_sets if sets is None else sets
        views = self.score_views(measures)
        asked = [(self.schema.columns_of(names), views) for names in wanted]
        return precise_at_once(self._apparatus, settings, asked)

    @property
    def everything_sets(self) -> tuple[tuple[str, ...], ...]:
        """The sets that `everything` measures."""
        return self._everything(THRESHOLD, None, MEASURES).sets

    def foresee(
        self,
        threshold: float,
        *,
        max_size: int | None = None,
        measures: Sequence[Measure] = MEASURES,
        at_once: bool = False,
    ) -> Forecast:
        """What `everything` will cost, after a few trials."""
        plan = self._everything(threshold, max_size, measures)
        settings = plan.family(self.settings, self._views).settings
        return plan.forecast(self._apparatus, settings, at_once=at_once)

    @property
    def noise(self) -> Noise | None:
        """How often inputs got a different decision when run again, as known so far."""
        return self.probe.noise(self.settings.confidence)

    def failing(self, *, least: int = 0) -> tuple[Note, ...]:
        """How many inputs fail, of `least` or more that are run, and which, if that is certain."""
        confidence, run = self.settings.confidence, self._views.people_run
        note = failed_inputs(self.sampler, run, confidence, least=least)
        return () if note is None else (note,)

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

    def excess(self, *against: OneSet, output: str | None = None, **settings: Any) -> ExcessScore:
        """How much more often decisions differ with another value of a set than when asked again.

        For subjects that answer at random: what is measured is each input, asked several times.
        """
        score = self._measure(against, "excess", self._views.of(output), settings)
        assert isinstance(score, ExcessScore)
        return score

    def score(
        self,
        sets: str | Iterable[OneSet],
        measures: Sequence[Measure] = ("causal", "group"),
        *,
        output: str | None = None,
        limit: float | None = None,
        observed: bool = False,
        command: str = "score",
        at_once: bool = False,
    ) -> Result:
        """Several sets and measures within one budget, as one result that can be saved.

        All outputs are measured, or only the one that `output` names. With a `limit` findings are
        run again as often as a verdict on it needs. With `at_once` scores are more precise than
        asked, or exact, where that takes few executions of a function or a model. The rates of the
        protected characteristics' categories, which an annex shows, are in the result if all inputs
        were run anyway; with `observed` they are counted in any case, on a fixed number of base
        inputs.
        """
        columns = sets_of(self.schema, sets)
        views = list(self._views.measured(measures, output))
        family = Family.of(self.settings, [measure for measure, _ in views] * len(columns))
        asked: list[object] = []

        def measure_all(work: Work) -> None:
            if at_once:
                work.be_precise([(each, views) for each in columns])
            for each, (measure, view) in product(columns, views):
                asked.append(work.measure(each, measure, view, limit))
            work.observe(chain.from_iterable(columns), output=output, may_run=observed)

        result = self._run(command, measure_all, family)
        for question, score in zip(asked, result.scores, strict=False):
            self._apparatus.asked.keep(question, [score], family.settings)
        return result

    def everything(
        self,
        threshold: float = THRESHOLD,
        *,
        max_size: int | None = None,
        measures: Sequence[Measure] = MEASURES,
        at_once: bool = False,
    ) -> Result:
        """All a reader wants: protected characteristics, their pairs, a search among them, noise.

        Each protected characteristic and each pair of them gets its scores, and so do the sets that
        a file names; the search has the protected ones that reach the threshold together, of any
        size up to `max_size`. With `family` one confidence holds for all of it, and `at_once` is
        that of `score`. The audit's `listen` hears, after a few trials, what it will cost, and each
        step that begins. A suite gets the tests of the scores, not those of the search.
        """
        from themis.search.deciding import check_request

        check_request(threshold, max_size)
        plan = self._everything(threshold, max_size, measures)
        family = plan.family(self.settings, self._views)

        def measure(work: Work) -> None:
            plan.measure(work, self._apparatus, family.settings, at_once=at_once)

        return self._run("audit", measure, family)

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
        **settings: Any,
    ) -> SearchResult:
        """All minimal sets whose score reaches a threshold (Def. 3.9); at 0, those above it.

        `among` restricts the characteristics that sets are made of, `max_size` the sets' size.
        With the stated confidence the whole answer holds: every found set is above threshold −
        error, and no set above threshold + error was missed. Where every input was run, which a
        search does once it costs no more than to go on, the answer is exact. With `decide_only` the
        found sets are not measured: it is certain that they are above threshold − error, no more.
        """
        check_made_up(self.schema, self.profile_facts)
        family = Family.of_searches(self.settings.changed(**settings), [measure])
        sought = Sought(
            [measure], threshold, self._among(among), max_size, output,
            prune=prune, decide_only=decide_only,
        )  # fmt: skip
        work = Work(self._apparatus, family)
        work.do(lambda work: work.search(sought))
        return work.only_search(self.naming)

    def search_plan(
        self,
        threshold: float,
        among: Iterable[str] | None = None,
        max_size: int | None = None,
        measure: Measure = "causal",
    ) -> SearchPlan:
        """How many sets a search would look at, and what it costs if it finds nothing."""
        searcher, columns = self._views.of(None).searcher, self._among(among)
        return searcher.plan(columns, max_size, self.settings, threshold, measure)

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
    ) -> Result:
        """Searches for several measures within one budget, as one result that can be saved.

        With `accepted` it is for a check: found sets are held against the threshold right away.
        With `decide_only` found sets are not measured.
        """
        sought = Sought(
            measures, threshold, self._among(among), max_size, output,
            prune=prune, decide_only=decide_only, accepted=accepted,
        )  # fmt: skip
        family = Family.of_searches(self.settings, measures)
        return self._run("search", lambda work: work.search(sought), family)

    def apparent(
        self,
        rows: Any = None,
        against: str | Iterable[Any] | None = None,
        *,
        measures: Sequence[Measure] = ("causal", "group"),
        output: str | None = None,
        counterfactuals: CounterfactualChoice | None = None,
        unknown: Unknown | None = None,
        weights: str | Sequence[float] | None = None,
        draw: bool = False,
        only_data: bool = False,
        label: str | None = None,
        label_favourable: Iterable[Value] | Value | None = None,
        proxies: bool = False,
        sensitive_features: Any = None,
    ) -> Result:
        """The scores of given people (Def. 3.8), beside those of all inputs unless `only_data`.

        `rows` is a table of pandas, polars or Arrow, a list of dictionaries, a dictionary of
        columns, or a path; `weights` a column of it, or a number for each row. Without rows
        they are those of the audit's profile. Counterfactuals of the causal score are "generated"
        (every admissible assignment), looked for "within" the rows, or "both"; `unknown` says
        what to do with rows that do not fit the schema ("keep", unless a profile says something
        else). With `output` all of this is about that one of several outputs; known outcomes and
        proxies are about the first one where none is named. With `draw` the rows are sampled from,
        with intervals, where running them all is more expensive. `label` is a column with known
        outcomes: `outcomes` of the result then has error rates by group. An outcome is favourable
        if it is a favourable output, or one of `label_favourable`. With `proxies` the result also
        says which other characteristics may stand in for the sets. Sets may have columns of the
        rows that the schema lacks: people are compared by them, the subject does not get them.
        `sensitive_features` are such columns beside the rows: a series, an array, a table or a
        mapping, each a set by itself.
        """
        people, sets = people_asked(
            self._apparatus, rows, against, self.default_sets, features=sensitive_features,
            label=label, unknown=unknown, weights=weights,
        )  # fmt: skip
        request = RowRequest(
            sets_of(people.schema, sets),
            measures,
            output,
            counterfactuals,
            draw,
            only_data or bool(people.schema.open),
            favourable_outcomes(label, label_favourable),
            labelled=label is not None,
            proxies=proxies,
        )
        if people.schema == self.schema:
            return measure_rows(self._apparatus, people, request, self.settings, self.naming)
        with closing(self._apparatus.widened(people)) as wider:
            return measure_rows(wider, people, request, self.settings, self.naming)

    def replay(self, source: Result | str | Path) -> Replay:
        """What became of saved tests: those of a suite, or the witnesses of a result.

        `source` is a result or the path of either. Every input is run afresh.
        """
        from themis.audit.replay import replay_tests
        from themis.audit.saved_tests import read_tests

        saved = read_tests(source, self.schema, self._views.outputs)
        start_budget(self.runner, self.settings)
        keep = self.sampler.keep_on_interrupt
        saved.personal |= self._apparatus.people is not None
        listen, rows = self.sampler.listen, self.shows_rows
        return replay_tests(self.runner, saved, listen=listen, keep_on_interrupt=keep, rows=rows)

    def _everything(
        self, threshold: float, max_size: int | None, measures: Sequence[Measure]
    ) -> Everything:
        from themis.audit.forecast import Everything

        return Everything.of(self.schema, self._named_sets, threshold, max_size, measures)

    def _among(self, among: Iterable[str] | None) -> tuple[int, ...]:
        return self.schema.free if among is None else self.schema.columns_of(among, where="among")

    def _run(self, command: str, measure: Callable[[Work], None], family: Family) -> Result:
        """Measure within the budget, and make what was learned a result."""
        check_made_up(self.schema, self.profile_facts)
        work = Work(self._apparatus, family)
        work.do(measure)
        return work.result(command, self.naming)

    def _measure(
        self, against: tuple[OneSet, ...], measure: Measure, view: View, settings: Any
    ) -> Score:
        check_made_up(self.schema, self.profile_facts)
        family = Family.of(self.settings.changed(**settings), [measure])
        parts = [[each] if isinstance(each, str) else each for each in against]
        names = [name for part in parts for text in part for name in text.split(",")]
        columns = self.schema.columns_of(names, where="against")
        work, asked = Work(self._apparatus, family), []
        work.do(lambda work: asked.append(work.measure(columns, measure, view)))
        score = work.only_score(self.naming)
        for question in asked:  # none where it was interrupted
            self._apparatus.asked.keep(question, [score], family.settings)
        return score

    def _repr_html_(self) -> str:
        show = hook("audit")
        html: str = show(self.runner.subject.kind, self.schema, self.profile_facts, self.settings)
        return html

    def __repr__(self) -> str:
        return f"Audit({self.runner.subject.kind}, against any of {set_name(self.schema.names)})"
