"""How is a score said in plain words? Numbers, names and headlines, as text without style."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from themis.results.model import CausalScore, Group, GroupScore, Region, Score, Witness
from themis.results.verdicts import how_it_ended

ALL_RUN = {
    "inputs": "every input was run",
    "profile": "everybody in the profile was run",
    "rows": "every row was run",
}
WHERE = {"inputs": "", "profile": " in the profile", "rows": " in the rows"}
FEW_NAMED = 3  # groups named that are too small to judge
LONGEST = 32  # characters of a name or value within a sentence


def visible(value: Any) -> str:
    """A value as text on one line: control characters are shown as escapes, never obeyed."""
    text = value if isinstance(value, str) else json.dumps(value)
    if text.isprintable() and text.strip():
        return text
    shown = "".join(each if each.isprintable() else _escape(each) for each in text)
    return shown if shown.strip() else repr(text)


def _escape(character: str) -> str:
    """`\\n`, `\\x1b`, `\\u202e`, …"""
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def percent(share: float) -> str:
    """A share for reading: `11.3 %`, `< 0.1 %`, `0 %`."""
    return f"{_hundredths(share)} %".replace("<", "< ").replace(">", "> ")


def points(difference: float) -> str:
    """A difference of two rates for reading: `17.1 points`."""
    return f"{_hundredths(difference)} points".replace("<", "< ").replace(">", "> ")


def _hundredths(share: float) -> str:
    if 0 < share < 0.001:
        return "<0.1"
    if 0.999 < share < 1:
        return ">99.9"
    return f"{100 * share:.0f}" if share in (0.0, 1.0) else f"{100 * share:.1f}"


def sure(confidence: float) -> str:
    """`99 % sure`."""
    return f"{100 * confidence:.10g} % sure"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 person`, `1,404 executions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time for reading: `0.8 s`, `3 min`, `2.5 h`, `4 days`."""
    if seconds < 0.05:
        return "< 0.1 s"
    for limit, unit, name in ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{_short(seconds / unit)} {name}"
    return f"{_short(seconds / 86_400)} days"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def size(number: int) -> str:
    """A number of inputs: exact below 10^15, with its magnitude when it is long."""
    if number < 10**9:
        return f"{number:,}"
    exponent = len(str(number)) - 1
    digits = round(number / 10 ** (exponent - 1))
    if digits == 100:  # 9.96 rounds to 10.0
        digits, exponent = 10, exponent + 1
    short = f"{digits // 10}.{digits % 10} × 10^{exponent}"
    return f"{number:,} ({short})" if number < 10**15 else short


def set_phrase(against: Sequence[str]) -> str:
    """A set in a sentence: `race`, or `race and sex together`."""
    names = [_cut(visible(name)) for name in against]
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]} together"


