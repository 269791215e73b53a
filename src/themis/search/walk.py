"""Discrimination search (Def. 3.9): all minimal sets whose score reaches a threshold.

Each set is decided, not estimated; what follows by monotonicity is not run. One error budget is
divided among all sets before anything is seen, so that the whole answer holds at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from themis.engine.sampler import Cost, Sampler
from themis.engine.variants import Variants
from themis.events import SearchListener, SearchProgress
from themis.inputs.assignments import Assignments
from themis.results.model import Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.parts import Reruns, TestedSet, exceeds
from themis.scores.early_ends import ending_early
from themis.scores.group import KEPT_ROWS, GroupInputs, group_source, kept_inputs, outcome_ends
from themis.scores.means import SeenMeans
from themis.scores.noise import NoiseProbe
from themis.scores.reruns import Finding, looks_for_noise
from themis.scores.scorer import ExactScore
from themis.search.exact_scores import KnownScores
from themis.search.lattice import Border, Lattice, members
from themis.search.request import SearchRequest
from themis.settings import Settings
from themis.statistics.reruns import RERUNS_SHARE
from themis.statistics.spreads import GroupRule
from themis.statistics.thresholds import Decision, ThresholdRule
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN

SEARCH_ASSIGNMENTS = 50_000  # assignments of a set that are tried exhaustively in a search
LISTING_SHARE = 0.5  # of a set's error probability, where the rest is for holding it to a limit
LOOKED_AHEAD = 4  # sets of which idle slots may run something before their turn
TOGETHER = 1_000  # sets that are prepared together, at most
GROUP_FIRST_ROWS, GROUP_GROWTH = 8, 1.15
GROUP_FEW_CALLS = 64, 1.6  # the same where calls are the cost


class Decider(ABC):
    """Decides whether one set's score is above the threshold, with a given error probability."""

    @property
    def together(self) -> bool:
        """Whether sets of one size are prepared together."""
        return False

    def prepare(self, sets: Iterable[tuple[int, float]]) -> None:
        """Do ahead what deciding these sets takes."""
        return

    def expect(self, sets: Callable[[], Iterable[tuple[int, float]]]) -> None:
        """Take note of how to know which sets come next: idle slots may run something of them."""
        return

    def looking(self) -> AbstractContextManager[None]:
        """Within, a set is decided, and idle slots may run something of the next ones."""
        return nullcontext()

    @abstractmethod
    def decide(self, mask: int, delta: float) -> TestedSet:
        """The decision on a set; raises BudgetEndedError when the budget is too small."""

    def takes_proofs(self, mask: int, delta: float) -> bool:
        """Whether a set seems to be below, and to show it seems to cost much."""
        return False

    @abstractmethod
    def finding(self, mask: int) -> Finding:
        """What a decision that a set is above rests on, to be run again."""


# The exact decider, where running all costs no more than deciding these sets, after so many
# executions for others.
RunAll = Callable[[Iterable[int], Iterable[int], int], Decider | None]


@dataclass(frozen=True)
class Trial:
    """What a check asks of a search: that found sets are held against its limit right away."""

    measure: Callable[[int, Settings], Score | None]  # the score of a set
    accepted: Callable[[Score], float | None]  # up to which score its set is accepted


