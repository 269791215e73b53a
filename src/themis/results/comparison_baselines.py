"""Is what a check found new? Verdicts beside an earlier result, the baseline; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from themis.results.comparison import Bounds, Quantity, known
from themis.results.comparison_differences import has_risen
from themis.results.comparison_result_contrasts import rule_contrasts
from themis.results.model import CheckResult, Result

State = Literal["new", "known"]


def beside_baseline(result: Result, baseline: Result) -> Result:
    """The result with each finding marked as new or as known from the baseline.

    Known is what the baseline measured to its end and what is not surely larger now. Of what the
    baseline says nothing about, everything is new.
    """
    checks = tuple(_beside(each, result, baseline) for each in result.checks)
    notes = tuple(f"not as in the baseline: {each}" for each in rule_contrasts(baseline, result))
    return replace(result, checks=checks, notes=(*result.notes, *notes))


def _beside(check: CheckResult, result: Result, baseline: Result) -> CheckResult:
    if check.verdict in ("holds", "accepted"):
        return check
    marks = [
        (quantity, *_state(known(baseline, quantity), known(result, quantity)))
        for quantity in _findings(check, result)
    ]
    if not marks or (check.verdict != "violated" and not _is_settled(check, result)):
        return check
    several = len(marks) > 1
    reasons = [f"{','.join(each.against) + ': ' if several else ''}{why}" for each, _, why in marks]
    state: State = "new" if any(each == "new" for _, each, _ in marks) else "known"
    return replace(check, baseline=state, reason="; ".join(filter(None, [check.reason, *reasons])))


def _state(before: Bounds | None, after: Bounds | None) -> tuple[State, str]:
    if before is None or after is None or not before.certified:
        return "new", "the baseline says nothing about it"
    if has_risen(before, after):
        return "new", f"more than in the baseline, where it was at most {before.high:.3g}"
    if not before.conclusive:
        return "new", "the baseline did not measure it to the end"
    return "known", f"not surely more than in the baseline ({before.low:.3g} to {before.high:.3g})"


def _findings(check: CheckResult, result: Result) -> Iterator[Quantity]:
    """The sets on which a verdict rests: of a search, those that are not accepted."""
    if check.against is not None:
        yield _quantity(check, check.against, result)
        return
    accepted = {each.against for each in check.accepted}
    for names in check.sets:
        quantity = _quantity(check, names, result)
        bounds = known(result, quantity)
        surely = bounds is not None and bounds.low > check.max_score
        if names not in accepted and (surely or check.verdict != "violated"):
            yield quantity


def _quantity(check: CheckResult, names: tuple[str, ...], result: Result) -> Quantity:
    """The score of a set as a check means it."""
    for score in result.scores:
        own = (score.measure, score.against, score.output)
        if own == (check.measure, names, check.output):
            return Quantity.of(score)
    return Quantity(check.measure, tuple(sorted(names)), check.output)


def _is_settled(check: CheckResult, result: Result) -> bool:
    """Whether all that could be learned for a check was: no budget ended, no set is open."""
    if result.stopped != "done":
        return False
    own = (check.measure, check.output)
    searches = [each for each in result.searches if (each.measure, each.output) == own]
    return not check.search or all(each.conclusive for each in searches)
