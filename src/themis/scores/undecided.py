"""Executions without a decision, by group: how many of how many, and whether groups differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.results.notes import Note
from themis.statistics.proportions import Interval
from themis.statistics.rates import joint_rates, sure_gap
from themis.subjects.decisions import FAILED, Cells
from themis.subjects.readings import Reading


@dataclass
class OpenCells:
    """The cells of a group score that hold no clear decision, counted as rows come."""

    reading: Reading
    groups: int
    undecided: NDArray[np.int64] = field(init=False)  # by group
    spelled: int = 0  # texts that are spelled like a favourable one, and are none

    def __post_init__(self) -> None:
        self.undecided = np.zeros(self.groups, dtype=np.int64)

    def add(self, cells: Cells, active: NDArray[np.bool_]) -> None:
        """Count rows with a column for each active group."""
        if cells.size and cells.min() < 0:
            self.undecided[active] += (cells == FAILED).sum(axis=0)
        self.spelled += int(self.reading.is_spelled(cells).sum())


def sampled_undecided(
    groups: Sequence[dict[str, Value]],
    undecided: NDArray[np.int64],
    trials: NDArray[np.int64],
    confidence: float,
) -> Iterator[Note]:
    """What is known of groups whose inputs were drawn; the ends hold for all of them together."""
    yield from undecided_notes(
        groups, undecided, trials, joint_rates(undecided, trials, confidence), confidence
    )


def exact_undecided(
    groups: Sequence[dict[str, Value]],
    undecided: NDArray[Any],
    trials: NDArray[Any],
    shares: NDArray[np.float64],
) -> Iterator[Note]:
    """What is known of groups all of whose inputs were run: the rates themselves, by weight."""
    rates = [Interval(share, share, share) for share in shares.tolist()]
    yield from undecided_notes(groups, undecided, trials, rates)


def people_undecided(
    groups: Sequence[dict[str, Value]],
    own: NDArray[np.int64],
    cells: Cells,
    weights: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> tuple[Note, ...]:
    """What is known of groups of given people; those who were not run may be either."""

    def total(amounts: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(own, amounts, len(groups)).astype(float)

    failed, run = cells == FAILED, cells >= FAILED
    if not failed.any():
        return ()
    weight = total(weights)
    low, high = total(weights * failed) / weight, total(weights * (failed | ~run)) / weight
    seen = np.maximum(total(weights * run), np.finfo(float).tiny)
    rates = [
        Interval(*each)
        for each in zip(
            (total(weights * failed) / seen).tolist(), low.tolist(), high.tolist(), strict=True
        )
    ]
    undecided, trials = total(counts * failed), total(counts * run)
    return tuple(undecided_notes(groups, undecided, trials, rates))


def undecided_notes(
    groups: Sequence[dict[str, Value]],
    undecided: NDArray[Any],
    trials: NDArray[Any],
    rates: Sequence[Interval],
    confidence: float | None = None,
) -> Iterator[Note]:
    """How often each group got no decision, if that happened; apart, if they surely differ.

    Without `confidence` the rates are those of everyone.
    """
    if not undecided.any():
        return
    each = [
        {"values": values, "undecided": int(open_), "samples": int(total),
         "rate": rate.score, "low": rate.low, "high": rate.high}
        for values, open_, total, rate in zip(groups, undecided, trials, rates, strict=True)
        if total
    ]  # fmt: skip
    gap = sure_gap([rate for rate, total in zip(rates, trials, strict=True) if total])
    if gap > 0:
        yield Note.of("no-decision-apart", groups=each, apart=gap, confidence=confidence)
    else:
        yield Note.of("no-decision-rates", groups=each, confidence=confidence)
