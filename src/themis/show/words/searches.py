"""Searches and verdicts in plain words: headlines, counts, guarantees, as text without style."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from themis.results.model import (
    CausalScore,
    CheckResult,
    GroupScore,
    Result,
    Score,
    SearchResult,
    is_by_degrees,
)
from themis.results.notes import Ending
from themis.results.parts import Group, Witness
from themis.results.verdicts import largest_missed, least_listed
from themis.results.withheld import whole_of
from themis.settings import Stopping
from themis.show.intervals import ends_text
from themis.show.words.certainty import ALL_RUN
from themis.show.words.explanations import change_sentence
from themis.show.words.headlines import (
    capital,
    highest_of,
    idle_words,
    rests_on_few,
    without_few,
)
from themis.show.words.notes import how_it_ended
from themis.show.words.units import in_units, rate_text
from themis.show.words.values import (
    at_most,
    confidence_text,
    count,
    exact_figure,
    percent_sure,
    round_points,
    set_phrase,
    told_apart,
    visible,
)
from themis.show.words.wording import PLAIN, Wording

FEW_NAMED = 3  # sets that rest on groups of few people
COMMON = 8  # characteristics named in which two people agree

Names = tuple[str, ...]


def set_text(against: Iterable[str]) -> str:
    """A set in a table: `race, sex`; it may be wrapped at the spaces."""
    return ", ".join(set_phrase([name]) for name in against)


def amount(share: float, of: Score | CheckResult | SearchResult) -> str:
    """A limit for reading: `10 %` of people, `10 points` between groups, `500` between means."""
    if of.measure == "causal":
        return f"{100 * share:.4g} %"
    shown = in_units(share, of)
    return round_points(share) if shown.endswith(" points") else shown


def sets_noun(search: SearchResult) -> str:
    """What found sets are called: minimal, unless a part of one could not be decided."""
    parts = [set(names) for names in search.undecided]
    open_parts = any(part < set(names) for names in search.found for part in parts)
    return "set" if open_parts else "minimal set"


def search_headline(search: SearchResult, words: Wording = PLAIN, names: str = "") -> str:
    """What is proven: how much the found combinations do, or how much none of all does.

    `names` are those of the found ones, where they are to be said.
    """
    if search_is_idle(search, words):
        about = " about any combination"
        return capital(idle_words("no", _figure(search, words), search.output, words, about))
    behind = (f": {names}" if names else "") + _few(search, words)
    if search.stopped is not Ending.DONE and search.stopped is not Ending.NOISE:
        so_far = f"the {search.measure} search found nothing so far"
        so_far = _found_sentence(search, words) if search.found else so_far
        unchecked = count(search.sets_open, "combination")
        end = how_it_ended(search.stopped)
        text = f"not finished ({end}): {so_far}{behind}; {unchecked} not checked"
        return capital(text)
    found = _found_sentence(search, words) if search.found else _none_sentence(search, words)
    noise = f"; {how_it_ended(search.stopped)}" if search.stopped is Ending.NOISE else ""
    undecided = count(len(search.undecided), "combination")
    if search.undecided and search.found:
        return capital(f"{found}{behind}; {undecided} undecided{noise}")
    start = f"{undecided} undecided; " if search.undecided else ""
    return capital(f"{start}{found}{behind}{noise}")


def search_is_idle(search: SearchResult, words: Wording) -> bool:
    """Whether groups were searched that are apart, and no output was favourable."""
    of_rates = search.measure == "group" and search.statistic == "rate" and not search.found
    return of_rates and (search.output in words.remedies or None in words.remedies)


def _few(search: SearchResult, words: Wording) -> str:
    """Which sets are above, as far as is known, only by groups of too few people to judge."""
    few = [set_phrase(each.against) for each in search.minimal_sets if _rests(each, search)]
    if not few:
        return ""
    shown = ", ".join(few[:FEW_NAMED]) + (", …" if len(few) > FEW_NAMED else "")
    return f"; for {shown} this rests on groups of too few {words.people} to judge"


def _rests(score: Score, search: SearchResult) -> bool:
    score = whole_of(score)
    if not isinstance(score, GroupScore) or not score.groups or not rests_on_few(score):
        return False
    others = without_few(score)
    return others is None or others <= search.threshold


def _found_sentence(search: SearchResult, words: Wording) -> str:
    """`6 minimal combinations of characteristics change the decision for about 15 % of …`."""
    found = len(search.found)
    start = count(found, f"{_minimal(search)}combination")
    much = f"{_reach(search)} ({_proven(search)})"
    if search.measure == "causal":
        does = "change" if found > 1 else "changes"
        return f"{start} of characteristics {does} {_effect(search, words, much)}"
    differ = f"differ by {much}" if search.threshold else f"differ ({_proven(search)})"
    has = "have" if found > 1 else "has"
    return f"{start} of characteristics {has} groups whose {_figure(search, words)} {differ}"


def _minimal(search: SearchResult) -> str:
    return sets_noun(search).removesuffix("set")


def _none_sentence(search: SearchResult, words: Wording) -> str:
    """How much no combination does, which is all that is proven where none was found."""
    most = largest_missed(search)
    exact = search.method == "exact"
    sure = f"exact: {_all_run(search)}" if exact else _confidence(search)
    limit = amount(most, search)
    least = "as much as" if most == 1 else "more than"
    if search.stopped is Ending.NOISE:  # it may hide changes as well as make some
        return _none_shown(search, words)
    start = f"no {'other ' if search.undecided else ''}combination of characteristics"
    if search.measure == "causal":
        much = f"{least} {limit}" if most else ""
        return f"{start} changes {_effect(search, words, much)} ({sure})"
    by = f" by {least} {limit}" if most else ""
    return f"{start} has groups whose {_figure(search, words)} differ{by} ({sure})"


def _none_shown(search: SearchResult, words: Wording) -> str:
    """That no set is above the threshold beyond noise, which rules none out."""
    start = "no combination of characteristics is shown to"
    much = f"more than {amount(search.threshold, search)}" if search.threshold else ""
    if search.measure == "causal":
        return f"{start} change {_effect(search, words, much)}"
    by = f" by {much}" if much else ""
    return f"{start} have groups whose {_figure(search, words)} differ{by}"


def _all_run(search: SearchResult) -> str:
    return ALL_RUN[search.population]


def _confidence(search: SearchResult) -> str:
    if search.stopping is Stopping.PAPER:
        return "claimed by the paper's rule, not certified"
    return confidence_text(search.confidence, search.family)


def _proven(search: SearchResult) -> str:
    """What is certain of each set listed: `more than 10 %, 99 % confidence`."""
    if search.method == "exact":
        return f"exact: {_all_run(search)}"
    if search.threshold in (0, 1):  # what is proven was said
        return _confidence(search)
    each = "each " if len(search.found) > 1 else ""
    return f"{each}more than {amount(least_listed(search), search)}, {_confidence(search)}"


def _reach(search: SearchResult) -> str:
    """What the scores of the found sets reach, as far as they were told from the threshold."""
    limit = amount(search.threshold, search)
    if search.threshold == 1:
        least = least_listed(search) if search.found else 1.0
        return limit if least == 1 else f"at least {amount(least, search)}"
    if search.method == "exact":
        return f"at least {limit}" if search.ties else f"more than {limit}"
    return f"about {limit} or more"


def _effect(search: SearchResult, words: Wording, much: str) -> str:
    """What a set changes, for whom or by how much: `the decision for more than 10 % of …`."""
    kind, _, tolerance = search.distance.partition(" ")
    name = "the decision" if kind == "exact" else "the output"
    if search.output is not None:
        name = set_phrase([search.output])
    proven = ""
    if much.endswith(")"):
        much, _, proven = much.rpartition(" (")
        proven = f" ({proven}"
    if is_by_degrees(search):
        by = f"by {much} on average" if search.threshold and much else "at all"
        return f"{name} {by}{proven}"
    by = f" by more than {exact_figure(float(tolerance))}" if tolerance else ""
    whom = words.whom(search.population)
    if not much or (search.found and not search.threshold):
        return f"{name}{by} for {'some' if search.found else 'any of the'} {whom}{proven}"
    more = " or more" if much.endswith(" or more") else ""
    return f"{name}{by} for {much.removesuffix(more)} of {whom}{more}{proven}"


def _figure(search: SearchResult, words: Wording) -> str:
    """What groups are compared by: `approval rates`, or a figure of an output."""
    if search.output is None:
        return words.rates if search.statistic == "rate" else "mean outputs"
    what = "rates of favourable outputs" if search.statistic == "rate" else "means"
    return f"{what} of {set_phrase([search.output])}"


def set_counts(search: SearchResult) -> str:
    """What became of all the sets: `511 combinations: 12 tested, 499 follow …`."""
    undecided = f" ({len(search.undecided):,} undecided)" if search.undecided else ""
    parts = [f"{search.sets_tested:,} tested{undecided}"]
    if search.sets_pruned:
        follow = "follows" if search.sets_pruned == 1 else "follow"
        parts.append(f"{search.sets_pruned:,} {follow} from those")
    if search.sets_open:
        parts.append(f"{search.sets_open:,} not checked")
    size = f" of up to {search.max_size}" if search.max_size < len(search.among) else ""
    among = count(len(search.among), "characteristic")
    return f"{count(search.sets_total, 'combination')}{size} of {among}: {', '.join(parts)}"


def guarantee(search: SearchResult) -> str:
    """What is certain about the list as a whole, and what was not asked for."""
    unasked = " The scores of the sets listed were not measured, only decided."
    return _certain(search) + (unasked if search.decide_only and search.found else "")


def _certain(search: SearchResult) -> str:
    if search.stopping is Stopping.PAPER:
        return "The paper's stopping rule was used: that this list is right is not certified."
    above, missed = _certain_ends(search)
    sure = f"With {percent_sure(search.confidence)} % confidence"
    if search.method == "exact":
        sure = f"{capital(_all_run(search))}:"
    if search.stopped is Ending.NOISE:
        if not search.found:
            return "Nothing is certain about any set."
        return (
            f"{sure} every set listed is {above}, all that noise may explain left out. "
            "Nothing is certain about the other sets."
        )
    if search.stopped is not Ending.DONE:
        listed = f"{sure} every set listed is {above}. " if search.found else ""
        return (
            f"{listed}Nothing is known about "
            f"the {count(search.sets_open, 'combination')} not checked: "
            f"{'it' if search.sets_open == 1 else 'any of them'} may be above"
            f"{' as well' if search.found else ' the threshold'}."
        )
    but = ", except those undecided" if search.undecided else ""
    sure = sure.replace(":", ", so")
    if not search.found:
        return f"{sure} no set {missed} is missing{but}."
    return (
        f"{sure} the whole list is right: every set listed is {above}, and no set {missed} is "
        f"missing{but} (a set that contains a listed one is not listed).{_ties(search)}"
    )


def _certain_ends(search: SearchResult) -> tuple[str, str]:
    """Where every set listed lies, and which sets can't be missing: `above 5 %`, `above 15 %`."""
    ends = least_listed(search), largest_missed(search)
    least, most = (amount(end, search) for end in ends)
    if search.method == "exact" and search.ties:
        return f"at least {least}", f"of at least {most}"
    if search.threshold == 1:
        return f"above {least}" if ends[0] < 1 else f"at {least}", f"at {most}"
    return f"above {least}", f"above {most}"


