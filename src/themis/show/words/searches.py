"""Searches, what they decided of each set, and verdicts of checks, in plain words."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from themis.results.finding import largest_missed, least_listed
from themis.results.model import (
    CheckResult,
    GroupScore,
    Result,
    Score,
    SearchResult,
    is_by_degrees,
)
from themis.results.notes import Ending
from themis.results.parts import TestedSet
from themis.results.withheld import whole_of, width, withheld
from themis.settings import Stopping
from themis.show.words.headlines import capital, idle_words, rests_on_few
from themis.show.words.naming import ALL_RUN, amount, in_units
from themis.show.words.notes import how_it_ended
from themis.show.words.values import (
    NAMED,
    at_most,
    confidence_text,
    count,
    ends_text,
    exact_figure,
    percent_sure,
    plain_phrase,
    set_phrase,
    set_text,
    visible,
)
from themis.show.words.wording import PLAIN, Wording

FEW_NAMED = 3  # sets that rest on groups of few people

Names = tuple[str, ...]
TEMPLATES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("searches.toml").read_text(encoding="utf-8")
)


def sets_noun(search: SearchResult) -> str:
    """What found sets are called: `minimal set`, or `set`."""
    return f"{_minimal(search)}set"


def _minimal(search: SearchResult) -> str:
    """`minimal `, unless a part of a found set could not be decided."""
    parts = [set(names) for names in search.undecided]
    open_parts = any(part < set(names) for names in search.found for part in parts)
    return "" if open_parts else "minimal "


def search_headline(search: SearchResult, words: Wording = PLAIN, names: str = "") -> str:
    """What is proven: how much the found combinations do, or how much none of all does.

    `names` are those of the found ones, where they are to be said.
    """
    if search_is_idle(search, words):
        about = " about any combination"
        return capital(idle_words("no", _figure(search, words), search.output, words, about))
    behind = (f": {names}" if names else "") + _few(search, words)
    if search.stopped is not Ending.DONE and search.stopped is not Ending.NOISE:
        so_far = f"{_among(search, words)}the {search.measure} search found nothing so far"
        so_far = _sentence(search, words) if search.found else so_far
        left = left_open(search) or "all combinations are decided"
        return f"Not finished ({how_it_ended(search.stopped)}): {so_far}{behind}; {left}"
    found = _sentence(search, words)
    noise = f"; {how_it_ended(search.stopped)}" if search.stopped is Ending.NOISE else ""
    undecided = count(len(search.undecided), "combination")
    if search.undecided and search.found:
        return capital(f"{found}{behind}; {undecided} undecided{noise}")
    start = f"{undecided} undecided; " if search.undecided else ""
    return capital(f"{start}{found}{behind}{noise}")


def left_open(search: SearchResult) -> str:
    """How many combinations have no answer: `2 combinations not checked`."""
    left = {"not checked": search.sets_open, "undecided": len(search.undecided)}
    return ", ".join(f"{count(n, 'combination')} {word}" for word, n in left.items() if n)


def search_is_idle(search: SearchResult, words: Wording) -> bool:
    """Whether groups were searched that are apart, and no output was favourable."""
    of_rates = search.measure == "group" and search.statistic == "rate" and not search.found
    return of_rates and (search.output in words.remedies or None in words.remedies)


def _few(search: SearchResult, words: Wording) -> str:
    """Of which sets the largest difference is that of groups of too few people to judge."""
    few = [set_phrase(each.against) for each in search.minimal_sets if _rests(whole_of(each))]
    if not few:
        return ""
    shown = ", ".join(few[:FEW_NAMED]) + (", …" if len(few) > FEW_NAMED else "")
    whose = f"groups of too few {words.people} to judge"
    return f"; the largest difference by {shown} is that of {whose}"


def _rests(score: Score) -> bool:
    return isinstance(score, GroupScore) and bool(score.groups) and rests_on_few(score)


def _sentence(search: SearchResult, words: Wording) -> str:
    """What is proven of the found sets; without any how much none of all does."""
    kind = "none" if search.stopped is not Ending.NOISE else "noise"
    found, other = len(search.found), "other " * bool(search.undecided and kind == "none")
    some, (limit, more) = count(found, f"{_minimal(search)}combination"), _reach(search)
    combinations = some if found else f"no {other}combination"
    if not found:
        limit, more = _limit(search, largest_missed(search) if kind == "none" else None), ""
    is_said = bool(limit) and (bool(search.threshold) or not found)
    return TEMPLATES["found" if found else kind][search.measure].format(
        which=_searched(search, words, combinations),
        change="change" if found > 1 else "changes",
        have="have" if found > 1 else "has",
        effect=_effect(search, words, limit, more),
        what=_what(search),
        by=f" by {limit}{more}" if is_said else "",
        figure=_figure(search, words),
        proven=_proven(search) if found else _confidence(search),
    )


def _limit(search: SearchResult, most: float | None) -> str:
    """`more than 20 %`, which no set reaches; empty where none changes anything."""
    if most is None:
        return f"more than {amount(search.threshold, search)}" if search.threshold else ""
    return f"{'as much as' if most == 1 else 'more than'} {amount(most, search)}" if most else ""


def _searched(search: SearchResult, words: Wording, combinations: str) -> str:
    """Combinations of what was searched: `no combination of characteristics`, `among sex and …`."""
    among, size = _among(search, words), ""
    if search.max_size < len(search.among):
        size = f" of up to {count(search.max_size, 'characteristic')}"
    return f"{among}{combinations}{size or ('' if among else ' of characteristics')}"


def _among(search: SearchResult, words: Wording) -> str:
    """Which characteristics were searched: `among sex and race, `; nothing where all were."""
    if words.inputs and words.inputs <= set(search.among):
        return ""
    return (
        f"among {_first(search.among)}, "
        if search.among[1:]
        else f"for {_first(search.among)} alone, "
    )


def _first(names: Sequence[str]) -> str:
    """Characteristics in a sentence, of many the first: `race, sex and 3 more`."""
    more = len(names) - NAMED
    return plain_phrase([*names[:NAMED], f"{more:,} more"] if more > 0 else names)


def _confidence(search: SearchResult) -> str:
    if search.method == "exact":
        exact = "" if search.stopped is Ending.NOISE else "exact: "  # or not, next time
        return f"{exact}{ALL_RUN[search.population]}"
    if search.stopping is Stopping.PAPER:
        return "claimed by the paper's rule, not certified"
    return confidence_text(search.confidence, search.family)


def _proven(search: SearchResult) -> str:
    """What is certain of each set listed: `more than 10 %, 99 % confidence`."""
    if search.method == "exact" or search.threshold in (0, 1):  # what is proven was said
        return _confidence(search)
    each = "each " if len(search.found) > 1 else ""
    return f"{each}more than {amount(least_listed(search), search)}, {_confidence(search)}"


def _reach(search: SearchResult) -> tuple[str, str]:
    """What the scores of the found sets reach, as far as they were told from the threshold."""
    limit = amount(search.threshold, search)
    if search.threshold == 1:
        least = least_listed(search)
        return (limit if least == 1 else f"at least {amount(least, search)}"), ""
    if search.method == "exact":
        return f"{'at least' if search.ties else 'more than'} {limit}", ""
    return f"about {limit}", " or more"


def _effect(search: SearchResult, words: Wording, much: str, more: str) -> str:
    """What a set changes, for whom or by how much: `the decision for more than 10 % of …`."""
    tolerance, name = search.distance.partition(" ")[2], _what(search)
    if is_by_degrees(search):
        by = f"by {much}{more} on average" if search.threshold and much else "at all"
        return f"{name} {by}"
    by = f" by more than {exact_figure(float(tolerance))}" if tolerance else ""
    whom = words.whom(search.population)
    if not much or (search.found and not search.threshold):
        return f"{name}{by} for {'some' if search.found else 'any of the'} {whom}"
    return f"{name}{by} for {much} of {whom}{more}"


def _what(search: SearchResult) -> str:
    """What a set changes: `the decision`, `the output`, or one by its name."""
    if search.output is not None:
        return set_phrase([search.output])
    return "the decision" if search.distance.partition(" ")[0] == "exact" else "the output"


def _figure(search: SearchResult, words: Wording) -> str:
    """What groups are compared by: `approval rates`, or a figure of an output."""
    if search.output is None:
        return words.rates if search.statistic == "rate" else "mean outputs"
    what = "rates of favourable outputs" if search.statistic == "rate" else "means"
    return f"{what} of {set_phrase([search.output])}"


def set_counts(search: SearchResult, words: Wording = PLAIN) -> str:
    """What became of all the sets: `511 combinations: 12 tested, 499 follow …`.

    And which characteristics were not searched, where some were not.
    """
    undecided = f" ({len(search.undecided):,} undecided)" if search.undecided else ""
    parts = [f"{search.sets_tested:,} tested{undecided}"]
    if search.sets_pruned:
        follow = "follows" if search.sets_pruned == 1 else "follow"
        parts.append(f"{search.sets_pruned:,} {follow} from those")
    if search.sets_open:
        parts.append(f"{search.sets_open:,} not checked")
    size = f" of up to {search.max_size}" if search.max_size < len(search.among) else ""
    among = count(len(search.among), "characteristic")
    text = f"{count(search.sets_total, 'combination')}{size} of {among}: {', '.join(parts)}"
    if left := sorted(words.inputs - set(search.among)):
        text += f"; not searched: {_first(left)}"
    return text


def guarantee(search: SearchResult) -> str:
    """What is certain about the list as a whole, and what was not asked for."""
    unasked = " The scores of the sets listed were not measured, only decided."
    return _certain(search) + (unasked if search.decide_only and search.found else "")


def _certain(search: SearchResult) -> str:
    above, missed = _certain_ends(search)
    sure = f"With {percent_sure(search.confidence)} % confidence"
    if search.method == "exact":
        sure = f"{capital(ALL_RUN[search.population])}:"
    kind = "ended"
    if search.stopping is Stopping.PAPER:
        return TEMPLATES["certain"]["paper"]
    if search.stopped in (Ending.NOISE, Ending.DONE):
        kind = search.stopped.value
    elif search.sets_open:
        kind = "open"
    return TEMPLATES["certain"][f"{kind}{'-found' * bool(search.found)}"].format(
        sure=sure,
        so_sure=sure.replace(":", ", so"),
        above=above,
        missed=missed,
        open=count(search.sets_open, "combination"),
        any="it" if search.sets_open == 1 else "any of them",
        but=", except those undecided" if search.undecided else "",
        ties=_ties(search),
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
    about = [score for score in about if getattr(score, "statistic", "rate") == part.statistic]
    about.sort(key=width, reverse=True)
    if isinstance(part, CheckResult):
        about.sort(key=part.rests_on)
    return {score.against: score for score in about}


def checks_headline(checks: tuple[CheckResult, ...]) -> str:
    """`1 of 3 checks is violated, 1 is undecided`."""
    verdicts = [verdict_words(each) for each in checks]
    if len(checks) == 1:
        found = "what the check found" if verdicts == ["accepted"] else "the check"
        return f"{found} {_of_several(verdicts[0], 1)}"
    if len(set(verdicts)) == 1:
        total = "both checks" if len(checks) == 2 else f"all {len(checks):,} checks"
        return f"{total} {_of_several(verdicts[0], 2)}"
    total = count(len(checks), "check")
    parts: list[str] = []
    for verdict in _SEVERAL:
        number = verdicts.count(verdict)
        if number and not (verdict == "passes" and parts):
            of = "" if parts else f" of {total}"
            parts.append(f"{number}{of} {_of_several(verdict, number)}")
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
_SEVERAL = {  # in the order of a headline, which leaves out those that pass: of one, of several
    "violated": "is violated",
    "violated, not decided in the baseline": "is violated, and not decided in the baseline",
    "undecided": "is undecided",
    "undecided, not decided in the baseline": "is undecided, as in the baseline",
    "violated, not new": "is violated, but not newly",
    "undecided, not new": "is undecided, but nothing is newly above",
    "accepted": "is accepted",
    "passes": "passes",
}


def _of_several(verdict: str, number: int) -> str:
    """`is violated`, `are violated`, `pass`."""
    text = _SEVERAL[verdict]
    if number == 1:
        return text
    return text.replace("is ", "are ", 1) if text.startswith("is ") else "pass"


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
        return at_most(in_units(check.high, check, "up"))
    return ends_text(check.low, check.high, lambda end, to: in_units(end, check, to))


def checks_guarantee(result: Result) -> str:
    """What is certain about the verdicts."""
    if Stopping.PAPER in result.rules:
        return "The paper's stopping rule was used: that the verdicts are right is not certified."
    if all(each.verdict == "not enough evidence" for each in result.checks):
        return "No check is decided."
    text = "Decided checks are exact, as far as the subject always answers the same."
    if any(map(_is_sampled, result.searches)) or any(map(_is_partial, result.scores)):
        first = result.checks[0]
        alone = " each" if first.family in (None, 1) else ""
        text = f"Decided checks: {confidence_text(first.confidence, first.family)}{alone}."
    for each in result.checks:
        tolerant = each.search and each.verdict == "holds"
        if tolerant and each.high is not None and each.high > each.max_score:
            high = amount(each.high, each)
            none = "no combination that was searched"
            return f"{text} That a search passes means: {none} is above {high}."
    return text


def _is_sampled(search: SearchResult) -> bool:
    """Whether a search did not run every input, or did not come to its end."""
    return search.method == "sampled" or search.stopped is not Ending.DONE


def _is_partial(score: Score) -> bool:
    """Whether a score was measured, but not on all inputs."""
    return score.samples > 0 and (score.method == "sampled" or not score.conclusive)


def listed_words(search: SearchResult, names: tuple[str, ...]) -> str:
    """Where the score of a found set lies, and no more than is proven: `above 10 %`."""
    if names in search.ties:
        return f"exactly {amount(search.threshold, search)}"
    least = least_listed(search)
    return f"{'at' if least == 1 else 'above'} {amount(least, search)}"


def unlisted_words(search: SearchResult) -> str:
    """Where the score of a set lies that was decided not to be: `not above 20 %`.

    A sample proves threshold + error; where every input was run, or the paper's rule compares what
    it estimated, it is below the threshold itself.
    """
    most = largest_missed(search)
    if search.stopping is Stopping.PAPER:
        return f"below {amount(search.threshold, search)}"
    is_less = most == 1 or (search.method == "exact" and search.threshold > 0)
    return f"{'below' if is_less else 'not above'} {amount(most, search)}"


def decision_words(search: SearchResult, tested: TestedSet) -> str:
    """What was decided of a set: `above 5 %`, `not above 15 %`, `undecided`."""
    threshold = amount(search.threshold, search)
    if tested.is_tie:
        return f"exactly {threshold}"
    if tested.decision == "above":
        if tested.is_exact or search.stopping is Stopping.PAPER:
            return f"above {threshold}"
        return listed_words(search, tested.against)
    if tested.decision == "below":
        exactly = tested.is_exact and search.threshold > 0
        return f"below {threshold}" if exactly else unlisted_words(search)
    return "undecided"


def why(search: SearchResult, *against: str) -> str:
    """Why a set is in or out of the answer."""
    names = {name for part in against for name in part.split(",")}
    for each in withheld(search).tested:
        if set(each.against) == names:
            return f"{decision_words(search, each)}: {each.reason}"
    for found in search.found:
        if names > set(found):
            is_at = "a tie" if found in search.ties else listed_words(search, found)
            return f"follows: it contains {','.join(found)}, which is {is_at}"
    return "not searched" if not names <= set(search.among) else "open: the budget ended before"
