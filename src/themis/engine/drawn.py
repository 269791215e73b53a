"""Drawn inputs: described by rows of a stream and what they change, and drawn where they are run.

Row i of a stream depends on the seed and i alone. So the stream travels once, and after that a task
of however many inputs is a few numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from themis.engine.variants import Rows, Variants
from themis.inputs.assignments import Assignments
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs

Streams: TypeAlias = tuple[BaseInputs, ...]


def base_rows(base: BaseInputs, assignments: Assignments, start: int, stop: int) -> Rows:
    """Rows start..stop of a stream, with the members that stand for the set's bins."""
    members = {column: base.members(column, start, stop) for column in assignments.binned}
    return Rows(base.rows(start, stop), members, valid=not base.population.profile)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of a stream with one assignment of a set, then the same rows with the next one.

    Or the same rows of one stream after another, as they are. Places give codes, a slice gives
    fewer inputs. It is pickled without its streams, which those who have them know by a name,
    unless it goes to one who has not.
    """

    streams: Streams | None
    name: str  # of the streams
    order: tuple[int, ...] | None  # of the streams, where they are several
    start: int  # the first row
    rows: int  # of each assignment
    chosen: bytes | None  # which rows from the first on, a bit for each; None: all
    columns: tuple[int, ...]  # of the set
    held: tuple[int, ...]
    levels: NDArray[Any]  # one row for each assignment
    first: int  # of rows × assignments: the first input
    count: int
    with_streams: bool = False  # when it is pickled

    @classmethod
    def of(
        cls,
        base: BaseInputs,
        start: int,
        rows: NDArray[np.int64],
        variants: Variants,
        places: NDArray[np.int64],
    ) -> Drawn:
        """These rows, counted from `start`, in these columns of a set's table."""
        chosen = None
        if rows[-1] >= len(rows):
            bits = np.zeros(rows[-1] + 1, dtype=bool)
            bits[rows] = True
            chosen = np.packbits(bits).tobytes()
        levels = variants.levels[places]
        return cls(
            (base,),
            base.name,
            None,
            start,
            len(rows),
            chosen,
            variants.assignments.columns,
            variants.assignments.held,
            levels.astype(np.min_scalar_type(-2 - levels.max())),  # with a sign
            0,
            len(rows) * len(places),
        )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({} if self.with_streams else {"streams": None})

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, places: slice) -> Drawn: ...
    @overload
    def __getitem__(self, places: int | NDArray[np.int64]) -> NDArray[Any]: ...
    def __getitem__(self, places: slice | int | NDArray[np.int64]) -> Drawn | NDArray[Any]:
        if isinstance(places, slice):
            begin, end, _ = places.indices(self.count)
            return self._part(self.first + begin, self.first + end)
        column, row = np.divmod(np.atleast_1d(places) + self.first, self.rows)
        codes = np.empty((len(row), len(self._schema)), dtype=self._schema.dtype, order="F")
        for place in np.unique(column).tolist():
            at = np.flatnonzero(column == place)
            rows = self._rows(place, 0, self.rows)
            codes[at] = rows.inputs(self._variants, row[at], column[at])
        return codes if np.ndim(places) else codes[0]

    def codes(self) -> NDArray[Any]:
        """All of them."""
        variants, done = self._variants, 0
        codes = np.empty((self.count, len(self._schema)), dtype=self._schema.dtype, order="F")
        for place in range(len(self.levels)):
            begin = max(self.first - place * self.rows, 0)
            end = min(self.first + self.count - place * self.rows, self.rows)
            rows, part = self._rows(place, begin, end), codes[done : done + end - begin]
            part[:] = rows.codes
            for column, changed in rows.changes(variants, place):
                part[:, column] = changed
            done += end - begin
        return codes

    def _part(self, first: int, last: int) -> Drawn:
        before, after = first // self.rows, -(-last // self.rows)
        return replace(
            self,
            order=None if self.order is None else self.order[before:after],
            levels=self.levels[before:after],
            first=first - before * self.rows,
            count=last - first,
        )

    @property
    def _schema(self) -> Schema:
        return self._stream(0).population.schema

    @property
    def _variants(self) -> Variants:
        assignments = Assignments(self._schema, self.columns, self.held)
        return Variants(assignments, self.levels.astype(np.int64), complete=False)

    def _rows(self, place: int, begin: int, end: int) -> Rows:
        """The rows of an assignment, or a stream, from one to another."""
        base, assignments = self._stream(place), self._variants.assignments
        if self.chosen is None:
            return base_rows(base, assignments, self.start + begin, self.start + end)
        bits = np.unpackbits(np.frombuffer(self.chosen, dtype=np.uint8))
        rows = np.flatnonzero(bits)[begin:end]
        first, last = int(rows[0]), int(rows[-1]) + 1
        drawn = base_rows(base, assignments, self.start + first, self.start + last)
        return drawn.take(rows - first)

    def _stream(self, place: int) -> BaseInputs:
        assert self.streams is not None
        return self.streams[0 if self.order is None else self.order[place]]


Inputs: TypeAlias = NDArray[Any] | Drawn


def codes_of(inputs: Inputs) -> NDArray[Any]:
    """The inputs themselves, drawn where they are described."""
    return inputs.codes() if isinstance(inputs, Drawn) else inputs
