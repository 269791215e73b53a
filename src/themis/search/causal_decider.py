"""Whether a set's causal score is above the threshold, decided on flips of common base inputs.

That an input flips takes a few tries, that it does not takes all variants. "Above" needs no proof:
an input that has not flipped so far counts as "no flip", which is the safe side. "Below" needs
proofs, of all inputs that count as "no flip" or of a random part of them, whichever is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Places
from themis.results.notes import Note
from themis.results.parts import TestedSet
from themis.scores.reruns import Finding
from themis.search.base_inputs import FIRST_TRIES
from themis.search.cells import UNTRIED
from themis.search.deciding import Decider, SearchRequest
from themis.search.flips import FlipBook
from themis.search.lattice import members
from themis.statistics.intervals import least_enough
from themis.statistics.proportions import ProportionRule
from themis.statistics.thresholds import Decision, Spot, SpotProofs, SpotSample, ThresholdRule
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

SPOT_COST = 16  # sets whose proofs take fewer executions prove all that they need
MISSED = 0.03  # of the open inputs, flips that the tries may have missed: to plan with caution
LOOKS = (8, 16, 32, 64)  # inputs that are tried to foresee what a set will cost
STAGES = (64, 192, 448, 960)  # inputs after which sets are decided together, before the last test
DEAR = 1_000  # executions from which on a decision is put off for larger sets
PATIENCE = 3  # given up when so many times as many proofs are needed as were planned

FEW = 32  # inputs that tell little of where a decision will be
TRIES_SHARE = 0.2  # what more tries before proofs may cost, in parts of the proofs
LAST_TRIES = (0.02, 0.06, 0.12)  # more of them before all is settled, in parts of what that costs
PILOT = 10  # open inputs settled before the others, to learn what flips them


@dataclass(frozen=True)
class Counts:
    """How many inputs flip, are constant, stay unknown, and are not settled yet."""

    hits: int
    misses: int
    unknown: int
    untried: int

    @property
    def total(self) -> int:
        return self.hits + self.misses + self.unknown + self.untried

    def __add__(self, more: Counts) -> Counts:
        pairs = zip(astuple(self), astuple(more), strict=True)
        return Counts(*(one + other for one, other in pairs))

    def scaled(self, total: int) -> Counts:
        """As they would be among so many inputs, if it goes on like this."""
        part = total / self.total
        hits, misses, unknown = (
            round(part * each) for each in (self.hits, self.misses, self.unknown)
        )
        return Counts(hits, misses, unknown, max(total - hits - misses - unknown, 0))


def counted(states: NDArray[np.int8]) -> Counts:
    """How many of these inputs are in which state."""
    return Counts(*(int((states == each).sum()) for each in (FLIP, CONSTANT, UNKNOWN, UNTRIED)))


def known_counts(book: FlipBook, mask: int) -> Counts:
    """What is known of all base inputs so far under a set, also from others; to foresee its end."""
    rows = len(book.inputs.outputs) if book.is_exhaustive(mask) else 0
    return counted(book.known(mask, rows))


class TriedInputs:
    """The first base inputs under one set: which of them flip, as far as that is known."""

    def __init__(self, book: FlipBook, mask: int) -> None:
        self.book = book
        self.mask = mask
        self.states: NDArray[np.int8] = np.empty(0, dtype=np.int8)

    @property
    def counts(self) -> Counts:
        """What is known of them."""
        return self.counts_of(len(self.states))

    def counts_of(self, first: int) -> Counts:
        """The same for the first of them."""
        return counted(self.states[:first])

    @property
    def open_places(self) -> Places:
        """Those that have not flipped so far, and may."""
        return np.flatnonzero(self.states == UNTRIED)

    def draw(self, count: int) -> None:
        """Try so many inputs in all."""
        used = len(self.states)
        if count > used:
            more = self.book.probe(self.mask, used, count)
            self.states = np.concatenate([self.states, more])

    def settle(self, chosen: Places) -> None:
        """Find out whether these flip, by all their variants."""
        self.states = self.book.settle(self.mask, self.states, 0, chosen)

    def try_more(self, places: Places, share: float = TRIES_SHARE) -> None:
        """Try more variants of all open inputs, for a part of what it costs to settle these."""
        budget = share * float(self.book.proof_costs(self.mask, places).sum())
        self.states = self.book.probe_again(self.mask, self.states, budget)

    def prove(self, sample: SpotSample, worth: Callable[[int], bool] = lambda _: True) -> bool:
        """Settle open inputs in random order until the sample says enough, or can't any more.

        An input that turns out to flip teaches which variants to try on all open ones. Given up
        where the proofs that are needed at once are too many to be `worth` it.
        """
        block = PILOT
        while not sample.done:
            needed = sample.needed()
            if needed is None or not worth(needed):
                return False
            order = self.book.shuffled(self.mask, self.open_places)
            chosen = order[: min(needed, block)]
            self.settle(chosen)
            flips = int((self.states[chosen] != CONSTANT).sum())
            sample.settle(len(chosen), flips)
            block = len(self.states)
            if flips and not sample.done:
                open_before = self.counts.untried
                self.try_more(order[:needed])
                sample.found(open_before - self.counts.untried)
                block = PILOT
        return True


@dataclass
class CausalDecider(Decider):
    """Decides causal scores on the flips of common base inputs."""

    book: FlipBook
    search: SearchRequest
    _decided: dict[int, tuple[Counts, Decision]] = field(default_factory=dict)  # ahead of time

    @property
    def together(self) -> bool:
        return self.book.few_calls

    def prepare(self, sets: Iterable[tuple[int, float]]) -> None:
        """Decide those of these sets whose inputs can be settled in a few large calls."""
        rules = {self._own(mask): self.search.rule(delta) for mask, delta in sets}
        left = {
            own: rule
            for own, rule in rules.items()
            if self.book.in_few_calls(own, rule.max_samples)
        }
        last = max((rule.max_samples for rule in left.values()), default=0)
        for rows in (*(stage for stage in STAGES if stage < last), last):
            if left and rows > len(self.book.inputs.outputs):
                # To run them unchanged is little: three times as many, for two stages in one call.
                self.book.inputs.run_until(min(3 * rows, last))
            self.book.exhaust(left, rows)
            left = {own: rule for own, rule in left.items() if not self._known(own, rule, rows)}
        if self.search.decide_only:
            return
        found = [own for own, (_, decision) in self._decided.items() if decision == "above"]
        settings = self.search.settings
        rows = ProportionRule(settings.confidence, settings.error).max_samples
        self.book.exhaust([own for own in found if self.book.in_large_calls(own, rows)], rows)

    def _known(self, own: int, rule: ThresholdRule, rows: int) -> bool:
        """Whether a set is decided by so many settled inputs, or can't be."""
        rows = min(rows, rule.max_samples)
        counts = counted(self.book.known(own, rows))
        decision = rule.decide(counts.hits, counts.misses, counts.unknown)
        if decision == "undecided" and rows < rule.max_samples:
            return False
        self._decided[own] = counts, decision
        return True

    def expect(self, sets: Callable[[], Iterable[tuple[int, float]]]) -> None:
        def later() -> Iterator[tuple[int, int, int]]:
            near = [(self._own(mask), self.search.rule(delta)) for mask, delta in sets()]
            yield from ((own, 0, rule.safe_steps(0, 0)) for own, rule in near)
            for own, rule in near:
                yield own, rule.safe_steps(0, 0), _likely_end(rule, known_counts(self.book, own))

        self.book.at_hand.later = later

    def looking(self) -> AbstractContextManager[None]:
        return self.book.looking()

    def decide(self, mask: int, delta: float) -> TestedSet:
        own = self._own(mask)
        ahead = self._decided.pop(own) if own in self._decided else None
        counts, decision = ahead or self._way(own, delta).run()
        reason = Note.of(
            "inputs-flip",
            flips=counts.hits,
            inputs=counts.total,
            untried=counts.untried or None,
            unsettled=counts.unknown or None,
            average=self.book.averages or None,
        )
        names = self.book.names(own)
        return TestedSet(names, decision, (reason,), counts.total, counts.hits / counts.total)

    def takes_proofs(self, mask: int, delta: float) -> bool:
        own = self._own(mask)
        return own not in self._decided and self._way(own, delta).takes_proofs()

    def finding(self, mask: int) -> Finding:
        return self.book.flips_of(self._own(mask))

    def _own(self, mask: int) -> int:
        """A set of the search as one of the book, which has all columns."""
        return sum(1 << self.search.columns[place] for place in members(mask))

    def _way(self, own: int, delta: float) -> _Decision:
        rule = self.search.rule(delta, self._spot(own))
        return _Decision(TriedInputs(self.book, own), rule)

    def _spot(self, mask: int) -> Spot:
        """Whether spot proofs are planned; it depends on the number of assignments alone."""
        cost = self.book.proof_cost(mask)
        if not self.book.is_exhaustive(mask) or cost < SPOT_COST:
            return "none"
        if cost < 256:  # from here on twice as many inputs may be tried for fewer proofs, …
            return "some"
        return "many" if cost < 4_096 else "most"  # … and from here on four times as many


