"""Names of people, drawn from those that go with what they are."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, derived
from themis.inputs.documents import Dealt, place_of, placed
from themis.inputs.row_files import rows_of

MOST_DRAWS = 240  # where lists differ in length and have no small common multiple


@dataclass(frozen=True)
class Names:
    """Lists of names, one for each combination of the values of some characteristics.

    Among the draws of a combination each of its names is as often as any other, as far as their
    number allows; in which order is fixed, and has nothing to do with that of another combination.
    There are about as many draws as pairs of names, so that many different ones meet.
    """

    by: tuple[str, ...]
    lists: Mapping[tuple[str, ...], tuple[str, ...]] = field(repr=False)

    @property
    def draws(self) -> int:
        """How many draws there are."""
        sizes = [len(each) for each in self.lists.values()]
        common, pairs = math.lcm(*sizes), min(max(sizes) ** 2, MOST_DRAWS)
        if common > MOST_DRAWS:
            return max(MOST_DRAWS, 2 * max(sizes))
        return -(-pairs // common) * common

    def expanded(self, name: str) -> Iterator[tuple[str, Characteristic]]:
        """The context that is drawn, and the name that goes with it."""
        draw = f"{name} draw"
        yield draw, Dealt([str(number) for number in range(1, self.draws + 1)])
        table: dict[str, Any] = {}
        for values, names in self.lists.items():
            inner = table
            for value in values:
                inner = inner.setdefault(value, {})
            rng = np.random.default_rng(zlib.crc32(json.dumps(values).encode()))
            order = rng.permutation(np.resize(np.arange(len(names)), self.draws)).tolist()
            inner |= {str(number): names[place] for number, place in enumerate(order, 1)}
        yield name, derived([*self.by, draw], table)


def names(given: Any, *, by: Sequence[str], column: str = "name") -> Names:
    """The names in a column of a table, or of a file, for each combination of others in it.

    As an input, `name=names("names.csv", by=["sex"])`, it is derived from these, and from a draw
    that is a context of its own: so what is compared differs in nothing but the name.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    rows = rows_of(given, only={column, *by})
    known = rows.names or tuple(rows.columns)
    mistakes = [
        Mistake("missing-column", "names", f"{rows.name} has no column {each!r}",
                suggest(each, known))
        for each in (column, *by)
        if each not in known
    ]  # fmt: skip
    if not by:
        remedy = 'write for example by = ["sex"]'
        mistakes.append(Mistake("names", "by", "the names go with no characteristic", remedy))
    if mistakes:
        raise RequestError(mistakes)
    cells = [
        [str("" if v is None else v).strip() for v in rows.columns[each].tolist()]
        for each in (column, *by)
    ]
    empty = [
        place_of(rows, row) for row, each in enumerate(zip(*cells, strict=True)) if not all(each)
    ]
    if empty:
        problem = f"{rows.name}: a name, or what it goes with, is missing in {placed(empty)}"
        raise RequestError.one("names", "names", problem, "fill it in, or remove the row")
    lists: dict[tuple[str, ...], dict[str, None]] = {}
    for own, *values in zip(*cells, strict=True):
        lists.setdefault(tuple(values), {})[own] = None
    return Names(by, {values: tuple(each) for values, each in lists.items()})