@dataclass
class Search:
    """One search over one lattice of sets; `run` gives the answer.

    With a `trial` each found set is measured before the search goes on, with a part of the error
    probability that is its own: one that is not above the threshold after all settles nothing about
    its supersets, nor does one that is accepted up to a score.

    A set whose exact score is known is decided by that: a result says the same of it as a score
    and in a search. Others are sampled, until `run_all` gives an exact decider: then it begins
    again with that.
    """

    sampler: Sampler
    request: SearchRequest
    settings: Settings
    decider: Decider
    lattice: Lattice
    probe: NoiseProbe
    run_all: RunAll
    exact: KnownScores
    known_below: Border | None = None  # of the causal search, where group ≤ causal holds
    listen: SearchListener | None = None
    method: Literal["exact", "sampled"] = "sampled"
    border: Border = field(default_factory=Border)
    tested: dict[int, TestedSet] = field(default_factory=dict)
    ended: Ending = Ending.DONE  # or why not all sets were visited
    reruns: dict[int, Reruns] = field(default_factory=dict)  # of what was found
    trial: Trial | None = None
    scores: dict[int, Score] = field(default_factory=dict)  # of sets that were tried
    accepted: dict[int, float] = field(default_factory=dict)  # and up to which score
    _seen: dict[int, tuple[Reruns, float]] = field(default_factory=dict)  # reruns, before all ran
    _scout: Iterator[int] | None = None  # goes through the sets before they are decided
    _ahead: list[int] = field(default_factory=list)  # what it found
    _next_look: int = 0  # at whether to run all: so many sets are decided then

    def run(self) -> SearchResult:
        """Decide every set that is not implied by others, cheap ones first."""
        cost = Cost(self.sampler.runner)
        self.decider.expect(self._to_come)
        with ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early:
            self.exact.begin()
            while not self._walk(cost):
                pass
        self.ended = early.ending or Ending.DONE
        return self._result(cost)

    def becomes_exact(self, left: Iterable[int] = (), spent: int = 0) -> bool:
        """Whether all inputs were run, or are now: then every set is to be decided anew.

        They are run where these sets are left for a sampled search, and that costs no less.
        """
        if self.method == "exact":
            return False
        decider = self.run_all(left, list(self.tested), spent)
        if decider is None:
            return False
        for mask, found in self.reruns.items():
            self._seen[mask] = found, self.tested[mask].estimate or 1.0
        self.decider, self.method, self.known_below = decider, "exact", None
        self.border, self.tested, self.reruns = Border(), {}, {}
        self.scores, self.accepted = {}, {}
        return True

    def _walk(self, cost: Cost) -> bool:
        """Decide the sets in order; False if all inputs were run meanwhile."""
        try:
            for mask in self._in_order():
                if len(self.tested) >= self._next_look:
                    self._next_look = 2 * len(self.tested) + 1
                    if self.becomes_exact(self._left(), cost.executions):
                        return False
                self._visit(mask)
                self._tell(mask)
        except BudgetEndedError:  # it may allow for what is missing
            if not self.becomes_exact(self._left(), cost.executions):
                raise
            return False
        return not self.becomes_exact(self._left(), cost.executions)

    def _in_order(self) -> Iterator[int]:
        """The sets that are not pruned, in an order that is cheap."""

        def is_pruned(mask: int) -> bool:
            return self.border.pruned_by(mask) is not None

        if not self.decider.together:
            yield from self.lattice.by_cost(is_pruned)
            return
        for masks in self.lattice.by_level(is_pruned, TOGETHER):
            left = [mask for mask in masks if mask not in self.tested]
            self.decider.prepare([(mask, self._delta(mask)) for mask in left])
            yield from masks

    def _to_come(self) -> list[tuple[int, float]]:
        """The next sets to decide, if nothing more is learned before."""
        if self._scout is None:
            self._scout = self.lattice.by_cost(lambda mask: self.border.pruned_by(mask) is not None)
        self._ahead = list(filter(self._is_open, self._ahead))
        while len(self._ahead) < LOOKED_AHEAD:
            mask = next(self._scout, None)
            if mask is None:
                break
            if self._is_open(mask):
                self._ahead.append(mask)
        return [(mask, self._delta(mask)) for mask in self._ahead]

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
        return 1.0 if self.trial is None and not self.settings.family else LISTING_SHARE

    def _delta(self, mask: int) -> float:
        return self._alpha(mask) * self._listing * (1.0 - RERUNS_SHARE)

    def settings_for(self, mask: int) -> Settings:
        """How the score of a found set is measured: in a family, with a part that is its own."""
        if not self.settings.family:
            return self.settings
        return replace(self.settings, confidence=1.0 - self._alpha(mask) * (1.0 - LISTING_SHARE))

    def _tried(self, mask: int, tested: TestedSet, trial: Trial) -> TestedSet:
        """A found set, held against the limit; one that ends below it is none."""
        part = self._alpha(mask) * (1.0 - LISTING_SHARE)
        settings = replace(self.settings, confidence=1.0 - part * (1.0 - RERUNS_SHARE))
        score = trial.measure(mask, settings)
        if score is None or not score.samples:
            return tested
        limit = self._limit(mask)
        with self.sampler.runner.spending_reserve():
            found = self.probe.rerun(
                self._finding(mask), score.score, score.low, part * RERUNS_SHARE, limit
            )
        score = replace(score, confidence=self.settings.confidence, reruns=found)
        if not exceeds(score.high, limit) and score.stopped is not Ending.INTERRUPTED:
            note = Note.of("estimated-score", score=score.score)
            return replace(tested, decision="below", reasons=(*tested.reasons, note))
        self.scores[mask] = score
        bound = trial.accepted(score)
        if bound is not None:
            self.accepted[mask] = bound
        return tested

    def _limit(self, mask: int) -> float:
        """What a set is held against: the threshold, or what is accepted of a part of it."""
        bounds = [bound for part, bound in self.accepted.items() if part & mask == part != mask]
        return max([self.request.threshold, *bounds])

    def _confirmed(self, mask: int, tested: TestedSet) -> TestedSet:
        """A set that is above, if what shows it comes out the same when it is run again."""
        low = tested.estimate or 0.0
        if not (self.probe.trusted or looks_for_noise(self.settings)):
            return replace(
                tested,
                decision="undecided",
                reasons=(*tested.reasons, Note.of("not-checked-for-noise")),
            )
        found = self._rerun(mask, low)
        doubt: Note | None = None
        if found is None:
            doubt = Note.of("not-checked-for-noise")
        elif found.differing and low - found.explains <= self.request.threshold:
            doubt = Note.of("noise-may-explain", high=min(found.explains, 1.0))
        else:
            self.reruns[mask] = found
        if doubt is None:
            return tested
        return replace(tested, decision="undecided", reasons=(*tested.reasons, doubt))

    def _rerun(self, mask: int, low: float) -> Reruns | None:
        """What running a finding again shows; once is enough, also if all inputs are run later."""
        if mask in self._seen:
            found, estimate = self._seen[mask]
            return replace(found, explains=found.explains * max(low / estimate, 1.0))
        with self.sampler.runner.spending_reserve():
            alpha = self._alpha(mask) * self._listing * RERUNS_SHARE
            return self.probe.rerun(self._finding(mask), low, low, alpha)

    def _finding(self, mask: int) -> Finding:
        known = self.exactly(mask)
        own = None if known is None else known.finding
        return self.decider.finding(mask) if own is None else own

    def exactly(self, mask: int) -> ExactScore | None:
        """The exact score that decides a set, unless all inputs were run, which decides them."""
        return None if self.method == "exact" else self.exact.score_of(mask)

    def _visit(self, mask: int) -> None:
        if mask in self.tested:
            return
        known = self.exactly(mask)
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
        if tested.decision == "above" and self.trial is not None:
            tested = self._tried(mask, tested, self.trial)
        self.tested[mask] = tested
        if reason is not None:
            return
        if tested.decision == "above" and mask not in self.accepted:
            self.border.add_above(mask)
        elif tested.decision == "below" and self._implies_subsets():
            self.border.add_below(mask)

    def _implies_subsets(self) -> bool:
        """Whether a set below means that its subsets are, too.

        Not where groups leave out those of whom a value is missing: a smaller set has them.
        """
        kept = self.sampler.population.schema.kept_missing
        return self.request.measure == "causal" or kept.keys().isdisjoint(self.request.columns)

    def _implied_below(self, mask: int) -> TestedSet | None:
        superset = self.border.implied_by(mask)
        if superset is not None:
            reason = Note.of("within-set-below", against=self.names(superset))
            return TestedSet(self.names(mask), "below", (reason,))
        if self.known_below is not None:
            causal = self.known_below.implied_by(mask)
            if causal is not None:
                reason = Note.of("causal-score-below", against=self.names(causal))
                return TestedSet(self.names(mask), "below", (reason,))
        return None

    def names(self, mask: int) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        schema = self.sampler.population.schema
        return tuple(schema.names[self.request.columns[place]] for place in members(mask))

    def _tell(self, mask: int) -> None:
        if self.listen is not None:
            decided = sum(each.decision != "undecided" for each in self.tested.values())
            self.listen(
                SearchProgress(
                    measure=self.request.measure,
                    against=self.names(mask),
                    decided=decided,
                    found=len(self.border.above),
                    total=self.lattice.total,
                    executions=self.sampler.runner.executions,
                )
            )

    def _how(self) -> Literal["exact", "sampled"]:
        """Exact, too, where an exact score decided each set, and none is open."""
        scored = self.tested and all(each.is_exact for each in self.tested.values())
        return "exact" if scored and self.ended is Ending.DONE else self.method

    def _result(self, cost: Cost) -> SearchResult:
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
            found=tuple(sorted((self.names(mask) for mask in above), key=lambda n: (len(n), n))),
            undecided=tuple(undecided),
            tested=tuple(self.tested.values()),
            sets_total=self.lattice.total,
            sets_tested=len(run),
            sets_pruned=pruned + implied,
            sets_open=self.lattice.total - len(run) - pruned - implied,
            among=tuple(self.sampler.population.schema.names[c] for c in self.request.columns),
            max_size=self.request.max_size,
            method=self._how(),
            stopped=self.ended,
            stopping=self.settings.stopping,
            decide_only=self.request.decide_only and self._how() == "sampled",
            executions=cost.executions,
            cache_hits=cost.cache_hits,
        )


