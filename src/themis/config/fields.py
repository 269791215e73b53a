"""The keys of a themis.toml as the fields of a form: what a value is as text, and what text means.

The JSON Schema of the format says which keys there are. Reading a text never fails: what was to be
a number and is none stays text, so that the reader of files says what is wrong. A key whose text
was not touched keeps its value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeAlias

from themis.config.format import INPUTS, TABLES, Subject
from themis.config.toml import spell_value

Key: TypeAlias = Mapping[str, Any]  # what the JSON Schema says of one
Shape: TypeAlias = Literal["choice", "text", "value", "texts", "values", "numbers", "table"]

MAIN = (  # keys that most files need, in the order of a form
    *("function", "file", "object", "command", "url", "values", "min", "max", "step", "bins"),
    *("protected", "condition", "favourable", "at", "data", "people", "decision", "confidence"),
    *("error", "name", "owner", "purpose"),
)
CONDITION = {"type": "string", "description": "What every input meets", "examples": ["age >= 18"]}
SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|true|false|[+-]?[0-9][0-9_.eE+-]*')


def kinds_of(section: str) -> dict[str, str]:
    """The kinds of tables in a section and what they are; none where there is only one."""
    tables = TABLES.get(section, {})
    known = tables.items() if isinstance(tables, Mapping) else ()
    return {kind: (model.__doc__ or "").partition("\n")[0] for kind, model in known}


def kind_of(section: str, spec: Mapping[str, Any]) -> str:
    """Of which kind a table is, or what it is most likely to become."""
    if section == "inputs":
        is_range = not spec.keys().isdisjoint(("min", "max", "step", "bins"))
        own = next((kind for kind in INPUTS if kind in spec), "values")
        return "range" if is_range else "open" if spec == {"role": "context"} else own
    kinds = kinds_of(section)
    kind = str(spec.get("kind"))
    return kind if kind in kinds else next(iter(kinds), "")


@cache
def keys_of(section: str, kind: str) -> dict[str, Key]:
    """The keys of a table but its kind, those of MAIN first; a constraint has its condition."""
    if section == "constraints":
        return {"condition": CONDITION}
    tables = TABLES[section]
    model = tables[kind] if isinstance(tables, Mapping) else tables
    known = model.model_json_schema()["properties"]
    first = [name for name in MAIN if name in known]
    rest = sorted(known, key=Subject.model_fields.__contains__)  # what all subjects have is last
    return {name: known[name] for name in dict.fromkeys([*first, *rest]) if name != "kind"}


def changed(
    keys: Mapping[str, Key], spec: Mapping[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:
    """A table after some of its keys were written anew; an empty text removes a key."""
    result = dict(spec)
    for name, text in texts.items():
        if name not in keys or text == shown(keys[name], spec.get(name)):
            continue
        result[name] = read(keys[name], text)
    return {name: value for name, value in result.items() if value is not None}


def shape_of(key: Key) -> Shape:
    """How values of a key are written: chosen, on lines, as a list of numbers, in TOML."""
    kind = key.get("type")
    if "enum" in key or "const" in key or kind == "boolean":
        return "choice"
    if kind == "array":
        inner = key["items"].get("type")
        return (
            "numbers"
            if inner == "number"
            else "texts"
            if inner == "string"
            else ("table" if inner == "array" else "values")
        )
    if kind == "string":
        return "text"
    is_table = "object" in (kind or "") or "$ref" in key
    return "values" if "anyOf" in key else "table" if is_table else "value"


def shown(key: Key, value: Any) -> str:
    """A value as text; empty for none."""
    shape = shape_of(key)
    if value is None:
        return ""
    if isinstance(value, list) and shape in ("values", "texts", "numbers"):
        return (", " if shape == "numbers" else "\n").join(map(_line, value))
    if shape == "table":
        return _spelled(value)
    return value if shape == "choice" and isinstance(value, str) else _line(value)


def read(key: Key, text: str) -> Any:
    """The value that a text means; None for none."""
    shape = shape_of(key)
    if not text.strip():
        return None
    if shape == "table" or (shape == "values" and text.lstrip().startswith("{")):
        return _toml(text)
    if shape in ("values", "texts"):
        return [_value(line, shape) for line in text.split("\n") if line.strip()]
    if shape == "numbers":
        return [_value(each, shape) for each in re.split(r"[,\s]+", text.strip(" ,\n\t"))]
    return _value(text, shape)


def _line(value: Any) -> str:
    """A value on one line: a text is in quotes where it would be read as something else."""
    if not isinstance(value, str):
        return _spelled(value)
    plain = value.isprintable() and value[:1] not in ("", "{") and _value(value, "values") == value
    return value if plain else spell_value(value)


def _value(line: str, shape: Shape) -> Any:
    """What a line means: a number, a truth value, a text in quotes, or itself."""
    text = line.strip()
    value = _toml(text) if SCALAR.fullmatch(text) else text
    if isinstance(value, float) and not isfinite(value):
        return text
    wanted = (str,) if shape in ("text", "texts") else (str, int, float)
    return value if isinstance(value, wanted) else text


def _toml(text: str) -> Any:
    try:
        found = tomllib.loads(f"k = {text}")
    except (ValueError, RecursionError):
        return text
    return found["k"] if found.keys() == {"k"} else text


def _spelled(value: Any) -> str:
    try:
        return spell_value(value)
    except TypeError:  # a time of day
        return str(value)
