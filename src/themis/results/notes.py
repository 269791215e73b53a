"""Endings and notes: how a run ended, and what is to be said about it, as codes with values.

Nothing here is a sentence: `show` has the words for every code. CODES is the list of them. Later
versions may add codes, so a reader takes a code that it does not know as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from themis.results.hooks import hook
from themis.settings import Settings


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
    SPELLING = "spelling"  # what was found rests on texts that differ only in spelling

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
        known = {name: _plain(each) for name, each in values.items() if each is not None}
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


HARMLESS = {"values-kept", "values-between-steps", "inputs-unlike-rows"}
PREFIXES = ("about", "when")  # any note may say of which set or output it is, or of which result
OLD_SENTENCE = "format-1"  # of a result that held sentences

UNIT = ("measure", "span")  # what tells the unit of a score or a difference: see `in_units`

CODES: dict[str, tuple[str, ...]] = {
    # code: names of its values
    OLD_SENTENCE: ("text",),
    # of scores
    "ended-early": ("ended", "samples", "max_executions", "max_seconds"),
    "too-many-assignments": ("assignments", "tried"),
    "too-many-groups": ("groups", "tried"),
    "groups-not-listed": ("groups", "listed", "span"),
    "random-members": (),
    "rows-with-counterparts": ("paired", "rows", "against", "followed"),
    "groups-without-decision": ("groups",),
    "value-taken-away": ("names", "changed", "inputs", "share", "low", "high", "confidence"),
    "paper-rule": (),
    "exact-not-possible": ("reason",),
    "nothing-to-change": ("against",),
    "noise-in-score": ("high", *UNIT),
    "noise-in-rates": ("span",),
    "noise-in-exact-rates": ("span",),
    "noise-of-calls": (),
    "no-decision-rates": ("groups", "confidence"),
    "no-decision-apart": ("groups", "apart", "confidence"),
    "only-spelling": ("texts", "rows", "output", "rare"),
    "partly-spelling": ("texts", "rows", "output", "rare"),
    # of searches
    "noise-in-group-search": ("span",),
    "noise-in-search": ("differing", "inputs", "doubtful"),
    # of sets that a search looked at
    "inputs-flip": ("flips", "inputs", "untried", "unsettled", "average"),
    "exact-score": ("score", *UNIT),
    "equals-threshold": ("score", *UNIT),
    "score-between": ("low", "high", "spelled", *UNIT),
    "groups-apart": ("low", "high", "contexts", "span"),
    "within-set-below": ("against",),
    "causal-score-below": ("against",),
    "estimated-score": ("score", *UNIT),
    "noise-may-explain": ("high", *UNIT),
    # of checks
    "not-checked-for-noise": (),
    "few-people": (),
    "noise-in-finding": ("explains", "floor", *UNIT),
    "run-ended": ("ended",),
    "search-ended": ("ended", "sets_open"),
    "subject-failed": (),
    "never-favourable": (),
    "nothing-to-compare": ("against",),
    "noise-alone": ("score", "high"),
    "only-lower-bound": (),
    "executions-failed": (),
    "score-near-limit": ("error", "span"),
    "sets-near-limit": ("error", "span"),
    "sets-at-limit": (),
    "sets-undecided": ("undecided", "sets"),
    "accepted-up-to": ("against", "max_score", *UNIT),
    "accepted-until": ("against", "until"),
    "not-in-baseline": (),
    "undecided-in-baseline": (),
    "above-baseline": ("high", "few", *UNIT),
    "baseline-unfinished": (),
    "maybe-above-baseline": ("high", "few", *UNIT),
    "not-above-baseline": ("low", "high", "few", *UNIT),
    # of results
    "acceptance-unmatched": ("measure", "against", "output", "max_score", "line"),
    "acceptance-not-needed": ("measure", "against", "output", "max_score", "line"),
    "acceptance-ended": ("measure", "against", "output", "max_score", "line", "until"),
    "few-combinations": ("names", "share"),
    "rows-left-out": ("file", "rows", "dropped", "reasons"),
    "values-kept": ("name", "rows", "values"),
    "values-between-steps": ("name", "rows"),
    "range-widened": ("name", "min", "max"),
    "values-added": ("name", "values"),
    "values-unseen": ("name", "values", "more"),
    "without-effect": ("names",),
    "no-favourable-output": ("outputs", "favourable", "rare"),
    "same-output": ("output", "executions", "rare"),
    "mostly-same": ("low", "high", "fewest", "most"),
    "proxies-missing": ("names",),
    "few-counterfactuals": ("against", "share", "constraints"),
    "made-by-constraints": ("against", "difference", "changed", "constraints", "linked"),
    "inputs-unlike-rows": ("name", "low", "high", "rows", "generated"),
    "pairs-not-confirmed": (),
    "vouched-for": (),
    "depends-on-neighbours": ("differing", "inputs"),
    "inconsistent-example": ("how", "input", "outputs", "rare"),
    "slow-start": ("share",),
    "inputs-unanswered": ("inputs", "reply"),
    "executions-take-time": ("seconds",),
    "calls-take-time": ("few", "many", "cost", "max_executions"),
    "cache-not-used": (),
    "executor-not-used": ("executor",),
    "executor-differs": ("executor",),
    "cache-in-use": ("path", "process", "own"),
    "cache-set-aside": ("path", "aside"),
    "cache-damaged": ("path", "decisions"),
    # of plans
    "no-favourable-trial": ("outputs",),
    "nothing-protected": (),
    # of replays
    "column-not-used": ("name",),
    "same-subject": (),
    "answers-at-random": ("tests", "unclear", "lasting"),
    "no-such-value": ("name", "value"),
    "forbidden-by-constraint": (),
    "no-such-characteristic": ("name",),
    # of two results
    "characteristic-removed": ("name",),
    "characteristic-added": ("name",),
    "characteristic-changed": ("name",),
    "constraints-differ": (),
    "rows-differ": (),
    "scale-differs": ("output", "before", "after"),
    "favourable-differs": ("output", "before", "after"),
    "setting-differs": ("name", "before", "after"),
    "kind-differs": ("before", "after"),
    "fingerprint-differs": (),
    "seed-differs": ("before", "after"),
    "threshold-differs": ("measure", "before", "after"),
    "among-differs": ("measure",),
    "max-size-differs": ("measure", "before", "after"),
    "paper-rule-used": (),
    "measured-once": ("name", "only"),
    "maybe-risen": ("name",),
    "searched-once": ("measure", "only"),
    "nothing-measured": (),
}


def ended_early(ended: Ending, settings: Settings, samples: int) -> Note:
    """The note for a score whose run ended before it was done, after so many samples."""
    limits = {}
    if ended is Ending.BUDGET:
        limits = {name: getattr(settings, name) for name in ("max_executions", "max_seconds")}
    return Note.of("ended-early", ended=ended, samples=samples, **limits)


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


def _plain(value: Any) -> Any:
    """A value as JSON has it, so that a note that was saved equals the one that is read."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
