"""Memory: what was run in this process, what came of it, and batches that make use of it.

An input is known by its key: those of a small domain are the places of an array, those of a large
one are sorted. The tables of a large domain are known by the numbers of their rows instead: base
inputs come again for other sets, and to sort so many keys might take longer than to run them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.account import Ledger
from themis.engine.variants import Variants
from themis.inputs.assignments import Assignments, Places
from themis.inputs.characteristics import Codes
from themis.inputs.keys import InputKeys, Keys, first_places, numbered
from themis.inputs.schema import Schema
from themis.subjects.base import Batch
from themis.subjects.decisions import FAILED, NOT_RUN, Cells

WHOLE_LIMIT = 2**24  # bytes: a domain whose outputs fit into so many is remembered as an array
KEPT = 2**23  # outputs of a larger one that are kept at most
STORE_LIMIT = 2**25  # bytes of tables that are kept for other sets and later questions


class DenseOutputs:
    """An output for every key there is: keys are its places; the first under a key stays."""

    def __init__(self, count: int, dtype: np.dtype[Any]) -> None:
        self._cells: Cells = np.full(count, NOT_RUN, dtype=dtype)
        self.is_empty = True

    def look_up(self, keys: Keys) -> Cells:
        """The output under each key, NOT_RUN where there is none."""
        cells: Cells = self._cells[keys]
        return cells

    def add(self, keys: Keys, cells: Cells) -> None:
        """Keep these outputs."""
        keys, cells = _chosen(keys, cells, self._cells[keys] == NOT_RUN)
        self._cells[keys[::-1]] = cells[::-1]  # of equal keys the first is written last
        self.is_empty &= not len(keys)


class SortedOutputs:
    """Sorted keys with outputs, up to a given number; the first under a key stays.

    The newest are sorted by themselves, until they are an eighth of the others.
    """

    def __init__(self, dtype: np.dtype[Any], most: float = math.inf) -> None:
        self._dtype, self._most = dtype, most
        self._parts: list[tuple[Keys, Cells]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._parts)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not len(self)

    def look_up(self, keys: Keys) -> Cells:
        """The output under each key, NOT_RUN where there is none."""
        cells: Cells = np.full(keys.shape, NOT_RUN, dtype=self._dtype, order="F")
        for known, outputs in self._parts:
            if len(known):
                place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                found = known[place] == keys
                cells[found] = outputs[place[found]]
        return cells

    def add(self, keys: Keys, cells: Cells) -> None:
        """Keep these outputs, if there is room for them."""
        if len(self) + len(keys) > self._most:
            return
        new, first = np.unique(keys, return_index=True)
        fresh = self.look_up(new) == NOT_RUN
        outputs = cells[first[fresh]].astype(self._dtype, copy=False)
        none = (new[:0], outputs[:0])
        every, last = self._parts or (none, none)
        last = _together(last, (new[fresh], outputs))
        if len(last[0]) > len(every[0]) // 8:
            every, last = _together(every, last), none
        self._parts = [every, last]


def _together(known: tuple[Keys, Cells], new: tuple[Keys, Cells]) -> tuple[Keys, Cells]:
    """Two parts with sorted keys as one."""
    if not len(known[0]):
        return new
    places = np.searchsorted(known[0], new[0])
    return np.insert(known[0], places, new[0]), np.insert(known[1], places, new[1])


def _chosen(keys: Keys, cells: Cells, which: NDArray[np.bool_]) -> tuple[Keys, Cells]:
    """Only these, most often all of them: then nothing is copied."""
    return (keys, cells) if which.all() else (keys[which], cells[which])


class Memory:
    """The outputs of inputs by their keys, held in the way that suits the domain."""

    def __init__(self, keys: InputKeys, dtype: np.dtype[Any], ledger: Ledger | None = None) -> None:
        self.keys = keys
        self.is_whole = keys.count <= WHOLE_LIMIT // dtype.itemsize  # room for the whole domain
        self._outputs = (
            DenseOutputs(keys.count, dtype) if self.is_whole else SortedOutputs(dtype, KEPT)
        )
        self._ledger = ledger or Ledger()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was run yet."""
        return self._outputs.is_empty

    def look_up(self, keys: Keys) -> Cells:
        """The output of each input, NOT_RUN where it is not known."""
        return self._outputs.look_up(keys)

    def add(self, keys: Keys, cells: Cells) -> None:
        """Keep outputs, unless they are too many; those that were not run are left out."""
        self._outputs.add(*_chosen(keys, cells, cells >= FAILED))

    def settle(
        self, keys: Keys, run: Callable[[Places], Cells], *, keeps_failures: bool = True
    ) -> Cells:
        """The outputs of these inputs: those at places that are not known are run once, and kept.

        Each that was not run for this, the copies of others included, counts as remembered.
        """
        cells = self.look_up(keys)
        missing = np.flatnonzero(cells == NOT_RUN)
        wanted = keys[missing]
        new = missing[first_places(wanted)]
        if len(new):
            outputs = cells[new] = run(new)
            if len(new) < len(missing):
                first, number = numbered(wanted)
                cells[missing] = cells[missing[first[number]]]
            kept = slice(None) if keeps_failures else outputs != FAILED
            self._outputs.add(keys[new[kept]], outputs[kept])
        self._ledger.remember(len(cells) - len(new))
        return cells


