"""What a group score answers, however it was measured: its groups, the ratio and the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import Cost
from themis.inputs.characteristics import Value
from themis.results.model import GroupScore
from themis.results.notes import Note
from themis.results.parts import Group
from themis.scores.accounts import common_fields
from themis.scores.spelling import with_spelling
from themis.settings import Settings
from themis.statistics.proportions import Interval
from themis.subjects.readings import Reading


@dataclass(frozen=True)
class ImpactRatio:
    """The lowest rate divided by the highest, with what the groups' intervals allow."""

    ratio: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, groups: Sequence[Group], *, all_groups: bool) -> ImpactRatio:
        """The ratio of these groups; None where no group has a favourable decision.

        If there are further groups, they may have any rate: the ratio can be as low as 0.
        """
        best = max((group.rate for group in groups), default=0.0)
        if not best:
            return cls(None, None, None)
        ratio = min(group.rate for group in groups) / best
        low = min(group.low for group in groups) / max(group.high for group in groups)
        low = low if all_groups else 0.0
        floor = max(group.low for group in groups)
        ceiling = min(group.high for group in groups)
        return cls(ratio, low, min(ceiling / floor, 1.0) if floor > 0 else 1.0)


LISTED = 10_000  # groups of a result at most


def list_groups(
    labels: Sequence[dict[str, Value]],
    rates: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    counts: NDArray[Any],
    *,
    places: NDArray[np.int64],
    scoring: Sequence[float | None],
    runs: NDArray[np.float64],
    figure: Callable[[float], float] = float,
) -> tuple[tuple[Group, ...], tuple[Note, ...]]:
    """Those of the groups at these places that a result lists, and a note if that is not all.

    Of very many, those with the lowest and highest rates and ends: all that a ratio rests on.
    `scoring` is the share of each above the median, `runs` how many answers its rate averages, and
    `figure` makes a rate a figure of the result.
    """
    listed, notes = places, tuple[Note, ...]()
    if len(places) > LISTED:
        ends = LISTED // 6
        orders = [places[np.argsort(each[places], kind="stable")] for each in (rates, low, high)]
        listed = np.unique(np.concatenate([part for o in orders for part in (o[:ends], o[-ends:])]))
        notes = (Note.of("groups-not-listed", groups=len(places), listed=len(listed)),)
    groups = (
        Group(
            values=labels[place],
            rate=figure(rates[place]),
            low=figure(low[place]),
            high=figure(high[place]),
            samples=int(counts[place]),
            above_median=scoring[place],
            runs=float(runs[place]),
        )
        for place in listed.tolist()
    )
    return tuple(groups), notes


def averaged(weights: NDArray[Any], squares: NDArray[Any]) -> NDArray[np.float64]:
    """How many answers the rates of groups average in effect: (Σw)² / Σw², by weights of answers.

    Copies of a row share one answer, and heavy ones count for more.
    """
    return np.asarray(weights**2 / np.where(squares > 0, squares, np.inf), dtype=np.float64)


def group_score(
    groups: tuple[Group, ...],
    interval: Interval,
    *,
    settings: Settings,
    cost: Cost,
    reading: Reading,
    spelled: int = 0,
    **details: Any,
) -> GroupScore:
    """The result for these groups, with the impact ratio; `spelled` outputs are unknown."""
    impact = ImpactRatio(None, None, None)
    if reading.statistic == "rate":  # a ratio of means depends on where the scale begins
        impact = ImpactRatio.of(groups, all_groups=not details.get("lower_bound", False))
    fields: Mapping[str, Any] = {"method": "sampled", **details, **reading.details()}
    score = GroupScore(
        measure="group",
        **common_fields(interval, settings, cost),
        groups=groups,
        statistic=reading.statistic,
        favours=reading.favours,
        impact_ratio=impact.ratio,
        impact_ratio_low=impact.low,
        impact_ratio_high=impact.high,
        **fields,
    )
    return with_spelling(score, spelled, reading)
