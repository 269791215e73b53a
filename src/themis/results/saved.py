"""What is wrong with a saved result? The places whose values no result can have, and why.

Files are edited, merged and cut off. The classes that write a result say what may stand where;
keys that they do not know are left out, and keys that have a default may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

from themis.errors import SchemaError
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema, characteristic_from
from themis.results.model import (
    CausalScore,
    CheckResult,
    GroupScore,
    Result,
    SearchResult,
    TestedSet,
)

_OUTPUT = ".outputs["  # of a subject: anything
UNBOUNDED = ("lift",)  # a share of nothing: so many times as often may be infinite


@dataclass(frozen=True)
class Fault:
    """One value that can't be: where it is (`scores[0].low`), and what is wrong with it."""

    place: str
    problem: str


@dataclass(frozen=True)
class _Failure:
    """One kind of failure, as `Result.failures` holds it by its name."""

    count: int
    message: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class _Timing:
    """What is read of `Result.timing`."""

    started: str = ""
    seconds: float = 0.0
    repeats: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Subject:
    """What is read of `Result.subject`."""

    kind: str = ""
    fingerprint: str | None = None


@dataclass(frozen=True)
class _Source:
    """What is read of `Result.source`."""

    file: str | None = None
    lines: Mapping[str, int] = ()  # type: ignore[assignment]  # only its type is used
    command: str | None = None
    checks: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class _Data:
    """What is read of `Result.data`."""

    rows: int = 0
    used: int = 0
    dropped: int = 0


# What stands under keys that the class calls objects, or calls otherwise than the file does.
_RESULT: dict[str, Any] = {
    "failures": Mapping[str, _Failure],
    "timing": _Timing,
    "subject": _Subject,
    "source": _Source | None,
    "data": _Data | None,
    "checks": tuple[CheckResult, ...],
    "scores": None,  # by their measures
    "searches": None,
    "schema": None,
}
_SEARCH: dict[str, Any] = {"minimal_sets": tuple[tuple[str, ...], ...], "cache_hits": None}
_SEARCH |= {"found": None, "tested": None}


def find_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """All that is wrong with the JSON of a result."""
    yield from _object(Result, data, "", _RESULT)
    yield from _schema(data.get("schema"))
    scores = data.get("scores")
    if not isinstance(scores, list):
        yield Fault("scores", f"must be a list, got {_show(scores)}")
        scores = []
    for number, score in enumerate(scores):
        place = f"scores[{number}]"
        measure = score.get("measure") if isinstance(score, Mapping) else None
        kind = GroupScore if measure == "group" else CausalScore
        faults = list(_object(kind, score, place, {}))
        yield from faults or _names(score, place, data.get("schema"))
    found = data.get("search", [])
    for number, search in enumerate(found if isinstance(found, list) else [found]):
        place = f"search[{number}]" if isinstance(found, list) else "search"
        yield from _object(SearchResult, search, place, _SEARCH)
        tested = search.get("sets") if isinstance(search, Mapping) else []
        yield from _value(tuple[TestedSet, ...], tested, f"{place}.sets")


def _names(score: Mapping[str, Any], place: str, schema: Any) -> Iterator[Fault]:
    """Characteristics that a score is about and the schema lacks, and people who lack some."""
    inputs = schema.get("inputs") if isinstance(schema, Mapping) else None
    known = set(inputs) if isinstance(inputs, Mapping) else set()
    for name in score["against"]:
        if name not in known:
            yield Fault(f"{place}.against", f"the schema has no characteristic {name!r}")
    for number, witness in enumerate(score.get("witnesses", ())):
        for which, person in enumerate(witness["inputs"]):
            if person.keys() != known:
                inner = f"{place}.witnesses[{number}].inputs[{which}]"
                yield Fault(inner, "must have a value for each characteristic of the schema")


