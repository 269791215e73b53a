"""Values of single people in documents: long numbers roughly, rare texts not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from themis.inputs.numbers import two_digits
from themis.results.parts import Rare

Values: TypeAlias = dict[str, Any]

ABOUT = "about "  # before a number that is rounded
LOWER, HIGHER = "lower", "higher"  # of two numbers that are the same when rounded
RARE = ("a rare value", "another rare value")  # in place of texts that hardly anybody has


class Unnamed(str):
    """Stands in the place of an output or outcome that is not named, and is none itself."""

    __slots__ = ()


RARE_OUTPUT = (Unnamed("a rare output"), Unnamed("another rare output"))  # or gets


def rounded(text: str) -> str:
    """A number as it is written, if it has two digits; else about how much it is."""
    number = float(text)
    short = two_digits(number)
    return text if short == number else f"{ABOUT}{short:,.10g}"


def rough(
    inputs: tuple[Values, Values], names: Iterable[str], rare: Rare | None
) -> tuple[Values, Values]:
    """These values of two inputs; of numbers, no more than their first digit, and no rare text."""
    shown: tuple[Values, Values] = ({}, {})
    for name in names:
        both = inputs[0][name], inputs[1][name]
        is_rare = (False, False) if rare is None else (name in rare[0], name in rare[1])
        shown[0][name], shown[1][name] = kept_apart(both, is_rare, RARE)
    return shown


def kept_apart(
    both: tuple[Any, Any], rare: tuple[bool, bool], words: Sequence[str], *, exact: bool = False
) -> tuple[Any, Any]:
    """Two values without rare texts; numbers roughly, with `exact` only those that are rare."""
    texts = [about(e) if own or not exact else e for e, own in zip(both, rare, strict=True)]
    hidden = iter(words)
    for place, own in enumerate(rare):
        if own and isinstance(both[place], str):
            texts[place] = next(hidden)
    if texts[0] == texts[1] and both[0] != both[1]:
        texts = [LOWER, HIGHER] if both[0] < both[1] else [HIGHER, LOWER]
    return texts[0], texts[1]


def about(value: Any) -> Any:
    """A value that many have; of a long number, its first digit and how large it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) < 10 and value == int(value):  # numbers of one digit are shown as they are
        return value
    return f"{ABOUT}{float(f'{value:.0e}'):,.10g}"
