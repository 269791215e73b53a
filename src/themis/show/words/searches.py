"""Searches and verdicts in plain words: headlines, counts, guarantees, as text without style."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from themis.results.model import (
    CausalScore,
    CheckResult,
    GroupScore,
    Measure,
    Result,
    Score,
    SearchResult,
)
from themis.results.notes import Ending
from themis.results.parts import Group, Witness
from themis.results.verdicts import largest_missed, least_listed
from themis.settings import Stopping
from themis.show.words.explanations import change_sentence
from themis.show.words.notes import how_it_ended
from themis.show.words.values import (
    confidence_text,
    count,
    cut_text,
    hundredths,
    label,
    percent,
    set_phrase,
    visible,
)

COMMON = 8  # characteristics named in which two people agree

Key = tuple[str, tuple[str, ...]]


def set_text(against: Iterable[str]) -> str:
    """A set in a table: `race, sex`; it may be wrapped at the spaces."""
    return ", ".join(set_phrase([name]) for name in against)


def amount(share: float, measure: Measure) -> str:
    """A limit for reading: `10 %` of people, or `10 points` between groups."""
    return f"{100 * share:.4g} {'%' if measure == 'causal' else 'points'}"


def sets_noun(search: SearchResult) -> str:
    """What found sets are called: minimal, unless a part of one could not be decided."""
    parts = [set(names) for names in search.undecided]
    open_parts = any(part < set(names) for names in search.found for part in parts)
    return "set" if open_parts else "minimal set"


def search_headline(search: SearchResult) -> str:
    """How many minimal sets there are, and whether that is all of them."""
    found = len(search.found)
    sets = count(found, sets_noun(search)) if found else "no set of characteristics was found that"
    if search.measure == "causal":
        does = "change" if found > 1 else "changes"
        text = f"{sets} {does} {_effect(search)}"
    else:
        has = "have" if found > 1 else "has"
        apart = f"{_reach(search)} apart" if search.threshold else "that differ"
        text = f"{sets} {has} groups {apart} in {_figure(search)}"
    return f"{text}{_so_far(search)}"


def _reach(search: SearchResult) -> str:
    """What the scores of the found sets reach, and no more than is certain at 100 %."""
    limit = amount(search.threshold, search.measure)
    if search.threshold == 1:
        least = least_listed(search) if search.found else 1.0
        return limit if least == 1 else f"at least {amount(least, search.measure)}"
    return f"at least {limit}" if search.ties else f"more than {limit}"


def listed_words(search: SearchResult, names: tuple[str, ...]) -> str:
    """Where the score of a found set lies: `above 10 %`."""
    limit = amount(search.threshold, search.measure)
    if names in search.ties:
        return f"exactly {limit}"
    return _reach(search) if search.threshold == 1 else f"above {limit}"


def _effect(search: SearchResult) -> str:
    """What a set changes, for whom or by how much: `the decision for more than 10 % of people`."""
    kind, _, tolerance = search.distance.partition(" ")
    name = "the decision" if kind == "exact" else "the output"
    if search.output is not None:
        name = set_phrase([search.output])
    if kind != "exact" and not tolerance:
        return f"{name} by {_reach(search)} on average" if search.threshold else f"{name} at all"
    by = f" by more than {tolerance}" if tolerance else ""
    if not search.threshold:
        return f"{name}{by} for {'some people' if search.found else 'anyone'}"
    return f"{name}{by} for {_reach(search)} of people"


def _figure(search: SearchResult) -> str:
    """What groups are compared by: `favourable decisions`, or a figure of an output."""
    if search.output is None:
        return "favourable decisions" if search.statistic == "rate" else "the mean output"
    what = "favourable values" if search.statistic == "rate" else "the mean"
    return f"{what} of {set_phrase([search.output])}"


def _so_far(search: SearchResult) -> str:
    if search.stopped is Ending.NOISE:
        return f"; {how_it_ended(search.stopped)}"
    if search.stopped is not Ending.DONE:
        return f", so far: {how_it_ended(search.stopped)}"
    if search.undecided:
        return f"; {count(len(search.undecided), 'set')} could not be decided"
    return ""


def why(search: SearchResult, *against: str) -> str:
    """Why a set is in or out of the answer."""
    names = {name for part in against for name in part.split(",")}
    for each in search.tested:
        if set(each.against) == names:
            return f"{each.decision}: {each.reason}"
    for found in search.found:
        if names > set(found):
            is_at = "a tie" if found in search.ties else "above"
            return f"pruned: it contains {','.join(found)}, which is {is_at}"
    return "not searched" if not names <= set(search.among) else "open: the budget ended before"


def set_counts(search: SearchResult) -> str:
    """What became of all the sets: `511 sets: 12 tested, 499 pruned`."""
    undecided = f" ({len(search.undecided):,} undecided)" if search.undecided else ""
    parts = [f"{search.sets_tested:,} tested{undecided}"]
    if search.sets_pruned:
        parts.append(f"{search.sets_pruned:,} pruned as implied by those")
    if search.sets_open:
        parts.append(f"{search.sets_open:,} open")
    size = f" of up to {search.max_size}" if search.max_size < len(search.among) else ""
    among = count(len(search.among), "characteristic")
    return f"{count(search.sets_total, 'set')}{size} of {among}: {', '.join(parts)}"


def guarantee(search: SearchResult) -> str:
    """What is certain about the list as a whole, and what was not asked for."""
    unasked = " The scores of the sets listed were not measured, only decided."
    return _certain(search) + (unasked if search.decide_only and search.found else "")


def _certain(search: SearchResult) -> str:
    if search.stopping is Stopping.PAPER:
        return "The paper's stopping rule was used: that this list is right is not certified."
    above, missed = _certain_ends(search)
    sure = f"With {100 * search.confidence:.10g} % confidence"
    if search.method == "exact":
        sure = "Every input was run:"
    if search.stopped is Ending.NOISE:
        return (
            f"{sure} every set listed is {above}, all that noise may explain left out. "
            "Nothing is certain about the other sets."
        )
    if search.stopped is not Ending.DONE:
        return (
            f"{sure} every set listed is {above}. Nothing is known about "
            f"the {count(search.sets_open, 'open set')}: "
            f"{'it' if search.sets_open == 1 else 'any of them'} may be above as well."
        )
    but = ", except those undecided" if search.undecided else ""
    return (
        f"{sure} the whole list is right: every set listed is {above}, and no set {missed} is "
        f"missing{but} (a set that contains a listed one is not listed).{_ties(search)}"
    )


def _certain_ends(search: SearchResult) -> tuple[str, str]:
    """Where every set listed lies, and which sets can't be missing: `above 5 %`, `above 15 %`."""
    ends = least_listed(search), largest_missed(search)
    least, most = (amount(end, search.measure) for end in ends)
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
    return f" Exactly at {amount(search.threshold, search.measure)}, a tie: {sets}."


