"""What a region is described by: conditions on single characteristics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import Value
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
        name = characteristic.name
        if self.values:
            shown = [_written(characteristic.value(code)) for code in self.values]
            if self.values == (characteristic.missing_code,):
                return f"{name} is {'not ' if self.excluded else ''}missing"
            if len(shown) == 1:
                return f"{name} {'≠' if self.excluded else '='} {shown[0]}"
            return f"{name} is {'none' if self.excluded else 'one'} of {', '.join(shown)}"
        low, high = (_written(characteristic.value(code)) for code in (self.low, self.high))
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


def _written(value: Value) -> str:
    if value is None:
        return "missing"
    return value if isinstance(value, str) else json.dumps(value)
