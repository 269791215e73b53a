"""What may be shown of people: nobody's row, unless `[report] rows` or `--rows` allows it.

Pages, reports, terminals and notebooks show what `withheld` gives, so that no format can forget it.
The inputs of generated pairs are shown whole. Where there are none, a pair of people is left with
what differs. What fewer than SHARED people have is not named: neither a group, nor a value, nor an
output or a known outcome, nor is the mean of so few shown, or what would tell it. No change is
shown that was counted on so few. What the file lists is named.
Files to work on (a saved result, a suite, the cache) hold rows, and say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any, TypeVar

from themis.errors import count_of
from themis.inputs.characteristics import Value
from themis.inputs.columns import SHARED
from themis.results.model import (
    ROUNDING,
    CausalScore,
    CheckResult,
    GroupScore,
    Result,
    Score,
    SearchResult,
    is_by_degrees,
)
from themis.results.notes import Note
from themis.results.outcomes import (
    Category,
    CategoryTable,
    ErrorGroup,
    Errors,
    Gap,
    Observed,
    OutcomeGroup,
    Outcomes,
    Proxy,
    Setting,
    Tenth,
)
from themis.results.parts import (
    RARE_OUTPUT,
    Group,
    Inventory,
    Region,
    TestedSet,
    Unnamed,
    Values,
    Witness,
    about,
    kept_apart,
    rough,
    rounded,
)

Thing = TypeVar("Thing")
Part = TypeVar("Part", bound=Result | Score)
AnyGroup = TypeVar("AnyGroup", Group, OutcomeGroup)

_END = re.compile(
    r"(?<=[≤≥=] )-?\d+(?:\.\d+)?$|^-?\d+(?:\.\d+)?(?= ≤)"
)  # of a range, in a condition
ENDS = ("score", "low", "high", "flip_rate")
NO_ENDS: dict[str, Any] = dict.fromkeys(("score", "low", "high"))  # what is not shown is not there
NUMBERS = {"score", "low", "high", "floor", "explains", "error"}  # of notes on scores


def withheld(thing: Thing) -> Thing:
    """The result, score, search or replay, as documents may show it."""
    shown: Thing = withholding(thing)
    return shown


def without_rows(result: Result) -> Result:
    """The same, to be stored: of pairs of people no more is left than a few values."""
    shown, size = withheld(result), len(result.schema["inputs"])

    def with_whole_pairs(score: Score) -> Score:
        if not isinstance(score, CausalScore):
            return score
        pairs = tuple(each for each in score.witnesses if len(each.inputs[0]) == size)
        return replace(score, witnesses=pairs)

    return replace(shown, scores=tuple(map(with_whole_pairs, shown.scores)))


def whole_of(part: Part) -> Part:
    """The result or score with its exact numbers, to decide with and not to show."""
    whole: Part = part.whole or part
    return whole


def hidden_groups(score: GroupScore) -> tuple[Group, ...]:
    """The groups whose means are not shown."""
    shown = set(map(repr, score.groups))
    return tuple(each for each in whole_of(score).groups if repr(each) not in shown)


def withheld_output(output: Any, shared: Collection[Value]) -> Any:
    """An output of a row, or several: without a text, or the digits, that few get."""
    if isinstance(output, list):
        return [withheld_output(each, shared) for each in output]
    if isinstance(output, dict):
        return {name: withheld_output(each, shared) for name, each in output.items()}
    if output is None or output in shared:
        return output
    return RARE_OUTPUT[0] if isinstance(output, str) else about(output)


def withheld_check(check: CheckResult, scores: Iterable[Score]) -> CheckResult:
    """A verdict on some of these scores, without what tells the mean of few people.

    It was decided with the exact numbers, and stays.
    """
    sets = check.sets if check.against is None else (check.against,)
    about = (check.measure, check.output)
    own = [e for e in scores if (e.measure, e.output) == about and e.against in sets]
    reasons = withheld(check.reasons)
    if not any(map(tells_of_few, own)):
        ends = _ends(check, average=any(map(_is_average_of_people, own)))
        return replace(check, reasons=reasons, **ends)
    reasons = (*map(_untold, reasons), Note.of("few-people"))
    return replace(check, score=None, low=None, high=None, reasons=reasons)


def tells_of_few(score: Score) -> bool:
    """Whether the score would tell the mean of fewer than SHARED people."""
    return not is_told(withheld(score))


def is_told(shown: Score) -> bool:
    """Whether the numbers of a score may be shown: a hidden one is None."""
    return shown.low is not None


def by_size(score: Score) -> tuple[bool, float]:
    """A key by which scores are sorted, the largest first; last those whose size is not shown."""
    return (False, -score.low) if is_told(score) else (True, 0.0)


def width(score: Score) -> float:
    """How wide the interval of a score is; of one that is not shown, as wide as can be."""
    return score.high - score.low if is_told(score) else math.inf


@singledispatch
def withholding(thing: Any) -> Any:
    """What may be shown of each kind of thing; of most, all. Modules add their own kinds."""
    return thing


@withholding.register
def _(parts: tuple) -> tuple[Any, ...]:  # type: ignore[type-arg]
    return tuple(map(withheld, parts))


@withholding.register
def _(result: Result) -> Result:
    allowed = result.report is not None and result.report.rows
    if allowed or not result.holds_people or result.whole is not None:
        return result
    shown = {each.name: withheld(getattr(result, each.name)) for each in fields(result)}
    scores = [*result.scores, *(each for one in result.searches for each in one.minimal_sets)]
    shown |= {
        "checks": tuple(withheld_check(each, scores) for each in result.checks),
        "failures": withheld_failures(result.failures),
        "data": None if result.data is None else _data(result.data),
        "whole": result,
    }
    return replace(result, **shown)


@withholding.register
def _(search: SearchResult) -> SearchResult:
    sets, notes = withheld(search.minimal_sets), _notes_of(search, search.notes)
    shown = replace(search, minimal_sets=sets, notes=notes)
    if search.population == "inputs" or search.statistic != "mean":
        return shown
    return replace(shown, tested=tuple(map(_tested, search.tested)))


@withholding.register
def _(score: Score) -> Score:
    return replace(score, notes=_notes_of(score, score.notes))


@withholding.register
def _(score: CausalScore) -> CausalScore:
    if score.population == "inputs" or score.whole is not None:
        return score
    pairs = tuple(map(_without_rare_outputs, score.witnesses))
    made_up = tuple(each for each in pairs if each.generated)
    shown = replace(
        score,
        witnesses=made_up or _differences(pairs),
        regions=withheld(tuple(each for each in score.regions if _of_many(each.residents))),
        joint=score.joint if score.joint and _of_many(score.joint.inputs) else None,
        crossing=score.crossing if score.crossing and _of_many(score.crossing.inputs) else None,
        notes=withheld(score.notes),
        **_ends(score, average=_is_average_of_people(score)),
    )
    if score.of_few:
        hidden = ("flip_rate", "placebo", "joint", "crossing")
        numbers = {**NO_ENDS, **dict.fromkeys(hidden), "direction": ()}
        return replace(shown, **numbers, notes=tuple(map(_untold, shown.notes)), whole=score)
    common = tuple(each for each in score.direction if _of_many(each.contexts))
    return replace(shown, direction=common, whole=score) if common != score.direction else shown


@withholding.register
def _(score: GroupScore) -> GroupScore:
    if score.population == "inputs" or score.whole is not None:
        return score
    if score.statistic == "mean":
        return _fewer_groups(replace(score, notes=withheld(score.notes)))
    groups = tuple(map(_unnamed, score.groups))
    named = [each.values for each in groups]
    notes = (_among(note, named) for note in withheld(score.notes))
    return replace(score, groups=groups, notes=tuple(notes))


@withholding.register
def _(outcomes: Outcomes) -> Outcomes:
    groups = tuple(map(_unnamed, outcomes.groups))
    named = [each.values for each in groups]
    return replace(
        outcomes,
        groups=groups,
        gaps=tuple(_gap(each, named) for each in outcomes.gaps),
        favourable=_common(outcomes.favourable, outcomes.rare, "outcome"),
        unfavourable=_common(outcomes.unfavourable, outcomes.rare, "outcome"),
        rare=(),
    )


@withholding.register
def _(errors: Errors) -> Errors:
    groups = (
        each if _of_many(each.people) else ErrorGroup({}, each.people, None, None, ())
        for each in errors.groups
    )
    shown = tuple(replace(each, tenths=withheld(each.tenths)) for each in groups)
    return replace(errors, groups=shown)


@withholding.register
def _(tenth: Tenth) -> Tenth:
    return tenth if _of_many(tenth.people) else replace(tenth, output=None, known=None)


@withholding.register
def _(observed: Observed) -> Observed:
    return replace(observed, tables=withheld(observed.tables))


@withholding.register
def _(proxy: Proxy) -> Proxy:
    return replace(proxy, settings=withheld(proxy.settings), redrawn=withheld(proxy.redrawn))


@withholding.register
def _(inventory: Inventory) -> Inventory:
    counts = tuple(each for each in inventory.counts if not each.rare)
    return replace(inventory, counts=counts, lowest=None, mean=None, highest=None)


@withholding.register
def _(table: CategoryTable) -> CategoryTable:
    """The table, with the categories of fewer than SHARED people as one that has no name."""
    few = [each for each in table.categories if _is_of_few(each)]
    kept = tuple(each for each in table.categories if not _is_of_few(each))
    return replace(table, categories=(*kept, _together(few))) if few else table


def _together(few: Sequence[Category]) -> Category:
    """Several categories as one: so margins still add up."""
    return Category(
        values={},
        inputs=sum(each.inputs for each in few),
        favourable=sum(each.favourable for each in few),
        undecided=sum(each.undecided for each in few),
        share=sum(each.share for each in few),
        rate=None,
        few=True,
        people=sum(each.people or 0 for each in few),
        together=len(few),
    )


def _of_many(people: int | None) -> bool:
    """Whether what was counted on so many names nobody; None: it is a share, not a count."""
    return people is None or people >= SHARED


def _unnamed(group: AnyGroup) -> AnyGroup:
    """The group, without its values where it is one of fewer than SHARED people."""
    return replace(group, values={}) if _is_of_few(group) else group


def _is_of_few(group: Group | OutcomeGroup | Category) -> bool:
    return 0 < (group.people or 0) < SHARED


def _of_many_answers(group: Group) -> bool:
    """Whether a mean is of so many, or of nobody, that it tells nobody's number."""
    return not group.people or _of_many(group.people if group.answers is None else group.answers)