def harms(score: Score, *, most: int) -> Iterator[str]:
    """Who loses by which change; of groups, which one is favoured."""
    if isinstance(score, CausalScore):
        for harm in score.direction[:most]:
            whom = count(harm.contexts, "person", "people")
            yield f"{change_sentence(harm)} (counted on {whom})"
    elif isinstance(score, GroupScore):
        best, worst = score.most_favoured, score.least_favoured
        if best is not None and worst is not None and score.low > 0:
            yield (
                f"most favoured: {label(best.values)} ({_rate(best)}); least favoured: "
                f"{label(worst.values)} ({_rate(worst)})"
            )


def _rate(group: Group) -> str:
    """A group's rate, of how many, and between which ends."""
    ends = "" if group.low == group.high else f", {hundredths(group.low)} – {percent(group.high)}"
    return f"{percent(group.rate)} of {count(group.samples, 'person', 'people')}{ends}"


def telling_witness(score: Score) -> Witness | None:
    """The pair of people that differs in most of the set."""
    witnesses = score.witnesses if isinstance(score, CausalScore) else ()
    return max(witnesses, key=lambda each: len(each.differs_in), default=None)


def example(score: Score) -> str | None:
    """One pair of people who differ only in the set, in a sentence."""
    witness = telling_witness(score)
    if witness is None:
        return None
    first, second = witness.inputs
    changed = witness.differs_in
    got = [
        f"{label({name: person[name] for name in changed})} gets {cut_text(visible(output))}"
        for person, output in zip(witness.inputs, witness.outputs, strict=True)
    ]
    common = [name for name in first if name not in changed]
    both = [f"{set_phrase([name])} {set_phrase([visible(second[name])])}" for name in common]
    rest = f", + {len(common) - COMMON} more" if len(common) > COMMON else ""
    return ", ".join(got) + (f"; both have {', '.join(both[:COMMON])}{rest}" if both else "")


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


