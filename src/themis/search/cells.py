"""Cells: what is known of the variants that change exactly one set of characteristics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Sampler
from themis.engine.variants import Rows, Variants, all_variants
from themis.inputs.assignments import Assignments, Places
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
from themis.inputs.streams import VARIANTS
from themis.search.base_inputs import SearchedInputs
from themis.search.lattice import members, subsets
from themis.statistics.intervals import Flags
from themis.subjects.readings import CONSTANT, UNKNOWN

UNTRIED = -2  # further than FLIP, CONSTANT and UNKNOWN: not all was run, and nothing flipped
SAMPLE_TRIES = 128  # variants tried where all are too many: a flip can be found, not excluded

_ONES = np.array([each.bit_count() for each in range(256)], np.uint8)  # in a byte


class FlipCells:
    """What is known of the variants of base inputs that change exactly one set.

    Of inputs that are not settled there is a bit for each variant that needs no run any more.
    """

    def __init__(self, variants: Variants, *, complete: bool) -> None:
        self.variants, self.complete = variants, complete
        self.slot = np.empty(0, np.int32)  # the row of its bits; 0 has none
        self.failed, self.probed = np.empty((2, 0), np.bool_)
        # The narrowest numbers of variants: there are as many of these arrays as sets.
        self.flip_place = np.empty(0, np.min_scalar_type(-variants.width - 1))
        self.flip_output = np.empty(0, np.int32)
        self.state = np.empty(0, np.int8)
        # Inputs that were flipped, by decision and variant.
        self.hits = np.zeros((2, variants.width), np.int64)
        self._bits = np.zeros((1, -(-variants.width // 8)), np.uint8)
        self._free: list[int] = []  # slots

    def grow(self, count: int) -> None:
        """Make room for this many base inputs."""
        more = max(count - len(self.state), 0)
        if not more:
            return
        size = len(self.state) + max(more, len(self.state))
        fills = {"slot": 0, "failed": 0, "probed": 0, "flip_place": -1, "flip_output": 0}
        for name, value in {**fills, "state": UNTRIED}.items():  # last: an interrupt may come
            old = getattr(self, name)
            grown = np.concatenate([old, np.full(max(size - len(old), 0), value, old.dtype)])
            setattr(self, name, grown)

    def note_flips(self, places: Places, variants: Places, outputs: NDArray[Any]) -> None:
        """These base inputs flip under these variants, with these outputs."""
        self.flip_place[places] = variants
        self.flip_output[places] = outputs
        self._settle(places, 1)

    @property
    def end(self) -> int:
        """So many variants of an input are tried, at most."""
        width = self.variants.width
        return width if self.complete else min(width, SAMPLE_TRIES)

    def conclude(self, places: Places) -> None:
        """Those of these inputs of which all that are to be tried were are settled now."""
        over = places[(self.tried(places) >= self.end) & (self.state[places] == UNTRIED)]
        certain = ~self.failed[over] & self.complete
        self._settle(over, np.where(certain, CONSTANT, UNKNOWN))

    def _settle(self, places: Places, states: Any) -> None:
        self.state[places] = states
        slots = np.unique(self.slot[places])
        slots = slots[slots > 0]
        self.slot[places] = 0
        self._bits[slots] = 0
        self._free += slots.tolist()

    def note_run(self, places: Places, variants: Places) -> None:
        """These variants of these inputs need no run any more; each once, none of them before."""
        opened = self.state[places] == UNTRIED
        places, variants = places[opened], variants[opened]
        new = np.unique(places[self.slot[places] == 0])
        if len(new) > len(self._free):
            first, more = len(self._bits), max(len(new), len(self._bits))
            new_bits = np.zeros((more, self._bits.shape[1]), np.uint8)
            self._bits = np.concatenate([self._bits, new_bits])
            self._free += range(first, first + more)
        self.slot[new] = [self._free.pop() for _ in new]
        where = self.slot[places].astype(np.int64) * self._bits.shape[1] + (variants >> 3)
        np.add.at(self._bits.reshape(-1), where, (1 << (variants & 7)).astype(np.uint8))

    def tried(self, places: Places) -> Places:
        """How many variants of each of these inputs need no run any more, if it is not settled."""
        return np.asarray(_ONES[self._bits[self.slot[places]]].sum(axis=1, dtype=np.int64))

    def was_run(self, places: Places, variants: Places) -> Flags:
        """Which of these variants of these inputs need no run any more."""
        bits = self._bits[self.slot[places], variants >> 3] >> (variants & 7).astype(np.uint8)
        return np.asarray((bits & 1 > 0) | (self.state[places] != UNTRIED))

    def next_variants(
        self, places: Places, orders: Places, own: NDArray[Any], least: int
    ) -> tuple[Places, Places]:
        """The next variants of these inputs, each in its order: rows of `places`, and variants.

        At least so many more are looked at, or as many as were, until each input has one that is of
        the cell. As that depends on its own levels, a batch does not hold one variant only.
        """
        waiting, found = np.arange(len(places)), []
        while len(waiting):
            now = places[waiting]
            tried = self.tried(now)
            some = np.minimum(np.maximum(tried, least), self.end - tried)
            variants = orders[waiting, : int((tried + some).max())]
            fresh = ~self.was_run(now[:, None], variants)
            fresh &= np.cumsum(fresh, axis=1) <= some[:, None]
            is_one = self._are_of_cell(variants, own[waiting])
            row, step = np.nonzero(fresh & ~is_one)
            self.note_run(now[row], variants[row, step])
            row, step = np.nonzero(fresh & is_one)
            found.append((waiting[row], variants[row, step]))
            waits = tried + some < self.end
            waits[row] = False
            waiting = waiting[waits]
        rows, columns = (np.concatenate(each) for each in zip(*found, strict=True))
        by_row = np.argsort(rows, kind="stable") if len(found) > 1 else slice(None)
        return rows[by_row], columns[by_row]

    def _are_of_cell(self, variants: Places, own: NDArray[Any]) -> Flags:
        """Which variants change all characteristics; any, where not all are tried."""
        combine = np.logical_and if self.complete else np.logical_or
        result: Flags | None = None
        for position, levels in enumerate(self.variants.by_position):
            new = levels[variants]
            differs = new != own[:, position, None]
            if self.variants.keeps[position]:
                differs &= new != OWN
            result = differs if result is None else combine(result, differs, out=result)
        assert result is not None
        return result

    @cached_property
    def touching(self) -> Schema:
        """The schema with the constraints that read what the variants change."""
        assignments = self.variants.assignments
        return assignments.schema.touching(assignments.changed)


class Parts:
    """The parts of sets of some columns."""

    def __init__(self, schema: Schema, columns: tuple[int, ...]) -> None:
        self._width = len(columns)
        self._followers: dict[int, int] = {}  # what follows each place, as bits
        for tie in schema.ties:
            if {*tie.leaders, tie.follower} <= {*columns}:  # it is not derived: it has one leader
                place, follower = columns.index(tie.leaders[0]), columns.index(tie.follower)
                self._followers[place] = self._followers.get(place, 0) | 1 << follower

    def changed(self, part: int) -> int:
        """The characteristics that a part changes."""
        return part & ((1 << self._width) - 1)

    def held(self, part: int) -> int:
        """The followers of those that keep their value."""
        return part >> self._width

    def part(self, changed: int, mask: int) -> int:
        """The part of a set that changes exactly these of its characteristics."""
        if not self._followers:
            return changed
        followers = 0
        for place in members(changed):
            followers |= self._followers.get(place, 0)
        return changed | (followers & mask & ~changed) << self._width

    def is_part(self, part: int, mask: int) -> bool:
        """Whether it is one of the parts of a set."""
        changed = self.changed(part)
        return changed & mask == changed and self.part(changed, mask) == part

    def rewritten(self, part: int) -> Iterator[int]:
        """Parts of smaller sets whose variants are those of the same set, too.

        What is held here was rewritten there: the set may change it to the same value.
        """
        held, changed = self.held(part), self.changed(part)
        if held:
            yield changed
            yield from (changed | less << self._width for less in subsets(held) if less != held)


WIDEST = 6  # sets with more characteristics are only sampled


class CellStore:
    """The cells of the sets of some columns, each made when it is first asked for."""

    def __init__(self, sampler: Sampler, columns: tuple[int, ...], *, cap: int) -> None:
        self.sampler = sampler
        self.columns = columns
        self.cap = cap
        self.inputs = SearchedInputs(sampler, columns)
        self._cells: dict[int, FlipCells] = {}
        self._counts: dict[int, int] = {}
        self._of = Parts(sampler.population.schema, columns)

    @property
    def few_calls(self) -> bool:
        """Whether calls are to be few, and may be large."""
        return self.sampler.runner.saves_calls

    def is_exhaustive(self, mask: int) -> bool:
        """Whether all variants of a set are tried, so that a row can be called constant."""
        return self._count(mask) <= self.cap and self._of.changed(mask).bit_count() <= WIDEST

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
        if mask not in self._cells:
            assignments = self._assignments(mask)
            complete = self.is_exhaustive(mask)
            variants = all_variants(assignments) if complete else self._sampled(assignments)
            self._cells[mask] = FlipCells(variants, complete=complete)
        return self._cells[mask]

    def _sampled(self, assignments: Assignments) -> Variants:
        """Random assignments of a set that has too many: a fixed list for all base inputs."""
        rng = self.sampler.base.generator(VARIANTS, len(assignments.columns), *assignments.columns)
        drawn = assignments.random_levels(rng, 16 * SAMPLE_TRIES)
        return Variants(assignments, drawn, complete=False)

    def _rows(self, mask: int, places: Places) -> Rows:
        return self.inputs.rows(self._assignments(mask), places)
