"""Texts of tables that inputs have by number: documents with places inside, and names of people."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, Role, Values
from themis.inputs.following import derived
from themis.inputs.tables import Table, rows_of

ID = "id"  # the column with the names of documents, if there is one
LARGEST = 2**26  # bytes of a file
MOST_DRAWS = 240  # where lists of names differ in length and have no small common multiple


@dataclass(frozen=True)
class Dealt(Values):
    """A context of test inputs alone: rows of people need not have it, and get its values in turn.

    The subject is not given it.
    """

    role: Role = field(default="context", kw_only=True)

    @property
    def is_given(self) -> bool:
        return False


@dataclass(frozen=True)
class Documents(Dealt):
    """A context whose values are the names of texts; a subject is given these, with places filled.

    Of texts with a `source` nothing but their names is ever shown.
    """

    texts: tuple[str, ...] = field(default=(), kw_only=True, repr=False)
    origins: tuple[str, ...] = field(default=(), kw_only=True, repr=False)  # where each was found
    source: str = field(default="", kw_only=True)

    @property
    def is_given(self) -> bool:
        return True


def has_documents(schema: Iterable[Characteristic]) -> bool:
    """Whether subjects are given texts that are nobody else's to read."""
    return any(isinstance(each, Documents) and each.source for each in schema)


def documents(given: Any, *, column: str = "text") -> Documents:
    """The texts in a column of a table, or of a file, as a context of inputs.

    They may have places, as in `My name is {name}`. Their names are those in a column `id`, or
    their numbers. Results, reports and messages show the names alone.
    """
    is_file = isinstance(given, str | Path) and Path(given).is_file()
    if is_file and Path(given).stat().st_size > LARGEST:
        remedy = f"leave out documents: {LARGEST // 2**20} MiB may be read"
        raise RequestError([Mistake("rows", "", "is too large", remedy, str(given))])
    rows = rows_of(given, only={column, ID})
    (texts,) = _texts(rows, [column], "column")
    names = [str(number) for number in range(1, len(texts) + 1)]
    if ID in rows.columns and column != ID:
        (names,) = _texts(rows, [ID], "column")
    if mistakes := list(_mistakes(rows, names, texts)):
        raise RequestError(mistakes)
    origins = tuple(rows.spelled_place(row) for row in range(len(rows)))
    source = str(given) if isinstance(given, str | Path) else rows.name
    return Documents(names, texts=tuple(texts), origins=origins, source=source)


def _texts(rows: Table, columns: Sequence[str], where: str) -> list[list[str]]:
    """What stands in some columns, as texts; empty where nothing does."""
    known = rows.names or tuple(rows.columns)
    if lacking := [each for each in columns if each not in known]:
        problem = f"{rows.name} has no column "
        raise RequestError(
            Mistake("missing-column", where, f"{problem}{each!r}", suggest(each, known))
            for each in lacking
        )
    cells = [rows.columns[each].tolist() for each in columns]
    return [["" if value is None else str(value) for value in own] for own in cells]


def _mistakes(rows: Table, names: Sequence[str], texts: Sequence[str]) -> Iterator[Mistake]:
    times = Counter(names)
    faults = {
        "there is no text": [not each.strip() for each in texts],
        "there is half a surrogate pair, which is not a character": [*map(_is_broken, texts)],
        f"the {ID} is missing": [not each.strip() for each in names],
        f"the {ID} appears twice": [each.strip() != "" and times[each] > 1 for each in names],
    }
    for problem, marks in faults.items():
        if places := [rows.spelled_place(row) for row, mark in enumerate(marks) if mark]:
            problem = f"{rows.name}: {problem} in {placed(places)}"
            yield Mistake("documents", "documents", problem, "fill it in, or remove the row")


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def placed(places: Sequence[str]) -> str:
    """The first of some places, and how many more there are."""
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    return f"{', '.join(places[:5])}{more}"


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
    if not by:
        problem, remedy = "the names go with no characteristic", 'write for example by = ["sex"]'
        raise RequestError.one("names", "by", problem, remedy)
    texts = _texts(rows, (column, *by), "names")
    cells = [[each.strip() for each in own] for own in texts]
    each_row = enumerate(zip(*cells, strict=True))
    empty = [rows.spelled_place(row) for row, each in each_row if not all(each)]
    if empty:
        problem = f"{rows.name}: a name, or what it goes with, is missing in {placed(empty)}"
        raise RequestError.one("names", "names", problem, "fill it in, or remove the row")
    lists: dict[tuple[str, ...], dict[str, None]] = {}
    for own, *values in zip(*cells, strict=True):
        lists.setdefault(tuple(values), {})[own] = None
    return Names(by, {values: tuple(each) for values, each in lists.items()})
