"""Whether a set's group score is above the threshold, decided on differences between groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from themis.engine.sampler import Sampler
from themis.engine.variants import Variants
from themis.inputs.assignments import Assignments
from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.group import KEPT_ROWS, GroupInputs, group_source, kept_inputs, outcome_ends
from themis.scores.means import SeenMeans
from themis.scores.reruns import Finding
from themis.search.request import SearchRequest
from themis.search.walk import Decider
from themis.settings import Settings
from themis.statistics.spreads import GroupRule
from themis.statistics.thresholds import Decision, ThresholdRule
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN

FIRST_ROWS, GROWTH = 8, 1.15
FEW_CALLS = 64, 1.6  # the same where calls are the cost


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
        least, growth = FIRST_ROWS, GROWTH
        if self.sampler.runner.saves_calls:
            least, growth = FEW_CALLS
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
