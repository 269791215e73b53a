"""Kin: pairs of inputs of which the second is a variant of the first, with all that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from themis.inputs.assignments import Assignments
from themis.inputs.following import as_drawn, follow, rewrite
from themis.inputs.schema import Schema

Pair: TypeAlias = NDArray[Any]  # two inputs: 2 × characteristics


@dataclass(frozen=True)
class Kin:
    """How pairs that differ in a set may be changed: the second stays a variant of the first."""

    assignments: Assignments

    @property
    def schema(self) -> Schema:
        return self.assignments.schema

    @property
    def columns(self) -> list[int]:
        """The set that the two may differ in."""
        return list(self.assignments.columns)

    def differing(self, pair: Pair) -> list[int]:
        """The characteristics of the set in which the two differ."""
        return [column for column in self.columns if pair[0, column] != pair[1, column]]

    def changed(self, pair: Pair, sides: list[int], columns: list[int], values: Any) -> Pair:
        """The pair with other values on these sides, and with what follows them."""
        candidate = pair.copy()
        for side in sides:
            candidate[side, columns] = values
        if not self.schema.ties:
            return candidate
        first, second = candidate[:1], candidate[:1].copy()
        free = [tie for tie in self.schema.ties if tie.follower not in self.columns]
        follow(free, pair[:1], first)
        if not as_drawn(free, first).all():
            rewrite(free, first)
        second[:, :] = first
        second[:, self.columns] = candidate[1, self.columns]
        follow(self.assignments.followed, first, second)
        candidate[1] = second[0]
        return candidate