def _fewer_groups(score: GroupScore) -> GroupScore:
    """The score with those means alone that may be shown, and its numbers if they are of these."""
    groups = tuple(filter(_of_many_answers, score.groups))
    if len(groups) == len(score.groups):
        return score
    named = [each.values for each in score.groups if not _is_of_few(each)]
    notes = tuple(_among(each, named) for each in score.notes)
    numbers = {} if _are_of(groups, score) else NO_ENDS
    return replace(score, groups=groups, notes=notes, whole=score, **numbers)


def _are_of(groups: Sequence[Group], score: GroupScore) -> bool:
    """Whether the numbers of a score are those of these groups alone; all intervals hold."""
    if len(groups) < 2:
        return False
    low, high, rates = zip(*((e.low, e.high, e.rate) for e in groups), strict=True)
    least, most = max(0.0, max(low) - min(high)), max(high) - min(low)
    own = (max(rates) - min(rates), least, 1.0 if score.lower_bound else most)
    told = (score.score, score.low, score.high)
    return all(abs(one - other) < ROUNDING for one, other in zip(own, told, strict=True))


def _is_average_of_people(score: Score) -> bool:
    by_degrees = isinstance(score, CausalScore) and is_by_degrees(score)
    return by_degrees and score.population != "inputs"


def _ends(thing: CausalScore | CheckResult, *, average: bool) -> dict[str, Any]:
    """Its numbers; those of an average of people with the digits that a reader needs."""
    ends = {each: getattr(thing, each) for each in ENDS if hasattr(thing, each)}
    known = {name: each for name, each in ends.items() if average and each is not None}
    return ends | {name: few_digits(each) for name, each in known.items()}


