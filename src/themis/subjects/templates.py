"""Templates: where the values of an input stand in what a subject gets.

In the arguments and the lines of programs, and in the body and the address of requests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, count_of, suggest
from themis.inputs.characteristics import Value
from themis.inputs.documents import Documents, placed
from themis.inputs.schema import Schema
from themis.subjects.texts import Column, plain_text, wording_of, write_csv

WHOLE = ("input", "inputs")  # the places that stand for a whole input, or for a list of them

_PIECES = re.compile(r"\$\{([^{}]*)\}|\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class Place:
    """Where a value goes, such as `{race}`."""

    name: str
    text: str  # as it was written


@dataclass(frozen=True)
class Variable:
    """Where a secret goes: the value of an environment variable, or one that was written out."""

    name: str
    value: str | None = field(default=None, repr=False)


Piece: TypeAlias = str | Place | Variable
Encode: TypeAlias = Callable[[str], bytes]


@dataclass(frozen=True)
class Slot:
    """Where the value of one characteristic goes, as its column writes it."""

    place: int
    column: Column
    wording: str = ""  # where the text that has the place says what is written for each value

    @property
    def covered(self) -> frozenset[int]:
        """The columns that have a place here."""
        return frozenset({self.place})

    def described(self) -> str:
        """All that makes its texts what they are."""
        return f"{self.place}{self.wording}"

    def texts(self, codes: NDArray[Any]) -> list[bytes]:
        """The text for each input."""
        return self.column.texts(codes[:, self.place])

    def text_of(self, row: Mapping[str, Value]) -> bytes:
        """The text for one input that is given by name, as it may be shown."""
        return self.column.text_of(row)


@dataclass(frozen=True)
class Choice(Slot):
    """Where one of several texts goes, which have places themselves."""

    templates: tuple[Template, ...] = ()  # by code

    @cached_property
    def covered(self) -> frozenset[int]:
        return frozenset({self.place}).union(*(each.covered for each in self.templates))

    def described(self) -> str:
        whole = "".join(each.described() for each in self.templates)
        return f"{self.place}{hashlib.sha256(whole.encode()).hexdigest()}"

    def texts(self, codes: NDArray[Any]) -> list[bytes]:
        texts, own = np.empty(len(codes), dtype=object), codes[:, self.place]
        for code in np.unique(own).tolist():
            rows = np.flatnonzero(own == code)
            texts[rows] = self.templates[code].render(codes[rows])
        found: list[bytes] = texts.tolist()
        return found

    def text_of(self, row: Mapping[str, Value]) -> bytes:
        of = self.column.characteristic
        code = of.encode(row[of.name])
        if getattr(of, "source", "") or code is None:
            return self.column.text_of(row)
        return self.templates[code].render_row(row)


Part: TypeAlias = bytes | Slot  # what is always there, or what an input has there


@dataclass(frozen=True)
class Template:
    """Bytes with places, and what goes there, in the order of the places."""

    format: bytes  # for the operator %
    slots: tuple[Slot, ...]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Template:
        """These parts one behind the other."""
        texts = [part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%b" for part in parts]
        return cls(b"".join(texts), tuple(part for part in parts if not isinstance(part, bytes)))

    @property
    def covered(self) -> frozenset[int]:
        """The columns that have a place in it."""
        return frozenset[int]().union(*(slot.covered for slot in self.slots))

    def described(self) -> str:
        """All that makes it what it is, but the values."""
        return f"{self.format!r} {[slot.described() for slot in self.slots]}"

    def render(self, codes: NDArray[Any]) -> list[bytes]:
        """The bytes for each input."""
        if not self.slots:
            return [self.format % ()] * len(codes)
        texts = [slot.texts(codes) for slot in self.slots]
        return [self.format % row for row in zip(*texts, strict=True)]

    def render_row(self, row: Mapping[str, Value]) -> bytes:
        """The bytes for one input that is given by name, as they may be shown."""
        return self.format % tuple(slot.text_of(row) for slot in self.slots)


@dataclass(frozen=True)
class Body:
    """What is sent: one input, or a list of inputs between `before` and `after`."""

    row: Template
    many: bool = False
    before: bytes = b""
    between: bytes = b""
    after: bytes = b""

    def join(self, rows: Sequence[bytes]) -> bytes:
        """The body of one request for these inputs; for a single one, if it carries no list."""
        return self.before + self.between.join(rows) + self.after


def split(text: str, *, places: bool = True, variables: bool = False) -> list[Piece]:
    """The literal texts, places and environment variables of a text, in order.

    >>> split("aged {age}, {{sic}}")
    ['aged ', Place(name='age', text='{age}'), ', {sic}']
    """
    pieces: list[Piece] = []
    end = 0
    for found in _PIECES.finditer(text):
        pieces.append(text[end : found.start()])
        end = found.end()
        variable, place, whole = found[1], found[2], found[0]
        if variable is not None and variables:
            pieces.append(Variable(variable))
        elif not places:
            pieces.append(whole)
        elif variable is not None:  # a dollar sign before a place
            pieces += ["$", Place(variable, whole[1:])]
        elif whole in ("{{", "}}"):
            pieces.append(whole[0])
        else:
            pieces.append(Place(place or "", whole))
    return list(_joined([*pieces, text[end:]]))


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for literal, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if not literal:
            yield from group
        elif text := "".join(map(str, group)):
            yield text


class Prose(str):
    """A text of JSON that stays one, even if it is nothing but a place."""

    __slots__ = ()


class TemplateWriter:
    """Writes a template piece by piece, and notes what is wrong and which columns are covered."""

    def __init__(self, schema: Schema, where: str, inside: tuple[str, ...] = ()) -> None:
        self.mistakes: list[Mistake] = []
        self.covered: set[int] = set()
        self._inside = inside  # the documents whose texts it writes
        self.parts: list[Part] = []
        self._slots: dict[tuple[str, Encode, bool], Slot] = {}
        texts = [each for each in schema if isinstance(each, Documents)]
        self._documents = {each.name for each in texts}
        self._variants = {each.name for each in texts if not each.source}
        self._schema, self._where = schema, where
        self._list: tuple[int, Template, bytes] | None = None  # the place of {inputs}

    def add_address(self, pieces: Sequence[Piece]) -> None:
        """An address, without variables; values are percent-encoded."""
        self._add_text(pieces, _encode_address, str.encode)

    def add_argument(self, text: str) -> None:
        """An argument of a program."""
        self._add_text(split(text), _encode_argument, os.fsencode)

    def add_json(self, value: Any) -> None:
        """A JSON value; a string that is nothing but a place becomes the value itself."""
        if isinstance(value, str):
            self._add_string(value)
        elif isinstance(value, Mapping):
            self._add_members(b"{", list(value.items()), b"}")
        elif isinstance(value, list | tuple):
            self._add_members(b"[", [(None, each) for each in value], b"]")
        else:
            self._add_constant(value)

    def template(self) -> Template:
        """What was written, without {inputs}."""
        return Template.of(self.parts)

    def body(self) -> Body:
        """What was written, as the body of requests."""
        if self._list is None:
            return Body(self.template())
        place, row, between = self._list
        if self.covered:
            problem = "a list of inputs has no room for single values beside it"
            self._add_mistake(problem, "use {inputs} alone, or {input}")
            return Body(row, many=True)
        before, after = Template.of(self.parts[:place]), Template.of(self.parts[place:])
        self.covered = set(range(len(self._schema)))
        return Body(row, True, before.format % (), between, after.format % ())

    def _add_string(self, text: str) -> None:
        pieces = split(text)
        alone = pieces[0] if len(pieces) == 1 and not isinstance(text, Prose) else ""
        if isinstance(alone, Place) and alone.name not in self._documents:
            self._add_place(alone, str.encode, exact=True)
        else:
            self._add_quoted(pieces)

    def _add_quoted(self, pieces: Sequence[Piece]) -> None:
        self.parts.append(b'"')
        self._add_text(pieces, _encode_string, _encode_string)
        self.parts.append(b'"')

    def _add_text(self, pieces: Sequence[Piece], encode: Encode, literally: Encode) -> None:
        for piece in pieces:
            if isinstance(piece, Place):
                self._add_place(piece, encode)
            else:
                self.parts.append(literally(str(piece)))

    def _add_members(self, start: bytes, members: Sequence[tuple[Any, Any]], end: bytes) -> None:
        self.parts.append(start)
        for number, (key, value) in enumerate(members):
            if number:
                self.parts.append(b", ")
            if key is not None:
                self._add_quoted(split(str(key)))
                self.parts.append(b": ")
            self.add_json(value)
        self.parts.append(end)

    def _add_constant(self, value: Any) -> None:
        try:
            self.parts.append(json.dumps(value, allow_nan=False).encode())
        except (TypeError, ValueError):
            problem = f"{value!r} is not a JSON value"
            self._add_mistake(problem, "write it as text or as a number")

    def _add_place(self, place: Place, encode: Encode, *, exact: bool = False) -> None:
        whole = WHOLE[:1] if encode in ONE_INPUT or self._inside else WHOLE
        name = place.name if place.name in self._schema.names else place.name.partition("|")[0]
        if name in self._schema.names:
            self.parts.append(self._slot(place.name, name, encode, exact=exact))
        elif place.name == "input":
            self.add_object(encode)
        elif place.name in whole:
            self._add_inputs(encode)
        else:
            known = suggest(name, (*self._schema.names, *whole))
            problem = f"{self._shown(place)} is not the place of a characteristic"
            self._add_mistake(problem, f"{known}, or double the brace to keep it")

    def _shown(self, place: Place) -> str:
        """A place as messages show it; of documents only what looks like a name."""
        is_name = not self._inside or re.fullmatch(r"\{?[\w |.:,-]{0,40}\}?", place.text)
        return repr(place.text) if is_name else "what is in braces"

    def _slot(self, written: str, name: str, encode: Encode, *, exact: bool = False) -> Slot:
        """Where a characteristic goes; documents have the same places over and over."""
        key, mistakes = (written, encode, exact), len(self.mistakes)
        slot = self._slots.get(key) or self._new_slot(written, name, encode, exact=exact)
        if len(self.mistakes) == mistakes:
            self._slots[key] = slot
        self.covered.add(slot.place)
        return slot

    def _new_slot(self, written: str, name: str, encode: Encode, *, exact: bool) -> Slot:
        column = self._schema.column_by_name[name]
        of = self._schema.characteristics[column]
        if isinstance(of, Documents):
            return self._choice(column, of, encode)
        wording = written[len(name) :]
        write: Callable[[Value], str] = _json_text if exact else plain_text
        if wording:
            write = wording_of(wording[1:], of, self._add_mistake, write)
        return Slot(column, Column(of, partial(_written, write, encode)), wording)

    def _choice(self, column: int, of: Documents, encode: Encode) -> Choice:
        """Where one of some documents goes, each with its own places."""
        found: dict[tuple[str, str], list[str]] = {}
        templates = []
        if of.name in self._inside:
            self._add_mistake(f"{of.name!r} contains itself", "remove its place from its text")
        elif of.extra:
            problem = (
                f"rows name {count_of(len(of.extra), 'text')} of {of.name!r} that do not exist"
            )
            self._add_mistake(problem, "add them to its file, or leave these rows out")
        else:
            for text, origin in zip(of.texts, of.origins, strict=True):
                inner = TemplateWriter(self._schema, origin, (*self._inside, of.name))
                inner.covered, inner._slots = self.covered, self._slots
                inner._add_text(split(text), encode, encode)
                templates.append(inner.template())
                for each in inner.mistakes:
                    found.setdefault((each.problem, each.remedy), []).append(each.where)
        for (problem, remedy), origins in found.items():
            where = f"inputs.{of.name}" if of.source else origins[0]
            told = f"{Path(of.source).name}, {placed(origins)}: {problem}" if of.source else problem
            self.mistakes.append(Mistake("subject", where, told, remedy))
        cited = Column(of, partial(_cited, of.name, encode))
        return Choice(column, cited, templates=tuple(templates))

    def add_object(self, encode: Encode = str.encode) -> None:
        """A whole input as a JSON object; texts that may have the input as a part are left out."""
        given = [each for each in self._schema if each.name not in self._variants]
        for number, each in enumerate(given):
            self.parts.append(encode(f"{', ' if number else '{'}{_json_text(each.name)}: "))
            if isinstance(each, Documents):
                inner = partial(_encode_within, encode)
                slot = self._slot(each.name, each.name, inner)
                self.parts += [encode('"'), slot, encode('"')]
            else:
                self.parts.append(self._slot(each.name, each.name, encode, exact=True))
        self.parts.append(encode("}"))

    def _add_inputs(self, encode: Encode) -> None:
        """The list of inputs, which may stand in a body only once."""
        if self._list is not None:
            self._add_mistake("{inputs} appears twice", "remove one")
        self.parts.append(b"[")
        row = TemplateWriter(self._schema, self._where)
        row.add_object(encode)
        self.mistakes += row.mistakes
        self._list = (len(self.parts), row.template(), encode(", "))
        self.parts.append(b"]")

    def _add_mistake(self, problem: str, remedy: str) -> None:
        self.mistakes.append(Mistake("subject", self._where, problem, remedy))


def uncovered(schema: Schema, covered: set[int], where: str) -> Iterator[Mistake]:
    """A mistake for the characteristics that would never reach the subject."""
    missing = [name for column, name in enumerate(schema.names) if column not in covered]
    if missing:
        problem = f"there is no place for {missing[0]!r}, which the subject would never see"
        remedy = f'add {{{missing[0]}}}, send {{input}}, or give it role = "group"'
        yield Mistake("subject", where, problem, remedy)


def unlike(
    schema: Schema, template: Template, around: frozenset[int] = frozenset()
) -> Iterator[Mistake]:
    """A mistake for each wording without a place that others have: it would hide its effect.

    So would a document without any. The columns `around` the template have a place beside it.
    """

    def lacking(slot: Slot, columns: frozenset[int]) -> list[tuple[str, str]]:
        """What neither these columns nor what they tell of have a place for; and what to do."""
        ties = (tie.leaders for tie in schema.ties if tie.follower in columns)
        names = [schema.names[each] for each in sorted(slot.covered - columns.union(*ties))]
        problem = "there is no place for {!r}, which other texts have"
        return [(problem.format(name), f"add {{{name}}}") for name in names]

    for slot in template.slots:
        of = slot.column.characteristic
        if not isinstance(slot, Choice) or not isinstance(of, Documents):
            continue
        others = (each.covered for each in template.slots if each.place != slot.place)
        beside = around.union({slot.place}, *others)
        texts = [*zip(slot.templates, of.origins, strict=True)]
        if of.source:
            bare = [origin for text, origin in texts if not text.covered]
            for problem, remedy in lacking(slot, beside)[:1] if bare else ():
                told = f"{Path(of.source).name}, {placed(bare)}: {problem}"
                yield Mistake("subject", f"inputs.{of.name}", told, f"{remedy}, or remove the row")
            continue
        for text, origin in texts:
            yield from unlike(schema, text, beside)
            for problem, remedy in lacking(slot, text.covered | beside):
                yield Mistake("subject", origin, problem, remedy)


def json_parts(schema: Schema) -> list[Part]:
    """A whole input as a JSON object."""
    writer = TemplateWriter(schema, "subject")
    writer.add_object()
    return writer.parts


def csv_parts(schema: Schema) -> list[Part]:
    """A whole input as fields between commas."""
    fields: list[Part] = [Slot(place, Column(each, write_csv)) for place, each in enumerate(schema)]
    return [part for field in fields for part in (b",", field)][1:]


def _written(write: Callable[[Value], str], encode: Encode, value: Value) -> bytes:
    return encode(write(value))


def _cited(name: str, encode: Encode, value: Value) -> bytes:
    return encode(f"[{name} {value}]")


def _encode_within(encode: Encode, text: str) -> bytes:
    return encode(_json_text(text)[1:-1])


def _json_text(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _encode_string(text: str) -> bytes:
    return _json_text(text)[1:-1].encode()


def _encode_address(text: str) -> bytes:
    return quote(text, safe="").encode()


def _encode_argument(text: str) -> bytes:
    return text.encode()


ONE_INPUT = (_encode_address, _encode_argument)  # where there is no room for a list of inputs
