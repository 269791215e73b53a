"""Conditions of regions as results have them, held against inputs: `age ≥ 40`, `job = none`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from themis.inputs.characteristics import Value


def meets(inputs: Mapping[str, Value], condition: str) -> bool:
    """Whether an input meets a condition of a region, as it is written: `age ≥ 40`."""
    for name in sorted(inputs, key=len, reverse=True):  # one name may begin another
        own = inputs[name]
        low, between, rest = condition.partition(f" ≤ {name}")
        if between and (not rest or rest.startswith(" ≤ ")):
            high = rest.removeprefix(" ≤ ")
            return _at_most(low, own) and (not high or _at_most(own, high))
        sign, _, end = condition.removeprefix(f"{name} ").partition(" ")
        if not condition.startswith(f"{name} ") or sign not in ("=", "≤", "≥", "is"):
            continue
        if sign in ("≤", "≥"):
            return _at_most(own, end) if sign == "≤" else _at_most(end, own)
        if sign == "=":
            return _same(own, end)
        kind, _, listed = end.partition("one of ")
        return own is None if kind else any(_same(own, each) for each in listed.split(", "))
    return False


def _same(own: Value, written: str) -> bool:
    if isinstance(own, str):
        return own == written
    if own is None:
        return written == "missing"
    return written == json.dumps(own) or _number(own) == _number(written)


def _at_most(low: Any, high: Any) -> bool:
    ends = _number(low), _number(high)
    return ends[0] is not None and ends[1] is not None and ends[0] <= ends[1]


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
