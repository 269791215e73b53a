"""Endings and notes: how a run ended, and what is to be said about it, as codes with values.

Nothing here is a sentence: `show` has the words for every code. CODES, in notes.toml, is the list
of them. Later versions may add codes, so a reader takes a code that it does not know as it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from themis.results.hooks import hook


class Ending(StrEnum):
    """Why a measurement, a search or a whole run ended."""

    DONE = "done"
    ERROR_REACHED = "error reached"  # the interval is as narrow as asked
    EXHAUSTED = "exhausted"  # nothing is left to run
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    NOISE = "noise"  # the subject does not always decide the same
    INCONSISTENT = "inconsistent"  # what was seen contradicts itself: answers depend on each other
    FAILED = "failed"  # the subject failed too often

    @property
    def is_conclusive(self) -> bool:
        """Whether it came to its end, and nothing stood in its way."""
        return self in (Ending.DONE, Ending.ERROR_REACHED, Ending.EXHAUSTED)

    @property
    def is_early(self) -> bool:
        """Whether it was cut off by its budget or by hand."""
        return self in (Ending.BUDGET, Ending.INTERRUPTED)


@dataclass(frozen=True)
class Note:
    """Something to know about a result: a stable code with its values; `str` is the sentence."""

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, code: str, **values: Any) -> Note:
        """A note of a known code; values that are None are left out."""
        known = {name: plain(each) for name, each in values.items() if each is not None}
        assert known.keys() <= {*CODES[code], *PREFIXES}, f"{code}: {', '.join(known)}"
        return cls(code, known)

    def __hash__(self) -> int:
        return hash(self.code)

    @property
    def is_harmless(self) -> bool:
        """Whether it only says how things are: nothing is wrong, and no verdict is weaker."""
        if self.code == "rows-with-counterparts":
            return self.values.get("paired") == self.values.get("rows")
        return self.code in HARMLESS

    def __str__(self) -> str:
        return str(hook("note")(self))


AT_ONCE = "precise-at-once"  # says how precise scores are that nobody said that of
HARMLESS = {"values-kept", "values-between-steps", AT_ONCE}
PREFIXES = ("about", "when")  # any note may say of which set or output it is, or of which result

UNIT = ("measure", "span")  # what tells the unit of a score or a difference: see `in_units`

CODES: dict[str, tuple[str, ...]] = {
    code: tuple(names)
    for code, names in tomllib.loads(
        Path(__file__).with_name("notes.toml").read_text(encoding="utf-8")
    ).items()
}


def ended_early(ended: Ending, samples: int) -> Note:
    """The note for a score whose run ended before it was done, after so many samples.

    It names no budget: that of one score may be what others of the same command left.
    """
    return Note.of("ended-early", ended=ended, samples=samples)


def in_units(of: Any, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """The notes of a score, search or check, with what tells the unit of their numbers.

    That is the `measure`, and for differences of means `span`: what 1 stands for, in the units of
    the output.
    """
    known: dict[str, Any] = {"measure": of.measure}
    if of.measure == "group" and of.statistic == "mean" and of.scale is not None:
        known["span"] = of.scale[1] - of.scale[0]
    return tuple(_with(each, known) for each in notes)


def _with(note: Note, known: Mapping[str, Any]) -> Note:
    """The note with those values that its code has."""
    own = {name: known[name] for name in CODES.get(note.code, ()) if name in known}
    return replace(note, values={**note.values, **own}) if own else note


LEAVES = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Objects, tuples and endings as JSON has them, and floats without noise.

    What does not count where objects are compared is not saved.
    """
    if type(value) in LEAVES:  # most are, of results with thousands of pairs
        return value
    if is_dataclass(value):
        saved = (each.name for each in fields(value) if each.compare)
        return {name: plain(getattr(value, name)) for name in saved}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, StrEnum):
        return value.value
    return round(value, 12) if isinstance(value, float) else value
