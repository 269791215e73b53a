"""Which levels of a characteristic go with favourable decisions? It orders what is tried first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Variants
from themis.inputs.schema import Schema
from themis.statistics.intervals import Floats

MOST_LEVELS = 4_096  # of a characteristic with more, no level comes twice


class LevelRates:
    """The favourable rates of single levels, as seen so far; before, they count as one half."""

    def __init__(self, schema: Schema, columns: tuple[int, ...]) -> None:
        levels = {column: schema.characteristics[column].levels for column in columns}
        known = {column: size for column, size in levels.items() if size <= MOST_LEVELS}
        self._schema = schema
        self._favourable = {column: np.ones(size) for column, size in known.items()}
        self._total = {column: np.full(size, 2.0) for column, size in known.items()}

    def learn(self, codes: NDArray[Any], favourable: NDArray[np.bool_]) -> None:
        """Count inputs and which of them got a favourable decision."""
        for column, total in self._total.items():
            levels = self._schema.characteristics[column].level_of(codes[:, column])
            self._favourable[column] += np.bincount(levels, favourable, minlength=len(total))
            total += np.bincount(levels, minlength=len(total))

    def likeness(self, variants: Variants) -> Floats:
        """How much each variant is like those with favourable decisions: the sum of log odds."""
        points = np.zeros(variants.width)
        for position, column in enumerate(variants.assignments.columns):
            if column in self._total:
                rate = self._favourable[column] / self._total[column]
                points += np.log(rate / (1 - rate))[variants.levels[:, position]]
        return points
