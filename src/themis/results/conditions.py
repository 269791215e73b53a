"""Conditions of regions, which are texts, held against inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from themis.inputs.characteristics import Value
from themis.show.words.values import visible


def meets(inputs: Mapping[str, Value], condition: str) -> bool:
    """Whether an input meets a condition of a region, as it is written: `age ≥ 40`."""
    for name in sorted(inputs, key=len, reverse=True):  # one name may begin another
        own, shown = inputs[name], visible(inputs[name])
        low, between, rest = condition.partition(f" ≤ {name}")
        if between and (not rest or rest.startswith(" ≤ ")):
            high = rest.removeprefix(" ≤ ")
            return _at_most(low, own) and (not high or _at_most(own, high))
        sign, _, end = condition.removeprefix(f"{name} ").partition(" ")
        if not condition.startswith(f"{name} ") or sign not in ("=", "≠", "≤", "≥", "is"):
            continue
        if sign in ("≤", "≥"):
            return _at_most(own, end) if sign == "≤" else _at_most(end, own)
        if sign in ("=", "≠"):
            return (_same(own, shown, end)) == (sign == "=")
        kind, _, listed = end.partition(" of ")
        if kind in ("one", "none"):
            return any(_same(own, shown, e) for e in listed.split(", ")) == (kind == "one")
        return (own is None) == (end == "missing")
    return False


def _same(own: Value, shown: str, written: str) -> bool:
    return written == shown or (
        not isinstance(own, str | None) and _number(own) == _number(written)
    )


def _at_most(low: Any, high: Any) -> bool:
    ends = _number(low), _number(high)
    return ends[0] is not None and ends[1] is not None and ends[0] <= ends[1]


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