class _Decision:
    """The way to one decision."""

    def __init__(self, inputs: TriedInputs, rule: ThresholdRule) -> None:
        self.inputs = inputs
        self.rule = rule
        self.inputs.book.at_hand.end = self._end
        self.ahead = rule.spot_proofs()
        self.tries = list(LAST_TRIES if self.ahead else ())  # cheap sets need not

    def takes_proofs(self) -> bool:
        """Whether "below" is foreseen from a few inputs, and only by many proofs."""
        cost = 0.0
        looks = LOOKS[-1:] if self.inputs.book.few_calls else LOOKS
        for count in looks if self.ahead else ():
            self.inputs.draw(count)
            counts = self.inputs.counts
            cost = min(self._cost_of_all(counts), *(self._cost(t, counts) for t in self.ahead))
            if cost < DEAR:
                return False
        return DEAR <= cost < np.inf

    def run(self) -> tuple[Counts, Decision]:
        """What is known of the inputs that were looked at, and what they say."""
        while True:
            counts = self.inputs.counts
            decision = self._decide(counts)
            if decision != "undecided" or self._at_end():
                return counts, decision
            if self.ahead and counts.total == self.ahead[0].rows:
                test = self.ahead.pop(0)
                if self._is_cheapest(test, counts):
                    if self._prove_some(test):
                        return self.inputs.counts, "below"
                    continue
            last = counts.total >= self.rule.max_samples
            if last and self.tries and self._cost_of_above(counts) == np.inf:
                open_places = self.inputs.open_places
                first = open_places[open_places < self.rule.max_samples]
                self.inputs.try_more(first, self.tries.pop(0))
                continue
            chosen = self._to_settle(counts)
            if not len(chosen):
                self._draw(counts)
            elif not self._costs_more(chosen, counts):
                self.inputs.settle(chosen)
            else:
                self._draw(counts, at_least=counts.total // 8)

    def _decide(self, counts: Counts) -> Decision:
        if counts.total > self.rule.max_samples and not (self.rule.floor == 0 and counts.hits):
            first = self.inputs.counts_of(self.rule.max_samples)
            last = self.rule.decide_last(first.hits, first.unknown + first.untried)
            if last != "undecided":
                return last
        return self.rule.decide(counts.hits, counts.misses, counts.unknown + counts.untried)

    def _at_end(self) -> bool:
        """Whether all that the last test looks at is settled."""
        first = self.inputs.counts_of(self.rule.max_samples)
        return first.total == self.rule.max_samples and not first.untried

    def _draw(self, counts: Counts, at_least: int = 1) -> None:
        steps = self.rule.safe_steps(counts.hits, counts.misses + counts.untried, counts.unknown)
        if self.rule.one_decides or self.inputs.book.few_calls:  # not one by one until it comes
            more = counts.total if self.rule.one_decides else counts.total // 2
            at_least = max(at_least, min(more, self.rule.max_samples - counts.total))
        target = counts.total + max(steps, at_least)
        self.inputs.draw(min(target, self.ahead[0].rows) if self.ahead else target)

    def _end(self) -> int:
        """After how many inputs a decision is foreseen, to run them ahead."""
        known = known_counts(self.inputs.book, self.inputs.mask)
        both = (_likely_end(self.rule, each) for each in (self.inputs.counts, known))
        return max(FEW, *both)

    def _prove_some(self, test: SpotProofs) -> bool:
        counts = self.inputs.counts
        planned = test.needed(counts.hits + counts.unknown, counts.untried) or counts.untried
        self.inputs.try_more(self.inputs.open_places[:planned])
        counts = self.inputs.counts
        sample = test.start(counts.hits + counts.unknown, counts.untried)

        def is_worth(needed: int) -> bool:
            costs = self.inputs.book.proof_costs(self.inputs.mask, self.inputs.open_places)
            above = self._cost_of_above(self.inputs.counts)
            return needed <= PATIENCE * planned and needed * float(costs.mean()) <= above

        return self.inputs.prove(sample, is_worth)

    def _to_settle(self, counts: Counts) -> NDArray[np.int64]:
        """The fewest inputs to settle that could decide "below"; none while that is too far."""
        rule, untried = self.rule, counts.untried
        hits, misses, unknown = counts.hits, counts.misses, counts.unknown
        open_places = self.inputs.open_places
        if counts.total >= rule.max_samples:
            return open_places[open_places < rule.max_samples]
        if not untried or rule.decide(hits, misses + untried, unknown) != "below":
            return open_places[:0]

        def is_enough(more: int) -> bool:
            return rule.decide(hits, misses + more, unknown + untried - more) == "below"

        return open_places[: least_enough(0, untried, is_enough)]

    # What is cheapest: foreseen from what was seen; whatever is chosen, the guarantee holds. --
    def _costs_more(self, chosen: NDArray[np.int64], counts: Counts) -> bool:
        """Whether these proofs now cost more than going on to spot proofs."""
        cost = int(self.inputs.book.proof_costs(self.inputs.mask, chosen).sum())
        others = (self._cost(test, counts) for test in self.ahead)
        return any(other < cost for other in (self._cost_of_above(counts), *others))

    def _is_cheapest(self, test: SpotProofs, counts: Counts) -> bool:
        """Whether these spot proofs are the cheapest way to "below" that is foreseen."""
        cost = self._cost(test, counts)
        others = [self._cost(other, counts) for other in self.ahead]
        others += [self._cost_of_all(counts), self._cost_of_above(counts)]
        return cost < np.inf and cost <= min(others)

    def _cost(self, test: SpotProofs, counts: Counts) -> float:
        then = counts.scaled(test.rows)
        missed = math.ceil(MISSED * then.untried)
        proofs = test.needed(then.hits + then.unknown + missed, then.untried - missed)
        if proofs is None:
            return np.inf
        opened = self._open_costs(test.rows, then.untried)
        proving = (1 + TRIES_SHARE) * proofs * float(opened.mean())
        return self._cost_to_come(test.rows, counts) + proving

    def _cost_of_all(self, counts: Counts) -> float:
        """What it costs to prove as many as the plain rule needs."""
        for size in self._sizes(counts.total, self.rule.max_samples):
            then = counts.scaled(size)
            if self.rule.decide(then.hits, then.misses + then.untried, then.unknown) == "below":
                proofs = float(self._open_costs(size, then.untried).sum())
                return self._cost_to_come(size, counts) + proofs
        return np.inf

    def _cost_of_above(self, counts: Counts) -> float:
        """What it costs to go on until "above" is shown without proofs, if it goes on like this.

        Eight times as many inputs as the fixed test has, at most.
        """
        if self.rule.spot == "none":
            return np.inf
        for size in self._sizes(counts.total, 8 * self.rule.max_samples):
            then = counts.scaled(size)
            if self.rule.shows_above(then.hits, size - then.hits):
                return self._cost_to_come(size, counts)
        return np.inf

    def _open_costs(self, size: int, untried: int) -> NDArray[np.int64]:
        """What it costs to settle each of so many open ones among the first `size` inputs."""
        places = np.linspace(0, size - 1, max(untried, 1)).astype(np.int64)
        now = self.inputs.open_places
        places[: len(now)] = now[: len(places)]
        return self.inputs.book.proof_costs(self.inputs.mask, places)

    def _sizes(self, size: int, last: int) -> Iterator[int]:
        while size < last:
            yield size
            size = int(1.25 * size) + 1  # sizes at which the cost of proving all is foreseen
        yield last

    def _cost_to_come(self, size: int, counts: Counts) -> float:
        """What it costs to look at so many inputs in all."""
        each = 1 + FIRST_TRIES * (counts.untried + counts.misses) / counts.total
        return max(size - counts.total, 0) * each


def _likely_end(rule: ThresholdRule, counts: Counts) -> int:
    """After how many inputs a set is decided, if it goes on like this."""
    return rule.likely_samples(counts.hits, counts.misses + counts.untried + counts.unknown)
