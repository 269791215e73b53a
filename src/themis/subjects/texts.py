"""Texts: how values are written for a program, and how what it prints becomes an output."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import TABLE_LIMIT, Characteristic, Codes, Value, Values
from themis.inputs.following import level_names
from themis.inputs.schema import Schema

ANSWERS = ("last-line", "stdout", "exit-code")
SHOWN = 200  # characters of a program's words that a message repeats

# Linux: MAX_ARG_STRLEN, 32 pages with the closing NUL. Elsewhere only the sum is limited.
ARGUMENT_LIMIT = 32 * os.sysconf("SC_PAGE_SIZE") - 1 if sys.platform == "linux" else 2**18


class Column:
    """One characteristic's values as texts, written once where there are not too many."""

    def __init__(self, characteristic: Characteristic, write: Callable[[Value], bytes]) -> None:
        self.characteristic = characteristic
        self.write = write
        self._table = None
        if characteristic.size <= TABLE_LIMIT or isinstance(characteristic, Values):
            self._table = np.empty(characteristic.code_count, dtype=object)
            self._table[:] = [write(value) for value in listed_values(characteristic)]

    def texts(self, codes: Codes) -> list[bytes]:
        """The text of each code."""
        if self._table is not None:
            texts: list[bytes] = self._table[codes].tolist()
            return texts
        return [self.write(value) for value in self.characteristic.decode(codes).tolist()]

    def text_of(self, row: Mapping[str, Value]) -> bytes:
        """The text of this characteristic in an input."""
        value = row[self.characteristic.name]
        code = self.characteristic.encode(value)
        return self.write(value) if code is None else self.texts(np.array([code]))[0]


def listed_values(characteristic: Characteristic) -> list[Value]:
    """The values as they were given: 1 stays 1 beside 2.5; None behind them if one may lack."""
    if not isinstance(characteristic, Values):
        values: list[Value] = characteristic.decode(np.arange(characteristic.code_count)).tolist()
        return values
    given = characteristic.values
    plain = [each.item() if isinstance(each, np.generic) else each for each in given]
    behind = np.arange(characteristic.size, characteristic.code_count)
    return [*plain, *characteristic.decode(behind).tolist()]


def write_plain(value: Value) -> bytes:
    """A value as an argument: `true`, `18`, `0.3`, strings as they are; empty for no value."""
    return plain_text(value).encode()


def plain_text(value: Value) -> str:
    """A value as people write it; numbers never with an exponent, and nothing for no value.

    >>> [plain_text(value) for value in (True, 18, 1000.0, 1e-07, "a b", None)]
    ['true', '18', '1000.0', '0.0000001', 'a b', '']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        if "e" not in text:
            return text
        text = format(Decimal(text), "f")
        return text if "." in text else f"{text}.0"
    return str(value)


def write_csv(value: Value) -> bytes:
    """A value as a CSV field, quoted where commas, quotes or line ends ask for it.

    No value is an empty field, the empty text `""`.
    """
    if value is None:
        return b""
    text = plain_text(value)
    if not text:
        return b'""'
    row = io.StringIO()
    csv.writer(row).writerow([text])
    return row.getvalue()[:-2].encode()


def check_texts(schema: Schema, *, nul: bool, limit: int | None = None) -> None:
    """Refuse names and values that can't reach a program; `nul` says whether NUL may occur."""
    mistakes = [
        Mistake("unpassable-value", f"inputs.{ascii(each.name)[1:-1]}", problem, remedy)
        for each in schema
        for text in _all_strings(each)
        for problem, remedy in _text_problems(text, nul=nul, limit=limit)
    ]
    if mistakes:
        raise RequestError(mistakes)


def _all_strings(characteristic: Characteristic) -> Iterator[str]:
    yield characteristic.name
    if isinstance(characteristic, Values):
        every = (*characteristic.values, *characteristic.extra)
        yield from (value for value in every if isinstance(value, str))


def _text_problems(text: str, *, nul: bool, limit: int | None) -> Iterator[tuple[str, str]]:
    shown = ascii(text) if len(text) <= 60 else f"{text[:50]!a}…"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        yield f"{shown} holds half a surrogate pair, which is not a character", "write it whole"
        return
    if "\0" in text and not nul:
        yield (
            f"{shown} holds a NUL, where a program would stop reading",
            'remove it, or use arguments = "json"',
        )
    elif limit is not None and size > limit:
        yield (
            f"{shown} has {size:,} bytes, an argument may have {limit:,}",
            'shorten it, or use arguments = "json"',
        )


def answer_reader(answer: str) -> Callable[[bytes], str]:
    """How the output is read from what a program printed; the reader raises ValueError.

    `exit-code` has no reader: the caller knows the code.
    """
    if answer.startswith("/"):
        return partial(_read_pointer, pointer=answer)
    if answer not in ANSWERS:
        raise no_answer_place(answer, ANSWERS)
    return partial(_read_all, last=answer == "last-line")


