"""Sets of characteristics and their assignments: the columns of the table (Def. 3.6, 3.7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import OWN, Characteristic, Value
from themis.inputs.following import Tie
from themis.inputs.keys import InputKeys, numbered
from themis.inputs.schema import Schema

Places = NDArray[np.int64]  # numbers of rows, or of columns


@dataclass(frozen=True)
class Assignments:
    """All joint levels of a set of characteristics, numbered 0, 1, … with the last one fastest.

    What follows a characteristic of the set is rewritten with it, unless it is in the set itself,
    or `held` for a larger set that it is in.
    """

    schema: Schema
    columns: tuple[int, ...]
    held: tuple[int, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the set's characteristics, in schema order."""
        return tuple(self.schema.names[column] for column in self.columns)

    @property
    def set_columns(self) -> tuple[int, ...]:
        """The columns of the set, with those that it holds."""
        return tuple(sorted({*self.columns, *self.held}))

    @cached_property
    def followed(self) -> tuple[Tie, ...]:
        """The ties of what is rewritten where the set is changed."""
        own = {*self.columns, *self.held}
        ties = self.schema.ties
        led = (tie for tie in ties if not own.isdisjoint(tie.leaders))
        return tuple(tie for tie in led if tie.follower not in own)

    @property
    def changed(self) -> tuple[int, ...]:
        """The columns that variants may differ in: the set's, and those of what follows it."""
        return (*self.columns, *(tie.follower for tie in self.followed))

    @property
    def holds_followers(self) -> bool:
        """Whether a variant of the set may be an input that nobody draws."""
        ties = self.schema.ties
        return any(tie.follower in self.columns for tie in ties if not tie.derived)

    @property
    def followed_names(self) -> tuple[str, ...]:
        """The names of the characteristics that are rewritten with the set."""
        return tuple(self.schema.names[tie.follower] for tie in self.followed)

    @cached_property
    def _each(self) -> tuple[Characteristic, ...]:
        return tuple(self.schema.characteristics[column] for column in self.columns)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of possible levels of each characteristic of the set."""
        return tuple(each.possible_count for each in self._each)

    @property
    def count(self) -> int:
        """The number of assignments, exact however large."""
        return math.prod(self.shape)

    def levels(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The levels of these assignments: one row each, one column per characteristic."""
        places = zip(self._each, np.unravel_index(indices, self.shape), strict=True)
        return np.stack([each.possible_levels(own) for each, own in places], axis=1)

    def random_levels(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Levels of random assignments, however many there are."""
        places = [rng.integers(0, possible, count) for possible in self.shape]
        own = zip(self._each, places, strict=True)
        return np.stack([each.possible_levels(each_place) for each, each_place in own], axis=1)

    def _levels_of(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        own = zip(self._each, self.columns, strict=True)
        return [np.asarray(each.level_of(codes[:, column])) for each, column in own]

    def places_of(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Where each input's own assignment stands, per characteristic of the set."""
        own = zip(self._each, self._levels_of(codes), strict=True)
        places = [each.possible_places(levels) for each, levels in own]
        return np.stack(places, axis=1).astype(np.int64, copy=False)

    def index_of(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each input's own assignment."""
        places = self.places_of(codes)
        return np.asarray(np.ravel_multi_index(tuple(places.T), self.shape), dtype=np.int64)

    def contexts(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """A number for each input that is the same exactly for inputs with the same context."""
        kept = {c: code for c, code in self.schema.kept_missing.items() if c in self.columns}
        return context_keys(codes, self.columns, {c: codes[:, c] == kept[c] for c in kept})

    def variant_keys(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The same for inputs that also have the same variants: no values of their own, or one."""
        kept = self.schema.kept_missing
        marks: dict[int, NDArray[Any]] = {}
        for column in self.columns:
            each, own = self.schema.characteristics[column], codes[:, column]
            if column in kept or each.has_own:
                missing = (own == kept.get(column, OWN)).astype(np.int64)
                marks[column] = np.where(each.level_of(own) == OWN, own + 2, missing)
        return context_keys(codes, self.columns, marks)

    def own_levels(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Each input's level of each characteristic; values of no level count as ones of theirs."""
        own = np.stack(self._levels_of(codes), axis=1)
        beyond = codes[:, self.columns] + np.array([each.levels for each in self._each])
        return np.where(own == OWN, beyond, own).astype(np.int64, copy=False)

    def are_groups(self, levels: NDArray[Any]) -> NDArray[np.bool_]:
        """Which assignments, by their levels, are groups.

        Those without "missing", unless that is a counterfactual, and without values of no level.
        """
        result: NDArray[np.bool_] = (levels != OWN).all(axis=1)
        for position, each in enumerate(self._each):
            if each.keeps_missing:
                result &= levels[:, position] != each.filled_levels
        return result

    def in_groups(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which inputs belong to a group; all, if none does."""
        if not any(each.keeps_missing or each.has_own for each in self._each):
            return np.ones(len(codes), dtype=bool)
        result = self.are_groups(np.stack(self._levels_of(codes), axis=1))
        return result if result.any() else ~result

    def labels(self, index: int) -> dict[str, Value]:
        """What an assignment is called, by characteristic."""
        return self.label_of(self.levels(np.array([index]))[0].tolist())

    def label_of(self, levels: Sequence[int]) -> dict[str, Value]:
        """What the assignment with these levels is called."""
        own = zip(self._each, levels, strict=True)
        return {each.name: each.level_label(level) for each, level in own}

    def labels_of(self, indices: NDArray[np.int64]) -> Labels:
        """What these assignments are called."""
        return Labels(self, self.levels(indices))

    @cached_property
    def binned(self) -> tuple[int, ...]:
        """The columns of the set that take bins instead of values."""
        own = zip(self._each, self.columns, strict=True)
        return tuple(column for each, column in own if each.bin_starts is not None)


@dataclass(frozen=True)
class Labels(Sequence[dict[str, Value]]):
    """What some assignments are called, by characteristic; there may be millions.

    Each is made when it is asked for.
    """

    assignments: Assignments
    levels: NDArray[np.int64]  # one row each, one column per characteristic

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, place: Any) -> Any:
        return self.assignments.label_of(self.levels[place].tolist())


def set_name(names: Sequence[str]) -> str:
    """A set as it is written everywhere: `race,sex`."""
    return ",".join(names)


def context_keys(
    codes: NDArray[Any],
    columns: tuple[int, ...],
    marks: Mapping[int, NDArray[Any]] | None = None,
) -> NDArray[np.int64]:
    """A number for each input that is the same exactly for inputs with the same context.

    That is an input without these columns; of some of them, `marks` belong to the context.
    """
    unmarked = tuple(c for c in columns if c not in (marks or {}))
    if marks:
        codes = codes.copy()
        for column, mark in marks.items():
            codes[:, column] = mark
    keys = InputKeys.among(codes).of(codes, without=unmarked)
    return numbered(keys)[1]
