"""The cells of a search: which sets of variants there are, what belongs to a set, what it costs."""

from __future__ import annotations

import math

import numpy as np

from themis.engine.sampler import Sampler
from themis.engine.variants import Rows, Variants
from themis.inputs.assignments import Assignments, Places
from themis.inputs.streams import VARIANTS
from themis.search.base_inputs import SearchedInputs
from themis.search.flip_cells import SAMPLE_TRIES, UNTRIED, FlipCells
from themis.search.lattice import members, subsets
from themis.search.parts import Parts

WIDEST = 6  # sets with more characteristics are only sampled


class CellStore:
    """The cells of the sets of some columns, each made when it is first asked for."""

    def __init__(self, sampler: Sampler, columns: tuple[int, ...], *, cap: int) -> None:
        self.sampler = sampler
        self.columns = columns
        self.cap = cap
        self.inputs = SearchedInputs(sampler, columns)
        self._cells: dict[int, FlipCells] = {}
        self._spare: dict[int, FlipCells] = {}  # cells in which nothing was tried
        self._counts: dict[int, int] = {}
        self._of = Parts(sampler.population.schema, columns)

    @property
    def few_calls(self) -> bool:
        """Whether calls are to be few, and may be large."""
        return self.sampler.runner.saves_calls

    def is_exhaustive(self, mask: int) -> bool:
        """Whether all variants of a set are tried, so that a row can be called constant."""
        return self.cell(mask).complete

    def proof_cost(self, mask: int) -> int:
        """The executions that prove that an input does not flip, if nothing is known of it."""
        return self._count(mask) - 1

    def proof_costs(self, mask: int, places: Places) -> Places:
        """The same for each of these base inputs, less what was run in smaller sets."""
        costs = np.full(len(places), self.proof_cost(mask), np.int64)
        for part in self.parts(mask):
            cell = self._cells.get(part)
            if cell is not None and part != mask:
                known = places < len(cell.state)
                done = np.zeros(len(places), dtype=bool)
                done[known] = cell.state[places[known]] != UNTRIED
                costs -= done * self._exactly(part)
        return costs

    def _exactly(self, mask: int) -> int:
        """How many assignments change all characteristics of a set."""
        return math.prod(self._count(1 << place) - 1 for place in members(self._of.changed(mask)))

    @property
    def averages(self) -> bool:
        """Whether flips are draws of how far outputs differ."""
        return self.sampler.reading.averages

    def names(self, mask: int) -> tuple[str, ...]:
        """The names of a set's characteristics."""
        return self._assignments(mask).names

    def parts(self, mask: int) -> list[int]:
        """The subsets of a set, cheap ones first; of a very wide set only those that are known."""
        if mask.bit_count() > WIDEST:
            found = [part for part in self._cells if self._of.is_part(part, mask)]
            return sorted({*found, mask}, key=lambda part: (part.bit_count(), part))
        parts = (self._of.part(part, mask) for part in subsets(mask))
        return sorted(parts, key=lambda part: (self._count(part), part))

    def _settling(self, mask: int) -> list[int]:
        """The parts that settle a set; one with too many assignments has a sample of them."""
        return self.parts(mask) if self.is_exhaustive(mask) else [mask]

    def _known_parts(self, mask: int) -> list[int]:
        """The same parts, and those in which followers are rewritten to what the set may be."""
        parts = self.parts(mask)
        return [*parts, *(each for part in parts for each in self._of.rewritten(part))]

    def part_of(self, changed: int, mask: int) -> int:
        """The part of a set whose variants change these characteristics."""
        return self._of.part(changed, mask)

    def _count(self, mask: int) -> int:
        if mask not in self._counts:
            self._counts[mask] = self._assignments(mask).count
        return self._counts[mask]

    def _assignments(self, mask: int) -> Assignments:
        columns = tuple(self.columns[place] for place in members(self._of.changed(mask)))
        held = tuple(self.columns[place] for place in members(self._of.held(mask)))
        return Assignments(self.sampler.population.schema, columns, held)

    def cell(self, mask: int) -> FlipCells:
        """What is known of the variants that change exactly this part."""
        if mask not in self._cells and mask in self._spare:
            self._cells[mask] = self._spare.pop(mask)
        if mask not in self._cells:
            assignments = self._assignments(mask)
            complete = assignments.count <= self.cap and len(assignments.columns) <= WIDEST
            limit = self.cap if complete else 2
            variants = Variants.of(assignments, limit=limit, base=self.sampler.base)
            if not complete:
                variants = self._sampled(assignments)
            self._cells[mask] = FlipCells(variants, complete)
        return self._cells[mask]

    def _sampled(self, assignments: Assignments) -> Variants:
        """Random assignments of a set that has too many: a fixed list for all base inputs."""
        rng = self.sampler.base.generator(VARIANTS, len(assignments.columns), *assignments.columns)
        drawn = assignments.random_levels(rng, 16 * SAMPLE_TRIES)
        return Variants(assignments, drawn, complete=False)

    def _rows(self, mask: int, places: Places) -> Rows:
        return self.inputs.rows(self._assignments(mask), places)
