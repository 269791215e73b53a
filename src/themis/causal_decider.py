"""Is a set's causal score above the threshold? Decided on the flips of common base inputs.

That an input flips takes a few tries, that it does not takes all variants. "Above" needs no proof:
an input that has not flipped so far counts as "no flip", which is the safe side. "Below" needs
proofs, of all inputs that count as "no flip" or of a random part of them, whichever is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from themis.decisions import Decision, Spot, ThresholdRule
from themis.flip_cells import UNTRIED
from themis.flips import FIRST_TRIES, FlipBook
from themis.lattice import members
from themis.readings import CONSTANT, FLIP, UNKNOWN
from themis.results import TestedSet
from themis.search import SearchRequest
from themis.settings import Settings
from themis.spot_proofs import SpotProofs

SPOT_COST = 16  # sets whose proofs take fewer executions prove all that they need
DEAR_SPOT_COST = 256  # from here on twice as many inputs may be tried for fewer proofs
MISSED = 0.03  # of the open inputs, flips that the tries may have missed: to plan with caution
TRIES_SHARE = 0.2  # what more tries before proofs may cost, in parts of the proofs
LOOKS = (8, 16, 32, 64)  # inputs that are tried to foresee what a set will cost
DEAR = 1_000  # executions from which on a decision is put off for larger sets
PATIENCE = 3  # given up when so many times as many proofs are needed as were planned
PILOT = 10  # open inputs settled before the others, to learn what flips them
_GROWTH = 1.25  # of the sample sizes at which the cost of proving all is foreseen


@dataclass
class CausalDecider:
    """Decides causal scores on the flips of common base inputs."""

    book: FlipBook
    search: SearchRequest
    settings: Settings

    def decide(self, mask: int, delta: float) -> TestedSet:
        way = self._way(mask, delta)
        states, decision = way.run()
        counts = Counts.of(states)
        reason = f"{counts.hits} of {len(states)} inputs flip"
        if counts.untried:
            reason = f"at least {reason}"
        if counts.unknown:
            reason += f", {counts.unknown} could not be settled"
        names = self.book.names(way.mask)
        return TestedSet(names, decision, reason, len(states), counts.hits / len(states))

    def takes_proofs(self, mask: int, delta: float) -> bool:
        return self._way(mask, delta).takes_proofs()

    def _way(self, mask: int, delta: float) -> _Decision:
        own = sum(1 << self.search.columns[place] for place in members(mask))
        rule = ThresholdRule(self.search.threshold, self.settings.error, delta, self._spot(own))
        return _Decision(self.book, own, rule)

    def _spot(self, mask: int) -> Spot:
        """Whether spot proofs are planned; it depends on the number of assignments alone."""
        cost = self.book.proof_cost(mask)
        if not self.book.is_exhaustive(mask) or cost < SPOT_COST:
            return "none"
        return "some" if cost < DEAR_SPOT_COST else "many"


@dataclass(frozen=True)
class Counts:
    """How many inputs flip, are constant, stay unknown, and are not settled yet."""

    hits: int
    misses: int
    unknown: int
    untried: int

    @classmethod
    def of(cls, states: NDArray[np.int8]) -> Counts:
        return cls(*(int((states == each).sum()) for each in (FLIP, CONSTANT, UNKNOWN, UNTRIED)))

    @property
    def total(self) -> int:
        return self.hits + self.misses + self.unknown + self.untried

    def scaled(self, total: int) -> Counts:
        """As they would be among so many inputs, if it goes on like this."""
        part = total / self.total
        hits, misses, unknown = (
            round(part * each) for each in (self.hits, self.misses, self.unknown)
        )
        return Counts(hits, misses, unknown, max(total - hits - misses - unknown, 0))


class _Decision:
    """The way to one decision."""

    def __init__(self, book: FlipBook, mask: int, rule: ThresholdRule) -> None:
        self.book = book
        self.mask = mask
        self.rule = rule
        self.ahead = rule.spot_proofs()
        self.tried_again = not self.ahead  # before all is settled; cheap sets need not
        self.states: NDArray[np.int8] = np.empty(0, dtype=np.int8)

    def takes_proofs(self) -> bool:
        """Whether "below" is foreseen from a few inputs, and only by many proofs."""
        cost = 0.0
        for count in LOOKS if self.ahead else ():
            self.states = self.book.probe(self.mask, 0, count)
            counts = Counts.of(self.states)
            cost = min(self._cost_of_all(counts), *(self._cost(t, counts) for t in self.ahead))
            if cost < DEAR:
                return False
        return DEAR <= cost < np.inf

    def run(self) -> tuple[NDArray[np.int8], Decision]:
        """The states of the inputs that were looked at, and what they say."""
        while True:
            counts = Counts.of(self.states)
            decision = self._decide(counts)
            if decision != "undecided" or self._at_end():
                return self.states, decision
            if self.ahead and counts.total == self.ahead[0].rows:
                test = self.ahead.pop(0)
                if self._is_cheapest(test, counts):
                    if self._prove_some(test):
                        return self.states, "below"
                    continue
            if counts.total >= self.rule.max_samples and not self.tried_again:
                self.tried_again = True
                self._try_more(np.flatnonzero(self.states == UNTRIED))
                continue
            chosen = self._to_settle(counts)
            if not len(chosen):
                self._draw(counts)
            elif not self._is_dearer(chosen, counts):
                self._settle(chosen)
            else:
                self._draw(counts, at_least=counts.total // 8)

    def _decide(self, counts: Counts) -> Decision:
        if counts.total > self.rule.max_samples:
            first = Counts.of(self.states[: self.rule.max_samples])
            last = self.rule.decide_last(first.hits, first.unknown + first.untried)
            if last != "undecided":
                return last
        return self.rule.decide(counts.hits, counts.misses, counts.unknown + counts.untried)

    def _at_end(self) -> bool:
        """Whether all that the last test looks at is settled."""
        first = self.states[: self.rule.max_samples]
        return len(first) == self.rule.max_samples and UNTRIED not in first

    def _draw(self, counts: Counts, at_least: int = 1) -> None:
        used = counts.total
        steps = self.rule.safe_steps(counts.hits, counts.misses + counts.untried, counts.unknown)
        steps = max(steps, at_least)
        if self.ahead:
            steps = min(steps, self.ahead[0].rows - used)
        more = self.book.probe(self.mask, used, used + steps)
        self.states = np.concatenate([self.states, more])

    def _settle(self, chosen: NDArray[np.int64]) -> None:
        self.states = self.book.settle(self.mask, self.states, 0, chosen)

    def _try_more(self, places: NDArray[np.int64]) -> None:
        """Try more variants of all open inputs, for a part of what it costs to settle these."""
        budget = TRIES_SHARE * float(self.book.proof_costs(self.mask, places).sum())
        self.states = self.book.probe_again(self.mask, self.states, budget)

    def _prove_some(self, test: SpotProofs) -> bool:
        """Settle open inputs in random order until the test says "below", or can't any more.

        An input that turns out to flip teaches which variants to try on all open ones.
        """
        counts = Counts.of(self.states)
        open_places = np.flatnonzero(self.states == UNTRIED)
        planned = test.needed(counts.hits + counts.unknown, counts.untried) or counts.untried
        self._try_more(open_places[:planned])
        counts = Counts.of(self.states)
        sample = test.start(counts.hits + counts.unknown, counts.untried)
        block = PILOT
        while (needed := sample.needed()) is not None and needed <= PATIENCE * planned:
            order = self.book.shuffled(self.mask, np.flatnonzero(self.states == UNTRIED))
            chosen = order[: min(needed, block)]
            self._settle(chosen)
            flips = int((self.states[chosen] != CONSTANT).sum())
            sample.settle(len(chosen), flips)
            if sample.done:
                return True
            block = len(self.states)
            if flips:
                open_before = Counts.of(self.states).untried
                self._try_more(order[:needed])
                sample.found(open_before - Counts.of(self.states).untried)
                block = PILOT
        return False

    def _to_settle(self, counts: Counts) -> NDArray[np.int64]:
        """The fewest inputs to settle that could decide "below"; none while that is too far."""
        rule, untried = self.rule, counts.untried
        hits, misses, unknown = counts.hits, counts.misses, counts.unknown
        open_places = np.flatnonzero(self.states == UNTRIED)
        if counts.total >= rule.max_samples:
            return open_places[open_places < rule.max_samples]
        if not untried or rule.decide(hits, misses + untried, unknown) != "below":
            return open_places[:0]
        few, enough = 0, untried
        while enough - few > 1:
            middle = (few + enough) // 2
            if rule.decide(hits, misses + middle, unknown + untried - middle) == "below":
                enough = middle
            else:
                few = middle
        return open_places[:enough]

    # What is cheapest: foreseen from what was seen; whatever is chosen, the guarantee holds. --
    def _is_dearer(self, chosen: NDArray[np.int64], counts: Counts) -> bool:
        """Whether these proofs now cost more than going on to spot proofs."""
        cost = int(self.book.proof_costs(self.mask, chosen).sum())
        return any(self._cost(test, counts) < cost for test in self.ahead)

    def _is_cheapest(self, test: SpotProofs, counts: Counts) -> bool:
        """Whether these spot proofs are the cheapest way to "below" that is foreseen."""
        cost = self._cost(test, counts)
        others = [self._cost(other, counts) for other in self.ahead]
        others.append(self._cost_of_all(counts))
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
        for size in self._sizes(counts.total):
            then = counts.scaled(size)
            if self.rule.decide(then.hits, then.misses + then.untried, then.unknown) == "below":
                proofs = float(self._open_costs(size, then.untried).sum())
                return self._cost_to_come(size, counts) + proofs
        return np.inf

    def _open_costs(self, size: int, untried: int) -> NDArray[np.int64]:
        """What it costs to settle each of so many open ones among the first `size` inputs."""
        places = np.linspace(0, size - 1, max(untried, 1)).astype(np.int64)
        now = np.flatnonzero(self.states == UNTRIED)
        places[: len(now)] = now[: len(places)]
        return self.book.proof_costs(self.mask, places)

    def _sizes(self, size: int) -> Iterator[int]:
        while size < self.rule.max_samples:
            yield size
            size = int(_GROWTH * size) + 1
        yield self.rule.max_samples

    def _cost_to_come(self, size: int, counts: Counts) -> float:
        """What it costs to look at so many inputs in all."""
        each = 1 + FIRST_TRIES * (counts.untried + counts.misses) / counts.total
        return max(size - counts.total, 0) * each
