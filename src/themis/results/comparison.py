"""What two results show together: scores that changed, what else differs, what is new.

Intervals are compared; nothing is run. The ends of a score come from scores and searches alike.

A change is claimed only where the two intervals do not meet. Each holds except with its error
probability, so a reported change has at most the sum of the two as its chance of being false; all
together have at most the sum over all intervals that were compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from themis._version import __version__
from themis.results.finding import (
    Bounds,
    Quantity,
    bounds_of,
    found_sets,
    has_risen,
    known,
    may_have_risen,
    measured,
    nobody_favoured,
    total_error,
    was_searched,
)
from themis.results.model import ROUNDING, CheckResult, Result, Score, SearchResult
from themis.results.notes import Ending, Note, plain
from themis.results.parts import exceeds
from themis.results.verdicts import undecided_note
from themis.results.withheld import few_digits, withholding
from themis.settings import Stopping


def contrasts(before: Result, after: Result) -> Iterator[Note]:
    """One note for each circumstance that is not the same, what matters most first."""
    yield from rule_contrasts(before, after)
    first, second = (each.subject for each in (before, after))
    if first.get("kind") != second.get("kind"):
        yield from _differs("kind", str(first.get("kind")), str(second.get("kind")))
    elif first.get("fingerprint") != second.get("fingerprint"):
        yield Note.of("circumstance-differs", what="program")
    yield from _differs("seed", before.seed, after.seed)


def rule_contrasts(before: Result, after: Result) -> Iterator[Note]:
    """What was measured otherwise, whatever the subject: the schema, the rows, the settings."""
    yield from _schema(before.schema, after.schema)
    if (before.data or None) != (after.data or None):
        yield Note.of("circumstance-differs", what="rows")
    for what, name in (("scale", "scale"), ("favourable", "favours")):
        first, second = (_meanings(result, name) for result in (before, after))
        for output in (each for each in first if each in second):
            yield from _differs(what, first[output], second[output], output=output)
    for name in ("confidence", "error", "stopping"):
        if name != "error" or not (before.checks or after.checks):  # which choose it themselves
            values = [_values(name, result) for result in (before, after)]
            yield from _differs(name, *values) if all(values) else ()
    for earlier in before.searches:
        for later in (each for each in after.searches if each.measure == earlier.measure):
            of = {"measure": later.measure}
            yield from _differs("threshold", earlier.threshold, later.threshold, **of)
            if set(earlier.among) != set(later.among):
                yield Note.of("circumstance-differs", what="among", **of)
            yield from _differs("max-size", earlier.max_size, later.max_size, **of)


def _differs(what: str, before: Any, after: Any, **of: Any) -> Iterator[Note]:
    if before != after:
        yield Note.of("circumstance-differs", what=what, before=before, after=after, **of)


def _meanings(result: Result, name: str) -> dict[str | None, Any]:
    """What the scale of each output is, or what is favourable in it, where that is known."""
    parts: tuple[Score | SearchResult, ...] = (*result.scores, *result.searches)
    return {e.output: own for e in parts if (own := getattr(e, name, None)) is not None}


def _schema(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Note]:
    first, second = before.get("inputs", {}), after.get("inputs", {})
    for code, names in (
        ("characteristic-removed", [name for name in first if name not in second]),
        ("characteristic-added", [name for name in second if name not in first]),
        ("characteristic-changed", [n for n in first if n in second and first[n] != second[n]]),
    ):
        yield from (Note.of(code, name=name) for name in names)
    if before.get("constraints", {}) != after.get("constraints", {}):
        yield Note.of("circumstance-differs", what="constraints")


def _values(name: str, result: Result) -> list[Any]:
    parts: list[Any] = [*result.scores, *result.searches]
    return sorted({getattr(each, name) for each in parts})


ScoreChange = Literal[
    "risen", "risen, tolerated", "fallen", "the same", "no significant change", "not shown"
]
UNSEEN = ("the same", "no significant change", "risen, tolerated")  # a larger rise may be
SetChange = Literal[
    "new", "possibly new", "gone", "possibly gone", "already implied", "still implied"
]
Verdict = Literal["new discrimination", "nothing new", "inconclusive"]


@dataclass(frozen=True)
class ScoreDifference:
    """One score before and after."""

    quantity: Quantity
    change: ScoreChange
    before: Bounds
    after: Bounds

    @property
    def error(self) -> float:
        """The largest probability that a claimed change is none."""
        return min(self.before.error + self.after.error, 1.0)


@dataclass(frozen=True)
class SetDifference:
    """A minimal set that only one of two results found."""

    quantity: Quantity
    change: SetChange
    before: Bounds | None  # None: nothing is known
    after: Bounds | None
    within: tuple[str, ...] | None = None  # a set in it that the other search found


@dataclass(frozen=True)
class Differences:
    """All that changed, what speaks against comparing, and how sure it is."""

    scores: tuple[ScoreDifference, ...]
    sets: tuple[SetDifference, ...]
    unlike: tuple[Note, ...]  # what else differs: the subject, the schema, the seed, the settings
    open: tuple[Note, ...]  # why something may have changed unseen
    confidence: float  # that every claimed change is one
    compared: bool = True  # whether anything was measured both before and after
    one_search: bool = False  # only one of the two results is of a search
    rows: bool = False  # both results allow documents to show rows of people

    @property
    def verdict(self) -> Verdict:
        """New discrimination, if that is certain; else whether anything could hide some."""
        risen = any(each.change == "risen" for each in self.scores)
        if risen or any(each.change == "new" for each in self.sets):
            return "new discrimination"
        return "inconclusive" if self.open else "nothing new"

    def to_dict(self) -> dict[str, Any]:
        """The differences as JSON."""
        return {
            "themis": __version__,
            "command": "diff",
            "verdict": self.verdict,
            "confidence": round(self.confidence, 12),
            "open": plain(self.open),
            "unlike": plain(self.unlike),
            "scores": [_as_dict(each) for each in self.scores],
            "sets": [_as_dict(each) for each in self.sets],
        }


def compare(before: Result, after: Result, *, tolerance: float = 0.0) -> Differences:
    """What changed from one result to another; rises of at most `tolerance` do not count."""
    return Differences(
        scores=tuple(_score_differences(before, after, tolerance)),
        sets=tuple(_set_differences(before, after, tolerance)),
        unlike=tuple(contrasts(before, after)),
        open=tuple(_reasons_to_doubt(before, after, tolerance)),
        confidence=max(1.0 - total_error(before) - total_error(after), 0.0),
        compared=_says_anything(before) and _says_anything(after),
        one_search=bool(before.searches) != bool(after.searches),
        rows=all(each.report is not None and each.report.rows for each in (before, after)),
    )


@withholding.register
def _(found: Differences) -> Differences:
    """The differences, which exact numbers decided, without those that tell of few people."""
    if found.rows:
        return found
    scores, sets = map(_shown_score, found.scores), map(_shown_set, found.sets)
    return replace(found, scores=tuple(scores), sets=tuple(sets))


def _shown_score(each: ScoreDifference) -> ScoreDifference:
    """The score; beside a number that is shown, "the same" would tell the one that is not.

    That it has risen is the verdict, which stays.
    """
    before, after = (_shown(e, each.quantity) for e in (each.before, each.after))
    hides = before.told != after.told and each.change != "risen"
    return replace(each, change="not shown" if hides else each.change, before=before, after=after)


def _shown(bounds: Bounds, quantity: Quantity) -> Bounds:
    """The ends, of an average of people with few digits."""
    shown = bounds.shown
    if not quantity.is_average_of_people or not shown.told:
        return shown
    score = None if shown.score is None else few_digits(shown.score)
    return replace(shown, low=few_digits(shown.low), high=few_digits(shown.high), score=score)


def _shown_set(each: SetDifference) -> SetDifference:
    before, after = (
        e if e is None else _shown(e, each.quantity) for e in (each.before, each.after)
    )
    return replace(each, before=before, after=after)


def _as_dict(each: ScoreDifference | SetDifference) -> dict[str, Any]:
    plain = Quantity(each.quantity.measure, each.quantity.against)
    named = asdict(each.quantity).items()
    more = {name: value for name, value in named if value != getattr(plain, name)}
    return {
        "measure": each.quantity.measure,
        "against": list(each.quantity.against),
        **more,
        "change": each.change,
        "before": None if each.before is None else _ends(each.before),
        "after": None if each.after is None else _ends(each.after),
    }


def _ends(bounds: Bounds) -> dict[str, Any]:
    return {
        "score": bounds.score,
        "low": bounds.low,
        "high": bounds.high,
        "confidence": round(1.0 - bounds.error, 12),
    }


def _score_differences(
    before: Result, after: Result, tolerance: float
) -> Iterator[ScoreDifference]:
    earlier = set(measured(before))
    for quantity in measured(after):
        first, second = known(before, quantity), known(after, quantity)
        if quantity in earlier and first is not None and second is not None:
            change = _score_change(first, second, tolerance)
            yield ScoreDifference(quantity, change, first, second)


def _score_change(before: Bounds, after: Bounds, tolerance: float) -> ScoreChange:
    if has_risen(before, after, tolerance):
        return "risen"
    if has_risen(after, before):
        return "fallen"
    if tolerance and has_risen(before, after):
        return "risen, tolerated"
    exact = before.low == before.high and after.low == after.high
    equal = exact and abs(after.low - before.low) <= ROUNDING
    return "the same" if equal else "no significant change"


def _set_differences(before: Result, after: Result, tolerance: float) -> Iterator[SetDifference]:
    earlier, later = found_sets(before), found_sets(after)
    for quantity in later:
        if quantity not in earlier:
            first, second = known(before, quantity), known(after, quantity)
            within = _contained(quantity, earlier)
            change: SetChange = "possibly new" if within is None else "already implied"
            if first is not None and second is not None and has_risen(first, second, tolerance):
                change = "new"
            yield SetDifference(quantity, change, first, second, within)
    for quantity in earlier:
        if quantity not in later:
            first, second = known(before, quantity), known(after, quantity)
            within = _contained(quantity, later)
            change = "possibly gone" if within is None else "still implied"
            if first is not None and second is not None and has_risen(second, first):
                change = "gone"
            yield SetDifference(quantity, change, first, second, within)


def _contained(quantity: Quantity, found: tuple[Quantity, ...]) -> tuple[str, ...] | None:
    """A smaller found set within this one, which implies that this one is above as well."""
    return next((each.against for each in found if quantity.contains(each)), None)


def _reasons_to_doubt(before: Result, after: Result, tolerance: float) -> Iterator[Note]:
    for when, result in (("before", before), ("after", after)):
        if result.stopped is not Ending.DONE:
            yield Note.of("run-ended", ended=result.stopped, when=when)
        if any(score.stopped is Ending.NOISE for score in result.scores):
            yield Note.of("run-ended", ended=Ending.NOISE, when=when)
        if any(score.samples and nobody_favoured(score) for score in result.scores):
            yield Note.of("never-favourable", when=when)
        for search in result.searches:
            if search.undecided:
                yield undecided_note(search, when)
        if Stopping.PAPER in result.rules:
            yield Note.of("paper-rule-used", when=when)
    for each in _score_differences(before, after, tolerance):
        certified = each.before.certified and each.after.certified
        unseen = certified and each.change in UNSEEN
        if unseen and may_have_risen(each.before, each.after, tolerance):
            yield Note.of("maybe-risen", name=each.quantity.name)
    yield from _not_compared(before, after)


def _not_compared(before: Result, after: Result) -> Iterator[Note]:
    for only, own, other in (("before", before, after), ("after", after, before)):
        for quantity in measured(own):
            if known(other, quantity) is None:
                yield Note.of("measured-once", name=quantity.name, only=only)
    searched = [{each.measure for each in result.searches} for result in (before, after)]
    for measure in sorted(searched[0] ^ searched[1]):
        only = "before" if measure in searched[0] else "after"
        yield Note.of("searched-once", measure=measure, only=only)
    for when, result in (("before", before), ("after", after)):
        if not _says_anything(result):
            yield Note.of("nothing-measured", when=when)


def _says_anything(result: Result) -> bool:
    return bool(measured(result) or result.searches)


State = Literal["new", "undecided", "known"]  # what counts most first
STATES: tuple[State, ...] = ("new", "undecided", "known")


def beside_baseline(result: Result, baseline: Result) -> Result:
    """The result with each finding marked as new, as known from the baseline, or as undecided.

    New is what is surely larger than the baseline says. Known is what the baseline measured to its
    end and what is not surely larger now. What the baseline says nothing certain about is undecided
    in it: it did not look, or noise or a budget left it open. What is too uncertain now, because
    executions failed, answers depend on chance or nothing favourable came, is none of these.
    """
    checks = tuple(_beside(each, result, baseline) for each in result.checks)
    unlike = rule_contrasts(baseline, result)
    notes = [Note.of(each.code, **each.values, when="baseline") for each in unlike]
    return replace(result, checks=checks, notes=(*result.notes, *notes))


def _beside(check: CheckResult, result: Result, baseline: Result) -> CheckResult:
    if check.verdict in ("holds", "accepted"):
        return check
    found = list(_findings(check, result))
    several = len(found) > 1
    marks = [_state(check, each, result, baseline, named=several) for each in found]
    if not marks or (check.verdict != "violated" and not _is_settled(check, result)):
        return check
    states = [state for state, _ in marks]
    worst = "new" if "new" in states else next((each for each in STATES if each in states), None)
    state = worst if worst == "new" or None not in states else None
    return replace(check, baseline=state, reasons=(*check.reasons, *(why for _, why in marks)))


def _state(
    check: CheckResult, quantity: Quantity, result: Result, baseline: Result, *, named: bool
) -> tuple[State | None, Note]:
    """Whether a finding is new, and why; it is named where there are several.

    None is what is too uncertain now to say that it is no more than in the baseline.
    """
    about = ",".join(quantity.against) if named else None
    same = next((each for each in baseline.checks if _is_same(each, check)), None)
    before, after = _bounds_in(baseline, same, quantity), _bounds_in(result, check, quantity)
    if before is None or after is None:
        code = "undecided-in-baseline" if was_searched(baseline, quantity) else "not-in-baseline"
        return "undecided", Note.of(code, about=about)
    few = before.few or None
    if has_risen(before, after):
        return "new", Note.of("above-baseline", high=before.high, few=few, about=about)
    if not (before.certified and before.conclusive):
        return "undecided", Note.of("baseline-unfinished", about=about)
    if may_have_risen(before, after):
        return None, Note.of("maybe-above-baseline", high=before.high, few=few, about=about)
    ends = {"low": before.low, "high": before.high}
    return "known", Note.of("not-above-baseline", **ends, few=few, about=about)


def _is_same(one: CheckResult, other: CheckResult) -> bool:
    """Whether two checks ask the same."""
    names = ("measure", "output", "search", "against", "max_score")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _bounds_in(result: Result, check: CheckResult | None, quantity: Quantity) -> Bounds | None:
    """The ends of a score: those that decided the check, where several checks measured it."""
    if check is not None:
        for score in result.scores:
            if Quantity.of(score) == quantity and check.rests_on(score):
                return bounds_of(result, score)
    return known(result, quantity)


def _findings(check: CheckResult, result: Result) -> Iterator[Quantity]:
    """The sets on which a verdict rests: of a search, those that are not accepted."""
    if check.against is not None:
        yield _quantity(check, check.against, result)
        return
    accepted = {each.against for each in check.accepted}
    for names in check.sets:
        quantity = _quantity(check, names, result)
        bounds = _bounds_in(result, check, quantity)
        surely = bounds is not None and exceeds(bounds.low, check.max_score)
        if names not in accepted and (surely or check.verdict != "violated"):
            yield quantity


def _quantity(check: CheckResult, names: tuple[str, ...], result: Result) -> Quantity:
    """The score of a set as a check means it."""
    about = (check.measure, names, check.output)
    scores = [e for e in result.scores if (e.measure, e.against, e.output) == about]
    for score in sorted(scores, key=check.rests_on, reverse=True):
        return Quantity.of(score)
    for search in result.searches:
        if (search.measure, search.output) == (check.measure, check.output):
            return Quantity.of(search, names)
    return Quantity(check.measure, tuple(sorted(names)), check.output)


def _is_settled(check: CheckResult, result: Result) -> bool:
    """Whether all that could be learned for a check was: no budget ended, no set is open."""
    if result.stopped is not Ending.DONE:
        return False
    own = (check.measure, check.output)
    searches = [each for each in result.searches if (each.measure, each.output) == own]
    return not check.search or all(each.conclusive for each in searches)