def _ties(search: SearchResult) -> str:
    """Which of the listed sets only equal the threshold; empty where none does."""
    if not search.ties:
        return ""
    sets = "; ".join(map(set_text, search.ties))
    return f" Exactly at {amount(search.threshold, search)}, a tie: {sets}."


def harms(score: Score, *, most: int, words: Wording = PLAIN) -> Iterator[str]:
    """Who loses by which change; of groups, which one is favoured."""
    if isinstance(score, CausalScore):
        for harm in score.direction[:most]:
            whom = words.tested(harm.contexts, score)
            yield f"{change_sentence(harm, words, score.output)} (counted on {whom})"
    elif isinstance(score, GroupScore):
        best, worst = score.most_favoured, score.least_favoured
        if best is not None and worst is not None and score.low > 0:
            yield (
                f"{highest_of(score)}: {words.label(best.values)} ({_rate(best, score, words)}); "
                f"lowest: {words.label(worst.values)} ({_rate(worst, score, words)})"
            )


def _rate(group: Group, score: GroupScore, words: Wording) -> str:
    """A group's rate or mean, of how many, and between which ends."""
    low, high = (rate_text(score, end) for end in (group.low, group.high))
    ends = "" if group.low == group.high else f", {low.removesuffix(' %')} – {high}"
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
    got = [
        f"{output} for {words.label({name: person[name] for name in changed})}"
        for person, output in zip(witness.inputs, told_apart(witness.outputs), strict=True)
    ]
    common = [name for name in first if name not in changed]
    both = [f"{set_phrase([name])} {set_phrase([visible(second[name])])}" for name in common]
    rest = f", + {len(common) - COMMON} more" if len(common) > COMMON else ""
    whose = " (generated, not anybody's row)" if witness.generated else ""
    return ", ".join(got) + (f"; both have {', '.join(both[:COMMON])}{rest}{whose}" if both else "")


