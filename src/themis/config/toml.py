"""TOML: the lines of its keys, mistakes of syntax in plain words, and how values are written.

`tomllib` reads the values but forgets the lines. So it reads the same text once more, one header or
assignment after the other.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
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
    if isinstance(value, float):
        return repr(value)  # also inf and nan
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spell_remark(text: str) -> Iterator[str]:
    """The lines of a comment, without what TOML does not allow in one."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    for line in textwrap.wrap(shown, WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
