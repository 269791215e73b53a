"""TOML: the lines of its keys, mistakes of syntax in plain words, and edits of single values.

`tomllib` reads the values but forgets the lines. So it reads the same text once more, one header or
assignment after the other. An edit replaces whole assignments and leaves every other byte; one with
remarks inside of its value is left to whoever wrote them.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from themis.errors import ConfigError, Mistake

DEEPEST = 100  # tables and lists within each other
KeyPath: TypeAlias = tuple[str | int, ...]  # ("checks", 1, "against"); items count from 0


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; raises ConfigError with the line where it is none."""
    try:
        data = tomllib.loads(text)
        if _depth(data) <= DEEPEST:
            return data
    except tomllib.TOMLDecodeError as error:
        raise _explain(str(error), text) from None
    except RecursionError:
        pass
    except ValueError:
        problem = "a whole number has more digits than Python reads"
        raise _error("number-too-large", 1, problem, "write it as 1e30") from None
    raise _error("syntax", 1, "lists or tables are nested too deeply", "nest fewer")


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of every table and key, counted from 1; items of lists are where their list begins.

    A table that is only implied, as `a` in `[a.b]`, stands where it is first implied.
    """
    explicit: dict[KeyPath, int] = {}
    implied: dict[KeyPath, int] = {}
    for found in statements(text):
        for each in (found.path, *found.inner) if found.kind != "blank" else ():
            explicit.setdefault(each, found.line)
        for length in range(1, len(found.path)):
            implied.setdefault(found.path[:length], found.line)
    return implied | explicit


def spell_path(path: KeyPath) -> str:
    """A path as it is shown: `checks[2].against`; items are counted from 1."""
    text = ""
    for part in path:
        plain = str(part) if str(part).isprintable() else repr(part)
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{plain}"
    return text


_MAY_END = re.compile(r"""(?:[]}]|"{3}|'{3})\s*(?:\#.*)?$""")  # a value of several lines


@dataclass(frozen=True)
class Statement:
    """A header, an assignment, or a line without either; all texts together are the whole."""

    kind: Literal["header", "key", "blank"]
    text: str  # with its line end
    line: int
    path: KeyPath = ()
    table: KeyPath = ()  # that it is in
    sign: int = 0  # behind the = of an assignment
    inner: tuple[KeyPath, ...] = ()  # tables and keys within its value


def statements(text: str) -> Iterator[Statement]:
    """What a text consists of, as far as it is TOML."""
    table: KeyPath = ()
    items: dict[KeyPath, int] = {}  # tables so far in each array of tables

    def latest(parts: Sequence[str | int]) -> KeyPath:
        path: KeyPath = ()
        for part in parts:
            path = (*path, part)
            path = (*path, items[path] - 1) if path in items else path
        return path

    for written, read, line in _chunks(text):
        if not read:
            yield Statement("blank", written, line, table=table)
        elif written.lstrip().startswith("["):
            parts = list(_paths(read))[-1]
            if written.lstrip().startswith("[["):
                array = (*latest(parts[:-1]), parts[-1])
                items[array] = items.get(array, 0) + 1
            table = latest(parts)
            yield Statement("header", written, line, table, table)
        else:
            key, sign = _key(written)
            inner = tuple((*table, *each) for each in _paths(read))
            yield Statement("key", written, line, (*table, *key), table, sign, inner)


