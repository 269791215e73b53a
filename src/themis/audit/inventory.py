"""Inventories: what the subject answered in a run, each distinct output with its count."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.inputs.characteristics import Value
from themis.results.parts import LISTED_OUTPUTS, Inventory, OutputCount
from themis.scores.privacy import is_shared
from themis.subjects.decisions import cut_text
from themis.subjects.label_parts import NumberPart
from themis.subjects.readings import Reading

LONGEST = 80  # characters of an output


def inventories(runner: Runner, shared: Collection[Value] | None) -> Iterator[Inventory]:
    """The outputs that were seen, of each declared one; `shared` are those that name nobody."""
    source = runner.labels
    several = len(source.parts) > 1
    for place in range(len(source.parts)):
        reading = Reading(source, place)
        cells = reading.cells(np.flatnonzero(runner.answered))
        times = runner.answered[runner.answered > 0]
        counts = np.bincount(cells, times, len(reading.labels.labels)).astype(np.int64)
        if len(counts):
            name = reading.output.name if several and reading.output is not None else None
            yield _inventory(reading, counts, name, shared)


def _inventory(
    reading: Reading, counts: NDArray[np.int64], name: str | None, shared: Collection[Value] | None
) -> Inventory:
    labels = reading.labels
    listed: list[tuple[Value, OutputCount]] = []
    if not isinstance(labels, NumberPart) or len(counts) <= LISTED_OUTPUTS:
        columns = counts.tolist(), labels.labels, labels.favourable.tolist()
        each = sorted(zip(*columns, strict=True), key=lambda one: (-one[0], _text(one[1])))
        listed = [
            (value, OutputCount(_short(value), count, good if reading.has_favourable else None))
            for count, value, good in each[:LISTED_OUTPUTS]
        ]
    return Inventory(
        answers=int(counts.sum()),
        distinct=len(counts),
        counts=tuple(
            count if shared is None or is_shared(value, shared) else replace(count, rare=True)
            for value, count in listed
        ),
        output=name,
        **(_range(labels, counts) if isinstance(labels, NumberPart) else {}),
    )


def _range(part: NumberPart, counts: NDArray[np.int64]) -> dict[str, float]:
    """The ends and the mean of numbers, which do not depend on the order in which they came."""
    order = np.argsort(part.values)
    values, times = part.values[order], counts[order]
    mean = {"mean": float(np.average(values, weights=times))} if times.any() else {}
    return {"lowest": float(values[0]), **mean, "highest": float(values[-1])}


def _short(value: Any) -> Value:
    """An output as it is shown; of a long text the start, and a ranking as a text."""
    whole = value if isinstance(value, bool | int | float | str) else _text(value)
    return cut_text(whole, LONGEST) if isinstance(whole, str) else whole


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