def protected_first(result: Result) -> Callable[[SearchResult], SearchResult]:
    """Puts the found sets that are made of protected characteristics before the others."""

    def reorder(search: SearchResult) -> SearchResult:
        found = sorted(search.found, key=lambda names: protection(result, names))
        return replace(search, found=tuple(found))

    return reorder


def protection(result: Result, names: Iterable[str]) -> int:
    """0 for a set of protected characteristics, 1 if some of them are, else 2."""
    inputs = result.schema.get("inputs", {})
    tables = {name: spec for name, spec in inputs.items() if isinstance(spec, Mapping)}
    marks = [bool(tables.get(name, {}).get("protected")) for name in names]
    return 0 if all(marks) else 1 if any(marks) else 2


def scores_about(result: Result, part: SearchResult | CheckResult) -> dict[Names, Score]:
    """The scores that a search or a check is about, by their sets.

    Of several, a check has the one that decided it, and a search the most precise.
    """
    own = (part.measure, part.output)
    about = [score for score in result.scores if score.samples]
    about = [score for score in about if (score.measure, score.output) == own]
    same = [score for score in about if getattr(score, "statistic", "rate") == part.statistic]
    about = sorted(same or about, key=lambda score: score.low - score.high)  # none: an earlier file
    if isinstance(part, CheckResult):
        about.sort(key=part.rests_on)
    return {score.against: score for score in about}


