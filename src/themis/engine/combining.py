"""Combining: several runs on the same inputs as one; the most frequent label, the mean number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Places
from themis.subjects.decisions import FAILED, NOT_RUN, Cells
from themis.subjects.label_parts import NumberPart
from themis.subjects.labels import Labels

# Runs the inputs at these places, or all, for the n-th time.
RunAgain: TypeAlias = Callable[[int, Places | None], Cells]


def run_combined(run: RunAgain, runs: int, labels: Labels) -> Cells:
    """The combined outputs of so many runs; inputs that further runs can't change are left out.

    Of three runs the third is only needed where the first two differ; a mean needs them all.
    """
    first = run(0, None)
    if runs == 1:
        return first
    seen = np.full((runs, len(first)), NOT_RUN, dtype=first.dtype)
    seen[0] = first
    for number in range(1, runs):
        places = np.flatnonzero(~_is_settled(seen[:number], runs, labels))
        if not len(places):
            break
        seen[number, places] = run(number, None if len(places) == len(first) else places)
    return combine(seen, labels)


def combine(seen: Cells, labels: Labels) -> Cells:
    """What the runs amount to, output by output; rows are runs, columns inputs.

    Unless more than half of the runs gave an answer there is none: FAILED. A run that was left out
    (NOT_RUN) must not be able to change the answer.
    """
    parts = [
        _mean(part, labels.part_cells(place, seen))
        if isinstance(part, NumberPart)
        else _most_frequent(labels.part_cells(place, seen))
        for place, part in enumerate(labels.parts)
    ]
    return labels.join(parts)


def _most_frequent(seen: NDArray[Any]) -> NDArray[Any]:
    """The most frequent label of each column; of equally frequent ones, the one seen first."""
    votes = _votes(seen)
    best = votes.max(axis=0)
    winners: NDArray[Any] = seen[0].copy()
    for cells, count in zip(seen[::-1], votes[::-1], strict=True):
        np.copyto(winners, cells, where=(count == best) & (cells >= 0))
    winners[_is_failed(seen, len(seen))] = FAILED
    return winners


def _mean(part: NumberPart, seen: NDArray[Any]) -> NDArray[Any]:
    """The mean of each column's numbers; a new one gets a number of its own."""
    failed = _is_failed(seen, len(seen))
    given = seen >= 0
    values = np.append(part.values, 0.0)[np.where(given, seen, -1)]
    means = values.sum(axis=0) / np.maximum(given.sum(axis=0), 1)
    least = values.min(axis=0, where=given, initial=np.inf)
    most = values.max(axis=0, where=given, initial=-np.inf)
    means = np.clip(means, least, most)  # rounding may lead out: three times 0.1 is above 0.3
    numbers = np.full(seen.shape[1], FAILED, dtype=seen.dtype)
    numbers[~failed] = part.number_array(means[~failed])
    return numbers


def _is_settled(seen: Cells, runs: int, labels: Labels) -> NDArray[np.bool_]:
    """Which inputs have a majority of all the runs already, of labels or of failures."""
    if 2 * len(seen) < runs:
        return np.zeros(seen.shape[1], dtype=bool)
    decided = np.ones(seen.shape[1], dtype=bool)
    for place, part in enumerate(labels.parts):
        cells = labels.part_cells(place, seen)
        decided &= not isinstance(part, NumberPart) and 2 * _votes(cells).max(axis=0) > runs
    return decided | _is_failed(seen, runs)


def _is_failed(seen: NDArray[Any], runs: int) -> NDArray[np.bool_]:
    failed: NDArray[np.bool_] = 2 * (seen == FAILED).sum(axis=0) >= runs
    return failed


def _votes(seen: NDArray[Any]) -> NDArray[np.int64]:
    """For each cell how many runs gave the same label; 0 where there is none."""
    votes = np.zeros(seen.shape, dtype=np.int64)
    for cells in seen:  # runs are few, labels may be many
        votes += (seen == cells) & (seen >= 0)
    return votes
