"""What a region is described by: conditions on single characteristics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Characteristic, Reals, Value
from themis.inputs.schema import Schema


@dataclass(frozen=True)
class Condition:
    """The codes that a column may have: from `low` to `high`, or some values, or all but some."""

    column: int
    low: int = 0
    high: int = 0
    values: tuple[int, ...] = ()
    excluded: bool = False  # the values are those that it may not have

    def holds(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which inputs meet it."""
        own = codes[:, self.column]
        if not self.values:
            return np.asarray((own >= self.low) & (own <= self.high))
        return np.isin(own, self.values, invert=self.excluded)

    def text(self, schema: Schema) -> str:
        """The condition as it is read: `age ≥ 40`, `education is one of HS, BA`."""
        characteristic = schema.characteristics[self.column]
        name, written = characteristic.name, partial(_written, whole=_is_whole(characteristic))
        if self.values:
            shown = [written(characteristic.value(code)) for code in self.values]
            if self.values == (characteristic.missing_code,):
                return f"{name} is {'not ' if self.excluded else ''}missing"
            if len(shown) == 1:
                return f"{name} {'≠' if self.excluded else '='} {shown[0]}"
            return f"{name} is {'none' if self.excluded else 'one'} of {', '.join(shown)}"
        low, high = (written(characteristic.value(code)) for code in (self.low, self.high))
        if self.low == self.high:
            return f"{name} = {low}"
        if self.low == 0:
            return f"{name} ≤ {high}"
        return (
            f"{name} ≥ {low}"
            if self.high == characteristic.size - 1
            else f"{low} ≤ {name} ≤ {high}"
        )


def meets_all(conditions: Sequence[Condition], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which inputs meet all of these conditions."""
    inside = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        inside &= condition.holds(codes)
    return inside


def _is_whole(characteristic: Characteristic) -> bool:
    """Whether it has whole numbers alone, although they are given as 31000.0."""
    if not isinstance(characteristic, Reals):
        return False
    return float(characteristic.min).is_integer() and float(characteristic.step or 0.5).is_integer()


def _written(value: Value, *, whole: bool) -> str:
    if value is None:
        return "missing"
    if whole and isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)