def few_digits(number: float) -> float:
    """A number with four digits: more of an average could tell what single people get."""
    return float(f"{number:.4g}")


def _untold(note: Note) -> Note:
    """The note without the numbers that would tell the mean of few people."""
    if not NUMBERS & note.values.keys():
        return note
    kept = {name: each for name, each in note.values.items() if name not in NUMBERS}
    return replace(note, values={**kept, "untold": True})


def _tested(tested: TestedSet) -> TestedSet:
    """A set that a search of means looked at; whose means these are is not known."""
    return replace(tested, reasons=tuple(map(_untold, tested.reasons)), estimate=None)


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


def _common(values: Sequence[Value], rare: Sequence[Value], noun: str) -> tuple[Value, ...]:
    """The outcomes or outputs, and how many of them are too rare to be named."""
    common = tuple(each for each in values if each not in rare)
    number = len(values) - len(common)
    return (*common, Unnamed(count_of(number, f"rare {noun}"))) if number else common


@withholding.register
def _(setting: Setting) -> Setting:
    """What becomes of people with one value; without numbers that would tell what few get."""
    few = setting.fewest is not None and setting.fewest < SHARED
    hidden: dict[str, Any] = dict.fromkeys(("difference", "low", "high", "before", "rate"))
    return replace(setting, value=_short(setting.value), **(hidden if few else {}))


