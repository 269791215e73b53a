"""Metrics: the scores of a result as a flat dictionary of numbers, for a log of experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from themis.results.finding import finding
from themis.results.model import GroupScore, Result, Score
from themis.results.withheld import withheld

ENDS = ("score", "low", "high")
NOTHING = (
    "unread",
    "unmeasured",
    "single",
    "alone",
    "idle",
    "unknown",
)  # findings without a number

_UNFIT = re.compile(r"[^\w.-]|^\.+$")  # for the names that MLflow, W&B and others take


def to_metrics(result: Result) -> dict[str, float]:
    """Score, low and high of each score: `causal/sex/score`, `group/sex.age/high`, …

    Behind the set is whose score it is, if not that of all inputs, and before all of it the output
    where there are several. What documents may not show, and what was not measured, has no key.
    """
    names: dict[str, tuple[str, ...]] = {}
    metrics: dict[str, float] = {}
    for score in withheld(result).scores:
        shown, parts = finding(score), tuple(_parts(score))
        if shown.kind in NOTHING or shown.value is None or shown.ends is None:
            continue
        name = "/".join(_UNFIT.sub("_", part) for part in parts)
        while names.setdefault(name, parts) != parts:  # of another score, spelled alike
            name += "_"
        for end, number in zip(ENDS, (shown.value, *shown.ends), strict=True):
            metrics.setdefault(f"{name}/{end}", float(number))  # asked twice, the first counts
    return metrics


def _parts(score: Score) -> Iterator[str]:
    if score.output is not None:
        yield score.output
    is_mean = isinstance(score, GroupScore) and score.statistic == "mean"
    yield f"{score.measure}-mean" if is_mean else score.measure
    yield ".".join(score.against)
    if score.population != "inputs":
        yield score.population
    if score.counterfactuals != "generated":
        yield score.counterfactuals
