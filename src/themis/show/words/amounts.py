"""Numbers of notes, which know their measure and, of means, the units of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from themis.show.words.values import figure, percent, points, round_points

Values: TypeAlias = Mapping[str, Any]


def what(values: Values) -> str:
    """What the number of a note is."""
    return "the difference" if "span" in values else "its score"


def amount(values: Values, name: str) -> str:
    """A score or a part of it: in per cent or points, or in the units of the output."""
    if "span" in values:
        return figure(values["span"] * values[name])
    return percent(values[name]) if values.get("measure") == "causal" else points(values[name])


def precisely(values: Values, name: str) -> str:
    """The same with as many digits as tell it from a threshold."""
    if "span" in values:
        return amount(values, name)
    shown = round_points(values[name])
    return f"{shown.split()[0]} %" if values.get("measure") == "causal" else shown


def from_to(values: Values) -> str:
    """Between which ends something is, with the unit once."""
    low, high = (amount(values, end) for end in ("low", "high"))
    if low == high:
        return low
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def on_score(template: str) -> Callable[[Values], str]:
    """A sentence on what a set has: a score, or a difference of means."""

    def words(values: Values) -> str:
        return template.format(what=what(values), score=precisely(values, "score"))

    return words


def on_figures(template: str) -> Callable[[Values], str]:
    """A sentence on the rates of groups, or on their means."""

    def words(values: Values) -> str:
        return template.format("means" if "span" in values else "rates")

    return words


def on_error(template: str) -> Callable[[Values], str]:
    """A sentence on how precisely something was measured."""

    def words(values: Values) -> str:
        is_mean = "span" in values
        return template.format(
            amount(values, "error") if is_mean else round_points(values["error"])
        )

    return words