def _schema(data: Any) -> Iterator[Fault]:
    inputs = data.get("inputs") if isinstance(data, Mapping) else None
    if not isinstance(inputs, Mapping):
        yield Fault("schema.inputs", f"must be an object, got {_show(inputs)}")
        return
    place = "schema"
    try:
        for name, spec in inputs.items():
            place = f"schema.inputs.{name}"
            Schema({name: characteristic_from(spec)})
        place = "schema"
        Schema.from_dict(data)
    except SchemaError as error:
        yield from (Fault(place, each.problem) for each in error.mistakes)
    except (AttributeError, KeyError, TypeError, ValueError):
        yield Fault(place, "is not what the inputs and constraints of a file may be")


def _object(kind: type, data: Any, place: str, others: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the JSON of a dataclass; `others` says of some keys what they hold."""
    if not isinstance(data, Mapping):
        yield Fault(place, f"must be an object, got {_show(data)}")
        return
    hints = {**get_type_hints(kind), **others}
    inner = f"{place}." if place else ""
    for each in fields(kind):
        hint = hints[each.name]
        if each.name in data and hint is not None:
            yield from _value(hint, data[each.name], f"{inner}{each.name}")
        elif hint is not None and each.default is MISSING and each.default_factory is MISSING:
            yield Fault(f"{inner}{each.name}", "is missing")
    yield from _numbers(data, inner)


def _numbers(data: Mapping[str, Any], inner: str) -> Iterator[Fault]:
    """Intervals that are none, and probabilities that can't be."""
    low, high, confidence = (data.get(key) for key in ("low", "high", "confidence"))
    if _is_number(low) and _is_number(high) and low > high:
        yield Fault(f"{inner}low", f"must be at most high, which is {high!r}, got {low!r}")
    if _is_number(confidence) and not 0 < confidence <= 1:
        yield Fault(f"{inner}confidence", f"must lie between 0 and 1, got {confidence!r}")


def _value(hint: Any, value: Any, place: str) -> Iterator[Fault]:
    """What is wrong with a value that a hint describes."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or (hint == Value and _OUTPUT in place):
        return
    if hint == Value:
        if not isinstance(value, str | int | float):
            yield Fault(place, f"must be a text, a number or a truth value, got {_show(value)}")
    elif hint in _PLAIN:
        rule, fits = _PLAIN[hint]
        unbounded = place.rpartition(".")[2] in UNBOUNDED and value == math.inf
        if not fits(value) and not unbounded:
            yield Fault(place, f"must be {rule}, got {_show(value)}")
    elif origin is Literal:
        if value not in inner:
            choices = ", ".join(map(repr, inner))
            yield Fault(place, f"must be one of {choices}, got {_show(value)}")
    elif origin in (UnionType, Union):
        if value is None and NoneType in inner:
            return
        own = [each for each in inner if each is not NoneType]
        if not any(not list(_value(each, value, place)) for each in own):
            yield from _value(own[0], value, place)
    elif origin is tuple:
        yield from _list(inner, value, place)
    elif origin is not None:
        yield from _mapping(inner, value, place)
    else:
        yield from _object(hint, value, place, {})


def _list(inner: tuple[Any, ...], value: Any, place: str) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield Fault(place, f"must be a list, got {_show(value)}")
        return
    hints = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
    if len(hints) != len(value):
        yield Fault(place, f"must be a list of {len(hints)}, got {_show(value)}")
        return
    for number, (hint, each) in enumerate(zip(hints, value, strict=True)):
        yield from _value(hint, each, f"{place}[{number}]")


def _mapping(inner: tuple[Any, ...], value: Any, place: str) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(place, f"must be an object, got {_show(value)}")
        return
    for name, each in value.items():
        yield from _value(inner[1], each, f"{place}.{name}")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_PLAIN: dict[Any, tuple[str, Any]] = {
    str: ("text", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: type(value) is int),
    float: ("a number", _is_number),
}


def _show(value: Any) -> str:
    """A received value in a message, short."""
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
