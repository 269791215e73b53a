"""What may be shown of people: nobody's row, unless `[report] rows` or `--rows` allows it.

Pages, reports, terminals and notebooks show what `withheld` gives, so that no format can forget it.
Pairs of generated values are shown whole. Where there are none, a pair of people is left with what
differs. What fewer than SHARED people have is not named: neither a group, nor a value, nor a known
outcome. Files to work on (a saved result, a suite, the cache) hold rows, and say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, TypeAlias, TypeVar

from themis.errors import count_of
from themis.inputs.characteristics import Value
from themis.inputs.personal import SHARED
from themis.results.model import CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.notes import Note
from themis.results.outcomes import Gap, OutcomeGroup, Outcomes, Proxy
from themis.results.parts import Group, Rare, Region, Witness
from themis.results.replays import Replay, ReplayedTest

Thing = TypeVar("Thing")
AnyGroup = TypeVar("AnyGroup", Group, OutcomeGroup)
Values: TypeAlias = dict[str, Any]

_END = re.compile(
    r"(?<=[≤≥=] )-?\d+(?:\.\d+)?$|^-?\d+(?:\.\d+)?(?= ≤)"
)  # of a range, in a condition
SHORT = 10  # numbers of one digit are shown as they are
RARE = ("a rare value", "another rare value")  # in place of texts that hardly anybody has


@dataclass(frozen=True, kw_only=True)
class Withheld(Result):
    """A result as documents may show it, and the whole one, whose hash they carry."""

    whole: Result


def withheld(thing: Thing) -> Thing:
    """The result, score, search or replay, as documents may show it."""
    shown: Thing = _withheld(thing)
    return shown


def withheld_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """The notes without values of single people."""
    return tuple(map(_note, notes))


@singledispatch
def _withheld(thing: Any) -> Any:
    return thing


@_withheld.register
def _(result: Result) -> Result:
    allowed = result.report is not None and result.report.rows
    if allowed or not result.holds_people or isinstance(result, Withheld):
        return result
    own = {each.name: getattr(result, each.name) for each in fields(Result)}
    own |= {
        "scores": tuple(map(withheld, result.scores)),
        "searches": tuple(map(withheld, result.searches)),
        "failures": _failures(result.failures),
        "notes": withheld_notes(result.notes),
        "data": None if result.data is None else _data(result.data),
        "outcomes": tuple(map(withheld, result.outcomes)),
        "proxies": tuple(map(withheld, result.proxies)),
    }
    return Withheld(**own, whole=result)


@_withheld.register
def _(search: SearchResult) -> SearchResult:
    return replace(
        search,
        minimal_sets=tuple(map(withheld, search.minimal_sets)),
        notes=_notes_of(search, search.notes),
    )


@_withheld.register
def _(score: Score) -> Score:
    return replace(score, notes=_notes_of(score, score.notes))


@_withheld.register
def _(score: CausalScore) -> CausalScore:
    if score.population == "inputs":
        return score
    made_up = tuple(each for each in score.witnesses if each.generated)
    return replace(
        score,
        witnesses=made_up or _differences(score.witnesses),
        regions=tuple(map(_region, score.regions)),
        notes=withheld_notes(score.notes),
    )


@_withheld.register
def _(score: GroupScore) -> GroupScore:
    if score.population == "inputs":
        return score
    groups = tuple(map(_unnamed, score.groups))
    named = [each.values for each in groups]
    notes = (_among(note, named) for note in withheld_notes(score.notes))
    return replace(score, groups=groups, notes=tuple(notes))


@_withheld.register
def _(outcomes: Outcomes) -> Outcomes:
    groups = tuple(map(_unnamed, outcomes.groups))
    named = [each.values for each in groups]
    return replace(
        outcomes,
        groups=groups,
        gaps=tuple(_gap(each, named) for each in outcomes.gaps),
        favourable=_common(outcomes.favourable, outcomes.rare),
        unfavourable=_common(outcomes.unfavourable, outcomes.rare),
        rare=(),
    )


@_withheld.register
def _(proxy: Proxy) -> Proxy:
    settings = (replace(each, value=_short(each.value)) for each in proxy.settings)
    return replace(proxy, settings=tuple(settings))


@_withheld.register
def _(replay: Replay) -> Replay:
    if not replay.personal or replay.rows:
        return replay
    return replace(
        replay,
        examples=tuple(map(_test, replay.examples)),
        failures=_failures(replay.failures),
        unknown_rows=_counted(replay.unknown_rows),
    )


def _unnamed(group: AnyGroup) -> AnyGroup:
    """The group, without its values where it is one of fewer than SHARED people."""
    return replace(group, values={}) if 0 < (group.people or 0) < SHARED else group


def _among(note: Note, named: Sequence[Values]) -> Note:
    """The note on groups, of which only those are named that are named elsewhere."""
    if note.code not in ("no-decision-rates", "no-decision-apart"):
        return note
    groups = [
        each if each["values"] in named else {**each, "values": {}}
        for each in note.values["groups"]
    ]
    return replace(note, values={**note.values, "groups": groups})


def _gap(gap: Gap, named: Sequence[Values]) -> Gap:
    """The gap, whose groups have values only where they are named elsewhere."""
    lowest, highest = (
        each if each is None or each in named else {} for each in (gap.lowest, gap.highest)
    )
    return replace(gap, lowest=lowest, highest=highest)


def _common(values: tuple[Value, ...], rare: tuple[Value, ...]) -> tuple[Value, ...]:
    """The outcomes, and how many of them are too rare to be named."""
    common = tuple(each for each in values if each not in rare)
    number = len(values) - len(common)
    return (*common, count_of(number, "rare outcome")) if number else common


def _short(value: Value) -> Value:
    """A value that everybody is given in turn: a long number is somebody's, and is rounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return _rounded(str(value)) if math.isfinite(value) else value


