"""Discrimination search (Def. 3.9): all minimal sets whose score reaches a threshold.

Each set is decided, not estimated; what follows by monotonicity is not run. One error budget is
divided among all sets before anything is seen, so that the whole answer holds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

from themis.engine.account import Spent
from themis.events import SearchProgress, ignore
from themis.results.model import CausalScore, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import Reruns, TestedSet, exceeds
from themis.results.verdicts import Acceptance
from themis.scores.noise import NoiseProbe
from themis.scores.question import Scored, asked_again, ending_early
from themis.scores.reruns import Finding
from themis.scores.scorer import Scorer
from themis.search.causal_decider import CausalDecider
from themis.search.deciding import Decider, KnownScores, SearchRequest
from themis.search.flips import FlipBook
from themis.search.found_sets import FoundSet, explain_found
from themis.search.lattice import Border, Lattice
from themis.search.whole_domain import ExactDecider, is_cheaper
from themis.settings import Settings
from themis.statistics.reruns import RERUNS_SHARE
from themis.subjects.base import BudgetEndedError

SEARCH_ASSIGNMENTS = 50_000  # assignments of a set that are tried exhaustively in a search
LISTING_SHARE = 0.5  # of a set's error probability, where the rest is for holding it to a limit


Accepted = Callable[[Score], Acceptance | None]  # the acceptance of exactly a score's set


@dataclass
class Search:
    """One search over one lattice of sets; `run` gives the answer.

    With `accepts` it is for a check: each found set is measured before the search goes on, with a
    part of the error probability that is its own. One that is not above the threshold after all
    settles nothing about its supersets, nor does one that is accepted up to a score.

    A set whose exact score is known is decided by that: a result says the same of it as a score
    and in a search. Others are sampled, until to run all inputs is cheaper: then it begins again
    with an exact decider.
    """

    request: SearchRequest
    decider: Decider
    lattice: Lattice
    probe: NoiseProbe
    scorer: Scorer
    book: FlipBook
    accepts: Accepted | None = None
    known_below: Border | None = None  # of the causal search, where group ≤ causal holds
    method: Literal["exact", "sampled"] = "sampled"
    border: Border = field(default_factory=Border)
    tested: dict[int, TestedSet] = field(default_factory=dict)
    ended: Ending = Ending.DONE  # or why not all sets were visited
    reruns: dict[int, Reruns] = field(default_factory=dict)  # of what was found
    scores: dict[int, Score] = field(default_factory=dict)  # of sets that were tried
    accepted: dict[int, float] = field(default_factory=dict)  # and up to which score
    measured: dict[int, FoundSet] = field(default_factory=dict)  # scores to be explained
    _seen: dict[int, tuple[Reruns, float]] = field(default_factory=dict)  # reruns, before all ran
    _followed: int = 0  # sets that follow from others, known when all is decided
    _next_look: int = 0  # at whether to run all: so many sets are decided then

    def __post_init__(self) -> None:
        self.sampler, self.settings = self.request.sampler, self.request.settings
        self.exact = KnownScores(self.scorer, self.request)

    def run(self) -> SearchResult:
        """What it finds, with scores; once more where running every input is cheaper."""
        result = self._estimated(self._decide_all())
        if result.stopped is not Ending.INTERRUPTED and self._becomes_exact():
            return self._estimated(self._decide_all())
        return result

    def _decide_all(self) -> SearchResult:
        """Decide every set that is not implied by others, cheap ones first."""
        cost = self.sampler.runner.metered()
        self.decider.expect(self._to_come)
        with ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early:
            self.exact.begin()
            while not self._walk(cost):
                pass
        self.ended = early.ending or Ending.DONE
        if self.ended is Ending.DONE and self.tested:
            self._followed = self.lattice.total - len(self.tested)
            self._tell(next(reversed(self.tested)))
        return self._result(cost)

    def _becomes_exact(self, left: Iterable[int] = (), spent: int = 0) -> bool:
        """Whether all inputs were run, or are now: then every set is to be decided anew.

        They are run where these sets are left for a sampled search, and that costs no less.
        """
        if self.method == "exact":
            return False
        decider = self._exact_decider(left, spent)
        if decider is None:
            return False
        for mask, found in self.reruns.items():
            self._seen[mask] = found, self.tested[mask].estimate or 1.0
        self.decider, self.method, self.known_below = decider, "exact", None
        self.border, self.tested, self.reruns = Border(), {}, {}
        self.scores, self.accepted, self.measured = {}, {}, {}
        return True

    def _walk(self, cost: Callable[[], Spent]) -> bool:
        """Decide the sets in order; False if all inputs were run meanwhile."""
        try:
            for mask in self._in_order():
                if self.sampler.runner.is_late:
                    raise BudgetEndedError
                if len(self.tested) >= self._next_look:
                    self._next_look = 2 * len(self.tested) + 1
                    if self._becomes_exact(self._left(), cost().executions):
                        return False
                self._visit(mask)
                self._tell(mask)
        except BudgetEndedError:  # it may allow for what is missing
            if self._becomes_exact(self._left(), cost().executions):
                return False
            raise
        return not self._becomes_exact(self._left(), cost().executions)

    def _in_order(self) -> Iterator[int]:
        """The sets that are not pruned, in an order that is cheap."""

        def is_pruned(mask: int) -> bool:
            return self.border.pruned_by(mask) is not None

        if not self.decider.together:
            yield from self.lattice.by_cost(is_pruned)
            return
        for masks in self.lattice.by_level(is_pruned, 1_000):
            to_run = [mask for mask in masks if self._has_to_be_run(mask)]
            self.decider.prepare([(mask, self._delta(mask)) for mask in to_run])
            yield from masks

    def _has_to_be_run(self, mask: int) -> bool:
        """Whether nothing that is known decides a set."""
        known = mask in self.tested or self.exact.has(mask)
        return not known and self._implied_below(mask) is None

    def _to_come(self) -> Iterator[tuple[int, float]]:
        """The next sets to decide, if nothing more is learned before."""
        sets = self.lattice.by_cost(lambda mask: self.border.pruned_by(mask) is not None)
        for mask in islice(filter(self._is_open, sets), 4):
            yield mask, self._delta(mask)

    def _is_open(self, mask: int) -> bool:
        """Whether a set is still to be decided."""
        pruned = self.border.pruned_by(mask) is not None
        return mask not in self.tested and not pruned and self._implied_below(mask) is None

    def _left(self) -> Iterator[int]:
        """The sets that a sampled search has still to run: to decide them, or to measure them."""
        found = () if self.request.decide_only else self.border.above
        yield from (mask for mask in found if mask not in self.scores and not self.exact.has(mask))
        for mask in self.lattice.by_size():
            is_open = mask not in self.tested and self.border.pruned_by(mask) is None
            if is_open and not self.exact.has(mask):
                yield mask

    def _visit_larger(self, mask: int) -> None:
        """Decide larger sets that seem to be below, until one is: this one is implied then.

        A set that is below must be tested unless a larger one is; below it nothing has to be.
        """
        for larger in self.lattice.extensions(mask):
            if larger in self.tested or self.border.pruned_by(larger) is not None:
                continue
            if self.decider.takes_proofs(larger, self._delta(larger)):
                self._visit(larger)
                self._tell(larger)
                if self.border.implied_by(mask) is not None:
                    return

    def _alpha(self, mask: int) -> float:
        """This set's part of 1 − confidence, fixed before anything is seen."""
        alpha = (1.0 - self.settings.confidence) * self.request.error_share
        return alpha * self.lattice.share(mask)

    @property
    def _listing(self) -> float:
        """The part of a set's error probability that is for listing it, and not for its score."""
        return 1.0 if self.accepts is None and not self.settings.family else LISTING_SHARE

    def _delta(self, mask: int) -> float:
        return self._alpha(mask) * self._listing * (1.0 - RERUNS_SHARE)

    def _settings_for(self, mask: int) -> Settings:
        """How the score of a found set is measured: in a family, with a part that is its own."""
        if not self.settings.family:
            return self.settings
        return replace(self.settings, confidence=1.0 - self._alpha(mask) * (1.0 - LISTING_SHARE))

    def _tried(self, mask: int, tested: TestedSet, accepts: Accepted) -> TestedSet:
        """A found set, held against the limit; one that ends below it is none."""
        part = self._alpha(mask) * (1.0 - LISTING_SHARE)
        settings = replace(self.settings, confidence=1.0 - part * (1.0 - RERUNS_SHARE))
        score = self._score_of(mask, settings)
        if score is not None and score.stopped is Ending.INTERRUPTED:
            self._take(mask, tested)
            raise KeyboardInterrupt
        if score is None or not score.samples:
            return tested
        limit = self._limit(mask)
        reruns = None
        if not score.counts_noise:
            with self.sampler.runner.spending_reserve():
                reruns = self.probe.reruns.rerun(
                    self._finding(mask), score.score, score.low, part * RERUNS_SHARE, limit
                )
        score = replace(score, confidence=self.settings.confidence, reruns=reruns)
        if not exceeds(score.high, limit):
            note = Note.of("estimated-score", score=score.score)
            return replace(tested, decision="below", reasons=(*tested.reasons, note))
        self.scores[mask] = score
        found = accepts(score)
        bound = None if found is None else found.max_score
        if found and bound is not None and found.covers(score.floor, score.high) == "yes":
            self.accepted[mask] = bound
        return tested

    def _limit(self, mask: int) -> float:
        """What a set is held against: the threshold, or what is accepted of a part of it."""
        bounds = [bound for part, bound in self.accepted.items() if part & mask == part != mask]
        return max([self.request.threshold, *bounds])

    def _confirmed(self, mask: int, tested: TestedSet) -> TestedSet:
        """A set that is above, if what shows it comes out the same when it is run again."""
        low = tested.estimate or 0.0
        if self.request.counts_noise:
            return tested
        if not (self.probe.reruns.trusted or self.settings.looks_for_noise):
            return doubted(tested, Note.of("not-checked-for-noise"))
        found = self._rerun(mask, low)
        doubt: Note | None = None
        if found is None:
            doubt = Note.of("not-checked-for-noise")
        elif found.differing and low - found.explains <= self.request.threshold:
            doubt = Note.of("noise-may-explain", high=min(found.explains, 1.0))
        else:
            self.reruns[mask] = found
        return tested if doubt is None else doubted(tested, doubt)

    def _rerun(self, mask: int, low: float) -> Reruns | None:
        """What running a finding again shows; once is enough, also if all inputs are run later."""
        if mask in self._seen:
            found, estimate = self._seen[mask]
            return replace(found, explains=found.explains * max(low / estimate, 1.0))
        with self.sampler.runner.spending_reserve():
            alpha = self._alpha(mask) * self._listing * RERUNS_SHARE
            return self.probe.reruns.rerun(self._finding(mask), low, low, alpha)

    def _finding(self, mask: int) -> Finding:
        known = self._exactly(mask)
        own = None if known is None else known.finding
        return self.decider.finding(mask) if own is None else own

    def _exactly(self, mask: int) -> Scored | None:
        """The exact score that decides a set, unless all inputs were run, which decides them."""
        return None if self.method == "exact" else self.exact.score_of(mask)

    def _visit(self, mask: int) -> None:
        if mask in self.tested:
            return
        known = self._exactly(mask)
        tested = None if known is None else self.exact.decision(mask, known)
        reason = self._implied_below(mask) if tested is None else None
        if reason is not None:
            self.tested[mask] = reason
            return
        if tested is None and self.decider.takes_proofs(mask, self._delta(mask)):
            self._visit_larger(mask)
            reason = self._implied_below(mask)
        tested = tested or reason or self.decider.decide(mask, self._delta(mask))
        if tested.decision == "above":
            with self.decider.looking():
                tested = self._confirmed(mask, tested)
        if tested.decision == "above" and self.accepts is not None:
            tested = self._tried(mask, tested, self.accepts)
        if reason is not None:
            self.tested[mask] = tested
        else:
            self._take(mask, tested)

    def _take(self, mask: int, tested: TestedSet) -> None:
        """Take note of a decision, and of what follows from it."""
        self.tested[mask] = tested
        if tested.decision == "above" and mask not in self.accepted:
            self.border.add_above(mask)
        elif tested.decision == "below" and self._implies_subsets():
            self.border.add_below(mask)

    def _implies_subsets(self) -> bool:
        """Whether a set below means that its subsets are, too.

        Not where groups leave out those of whom a value is missing: a smaller set has them. Nor of
        an excess, unless what is searched is independent of all else.
        """
        kept, measure = self.sampler.population.schema.kept_missing, self.request.measure
        if measure == "excess":
            return False
        return measure == "causal" or kept.keys().isdisjoint(self.request.columns)

    def _implied_below(self, mask: int) -> TestedSet | None:
        superset = self.border.implied_by(mask)
        if superset is not None:
            reason = Note.of("within-set-below", against=self._names(superset))
            return TestedSet(self._names(mask), "below", (reason,))
        if self.known_below is not None:
            causal = self.known_below.implied_by(mask)
            if causal is not None:
                reason = Note.of("causal-score-below", against=self._names(causal))
                return TestedSet(self._names(mask), "below", (reason,))
        return None

    def _names(self, mask: int) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        return self.request.names(mask)

    def _tell(self, mask: int) -> None:
        """Report progress, after something was done for a set."""
        if self.sampler.listen is ignore:
            return
        decided = sum(each.decision != "undecided" for each in self.tested.values())
        self.sampler.listen(
            SearchProgress(
                measure=self.request.measure,
                against=self._names(mask),
                decided=decided + self._followed,
                found=len(self.border.above),
                total=self.lattice.total,
                executions=self.sampler.runner.executions,
                latest=tuple(self._names(each) for each in self.border.above[-20:]),
            )
        )

    def _how(self) -> Literal["exact", "sampled"]:
        """Exact, too, where an exact score decided each set, and none is open."""
        scored = self.tested and all(each.was_counted for each in self.tested.values())
        return "exact" if scored and self.ended is Ending.DONE else self.method

    def _result(self, cost: Callable[[], Spent]) -> SearchResult:
        above = [*self.border.above, *self.accepted]
        tested = self.tested.items()
        run = {m: each for m, each in tested if each.samples or each.decision == "undecided"}
        undecided = [self.tested[m].against for m in self.tested
                     if self.tested[m].decision == "undecided"]  # fmt: skip
        implied = len(self.tested) - len(run)
        pruned = self.lattice.total - len(self.tested) if self.ended is Ending.DONE else -1
        if pruned < 0:
            pruned = max(self.lattice.count_supersets(above), 0)
        return SearchResult(
            measure=self.request.measure,
            threshold=self.request.threshold,
            confidence=self.settings.confidence,
            error=self.settings.error,
            minimal_sets=(),
            found=tuple(sorted((self._names(mask) for mask in above), key=lambda n: (len(n), n))),
            undecided=tuple(undecided),
            tested=tuple(self.tested.values()),
            sets_total=self.lattice.total,
            sets_tested=len(run),
            sets_pruned=pruned + implied,
            sets_open=self.lattice.total - len(run) - pruned - implied,
            among=tuple(self.request.schema.names[c] for c in self.request.columns),
            max_size=self.request.max_size,
            method=self._how(),
            stopped=self.ended,
            stopping=self.settings.stopping,
            decide_only=self.request.decide_only and self._how() == "sampled",
            executions=cost().executions,
            cache_hits=cost().cache_hits,
        )

    def _exact_decider(self, left: Iterable[int], spent: int) -> ExactDecider | None:
        """The exact decider, where that is cheaper than to go on; None when the budget ends."""
        request = self.request
        question = self.scorer.question(request.columns, request.measure, self.settings)
        whole = None if request.counts_noise else self.scorer.drawing_all(question)
        if whole is None:
            return None
        drawn = replace(request, sampler=whole)
        if not is_cheaper(drawn, self.lattice, left, [*self.tested], spent):
            return None
        domain = self.scorer.run_all(question)
        if domain is None:
            return None
        suite = self.sampler.tables.suite
        if suite is not None:
            suite.add_domain((), domain.codes, domain.cells)
        return ExactDecider(request, domain)

    # Scores of what was found -----------------------------------------------------------------
    def _estimated(self, result: SearchResult) -> SearchResult:
        """The result with scores of the found sets; those that the budget does not reach lack."""
        if result.decide_only:
            return result
        scores, interrupted = dict[int, Score](), False
        self.book.at_hand.later = tuple
        for names in result.found:
            mask = sum(1 << result.among.index(name) for name in names)
            score = self.scores.get(mask)
            if score is None and result.stopped is Ending.DONE:
                with ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early:
                    score = self._score_of(mask, self._settings_for(mask))
                if score is not None and not score.counts_noise:
                    score = self._with_reruns(score, mask)
                interrupted |= early.ending is Ending.INTERRUPTED
            if score is None:
                break
            scores[mask] = score
            self._tell(mask)
            if score.stopped is Ending.INTERRUPTED:
                break
        scores |= self._explained(scores)
        result = replace(result, minimal_sets=tuple(scores.values()))
        if interrupted or any(e.stopped is Ending.INTERRUPTED for e in scores.values()):
            return replace(result, stopped=Ending.INTERRUPTED)
        return self._shown_again(result)

    def _score_of(self, mask: int, settings: Settings) -> Score | None:
        """The score of a found set; None where the budget does not reach it."""
        columns = self.request.columns_of(mask)
        exact = self._exactly(mask)
        if exact is not None:
            return replace(asked_again(exact.score), confidence=settings.confidence)
        if isinstance(self.decider, CausalDecider):
            found = FoundSet(self.book, sum(1 << column for column in columns), settings)
            score = found.measure()
            if score is not None:
                self.measured[mask] = found
            return score
        if self.sampler.runner.is_late:
            return None
        sampled = replace(settings, exact=False)  # a sweep for each would take for ever
        with self.sampler.runner.ledger.counting_as(
            "explanations" if self.method == "exact" else "sampling"
        ):
            question = self.scorer.question(columns, self.request.measure, sampled)
            return self.scorer.measure(question).score

    def _with_reruns(self, score: Score, mask: int) -> Score:
        """The score of a found set, with what was run again to list it."""
        found, estimate = self.reruns[mask], self.tested[mask].estimate or 1.0
        explains = found.explains * max(score.score / estimate, 1.0)
        return replace(score, reruns=replace(found, explains=explains))

    def _explained(self, scores: dict[int, Score]) -> dict[int, CausalScore]:
        """The scores of those sets that were measured here, with what explains them."""
        sets = {
            mask: (self.measured[mask], score)
            for mask, score in scores.items()
            if mask in self.measured and isinstance(score, CausalScore)
        }
        if not sets:
            return {}
        return dict(zip(sets, explain_found([*sets.values()]), strict=True))

    def _shown_again(self, result: SearchResult) -> SearchResult:
        """The result without pairs that do not come out the same when they are run again."""
        scores = [each for each in result.minimal_sets if isinstance(each, CausalScore)]
        if not scores or not self.settings.looks_for_noise:
            return result
        with (
            self.sampler.runner.spending_reserve(),
            ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early,
        ):
            return replace(result, minimal_sets=tuple(self.probe.reruns.shown_again(scores)))
        interrupted = early.ending is Ending.INTERRUPTED
        return replace(result, stopped=Ending.INTERRUPTED) if interrupted else result


def doubted(tested: TestedSet, reason: Note) -> TestedSet:
    """The same set, undecided for this reason."""
    return replace(tested, decision="undecided", reasons=(*tested.reasons, reason))
