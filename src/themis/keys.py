"""Keys that users set: a field of a dataclass with its description, an example and its rule.

Each is described once. Python callers are checked by `broken_rules`; the reader of `themis.toml`
and the JSON Schema for editors take their keys from the same fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a finite number, and no truth value."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


@dataclass(frozen=True)
class Rule:
    """What a value must be: in words, with {} for what was received, and as JSON Schema."""

    words: str
    schema: Mapping[str, Any]
    holds: Callable[[Any], bool]

    def problem(self, value: Any) -> str:
        """What is wrong with a value; empty where it keeps the rule."""
        return "" if self.holds(value) else self.words.format(repr(value))


PERCENT = "write {share:g} for {percent:g} %"
TRUTH = Rule(
    "must be true or false, got {}", {"type": "boolean"}, lambda value: isinstance(value, bool)
)
NUMBER = Rule("must be a number, got {}", {"type": "number"}, is_number)
POSITIVE = Rule(
    "must be a positive number, got {}",
    {"type": "number", "exclusiveMinimum": 0},
    lambda value: is_number(value) and value > 0,
)
FRACTION = Rule(
    "must lie between 0 and 1, got {}",
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    lambda value: is_number(value) and 0 < value < 1,
)
SHARE = Rule(
    "must lie between 0 and 1, got {}",
    {"type": "number", "minimum": 0, "maximum": 1},
    lambda value: is_number(value) and 0 <= value <= 1,
)


def at_least(least: int) -> Rule:
    """The rule of a whole number that has a smallest value."""
    words = f"must be a whole number of at least {least}, got {{}}"
    schema = {"type": "integer", "minimum": least}
    return Rule(words, schema, lambda value: is_whole(value) and value >= least)


def key(
    description: str, *examples: Any, rule: Rule | None = None, remedy: str = "", **limits: Any
) -> dict[str, Any]:
    """The metadata of a field that users set.

    The rule holds for files and for Python callers; `limits` are pydantic's, and only for files,
    where the `annotation` may be another than that of the field.
    """
    own = {} if rule is None else {"rule": rule, "remedy": remedy}
    return {"description": description, "examples": list(examples), **own, **limits}


def optional(default: T, description: str, *examples: Any, **rules: Any) -> T:
    """A field that users may set."""
    made: T = field(default=default, metadata=key(description, *examples, **rules))
    return made


def broken_rules(thing: Any) -> Iterator[tuple[str, str, str]]:
    """Each key of a dataclass that breaks its rule, with the problem and the remedy."""
    for each in fields(thing):
        value, rule = getattr(thing, each.name), each.metadata.get("rule")
        if rule is None or (value is None and each.default is None):
            continue
        if problem := rule.problem(value):
            yield each.name, problem, remedy_of(each.metadata["remedy"], value)


def remedy_of(remedy: str, value: Any) -> str:
    """The remedy for a value; of a percentage it names the share that was meant."""
    percent = value if is_number(value) and 1 < value < 100 else 99
    return remedy.format(share=percent / 100, percent=percent) if remedy == PERCENT else remedy
