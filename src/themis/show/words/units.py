"""Numbers of scores in their units: per cent, points, or those of the output."""

from __future__ import annotations

from themis.results.model import CheckResult, GroupScore, Score, SearchResult
from themis.show.words.values import exact_figure, figure, percent, points


def in_units(share: float, of: Score | CheckResult | SearchResult) -> str:
    """A share in the units of what it is of: `12.9 %`, `5.5 points`, `1,250` between means."""
    if of.measure == "causal" or not isinstance(of, GroupScore | CheckResult | SearchResult):
        return percent(share)
    return apart_text(of, share)


def rate_text(score: GroupScore, share: float) -> str:
    """A group's figure: a rate in per cent, or a mean in the output's own units."""
    if score.statistic == "rate" or score.scale is None:
        return percent(share)
    low, high = score.scale
    return figure(low + share * (high - low))


def apart_text(of: GroupScore | CheckResult | SearchResult, difference: float) -> str:
    """A difference of two groups: in points, or in the output's own units."""
    if of.statistic == "rate" or of.scale is None:
        return points(difference)
    return figure(difference * (of.scale[1] - of.scale[0]))


def ends_of(scale: tuple[float, float]) -> str:
    """A scale: `0 to 1,300,000`."""
    return f"{exact_figure(scale[0])} to {exact_figure(scale[1])}"