@dataclass
class GroupDecider(Decider):
    """Decides group scores by betting on differences between groups on common contexts."""

    sampler: Sampler
    search: SearchRequest
    settings: Settings
    _found: dict[int, GroupInputs] = field(default_factory=dict)

    def finding(self, mask: int) -> Finding:
        return self._found[mask]

    def decide(self, mask: int, delta: float) -> TestedSet:
        columns = self.search.columns_of(mask)
        variants = Variants.of(
            Assignments(self.sampler.population.schema, columns),
            limit=self.settings.max_assignments,
            base=self.sampler.base,
        )
        limits = ThresholdRule(self.search.threshold, self.settings.error, delta)
        source = group_source(self.sampler, variants)
        if not source.labels:  # of very many, none of those that were tried occurs
            untried = Note.of("too-many-groups", groups=variants.assignments.count, tried=0)
            return TestedSet(variants.assignments.names, "undecided", (untried,))
        zone = round((limits.ceiling - limits.floor) / 2, 12)  # narrower near 0 and 1
        error = min(self.settings.error, zone)
        rule = GroupRule(1.0 - delta, error, decide_below=limits.ceiling)
        numbers = self.sampler.reading.statistic == "mean"
        state = rule.start(len(source.labels), numbers=numbers)
        means = SeenMeans(self.sampler.reading, len(source.labels))
        kept = np.full((KEPT_ROWS, len(source.labels)), NOT_RUN, dtype=np.int64)
        count = 0
        least, growth = GROUP_FIRST_ROWS, GROUP_GROWTH
        if self.sampler.runner.saves_calls:
            least, growth = GROUP_FEW_CALLS
        decision: Decision = "undecided"
        names = variants.assignments.names
        while decision == "undecided":
            target = max(least, int(count * growth) + 1)
            for first, last in self.sampler.blocks(count, target, int(state.active.sum())):
                cells = source.run(first, last, state.active)
                means.add(cells, state.active)
                state.add(*outcome_ends(self.sampler, state, cells, first, last))
                kept[first:last, state.active] = cells[: max(KEPT_ROWS - first, 0)]
                count = last
            if count < target:
                raise BudgetEndedError
            state.look()
            decision = _group_decision(state.low, state.high, limits, complete=variants.complete)
            if state.crossed:
                decision = "undecided"
                break
            if decision == "undecided" and (
                state.done or (not variants.complete and state.high < limits.ceiling)
            ):
                break
        if state.champions is not None:
            self._found[mask] = kept_inputs(self.sampler, source, state, kept, count)
        spread = means.spread(state.active, state.interval())
        ends = {"low": spread.low, "high": spread.high}
        reason = Note.of("groups-apart", **ends, contexts=count)
        return TestedSet(names, decision, (reason,), count, spread.score)


def _group_decision(low: float, high: float, limits: ThresholdRule, *, complete: bool) -> Decision:
    if low > limits.floor:
        return "above"
    if not complete:
        return "undecided"
    return "below" if high < limits.ceiling else "undecided"
