"""What scores are called, and their numbers in units: per cent, points, or those of the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from themis.results.model import CheckResult, GroupScore, Score, SearchResult
from themis.results.parts import Group
from themis.results.quantities import Quantity
from themis.show.words.values import (
    Rounding,
    cut_name,
    exact_figure,
    figure,
    percent,
    plain_phrase,
    points,
    visible,
)
from themis.show.words.wording import PLACES

Measured: TypeAlias = Score | CheckResult | SearchResult | Quantity


def score_words(score: Score) -> str:
    """Which score it is: `causal score of race`, `group score of sex in the rows`."""
    of = "" if score.output is None else f" for {output_name(score)}"
    mean = ", of means" if isinstance(score, GroupScore) and score.statistic == "mean" else ""
    within = ", compared with each other" if score.counterfactuals == "within" else ""
    return f"{score.measure} score of {plain_set(score)}{of}{where(score)}{within}{mean}"


def kind_words(score: Score) -> str:
    """Which score of a set it is: of which output, statistic and people; `group, in the rows`."""
    of = "" if score.output is None else f" of {cut_name(visible(score.output))}"
    return ", ".join([f"{score.measure}{of}", *kinds(Quantity.of(score))])


def kinds(of: Quantity) -> Iterator[str]:
    """What tells the scores of a set apart, besides their measure and their output."""
    if of.statistic == "mean":
        yield "means"
    if of.population in PLACES:
        yield PLACES[of.population]
    if of.counterfactuals == "within":
        yield "among themselves"


def plain_set(score: Score) -> str:
    """The set of a score: `race and sex`."""
    return plain_phrase(score.against)


def where(score: Score) -> str:
    """Of whom it is, where that is not all inputs: ` in the rows`."""
    return f" {PLACES[score.population]}" if score.population in PLACES else ""


def output_name(score: Score) -> str:
    """What a score is about: the decision, or an output by its name."""
    return f"the {output_noun(score)}" if score.output is None else output_noun(score)


def output_noun(score: Score) -> str:
    """What changes: the decision, the output, or an output by its name."""
    if score.output is None:
        return "decision" if score.distance == "exact" else "output"
    return cut_name(visible(score.output))


def output_words(score: Score) -> str:
    """The same in a sentence that may begin with it: `the output limit`."""
    return output_name(score) if score.output is None else f"the output {output_name(score)}"


def beyond(score: Score) -> str:
    """By how much outputs have to differ to count, where there is a tolerance."""
    more = tolerance(score)
    return f" by {more}" if more else ""


def tolerance(score: Score) -> str:
    """The same without what comes before: `more than 50`."""
    _, _, tolerance = score.distance.partition(" ")
    return f"more than {exact_figure(float(tolerance))}" if tolerance else ""


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