def no_answer_place(answer: str, words: Sequence[str]) -> RequestError:
    """The error for an `answer` that is none of these words and no JSON pointer."""
    problem = f"{answer!r} is no place of an answer"
    remedy = f"{suggest(answer, words)}; or a JSON pointer such as /decision"
    return RequestError.one("answer", "subject.answer", problem, remedy)


def shorten(text: str) -> str:
    """The text within the bounds of a message: its start and its end."""
    half = SHOWN // 2
    return text if len(text) <= SHOWN else f"{text[:half]} … {text[-half:]}"


def last_line(text: str) -> str:
    """The last line that is not blank, within bounds."""
    return shorten(next((line for line in reversed(text.splitlines()) if line.strip()), "").strip())


def _read_all(printed: bytes, *, last: bool = False) -> str:
    if last:
        printed = printed.rstrip().rpartition(b"\n")[2]
    try:
        text = printed.decode().strip()
    except UnicodeDecodeError:
        raise ValueError(f"it printed something that is not UTF-8: {printed[:40]!r}") from None
    if not text:
        raise ValueError("it printed nothing")
    return text


def _read_pointer(printed: bytes, pointer: str) -> str:
    text = _read_all(printed)
    try:
        document = parse_json(text)
    except ValueError:
        try:
            document = parse_json(text.splitlines()[-1])
        except ValueError:
            raise ValueError(f"it printed something that is not JSON: {shorten(text)!r}") from None
    return plain_text(decision(resolve_pointer(document, pointer), "it", pointer))


def decision(found: Any, what: str, pointer: str = "") -> Any:
    """What a pointer led to, if that is a decision."""
    if isinstance(found, str | int | float) and found != "":
        return found
    hint = ""
    if isinstance(found, dict) and found:
        token = next(iter(found)).replace("~", "~0").replace("/", "~1")
        inside = json.dumps(f"{pointer}/{token}", ensure_ascii=False)
        hint = f"; point to what is inside, such as answer = {inside}"
    problem = f"{pointer or what} is {shorten(json.dumps(found))}, not a decision"
    raise ValueError(f"{problem}{hint}")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse_json(text: str) -> Any:
    """What a JSON text holds; ValueError when it is none, or nested too deeply."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def resolve_pointer(document: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) points to; ValueError where there is nothing.

    >>> resolve_pointer({"a/b": [10, 20]}, "/a~1b/1")
    20
    """
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif (
            isinstance(document, list | tuple | np.ndarray)
            and _is_index(key)
            and int(key) < len(document)
        ):
            document = document[int(key)]
        else:
            shown = shorten(json.dumps(document, default=str, skipkeys=True))
            raise ValueError(f"there is no {pointer} in {shown}")
    return document


def _is_index(key: str) -> bool:
    return key == "0" or (key.isascii() and key.isdigit() and key[0] != "0")


def wording_of(
    text: str,
    of: Characteristic,
    broken: Callable[[str, str], None],
    write: Callable[[Value], str],
) -> Callable[[Value], str]:
    """What is written for each value; problems and their remedies are told to `broken`.

    The names are those of values, or of bins; a piece between commas without a name belongs to the
    text before it.
    """
    known = level_names(of)
    words: dict[str, str] = {}
    for name, word in _pairs(text, known):
        if name in words:
            broken(f"{name!r} of {of.name!r} has two wordings", "remove one")
        elif name not in known:
            broken(f"{of.name!r} has no value {name!r}", suggest(name, known) if known else "")
        words[name] = word
    if lacking := [name for name in known if name not in words]:
        shown = ", ".join(map(repr, lacking[:5])) + (", …" if len(lacking) > 5 else "")
        broken(f"there is no wording for {shown} of {of.name!r}", f"write {lacking[0]}:…")
    elif not known:
        broken(f"{of.name!r} has too many values for wordings", "give it bins")
    elif of.has_own:
        broken(
            f"rows have values of {of.name!r} without a wording", "list these values in [inputs]"
        )
    return partial(_written, tuple(words.get(name, "") for name in known), of, write)


def _pairs(text: str, known: list[str]) -> Iterator[tuple[str, str]]:
    """The names and their texts, in order."""
    name, word = "", ""
    for piece in text.split(","):
        own = [each for each in known if piece.lstrip().startswith(f"{each}:")]
        start = max(own, key=len) if own else piece.partition(":")[0].strip()
        if ":" not in piece and name:
            word += f",{piece}"
            continue
        if name:
            yield name, word
        name, word = start, piece.lstrip()[len(start) :].lstrip()[1:]
    yield name, word


def _written(
    words: tuple[str, ...], of: Characteristic, write: Callable[[Value], str], value: Value
) -> str:
    code = of.encode(value)
    level = -1 if code is None else int(of.level_of(np.array([code]))[0])
    return write(words[level] if 0 <= level < len(words) else plain_text(value))
