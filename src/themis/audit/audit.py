"""An audit: one subject, one schema, one seed; everything measured in it shares what was run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from themis.audit.apparatus import Apparatus, Handling, View
from themis.audit.given import (
    CachePlace,
    Described,
    check_made_up,
    given_people,
    schema_of,
    warn_of,
)
from themis.audit.precision import MEASURES, THRESHOLD, Family
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
from themis.events import Listener, ignore
from themis.inputs.assignments import set_name
from themis.inputs.characteristics import Value
from themis.inputs.people import People, Unknown
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
    named_sets: tuple[tuple[str, ...], ...] = ()  # by the file, if any are

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
        self.apparatus = apparatus = Apparatus(
            subject, self.schema, handling, seed=seed, people=people, suite=suite
        )
        apparatus.read_profile = read_profile
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

        config, options = read_config(Path(path)), {**overrides, "cache": cache}
        audit = cls.from_config(config, jobs=jobs, trust_pickle=trust_pickle, **options)
        warn_of(audit.apparatus.facts)
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

        described = Described(config, jobs, trust_pickle, listen)
        options, people = {**described.options(), **overrides}, described.people()
        schema = config.schema if people is None else people.schema
        subject = described.subject(schema)
        place = described.place(subject, executor, cache)
        with placing(config):
            audit = cls(subject, schema, **{"profile": people, **place, **options}, listen=listen)
        audit.naming = replace(config.report, rows=audit.shows_rows)
        audit.named_sets = config.against
        apparatus, suite = audit.apparatus, options.get("suite")
        handling, seed = apparatus.handling, audit.settings.seed  # it must not keep the audit alive

        def remake(wider: Schema, people: People | None) -> Apparatus:
            own = described.subject(wider)
            with placing(config):
                return Apparatus(own, wider, handling, seed=seed, people=people, suite=suite)

        apparatus.read_profile, apparatus.remake = described.people, remake
        return audit

    def close(self) -> None:
        """End the processes of the subject and let others use the cache; may be used again.

        A suite is complete then, and gets nothing more.
        """
        self.apparatus.close()

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def first_output(self) -> str | None:
        """The name of the first declared output, which is meant where none is named."""
        return next((each.name for each in self.apparatus.handling.outputs), None)

    @property
    def default_sets(self) -> tuple[tuple[str, ...], ...]:
        """What is measured where no set is named: the file's sets, or each protected one."""
        return self.named_sets or tuple((name,) for name in self.schema.protected)

    @property
    def noise(self) -> Noise | None:
        """How often inputs got a different decision when run again, as known so far."""
        return self.probe.noise(self.settings.confidence)

    def failing(self, *, least: int = 0) -> tuple[Note, ...]:
        """How many inputs fail, of `least` or more that are run, and which, if that is certain."""
        confidence, run = self.settings.confidence, self.apparatus.views.people_run
        note = failed_inputs(self.sampler, run, confidence, least=least)
        return () if note is None else (note,)

    def causal(self, *against: OneSet, output: str | None = None, **settings: Any) -> CausalScore:
        """The causal score of a set (Def. 3.7): `audit.causal("race", error=0.01)`.

        Several names are one set, also in a list: `audit.causal(["sex", "age"])`.
        """
        score = self._measure(against, "causal", self.apparatus.views.of(output), settings)
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
        view = self.apparatus.views.for_groups(output, statistic)
        score = self._measure(against, "group", view, settings)
        assert isinstance(score, GroupScore)
        return score

    def excess(self, *against: OneSet, output: str | None = None, **settings: Any) -> ExcessScore:
        """How much more often decisions differ with another value of a set than when asked again.

        For subjects that answer at random: what is measured is each input, asked several times.
        """
        score = self._measure(against, "excess", self.apparatus.views.of(output), settings)
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
        wanted = self.apparatus.views.wanted(columns, measures, output)
        family = Family.of(self.settings, [measure for _, measure, _ in wanted])

        def measure_all(work: Work) -> None:
            if at_once:
                work.be_precise(wanted)
            for each in wanted:
                work.measure(each, limit)
            work.observe(chain.from_iterable(columns), output=output, may_run=observed)

        work = self._work(measure_all, family)
        result = work.result(command, self.naming)
        work.remember(result.scores)
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
        from themis.audit.forecast import Everything
        from themis.search.deciding import check_request

        check_request(threshold, max_size)
        plan = Everything.of(self.schema, self.named_sets, threshold, max_size, measures)
        family = plan.family(self.settings, self.apparatus.views)
        measure = partial(plan.measure, self.apparatus, family.settings, at_once=at_once)
        return self._work(measure, family).result("audit", self.naming)

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
        family = Family.of_searches(self.settings.changed(**settings), [measure])
        sought = Sought(
            [measure], threshold, self._among(among), max_size, output,
            prune=prune, decide_only=decide_only,
        )  # fmt: skip
        return self._work(lambda work: work.search(sought), family).only_search(self.naming)

    def search_plan(
        self,
        threshold: float,
        among: Iterable[str] | None = None,
        max_size: int | None = None,
        measure: Measure = "causal",
    ) -> SearchPlan:
        """How many sets a search would look at, and what it costs if it finds nothing."""
        searcher, columns = self.apparatus.views.of(None).searcher, self._among(among)
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
        """
        sought = Sought(
            measures, threshold, self._among(among), max_size, output,
            prune=prune, decide_only=decide_only, accepted=accepted,
        )  # fmt: skip
        family = Family.of_searches(self.settings, measures)
        work = self._work(lambda work: work.search(sought), family)
        return work.result("search", self.naming)

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
            self.apparatus, rows, against, self.default_sets, features=sensitive_features,
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
        is_wider, own = people.schema != self.schema, self.apparatus
        with closing(own.widened(people)) if is_wider else nullcontext(own) as apparatus:
            return measure_rows(apparatus, people, request, self.settings, self.naming)

    def replay(self, source: Result | str | Path) -> Replay:
        """What became of saved tests: those of a suite, or the witnesses of a result.

        `source` is a result or the path of either. Every input is run afresh.
        """
        from themis.audit.replay import replay_tests
        from themis.audit.saved_tests import read_tests

        saved = read_tests(source, self.schema, self.apparatus.views.outputs)
        start_budget(self.runner, self.settings)
        keep = self.sampler.keep_on_interrupt
        saved.personal |= self.apparatus.people is not None
        listen, rows = self.sampler.listen, self.shows_rows
        return replay_tests(self.runner, saved, listen=listen, keep_on_interrupt=keep, rows=rows)

    def _among(self, among: Iterable[str] | None) -> tuple[int, ...]:
        return self.schema.free if among is None else self.schema.columns_of(among, where="among")

    def _work(self, measure: Callable[[Work], None], family: Family) -> Work:
        """What was measured within the budget."""
        check_made_up(self.schema, self.apparatus.facts)
        work = Work(self.apparatus, family)
        work.do(measure)
        return work

    def _measure(
        self, against: tuple[OneSet, ...], measure: Measure, view: View, settings: Any
    ) -> Score:
        family = Family.of(self.settings.changed(**settings), [measure])
        parts = [[each] if isinstance(each, str) else each for each in against]
        names = [name for part in parts for text in part for name in text.split(",")]
        wanted = self.schema.columns_of(names, where="against"), measure, view
        work = self._work(lambda work: work.measure(wanted), family)
        score = work.only_score(self.naming)
        work.remember([score])
        return score

    def _repr_html_(self) -> str:
        show = hook("audit")
        html: str = show(self.runner.subject.kind, self.schema, self.apparatus.facts, self.settings)
        return html

    def __repr__(self) -> str:
        return f"Audit({self.runner.subject.kind}, against any of {set_name(self.schema.names)})"
