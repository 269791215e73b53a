"""Whether a group score or an excess is above the threshold, decided by betting on differences.

Of an excess, a set inside another one needs no decision of its own: sets come after all their
parts, and one that contains a found set is not minimal. Where what is searched is independent of
all else, its excess is at least as large, too: it is a maximum over pairs of which the part's are
averages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.excess import MOST_SEARCHED, ExcessRows
from themis.scores.group import GroupRows
from themis.scores.question import GroupInputs, Question
from themis.scores.reruns import Finding
from themis.scores.scorer import Scorer
from themis.search.deciding import Decider, SearchRequest
from themis.statistics.excess import ExcessRule, ExcessState
from themis.statistics.groups import GroupRule
from themis.statistics.thresholds import Decision, ThresholdRule
from themis.subjects.base import BudgetEndedError

FIRST_ROWS, GROWTH = 8, 1.15
FEW_CALLS = 64, 1.6  # the same where calls are the cost
SMALL = 2**14  # inputs of one set, at most, that are run with those of others


@dataclass
class GroupDecider(Decider):
    """Decides group scores by betting on differences between groups on common contexts."""

    search: SearchRequest
    _found: dict[int, GroupInputs] = field(default_factory=dict)
    _ready: dict[int, TestedSet] = field(default_factory=dict)  # decided ahead of time

    @property
    def together(self) -> bool:
        return self.search.sampler.runner.saves_calls

    def prepare(self, sets: Iterable[tuple[int, float]]) -> None:
        """Decide these sets, whose contexts are run together; so many that memory stays flat."""
        some, groups = list[_Way](), 0
        for mask, delta in sets:
            some.append(self._way(mask, delta))
            groups += len(some[-1].source.labels)
            if groups >= 4_096:  # of all sets that are decided together, at least
                self._go(some)
                some, groups = [], 0
        self._go(some)

    def finding(self, mask: int) -> Finding:
        return self._found[mask]

    def decide(self, mask: int, delta: float) -> TestedSet:
        if mask not in self._ready:
            self._go([self._way(mask, delta)])
        return self._ready.pop(mask)

    def _go(self, ways: list[_Way]) -> None:
        """Run ever more contexts of all these sets, until all are decided."""
        least, growth = FEW_CALLS if self.together else (FIRST_ROWS, GROWTH)
        target, sampler = 0, self.search.sampler
        for way in ways:
            self._note(way)
        while ways := [way for way in ways if way.is_open]:
            target = max(least, int(target * growth) + 1)
            small = [way for way in ways if way.cells(target) <= SMALL]
            for some in _in_calls(small, target) if self.together else ():
                asked = [way.source.ask(way.count, target, way.state.active) for way in some]
                for way, cells in zip(some, sampler.tables.run_asked(asked), strict=True):
                    way.take(cells)
                if sampler.runner.out_of_time:
                    raise BudgetEndedError
            for way in ways:
                way.run_until(target)
                way.look()
                self._note(way)  # whatever becomes of the others

    def _note(self, way: _Way) -> None:
        """Keep what came out of a way, once it has ended."""
        if way.is_open:
            return
        self._ready[way.mask] = way.tested()
        if way.decision == "above" and (found := way.finding) is not None:
            self._found[way.mask] = found

    def _way(self, mask: int, delta: float) -> _Way:
        limits = self.search.rule(delta)
        rule = GroupRule(delta, limits.half_zone, decide_below=limits.ceiling)
        return _Way(self.search.question(mask), mask, limits, rule)


class _Way(GroupRows):
    """The way to one decision."""

    def __init__(
        self, question: Question, mask: int, limits: ThresholdRule, rule: GroupRule
    ) -> None:
        super().__init__(question.sampler, question.variants, rule)
        self.mask, self.limits = mask, limits
        self.is_open = len(self.source.labels) > 0  # none of very many that were tried may occur
        self.decision: Decision = "undecided"

    def cells(self, target: int) -> int:
        """How many inputs there are up to a number of contexts."""
        return (target - self.count) * int(self.state.active.sum())

    def run_until(self, target: int) -> None:
        """Run contexts up to this number, unless they were."""
        state = self.state
        for first, last in self.sampler.blocks(self.count, target, int(state.active.sum())):
            self.take(self.source.run(first, last, state.active))
        if self.count < target:
            raise BudgetEndedError

    def look(self) -> None:
        """See whether that is enough."""
        state, complete = self.state, self.variants.complete
        state.look()
        self.decision = self.limits.decide_ends(state.low, state.high)
        if state.crossed or (self.decision == "below" and not complete):
            self.decision = "undecided"
        never = not complete and state.high < self.limits.ceiling
        self.is_open = self.decision == "undecided" and not (state.crossed or state.done or never)

    def tested(self) -> TestedSet:
        """What came out."""
        assignments = self.variants.assignments
        if not self.source.labels:
            untried = Note.of("too-many-groups", groups=assignments.count, tried=0)
            return TestedSet(assignments.names, "undecided", (untried,))
        spread = self.seen.spread(self.state.active, self.state.interval())
        ends = {"low": spread.low, "high": spread.high}
        reason = Note.of("groups-apart", **ends, contexts=self.count)
        return TestedSet(assignments.names, self.decision, (reason,), self.count, spread.score)


def _in_calls(ways: Iterable[_Way], target: int) -> Iterator[list[_Way]]:
    """The ways, as many together as make up a large call."""
    some, size = list[_Way](), 0
    for way in ways:
        some.append(way)
        size += way.cells(target)
        if size >= 2**16:  # inputs that are run together
            yield some
            some, size = [], 0
    if some:
        yield some


ENOUGH = 5  # contexts for each half zone: then failures are seen about as often as they occur


@dataclass
class ExcessDecider(Decider):
    """Decides excesses by betting, as of groups; what is found goes on as a score."""

    scorer: Scorer
    search: SearchRequest

    def decide(self, mask: int, delta: float) -> TestedSet:
        columns, question = self.search.columns_of(mask), self.search.question(mask)
        names, count = question.assignments.names, question.assignments.count
        if count > MOST_SEARCHED:
            many = Note.of("too-many-to-compare", assignments=count, most=MOST_SEARCHED)
            return TestedSet(names, "undecided", (many,))
        rows = self.scorer.contexts.get(columns) or ExcessRows(question)
        tested = self._decided(rows, question, delta)
        if tested.decision == "above":
            self.scorer.contexts[columns] = rows
        return tested

    def _decided(self, rows: ExcessRows, question: Question, delta: float) -> TestedSet:
        limits = self.search.rule(delta)
        rule = ExcessRule(2.0 * delta, limits.half_zone)  # only one of both answers can be wrong
        for state in rows.ask(question, rule):
            decision = limits.decide_ends(state.low, state.high)
            if (
                decision != "undecided"
                or state.crossed
                or state.done
                or _is_hopeless(state, limits)
            ):
                decision = "undecided" if state.crossed else decision
                ends = {"low": state.interval.low, "high": state.interval.high}
                reason = Note.of("beyond-chance", **ends, contexts=state.count)
                names = question.assignments.names
                return TestedSet(names, decision, (reason,), state.count, state.interval.score)
        raise BudgetEndedError


def _is_hopeless(state: ExcessState, limits: ThresholdRule) -> bool:
    """Whether outputs that stay unknown seem to leave both answers possible for ever."""
    least, most = state.seen
    beyond = least < limits.floor and most > limits.ceiling + limits.half_zone
    return beyond and state.count * limits.half_zone >= ENOUGH
