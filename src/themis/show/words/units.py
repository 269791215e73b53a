"""Numbers of scores in their units: per cent, points, or those of the output."""

from __future__ import annotations

from typing import TypeAlias

from themis.results.model import CheckResult, GroupScore, Score, SearchResult
from themis.results.parts import Group
from themis.results.quantities import Quantity
from themis.show.words.values import Rounding, exact_figure, figure, percent, points

Measured: TypeAlias = Score | CheckResult | SearchResult | Quantity


def in_units(share: float, of: Measured, to: Rounding = "near") -> str:
    """A share in the units of what it is of: `12.9 %`, `5.5 points`, `1,250` between means."""
    return percent(share, to) if of.measure == "causal" else apart_text(of, share, to)


def rate_text(score: GroupScore, share: float, to: Rounding = "near") -> str:
    """A group's figure: a rate in per cent, or a mean in the output's own units."""
    if score.statistic == "rate" or score.scale is None:
        return percent(share, to)
    low, high = score.scale
    return figure(low + share * (high - low), to=to)


def rate_ends(score: GroupScore, group: Group) -> str:
    """The ends of a group's figure, the unit once: `41.2 – 97.0 %`."""
    low, high = rate_text(score, group.low, "down"), rate_text(score, group.high, "up")
    return f"{low.removesuffix(' %')} – {high}"


def apart_text(of: Measured, difference: float, to: Rounding = "near") -> str:
    """A difference of two groups: in points, or in the output's own units."""
    if of.scale is None or getattr(of, "statistic", "rate") == "rate":
        return points(difference, to)
    return figure(difference * (of.scale[1] - of.scale[0]), to=to)


def ends_of(scale: tuple[float, float]) -> str:
    """A scale: `0 to 1,300,000`."""
    return f"{exact_figure(scale[0])} to {exact_figure(scale[1])}"
