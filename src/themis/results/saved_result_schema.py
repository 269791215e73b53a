"""Which shape does a saved result have? A JSON Schema, made from the classes that write it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from themis.results.model import (
    UNLESS_USED,
    CausalScore,
    Group,
    GroupScore,
    Result,
    SearchResult,
    Witness,
)
from themis.results.saved_saved_results import FORMAT

Schema = dict[str, Any]

# Where `to_dict` writes other keys than the class has fields, or leaves some out at times.
_RENAMED: dict[type, dict[str, str]] = {
    SearchResult: {"found": "minimal_sets", "tested": "sets"},
    Result: {"searches": "search"},
}
_UNWRITTEN: dict[type, set[str]] = {SearchResult: {"minimal_sets", "cache_hits"}}
_OPTIONAL: dict[type, set[str]] = {
    Witness: {"reproduce"},
    Group: {"few"},
    CausalScore: set(UNLESS_USED),
    GroupScore: set(UNLESS_USED),
    SearchResult: {"output", "distance", "statistic"},
    Result: {"searches", "checks", *(e.name for e in fields(Result) if e.default is None)},
}
_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def result_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a result, format 1.

    Keys may be added within a format; a reader leaves out what it does not know.
    """
    definitions: Schema = {}
    top = _object(Result, definitions)
    causal, group = (_reference(kind, definitions) for kind in (CausalScore, GroupScore))
    top["properties"] = {
        "themis": {"type": "string", "description": "The version that wrote it"},
        "format": {"const": FORMAT},
        **top["properties"],
        "scores": {"type": "array", "items": {"oneOf": [causal, group]}},
    }
    top["required"] = ["themis", "format", *top["required"]]
    search = _reference(SearchResult, definitions)
    top["properties"]["search"] = {
        "oneOf": [search, {"type": "array", "items": search, "minItems": 2}]
    }
    _add_empty_lists(definitions)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    title = f"A result of Themis, format {FORMAT}"
    return {"$schema": dialect, **top, "title": title, "$defs": definitions}


def _add_empty_lists(definitions: Schema) -> None:
    """Every score has groups and witnesses; those of the other measure are empty."""
    for kind, other, measure in (
        (CausalScore, "groups", "causal"),
        (GroupScore, "witnesses", "group"),
    ):
        definition = definitions[kind.__name__]
        definition["properties"][other] = {"type": "array", "maxItems": 0}
        definition["properties"]["measure"] = {"const": measure}
        definition["required"].append(other)


def _object(kind: type, definitions: Schema) -> Schema:
    """The schema of a dataclass: what it may have, and what it always has."""
    hints = get_type_hints(kind)
    renamed, optional = _RENAMED.get(kind, {}), _OPTIONAL.get(kind, set())
    written = [each.name for each in fields(kind) if each.name not in _UNWRITTEN.get(kind, set())]
    return {
        "type": "object",
        "description": inspect.cleandoc(kind.__doc__ or "").split("\n")[0],
        "properties": {
            renamed.get(name, name): _value(hints[name], definitions) for name in written
        },
        "required": [renamed.get(name, name) for name in written if name not in optional],
    }


def _reference(kind: type, definitions: Schema) -> Schema:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # it may be needed within itself
        definitions[kind.__name__] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _value(hint: Any, definitions: Schema) -> Schema:
    """The schema of what a field may hold."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is type(None):
        return {"type": "null"}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (UnionType, Union):
        return {"anyOf": [_value(each, definitions) for each in inner]}
    if origin is tuple:
        return _list(inner, definitions)
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _value(inner[1], definitions)}
    return _reference(hint, definitions)


def _list(inner: tuple[Any, ...], definitions: Schema) -> Schema:
    if inner[-1] is Ellipsis:
        return {"type": "array", "items": _value(inner[0], definitions)}
    items = [_value(each, definitions) for each in inner]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