def checks_headline(checks: tuple[CheckResult, ...]) -> str:
    """`1 of 3 checks is violated, 1 is undecided`."""
    verdicts = [verdict_words(each) for each in checks]
    if len(checks) == 1:
        found = "what the check found" if verdicts == ["accepted"] else "the check"
        return f"{found} {_SEVERAL[verdicts[0]][0]}"
    if len(set(verdicts)) == 1:
        total = "both checks" if len(checks) == 2 else f"all {len(checks):,} checks"
        return f"{total} {_SEVERAL[verdicts[0]][1]}"
    total = count(len(checks), "check")
    parts: list[str] = []
    for verdict, (one, many) in _SEVERAL.items():
        number = verdicts.count(verdict)
        if number and not (verdict == "passes" and parts):
            of = "" if parts else f" of {total}"
            parts.append(f"{number}{of} {one if number == 1 else many}")
    return ", ".join(parts)


def verdict_words(check: CheckResult) -> str:
    """The verdict; beside a baseline that knows it already, or left it open, that as well."""
    return f"{VERDICTS.get(check.verdict, check.verdict)}{_BESIDE.get(check.baseline or '', '')}"


def acceptance_words(check: CheckResult) -> Iterator[str]:
    """What was let pass by a check, until when, and why; one sentence for each set."""
    for each in check.accepted:
        limit = "" if each.max_score is None else f" up to {amount(each.max_score, check)}"
        yield (
            f"{set_text(each.against)} is accepted{limit} until {each.until}: "
            f"{visible(each.reason)}"
        )