class StoredRows:
    """The first rows of one set's table."""

    def __init__(self, assignments: Assignments, dtype: np.dtype[Any]) -> None:
        self.assignments = assignments
        self.count = 0
        self._cells: Cells = np.empty((0, assignments.count), dtype=dtype, order="F")

    @property
    def bytes(self) -> int:
        """How much room they take."""
        return self._cells[: self.count].nbytes

    def rows(self, start: int, stop: int) -> Cells:
        """Those of the rows start..stop that are kept: from `start` on, without a gap."""
        return self._cells[start : min(stop, self.count)]

    def put(self, start: int, cells: Cells) -> None:
        """Keep rows from `start` on, which is at most `count`; known ones are replaced."""
        stop = start + len(cells)
        self._cells = grown(self._cells, stop)
        self._cells[start:stop] = cells
        self.count = max(self.count, stop)


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """The array with at least so many rows, and room for more; new ones are zeros."""
    if length <= len(array):
        return array
    shape = max(length, len(array) * 5 // 4), *array.shape[1:]
    larger = np.zeros(shape, dtype=array.dtype, order="F")
    larger[: len(array)] = array
    return larger


class TableMemory:
    """What is kept of the tables on common base inputs, and of those inputs themselves."""

    def __init__(self, schema: Schema, dtype: np.dtype[Any]) -> None:
        self._base = StoredRows(Assignments(schema, ()), dtype)  # of no set: they stand as they are
        self._stored: dict[tuple[int, ...], StoredRows] = {}

    @property
    def reach(self) -> int:
        """How many of the first base inputs something is kept of."""
        return max(each.count for each in (self._base, *self._stored.values()))

    def base_outputs(self, stop: int) -> Cells:
        """The outputs of the first base inputs, as they were kept last."""
        outputs: Cells = self._base.rows(0, stop)[:, 0]
        return outputs

    def keep_base(self, start: int, cells: Cells) -> None:
        """Take note of the outputs of base inputs start, start + 1, …, unless there is a gap."""
        if start <= self._base.count:
            self._base.put(start, cells[:, None])

    def look_up(self, codes: NDArray[Any], start: int, cells: Cells) -> None:
        """Put what any table knows of base inputs start, start + 1, … where nothing is known."""
        stop = start + len(codes)
        base = self._base.rows(start, stop)[:, 0]
        _merge(cells[: len(base)], base)
        for stored in self._stored.values():
            known = stored.rows(start, stop)
            if len(known):
                own = stored.assignments.index_of(codes[: len(known)])
                _merge(cells[: len(known)], known[np.arange(len(known)), own])

    def recall(
        self, variants: Variants, codes: NDArray[Any], start: int, cells: Cells, least: int = 0
    ) -> None:
        """Put what the tables of all sets know of one set's rows from `start` on into them.

        The table of another set that can't know more than `least` outputs is not asked.
        """
        mine = variants.assignments
        stored = [
            each
            for each in self._stored.values()
            if start < each.count
            and (each.assignments.columns == mine.columns
                 or least < len(codes) * _common(mine, each.assignments).count)
        ]  # fmt: skip
        for each in stored:
            known = each.rows(start, start + len(codes))
            _borrow(variants, codes[: len(known)], each.assignments, known, cells)

    def keep(self, variants: Variants, start: int, cells: Cells) -> None:
        """Keep rows of a set's table from `start` on, unless there is a gap or too little room."""
        columns = variants.assignments.columns
        stored = self._stored.get(columns)
        if stored is None:
            stored = self._stored[columns] = StoredRows(variants.assignments, cells.dtype)
        used = sum(each.bytes for each in self._stored.values())
        if start <= stored.count and used + cells.nbytes < STORE_LIMIT:
            stored.put(start, cells)


def _borrow(
    variants: Variants, codes: NDArray[Any], other: Assignments, known: Cells, cells: Cells
) -> None:
    """Copy the outputs that another set's table holds for the same variants of the same inputs.

    They are those in which only characteristics of both sets differ from the base input; not one
    that something follows in the table of the one set and not in that of the other.
    """
    mine = variants.assignments
    if other.columns == mine.columns:
        _merge(cells[: len(known)], known)
        return
    both = _common(mine, other)
    own_mine, common_mine = _index_parts(mine, both, codes)
    own_other, common_other = _index_parts(other, both, codes)
    places = own_mine[:, None] + common_mine[None, :]
    values = np.take_along_axis(known, own_other[:, None] + common_other[None, :], axis=1)
    current = np.take_along_axis(cells[: len(known)], places, axis=1)
    np.put_along_axis(
        cells[: len(known)], places, np.where(current == NOT_RUN, values, current), axis=1
    )


def _common(mine: Assignments, other: Assignments) -> Assignments:
    """The assignments of what two sets have in common, and what follows in both or neither."""
    apart = {c for tie in {*mine.followed} ^ {*other.followed} for c in tie.leaders}
    common = (c for c in mine.columns if c in other.columns and c not in apart)
    return Assignments(mine.schema, tuple(common))


def _merge(cells: Cells, known: Cells) -> None:
    np.copyto(cells, known, where=cells == NOT_RUN)


def _index_parts(
    whole: Assignments, part: Assignments, codes: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A table column's number as own part (outside `part`, per input) + part's (per assignment)."""
    strides = np.cumprod([1, *whole.shape[:0:-1]])[::-1]
    places = whole.places_of(codes)
    own = np.zeros(len(codes), dtype=np.int64)
    common = np.zeros(part.count, dtype=np.int64)
    grid = np.unravel_index(np.arange(part.count), part.shape) if part.columns else ()
    for position, column in enumerate(whole.columns):
        if column in part.columns:
            common += grid[part.columns.index(column)] * strides[position]
        else:
            own += places[:, position] * strides[position]
    return own, common


# The input at a place of a batch, or the inputs at several places.
InputAt = Callable[[Any], NDArray[Any]]
Execute = Callable[[NDArray[Any]], Cells]  # inputs that are given as a whole


class PlainBatch:
    """Always executes: the domain is so large that no input comes twice."""

    def __init__(
        self, codes: NDArray[Any], batch: Batch, execute: Callable[[Batch, InputAt, int], Cells]
    ) -> None:
        self._codes = codes
        self._places: NDArray[np.int64] | None = None  # of these inputs among the codes
        self._changes: dict[int, Codes | int] = {}
        self._batch, self._execute = batch, execute

    def overwrite(self, column: int, codes: Codes | int) -> None:
        """Give all inputs these codes in one column, or all the same code."""
        self._changes[column] = codes
        self._batch.overwrite(column, codes)

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        """Only these inputs; columns that were overwritten must be overwritten again."""
        part = copy.copy(self)
        part._places, part._changes = places if self._places is None else self._places[places], {}
        part._batch = self._batch.take(places)
        return part

    def run(self) -> Cells:
        """The label numbers of the inputs as they stand now."""
        count = len(self._codes if self._places is None else self._places)
        return self._execute(self._batch, self._input_at, count)

    def _input_at(self, place: Any) -> NDArray[Any]:
        at = place if self._places is None else self._places[place]
        rows: NDArray[Any] = self._codes[at].copy()
        for column, codes in self._changes.items():
            rows[..., column] = codes if isinstance(codes, int) else codes[place]
        return rows


class WholeBatch:
    """Inputs that are known as a whole, so that what is known of them can be looked up.

    With a `memory` only inputs that were never run before are executed.
    """

    def __init__(
        self,
        codes: NDArray[Any],
        execute: Execute,
        memory: Memory | None = None,
        keeps_failures: Callable[[], bool] = lambda: True,
    ) -> None:
        self._codes = codes.copy(order="F")
        self._keys = None if memory is None else memory.keys.of(codes)
        self._execute, self._memory, self._keeps_failures = execute, memory, keeps_failures

    def overwrite(self, column: int, codes: Codes | int) -> None:
        before = self._codes[:, column].copy()
        self._codes[:, column] = codes
        if self._memory is not None and self._keys is not None:
            self._memory.keys.overwrite(self._keys, column, before, self._codes[:, column])

    def take(self, places: NDArray[np.int64]) -> RunnerBatch:
        part = copy.copy(self)
        part._codes = self._codes[places]
        part._keys = None if self._keys is None else self._keys[places]
        return part

    def run(self) -> Cells:
        codes, execute = self._codes, self._execute
        if self._memory is None or self._keys is None:
            return execute(codes)
        return self._memory.settle(
            self._keys,
            lambda places: execute(codes if len(places) == len(codes) else codes[places]),
            keeps_failures=self._keeps_failures(),
        )


RunnerBatch: TypeAlias = PlainBatch | WholeBatch  # what a runner has loaded
