"""Documents: texts with places inside, of which inputs have the number and subjects the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic, Role, Values
from themis.inputs.row_files import rows_of
from themis.inputs.tables import Table

ID = "id"  # the column with the names of documents, if there is one
LARGEST = 2**26  # bytes of a file


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
    if isinstance(given, str | Path) and _size(Path(given)) > LARGEST:
        remedy = f"leave out documents: {LARGEST // 2**20} MiB may be read"
        raise RequestError([Mistake("rows", "", "is too large", remedy, str(given))])
    rows = rows_of(given, only={column, ID})
    if column not in rows.columns:
        known = rows.names or tuple(rows.columns)
        problem = f"{rows.name} has no column {column!r}"
        raise RequestError.one("missing-column", "column", problem, suggest(column, known))
    texts = [str(each or "") for each in rows.columns[column].tolist()]
    names = [str(number) for number in range(1, len(texts) + 1)]
    if ID in rows.columns and column != ID:
        names = [str("" if each is None else each) for each in rows.columns[ID].tolist()]
    if mistakes := list(_mistakes(rows, names, texts)):
        raise RequestError(mistakes)
    origins = tuple(place_of(rows, row) for row in range(len(rows)))
    source = str(given) if isinstance(given, str | Path) else rows.name
    return Documents(names, texts=tuple(texts), origins=origins, source=source)


def place_of(rows: Table, row: int) -> str:
    """Where a row is found, in words."""
    return f"{'row' if rows.lines is None else 'line'} {rows.place(row):,}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _mistakes(rows: Table, names: Sequence[str], texts: Sequence[str]) -> Iterator[Mistake]:
    times = Counter(names)
    faults = {
        "there is no text": [not each.strip() for each in texts],
        "there is half a surrogate pair, which is not a character": [*map(_is_broken, texts)],
        f"the {ID} is missing": [not each.strip() for each in names],
        f"the {ID} appears twice": [each.strip() != "" and times[each] > 1 for each in names],
    }
    for problem, marks in faults.items():
        if places := [place_of(rows, row) for row, mark in enumerate(marks) if mark]:
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
