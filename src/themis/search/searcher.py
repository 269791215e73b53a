"""Whole searches: the procedure, the order of measures, scores of what is found, less noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from themis.engine.sampler import Sampler
from themis.errors import RequestError
from themis.results.finding import least_listed
from themis.results.model import CausalScore, Measure, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.scores.excess import MOST_SEARCHED, check_decisions
from themis.scores.noise import NoiseProbe, is_weighed
from themis.scores.privacy import search_of_people
from themis.scores.question import asked_again, charged
from themis.scores.scorer import Scorer
from themis.search.betting import ExcessDecider, GroupDecider
from themis.search.causal_decider import CausalDecider
from themis.search.deciding import Decider, SearchRequest, check_request
from themis.search.flips import FlipBook
from themis.search.lattice import WIDE, Border, Lattice, largest_size
from themis.search.paper import paper_search
from themis.search.walk import SEARCH_ASSIGNMENTS, Accepted, Search, doubted
from themis.settings import Settings, Stopping
from themis.statistics.excess import FEWEST_TIMES, ExcessRule
from themis.statistics.groups import MOST_COMPARED
from themis.statistics.thresholds import ThresholdRule


@dataclass(frozen=True)
class SearchPlan:
    """How many sets a search may have to look at, and what it takes to find nothing."""

    sets: int
    executions: int


class Searcher:
    """Searches within one run; what one search learned is free for the next."""

    def __init__(self, sampler: Sampler, scorer: Scorer) -> None:
        self.sampler = sampler
        self.scorer = scorer
        everything = tuple(range(len(sampler.population.schema)))
        self.book = FlipBook(sampler, everything, cap=SEARCH_ASSIGNMENTS)
        self.book.inputs.coming = self.book.coming
        self._answers: dict[object, tuple[SearchResult, ...]] = {}

    def search(
        self,
        measures: Sequence[Measure],
        threshold: float,
        columns: tuple[int, ...],
        max_size: int | None,
        settings: Settings,
        probe: NoiseProbe,
        *,
        prune: bool = True,
        decide_only: bool = False,
        accepted: Accepted | None = None,
    ) -> tuple[SearchResult, ...]:
        """All minimal sets above the threshold, per measure; one guarantee for all of them.

        With `accepted` the search is for a check: found sets are held against the threshold with a
        part of the error probability that is their own, and so are supersets of those that end
        below it, or that are accepted up to a score. With `decide_only` sets are found, but get no
        scores unless every input was run.
        """
        check_request(threshold, max_size)
        if decide_only and settings.stopping is Stopping.PAPER:
            problem = "the paper's search measures every set, and decides nothing else"
            raise RequestError.one("decide-only", "decide_only", problem, "leave it out")
        if "excess" in measures:
            check_decisions(self.sampler.reading)
            if settings.stopping is Stopping.PAPER:
                problem = "the paper's search asks nothing again"
                raise RequestError.one("excess", "measure", problem, "search by causal or group")
        size = largest_size(max_size, len(columns))
        key = (tuple(measures), threshold, columns, size, prune, decide_only, settings)
        if key in self._answers and accepted is None:
            return tuple(map(asked_again, self._answers[key]))
        results: list[SearchResult] = []
        causal_border: Border | None = None
        searched = self._searched(columns, measures)
        for measure, own in searched.items():
            before = self.sampler.runner.account
            most = min(size, len(own))
            request = SearchRequest(
                self.sampler,
                settings,
                measure,
                threshold,
                own,
                most,
                1 / len(searched),
                decide_only,
            )
            if settings.stopping is Stopping.PAPER:
                printed = paper_search(request, prune=prune)
                result = printed
                if not probe.reruns.trusted:  # nothing was run again, so nothing is listed
                    unchecked = Note.of("not-checked-for-noise")
                    result = _unlisted(printed, unchecked, printed.stopped)
            else:
                search = self._make(request, causal_border, probe, accepted)
                result = search.run()
                if measure == "causal" and own == columns:
                    causal_border = search.border
            result = self._told_of_unread(result, columns, own)
            if max_size is None and most < len(own):
                larger = Note.of(
                    "larger-sets-not-searched", size=most, larger=most + 1, width=len(own)
                )
                result = replace(result, notes=(*result.notes, larger))
            results.append(self._described(charged(result, self.sampler.runner, before)))
            if result.stopped is Ending.INTERRUPTED:
                break
        answer = tuple(results)
        if accepted is None and all(each.stopped is Ending.DONE for each in answer):
            self._answers[key] = answer
        return answer

    def _searched(
        self, columns: tuple[int, ...], measures: Sequence[Measure]
    ) -> dict[Measure, tuple[int, ...]]:
        """The columns of each search; causal ones leave out what the subject never gets."""
        schema = self.sampler.population.schema
        given = tuple(column for column in columns if column not in schema.unread)
        own = {measure: columns if measure == "group" else given for measure in measures}
        found = {measure: each for measure, each in own.items() if each}
        if not found:
            names = " and ".join(repr(schema.names[column]) for column in columns)
            problem = f"nothing of {names} is given to the subject, so no change has an effect"
            raise RequestError.one("not-an-input", "among", problem, "search by the group measure")
        return found

    def _told_of_unread(
        self, result: SearchResult, columns: tuple[int, ...], own: tuple[int, ...]
    ) -> SearchResult:
        """The result, which says what of these columns was left out."""
        left = [self.sampler.population.schema.names[c] for c in columns if c not in own]
        note = (Note.of("inputs-not-searched", names=left),) if left else ()
        return replace(result, notes=(*result.notes, *note))

    def _described(self, result: SearchResult) -> SearchResult:
        """The result, which says of which output and of whom it is."""
        reading = self.sampler.reading
        details = reading.details()
        named = {name: details[name] for name in ("output", "distance", "scale") if name in details}
        favours = reading.favours if result.measure == "group" else None
        found = replace(result, statistic=reading.statistic, favours=favours, **named)
        people = self.scorer.people_run
        return found if people is None else search_of_people(found, people, reading)

    def plan(
        self,
        columns: tuple[int, ...],
        max_size: int | None,
        settings: Settings,
        threshold: float,
        measure: Measure = "causal",
    ) -> SearchPlan:
        """How many sets there are, and what showing that each is below a threshold costs."""
        lattice = self._lattice(columns, largest_size(max_size, len(columns)), measure, settings)
        alpha = (1.0 - settings.confidence) / lattice.total
        limits = ThresholdRule(threshold, settings.error, alpha)
        if measure == "excess":
            rule, counts = ExcessRule(2.0 * alpha, limits.half_zone), lattice.by_size()
            asked = sum(n for each in counts if (n := lattice.assignments(each)) <= MOST_SEARCHED)
            rows = rule.contexts_without(limits.ceiling)
            return SearchPlan(lattice.total, FEWEST_TIMES * rows * asked)
        rows = limits.rows_without_hits
        cells = rows * lattice.variants
        size = self.sampler.population.size
        return SearchPlan(lattice.total, cells if size is None else min(cells, size))

    def _lattice(
        self, columns: tuple[int, ...], max_size: int, measure: Measure, settings: Settings
    ) -> Lattice:
        schema = self.sampler.population.schema
        levels = tuple(schema.characteristics[c].possible_count for c in columns)
        groups = min(settings.max_assignments, MOST_COMPARED)
        cap = {"causal": SEARCH_ASSIGNMENTS, "excess": MOST_SEARCHED, "group": groups}[measure]
        protected = (schema.characteristics[c].protected for c in columns)
        first = sum(1 << place for place, each in enumerate(protected) if each)
        return Lattice(levels, max_size, cap, first if len(columns) > WIDE else -1)

    def _make(
        self,
        request: SearchRequest,
        causal_border: Border | None,
        probe: NoiseProbe,
        accepted: Accepted | None,
    ) -> Search:
        columns, measure, settings = request.columns, request.measure, request.settings
        lattice = self._lattice(columns, request.max_size, measure, settings)
        population = self.sampler.population
        independent = all(population.is_independent((column,)) for column in columns)
        # Groups are of those who have values, the causal score is of all.
        always = population.schema.kept_missing.keys().isdisjoint(columns)
        known = causal_border if independent and always else None
        if (
            self.sampler.reading.needs_tolerances
        ):  # Theorem 4.3 is about outputs that differ or do not
            known = None
        decider: Decider = GroupDecider(request)
        if measure == "causal":
            decider = CausalDecider(self.book, request)
        elif measure == "excess":
            decider, known = ExcessDecider(self.scorer, request), None
        return Search(request, decider, lattice, probe, self.scorer, self.book, accepted, known)


def _doubting(
    search: SearchResult, doubts: Mapping[tuple[str, ...], Note], *notes: Note, stopped: Ending
) -> SearchResult:
    """The search with these sets as undecided, each for its reason."""
    return replace(
        search,
        minimal_sets=tuple(each for each in search.minimal_sets if each.against not in doubts),
        found=tuple(names for names in search.found if names not in doubts),
        undecided=(*search.undecided, *doubts),
        tested=tuple(
            doubted(each, doubts[each.against]) if each.against in doubts else each
            for each in search.tested
        ),
        stopped=stopped,
        notes=(*search.notes, *notes),
    )


def _unlisted(search: SearchResult, note: Note, stopped: Ending) -> SearchResult:
    """The search with all that it found as undecided, for this reason."""
    notes = [note] if search.found else []
    return _doubting(search, dict.fromkeys(search.found, note), *notes, stopped=stopped)


def weigh_search(
    search: SearchResult, probe: NoiseProbe, settings: Settings, *, may_run: bool = True
) -> SearchResult:
    """The search as it is; where there is noise, without the sets that noise alone may explain.

    Those are undecided. What is still listed has, less all that noise may explain, a score above
    what the search promises of every set listed.
    """
    if probe.reruns.neighbours and search.stopping is not Stopping.PAPER:
        return _unlisted(search, Note.of("noise-may-explain"), Ending.INCONSISTENT)
    if search.counts_noise:
        return search
    measured = search.minimal_sets
    statistic = search.statistic if search.measure == "group" else None
    output = measured[0].output if measured else search.output
    found = probe.finds_in(output, statistic) or (not measured and probe.found)
    if not found or search.stopping is Stopping.PAPER or settings.probe == 0:
        return search
    if is_weighed(search):
        return search
    if search.measure == "group":
        return _weigh_groups(search, probe, settings)
    scores = [
        probe.weigh(each, settings, most=SEARCH_ASSIGNMENTS, may_run=may_run) for each in measured
    ]
    sure = {each.against for each in scores if each.low > least_listed(search)}
    reasons = {each.against: _doubt(each) for each in scores}
    unknown = Note.of("noise-may-explain")
    doubts = {names: reasons.get(names, unknown) for names in search.found if names not in sure}
    note = _note(probe, settings, len(doubts))
    stopped = _stopped(search, scores, probe, settings)
    return _doubting(replace(search, minimal_sets=tuple(scores)), doubts, note, stopped=stopped)


def _weigh_groups(search: SearchResult, probe: NoiseProbe, settings: Settings) -> SearchResult:
    """A search for groups by noisy decisions; sampled rates are averages over the noise.

    Where every input was run once, another run may give other rates: a set that was below the
    threshold may be above it. What is listed was run again.
    """
    once = _run_once(search)
    if not once:
        return replace(search, notes=(*search.notes, Note.of("noise-in-group-search")))
    stopped = _stopped(search, [], probe, settings)
    below = [each.against for each in search.tested if each.decision == "below"]
    doubtful = [names for names in below if names in once and stopped is Ending.NOISE]
    doubts = dict.fromkeys(doubtful, Note.of("noise-may-explain"))
    return _doubting(search, doubts, Note.of("noise-in-exact-rates"), stopped=stopped)


def _run_once(search: SearchResult) -> set[tuple[str, ...]]:
    """The sets that were decided by an exact score, or lie within such a set."""
    if search.method == "exact":
        return {each.against for each in search.tested}
    exact = {each.against for each in search.tested if each.was_counted}
    within = {
        each.against
        for each in search.tested
        for reason in each.reasons
        if reason.code == "within-set-below" and tuple(reason.values["against"]) in exact
    }
    return exact | within


def _stopped(
    search: SearchResult, scores: list[Score], probe: NoiseProbe, settings: Settings
) -> Ending:
    noise = probe.noise(settings.confidence)
    too_much = noise is None or noise.high > settings.noise_limit
    too_much = too_much or any(each.stopped is Ending.NOISE for each in scores)
    return Ending.NOISE if too_much and search.stopped is Ending.DONE else search.stopped


def _doubt(score: Score) -> Note:
    placebo = score.placebo if isinstance(score, CausalScore) else None
    return Note.of("noise-may-explain", high=None if placebo is None else placebo.high)


def _note(probe: NoiseProbe, settings: Settings, doubtful: int) -> Note:
    noise = probe.noise(settings.confidence)
    counts = {"differing": noise.differing, "inputs": noise.inputs} if noise is not None else {}
    return Note.of("noise-in-search", doubtful=doubtful, **counts)
