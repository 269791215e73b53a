"""Wordings: a text for each value of a characteristic, as in `{sex|woman:she,man:he}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from themis.errors import suggest
from themis.inputs.characteristics import Characteristic, Value
from themis.inputs.following import level_names
from themis.subjects.processes.texts import plain_text


def wording_of(
    text: str, of: Characteristic, broken: Callable[[str, str], None]
) -> Callable[[Value], str]:
    """What is written for each value; problems and their remedies are told to `broken`.

    The names are those of values, or of bins; a piece between commas without a name belongs to the
    text before it.
    """
    known = level_names(of)
    words: dict[str, str] = {}
    for name, word in _pairs(text, known):
        if name in words:
            broken(f"{name!r} of {of.name!r} has two wordings", "remove one")
        elif name not in known:
            broken(f"{of.name!r} has no value {name!r}", suggest(name, known) if known else "")
        words[name] = word
    if lacking := [name for name in known if name not in words]:
        shown = ", ".join(map(repr, lacking[:5])) + (", …" if len(lacking) > 5 else "")
        broken(f"there is no wording for {shown} of {of.name!r}", f"write {lacking[0]}:…")
    elif not known:
        broken(f"{of.name!r} has too many values for wordings", "give it bins")
    elif of.has_own:
        broken(
            f"rows have values of {of.name!r} without a wording", "list these values in [inputs]"
        )
    return partial(_written, tuple(words.get(name, "") for name in known), of)


def _pairs(text: str, known: list[str]) -> Iterator[tuple[str, str]]:
    """The names and their texts, in order."""
    name, word = "", ""
    for piece in text.split(","):
        own = [each for each in known if piece.lstrip().startswith(f"{each}:")]
        start = max(own, key=len) if own else piece.partition(":")[0].strip()
        if ":" not in piece and name:
            word += f",{piece}"
            continue
        if name:
            yield name, word
        name, word = start, piece.lstrip()[len(start) :].lstrip()[1:]
    yield name, word


def _written(words: tuple[str, ...], of: Characteristic, value: Value) -> str:
    code = of.encode(value)
    level = -1 if code is None else int(of.level_of(np.array([code]))[0])
    return words[level] if 0 <= level < len(words) else plain_text(value)
