"""Variants: the columns of a set's table, and the rows of base inputs that they are applied to.

They can be described instead, by rows of a stream and what changes, and drawn where they are run:
row i of a stream depends on the seed and i alone, so the stream travels once, and after that a task
of however many inputs is a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.following import Tie, follow
from themis.inputs.schema import Schema
from themis.inputs.streams import VARIANTS, BaseInputs
from themis.subjects.readings import Tolerances

TRIED = 100  # assignments tried per row where not all can be


@dataclass(frozen=True)
class Variants:
    """The columns of a set's table: all its assignments, or some where they are too many."""

    assignments: Assignments
    levels: NDArray[np.int64]  # one row per column of the table
    complete: bool  # whether these are all assignments

    @classmethod
    def of(cls, assignments: Assignments, *, limit: int, base: BaseInputs) -> Variants:
        """All assignments; where they are more than `limit`, the extreme ones and random ones.

        A sample can show that a row flips but not that it is constant, so it is kept small. Its
        first column is the base input itself.
        """
        if assignments.count <= limit:
            return all_variants(assignments)
        rng = base.generator(VARIANTS, *assignments.columns)
        each = [assignments.schema.characteristics[c] for c in assignments.columns]
        ends = (one.possible_levels(np.array([0, one.possible_count - 1])).tolist() for one in each)
        corners = np.array(list(islice(product(*ends), 32)))
        drawn = assignments.random_levels(rng, 2 * limit)
        candidates = np.concatenate([corners, drawn])
        _, first = np.unique(candidates, axis=0, return_index=True)
        some = candidates[np.sort(first)[: min(limit, TRIED) - 1]]
        own = np.full((1, len(each)), OWN)
        return cls(assignments, np.concatenate([own, some]), complete=False)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.levels)

    @cached_property
    def by_position(self) -> list[NDArray[np.int64]]:
        """The levels of each characteristic, one behind the other."""
        return [np.ascontiguousarray(each) for each in self.levels.T]

    @cached_property
    def keeps(self) -> list[bool]:
        """Whether some column leaves each characteristic as it is."""
        return [bool((each == OWN).any()) for each in self.by_position]


def all_variants(assignments: Assignments) -> Variants:
    """Every assignment of a set as a column, however many there are."""
    levels = assignments.levels(np.arange(assignments.count))
    return Variants(assignments, levels, complete=True)


@dataclass
class Rows:
    """Some consecutive base inputs, with the member that stands for each bin of the set."""

    codes: NDArray[Any]
    members: dict[int, NDArray[Any]]  # column → rows × bins
    tolerances: Tolerances = None
    valid: bool = False  # whether they surely meet all constraints, as what is drawn does
    start: int | None = None  # the first one's row in a stream that may be drawn elsewhere

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Only these rows."""
        codes = self._codes_of(places)
        tolerances = None if self.tolerances is None else self.tolerances[places]
        members = {c: each[places] for c, each in self.members.items()}
        return Rows(codes, members, tolerances, self.valid)

    def _codes_of(self, places: NDArray[np.int64]) -> NDArray[Any]:
        codes: NDArray[Any] = self.codes.T.take(places, axis=1).T  # column after column, as all are
        return codes

    def changes(self, variants: Variants, place: int) -> Iterator[tuple[int, NDArray[Any] | int]]:
        """The columns that one column of the table changes, and their codes in these rows."""
        assignments = variants.assignments
        new = dict(zip(assignments.columns, variants.levels[place].tolist(), strict=True))
        for column, level in new.items():
            yield column, self._codes_at(column, level)
        for tie in assignments.followed:
            yield tie.follower, self.followed(variants, tie, slice(place, place + 1))[:, 0]

    def followed(
        self, variants: Variants, tie: Tie, places: slice | NDArray[np.int64] = slice(None)
    ) -> NDArray[Any]:
        """The codes of what follows the set: rows × columns of the table."""
        was = tie.levels(self.codes)[:, None]
        now = tie.joined([self._levels(variants, tie, each, places) for each in tie.leaders])
        now = np.broadcast_to(now, (len(self), len(variants.levels[places])))
        own = np.broadcast_to(self.codes[:, tie.follower][:, None], now.shape)
        return np.where(was == now, own, tie.moved(now, own))

    def _levels(
        self, variants: Variants, tie: Tie, leader: int, places: slice | NDArray[np.int64]
    ) -> NDArray[Any]:
        """The levels of one leader in the variants, whether they change it or not."""
        own, columns = tie.own_level(self.codes, leader)[:, None], variants.assignments.columns
        if leader not in columns:
            return own
        new = variants.levels[None, places, columns.index(leader)]
        return np.where(new == OWN, own, new)

    def _codes_at(self, column: int, level: int) -> NDArray[Any] | int:
        """The codes that a level of a column means in these rows."""
        if level == OWN:
            own: NDArray[Any] = self.codes[:, column]
            return own
        if column in self.members:
            members: NDArray[Any] = self.members[column][:, level]
            return members
        return int(level)

    def all_changes(
        self, variants: Variants, places: slice | NDArray[np.int64] = slice(None)
    ) -> dict[int, NDArray[Any]]:
        """The codes of the variants of these rows in what changes: rows × variants each.

        Where all rows have the same ones it is one row.
        """
        assignments = variants.assignments
        new = {
            column: self._changed(column, variants.levels[places, position])
            for position, column in enumerate(assignments.columns)
        }
        followed = assignments.followed
        return new | {tie.follower: self.followed(variants, tie, places) for tie in followed}

    def _changed(self, column: int, levels: NDArray[np.int64]) -> NDArray[Any]:
        members = self.members.get(column)
        new = levels[None, :] if members is None else members[:, levels]
        if members is None and not (levels == OWN).any():
            return new
        return np.where(levels == OWN, self.codes[:, column][:, None], new)

    def own_levels(self, assignments: Assignments) -> NDArray[Any]:
        """The levels that the base inputs have themselves, one column per characteristic."""
        characteristics = assignments.schema.characteristics
        return np.stack(
            [characteristics[c].level_of(self.codes[:, c]) for c in assignments.columns], axis=1
        )

    def inputs(
        self, variants: Variants, rows: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[Any]:
        """The inputs of single cells, given by their rows and columns of the table."""
        codes = self._codes_of(rows)
        before = codes.copy() if variants.assignments.followed else codes
        for position, column in enumerate(variants.assignments.columns):
            levels = variants.by_position[position][places]
            members = self.members.get(column)
            new = levels if members is None else members[rows, levels]
            if variants.keeps[position] and (kept := levels == OWN).any():
                new = np.where(kept, self.codes[rows, column], new)
            codes[:, column] = new
        follow(variants.assignments.followed, before, codes)
        return codes


def own_columns(variants: Variants, rows: Rows) -> NDArray[np.int64]:
    """The column of the table in which each base input itself stands."""
    if variants.complete:
        return variants.assignments.index_of(rows.codes)
    own = int((variants.levels == OWN).all(axis=1).argmax())
    return np.full(len(rows), own, dtype=np.int64)


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
