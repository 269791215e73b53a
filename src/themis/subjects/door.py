"""The door of a subject: through it go the characteristics that are given to it, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import RequestError
from themis.inputs.characteristics import Codes, Value
from themis.inputs.documents import Documents
from themis.inputs.schema import Schema
from themis.subjects.base import Batch, Subject


def at_door(subject: Subject, schema: Schema) -> Subject:
    """The subject as inputs of this schema reach it: without what is only known of people.

    It was made for `schema.given`; RequestError for a ready-made one that was not, and where it is
    of a kind that is not given texts.
    """
    texts = [each.name for each in schema if isinstance(each, Documents)]
    if texts and not subject.reads_texts:
        problem = f"a subject of kind {subject.kind!r} is not given texts"
        remedy = 'use kind = "http", or values'
        raise RequestError.one("documents", f"inputs.{texts[0]}", problem, remedy)
    if schema.given is schema or isinstance(subject, Door):
        return subject
    if subject.schema.names != schema.given.names:
        hidden = [name for name in schema.names if name not in schema.given.names]
        problem = f"the subject was made for other characteristics than it is given: {hidden}"
        problem += " never reach it"
        raise RequestError.one("ready-made", "subject", problem, "make it for schema.given")
    return Door(subject, schema)


def _passed_on(name: str) -> Any:
    """What belongs to the subject inside, be it an attribute or a method."""

    def get(around: Around) -> Any:
        return getattr(around.inside, name)

    def put(around: Around, value: Any) -> None:
        setattr(around.inside, name, value)

    return property(get, put)


class Around(Subject):
    """A subject around another one, which it passes on whatever it does not do itself."""

    def __init__(self, inside: Subject) -> None:
        self.inside, self.kind, self.reads_texts = inside, inside.kind, inside.reads_texts

    structured = _passed_on("structured")
    fingerprint = _passed_on("fingerprint")
    decision_mistakes = _passed_on("decision_mistakes")
    unseen = _passed_on("unseen")
    unsure_of = _passed_on("unsure_of")
    possible_outputs = _passed_on("possible_outputs")
    foresee = _passed_on("foresee")
    reproduce = _passed_on("reproduce")
    secrets = _passed_on("secrets")
    note_answered = _passed_on("note_answered")
    close = _passed_on("close")


class Door(Around):
    """A subject that gets its own characteristics of inputs that have others as well."""

    traits = _passed_on("traits")
    covered = _passed_on("covered")
    deadline = _passed_on("deadline")
    call_inputs = _passed_on("call_inputs")
    unfinished = _passed_on("unfinished")
    ran_elsewhere = _passed_on("ran_elsewhere")
    tokens = _passed_on("tokens")
    prices = _passed_on("prices")
    is_spent = _passed_on("is_spent")

    def __init__(self, inside: Subject, schema: Schema) -> None:
        super().__init__(inside)
        self.schema = schema
        self._columns = [schema.column_by_name[name] for name in inside.schema.names]

    def load(self, codes: NDArray[Any]) -> Batch:
        return _Batch(self.inside.load(np.asfortranarray(codes[:, self._columns])), self._columns)

    def reproduce(self, row: Mapping[str, Value]) -> str | None:
        return self.inside.reproduce({name: row[name] for name in self.inside.schema.names})


class _Batch:
    """A batch that hears of changes in the columns that it has."""

    def __init__(self, inside: Batch, columns: list[int]) -> None:
        self._inside, self._columns = inside, columns
        self.run = inside.run

    def overwrite(self, column: int, codes: Codes | int) -> None:
        if column in self._columns:
            self._inside.overwrite(self._columns.index(column), codes)

    def take(self, places: NDArray[np.int64]) -> Batch:
        return _Batch(self._inside.take(places), self._columns)
