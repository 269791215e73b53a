"""What changed significantly between two results? Intervals are compared; nothing is run.

A change is claimed only where the two intervals do not meet. Each holds except with its error
probability, so a claimed change is wrong with at most the sum of the two; all claims together with
at most the sum over all intervals that were compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from themis._version import __version__
from themis.results.comparison import Bounds, Quantity, found_sets, known, measured, total_error
from themis.results.comparison_result_contrasts import contrasts
from themis.results.model import Result
from themis.results.verdicts_search_facts import how_it_ended

ROUNDING = 1e-9  # a saved result has twelve digits

ScoreChange = Literal["risen", "fallen", "the same", "no significant change"]
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
    unlike: tuple[str, ...]  # what else differs: the subject, the schema, the seed, the settings
    open: tuple[str, ...]  # why something may have changed unseen
    confidence: float  # that every claimed change is one
    compared: bool = True  # whether anything was measured both before and after
    one_search: bool = False  # only one of the two results is of a search

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
            "open": list(self.open),
            "unlike": list(self.unlike),
            "scores": [_as_dict(each) for each in self.scores],
            "sets": [_as_dict(each) for each in self.sets],
        }


def compare(before: Result, after: Result, *, tolerance: float = 0.0) -> Differences:
    """What changed from one result to another; rises of at most `tolerance` do not count."""
    return Differences(
        scores=tuple(_score_differences(before, after, tolerance)),
        sets=tuple(_set_differences(before, after, tolerance)),
        unlike=tuple(contrasts(before, after)),
        open=tuple(_reasons_to_doubt(before, after)),
        confidence=max(1.0 - total_error(before) - total_error(after), 0.0),
        compared=_says_anything(before) and _says_anything(after),
        one_search=bool(before.searches) != bool(after.searches),
    )


def has_risen(before: Bounds, after: Bounds, tolerance: float = 0.0) -> bool:
    """Whether a score is surely larger than before, by more than the tolerance."""
    if not (before.certified and after.certified):
        return False
    gap = after.low - before.high - tolerance
    return gap > ROUNDING or (gap >= -ROUNDING and (after.above_low or before.below_high))


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
    if has_risen(after, before, tolerance):
        return "fallen"
    exact = before.low == before.high and after.low == after.high
    return "the same" if exact and tolerance == 0.0 else "no significant change"


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
            if first is not None and second is not None and has_risen(second, first, tolerance):
                change = "gone"
            yield SetDifference(quantity, change, first, second, within)


def _contained(quantity: Quantity, found: tuple[Quantity, ...]) -> tuple[str, ...] | None:
    """A smaller found set within this one, which implies that this one is above as well."""
    return next((each.against for each in found if quantity.contains(each)), None)


def _reasons_to_doubt(before: Result, after: Result) -> Iterator[str]:
    for when, result in (("before", before), ("after", after)):
        if result.stopped != "done":
            yield f"{when}: {how_it_ended(result.stopped)}"
        if any(score.stopped == "noise" for score in result.scores):
            yield f"{when}: {how_it_ended('noise')}"
        for search in result.searches:
            if search.undecided:
                number = len(search.undecided)
                yield f"{when}: {number:,} of {search.sets_total:,} sets could not be decided"
        rules = [each.stopping for each in result.scores]
        if "paper" in [*rules, *(each.stopping for each in result.searches)]:
            yield f"{when}: the paper's stopping rule gives intervals that need not hold"
    yield from _not_compared(before, after)


def _not_compared(before: Result, after: Result) -> Iterator[str]:
    for quantity in measured(before):
        if known(after, quantity) is None:
            yield f"{quantity.name} was measured before and not after"
    for quantity in measured(after):
        if known(before, quantity) is None:
            yield f"{quantity.name} was measured after and not before"
    searched = [{each.measure for each in result.searches} for result in (before, after)]
    for measure in sorted(searched[0] ^ searched[1]):
        when, other = ("before", "after") if measure in searched[0] else ("after", "before")
        yield f"{measure} scores were searched {when} and not {other}"
    for when, result in (("before", before), ("after", after)):
        if not _says_anything(result):
            yield f"{when}: nothing was measured"


def _says_anything(result: Result) -> bool:
    return bool(measured(result) or result.searches)
