"""Each score as one sentence that is true when it is read alone: what was observed, how sure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from themis.inputs.personal import SHARED
from themis.results.model import CausalScore, GroupScore, Score, is_by_degrees
from themis.results.notes import Ending
from themis.results.parts import Group
from themis.results.verdicts import nothing_compared
from themis.results.withheld import FewerGroups, UntoldScore, is_told
from themis.show.words.certainty import certainty, exactly, how, sure
from themis.show.words.favours import idle_favour
from themis.show.words.notes import how_it_ended
from themis.show.words.units import apart_text, ends_of, in_units
from themis.show.words.values import (
    at_least,
    at_most,
    cut_name,
    exact_figure,
    percent,
    set_phrase,
    visible,
    with_followers,
)
from themis.show.words.wording import PLACES, PLAIN, Wording, is_drawn

ROUNDING = 1e-9
FEW_NAMED = 3  # groups named that are too small to judge


def headline(score: Score, words: Wording = PLAIN) -> str:
    """The score as a sentence that says what is measured, with its interval."""
    return capital(_sentence(score, words))


def is_settled(score: Score) -> bool:
    """Whether a score is as precise as asked; failures and noise widen one that is exact, too."""
    is_wide = score.high - score.low > 2 * score.error + ROUNDING
    fails = score.unknown > 0 and not score.lower_bound
    return score.conclusive and not (is_wide and (score.method == "exact" or fails))


def score_text(score: Score) -> str:
    """How large it is: `12.9 %`, `5.6 points`; `not shown` where that would tell of few people."""
    return in_units(score.score, score) if is_told(score) else "not shown"


def capital(text: str, names: Iterable[str] = ()) -> str:
    """The text with a capital first letter, unless it begins with one of these names."""
    for shown in map(visible, names):
        if text.startswith(shown) and not text[len(shown) : len(shown) + 1].isalnum():
            return text
    return f"{text[:1].upper()}{text[1:]}"


def _sentence(score: Score, words: Wording) -> str:
    if not score.samples:
        return _not_measured(score)
    if score.stopped is Ending.SPELLING:
        return f"the {score_words(score)} is open: {how_it_ended(score.stopped)} ({how(score)})"
    if isinstance(score, CausalScore):
        return _causal(score, words)
    assert isinstance(score, GroupScore)
    return _group(score, words)


def score_words(score: Score) -> str:
    """Which score it is: `causal score of race`, `group score of sex in the rows`."""
    phrase = plain_set(score)
    of = "" if score.output is None else f" for {output_name(score)}"
    mean = ", of means" if isinstance(score, GroupScore) and score.statistic == "mean" else ""
    within = ", compared with each other" if score.counterfactuals == "within" else ""
    return f"{score.measure} score of {phrase}{of}{_where(score)}{within}{mean}"


def kind_words(score: Score) -> str:
    """Which score of a set it is: of which output, statistic and people; `group, in the rows`."""
    of = "" if score.output is None else f" of {cut_name(visible(score.output))}"
    parts = [f"{score.measure}{of}"]
    if isinstance(score, GroupScore) and score.statistic == "mean":
        parts.append("means")
    if score.population in PLACES:
        parts.append(PLACES[score.population])
    if score.counterfactuals == "within":
        parts.append("among themselves")
    return ", ".join(parts)


def plain_set(score: Score) -> str:
    """The set of a score: `race and sex`."""
    return set_phrase(score.against).removesuffix(" together")


def _where(score: Score) -> str:
    return f" {PLACES[score.population]}" if score.population in PLACES else ""


def _not_measured(score: Score) -> str:
    why = "" if score.conclusive else f": {how_it_ended(score.stopped)} before it was measured"
    return f"the {score_words(score)} is unknown{why}"


def _causal(score: CausalScore, words: Wording) -> str:
    if isinstance(score, UntoldScore):
        return _untold_effect(score, words)
    if score.counterfactuals == "within":
        return _within(score)
    if score.lower_bound:
        return _at_least(score, words)
    if nothing_compared(score) is not None:
        one = words.counted(1, score.population).removeprefix("1 ")
        return f"there is nothing to change: no {one} can have another {plain_set(score)}"
    if score.score == 0:
        return _no_effect(score, words)
    if score.placebo is not None and score.low == 0:
        effect = _effect(score, percent(score.score), words, past=True)
        return f"{effect}, which noise alone may explain ({how(score)})"
    return f"{_effect(score, percent(score.score), words)} ({how(score)})"


def _untold_effect(score: UntoldScore, words: Wording) -> str:
    """That outputs differ, where it may not be shown how much on average."""
    certain = score.whole.low > 0
    if score.counterfactuals == "within":
        verb, when = "differ", f"between rows that differ only in {_changed_with(score)}"
    else:
        whom = f"for some of {words.whom(score.population)} "
        verb, when = "change", f"{whom}{_when(score, words, past=not certain)}"
    name, size = output_words(score), f"; {untold_size(words)}"
    if certain:
        return f"{name} {verb}s {when.rstrip(',')}{size}"
    past = "differed" if verb == "differ" else "changed"
    return f"undecided for {plain_set(score)}: {name} {past} {when.rstrip(',')}{size}"


def untold_size(words: Wording = PLAIN) -> str:
    """That it is not shown how large an average is."""
    return f"how much is not shown, as that would tell of fewer than {SHARED} {words.people}"


def _changed_with(score: CausalScore) -> str:
    """The set in the middle of a sentence, with what follows it."""
    follow = with_followers(score.against, score.followed)
    return f"{plain_set(score)}{follow}{',' if score.followed else ''}"


def _at_least(score: CausalScore, words: Wording) -> str:
    tried = f"{sure(score)}; {percent(score.score)} of those tried"
    if score.low == 0:
        return f"{_none_found(score)}, but not all combinations were tried"
    return f"{_effect(score, at_least(percent(score.low)), words)} ({tried})"


def _no_effect(score: CausalScore, words: Wording) -> str:
    name = output_words(score)
    if score.method == "exact" and score.high == 0:
        whom = "" if score.population == "inputs" else f" for {words.whom(score.population)}"
        never = f"{name} never changes{beyond(score)}{whom}"
        return f"{never} {_when(score, words)} ({exactly(score)})"
    tried, of = words.tested(score.samples, score), "in" if is_drawn(score) else "for"
    changed = f"changed{beyond(score)} {of} none of {tried}"
    if score.samples == 1:
        changed = f"did not change{beyond(score)} {of} the one {tried.removeprefix('1 ')} tried"
    sure_of = f"{at_most(percent(score.high))}, {certainty(score)}"
    if _is_all_unknown(score):
        none = f"no two outputs could be compared {of} {tried}"
        return f"nothing is known about an effect of {plain_set(score)}: {none} ({sure_of})"
    found = _none_found(score) if is_settled(score) else f"undecided for {plain_set(score)}"
    return f"{found}: {name} {changed} {_when(score, words, past=True)} ({sure_of})"


def _is_all_unknown(score: CausalScore) -> bool:
    """Whether failures left nothing to compare."""
    if score.method == "exact":
        return score.unknown > 0 and score.high >= 1
    return score.unknown >= score.samples


def _none_found(score: CausalScore) -> str:
    """`no effect of sex found`, with a tolerance `no effect of more than 50 found for sex`."""
    if not (by := beyond(score)):
        return f"no effect of {plain_set(score)} found"
    return f"no effect{by.replace(' by ', ' of ', 1)} found for {plain_set(score)}"


def _when(score: CausalScore, words: Wording, *, past: bool = False) -> str:
    """`when only their sex is changed`; with others that follow, without `only`."""
    verb = ("was" if past else "is") if len(score.against) == 1 else ("were" if past else "are")
    only = "" if score.followed else "only "
    their = "" if past and is_drawn(score) else words.their(score.population)  # of a draw
    follow = with_followers(score.against, score.followed)
    return f"when {only}{their}{plain_set(score)} {verb} changed{follow}"


def _effect(score: CausalScore, share: str, words: Wording, *, past: bool = False) -> str:
    """What changes, for whom or by how much, and when."""
    return f"{changes_text(score, share, words, past=past)} {_when(score, words, past=past)}"


def changes_text(
    score: CausalScore, share: str, words: Wording = PLAIN, *, past: bool = False
) -> str:
    """What changes, for whom or by how much: `for 2.0 % of test inputs the decision changes`."""
    name, whom = output_words(score), words.whom(score.population)
    verb = "changed" if past else "changes"
    if is_by_degrees(score):
        of = f" for {whom}" if words.their(score.population) else ""
        return f"on average {name} {verb} by {share}{_of_scale(score)}{of}"
    return f"for {share} of {whom} {name} {verb}{beyond(score)}"


def _of_scale(score: Score) -> str:
    return "" if score.scale is None else f" of its scale from {ends_of(score.scale)}"


def beyond(score: Score) -> str:
    """By how much outputs have to differ to count, where there is a tolerance."""
    tolerance = score.distance.partition(" ")[2]
    return f" by more than {exact_figure(float(tolerance))}" if tolerance else ""


def _within(score: CausalScore) -> str:
    """The score among given rows alone."""
    share, phrase = percent(score.score), _changed_with(score)
    if is_by_degrees(score):
        name = output_words(score)
        return f"among the rows {name} differs by {share} on average with {phrase} ({how(score)})"
    another = output_name(score).removeprefix("the ")
    but = f"whose {another} differs{by}" if (by := beyond(score)) else f"gets a different {another}"
    counterpart = f"a counterpart among the rows that differs only in {phrase} but {but}"
    if score.score == 0:
        none = "no row has" if score.high == 0 else "no row is known to have"
        return f"{none} {counterpart} ({how(score)})"
    return f"{share} of the rows have {counterpart} ({how(score)})"


def output_name(score: Score) -> str:
    """What a score is about: the decision, or an output by its name."""
    if score.output is None:
        return "the decision" if score.distance == "exact" else "the output"
    return cut_name(visible(score.output))


def output_words(score: Score) -> str:
    """The same in a sentence that may begin with it: `the output limit`."""
    return output_name(score) if score.output is None else f"the output {output_name(score)}"


def highest_of(score: GroupScore) -> str:
    """What the best group has: `highest rate`, `highest mean`, `highest mean shown`."""
    further = isinstance(score, FewerGroups) and score.is_further
    return f"highest {score.statistic}{' shown' * further}"


def _apart(score: GroupScore, difference: float) -> str:
    return apart_text(score, difference).replace(" points", " percentage points")


def _group(score: GroupScore, words: Wording) -> str:
    if isinstance(score, FewerGroups) and len(score.groups) < 2:
        return _untold(score, words)
    few = [words.label(group.values) for group in score.groups if group.few and group.values]
    unnamed = sum(group.few for group in score.groups) - len(few)
    if not few and not unnamed and not isinstance(score, FewerGroups):
        return _spread(score, words)
    rest = [f"{len(few) - FEW_NAMED:,} more"] if len(few) > FEW_NAMED else []
    if unnamed:
        rest.append(_unnamed(unnamed, words))
    shown = "; ".join([*few[:FEW_NAMED], *rest])
    start, bracket, behind = f"{_although(score, words)}{_spread(score, words)}".rpartition(" (")
    start, behind = (start, f"{bracket}{behind}") if bracket else (behind, "")
    behind = f"{untold_text(score, words)}{behind}"
    if not shown:
        return f"{start}{behind}"
    others = without_few(score)
    if others is not None:
        names = f": {shown}" if few else ""
        start += f", and by {_apart(score, others)} without groups of too few {words.people}"
        return f"{start} to judge{names}{behind}"
    return f"{start}; too few {words.people} to judge: {shown}{behind}"


def rests_on_few(score: GroupScore) -> bool:
    """Whether only groups of too few people have the lowest or the highest rate."""
    rates = [group.rate for group in score.groups]
    judged = [group.rate for group in score.groups if not group.few]
    return not judged or (min(judged), max(judged)) != (min(rates), max(rates))


def shown_extremes(score: GroupScore) -> list[Group]:
    """The groups with the highest and the lowest rate, of those that can be judged if two can."""
    judged = tuple(group for group in score.groups if not group.few)
    of_many = replace(score, groups=judged if len(judged) > 1 else score.groups)
    extremes = (of_many.most_favoured, of_many.least_favoured)
    return [each for each in extremes if each is not None]


def few_text(score: GroupScore, words: Wording) -> str:
    """What a difference is without groups of few people, where it rests on one; else nothing.

    And which means are not shown.
    """
    hidden = untold_text(score, words)
    if not score.groups or not rests_on_few(score):
        return hidden
    others = without_few(score)
    if others is None:
        return f"; it rests on too few {words.people} to judge{hidden}"
    few = f"groups of too few {words.people} to judge"
    return f"; {apart_text(score, others)} without {few}{hidden}"


def without_few(score: GroupScore) -> float | None:
    """How far the larger groups are apart, where that is less and certain; else None."""
    judged = [group for group in score.groups if not group.few]
    listed = not any(note.code == "groups-not-listed" for note in score.notes)
    certain = listed and all(group.low == group.high for group in judged)
    if len(judged) < 2 or not certain or not rests_on_few(score):
        return None
    rates = [group.rate for group in judged]
    return max(rates) - min(rates)


def _spread(score: GroupScore, words: Wording) -> str:
    phrase, where = plain_set(score), _where(score)
    if (which := idle_favour(score)) is not None:
        return _idle(score, which, words)
    if not score.groups:
        return f"nothing is known about the groups of {phrase}: no execution gave a decision"
    if len(score.groups) == 1 and score.high == 0:
        return f"there is a single group of {phrase}, so that there is nothing to compare"
    if len(score.groups) == 1:
        one = f"only one group of {phrase}{where} has a decision to show"
        return f"{one}, so that there is nothing to compare ({how(score)})"
    figures, between = compared(score, words), f"{_between(score, words)}{where}"
    if score.low == 0 and score.high > 0:
        return _no_difference(score, figures, between)
    if score.lower_bound:
        return f"{figures} differ by {at_least(_apart(score, score.low))} {between} ({sure(score)})"
    if score.method == "exact" and score.high == 0:
        return f"{figures} are equal {_equal(score, words)}{where} ({exactly(score)})"
    return f"{figures} differ by {_apart(score, score.score)} {between} ({how(score)})"


def _idle(score: GroupScore, which: str, words: Wording) -> str:
    """That rates tell nothing, and what to write where that is known."""
    figures, about = compared(score, words), f"{plain_set(score)}{_where(score)}"
    return idle_words(which, figures, score.output, words, f" about {about}")


def idle_words(
    which: str, figures: str, output: str | None, words: Wording, about: str = ""
) -> str:
    """`no output was favourable, so that rates of '1' tell nothing: write favourable = [1]`."""
    remedy = words.remedies.get(output) or words.remedies.get(None, "")
    write = remedy if which == "no" else ""
    of = "" if output is None else f" of {cut_name(visible(output))}"
    return f"{which} output{of} was favourable, so that {figures} tell nothing{about}{write}"


def untold_text(score: GroupScore, words: Wording = PLAIN) -> str:
    """Which means are not shown, as they are of few people, and whether they are further apart."""
    if not isinstance(score, FewerGroups):
        return ""
    hidden = score.hidden
    of = _unnamed(len(hidden), words)
    of += " with an output" * any((each.people or 0) >= SHARED for each in hidden)
    one = len(hidden) == 1
    if len(score.groups) < 2:
        shown = "only one mean is" if score.groups else "no mean is"
        return f"; how much is not shown, as {shown} of {SHARED} {words.people} or more"
    if not score.is_further:
        return f"; the {'mean' if one else 'means'} of {of} {'is' if one else 'are'} not shown"
    verb, when = ("is" if one else "are"), ""
    if score.method == "sampled":
        verb, when = ("was" if one else "were"), " in the test"
    means = "its mean is" if one else "their means are"
    return f"; {'' if one else 'some of '}{of} {verb} further apart{when}, and {means} not shown"


def _although(score: GroupScore, words: Wording) -> str:
    """That means differ, where those that may be shown do not surely."""
    if not isinstance(score, FewerGroups) or score.low > 0 or score.whole.low == 0:
        return ""
    but = "not" if score.high == 0 else "not surely"
    return f"{_differ(score, words)}, but {but} between those shown: "


def _differ(score: FewerGroups, words: Wording) -> str:
    return f"{compared(score, words)} differ between groups of {plain_set(score)}{_where(score)}"


def _untold(score: FewerGroups, words: Wording) -> str:
    """That means differ, where no difference of two of them may be shown."""
    figures, among = compared(score, words), f"groups of {plain_set(score)}{_where(score)}"
    start, whole = _differ(score, words), score.whole
    if whole.high == 0:
        return f"{figures} are equal in all {among} ({exactly(whole)})"
    if whole.low == 0:
        found = "no difference found in" if is_settled(whole) else "undecided for"
        start = f"{found} {figures} between {among}"
    return f"{start}{untold_text(score, words)}"


def _no_difference(score: GroupScore, figures: str, between: str) -> str:
    spread = score.observed or 0.0
    seen = f"differed by {_apart(score, spread)}" if spread else "were equal"
    found = "no difference found in" if is_settled(score) else "undecided for"
    start = f"{found} {figures} {between}: they {seen} in the test"
    if score.lower_bound:
        return f"{start}, but not all groups were tried"
    most = _apart(score, score.high)
    end = f"a gap above {most} is ruled out"
    if score.method == "exact":  # and yet there is an interval
        end = f"the gap may be as large as {most}"
    return f"{start}; {end} ({certainty(score)})"


def compared(score: GroupScore, words: Wording = PLAIN) -> str:
    """What groups are compared by: `approval rates`, `means of limit`."""
    if score.statistic == "mean":
        return f"means of {output_name(score)}" if score.output else "mean outputs"
    if score.output is None:
        return words.rates
    return f"rates of favourable outputs of {output_name(score)}"


def _between(score: GroupScore, words: Wording) -> str:
    """Between whom: `women and men`, or the lowest and highest of several groups."""
    worst, best = score.least_favoured, score.most_favoured
    assert worst is not None
    assert best is not None
    if len(score.groups) == 2:
        first, second = (worst, best) if worst is not best else score.groups
        return f"between {_both(first, second, words)}"
    several = _several(score)
    if worst.rate == best.rate:
        return f"between {several}"
    return f"between {_both(worst, best, words)}, the lowest and highest of {several}"


def _both(first: Group, second: Group, words: Wording) -> str:
    if not first.values and not second.values:
        return _unnamed(2, words)
    return f"{words.label(first.values)} and {words.label(second.values)}"


def _unnamed(number: int, words: Wording) -> str:
    """Groups of too few people to be named: `a group of fewer than 5 people`, `3 groups of …`."""
    group = words.label({})
    return group if number == 1 else group.replace("a group", f"{number:,} groups", 1)


def _equal(score: GroupScore, words: Wording) -> str:
    if len(score.groups) == 2:
        first, second = score.groups
        return f"for {_both(first, second, words)}"
    return f"in all {_several(score)}"


def _several(score: GroupScore) -> str:
    """`3 groups of race`; where not all may be shown, that these are."""
    shown = " that are shown" if isinstance(score, FewerGroups) else ""
    return f"{len(score.groups):,} groups of {plain_set(score)}{shown}"
