"""Numbers of scores in their units: per cent, points, or those of the output."""

from __future__ import annotations

from typing import TypeAlias

from themis.results.model import CheckResult, GroupScore, Score, SearchResult
from themis.results.parts import Group
from themis.results.quantities import Quantity
from themis.show.words.values import exact_figure, figure, percent, points

Measured: TypeAlias = Score | CheckResult | SearchResult | Quantity


def in_units(share: float, of: Measured) -> str:
    """A share in the units of what it is of: `12.9 %`, `5.5 points`, `1,250` between means."""
    return percent(share) if of.measure == "causal" else apart_text(of, share)


def rate_text(score: GroupScore, share: float) -> str:
    """A group's figure: a rate in per cent, or a mean in the output's own units."""
    if score.statistic == "rate" or score.scale is None:
        return percent(share)
    low, high = score.scale
    return figure(low + share * (high - low))


def rate_ends(score: GroupScore, group: Group) -> str:
    """The ends of a group's figure, the unit once: `41.2 – 97.0 %`."""
    if score.statistic == "rate" or score.scale is None:
        return f"{percent(group.low).removesuffix(' %')} – {percent(group.high)}"
    return " – ".join(rate_text(score, end) for end in (group.low, group.high))


def apart_text(of: Measured, difference: float) -> str:
    """A difference of two groups: in points, or in the output's own units."""
    if of.scale is None or getattr(of, "statistic", "rate") == "rate":
        return points(difference)
    return figure(difference * (of.scale[1] - of.scale[0]))


def ends_of(scale: tuple[float, float]) -> str:
    """A scale: `0 to 1,300,000`."""
    return f"{exact_figure(scale[0])} to {exact_figure(scale[1])}"