def _differences(pairs: Iterable[Witness]) -> tuple[Witness, ...]:
    """What pairs differ in, and their outputs; each once."""
    found: dict[str, Witness] = {}
    for each in pairs:
        first, second = _rough(each.inputs, each.differs_in, each.rare)
        pair = Witness((first, second), each.outputs, rows=each.rows or (True, True))
        found.setdefault(f"{first} {second} {each.outputs}", pair)
    return tuple(found.values())


def _region(region: Region) -> Region:
    """The region; the ends of its ranges are somebody's numbers, and are rounded."""
    return replace(region, conditions=tuple(_END.sub(_end, each) for each in region.conditions))


def _end(found: re.Match[str]) -> str:
    return _rounded(found[0])


def _rounded(text: str) -> str:
    """A number as it is written, if it has two digits; else about how much it is."""
    number = float(text)
    short = float(f"{number:.2g}")
    return text if short == number else f"about {short:,.10g}"


def _test(test: ReplayedTest) -> ReplayedTest:
    names = [name for name in test.inputs[0] if test.inputs[0][name] != test.inputs[1][name]]
    return replace(test, inputs=_rough(test.inputs, names or test.against, test.rare))


def _rough(
    inputs: tuple[Values, Values], names: Iterable[str], rare: Rare | None
) -> tuple[Values, Values]:
    """These values of two inputs; of numbers, no more than their first digit, and no rare text."""
    shown: tuple[Values, Values] = ({}, {})
    for name in names:
        both = [each[name] for each in inputs]
        texts = [_about(each) for each in both]
        hidden = iter(RARE)
        for place, own in enumerate(rare or ()):
            if name in own and isinstance(both[place], str):
                texts[place] = next(hidden)
        if texts[0] == texts[1] and both[0] != both[1]:
            texts = ["lower", "higher"] if both[0] < both[1] else ["higher", "lower"]
        shown[0][name], shown[1][name] = texts
    return shown


def _about(value: Any) -> Any:
    """A value that many have; of a long number, its first digit and how large it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) < SHORT and value == int(value):
        return value
    return f"about {float(f'{value:.0e}'):,.10g}"


def _failures(failures: Mapping[str, Any]) -> dict[str, Any]:
    """Failures without their inputs and what they say, which may hold the inputs' values."""
    return {
        kind: {"count": each["count"], "message": "", "input": {}}
        for kind, each in failures.items()
    }


def _data(data: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"kept": [{**each, "values": []} for each in data["kept"]]} if "kept" in data else {}
    reasons = {"reasons": list(map(_reason, data["reasons"]))} if "reasons" in data else {}
    return {**data, **kept, **reasons}


def _reason(reason: Mapping[str, Any]) -> dict[str, Any]:
    """Why rows do not fit: their places alone."""
    return {**reason, "examples": [{**each, "value": None} for each in reason["examples"]]}


def _notes_of(part: Score | SearchResult, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    return notes if part.population == "inputs" else withheld_notes(notes)


def _note(note: Note) -> Note:
    """The note without what belongs to one person."""
    hide = _HIDDEN.get(note.code)
    return note if hide is None else replace(note, values={**note.values, **hide(note.values)})


_HIDDEN: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "rows-left-out": lambda values: {"reasons": list(map(_reason, values["reasons"]))},
    "values-kept": lambda values: {"values": []},
    "inconsistent-example": lambda values: {"input": {}},
    "no-such-value": lambda values: {"value": None},
}


def _counted(reasons: Mapping[Note, int]) -> dict[Note, int]:
    counts: dict[Note, int] = {}
    for note, rows in reasons.items():
        counts[_note(note)] = counts.get(_note(note), 0) + rows
    return counts
