"""Edits of a themis.toml that replace what is asked and leave every other byte as it is.

A scanner finds where keys and values begin and end; TOML's own rules are `tomllib`'s. The edited
text is read again and must say exactly what was asked: else the edit is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from themis.config.toml import KeyPath, key_lines, parse_toml, spell_key, spell_path, spell_value
from themis.errors import ConfigError, Mistake

BOM = "\ufeff"
BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
KEY = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+')
SCALAR = re.compile(
    r'"{3}(?:\\.|[^\\])*?"{3,5}(?!")|\'{3}.*?\'{3,5}(?!\')|"(?:[^"\\]|\\.)*"|\'[^\']*\'|'
    r"\d{4}-\d\d-\d\d \d\d:[^,\]}\s#]+|[^,\]}\s#]+",
    re.DOTALL,
)
_ABSENT = object()


def with_value(text: str, path: KeyPath, value: Any, *, prefix: KeyPath = ()) -> str:
    """The text in which the key at a path has this value; tables around it are added.

    Of a table or a list that is there only what differs is replaced. `prefix` is the table around
    the whole configuration, as `("tool", "themis")`. Raises ConfigError where this can't be done
    without touching more.
    """
    full = (*prefix, *path)
    data, plain = parse_toml(text.removeprefix(BOM)), text.removeprefix(BOM)
    _set(data, full, value)
    return _checked(text, full, prefix, lambda: _write(plain, full, value, len(prefix)), [data])


def without(text: str, path: KeyPath, *, prefix: KeyPath = ()) -> str:
    """The text without a key, a table or an item of a list; as it is, where there is none."""
    full, plain = (*prefix, *path), text.removeprefix(BOM)
    data = parse_toml(plain)
    if _get(data, full) is _ABSENT:
        return text
    return _checked(text, full, prefix, lambda: _erase(plain, full), _unset(data, full))


def _checked(
    text: str, path: KeyPath, prefix: KeyPath, edit: Callable[[], str], asked: Iterable[Any]
) -> str:
    """The edited text if it says exactly what is asked, or one of what may be."""
    ordered = (*prefix, "inputs")
    with suppress(ValueError, IndexError, _LostError):
        edited = edit()
        found = _form(tomllib.loads(edited), ordered)
        if any(found == _form(each, ordered) for each in asked):
            return BOM * text.startswith(BOM) + edited
    lines = key_lines(text.removeprefix(BOM))
    line = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)
    problem = "this can't be changed here without touching what is around it"
    where = spell_path(path[len(prefix) :])
    raise ConfigError([Mistake("not-edited", where, problem, "edit the text by hand", line=line)])


class _LostError(Exception):
    """What is to be edited was not found for certain."""


# What the data are to be


def _get(data: Any, path: KeyPath) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return _ABSENT
    return data


def _set(data: Any, path: KeyPath, value: Any) -> None:
    for part, behind in pairwise(path):
        if isinstance(data, dict):
            data = data.setdefault(part, [] if isinstance(behind, int) else {})
        else:
            data = data[part]
    if isinstance(data, list) and path[-1] == len(data):
        data.append(None)
    data[path[-1]] = deepcopy(value)


def _unset(data: Any, path: KeyPath) -> Iterator[Any]:
    """The data without a key; then without the tables that are empty because of it."""
    for length in range(len(path), 0, -1):
        around = _get(data, path[: length - 1])
        del around[path[length - 1]]
        yield data
        if around:
            return


def _form(data: Any, ordered: KeyPath | None = None) -> str:
    """Data as text, with their types; the order of keys counts in the table of a path alone."""
    if isinstance(data, Mapping):
        inner = None if not ordered else ordered[1:]
        pairs = [
            (key, _form(each, inner if ordered and key == ordered[0] else None))
            for key, each in data.items()
        ]
        return f"{{{pairs if ordered == () else sorted(pairs)}}}"
    if isinstance(data, list | tuple):
        return f"[{', '.join(map(_form, data))}]"
    return repr(data)


# Where things are


@dataclass(frozen=True)
class _Place:
    """A key with its value, or an item of a list."""

    path: KeyPath
    start: int  # of the key
    value: int  # where the value begins
    end: int
    around: int | None = None  # the number of the table in { } or the list that it is in


@dataclass(frozen=True)
class _Section:
    """A header and the keys below it; the first has no header."""

    path: KeyPath
    start: int
    end: int  # of the header
    own: list[_Place] = field(default_factory=list)

    @property
    def last(self) -> int:
        """Where its last key ends."""
        return self.own[-1].end if self.own else self.end


class _Scan:
    """Where everything in a text begins and ends; the text is TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: list[_Place] = []
        self.sections = [_Section((), 0, 0)]
        self._items: dict[KeyPath, int] = {}  # tables so far of each array of tables
        at = self._skip(BLANK, 0)
        while at < len(text):
            at = self._header(at) if text[at] == "[" else self._pair(at, self.sections[-1].path)
            at = self._skip(BLANK, at)

    def _skip(self, what: re.Pattern[str], at: int) -> int:
        match = what.match(self.text, at)
        assert match is not None
        return match.end()

    def _keys(self, at: int) -> tuple[tuple[str, ...], int]:
        """The parts of a key, and where it ends."""
        parts: list[str] = []
        while True:
            match = KEY.match(self.text, self._skip(SPACE, at))
            if match is None:
                raise _LostError
            quoted = match[0][0] in "\"'"
            parts.append(tomllib.loads(f"k = {match[0]}")["k"] if quoted else match[0])
            at = self._skip(SPACE, match.end())
            if self.text[at] != ".":
                return tuple(parts), match.end()
            at += 1

    def _header(self, start: int) -> int:
        is_item = self.text.startswith("[[", start)
        parts, at = self._keys(start + 1 + is_item)
        end = self._skip(SPACE, at) + 1 + is_item
        path = self._latest(parts[:-1] if is_item else parts)
        if is_item:
            array = (*path, parts[-1])
            self._items[array] = self._items.get(array, -1) + 1
            path = (*array, self._items[array])
        self.sections.append(_Section(path, start, end))
        return end

    def _latest(self, parts: Sequence[str]) -> KeyPath:
        """A path in which arrays of tables are followed by the number of their last table."""
        path: KeyPath = ()
        for part in parts:
            path = (*path, part)
            path = (*path, self._items[path]) if path in self._items else path
        return path

    def _pair(self, start: int, table: KeyPath, around: int | None = None) -> int:
        parts, at = self._keys(start)
        value = self._skip(SPACE, self._skip(SPACE, at) + 1)
        place = self._value((*table, *parts), start, value, around)
        if around is None:
            self.sections[-1].own.append(place)
        return place.end

    def _value(self, path: KeyPath, start: int, value: int, around: int | None) -> _Place:
        """Note a value and all that is inside of it."""
        number = len(self.places)
        self.places.append(_Place(path, start, value, value, around))
        opening = self.text[value]
        if opening in "[{":
            end = self._inside(path, value + 1, number, is_list=opening == "[")
        else:
            match = SCALAR.match(self.text, value)
            if match is None:
                raise _LostError
            end = match.end()
        self.places[number] = _Place(path, start, value, end, around)
        return self.places[number]

    def _inside(self, path: KeyPath, at: int, number: int, *, is_list: bool) -> int:
        """Where a list or a table in { } ends, from behind its opening on."""
        items = 0
        while (at := self._skip(BLANK, at)) < len(self.text) and self.text[at] not in "]}":
            if is_list:
                at = self._value((*path, items), at, at, number).end
            else:
                at = self._pair(at, path, number)
            items += 1
            at = self._skip(BLANK, at)
            at += self.text[at] == ","
        return at + 1

    def find(self, path: KeyPath) -> _Place | None:
        """The key or the item at a path; None for what headers and dotted keys make."""
        return next((each for each in self.places if each.path == path), None)

    def children(self, place: _Place) -> list[_Place]:
        """What is directly in a list or in a table in { }."""
        number = self.places.index(place)
        return [each for each in self.places if each.around == number]

    def line_start(self, at: int) -> int:
        """Where the line of a place begins."""
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        """Behind the line of a place, its comment and its end."""
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    @property
    def newline(self) -> str:
        """How lines end."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def insert(self, at: int, written: str) -> str:
        """The text with whole lines in it, at the beginning of a line."""
        before = self.text[:at]
        between = self.newline if before and not before.endswith("\n") else ""
        return f"{before}{between}{written}{self.text[at:]}"


# How it is written


def _write(text: str, path: KeyPath, value: Any, top: int) -> str:
    """The text with a value; tables of the file have paths longer than `top` by one."""
    old = _get(tomllib.loads(text), path)
    if old is not _ABSENT and _form(old) == _form(value):
        return text
    if isinstance(old, dict) and isinstance(value, Mapping):
        for key in old.keys() - value.keys():
            text = _erase(text, (*path, key))
        for key, each in value.items():
            text = _write(text, (*path, key), each, top)
        return text
    if isinstance(old, list) and isinstance(value, list | tuple) and 0 < len(old) <= len(value):
        for number, each in enumerate(value):
            text = _write(text, (*path, number), each, top)
        return text
    if old is _ABSENT:
        return _add(text, path, value, top)
    place = _Scan(text).find(path)
    if place is None:
        raise _LostError
    return f"{text[: place.value]}{spell_value(value)}{text[place.end :]}"


def _add(text: str, path: KeyPath, value: Any, top: int) -> str:
    """The text with a key, a table or an item that it lacks."""
    scan, parent, key = _Scan(text), path[:-1], path[-1]
    around = scan.find(parent)
    if around is not None:
        return _add_inside(scan, around, key, value)
    is_item = isinstance(key, int)
    if is_item or (isinstance(value, Mapping) and len(path) == top + 1):
        return _add_section(scan, path, value, top)
    if parent and _get(tomllib.loads(text), parent) is _ABSENT:
        return _add(text, parent, {key: value}, top)
    section = next((each for each in scan.sections if each.path == parent), None)
    if section is not None:
        return _add_line(scan, section.own, section.last, (str(key),), value)
    for section in reversed(scan.sections):
        dotted = [each for each in section.own if each.path[: len(parent)] == parent]
        if dotted:
            names = tuple(map(str, path[len(section.path) :]))
            return _add_line(scan, dotted, dotted[-1].end, names, value)
    return _add_section(scan, path, value, top)


def _add_inside(scan: _Scan, around: _Place, key: str | int, value: Any) -> str:
    """A further item of a list, or key of a table in { }."""
    children, text = scan.children(around), scan.text
    name = "" if isinstance(key, int) else f"{spell_key(key)} = "
    written = f"{name}{spell_value(value)}"
    if children:
        at, written = children[-1].end, f", {written}"
    else:
        at, written = around.value + 1, written if isinstance(key, int) else f" {written} "
    return f"{text[:at]}{written}{text[at:]}"


def _add_line(
    scan: _Scan, beside: Sequence[_Place], behind: int, names: tuple[str, ...], value: Any
) -> str:
    """A line with a key, behind others that it is written like."""
    at = scan.line_end(behind) if behind else 0
    indent = ""
    if beside:
        start = scan.line_start(beside[-1].start)
        indent = scan.text[start : beside[-1].start]
    key = ".".join(map(spell_key, names))
    return scan.insert(at, f"{indent}{key} = {spell_value(value)}{scan.newline}")


def _add_section(scan: _Scan, path: KeyPath, value: Any, top: int) -> str:
    """A table with a header of its own, behind those around it."""
    if not isinstance(value, Mapping):
        raise _LostError
    root = path[: max(top, len(path) - 1)]
    related = [each for each in scan.sections if root and each.path[: len(root)] == root]
    at = scan.line_end(related[-1].last) if related else len(scan.text)
    names = ".".join(spell_key(each) for each in path if isinstance(each, str))
    header = f"[[{names}]]" if isinstance(path[-1], int) else f"[{names}]"
    pairs = [f"{spell_key(key)} = {spell_value(each)}" for key, each in value.items()]
    blank = [""] if scan.text[:at].strip() else []
    lines = [*blank, header, *pairs, ""]
    return scan.insert(at, scan.newline.join(lines))


def _erase(text: str, path: KeyPath) -> str:
    """The text without a key: its lines, or its part of a line."""
    scan = _Scan(text)
    cuts = [*_lines_of(scan, path)] or [_part_of(scan, path)]
    for start, end in reversed(cuts):
        text = f"{text[:start]}{text[end:]}"
    return text


def _lines_of(scan: _Scan, path: KeyPath) -> Iterator[tuple[int, int]]:
    """The lines of all sections and keys at a path or within it."""
    for section in scan.sections:
        if section.path[: len(path)] == path:
            end = scan.line_end(section.last)
            blank = re.compile(r"(?:[ \t]*\r?\n)*").match(scan.text, end)
            assert blank is not None
            yield scan.line_start(section.start), blank.end()
            continue
        for each in section.own:
            if each.path[: len(path)] == path:
                yield scan.line_start(each.start), scan.line_end(each.end)


def _part_of(scan: _Scan, path: KeyPath) -> tuple[int, int]:
    """Where a key of a table in { } or an item of a list begins and ends, its comma included."""
    place = scan.find(path)
    if place is None or place.around is None:
        raise _LostError
    siblings = scan.children(scan.places[place.around])
    number = siblings.index(place)
    behind = BLANK.match(scan.text, place.end)
    assert behind is not None
    before = siblings[number - 1].end if number else place.start
    if scan.text[behind.end()] == ",":
        return place.start, SPACE.match(scan.text, behind.end() + 1).end()  # type: ignore[union-attr]
    is_list = isinstance(path[-1], int)  # whose comma may stay, with what is said behind it
    return (
        place.start if is_list and "\n" in scan.text[before : place.start] else before
    ), place.end
