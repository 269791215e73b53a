"""Outputs that are numbers beside known ones: mean errors and calibration by group.

They are what the rows show, with their weights, and there is no interval: no verdict rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
from themis.inputs.people import KnownNumbers
from themis.results.outcomes import ErrorGroup, Errors, Tenth
from themis.scores.outcomes import with_intersection
from themis.scores.people import PeopleRun
from themis.scores.privacy import PeopleGroups
from themis.statistics.intervals import Floats
from themis.subjects.labels import NumberPart
from themis.subjects.readings import Reading

TENTHS = 10


def known_errors(
    run: PeopleRun, numbers: KnownNumbers, reading: Reading, sets: Sequence[tuple[int, ...]]
) -> Iterator[Errors]:
    """The errors of the groups of each set, and of their intersections; all people were run.

    Rows without a known number or without an output are left out.
    """
    labels = reading.labels
    assert isinstance(labels, NumberPart)
    place = np.empty(len(run.order), dtype=np.int64)
    place[run.order] = np.arange(len(run.order))
    person = place[numbers.person]  # of each row, as they were run
    cells = reading.cells(run.answers)[person]
    there = cells >= 0
    person, known, weights = person[there], numbers.values[there], numbers.weights[there]
    output = labels.values[cells[there]]
    tenth = _tenths(output, weights)
    for columns in with_intersection(sets):
        groups = PeopleGroups.of(run, columns)
        own = np.full(len(run.order), -1)
        own[groups.inside] = groups.own
        members = [np.flatnonzero(own[person] == group) for group in range(len(groups.labels))]
        rows = [
            _group(values, output[each], known[each], weights[each], tenth[each])
            for values, each in zip(groups.labels, members, strict=True)
        ]
        listed = sorted(rows, key=lambda each: -each.people)[:200]
        yield Errors(
            against=groups.names,
            label=numbers.label,
            people=sum(each.people for each in rows),
            groups=tuple(each for each in rows if each in listed),
            groups_total=len(rows),
            output=reading.details().get("output"),
        )


def _tenths(output: Floats, weights: Floats) -> NDArray[np.int64]:
    """The tenth of all outputs, by weight, that each is in; equal ones are in the same."""
    own = np.unique(output, return_inverse=True)[1]
    reached = np.cumsum(np.bincount(own, weights))
    middle = reached - np.bincount(own, weights) / 2
    return np.minimum((TENTHS * middle / reached[-1:]).astype(np.int64), TENTHS - 1)[own]


def _group(
    values: dict[str, Value],
    output: Floats,
    known: Floats,
    weights: Floats,
    tenth: NDArray[np.int64],
) -> ErrorGroup:
    parts = (np.flatnonzero(tenth == number) for number in range(TENTHS))
    return ErrorGroup(
        values=values,
        people=len(output),
        mean_error=_mean(output - known, weights),
        mean_absolute_error=_mean(np.abs(output - known), weights),
        tenths=tuple(
            Tenth(len(p), _mean(output[p], weights[p]), _mean(known[p], weights[p])) for p in parts
        ),
    )


def _mean(figures: Floats, weights: Floats) -> float | None:
    return float(np.average(figures, weights=weights)) if len(figures) else None
