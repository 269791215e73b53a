"""Removal of discrimination from training data: by other labels, weights, or another sample.

Massaging and reweighing are those of Calders, Kamiran and Pechenizkiy (2009); their local forms,
which leave what an explanatory characteristic explains, are those of Žliobaitė, Kamiran and Calders
(2011). Everywhere a rank says how much a person looks like one with the good outcome.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .data import Bools, Ints

Floats = NDArray[np.float64]


def discrimination(good: Bools, deprived: Bools) -> float:
    """The rate of good outcomes of the favoured group minus that of the deprived one."""
    return float(good[~deprived].mean() - good[deprived].mean())


def unexplained(good: Bools, deprived: Bools, explanatory: Ints) -> float:
    """The mean discrimination among people with the same explanatory value."""
    values, counts = np.unique(explanatory, return_counts=True)
    both = [
        (count, discrimination(good[here], deprived[here]))
        for value, count in zip(values, counts, strict=True)
        if 0 < deprived[here := explanatory == value].sum() < count
    ]
    return float(np.average([each for _, each in both], weights=[count for count, _ in both]))


def massaged(ranks: Floats, good: Bools, deprived: Bools) -> Bools:
    """Labels without discrimination: as many promoted in one group as demoted in the other.

    M = discrimination · |deprived| · |favoured| / N people of each, those next to the boundary.
    """
    share = deprived.sum() * (~deprived).sum() / len(good)
    number = max(0, round(discrimination(good, deprived) * share))
    changed = good.copy()
    changed[_highest(ranks, deprived & ~good, number)] = True
    changed[_lowest(ranks, ~deprived & good, number)] = False
    return changed


def weights_of_reweighing(good: Bools, deprived: Bools) -> Floats:
    """P(group) · P(outcome) / P(group, outcome): as if the two were independent."""
    weights = np.empty(len(good))
    for group in (True, False):
        for outcome in (True, False):
            cell = (deprived == group) & (good == outcome)
            expected = (deprived == group).mean() * (good == outcome).mean()
            weights[cell] = expected / max(cell.mean(), 1 / len(good))
    return weights


def locally_massaged(ranks: Floats, good: Bools, deprived: Bools, explanatory: Ints) -> Bools:
    """Labels with which, for each explanatory value, both groups have the mean of their rates."""
    changed = good.copy()
    for group, target in _local_targets(good, deprived, explanatory):
        more = round(target * group.sum()) - int(good[group].sum())
        changed[_highest(ranks, group & ~good, more)] = True
        changed[_lowest(ranks, group & good, -more)] = False
    return changed


def locally_resampled(ranks: Floats, good: Bools, deprived: Bools, explanatory: Ints) -> Ints:
    """The people to train on, some twice and some not at all, to the same effect as massaging."""
    counts = np.ones(len(good), dtype=int)
    for group, target in _local_targets(good, deprived, explanatory):
        more = round(target * group.sum()) - int(good[group].sum())
        # As many come in with one outcome as go out with the other, all next to the boundary.
        # Nobody can come in twice of whom there is none, and then nobody goes.
        worst_good = _lowest(ranks, group & good, abs(more))
        best_others = _highest(ranks, group & ~good, abs(more))
        twice, never = (worst_good, best_others) if more > 0 else (best_others, worst_good)
        if len(twice):
            np.add.at(counts, np.resize(twice, abs(more)), 1)
            counts[never] -= 1
    return np.repeat(np.arange(len(good)), counts)


def _local_targets(good: Bools, deprived: Bools, explanatory: Ints) -> list[tuple[Bools, float]]:
    """Each group of each explanatory value where there are both, and the rate it should have."""
    targets = []
    for value in np.unique(explanatory):
        groups = [(explanatory == value) & (deprived == each) for each in (True, False)]
        if all(group.any() for group in groups):
            target = float(np.mean([good[group].mean() for group in groups]))
            targets += [(group, target) for group in groups]
    return targets


def _highest(ranks: Floats, among: Bools, number: int) -> Ints:
    places = np.flatnonzero(among)
    return places[np.argsort(-ranks[places], kind="stable")][: max(0, number)]


def _lowest(ranks: Floats, among: Bools, number: int) -> Ints:
    places = np.flatnonzero(among)
    return places[np.argsort(ranks[places], kind="stable")][: max(0, number)]
