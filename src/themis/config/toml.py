"""TOML: the lines of its keys, mistakes of syntax in plain words, and how values are written.

`tomllib` reads the values but forgets the lines. The scanner here walks over the same text once
more and only looks for keys; it never fails, whatever the text is.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple, TypeAlias

from themis.errors import ConfigError, Mistake

DEEPEST = 100  # tables and lists within each other
KeyPath: TypeAlias = tuple[str | int, ...]  # ("checks", 1, "against"); items count from 0


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; raises ConfigError with the line where it is none."""
    try:
        data = tomllib.loads(text)
        large = _first_too_large(data)
    except tomllib.TOMLDecodeError as error:
        raise _explain(str(error), text) from None
    except RecursionError:
        raise _error("syntax", 1, "lists or tables are nested too deeply", "nest fewer") from None
    except ValueError:  # more digits than Python converts
        raise _too_large(1) from None
    if large is not None:
        raise _too_large(key_lines(text).get(large, 1))
    return data


def key_lines(text: str, *, items: bool = True) -> dict[KeyPath, int]:
    """The line of every key, table and list item, counted from 1.

    A table that is only implied, as `a` in `[a.b]`, stands where it is first implied. Without
    `items`, those of lists that hold nothing but values are left out: there may be a million.
    """
    explicit: dict[KeyPath, int] = {}
    implied: dict[KeyPath, int] = {}
    for path, line in _Scanner(text, items=items).places():
        explicit.setdefault(path, line)
        for length in range(1, len(path)):
            implied.setdefault(path[:length], line)
    return implied | explicit


def spell_path(path: KeyPath) -> str:
    """A path as it is shown: `checks[2].against`; items are counted from 1."""
    text = ""
    for part in path:
        plain = str(part) if str(part).isprintable() else repr(part)
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{plain}"
    return text


_TOKEN = re.compile(
    r'''(?P<space>[ \t\r]+ | \#[^\n]*)
    | (?P<newline>\n)
    | (?P<string>"""(?:[^\\]|\\.)*?"{3,5} | \'{3}.*?\'{3,5} | "(?:[^"\\\n]|\\.)*" | '[^'\n]*')
    | (?P<bare>[A-Za-z0-9_+:-]+)
    | (?P<mark>.)''',
    re.VERBOSE | re.DOTALL,
)


