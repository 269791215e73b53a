"""Scores and results in plain words: headlines, noise, what is unsure, cost, without style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from themis.results.model import CausalScore, GroupScore, Result, Score
from themis.results.notes import Ending
from themis.results.parts import Group
from themis.settings import Stopping
from themis.show.words.notes import how_it_ended
from themis.show.words.values import (
    confidence_text,
    count,
    cut_name,
    duration,
    hundredths,
    label,
    people,
    percent,
    points,
    set_phrase,
    visible,
    with_followers,
)

ALL_RUN = {
    "inputs": "every input was run",
    "profile": "everybody in the profile was run",
    "rows": "every row was run",
}
WHERE = {"inputs": "", "profile": " in the profile", "rows": " in the rows"}
FEW_NAMED = 3  # groups named that are too small to judge
MISSING_NAMED = 8  # scores named that were not measured


def headline(score: Score) -> str:
    """The score as a sentence that says what is measured, with its interval."""
    if not score.samples:
        return _not_measured(score)
    if score.stopped is Ending.SPELLING:
        return f"the {score_words(score)} is open: {how_it_ended(score.stopped)} ({_how(score)})"
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
    if score.followed:
        return _followed_headline(score)
    if score.lower_bound:
        return (
            f"{phrase} {changes} {_effect(score, f'at least {percent(score.low)}')} "
            f"({_sure(score)}; {percent(score.score)} of those tried)"
        )
    if score.score == 0:
        return _no_change(score, phrase, changes)
    if score.placebo is not None and score.low == 0:
        effect = _effect(score, percent(score.score))
        return f"{phrase} changed {effect}, which noise alone may explain ({_how(score)})"
    return f"{phrase} {changes} {_effect(score, percent(score.score))} ({_how(score)})"


def _followed_headline(score: CausalScore) -> str:
    """The score of a set with which other characteristics were changed."""
    phrase, name = set_phrase(score.against).removesuffix(" together"), output_name(score)
    how = "is changed" if len(score.against) == 1 else "are changed together"
    when = f"when {phrase} {how}{with_followers(score.against, score.followed)}"

    def changes(share: str, verb: str = "changes") -> str:
        return f"{name} {verb} {_effect(score, share).removeprefix(name).lstrip()} {when}"

    if score.lower_bound:
        tried = f"({_sure(score)}; {percent(score.score)} of those tried)"
        return f"{changes(f'at least {percent(score.low)}')} {tried}"
    if score.score == 0 and score.method == "exact" and score.high == 0:
        whom = "" if score.population == "inputs" else f" for {_whom(score)}"
        return f"{name} never changes{whom} {when} ({_exactly(score)})"
    if score.score == 0:
        none = f"{name} changed for none of the {people(score.samples)} tried {when}"
        return f"{none} (at most {percent(score.high)}, {_certainty(score)})"
    if score.placebo is not None and score.low == 0:
        noise = "which noise alone may explain"
        return f"{changes(percent(score.score), 'changed')}, {noise} ({_how(score)})"
    return f"{changes(percent(score.score))} ({_how(score)})"


def _within_headline(score: CausalScore, phrase: str, changes: str) -> str:
    if score.distance.partition(" ")[0] not in ("exact", "threshold"):
        share = percent(score.score)
        return f"among the rows {phrase} {changes} {_effect(score, share)} ({_how(score)})"
    another = output_name(score).removeprefix("the ")
    phrase += with_followers(score.against, score.followed)
    phrase += "," if score.followed else ""
    counterpart = f"a counterpart among the rows that differs only in {phrase} and gets another"
    if score.score == 0:
        none = "no row has" if score.high == 0 else "no row is known to have"
        return f"{none} {counterpart} {another} ({_how(score)})"
    return f"{percent(score.score)} of the rows have {counterpart} {another} ({_how(score)})"


def output_name(score: Score) -> str:
    """What a score is about: the decision, or an output by its name."""
    if score.output is None:
        return "the decision" if score.distance == "exact" else "the output"
    return cut_name(visible(score.output))


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
    none = f"changed {output_name(score)} for none of the {people(score.samples)} tried"
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
        return f"{start} at least {least} {end} ({_sure(score)})"
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
        ends = f"between {hundredths(score.low)} and {points(score.high)}"
    else:
        ends = f"between {percent(score.low)} and {percent(score.high)}"
    return f"{ends}, {_certainty(score)}"


def _exactly(score: Score) -> str:
    """Why a number is exact: all was run, or what was not could not change it."""
    if not score.conclusive:
        return f"exact, although not {ALL_RUN[score.population]}"
    if score.unknown:
        return f"exact, although {_why_unknown(score)}"
    return f"exact: {ALL_RUN[score.population]}"


def _how_much_was_run(score: Score) -> str:
    if not score.conclusive and score.stopped not in (Ending.NOISE, Ending.SPELLING):
        return f"not {ALL_RUN[score.population]}"
    if score.unknown:
        return f"{ALL_RUN[score.population]}, and {_why_unknown(score)}"
    return f"exact: {ALL_RUN[score.population]}"


def _why_unknown(score: Score) -> str:
    """Why some rows could have gone either way."""
    if any(note.code in ("only-spelling", "partly-spelling") for note in score.notes):
        return how_it_ended(Ending.SPELLING)
    return "some executions failed"


def _whom(score: Score) -> str:
    """Of whom a share is."""
    whom = {"inputs": "people", "profile": "the people in the profile"}
    return whom.get(score.population, "the people in the rows")


def _certainty(score: Score) -> str:
    if score.method == "exact" and score.stopped.is_early:
        return "because the run ended early"
    if score.method == "exact":
        noisy = isinstance(score, CausalScore) and score.placebo is not None
        return "because of noise" if noisy else f"because {_why_unknown(score)}"
    if score.stopping is Stopping.PAPER:
        return "claimed by the paper's rule, not certified"
    return _sure(score)


def _sure(score: Score) -> str:
    return confidence_text(score.confidence, score.family)


FOR_ALL = "; for all together: --family"


def how_sure_together(result: Result, *, remedy: str = FOR_ALL) -> str | None:
    """Whether the confidence is that of each score, or of all; None where there are not several."""
    sampled = [each for each in result.scores if each.method == "sampled" and each.samples]
    certified = [each for each in sampled if each.stopping is Stopping.CERTIFIED]
    if not certified or result.checks:
        return None
    family = result.family
    if family is not None and (family > 1 or certified[0].measure == "group"):
        return f"{_them(result, family)} hold together with {_level(certified)}."
    if len(certified) < 2:
        return None
    return f"Each interval by itself holds with {_level(certified)}{remedy}."


def _level(scores: Iterable[Score]) -> str:
    return f"{100 * min(each.confidence for each in scores):.10g} % confidence"


def _them(result: Result, family: int) -> str:
    """What holds together."""
    if result.searches:
        several = len(result.searches) > 1
        return f"The {'lists' if several else 'list'} and the intervals of the sets in " + (
            "them" if several else "it"
        )
    if family == 1:
        return "The score and its groups' rates"
    rates = " and their groups' rates" if any(e.measure == "group" for e in result.scores) else ""
    return f"All {family} scores{rates}"


def masked(causal: CausalScore, group: GroupScore) -> str | None:
    """The remark that equal rates hide changed decisions, where that is certain."""
    certified = causal.stopping is group.stopping is Stopping.CERTIFIED
    if not certified or group.lower_bound or causal.low <= group.high or causal.scale:
        return None
    name = set_phrase(causal.against)
    if causal.followed:
        name += f"{with_followers(causal.against, causal.followed)},"
    return (
        f"the groups' rates hide this: they are at most {points(group.high)} apart, yet {name} "
        f"decides for at least {percent(causal.low)} of people. Losses and gains cancel out"
    )


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
    kind = "lower bound" if score.lower_bound else "sampled"
    return f"{kind}: {_sampled(score)}, {cost}"


def _sampled(score: Score) -> str:
    """How many people were tried; of groups, how many of each."""
    tested = [group.samples for group in score.groups] if isinstance(score, GroupScore) else []
    if not tested or score.stopping is Stopping.PAPER:
        return people(score.samples)
    if min(tested) < max(tested):
        return f"{min(tested):,} to {people(max(tested))} in a group"
    return f"{people(tested[0])} in each group"


def extremes(groups: Iterable[Group], shown: int) -> tuple[list[Group], int]:
    """The groups by falling rate, the middle left out where there are too many to show."""
    ranked = sorted(groups, key=lambda group: -group.rate)
    if len(ranked) <= 2 * shown + 2:
        return ranked, 0
    return ranked[:shown] + ranked[-shown:], len(ranked) - 2 * shown


def failure_text(kind: str, failure: Mapping[str, Any]) -> str:
    """How often an execution failed in this way, with an example."""
    person = ", ".join(f"{visible(n)} {visible(v)}" for n, v in failure["input"].items())
    return (
        f"{visible(kind)} {count(failure['count'], 'time')}, e.g. "
        f"{visible(failure['message'])} for the input: {person}"
    )


def cut_off(result: Result) -> str | None:
    """That a run may have ended before all scores were begun, and why."""
    if result.stopped not in (Ending.FAILED, Ending.INTERRUPTED):
        return None
    why = "was interrupted"
    if result.stopped is Ending.FAILED:
        why = f"failed: {how_it_ended(result.stopped)}"
    return f"the run {why}; what was not measured until then is missing"


def inconclusive(scores: Sequence[Score]) -> Iterator[str]:
    """Which scores say less than was asked, and why."""
    measured = [score for score in scores if score.samples]
    early = sum(score.stopped.is_early for score in measured)
    noisy = sum(score.stopped is Ending.NOISE for score in measured)
    total = count(len(scores), "score")
    spelled = sum(score.stopped is Ending.SPELLING for score in measured)
    reasons = {
        "the run ended early": early,
        how_it_ended(Ending.NOISE): noisy,
        how_it_ended(Ending.SPELLING): spelled,
    }
    for reason, unsure in reasons.items():
        if unsure:
            yield f"{unsure} of {total}: the interval is wider than asked, because {reason}"
    for stopped in (Ending.BUDGET, Ending.INTERRUPTED):
        missing = [each for each in scores if not each.samples and each.stopped is stopped]
        if missing:
            reason = f"because {how_it_ended(stopped)}"
            yield f"{len(missing)} of {total}: not measured, {reason}: {_names(missing)}"


def _names(scores: Sequence[Score]) -> str:
    """Which scores these are; the first of them, where they are many."""
    more = [f"{len(scores) - MISSING_NAMED:,} more"] if len(scores) > MISSING_NAMED else []
    return "; ".join([*map(score_words, scores[:MISSING_NAMED]), *more])


def hidden_changes(scores: Sequence[Score]) -> str | None:
    """What only both scores of a set show: equal rates that hide changed decisions."""
    causal = [each for each in scores if isinstance(each, CausalScore)]
    group = [each for each in scores if isinstance(each, GroupScore)]
    pairs = ((one, other) for one in causal for other in group if _of_the_same(one, other))
    return next(filter(None, (masked(one, other) for one, other in pairs)), None)


def _of_the_same(one: Score, other: Score) -> bool:
    """Whether two scores are about the same output of the same people."""
    return (one.output, one.population) == (other.output, other.population)


def by_set(scores: Sequence[Score]) -> dict[tuple[str, ...], list[Score]]:
    """The scores of each set, in the order of asking."""
    sets: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        sets.setdefault(score.against, []).append(score)
    return sets


PURPOSES = {
    "sampling": "sampling",
    "noise": "checked for noise",
    "explanations": "explanations",
    "isolating": "to find failing inputs",
}


def account_text(result: Result) -> str:
    """All executions and what for: `686 executions: 566 sampling, 120 checked for noise`."""
    account = result.spent
    text = count(account.total, "execution")
    parts = [f"{n:,} {words}" for name, words in PURPOSES.items() if (n := getattr(account, name))]
    if parts and account.total > account.sampling:
        text += f": {', '.join(parts)}"
    return text


def cost_text(result: Result) -> str:
    """What the result cost: `1,404 executions · 0.8 s · seed 42`."""
    return " · ".join([account_text(result), *circumstances(result)])


def circumstances(result: Result) -> Iterator[str]:
    """What belongs to the number of executions: what was known before, the time, the seed."""
    if result.cache_hits:
        yield f"{result.cache_hits:,} answered from the cache"
    if "seconds" in result.timing:
        yield duration(result.timing["seconds"])
    yield f"seed {result.seed}"
