"""What scores are called, their numbers in units, and how sure these are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from themis.results.finding import Quantity, Sure, finding
from themis.results.model import (
    CheckResult,
    GroupScore,
    Score,
    SearchResult,
)
from themis.results.notes import Ending
from themis.results.parts import Group
from themis.show.words.notes import how_it_ended
from themis.show.words.values import (
    Rounding,
    confidence_text,
    cut_name,
    exact_figure,
    figure,
    hundredths,
    percent,
    percent_sure,
    plain_phrase,
    points,
    round_points,
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


# How sure ---------------------------------------------------------------------------------
ALL_RUN = {
    "inputs": "every input was run",
    "profile": "everybody in the profile was run",
    "rows": "every row was run",
}
CONTRADICTED = how_it_ended(Ending.INCONSISTENT)
FAILED = "some executions failed"
WORDS: dict[Sure, tuple[str, str, str]] = {
    # beside one number, beside a method, and beside an interval
    "exact": ("exact: {all_run}", "exact: {all_run}", "exact: {all_run}"),
    "early": ("exact, although not {all_run}", "not {all_run}", "because the run ended early"),
    "failures": (f"exact, although {FAILED}", f"{{all_run}}, and {FAILED}", f"because {FAILED}"),
    "noise": (
        "exact: {all_run}",
        "{all_run}, and another run may give other answers",
        "because of noise",
    ),
    "inconsistent": (CONTRADICTED, CONTRADICTED, f"because {CONTRADICTED}"),
}


def how(score: Score) -> str:
    """What stands behind a headline's number: its interval, or that there is none."""
    if score.method == "exact" and score.low == score.high:
        return _words(score, 0)
    if finding(score).sure != "confidence":
        return f"between {interval_text(score, ' and ')}, {certainty(score)}"
    if score.family in (None, 1):
        return f"{percent_sure(score.confidence)} % confidence interval: {interval_text(score)}"
    return f"interval {interval_text(score)}, {certainty(score)}"


def interval_text(score: Score, dash: str = "–") -> str:
    """`11.9–13.9 %`, `0.8–10.8 points`."""
    if isinstance(score, GroupScore) and score.statistic == "mean":
        return f"{apart_text(score, score.low, 'down')}{dash}{apart_text(score, score.high, 'up')}"
    unit = "%" if score.measure == "causal" else "points"
    return f"{hundredths(score.low, 'down')}{dash}{hundredths(score.high, 'up')} {unit}"


def how_much_was_run(score: Score) -> str:
    """Of an exact method, whether all was run."""
    return _words(score, 1)


def certainty(score: Score) -> str:
    """How sure an interval is, or why there is one although all was run."""
    if score.method == "exact":
        return _words(score, 2)
    if finding(score).sure == "paper":
        return "claimed by the paper's rule, not certified"
    return sure(score)


def _words(score: Score, beside: int) -> str:
    return WORDS[finding(score).sure][beside].format(all_run=ALL_RUN[score.population])


def sure(score: Score) -> str:
    """With which confidence an interval holds, and for how many together."""
    return confidence_text(score.confidence, score.family)


def amount(share: float, of: Score | CheckResult | SearchResult) -> str:
    """A limit for reading: `10 %` of people, `10 points` between groups, `500` between means."""
    if of.measure == "causal":
        return f"{100 * share:.4g} %"
    shown = in_units(share, of)
    return round_points(share) if shown.endswith(" points") else shown
