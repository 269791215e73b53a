"""Readings: a subject's answers as one output, and what a measure sees in them.

Causal scores average the largest distance of a base input's variants from its own output. Where
only flips can be counted, as in searches, a base input has a tolerance between 0 and 1, drawn for
it once, and flips when some variant's output is farther from its own than that: the chance of a
flip is the largest distance. Means of very many groups, and those of the paper's procedures, are
measured alike: an output counts as favourable when its share of the scale exceeds the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.columns import favourable_text
from themis.subjects.decisions import FAILED, NOT_RUN
from themis.subjects.labels import Labels, NumberPart, Part
from themis.subjects.outputs import Output, Statistic

FLIP, CONSTANT, UNKNOWN = 1, 0, -1  # what a row can be

Tolerances = NDArray[np.float64] | None


@dataclass(frozen=True)
class Reading:
    """One output of a subject; without a declared one, the decision itself."""

    source: Labels
    place: int = 0
    statistic: Statistic = "rate"

    @property
    def output(self) -> Output | None:
        """The declared output."""
        return self.source.declared[self.place] if self.source.declared else None

    @property
    def labels(self) -> Part:
        """The distinct values of this output."""
        return self.source.parts[self.place]

    def numbers_of(self, shown: list[Any]) -> NDArray[Any]:
        """The numbers of outputs as pairs show them: where labels are declared, of the labels.

        What the subject answers is another text, and a label need not be among the texts it means.
        """
        labels = self.labels
        if labels.meanings is None:
            return labels.number(shown)
        return np.array([labels.labels.index(each) for each in shown], dtype=np.int32)

    @property
    def graded(self) -> bool:
        """Whether outputs can differ a little."""
        return self.output is not None and self.output.graded

    @property
    def averages(self) -> bool:
        """Whether a causal score is how far outputs differ on average, and not how often."""
        output = self.output
        return output is not None and output.graded and output.tolerance is None

    @property
    def needs_tolerances(self) -> bool:
        """Whether rows must know their tolerance."""
        return self.graded or self.statistic == "mean"

    @property
    def has_favourable(self) -> bool:
        """Whether some outputs count as favourable."""
        return self.output is None or "rate" in self.output.statistics

    def cells(self, answers: NDArray[Any]) -> NDArray[Any]:
        """What this output is in a table of answers."""
        return self.source.part_cells(self.place, answers)

    def details(self) -> dict[str, Any]:
        """What a score says about its output."""
        if self.output is None:
            return {}
        named = len(self.source.parts) > 1 or self.output.name != "output"
        return {
            "output": self.output.name if named else None,
            "distance": self.output.distance_text,
            "scale": self.output.scale if self._scaled else None,
        }

    @property
    def favours(self) -> str | None:
        """What counts as favourable in rates: `yes, maybe`, `more than 300`; None of means."""
        if self.statistic != "rate" or not self.has_favourable:
            return None
        if self.output is not None and self.output.cut is not None:
            return f"more than {self.output.cut:.15g}"
        return favourable_text(self.labels.wanted)

    @property
    def _scaled(self) -> bool:
        return self.statistic == "mean" or (
            self.output is not None and self.output.distance == "relational"
        )

    def is_favourable(
        self, cells: NDArray[Any], tolerances: Tolerances = None
    ) -> NDArray[np.bool_]:
        """Which cells hold a favourable output; of a mean, by each row's tolerance."""
        if self.statistic == "rate":
            return self.labels.is_favourable(cells)
        assert isinstance(self.labels, NumberPart)
        assert tolerances is not None
        limits = tolerances.reshape(-1, *[1] * (cells.ndim - 1))
        return (self.labels.shares(cells) > limits) & (cells >= 0)

    def favourable_ends(
        self, cells: NDArray[Any], tolerances: Tolerances = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Certainly favourable, and possibly: one that failed or is missing could go either way.

        The two are one array where nothing failed.
        """
        favourable = self.is_favourable(cells, tolerances)
        possible = favourable
        if not (cells.size and cells.min() >= 0):
            possible = favourable | (cells == FAILED) | (cells == NOT_RUN)
        return favourable, possible

    def share_ends(self, cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """How favourable each output is, at least and at most: 0 or 1, or a share of a scale.

        The two are one array where nothing failed.
        """
        if self.statistic == "rate":
            return self.favourable_ends(cells)
        assert isinstance(self.labels, NumberPart)
        shares = self.labels.shares(cells)
        if cells.size and cells.min() >= 0:
            return shares, shares
        return shares, np.where(cells < 0, 1.0, shares)

    def distances(self, own: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
        """How far outputs are from those of the base inputs; 0 where there is none."""
        known = (own >= 0) & (others >= 0)
        result = np.zeros(len(own))
        result[known] = self.labels.distances(own[known], others[known])
        return result

    def differs(
        self, own: NDArray[Any], others: NDArray[Any], tolerances: Tolerances = None
    ) -> NDArray[np.bool_]:
        """Whether outputs count as others than those of the base inputs."""
        if not self.graded:
            return np.asarray((own != others) & (own >= 0) & (others >= 0))
        assert tolerances is not None
        return np.asarray(self.distances(own, others) > tolerances)

    def row_states(
        self, cells: NDArray[Any], own: NDArray[np.int64] | None, tolerances: Tolerances
    ) -> NDArray[np.int8]:
        """Whether each row is a FLIP, CONSTANT or UNKNOWN.

        `own` is the base input's column of each row, which plain differences do not need.
        """
        if not self.graded:
            return row_states(cells)
        assert own is not None
        assert tolerances is not None
        return _states(cells, self.row_distances(cells, own) > tolerances)

    def settled_states(
        self, cells: NDArray[Any], own: NDArray[np.int64] | None
    ) -> NDArray[np.int8]:
        """The same, where a row flips that no further output can bring farther from its own."""
        return self.row_states(cells, own, np.full(len(cells), np.nextafter(1.0, 0.0)))

    def row_distances(self, cells: NDArray[Any], own: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far the farthest output of each row is from the base input's, as far as is known."""
        base = cells[np.arange(len(cells)), own]
        farthest = np.zeros(len(cells))
        for column in cells.T:
            np.maximum(farthest, self.distances(base, column), out=farthest)
        return farthest

    def ranks(self) -> NDArray[Any]:
        """For each distinct output, how good it is: favourable or not, or a number itself."""
        labels = self.labels
        if isinstance(labels, NumberPart) and labels.output.favourable is None:
            return labels.values
        return labels.favourable


def row_states(cells: NDArray[Any]) -> NDArray[np.int8]:
    """Whether each row is a FLIP, CONSTANT, or UNKNOWN, where every difference counts.

    Unknown: no two outputs differ, but some failed or were not tried.
    """
    largest = cells.max(axis=1)
    if cells.size and cells.min() >= 0:  # all were run, and none failed
        return np.asarray(cells.min(axis=1) != largest, dtype=np.int8)
    unsigned = np.dtype(f"u{cells.itemsize}")
    smallest = cells.view(unsigned).min(axis=1)  # as unsigned, cells without output are large
    return _states(cells, (largest >= 0) & (smallest != largest.view(unsigned)))


def _states(cells: NDArray[Any], flips: NDArray[np.bool_]) -> NDArray[np.int8]:
    open_cells = ((cells == FAILED) | (cells == NOT_RUN)).any(axis=1)
    states = np.where(open_cells, UNKNOWN, CONSTANT).astype(np.int8)
    states[flips] = FLIP
    return states
