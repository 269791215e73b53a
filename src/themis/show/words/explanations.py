"""Explanations of a score in words: who loses, where the changes are, and what noise does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from themis.results.model import CausalScore
from themis.results.parts import Harm, Noise, Placebo, Region, Witness
from themis.show.words.values import (
    FEW_COUNTED,
    confidence_text,
    count,
    label,
    people,
    percent,
    share_text,
    visible,
)


def change_sentence(harm: Harm) -> str:
    """Who loses and who gains by a change: `green → purple: 3 of 26 lose …`."""
    return (
        f"{label(harm.change_from)} → {label(harm.change_to)}: {lost_text(harm)} lose the "
        f"favourable decision, {gained_text(harm)} gain it"
    )


def lost_text(harm: Harm) -> str:
    """How many lose by a change."""
    ends = (harm.lost_low, harm.lost_high)
    return share_text(harm.lost, _counted(harm, harm.lost_count), harm.contexts, *ends)


def gained_text(harm: Harm) -> str:
    """How many gain by a change."""
    ends = (harm.gained_low, harm.gained_high)
    return share_text(harm.gained, _counted(harm, harm.gained_count), harm.contexts, *ends)


def _counted(harm: Harm, number: int | None) -> int | None:
    """The count behind a share; None where contexts weigh differently, and it says nothing."""
    pairs = ((harm.lost, harm.lost_count), (harm.gained, harm.gained_count))
    fits = all(abs(share * harm.contexts - (each or 0)) < 1e-6 for share, each in pairs)
    return number if fits else None


def directions_certainty(score: CausalScore) -> str:
    """What the intervals of the directions are, where there are some."""
    shown = (each for each in score.direction if each.contexts >= FEW_COUNTED)
    if not any(each.lost_low is not None for each in shown):
        return ""
    return f"; intervals: {confidence_text(score.confidence)}, each by itself"


def counted_people(score: CausalScore) -> str:
    """On whom the directions of harm were counted; failures leave some changes fewer people."""
    counts = [harm.contexts for harm in score.direction]
    least, most = min(counts), max(counts)
    if least < most:
        return f"{least:,} to {people(most)} for each change"
    return f"{people(most)} who {'was' if most == 1 else 'were'} tried with every value"


def region_sentence(region: Region) -> str:
    """Where many of the changed decisions are: how many, among how few people."""
    place = " and ".join(visible(each) for each in region.conditions)
    share = share_text(
        region.share, region.residents, region.inputs or 0, region.share_low, region.share_high
    )
    return (
        f"where {place}: {covered_text(region)} {_of(region.flips)}changes{_between(region)} "
        f"among {share} {_of(region.inputs, '')}people, {_times(region.lift)} their share"
    )


def _of(total: int | None, the: str = "the ") -> str:
    """What joins a share and its noun: `12.3 % of the changes`, but `3 of 26 changes`."""
    return "" if total is not None and total < FEW_COUNTED else f"of {the}"


def covered_text(region: Region) -> str:
    """Which part of the changes is here, without its interval."""
    return share_text(region.coverage, region.inside, region.flips)


def _between(region: Region) -> str:
    low, high = region.coverage_low, region.coverage_high
    if low == high:
        return ""
    if high == 1:
        return f" (at least {percent(low)})"
    return f" (between {percent(low)} and {percent(high)})"


def _times(lift: float) -> str:
    return f"{lift:.1f} times" if lift < 10 else f"{lift:,.0f} times"


def other_changes_first(witnesses: Sequence[Witness]) -> list[Witness]:
    """The witnesses so that each kind of change comes before any comes twice."""
    seen: dict[tuple[Any, ...], int] = {}
    turns = []
    for witness in witnesses:
        change = tuple((name, witness.inputs[0][name]) for name in witness.differs_in)
        seen[change] = seen.get(change, -1) + 1
        turns.append(seen[change])
    order = sorted(range(len(witnesses)), key=lambda place: (turns[place], place))
    return [witnesses[place] for place in order]


def noise_warning(noise: Noise) -> str:
    """That the subject does not always decide the same, how often, and what helps."""
    confidence = confidence_text(noise.confidence)
    ends = f"between {percent(noise.low)} and {percent(noise.high)}, {confidence}"
    each, more = "", "repeats = 5 takes the majority of five runs"
    if noise.repeats > 1:
        each = f", although each is the majority of {noise.repeats} runs"
        more = f"more than {noise.repeats} repeats may help"
    return (
        f"the subject does not always decide the same: {noise.differing:,} of "
        f"{count(noise.inputs, 'input')} got another decision when they were run again{each} "
        f"({percent(noise.rate)}; {ends}). {more}"
    )


def probe_sentence(noise: Noise) -> str:
    """That no noise was found, and how much there may be all the same."""
    return (
        f"{count(noise.inputs, 'input')} run again, none with another decision: at most "
        f"{percent(noise.high)} get one ({confidence_text(noise.confidence)})"
    )


def placebo_sentence(placebo: Placebo) -> str:
    """The score that noise alone would give."""
    return (
        f"placebo {placebo.score:.3f}: with nothing changed, the decision changes for "
        f"{percent(placebo.score)} of people (between {percent(placebo.low)} and "
        f"{percent(placebo.high)})"
    )
