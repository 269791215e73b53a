"""Counts of simulated runs, runs that cover all combinations, a clock that only subjects move."""

from __future__ import annotations

import sys
import time
import traceback
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from themis.statistics.intervals import clopper_pearson

LEVEL = 0.01  # the chance that any cell of a table fails although all promises hold


@dataclass(frozen=True)
class Run:
    """What one simulated run ended with."""

    convicted: bool  # violated, listed as found, called new: the verdict that may be false
    undecided: bool
    executions: int  # inputs that the subject saw, for whatever reason
    reported: bool = False  # that the subject contradicts itself


class Simulation(Protocol):
    """Something that can be run again and again, each time with other random numbers."""

    @property
    def name(self) -> str:
        """All that it is, in one line."""

    def run(self, number: int) -> Run:
        """The run of this number, the same each time."""


@dataclass(frozen=True)
class Tally:
    """The counts of one cell."""

    runs: int = 0
    convicted: int = 0
    undecided: int = 0
    reported: int = 0
    executions: int = 0  # of all runs
    crashed: int = 0  # runs that ended with an error of Themis itself

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def price(self) -> float:
        """The mean number of executions."""
        return self.executions / self.runs

    def surely_above(self, share: float, *, cells: int) -> bool:
        """Whether more runs convict than this share, beyond what chance explains.

        Compares the lower Clopper–Pearson end at LEVEL / cells.
        """
        return self.lowest(cells=cells) > share

    def lowest(self, *, cells: int) -> float:
        """The lower Clopper–Pearson end of the share of convictions, at LEVEL / cells."""
        return clopper_pearson(self.convicted, self.runs, 2 * LEVEL / cells)[0]


def simulate(simulation: Simulation, runs: int, *, first: int = 0, go_on: bool = False) -> Tally:
    """The tally of so many runs, beginning with the number `first`.

    With `go_on` a run that crashes is told on standard error and counted.
    """
    tally = Tally()
    for number in range(first, first + runs):
        try:
            run = simulation.run(number)
        except Exception:
            if not go_on:
                raise
            print(f"run {number} of {simulation.name}: {traceback.format_exc()}", file=sys.stderr)
            tally += Tally(runs=1, crashed=1)
            continue
        tally += Tally(1, run.convicted, run.undecided, run.reported, run.executions)
    return tally


def randomness(name: str, number: int, purpose: int = 0) -> np.random.Generator:
    """Random numbers of one run of a cell, the same in every process and on every machine."""
    return np.random.default_rng([zlib.crc32(name.encode()), number, purpose])


# Few cells that together hold every pair, or every triple, of values of their factors ---------


CANDIDATES = 60  # drawn for each cell; the one that holds most that is new is taken


def cover(
    factors: Mapping[str, Sequence[Any]], strength: int, seed: int = 20170904
) -> list[dict[str, Any]]:
    """Cells in which every combination of `strength` factors' values occurs; greedy, seeded."""
    names, rng = list(factors), np.random.default_rng(seed)
    left = {
        tuple(zip(chosen, values, strict=True))
        for chosen in combinations(names, strength)
        for values in product(*(range(len(factors[name])) for name in chosen))
    }
    cells = []
    while left:
        wanted = dict(min(left))  # so that every cell brings something new
        drawn = [
            {name: wanted.get(name, int(rng.integers(len(factors[name])))) for name in names}
            for _ in range(CANDIDATES)
        ]
        news = [left.intersection(combinations(cell.items(), strength)) for cell in drawn]
        best = max(range(CANDIDATES), key=lambda place: len(news[place]))
        left -= news[best]
        cells.append({name: factors[name][place] for name, place in drawn[best].items()})
    return cells


# A clock that only subjects move, for time budgets that do not depend on the machine ----------


class Clock:
    """Seconds since nobody knows when."""

    now = 1_000.0

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@contextmanager
def fake_time() -> Iterator[Clock]:
    """Within, every module of Themis that is loaded takes this clock for the time.

    Except for subjects: real processes have real time-outs.
    """
    clock = Clock()
    told = SimpleNamespace(
        **{**vars(time), "monotonic": lambda: clock.now, "perf_counter": lambda: clock.now}
    )
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("themis.") and not name.startswith("themis.subjects.")
        if getattr(module, "time", None) is time
    ]
    for module in modules:
        vars(module)["time"] = told
    try:
        yield clock
    finally:
        for module in modules:
            vars(module)["time"] = time
