"""Intervals and the axis they stand on, however they are shown: in letters, pixels or words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from themis.show.words.values import Rounding, percent

ENDS = (0.05, 0.1, 0.25, 0.5, 1.0)  # where an axis may end
STEPS = 5  # from tick to tick


@dataclass(frozen=True)
class Axis:
    """A line from 0 to `end`, a share; of numbers on a scale of their own it has no ticks."""

    end: float = 1.0
    is_share: bool = True

    @classmethod
    def reaching(cls, highest: float) -> Axis:
        """The shortest axis that has room for a share."""
        return cls(next((end for end in ENDS if highest <= end), ENDS[-1]))

    @property
    def ticks(self) -> tuple[float, ...]:
        """The shares that are written below it."""
        return tuple(self.end * step / STEPS for step in range(STEPS + 1))

    def part(self, share: float) -> float:
        """How far along the axis a share stands, from 0 to 1."""
        return min(max(share / self.end, 0.0), 1.0)


WHOLE = Axis()


@dataclass(frozen=True)
class Mark:
    """A line across a picture: a limit, or the four-fifths line."""

    share: float
    name: str


@dataclass(frozen=True)
class Interval:
    """What a picture shows: a point and the interval around it."""

    low: float
    high: float
    point: float | None
    label: str
    kind: str = "calm"  # calm, grave, few or open
    axis: Axis = WHOLE
    marks: tuple[Mark, ...] = ()


def ends_text(low: float, high: float, unit: Callable[[float, Rounding], str] = percent) -> str:
    """The ends of an interval, or that there is none: `6.3 – 16.3 %`, `1 – 4 points`, `exact`."""
    if low == high:
        return "exact"
    least, most = unit(low, "down"), unit(high, "up")
    shared = "".join(most.rpartition(" ")[1:]) if " " in most else ""
    return f"{least.removesuffix(shared)} – {most}"