def scores_by_set(result: Result) -> dict[Key, Score]:
    """The scores of a result by measure and set; of several, the most precise one."""
    measured = [score for score in result.scores if score.samples]
    widest_first = sorted(measured, key=lambda score: score.low - score.high)
    return {(score.measure, score.against): score for score in widest_first}


def checks_headline(checks: tuple[CheckResult, ...]) -> str:
    """`1 of 3 checks is violated, 1 lacks evidence`."""
    verdicts = [verdict_words(each) for each in checks]
    if len(checks) == 1:
        return _ONE[verdicts[0]]
    total = count(len(checks), "check")
    parts: list[str] = []
    for verdict, (one, many) in _SEVERAL.items():
        number = verdicts.count(verdict)
        if number and not (verdict == "holds" and parts):
            of = "" if parts else f" of {total}"
            parts.append(f"{number}{of} {one if number == 1 else many}")
    return f"all {total} hold" if set(verdicts) == {"holds"} else ", ".join(parts)


def verdict_words(check: CheckResult) -> str:
    """The verdict; beside a baseline that knows it already, or left it open, that as well."""
    return f"{check.verdict}{_BESIDE.get(check.baseline or '', '')}"


def acceptance_words(check: CheckResult) -> Iterator[str]:
    """What was let pass by a check, until when, and why; one sentence for each set."""
    for each in check.accepted:
        limit = "" if each.max_score is None else f" up to {amount(each.max_score, check.measure)}"
        yield (
            f"{set_text(each.against)} is accepted{limit} until {each.until}: "
            f"{visible(each.reason)}"
        )


_BESIDE = {"known": ", not new", "undecided": ", not decided in the baseline"}
_ONE = {
    "violated": "the check is violated",
    "violated, not decided in the baseline": "the check is violated, and the baseline did not "
    "decide it",
    "not enough evidence, not decided in the baseline": "the check lacks evidence, as the baseline "
    "did",
    "not enough evidence": "the check lacks evidence",
    "violated, not new": "the check is violated, but not newly",
    "not enough evidence, not new": "the check lacks evidence, but nothing is newly above",
    "accepted": "what the check found is accepted",
    "holds": "the check holds",
}
_SEVERAL = {  # in the order of a headline, which leaves out those that hold
    "violated": ("is violated", "are violated"),
    "violated, not decided in the baseline": (
        "is violated, and not decided in the baseline",
        "are violated, and not decided in the baseline",
    ),
    "not enough evidence": ("lacks evidence", "lack evidence"),
    "not enough evidence, not decided in the baseline": (
        "lacks evidence, as the baseline did",
        "lack evidence, as the baseline did",
    ),
    "violated, not new": ("is violated, but not newly", "are violated, but not newly"),
    "not enough evidence, not new": (
        "lacks evidence, but is not newly above",
        "lack evidence, but are not newly above",
    ),
    "accepted": ("is accepted", "are accepted"),
    "holds": ("holds", "hold"),
}


def check_interval(check: CheckResult) -> str:
    """The interval that a verdict rests on; empty where there is none."""
    if check.high is None:
        return ""
    if check.low is None:
        return f"at most {percent(check.high)}"
    if check.low == check.high:
        return "exact"
    return f"{percent(check.low)} – {percent(check.high)}"


def checks_guarantee(result: Result) -> str:
    """What is certain about the verdicts."""
    if Stopping.PAPER in result.rules:
        return "The paper's stopping rule was used: that the verdicts are right is not certified."
    open_checks = [each for each in result.checks if each.verdict == "not enough evidence"]
    if len(open_checks) == len(result.checks):
        return "No verdict is certain: no check is decided."
    but = ", but for those that lack evidence," if open_checks else ""
    text = f"Every verdict{but} is exact: all inputs were run."
    if result.searches or any(map(_is_partial, result.scores)):
        first = result.checks[0]
        text = f"Each verdict by itself is right with {100 * first.confidence:.10g} % confidence."
        if first.family not in (None, 1):
            text = f"The verdicts have {confidence_text(first.confidence, first.family)}."
    tolerant = [each for each in result.checks if each.search and each.verdict == "holds"]
    for each in tolerant:
        if each.high is not None and each.high > each.max_score:
            high = amount(each.high, each.measure)
            return f"{text} That a search holds means: no set is above {high}."
    return text


def _is_partial(score: Score) -> bool:
    """Whether a score was measured, but not on all inputs."""
    return score.samples > 0 and (score.method == "sampled" or not score.conclusive)
