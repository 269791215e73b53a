"""Base inputs of one set: a few variants of each are tried, and some are proved not to flip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Places
from themis.search.flip_cells import UNTRIED
from themis.search.flips import FlipBook
from themis.statistics.thresholds import SpotSample
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN

TRIES_SHARE = 0.2  # what more tries before proofs may cost, in parts of the proofs
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
