"""Layouts: where the values of an input stand in a command and on its standard input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.schema import Schema
from themis.subjects.processes.command_texts import (
    ARGUMENT_LIMIT,
    Column,
    check_texts,
    write_csv,
    write_json,
    write_plain,
)

WRITERS = {"positional": write_plain, "named": write_plain, "json": write_json, "csv": write_csv}

# An argument is a row of literal bytes and of places: the columns whose value goes there.
Argument: TypeAlias = tuple[bytes | int, ...]

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Layout:
    """How inputs reach a command: as arguments behind it, in its places, or on standard input.

    All that can't work is refused here: unknown places, characteristics that the command would
    never see, values that are too long or hold what can't be passed on.
    """

    def __init__(self, schema: Schema, command: Sequence[str], mode: str) -> None:
        self.mode = mode
        fixed = _parse_command(command, schema, mode)
        self.has_places = any(isinstance(part, int) for argument in fixed for part in argument)
        limit = None if self.feeds else ARGUMENT_LIMIT
        check_texts(schema, nul=mode == "json", limit=limit)
        self.write = WRITERS[mode]
        self.columns = [Column(each, self.write) for each in schema]
        self._arguments = fixed[1:]
        if not self.has_places:
            self._arguments += list(_added_arguments(schema, mode))
        self._names = [self.write(name) for name in schema.names]
        self._check_lengths(schema)

    @property
    def feeds(self) -> bool:
        """Whether inputs go to standard input."""
        return self.mode in ("json", "csv")

    def arguments(self, texts: Sequence[bytes]) -> list[bytes]:
        """The arguments for one input, given the text of each of its values."""
        return [
            b"".join([part if isinstance(part, bytes) else texts[part] for part in argument])
            for argument in self._arguments
        ]

    def data(self, texts: Sequence[bytes]) -> bytes:
        """One input on standard input: a JSON object or a CSV table, nothing otherwise."""
        if self.mode == "json":
            pairs = zip(self._names, texts, strict=True)
            return b"{" + b", ".join([name + b": " + text for name, text in pairs]) + b"}\n"
        if self.mode == "csv":
            return b",".join(self._names) + b"\n" + b",".join(texts) + b"\n"
        return b""

    def _check_lengths(self, schema: Schema) -> None:
        """The longest arguments, alone and together, must be within what the system passes on."""
        longest = [column.longest for column in self.columns]
        lengths = [
            sum(len(part) if isinstance(part, bytes) else longest[part] for part in argument)
            for argument in self._arguments
        ]
        environment = sum(len(name) + len(value) + 10 for name, value in os.environb.items())
        total = sum(lengths) + 9 * len(lengths) + environment + 4096
        if max(lengths, default=0) > ARGUMENT_LIMIT or total > os.sysconf("SC_ARG_MAX"):
            name = schema.names[longest.index(max(longest))]
            problem = f"with its longest value ({max(longest):,} bytes) the arguments are too long"
            remedy = 'shorten it, or use arguments = "json"'
            raise RequestError([Mistake("unpassable-value", f"inputs.{name}", problem, remedy)])


def _parse_command(command: Sequence[str], schema: Schema, mode: str) -> list[Argument]:
    """The command with the places in it; all that is wrong is raised at once."""
    mistakes: list[Mistake] = []
    if mode not in WRITERS:
        problem = f"{mode!r} is no way to pass values"
        mistakes.append(_mistake("arguments", problem, suggest(mode, tuple(WRITERS))))
    parsed = [_parse_argument(part, schema, mistakes) for part in command]
    mistakes += _place_mistakes(parsed, schema, mode)
    if mistakes:
        raise RequestError(mistakes)
    return parsed


def _parse_argument(text: str, schema: Schema, mistakes: list[Mistake]) -> Argument:
    parts: list[bytes | int] = []
    end = 0
    for found in _BRACES.finditer(text):
        parts.append(os.fsencode(text[end : found.start()]))
        end = found.end()
        name = found[1]
        if name in schema.names:
            parts.append(schema.names.index(name))
        elif found[0] in ("{{", "}}"):
            parts.append(found[0][:1].encode())
        else:
            problem = f"{found[0]!r} in {text!r} is not the place of a characteristic"
            remedy = f"{suggest(name or '', schema.names)}, or double the brace to keep it"
            mistakes.append(_mistake("command", problem, remedy))
    return tuple(part for part in [*parts, os.fsencode(text[end:])] if part != b"")


def _place_mistakes(parsed: Sequence[Argument], schema: Schema, mode: str) -> Iterator[Mistake]:
    places = {part for argument in parsed for part in argument if isinstance(part, int)}
    if not places:
        return
    if any(isinstance(part, int) for part in parsed[0]):
        yield _mistake("command", "the program itself has a place", "name one program")
    if mode in ("json", "csv"):
        problem = f"the command has places, and arguments = {mode!r} asks for standard input"
        yield _mistake("arguments", problem, "use one of them")
    missing = [name for column, name in enumerate(schema.names) if column not in places]
    if missing:
        problem = f"the command has places, but none for {missing[0]!r}, which it would never see"
        yield _mistake("command", problem, f"add {{{missing[0]}}}")


def _added_arguments(schema: Schema, mode: str) -> Iterator[Argument]:
    """The arguments that come behind those of the command."""
    for column, name in enumerate(schema.names):
        if mode == "named":
            yield (name.encode(),)
        if mode in ("positional", "named"):
            yield (column,)


def _mistake(key: str, problem: str, remedy: str) -> Mistake:
    return Mistake("subject", f"subject.{key}", problem, remedy)
