"""Explanations of a score in words: who loses, where the changes are, and what noise does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from themis.results.finding import finding
from themis.results.model import (
    CausalScore,
    GroupScore,
    Result,
    Score,
)
from themis.results.parts import Crossing, Group, Harm, Joint, Noise, Region, Witness
from themis.results.withheld import is_told
from themis.show.words.headlines import changes_text
from themis.show.words.naming import (
    beyond,
    output_name,
    output_noun,
    output_words,
    rate_ends,
    rate_text,
)
from themis.show.words.values import (
    COMMON,
    FEW_COUNTED,
    as_saved,
    at_least,
    at_most,
    confidence_text,
    count,
    percent,
    set_phrase,
    share_text,
    some_of,
    told_apart,
    visible,
    with_followers,
)
from themis.show.words.wording import PLAIN, Wording


def change_sentence(harm: Harm, words: Wording = PLAIN, output: str | None = None) -> str:
    """Who loses and who gains by a change: `green → purple: 3 of 26 lose …`."""
    change = f"{words.label(harm.change_from)} → {words.label(harm.change_to)}"
    what = words.favour(output) if words.naming.decision or output else "the favourable decision"
    return f"{change}: {lost_text(harm)} lose {what}, {gained_text(harm)} gain it"


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


def crossing_sentence(crossing: Crossing, score: CausalScore, words: Wording = PLAIN) -> str:
    """How often a change is one between a favourable output and another."""
    ends = (crossing.low, crossing.high)
    share = share_text(crossing.share, crossing.count, crossing.inputs, *ends)
    whom = words.whom(score.population)
    return f"for {share} of {whom} the change is between a favourable output and another"


def directions_certainty(score: CausalScore) -> str:
    """What the intervals of the directions are, where there are some, and that noise is in them."""
    noise = "; changes by noise are among them" if score.placebo is not None else ""
    shown = (each for each in score.direction if each.contexts >= FEW_COUNTED)
    if not any(each.lost_low is not None for each in shown):
        return noise
    return f"; intervals: {confidence_text(score.confidence)} each{noise}"


def counted_people(score: CausalScore, words: Wording = PLAIN) -> str:
    """On whom the directions of harm were counted; failures leave some changes fewer inputs."""
    counts = [harm.contexts for harm in score.direction]
    least, most = min(counts), max(counts)
    whom = words.tested(most, score)
    if least < most:
        return f"{least:,} to {whom} for each change"
    return f"{whom}, {'each ' * (most > 1)}tried with every value"


def flip_rate_sentence(score: CausalScore) -> str:
    """How many decisions one random change alters on average."""
    phrase = set_phrase(score.against)
    if score.followed:
        phrase += f"{with_followers(score.against, score.followed)},"
    name = output_name(score)
    outputs = "decisions" if name == "the decision" else "outputs"
    of = f" of {name}" if score.output is not None else ""
    return (
        f"on average one random change of {phrase} alters {percent(score.flip_rate or 0.0)} of "
        f"{outputs}{of}{beyond(score)}"
    )


def region_sentence(region: Region, score: CausalScore, words: Wording = PLAIN) -> str:
    """Where many of the changed decisions are: how many, among how few of whom; who loses there."""
    place = f"where {words.conditions(region)}"
    if region.loses is not None:
        place = f"{words.label(region.loses)} lose {place}"
    part = f"{_covered(region)}{_between(region)}"
    share = share_text(
        region.share, region.residents, region.inputs or 0, region.share_low, region.share_high
    )
    among = _among(share, region.inputs or 0, score, words)
    return f"{place}: {part} among {among}, {lift_text(region.lift)} times their share"


def joint_sentences(score: CausalScore, words: Wording = PLAIN) -> Iterator[str]:
    """Of a set of two what each alone changes, and what only both; how sure is said."""
    found = score.joint
    if found is None:
        return
    few, counted = found.inputs < FEW_COUNTED, words.tested(found.inputs, score)
    alone = [
        f"for {_share(share, found)} already if only {visible(name)} is"
        for name, share in found.alone.items()
    ]
    sure = confidence_text(score.confidence)
    how = counted if few or found.only_low is None else f"{counted}, {sure}"
    yield (
        f"For {_among(_only(found), found.inputs, score, words)} {output_words(score)} changes"
        f"{beyond(score)} only if both are changed; {', '.join(alone)} (counted on {how})"
    )


def _among(share: str, total: int, score: CausalScore, words: Wording) -> str:
    """`3.1 % of test inputs`, but of few those that were counted: `3 of 26 test inputs`."""
    if " of " in share:
        return f"{share} {words.tested(total, score).partition(' ')[2]}"
    return f"{share} of {words.whom(score.population)}"


def _share(share: float, found: Joint) -> str:
    """A share of the inputs that were counted; where all are estimated from these, how many."""
    count = None if found.only_count is None else round(share * found.inputs)
    if count is not None and found.only_low is not None:
        return f"{count:,} of {found.inputs:,}"
    return share_text(share, count, found.inputs)


def _only(found: Joint) -> str:
    ends = (found.only_low, found.only_high)
    return share_text(found.only, found.only_count, found.inputs, *ends)


def joint_pair_sentence(pair: Witness, score: CausalScore, words: Wording = PLAIN) -> str | None:
    """That a pair needs the whole set, where it does: no change of one of them is enough."""
    if pair.joint is None:
        return None
    base = pair.inputs[pair.joint]
    whom = words.label({name: base[name] for name in pair.differs_in})
    output = f"{output_words(score)}{beyond(score)}"
    return f"From {whom}, neither change alone changes {output}; both together do"


def _covered(region: Region) -> str:
    """Which part of the changes is here: `12.3 % of the changes`, `3 of 26 such changes`."""
    share = share_text(region.coverage, region.inside, region.flips)
    few = region.flips < FEW_COUNTED
    such = "such " if region.loses is not None else "" if few else "the "
    return f"{share} {'' if few else 'of '}{such}changes"


def _between(region: Region) -> str:
    low, high = region.coverage_low, region.coverage_high
    if low == high:
        return ""
    if high == 1:
        return f" ({at_least(percent(low, 'down'))})"
    return f" (between {percent(low, 'down')} and {percent(high, 'up')})"


def lift_text(lift: float | None) -> str:
    """How many times the share of a region its changes are: `9.1`, `27`."""
    if lift is None:
        return "many"
    known = as_saved(lift)
    return f"{known:.1f}" if known < 10 else f"{known:,.0f}"


def pairs_origin(score: CausalScore) -> str:
    """What to know of pairs: whose values they have, and that noise may make them; else empty."""
    parts = [] if score.placebo is None else ["noise alone may make such pairs"]
    for first in score.witnesses[:1]:
        if first.generated:
            parts.append("generated, not taken from anybody's row")
        elif first.rows is not None and len(first.differs_in) == len(first.inputs[0]):
            parts.append("their other values are those of people, and are not shown")
    return "; ".join(parts)


def other_changes_first(witnesses: Sequence[Witness]) -> list[Witness]:
    """The witnesses so that each kind of change comes before any comes twice.

    One that needs the whole set is first.
    """
    seen: dict[tuple[Any, ...], int] = {}
    turns = []
    for witness in witnesses:
        change = tuple((name, witness.inputs[0][name]) for name in witness.differs_in)
        seen[change] = seen.get(change, -1) + 1
        turns.append(seen[change])
    ranked = [(each.joint is None, turn) for each, turn in zip(witnesses, turns, strict=True)]
    return [witnesses[place] for place in sorted(range(len(ranked)), key=ranked.__getitem__)]


def noise_remedy(result: Result) -> str:
    """What helps against noise: several runs, or the measure of what a change does beyond it."""
    if result.has_excess:
        return "The excess is what a change does beyond that"
    option = 'measure = "excess"' if result.command == "check" else "--measure excess"
    sets = {each.against for each in result.scores}
    change = f"changing {set_phrase(*sets)}" if len(sets) == 1 else "a change"
    return (
        f"repeats = 5 takes the majority of five runs; {option} measures what {change} does "
        "beyond that"
    )


def noise_warning(noise: Noise, remedy: str) -> str:
    """That the subject does not always decide the same, how often, and what helps."""
    confidence = confidence_text(noise.confidence)
    ends = f"between {percent(noise.low, 'down')} and {percent(noise.high, 'up')}, {confidence}"
    each, more = "", remedy
    if noise.repeats > 1:
        each = f", although each is the majority of {noise.repeats} runs"
        more = f"more than {noise.repeats} repeats may help"
    if noise.average:
        return (
            f"the subject does not always answer the same: outputs of {noise.inputs:,} inputs that "
            f"were run again differ by {percent(noise.rate)} on average{each} ({ends}). {more}"
        )
    return (
        f"the subject does not always give the same decision: {noise.differing:,} of "
        f"{count(noise.inputs, 'input')} got a different decision when run again{each} "
        f"({percent(noise.rate)}; {ends}). {more}"
    )


def probe_sentence(noise: Noise) -> str:
    """That no noise was found, and how much there may be all the same."""
    if noise.average:
        return (
            f"{count(noise.inputs, 'input')} run again: outputs differ by "
            f"{at_most(percent(noise.high, 'up'))} on average ({confidence_text(noise.confidence)})"
        )
    return (
        f"{count(noise.inputs, 'input')} run again, none with a different decision: "
        f"{at_most(percent(noise.high, 'up'))} get one ({confidence_text(noise.confidence)})"
    )


def placebo_sentence(score: CausalScore, words: Wording = PLAIN) -> str:
    """The score that noise alone would give."""
    assert score.placebo is not None
    value = score.placebo.score
    ends = f"{percent(score.placebo.low, 'down')} and {percent(score.placebo.high, 'up')}"
    return (
        f"noise alone gives {value:.3f}: with nothing changed, "
        f"{changes_text(score, percent(value), words)} (between {ends})"
    )


def harms(score: Score, *, most: int, words: Wording = PLAIN) -> Iterator[str]:
    """Who loses by which change; of groups, which one is favoured."""
    if isinstance(score, CausalScore):
        for harm in score.direction[:most]:
            whom = words.tested(harm.contexts, score)
            yield f"{change_sentence(harm, words, score.output)} (counted on {whom})"
    elif isinstance(score, GroupScore):
        best, worst = score.most_favoured, score.least_favoured
        if best and worst and finding(score).state == "grave" and is_told(score):
            first, last = (
                f"{words.label(e.values)} ({_rate(e, score, words)})" for e in (best, worst)
            )
            yield f"highest {score.statistic}: {first}; lowest: {last}"


def _rate(group: Group, score: GroupScore, words: Wording) -> str:
    """A group's rate or mean, of how many, and between which ends."""
    ends = f", {rate_ends(score, group)}" if group.low < group.high else ""
    whom = words.of_group(group, score)
    of = "of" if score.statistic == "rate" else "among"
    return f"{rate_text(score, group.rate)} {of} {whom}{ends}"


def telling_witness(score: Score) -> Witness | None:
    """The pair of people that needs the whole set, else the one that differs in most of it."""
    witnesses = score.witnesses if isinstance(score, CausalScore) else ()
    return max(witnesses, key=lambda e: (e.joint is not None, len(e.differs_in)), default=None)


def example(score: Score, words: Wording = PLAIN) -> str | None:
    """One pair of people who differ only in the set: `refused for women, approved for men`."""
    witness = telling_witness(score)
    if witness is None:
        return None
    first, second = witness.inputs
    changed = witness.differs_in
    of = "" if score.output is None else f"{output_noun(score)} is "
    got = [
        f"{output} for {words.label({name: person[name] for name in changed})}"
        for person, output in zip(witness.inputs, told_apart(witness.outputs), strict=True)
    ]
    common = [name for name in first if name not in changed]
    both = [f"{set_phrase([name])} {words.value(name, second[name])}" for name in common]
    whose = " (generated, not anybody's row)" if witness.generated else ""
    text = f"{of}{', '.join(got)}"
    agree = some_of(both, COMMON, more=", + {} more")
    return f"{text}; both have {agree}{whose}" if both else text