def _chunks(text: str) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Each statement as it is written and as it is read, with its first line."""
    written, first = "", 0
    for line, each in enumerate(text.split("\n"), 1):
        first = first if written else line
        written += f"{each}\n"
        if line == first or _MAY_END.search(each):
            with suppress(ValueError, RecursionError):  # it goes on, or is no TOML
                yield written, tomllib.loads(written), first
                written = ""


def _key(assignment: str) -> tuple[KeyPath, int]:
    """The path of the key, and where the first = that is not in quotes ends."""
    for sign in re.finditer("=", assignment):
        with suppress(ValueError):
            return [*_paths(tomllib.loads(f"{assignment[: sign.end()]} 0"))][-1], sign.end()
    raise AssertionError("there is no assignment without a key")


def _paths(table: Mapping[str, Any]) -> Iterator[KeyPath]:
    """All keys of tables within each other, those around before those inside."""
    for key, value in table.items():
        yield (key,)
        if isinstance(value, Mapping):
            yield from ((key, *each) for each in _paths(value))


def _depth(value: Mapping[str, Any] | list[Any]) -> int:
    """How many tables and lists are within each other."""
    inner = value.values() if isinstance(value, Mapping) else value
    return 1 + max((_depth(each) for each in inner if isinstance(each, Mapping | list)), default=0)


_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
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
    "Illegal character": ("text is not closed on its line", "end it with a quote"),
    "Expected \"'": ("text is not closed", "end it with the quote it begins with"),
    "Cannot ": ("something is defined twice", "define each table once"),
}


def _explain(message: str, text: str) -> ConfigError:
    """What tomllib says, in plain words and with the line."""
    match = _PLACE.fullmatch(message)
    what, line, column = match.groups() if match else (message, None, None)
    number = int(line) if line else max(text.rstrip().count("\n") + 1, 1)
    if what.startswith("Cannot ") and (repeated := _first_repeated(text)):
        return repeated
    place = f"at column {column}" if column else "at the end of the file"
    for beginning, (problem, remedy) in _WORDS.items():
        if what.startswith(beginning):
            return _error("syntax", number, f"{place} {problem}", remedy)
    problem = f"{place} {what[:1].lower()}{what[1:]}"
    return _error("syntax", number, problem, "the file is written in TOML, see https://toml.io")


def _first_repeated(text: str) -> ConfigError | None:
    seen: dict[KeyPath, int] = {}
    for each in statements(text):
        if each.kind != "blank" and each.path in seen:
            name = ".".join(str(part) for part in each.path)
            problem = f"the key {name!r} appears twice, first in line {seen[each.path]}"
            return _error("duplicate-key", each.line, problem, "remove or rename one")
        seen[each.path] = each.line
    return None


def _error(code: str, line: int, problem: str, remedy: str) -> ConfigError:
    return ConfigError([Mistake(code, "", problem, remedy, line=line)])


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
    if isinstance(value, float):
        return repr(value)  # also inf and nan
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spell_remark(text: str) -> Iterator[str]:
    """The lines of a comment, without what TOML does not allow in one."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    for line in textwrap.wrap(shown, 98, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


# Edits ------------------------------------------------------------------------------------------
BOM = "\ufeff"
_INDENT = re.compile(r"[ \t]*")
_ABSENT = object()


def with_value(text: str, path: KeyPath, value: Any, *, prefix: KeyPath = ()) -> str:
    """The text in which the key at a path has this value; tables around it are added.

    Of a table or a list that is there only what differs is replaced. `prefix` is the table around
    the whole configuration, as `("tool", "themis")`. Raises ConfigError where this can't be done
    without touching more.
    """
    full, plain = (*prefix, *path), _ended(text.removeprefix(BOM))
    data = parse_toml(plain)
    _set(data, full, value)
    return _checked(text, full, prefix, lambda: _write(plain, full, value, len(prefix)), [data])


def without(text: str, path: KeyPath, *, prefix: KeyPath = ()) -> str:
    """The text without a key, a table or an item of a list; as it is, where there is none."""
    full, plain = (*prefix, *path), _ended(text.removeprefix(BOM))
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


def _ended(text: str) -> str:
    """The text with an end of its last line."""
    return text if text.endswith("\n") or not text else f"{text}\n"


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


# How it is written
def _write(text: str, path: KeyPath, value: Any, top: int) -> str:
    """The text with a value; tables of the file have paths longer than `top` by one."""
    old = _get(tomllib.loads(text), path)
    if old is not _ABSENT and _form(old) == _form(value):
        return text
    lines = [*statements(text)]
    around = _around(lines, path)
    if around is not None:
        data = tomllib.loads(text)
        _set(data, path, value)
        return _rewritten(lines, around, _get(data, lines[around].path))
    if isinstance(old, dict) and isinstance(value, Mapping):
        for key in old.keys() - value.keys():
            text = _erase(text, (*path, key))
        for key, each in value.items():
            text = _write(text, (*path, key), each, top)
        return text
    return _add(text, path, value, top)


def _erase(text: str, path: KeyPath) -> str:
    """The text without a key: its lines, or its part of them."""
    lines = [*statements(text)]
    around = _around(lines, path)
    if around is not None and lines[around].path != path:
        data = tomllib.loads(text)
        next(_unset(data, path))
        return _rewritten(lines, around, _get(data, lines[around].path))
    gone: set[int] = set()
    for place, each in enumerate(lines):
        if each.path[: len(path)] == path:
            behind = _behind(lines, place)
            while behind < len(lines) and each.kind == "header" and not lines[behind].text.strip():
                behind += 1
            gone |= {*range(place, behind)}
    return _joined([each.text for place, each in enumerate(lines) if place not in gone])


