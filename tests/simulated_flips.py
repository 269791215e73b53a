"""A book of flips that needs no subject: for simulations of what is decided or estimated on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.search.base_inputs import AtHand
from themis.search.cells import UNTRIED
from themis.subjects.readings import CONSTANT, FLIP, UNKNOWN


class SimulatedBook:
    """Base inputs that flip with some probability, and are found to with another."""

    averages = False

    def __init__(
        self, seed: int, share: float, found: float, cost: int, failing: float = 0.0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.flips = rng.random(5_000) < share
        self.easy = rng.random(5_000) < found
        self.fails = rng.random(5_000) < failing  # whether it flips can't be known
        self.rng = rng
        self.cost = cost
        self.proofs = 0
        self.at_hand = AtHand()

    def probe(self, mask: int, start: int, stop: int) -> NDArray[np.int8]:
        found = self.flips[start:stop] & self.easy[start:stop]
        return np.where(found, FLIP, UNTRIED).astype(np.int8)

    def probe_again(self, mask: int, states: Any, budget: float) -> NDArray[np.int8]:
        found = self.flips[: len(states)] & (self.rng.random(len(states)) < 0.3)
        return np.where((states == UNTRIED) & found, FLIP, states).astype(np.int8)

    def settle(self, mask: int, states: Any, start: int, chosen: Any) -> NDArray[np.int8]:
        self.proofs += len(chosen)
        settled = states.copy()
        settled[chosen] = np.where(self.flips[chosen], FLIP, CONSTANT)
        settled[chosen[self.fails[chosen]]] = UNKNOWN
        return settled

    def shuffled(self, mask: int, places: Any) -> Any:
        return self.rng.permutation(places)

    def proof_cost(self, mask: int) -> int:
        return self.cost

    def proof_costs(self, mask: int, places: Any) -> Any:
        return np.full(len(places), self.cost)

    few_calls = False

    def is_exhaustive(self, mask: int) -> bool:
        return True

    def names(self, mask: int) -> tuple[str, ...]:
        return ("race",)


def constant_first(book: SimulatedBook, mask: int, places: Any) -> Any:
    """An order that is not random: those that do not flip come first."""
    return places[np.argsort(book.flips[places], kind="stable")]
