"""Edits of a themis.toml that replace what is asked and leave every other byte as it is.

Whole assignments are replaced; one with remarks inside of its value is left to whoever wrote them.
The edited text is read again and must say exactly what was asked: else the edit is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import pairwise
from typing import Any

from themis.config.toml import (
    KeyPath,
    Statement,
    key_lines,
    parse_toml,
    spell_key,
    spell_path,
    spell_value,
    statements,
)
from themis.errors import ConfigError, Mistake

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