def _around(lines: Sequence[Statement], path: KeyPath) -> int | None:
    """The assignment that a path is in, or is."""
    keys = (n for n, each in enumerate(lines) if each.kind == "key")
    return next((n for n in keys if lines[n].path == path[: len(lines[n].path)]), None)


def _rewritten(lines: Sequence[Statement], place: int, value: Any) -> str:
    """The text in which an assignment has another value, and the remark behind it stays."""
    old = lines[place]
    read = tomllib.loads(old.text)
    ends = (n for n, sign in enumerate(old.text) if sign == "#" and _says(old.text[:n], read))
    end = len(old.text[: next(ends, None)].rstrip())
    if "#" in old.text[old.sign : end] and "\n" in old.text[old.sign : end]:
        raise _LostError  # a remark on a part of the value
    before = old.sign + len(_INDENT.match(old.text[old.sign :])[0])  # type: ignore[index]
    new = f"{old.text[:before]}{spell_value(value)}{old.text[end:]}"
    return _joined([new if n == place else each.text for n, each in enumerate(lines)])


def _says(text: str, data: Any) -> bool:
    try:
        return _form(tomllib.loads(text)) == _form(data)
    except ValueError:
        return False


def _add(text: str, path: KeyPath, value: Any, top: int) -> str:
    """The text with a key, a table or an item that it lacks."""
    lines, parent, key = [*statements(text)], path[:-1], path[-1]
    if isinstance(key, int) or (isinstance(value, Mapping) and len(path) == top + 1):
        return _add_section(lines, path, value, top)
    if parent and _get(tomllib.loads(text), parent) is _ABSENT:
        return _add(text, parent, {key: value}, top)
    if not parent or any(each.kind == "header" and each.path == parent for each in lines):
        beside = [n for n, e in enumerate(lines) if e.table == parent and e.kind != "blank"]
        names = path[-1:]
    else:
        within = (n for n, e in enumerate(lines) if e.path[: len(parent)] == parent)
        beside = [n for n in within if lines[n].kind == "key" and len(lines[n].table) < len(parent)]
        names = path[len(lines[beside[-1]].table) :] if beside else ()
    if not names:
        return _add_section(lines, path, value, top)
    at = beside[-1] + 1 if beside else 0
    last = lines[beside[-1]] if beside else None
    indent = "" if last is None or last.kind == "header" else _INDENT.match(last.text)[0]  # type: ignore[index]
    written = f"{indent}{'.'.join(spell_key(str(each)) for each in names)} = {spell_value(value)}"
    return _inserted(lines, at, [written])


def _add_section(lines: Sequence[Statement], path: KeyPath, value: Any, top: int) -> str:
    """A table with a header of its own, behind those around it."""
    if not isinstance(value, Mapping):
        raise _LostError
    root = path[: max(top, len(path) - 1)]
    related = [n for n, e in enumerate(lines) if e.kind != "blank" and e.table[: len(root)] == root]
    at = related[-1] + 1 if root and related else len(lines) - 1
    names = ".".join(spell_key(each) for each in path if isinstance(each, str))
    header = f"[[{names}]]" if isinstance(path[-1], int) else f"[{names}]"
    pairs = [f"{spell_key(key)} = {spell_value(each)}" for key, each in value.items()]
    blank = [""] if any(each.text.strip() for each in lines[:at]) else []
    return _inserted(lines, at, [*blank, header, *pairs])


def _behind(lines: Sequence[Statement], place: int) -> int:
    """Behind a key, or behind the last key of the table that a header begins."""
    end = place + 1
    for number in range(end, len(lines) if lines[place].kind == "header" else end):
        if lines[number].kind == "header":
            break
        if lines[number].kind == "key":
            end = number + 1
    return end


def _inserted(lines: Sequence[Statement], at: int, new: Sequence[str]) -> str:
    end = "\r\n" if any(each.text.endswith("\r\n") for each in lines) else "\n"
    texts = [each.text for each in lines]
    return _joined([*texts[:at], *(f"{each}{end}" for each in new), *texts[at:]])


def _joined(texts: Sequence[str]) -> str:
    """The whole text; its last line has no end."""
    return "".join(texts).removesuffix("\n")
