"""Counts of simulated runs, and when they are too many false verdicts to be chance."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from themis.statistics.intervals import exact_ends

LEVEL = 0.01  # the chance that any cell of a table fails although all promises hold


@dataclass(frozen=True)
class Run:
    """What one simulated run ended with."""

    convicted: bool  # violated, listed as found, called new: the verdict that may be false
    undecided: bool
    executions: int  # inputs that the subject saw, for whatever reason


@dataclass(frozen=True)
class Tally:
    """The counts of one cell."""

    runs: int
    convicted: int
    undecided: int
    executions: int  # of all runs

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Tally:
        """The sums over runs."""
        all_runs = list(runs)
        return cls(
            len(all_runs),
            sum(each.convicted for each in all_runs),
            sum(each.undecided for each in all_runs),
            sum(each.executions for each in all_runs),
        )

    def surely_above(self, share: float, *, cells: int) -> bool:
        """Whether more runs convict than this share, beyond what chance explains.

        Compares the lower Clopper–Pearson end at LEVEL / cells.
        """
        return self.lowest(cells=cells) > share

    def lowest(self, *, cells: int) -> float:
        """The lower Clopper–Pearson end of the share of convictions, at LEVEL / cells."""
        return exact_ends(self.convicted, self.runs, LEVEL / cells)[0]


def simulate(run: Callable[[int], Run], runs: int) -> Tally:
    """The tally of runs 0, 1, 2, …"""
    return Tally.of(run(number) for number in range(runs))


def randomness(name: str, number: int, purpose: int = 0) -> np.random.Generator:
    """Random numbers of one run of a cell, the same in every process and on every machine."""
    return np.random.default_rng([zlib.crc32(name.encode()), number, purpose])