_PLAIN_LIST = re.compile(  # without comments, lists, tables and text of several lines in it
    r"""\[(?:[^\[\]{}"'\#]++ | (?!\"{3}|'{3})(?:"(?:[^"\\\n]|\\.)*+" | '[^'\n]*+'))*+\]""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


_END = _Token("end", "", -1)


class _Scanner:
    """Walks over the tokens of a text and tells each key that it meets."""

    def __init__(self, text: str, *, items: bool = True) -> None:
        self._newlines = array("q", (match.start() for match in re.finditer("\n", text)))
        self._text, self._place = text, 0
        self._next: _Token | None = None
        self._tells_items = items
        self._items: dict[KeyPath, int] = {}  # tables so far in each array of tables

    def places(self) -> Iterator[tuple[KeyPath, int]]:
        """Each key with its line, in the order of the text; a repeated key comes repeatedly."""
        table: KeyPath = ()
        while (token := self._peek()) is not _END:
            line = self._line(token)
            if token.kind == "newline":
                self._take()
            elif token.text == "[":
                table = self._header()
                yield table, line
                self._skip_line()
            else:
                yield from self._assignment(table)
                self._skip_line()

    def _header(self) -> KeyPath:
        opening = self._take()
        following = self._peek()
        is_array = following.text == "[" and following.start == opening.start + 1
        if is_array:
            self._take()
        *parents, last = self._key()
        path: KeyPath = ()
        for part in parents:
            path = self._latest((*path, part))
        path = (*path, last)
        if not is_array:
            return self._latest(path)
        self._items[path] = self._items.get(path, 0) + 1
        return self._latest(path)

    def _latest(self, path: KeyPath) -> KeyPath:
        """The path itself, or that of its last table where it is an array of tables."""
        return (*path, self._items[path] - 1) if path in self._items else path

    def _key(self) -> list[str]:
        """The parts of a dotted key, at least one."""
        parts = []
        while True:
            if self._peek().kind in {"bare", "string"}:
                parts.append(_plain(self._take().text))
            if self._peek().text != ".":
                return parts or [""]
            self._take()

    def _assignment(self, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        line = self._line(self._peek())
        path = (*table, *self._key())
        yield path, line
        if self._peek().text == "=":
            self._take()
            yield from self._value(path)

    def _value(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        opening = self._peek().text
        if opening == "[":
            yield from self._list(path)
        elif opening == "{":
            yield from self._inline_table(path)
        else:
            while self._peek().kind not in {"newline", "end"} and self._peek().text not in ",]}":
                self._take()

    def _list(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        opening = self._take()
        plain = None if self._tells_items else _PLAIN_LIST.match(self._text, opening.start)
        if plain is not None:
            self._place = plain.end()
            return
        number = 0
        while self._peek() is not _END:
            token = self._peek()
            if token.text in {"]", "}"}:
                self._take()
                return
            if token.kind == "newline" or token.text == ",":
                self._take()
                continue
            item = (*path, number)
            number += 1
            yield item, self._line(token)
            yield from self._value(item)

    def _inline_table(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        self._take()
        while self._peek() is not _END:
            token = self._peek()
            if token.text in {"]", "}"}:
                self._take()
                return
            if token.kind in {"bare", "string"}:
                yield from self._assignment(path)
            else:
                self._take()

    def _skip_line(self) -> None:
        while self._peek().kind not in {"newline", "end"}:
            self._take()

    def _peek(self) -> _Token:
        while self._next is None:
            match = _TOKEN.match(self._text, self._place)
            if match is None:
                self._next = _END
            else:
                self._place = match.end()
                if match.lastgroup != "space":
                    self._next = _Token(match.lastgroup or "", match[0], match.start())
        return self._next

    def _take(self) -> _Token:
        token = self._peek()
        self._next = None
        return token

    def _line(self, token: _Token) -> int:
        return bisect_left(self._newlines, token.start) + 1


def _plain(part: str) -> str:
    """A part of a key without its quotes and escapes."""
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"key = {part}")["key"])
    except tomllib.TOMLDecodeError:
        return part


def _first_too_large(data: Mapping[str, Any]) -> KeyPath | None:
    """Where a whole number is beyond the range that TOML allows."""
    numbers = _integers(data, ())
    return next((path for path, each in numbers if not -(2**63) <= each < 2**63), None)


def _integers(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if len(path) > DEEPEST:
        raise RecursionError
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _integers(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            if not isinstance(each, str | float):  # most often there is nothing to look at
                yield from _integers(each, (*path, number))
    elif isinstance(value, int):
        yield path, value


_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_REPEATED = ("Cannot ", "Duplicate ")
_WORDS = {  # how tomllib puts it → what is wrong, what to do
    "Invalid value": (
        "there is no value",
        'text goes in quotes, as in name = "text"; true and false are written small',
    ),
    "Expected '=' after a key": ("there is no = after the key", 'write it as name = "value"'),
    "Invalid initial character for a key": (
        "there is no key",
        "a key with other characters than letters, digits, - and _ goes in quotes",
    ),
    "Expected newline": ("the line goes on after its value", "give each key a line of its own"),
    "Unclosed array": ("a list is not closed", "separate its items by commas, end it with ]"),
    "Unclosed inline table": (
        "a table in { } is not closed",
        "separate its keys by commas, end it with }; it has to fit on one line",
    ),
    "Expected ']": ("the name of a table is not closed", "write [table] or [[table]]"),
    "Illegal character": ("text is not closed on its line", "end it with a quote"),
    "Expected \"'": ("text is not closed", "end it with the quote it begins with"),
    "Cannot ": ("something is defined twice", "define each table once"),
    "Unescaped": ("text has a \\ that means nothing", "write \\\\, or put it in single quotes"),
}


def _explain(message: str, text: str) -> ConfigError:
    """What tomllib says, in plain words and with the line."""
    match = _PLACE.fullmatch(message)
    what, line, column = match.groups() if match else (message, None, None)
    number = int(line) if line else max(text.rstrip().count("\n") + 1, 1)
    if what.startswith(_REPEATED) and (repeated := _first_repeated(text)):
        return repeated
    place = f"at column {column}" if column else "at the end of the file"
    for beginning, (problem, remedy) in _WORDS.items():
        if what.startswith(beginning):
            return _error("syntax", number, f"{place} {problem}", remedy)
    problem = f"{place} {what[:1].lower()}{what[1:]}"
    return _error("syntax", number, problem, "the file is written in TOML, see https://toml.io")


def _first_repeated(text: str) -> ConfigError | None:
    seen: dict[KeyPath, int] = {}
    for path, line in _Scanner(text).places():
        if path in seen:
            name = ".".join(str(part) for part in path)
            problem = f"the key {name!r} appears twice, first in line {seen[path]}"
            return _error("duplicate-key", line, problem, "remove or rename one")
        seen[path] = line
    return None


def _too_large(line: int) -> ConfigError:
    problem = "a whole number has more than 64 bits"
    return _error("number-too-large", line, problem, "stay below 9.2e18, or write it as 1e30")


def _error(code: str, line: int, problem: str, remedy: str) -> ConfigError:
    return ConfigError([Mistake(code, "", problem, remedy, line=line)])


WIDTH = 100


def spell_key(name: str) -> str:
    """A key, in quotes where TOML wants them."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else spell_value(name)


def spell_value(value: Any) -> str:
    """A value; TOML writes strings, lists, truth values and numbers as JSON does."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{spell_key(key)} = {spell_value(each)}" for key, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell_value, value))}]"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spell_remark(text: str) -> Iterator[str]:
    """The lines of a comment, without what TOML does not allow in one."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    for line in textwrap.wrap(shown, WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
