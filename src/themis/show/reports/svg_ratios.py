"""What is each group's impact ratio, and on which side of the four-fifths line is it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from themis.results.model import FOUR_FIFTHS, Group, GroupScore
from themis.show.words.values import rate_text

Place = Literal["below", "above", "unclear", "few"]


@dataclass(frozen=True)
class Ratio:
    """A group's rate by the highest rate. The ends hold whichever group has the highest rate."""

    ratio: float
    low: float
    high: float
    few: bool

    @property
    def place(self) -> Place:
        """Where it certainly lies; of a group with few rows nothing is said."""
        if self.few:
            return "few"
        if self.high < FOUR_FIFTHS:
            return "below"
        return "above" if self.low >= FOUR_FIFTHS else "unclear"


PLACES: Mapping[Place, str] = {
    "below": "below four fifths",
    "above": "above four fifths",
    "unclear": "unclear",
    "few": "few rows: not judged",
}


def ratios(score: GroupScore) -> list[Ratio] | None:
    """The impact ratio of each group; None where a ratio means nothing.

    The groups' intervals hold together, so these do as well. Where groups are unknown, any of
    them may have a higher rate.
    """
    judged = [group for group in score.groups if not group.few] or list(score.groups)
    best = max((group.rate for group in judged), default=0.0)
    if score.impact_ratio is None or score.statistic == "mean" or not best:
        return None
    highest = 1.0 if score.lower_bound else max(group.high for group in judged)
    surely = max(group.low for group in judged)
    return [_ratio(group, best, highest, surely) for group in score.groups]


def _ratio(group: Group, best: float, highest: float, surely: float) -> Ratio:
    high = min(group.high / surely, 1.0) if surely > 0 else 1.0
    return Ratio(min(group.rate / best, 1.0), group.low / highest, high, group.few)


def four_fifths_line(score: GroupScore) -> float | None:
    """The rate that is four fifths of the highest."""
    best = max((group.rate for group in score.groups if not group.few), default=0.0)
    return FOUR_FIFTHS * best if ratios(score) is not None and best else None


def rate_interval(score: GroupScore, group: Group) -> str:
    """The ends of a group's rate or mean."""
    if group.low == group.high:
        return "exact"
    return f"{rate_text(score, group.low)} – {rate_text(score, group.high)}"