def _short(value: Value) -> Value:
    """A value that everybody is given in turn: a long number is somebody's, and is rounded."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return rounded(str(value)) if math.isfinite(value) else value


def _differences(pairs: Iterable[Witness]) -> tuple[Witness, ...]:
    """What pairs differ in, and their outputs; each once."""
    found: dict[str, Witness] = {}
    for each in pairs:
        first, second = rough(each.inputs, each.differs_in, each.rare)
        pair = Witness((first, second), each.outputs, rows=each.rows or (True, True))
        found.setdefault(f"{first} {second} {each.outputs}", pair)
    return tuple(found.values())


def _without_rare_outputs(pair: Witness) -> Witness:
    """The pair, also one that nobody is: what it gets may be what hardly anybody gets."""
    if pair.rare_outputs is None:
        return pair
    outputs = kept_apart(pair.outputs, pair.rare_outputs, RARE_OUTPUT, exact=True)
    return replace(pair, outputs=outputs, rare_outputs=None)


@withholding.register
def _(region: Region) -> Region:
    """The ends of its ranges are somebody's numbers."""
    return replace(region, conditions=tuple(_rounded(region.conditions)))


def _rounded(conditions: Iterable[str]) -> list[str]:
    return [_END.sub(lambda found: rounded(found[0]), each) for each in conditions]


def withheld_failures(failures: Mapping[str, Any]) -> dict[str, Any]:
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
    return notes if part.population == "inputs" else withheld(notes)


@withholding.register
def _(note: Note) -> Note:
    """The note without what belongs to one person."""
    hide = _HIDDEN.get(note.code)
    if hide is None:
        return _untold(note) if note.values.get("few") is True else note
    values = {**note.values, **hide(note.values)}
    values.pop("rare", None)
    return replace(note, values=values)


def _outputs(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"outputs": list(_common(values["outputs"], values.get("rare", ()), "output"))}


def _two_outputs(values: Mapping[str, Any]) -> dict[str, Any]:
    rare = values.get("rare", ())
    first, second = values["outputs"]
    shown = kept_apart((first, second), (first in rare, second in rare), RARE_OUTPUT, exact=True)
    return {"input": {}, "outputs": list(shown)}


def _spellings(values: Mapping[str, Any]) -> dict[str, Any]:
    rare = values.get("rare", ())
    return {"texts": [texts for texts in values["texts"] if not any(t in rare for t in texts)]}


_HIDDEN: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "rows-left-out": lambda values: {"reasons": list(map(_reason, values["reasons"]))},
    "values-kept": lambda values: {"values": []},
    "inconsistent-example": _two_outputs,
    "no-favourable-output": _outputs,
    "undeclared-outputs": _outputs,
    "same-output": lambda values: {"output": None} if values.get("rare") else {},
    "merged-texts": _spellings,
    "no-such-value": lambda values: {"value": None},
    "inputs-fail": lambda values: {
        name: _rounded(each) for name, each in values.items() if name == "conditions"
    },
}