def label(values: Mapping[str, Any]) -> str:
    """An assignment: `green`, `age 30`, or `race green, sex male`."""
    if len(values) == 1:
        (value,) = values.values()
        if isinstance(value, str) and not _looks_numeric(value):
            return _cut(visible(value))
    pairs = ((_cut(visible(name)), _cut(visible(value))) for name, value in values.items())
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _looks_numeric(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "-+."


def headline(score: Score) -> str:
    """The score as a sentence that says what is measured, with its interval."""
    if not score.samples:
        return _not_measured(score)
    if isinstance(score, CausalScore):
        return _causal_headline(score)
    assert isinstance(score, GroupScore)
    return _group_headline(score)


def score_words(score: Score) -> str:
    """Which score it is: `causal score of race`, `group score of sex in the rows`."""
    phrase = set_phrase(score.against).removesuffix(" together")
    of = "" if score.output is None else f" for {output_name(score)}"
    mean = ", of means" if isinstance(score, GroupScore) and score.statistic == "mean" else ""
    within = ", compared with each other" if score.counterfactuals == "within" else ""
    return f"{score.measure} score of {phrase}{of}{WHERE[score.population]}{within}{mean}"


def _not_measured(score: Score) -> str:
    why = "" if score.conclusive else f": {how_it_ended(score.stopped)} before it was measured"
    return f"the {score_words(score)} is unknown{why}"


def _causal_headline(score: CausalScore) -> str:
    phrase = set_phrase(score.against)
    changes = "changes" if len(score.against) == 1 else "change"
    if score.counterfactuals == "within":
        return _within_headline(score, phrase, changes)
    if score.lower_bound:
        return (
            f"{phrase} {changes} {_effect(score, f'at least {percent(score.low)}')} "
            f"({sure(score.confidence)}; {percent(score.score)} of those tried)"
        )
    if score.score == 0:
        return _no_change(score, phrase, changes)
    if score.placebo is not None and score.low == 0:
        effect = _effect(score, percent(score.score))
        return f"{phrase} changed {effect}, which noise alone may explain ({_how(score)})"
    return f"{phrase} {changes} {_effect(score, percent(score.score))} ({_how(score)})"


def _within_headline(score: CausalScore, phrase: str, changes: str) -> str:
    if score.distance.partition(" ")[0] not in ("exact", "threshold"):
        share = percent(score.score)
        return f"among the rows {phrase} {changes} {_effect(score, share)} ({_how(score)})"
    another = output_name(score).removeprefix("the ")
    counterpart = f"a counterpart among the rows that differs only in {phrase} and gets another"
    if score.score == 0:
        none = "no row has" if score.high == 0 else "no row is known to have"
        return f"{none} {counterpart} {another} ({_how(score)})"
    return f"{percent(score.score)} of the rows have {counterpart} {another} ({_how(score)})"


def output_name(score: Score) -> str:
    """What a score is about: the decision, or an output by its name."""
    if score.output is None:
        return "the decision" if score.distance == "exact" else "the output"
    return _cut(visible(score.output))


def _effect(score: Score, share: str) -> str:
    """What changes, for whom or by how much: `the decision for 11.3 % of people`."""
    name = output_name(score)
    kind, _, tolerance = score.distance.partition(" ")
    if kind == "exact":
        return f"{name} for {share} of {_whom(score)}"
    if tolerance:
        return f"{name} by more than {tolerance} for {share} of {_whom(score)}"
    scale = "" if score.scale is None else f" of its scale from {_ends_of(score.scale)}"
    return f"{name} by {share}{scale} on average"


def _ends_of(scale: tuple[float, float]) -> str:
    return f"{scale[0]:,.10g} to {scale[1]:,.10g}"


def rate_text(score: GroupScore, share: float) -> str:
    """A group's figure: a rate in per cent, or a mean in the output's own units."""
    if score.statistic == "rate" or score.scale is None:
        return percent(share)
    low, high = score.scale
    return f"{low + share * (high - low):,.4g}"


def apart_text(score: GroupScore, difference: float) -> str:
    """A difference of two groups: in points, or in the output's own units."""
    if score.statistic == "rate" or score.scale is None:
        return points(difference)
    return f"{difference * (score.scale[1] - score.scale[0]):,.4g}"


def _no_change(score: CausalScore, phrase: str, changes: str) -> str:
    if score.method == "exact" and score.high == 0:
        whom = "" if score.population == "inputs" else f" of {_whom(score)}"
        return f"{phrase} never {changes} {output_name(score)}{whom} ({_exactly(score)})"
    none = f"changed {output_name(score)} for none of the {_people(score.samples)} tried"
    if score.samples == 1:
        none = f"did not change {output_name(score)} for the one person tried"
    return f"{phrase} {none} (at most {percent(score.high)}, {_certainty(score)})"


def _group_headline(score: GroupScore) -> str:
    few = [label(group.values) for group in score.groups if group.few]
    if not few:
        return _group_spread(score)
    rest = [f"{len(few) - FEW_NAMED:,} more"] if len(few) > FEW_NAMED else []
    shown = "; ".join([*few[:FEW_NAMED], *rest])
    return f"{_group_spread(score)}; too few people to judge: {shown}"


def _group_spread(score: GroupScore) -> str:
    phrase = set_phrase(score.against).removesuffix(" together")
    if not score.groups:
        return f"nothing is known about the groups of {phrase}: no execution gave a decision"
    where = WHERE[score.population]
    if len(score.groups) == 1 and score.high == 0:
        return f"{phrase} has a single group, so that there is nothing to compare"
    if len(score.groups) == 1:
        one = f"only one group of {phrase}{where} has a decision to show"
        return f"{one}, so that there is nothing to compare ({_how(score)})"
    start, end = f"the groups of {phrase}{where} are", f"apart in {compared(score)}"
    if score.lower_bound:
        least = apart_text(score, score.low)
        return f"{start} at least {least} {end} ({sure(score.confidence)})"
    if score.method == "exact" and score.high == 0:
        same = "get the favourable decision at the same rate"
        if score.statistic == "mean":
            same = f"have the same {compared(score)}"
        elif score.output is not None:
            same = f"get {compared(score)} at the same rate"
        return f"all groups of {phrase}{where} {same} ({_exactly(score)})"
    if score.method == "sampled" and score.low == 0:
        return f"{start} at most {apart_text(score, score.high)} {end} ({_certainty(score)})"
    return f"{start} {apart_text(score, score.score)} {end} ({_how(score)})"


def compared(score: GroupScore) -> str:
    if score.statistic == "mean":
        return f"mean {score.output or 'output'}"
    if score.output is None:
        return "favourable decisions"
    return f"favourable outputs of {output_name(score)}"


def _how(score: Score) -> str:
    """What stands behind a headline's number: its interval, or that there is none."""
    if score.method == "exact" and score.low == score.high:
        return _exactly(score)
    if isinstance(score, GroupScore) and score.statistic == "mean":
        ends = f"between {apart_text(score, score.low)} and {apart_text(score, score.high)}"
    elif score.measure == "group":
        ends = f"between {_hundredths(score.low)} and {points(score.high)}"
    else:
        ends = f"between {percent(score.low)} and {percent(score.high)}"
    return f"{ends}, {_certainty(score)}"


def _exactly(score: Score) -> str:
    """Why a number is exact: all was run, or what was not could not change it."""
    if not score.conclusive:
        return f"exact, although not {ALL_RUN[score.population]}"
    if score.unknown:
        return "exact, although some executions failed"
    return f"exact: {ALL_RUN[score.population]}"


def _how_much_was_run(score: Score) -> str:
    if not score.conclusive and score.stopped != "noise":
        return f"not {ALL_RUN[score.population]}"
    if score.unknown:
        return f"{ALL_RUN[score.population]}, and some executions failed"
    return f"exact: {ALL_RUN[score.population]}"


def _whom(score: Score) -> str:
    """Of whom a share is."""
    whom = {"inputs": "people", "profile": "the people in the profile"}
    return whom.get(score.population, "the people in the rows")


def _certainty(score: Score) -> str:
    if score.method == "exact" and score.stopped in ("budget", "interrupted"):
        return "because the run ended early"
    if score.method == "exact":
        noisy = isinstance(score, CausalScore) and score.placebo is not None
        return "because of noise" if noisy else "because some executions failed"
    if score.stopping == "paper":
        return "claimed by the paper's rule, not certified"
    return sure(score.confidence)


def _people(number: int) -> str:
    return count(number, "person", "people")


def masked(causal: CausalScore, group: GroupScore) -> str | None:
    """The remark that equal rates hide changed decisions, where that is certain."""
    certified = causal.stopping == group.stopping == "certified"
    if not certified or group.lower_bound or causal.low <= group.high or causal.scale:
        return None
    name = set_phrase(causal.against)
    return (
        f"the groups' rates hide this: they are at most {points(group.high)} apart, yet {name} "
        f"decides for at least {percent(causal.low)} of people. Losses and gains cancel out"
    )


def counted_people(score: CausalScore) -> str:
    """On whom the directions of harm were counted; failures leave some changes fewer people."""
    counts = [harm.contexts for harm in score.direction]
    least, most = min(counts), max(counts)
    if least < most:
        return f"{least:,} to {_people(most)} for each change"
    return f"{_people(most)} who {'was' if most == 1 else 'were'} tried with every value"


def region_sentence(region: Region) -> str:
    """Where many of the changed decisions are: how many, among how few people."""
    place = " and ".join(visible(each) for each in region.conditions)
    return (
        f"where {place}: {percent(region.coverage)} of the changes{_between(region)} "
        f"among {percent(region.share)} of people, {_times(region.lift)} their share"
    )


def _between(region: Region) -> str:
    low, high = region.coverage_low, region.coverage_high
    if low == high:
        return ""
    if high == 1:
        return f" (at least {percent(low)})"
    return f" (between {percent(low)} and {percent(high)})"


def _times(lift: float) -> str:
    return f"{lift:.1f} times" if lift < 10 else f"{lift:,.0f} times"


def seen(score: GroupScore) -> str | None:
    """How far apart the rates were that were seen, where the score was moved away from that."""
    spread = score.observed
    if spread is None or score.method == "exact" or len(score.groups) < 2:
        return None
    if f"{spread:.3f}" == f"{score.score:.3f}":
        return None
    figures, error = f"{score.statistic}s", apart_text(score, score.error)
    why = "into the interval"
    if score.high - score.low <= 2 * score.error + 1e-9:
        why = f"to within ± {error.replace('.0 ', ' ')} of both ends of the interval"
    equal = f", and equal {figures} are possible" if score.low == 0 else ""
    return (
        f"the {figures} seen are {apart_text(score, spread)} apart{equal}; "
        f"the score is moved {why}, to {score.score:.3f}"
    )


def impact(score: GroupScore) -> str | None:
    """The impact ratio, its interval, and where it stands to the four-fifths line."""
    if score.impact_ratio is None:
        return None
    text = f"impact ratio {score.impact_ratio:.2f}"
    low, high = score.impact_ratio_low, score.impact_ratio_high
    if low is not None and high is not None and low != high:
        text += f" (between {low:.2f} and {high:.2f})"
    place = {
        "below": "below the four-fifths line (0.80)",
        "above": "above the four-fifths line (0.80)",
        "unclear": "on which side of the four-fifths line (0.80) is unclear",
    }
    return f"{text}: {place[score.four_fifths]}"


def method(score: Score) -> str:
    """How the score was found and what it cost."""
    cost = count(score.executions, "execution")
    if score.cache_hits and not score.executions:
        cost = "all from the cache"
    if score.method == "exact":
        noun = "input" if score.population == "inputs" else "row"
        return f"{_how_much_was_run(score)} ({count(score.samples, noun)}; {cost})"
    each = " in each group" if score.measure == "group" and score.stopping != "paper" else ""
    kind = "lower bound" if score.lower_bound else "sampled"
    return f"{kind}: {_people(score.samples)}{each}, {cost}"


def extremes(groups: Iterable[Group], shown: int) -> tuple[list[Group], int]:
    """The groups by falling rate, the middle left out where there are too many to show."""
    ranked = sorted(groups, key=lambda group: -group.rate)
    if len(ranked) <= 2 * shown + 2:
        return ranked, 0
    return ranked[:shown] + ranked[-shown:], len(ranked) - 2 * shown


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