VERDICTS = {"holds": "passes", "not enough evidence": "undecided"}  # others are words already
_BESIDE = {"known": ", not new", "undecided": ", not decided in the baseline"}
_SEVERAL = {  # in the order of a headline, which leaves out those that pass
    "violated": ("is violated", "are violated"),
    "violated, not decided in the baseline": (
        "is violated, and not decided in the baseline",
        "are violated, and not decided in the baseline",
    ),
    "undecided": ("is undecided", "are undecided"),
    "undecided, not decided in the baseline": (
        "is undecided, as in the baseline",
        "are undecided, as in the baseline",
    ),
    "violated, not new": ("is violated, but not newly", "are violated, but not newly"),
    "undecided, not new": (
        "is undecided, but nothing is newly above",
        "are undecided, but not newly above",
    ),
    "accepted": ("is accepted", "are accepted"),
    "passes": ("passes", "pass"),
}


def check_point(check: CheckResult) -> str:
    """The score that a verdict rests on; a dash where there is none."""
    return "–" if check.score is None else in_units(check.score, check)


def check_interval(check: CheckResult) -> str:
    """The interval that a verdict rests on; empty where there is none."""
    if any(each.code == "few-people" for each in check.reasons):
        return "not shown"
    if check.high is None:
        return ""
    if check.low is None:
        return at_most(in_units(check.high, check))
    return ends_text(check.low, check.high, lambda end: in_units(end, check))


def checks_guarantee(result: Result) -> str:
    """What is certain about the verdicts."""
    if Stopping.PAPER in result.rules:
        return "The paper's stopping rule was used: that the verdicts are right is not certified."
    open_checks = [each for each in result.checks if each.verdict == "not enough evidence"]
    if len(open_checks) == len(result.checks):
        return "No check is decided."
    but = ", except those undecided," if open_checks else ""
    run = " and ".join(ALL_RUN[each] for each in sorted(result.populations))
    text = (
        f"Every verdict{but} is exact: {run}. It is certain as far as the subject always answers "
        "the same."
    )
    if any(map(_is_sampled, result.searches)) or any(map(_is_partial, result.scores)):
        first = result.checks[0]
        text = f"Each verdict by itself is right with {confidence_text(first.confidence)}."
        if first.family not in (None, 1):
            text = f"The verdicts have {confidence_text(first.confidence, first.family)}."
    tolerant = [each for each in result.checks if each.search and each.verdict == "holds"]
    for each in tolerant:
        if each.high is not None and each.high > each.max_score:
            high = amount(each.high, each)
            return f"{text} That a search passes means: no combination is above {high}."
    return text


def _is_sampled(search: SearchResult) -> bool:
    """Whether a search did not run every input, or did not come to its end."""
    return search.method == "sampled" or search.stopped is not Ending.DONE


def _is_partial(score: Score) -> bool:
    """Whether a score was measured, but not on all inputs."""
    return score.samples > 0 and (score.method == "sampled" or not score.conclusive)
