"""Work: what one command measures within its budget, and the result that this makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Literal

from themis.audit.apparatus import Apparatus, Wanted
from themis.audit.notes import (
    about_answers,
    few_counterfactuals,
    fit_notes,
    inventories,
    left_out,
    made_by_constraints,
    mostly_same,
    sparse,
    timing_of,
    unknown_values,
    with_commands,
    without_effect,
)
from themis.audit.precision import Family, precise_at_once
from themis.engine.account import Budget
from themis.engine.answers import TooManyFailuresError
from themis.engine.runner import Runner
from themis.errors import RequestError, SubjectError
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.results.model import GroupScore, Measure, Result, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.outcomes import (
    Errors,
    Observed,
    Outcomes,
    Proxy,
    of_noise,
)
from themis.results.parts import Account, Naming
from themis.results.withheld import withheld
from themis.scores.explanations.regions import failed_inputs
from themis.scores.noise import NoiseProbe
from themis.scores.observed import Counted, observed_rates
from themis.scores.privacy import marked_notes, outputs_in
from themis.scores.question import Part, Scored, account_of, asked_again, ending_early, metered
from themis.scores.reruns import ENOUGH
from themis.settings import Settings
from themis.statistics.proportions import ProportionRule

if TYPE_CHECKING:
    from themis.scores.people import PeopleRun
    from themis.search.walk import Accepted


@dataclass(frozen=True)
class Sought:
    """What searches are asked for: the minimal sets above a threshold, by each measure."""

    measures: Sequence[Measure]
    threshold: float
    among: tuple[int, ...]  # columns of the schema
    max_size: int | None = None
    output: str | None = None  # of several; None: the first
    prune: bool = True
    decide_only: bool = False
    accepted: Accepted | None = None

    def find(self, apparatus: Apparatus, settings: Settings) -> tuple[SearchResult, ...]:
        """What there is, within the budget."""
        for measure in self.measures:
            check_excess(apparatus, measure)
        return apparatus.views.searched(self.output, self.measures).searcher.search(
            self.measures,
            self.threshold,
            self.among,
            self.max_size,
            settings,
            apparatus.probe,
            prune=self.prune,
            decide_only=self.decide_only,
            accepted=self.accepted,
        )


class Work:
    """The scores and searches of one command; nothing of it is lost however it ends."""

    def __init__(
        self,
        apparatus: Apparatus,
        family: Family,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self._data = apparatus.facts if data is None else data  # of the rows that scores are of
        self._apparatus = apparatus
        self._sampler, self._probe = apparatus.sampler, apparatus.probe
        self._family, self._settings = family, family.settings
        self._scored = self._settings  # those of scores, which may be more precise
        self._chosen: tuple[Note, ...] = ()
        self._scores: list[Score] = []
        self._asked: list[object] = []  # questions that scores answer
        self._searches: list[SearchResult] = []
        self.outcomes: tuple[Outcomes, ...] = ()
        self.errors: tuple[Errors, ...] = ()
        self.proxies: tuple[Proxy, ...] = ()
        self.people_run = apparatus.views.people_run  # whom scores are of
        self.observed: tuple[Observed, ...] = ()
        self._known: set[int] = set()  # places of scores that were measured before
        self._by_search: set[int] = set()  # places of those that a search measured
        self._failed = False
        self._problem: SubjectError | None = None  # what ended it besides too many failures
        self._ended: Ending | None = None  # early, outside of any score
        self._failing: tuple[Note, ...] = ()  # which inputs fail
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._before = self._runner.account
        start_budget(self._runner, self._settings, None if family.counts_noise else self._probe)

    @property
    def _runner(self) -> Runner:
        return self._sampler.runner

    def measure(self, wanted: Wanted, limit: float | None = None) -> None:
        """Keep a score, measured unless it was asked for before."""
        columns, measure, view = wanted
        check_excess(self._apparatus, measure)
        question = (wanted, self._scored, limit)
        if not self.add_known(self._apparatus.answers.to(question)):
            asked = view.scorer.question(columns, measure, self._scored)
            self.add(view.scorer.measure(asked), limit)
        self._asked.append(question)

    def remember(self, scores: Sequence[Score]) -> None:
        """Take note of what was asked of this and of its answers, as they are given."""
        for question, score in zip(self._asked, scores, strict=False):
            self._apparatus.answers.keep(question, [score], self._settings)

    def be_precise(self, wanted: Sequence[Wanted]) -> Settings:
        """Measure these scores as precisely as that can be done at once; how that is.

        Exactly only where inputs that are run again get the same decisions.
        """
        chosen = precise_at_once(self._apparatus, self._settings, wanted)
        if chosen.exact and self._settings.looks_for_noise:
            self._probe.look(replace(self._settings, probe=self._settings.probe or ENOUGH))
            if self._probe.found:
                chosen = precise_at_once(self._apparatus, self._settings, wanted, exactly=False)
        self._scored = chosen
        if chosen != self._settings:
            error = None if chosen.exact else chosen.error
            self._chosen = (Note.of("precise-at-once", error=error),)
        return chosen

    def add(self, measured: Scored, limit: float | None = None) -> None:
        """Keep a score, after running again what it rests on."""
        score = of_rows(measured.score, self._data)
        if score.stopped is Ending.INTERRUPTED:
            self._scores.append(with_commands(score, self._runner.subject))
            raise KeyboardInterrupt
        self._scores.append(score)  # it is kept whatever happens next
        score = self._probe.reruns.confirm(measured._replace(score=score), self._scored, limit)
        self._scores[-1] = with_commands(score, self._runner.subject)

    def add_known(self, scores: Sequence[Score]) -> bool:
        """Keep scores that were measured before, if there are any; nothing is executed for them."""
        self._known |= {len(self._scores) + place for place in range(len(scores))}
        self._scores += map(asked_again, scores)
        self._runner.ledger.remember(sum(each.cache_hits + each.executions for each in scores))
        return bool(scores)

    def search(self, sought: Sought) -> None:
        """Keep searches with the scores of what they found, unless those are known already."""
        self._searches += [
            replace(each, minimal_sets=tuple(of_rows(s, self._data) for s in each.minimal_sets))
            for each in sought.find(self._apparatus, self._settings)
        ]
        measured = set(map(_about, self._scores))
        found = [score for each in self._searches for score in each.minimal_sets]
        later = {_about(score): score for score in found if score.counts_noise}
        self._scores = [_narrower(each, later.get(_about(each))) for each in self._scores]
        new = [score for score in found if _about(score) not in measured]
        self._by_search |= {len(self._scores) + place for place in range(len(new))}
        self._scores += (with_commands(score, self._runner.subject) for score in new)
        if any(each.stopped is Ending.INTERRUPTED for each in self._searches):
            raise KeyboardInterrupt

    def observe(self, columns: Iterable[int] = (), **what: Any) -> None:
        """Count the observed rates; see `observed`."""
        self.observed = observed(self._apparatus, columns, self._family.asked, **what)

    def do(self, measure: Callable[[Work], None]) -> None:
        """Measure, look for noise, and compare what was learned with what noise would give."""
        weighed = False
        try:
            with ending_early(keeps_interrupts=self._sampler.keep_on_interrupt) as early:
                measure(self)
                if not self._counts_noise:
                    with self._runner.spending_reserve():
                        self._probe.look(self._settings)
                self._weigh()
                weighed = True
            self._ended = early.ending
        except TooManyFailuresError:
            self._failed = True
        except SubjectError as error:  # it, or what ran it, is gone
            if not self._scores and not self._searches:
                raise
            self._problem = error
        if not weighed:
            self._weigh(may_run=False)

    @property
    def _counts_noise(self) -> bool:
        """Whether all that was measured is what changes do beyond noise."""
        parts: list[Score | SearchResult] = [*self._scores, *self._searches]
        return bool(parts) and all(each.counts_noise for each in parts)

    def _told_failing(self) -> Iterator[Note]:
        """Under which condition inputs fail, if one is confirmed."""
        keeps = self._sampler.keep_on_interrupt
        with suppress(SubjectError), ending_early(keeps_interrupts=keeps):
            confidence = self._settings.confidence
            note = failed_inputs(self._sampler, self.people_run, confidence)
            if note is not None and "conditions" in note.values:
                yield note

    def result(self, command: str, naming: Naming | None = None) -> Result:
        """What was learned; an error that holds it where the subject failed too often."""
        apparatus, runner, failed = self._apparatus, self._runner, self._has_failed
        is_over = self._problem is not None or self._ended is Ending.INTERRUPTED
        if runner.failures.total and not is_over:
            self._failing = tuple(self._told_failing())
        spent = runner.account - self._before
        seconds = time.monotonic() - self._clock
        notes = [*apparatus.cache_notes, *about_answers(runner, spent)]
        result = Result(
            command=command,
            seed=self._settings.seed,
            subject={"kind": runner.subject.kind, "fingerprint": runner.subject.fingerprint()},
            schema=runner.schema.to_dict(),
            scores=tuple(self._scores),
            searches=tuple(map(self._with_measured, self._searches)),
            executions=spent.executions,
            cache_hits=spent.cache_hits,
            stopped=Ending.FAILED if failed else self._stopped(),
            failures=runner.failures.to_dict(runner.subject),
            notes=tuple(self._notes()),
            timing=timing_of(spent, runner.subject, self._started, seconds, notes),
            noise=self._probe.noise(self._settings.confidence),
            data=self._data,
            account=account_of(spent),
            report=naming,
            outputs=tuple(inventories(runner, self._shared())),
            observed=tuple(of_noise(e) if self._is_noisy(e) else e for e in self.observed),
            outcomes=tuple(of_noise(e) if self._is_noisy(e) else e for e in self.outcomes),
            errors=self.errors,
            proxies=tuple(of_noise(e) if self._is_noisy(e) else e for e in self.proxies),
        )
        if failed:
            problem = self._problem or runner.failure_message()
            where = withheld(self._failing) if runner.failures.personal else self._failing
            said = ". ".join(map(str, (problem, *where)))
            raise SubjectError(said, result=self._family.whole(result))
        whole = self._family.whole(result)
        return replace(whole, scores=tuple(in_words(each, naming) for each in whole.scores))

    def only_score(self, naming: Naming | None) -> Score:
        """The one that was measured, in an audit's words; an error that holds it if all failed."""
        self._refuse_nothing(self._scores)
        score = self._family.shared(self._with_example(self._scores[0]))
        return self._alone(in_words(score, naming))

    def only_search(self, naming: Naming | None) -> SearchResult:
        """The same of one that searched."""
        self._refuse_nothing(self._searches)
        found = self._family.search(self._with_example(self._searches[0]))
        named = tuple(in_words(each, naming) for each in found.minimal_sets)
        return self._alone(replace(found, minimal_sets=named))

    def _refuse_nothing(self, parts: Sequence[object]) -> None:
        if not parts and self._ended is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        if not parts:
            raise SubjectError(self._runner.failure_message())

    def _with_example(self, part: Part) -> Part:
        """The answer; of a subject that is not consistent, with an example, unless it has one."""
        has_one = any(note.code == "inconsistent-example" for note in part.notes)
        if has_one or part.counts_noise or not self._probe.finds_in(part.output):
            return part
        return replace(part, notes=(*part.notes, *self._probe.reruns.examples()))

    def _alone(self, part: Part) -> Part:
        """All that was run is this answer's; an error that holds it where the subject failed."""
        account = account_of(self._runner.account - self._before)
        part = replace(part, executions=account.total, account=account)
        if self._has_failed:
            raise SubjectError(str(self._problem or self._runner.failure_message()), result=part)
        return part

    @property
    def _has_failed(self) -> bool:
        return self._failed or self._runner.fails_too_often or self._problem is not None

    def _stopped(self) -> Ending:
        """How the whole ended, unless the subject failed."""
        stops = {each.stopped for each in self._scores} | {each.stopped for each in self._searches}
        stops |= {self._ended} if self._ended else set()
        early = (each for each in (Ending.INTERRUPTED, Ending.BUDGET) if each in stops)
        return next(early, Ending.DONE)

    def _notes(self) -> Iterator[Note]:
        """What is to be said of the whole."""
        apparatus, subject, schema = self._apparatus, self._runner.subject, self._runner.schema
        yield from self._chosen
        yield from fit_notes(self._data)
        yield from self._failing
        yield from sparse(apparatus.population)
        yield from self._of_outputs(apparatus.views.notes(apparatus.handling.favourable))
        yield from unknown_values(subject)
        yield from without_effect(subject, self._scores)
        yield from mostly_same(self._scores)
        yield from made_by_constraints(self._scores, schema)
        yield from few_counterfactuals(self._scores, self._sampler)
        yield from self._of_outputs(self._probe.notes())

    def _is_noisy(self, observed: Outcomes | Proxy | Observed) -> bool:
        """Whether noise was found in the output that people are compared by."""
        return self._settings.looks_for_noise and self._probe.finds_in(observed.output)

    def _of_outputs(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        """The notes, which say which of the outputs that they name hardly anybody gets."""
        found = tuple(notes)
        shared = self._shared() if any(map(outputs_in, found)) else None
        return found if shared is None else marked_notes(found, shared)

    def _shared(self) -> set[Value] | None:
        """The outputs that name nobody; None where no people were given."""
        run = self.people_run
        return None if run is None else self._apparatus.views.shared_outputs(run)

    def _with_measured(self, search: SearchResult) -> SearchResult:
        """The search with the scores that its sets have in the result, as a saved one has them."""
        places = set(range(len(self._scores))) - self._by_search
        measured = {_about(self._scores[place]): self._scores[place] for place in places}
        found = (measured.get(_about(each), each) for each in search.minimal_sets)
        return replace(search, minimal_sets=tuple(found))

    def _weigh(self, *, may_run: bool = True) -> None:
        """Compare what was learned with what noise would give."""
        probe, settings = self._probe, self._settings

        def weighed(place: int, score: Score) -> Score:
            may, most = may_run and place not in self._known, None
            if place in self._by_search:
                from themis.search.walk import SEARCH_ASSIGNMENTS

                most = SEARCH_ASSIGNMENTS
            return probe.weigh(score, settings, most=most, may_run=may)

        def weighed_search(search: SearchResult) -> SearchResult:
            from themis.search.searcher import weigh_search

            return weigh_search(search, probe, settings, may_run=may_run)

        runner, scores = self._runner, enumerate(self._scores)
        self._scores = [metered(runner, partial(weighed, *each)) for each in scores]
        self._searches = [metered(runner, partial(weighed_search, e)) for e in self._searches]


def _about(score: Score) -> tuple[object, ...]:
    """What a score is of; two scores with the same answer the same question."""
    statistic = score.statistic if isinstance(score, GroupScore) else "rate"
    return score.measure, score.against, score.output, statistic


def _narrower(score: Score, later: Score | None) -> Score:
    """The score, or the one that a search made of it by going on; with what both took."""
    if later is None or later.high - later.low >= score.high - score.low:
        return score
    account = (score.account or Account()) + (later.account or Account())
    return replace(later, executions=account.total, account=account)


def of_rows(score: Score, data: Mapping[str, Any] | None) -> Score:
    """The score; one of given rows says if some of them were left out."""
    notes = () if score.population == "inputs" else tuple(left_out(data))
    return replace(score, notes=(*score.notes, *notes)) if notes else score


def in_words(score: Score, naming: Naming | None) -> Score:
    """The score with the words of an audit, for where it is shown alone."""
    return score if naming is None else replace(score, naming=naming)


def check_excess(apparatus: Apparatus, measure: Measure) -> None:
    """Raise RequestError where an excess can't be measured: nothing would differ when asked again.

    With repeats a decision is that of most runs, and a subject for which somebody vouches has none.
    """
    handling = apparatus.handling
    keys = {
        "deterministic": handling.deterministic,
        "repeats": handling.repeats > 1,
        # a fair model would answer by the prompt's chance
        "parameters.seed": apparatus.runner.traits.seeded,
    }
    key = next((key for key, given in keys.items() if given), "")
    if measure != "excess" or not key:
        return
    problem = (
        f"with {key.rpartition('.')[2]} nothing shows how often a decision differs when asked again"
    )
    raise RequestError.one("excess", key, problem, "leave it out, or measure the causal score")


def start_budget(runner: Runner, settings: Settings, probe: NoiseProbe | None = None) -> None:
    """Begin a measurement with the budget that the settings allow.

    What running a finding again takes is kept back before anything is sampled.
    """
    runner.start(Budget.of(settings, runner.subject))
    runner.reserved = 0 if probe is None else probe.reruns.reserve(settings)
    if probe is not None:
        probe.open_with(settings)


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
