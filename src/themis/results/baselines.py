"""Baselines: which findings of a check are new beside an earlier result, and which are not.

New is what was surely less before. What the baseline left open may have been as it is now, so that
it is called neither new nor known, and the check speaks for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from themis.results.comparison import rule_contrasts
from themis.results.model import CheckResult, Result
from themis.results.notes import Ending, Note
from themis.results.parts import exceeds
from themis.results.quantities import (
    Bounds,
    Quantity,
    bounds_of,
    has_risen,
    known,
    may_have_risen,
    was_searched,
)

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
    before, after = _bounds(baseline, same, quantity), _bounds(result, check, quantity)
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


def _bounds(result: Result, check: CheckResult | None, quantity: Quantity) -> Bounds | None:
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
        bounds = _bounds(result, check, quantity)
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
