"""Scores and results in plain words: headlines, noise, what is unsure, cost, without style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from themis.results.finding import finding, idle_favour
from themis.results.model import FOUR_FIFTHS, CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.notes import AT_ONCE, Ending
from themis.results.parts import Group, Harm, Inventory
from themis.results.withheld import is_told
from themis.settings import Stopping
from themis.show.words.headlines import differ_in_tests, rests_on_few
from themis.show.words.naming import beyond, how_much_was_run, output_words, score_words
from themis.show.words.notes import how_it_ended, quoted
from themis.show.words.values import (
    Rounding,
    at_least,
    count,
    decimals,
    figure,
    percent,
    percent_sure,
    plain_phrase,
    points,
    some_of,
    tokens_used,
    took,
    visible,
    with_followers,
)
from themis.show.words.wording import PLAIN, Wording, is_drawn

FOR_ALL = "; for all together: --family"


def how_sure_together(result: Result, *, remedy: str = FOR_ALL) -> str | None:
    """Whether the confidence is that of each score, or of all; None where there are not several."""
    sampled = [each for each in result.scores if each.method == "sampled" and each.samples]
    certified = [each for each in sampled if each.stopping is Stopping.CERTIFIED]
    if not certified or result.checks:
        return None
    family = result.family
    if family is not None and family > 1:
        lists = " and lists of sets" if result.searches else ""
        return f"All intervals{lists} hold together with {_level(certified)}."
    if len(certified) < 2:
        return None
    return f"Each interval holds with {_level(certified)}{remedy}."


def _level(scores: Iterable[Score | SearchResult]) -> str:
    return f"{percent_sure(min(each.confidence for each in scores))} % confidence"


def masked(causal: CausalScore, group: GroupScore, words: Wording = PLAIN) -> str | None:
    """The remark that equal rates hide changed decisions, where that is certain and was seen."""
    if not (is_told(causal) and is_told(group)):
        return None
    certified = causal.stopping is group.stopping is Stopping.CERTIFIED
    if not certified or group.lower_bound or causal.low <= group.high or causal.scale:
        return None
    if group.low > 0 or group.statistic != "rate":  # the rates show it, if not all of it
        return None
    if idle_favour(group):  # they hide nothing, as they tell nothing
        return None
    if not any(_offset(harm, group.high) for harm in causal.direction):
        return None
    name = plain_phrase(causal.against)
    if causal.followed:
        name += f"{with_followers(causal.against, causal.followed)},"
    is_changed = "are changed" if len(causal.against) > 1 else "is changed"
    whom = words.whom(causal.population)
    return (
        f"similar rates hide this: losses and gains offset each other. The rates differ by at most "
        f"{points(group.high, 'up')}, yet for {at_least(percent(causal.low, 'down'))} of {whom} "
        f"{output_words(causal)} changes{beyond(causal)} when {name} {is_changed}"
    )


def _offset(harm: Harm, apart: float) -> bool:
    """Whether about as many lose as gain by a change, and more in all than rates may differ."""
    less, more = sorted((harm.lost, harm.gained))
    return 2 * less >= more and less + more > apart


def seen(score: GroupScore) -> str | None:
    """Which groups the score compares, where those shown lie further apart."""
    if not differ_in_tests(score):
        return None
    return (
        f"the score compares the groups that were tested longest: {score.statistic}s from fewer "
        "tests may lie further apart by chance"
    )


def ratio_text(ratio: float, to: Rounding = "near") -> str:
    """An impact ratio with two digits, or with as many as tell it from four fifths."""
    ratio = round(ratio, 9)  # as saved, so that 0.875 is the same in every table
    text = decimals(ratio, 2, to)
    return decimals(ratio, 4, to) if text == "0.80" and ratio != FOUR_FIFTHS else text


def impact(score: GroupScore) -> str | None:
    """The impact ratio, its interval, and where it stands to the four-fifths line."""
    if score.impact_ratio is None or idle_favour(score) is not None:
        return None  # rates that tell nothing meet no rule
    text = f"impact ratio (lowest ÷ highest rate) {ratio_text(score.impact_ratio)} in this test"
    low, high = score.impact_ratio_low, score.impact_ratio_high
    if low is not None and high is not None and low != high:
        text += f" (between {ratio_text(low, 'down')} and {ratio_text(high, 'up')})"
    text += as_sample(score)
    if rests_on_few(score):
        small = "it rests on a group that is too small to judge"
        return f"{text}: {small}, so it is not held against four fifths"
    place = {
        "below": "below four fifths (0.80)",
        "above": "it reaches four fifths (0.80), a screening guideline that does not rule out "
        "adverse impact",
        "unclear": "the test can’t tell whether it reaches four fifths (0.80)",
    }
    return f"{text}: {place[score.four_fifths]}"


def as_sample(score: GroupScore) -> str:
    """`; as a sample 0.43–1.00`: what an exact ratio of given people says of others like them."""
    if score.as_sample is None:
        return ""
    low, high = score.as_sample
    return f"; as a sample {ratio_text(low, 'down')}–{ratio_text(high, 'up')}"


def method(score: Score, words: Wording = PLAIN) -> str:
    """How the score was found and what it cost."""
    cost = count(score.executions, "execution")
    if score.cache_hits and not score.executions:
        cost = "all from the cache"
    if score.method == "exact":
        noun = "input" if score.population == "inputs" else "row"
        return f"{how_much_was_run(score)} ({count(score.samples, noun)}; {cost})"
    kind = "lower bound" if score.lower_bound else "sampled"
    return f"{kind}: {_sampled(score, words)}, {cost}"


def _sampled(score: Score, words: Wording) -> str:
    """How many people were tried; of groups, how many of each."""
    tested = [group.samples for group in score.groups] if isinstance(score, GroupScore) else []
    if not tested or score.stopping is Stopping.PAPER:
        return words.tested(score.samples, score)
    most, of = words.counted(max(tested), score.population), "in"
    if is_drawn(score):
        most, of = count(max(tested), "draw"), "from"
    if min(tested) < max(tested):
        return f"{min(tested):,} to {most} {of} a group"
    return f"{most} {of} each group"


def extremes(groups: Iterable[Group], shown: int) -> tuple[list[Group], int]:
    """The groups by falling rate, the middle left out where there are too many to show."""
    ranked = sorted(groups, key=lambda group: -group.rate)
    if len(ranked) <= 2 * shown + 2:
        return ranked, 0
    return ranked[:shown] + ranked[-shown:], len(ranked) - 2 * shown


def outputs_text(inventory: Inventory) -> str:
    """What was answered, and how often: `3 different outputs in 412 answers: 'yes' 300, …`."""
    about = "" if inventory.output is None else f"{visible(inventory.output)}: "
    text = f"{about}{count(inventory.distinct, 'different output')} in "
    text += count(inventory.answers, "answer")
    if inventory.lowest is not None and inventory.highest is not None:
        ends = " to ".join(map(figure, (inventory.lowest, inventory.highest)))
        mean = "" if inventory.mean is None else f", {figure(inventory.mean)} on average"
        text += f", from {ends}{mean}"
    parts = [
        f"{quoted(each.value)} {each.count:,}{' (favourable)' if each.favourable else ''}"
        for each in inventory.counts
    ]
    if parts and inventory.others:
        parts.append(f"others {inventory.others:,}")
    return f"{text}: {', '.join(parts)}" if parts else text


def rows_used(data: Mapping[str, Any]) -> str:
    """How many rows were given, and how many of them count."""
    used = data.get("used", 0)
    text = f"{visible(data.get('file', 'given rows'))}: {count(data.get('rows', used), 'row')}"
    if data.get("dropped"):
        verb = "does" if data["dropped"] == 1 else "do"
        text += f", {data['dropped']:,} {verb} not fit, {used:,} used"
    if data.get("weightless"):
        text += f", {data['weightless']:,} of weight 0"
    if data.get("distinct", used) < used:
        text += f", {data['distinct']:,} of them different"
    return f"{text}, weighted by {visible(data['weights'])}" if "weights" in data else text


UNSAID = (
    "the input and what the subject said may hold values of people: --rows shows them "
    "(in Python, show_rows=True)"
)


NOT_SENT = "not sent"  # the kind of failure of what a service was not asked any more


def failure_text(kind: str, failure: Mapping[str, Any]) -> str:
    """How often an execution failed in this way, with an example, unless it is withheld."""
    times = f"{visible(kind)} {count(failure['count'], 'time')}"
    if not failure["input"]:
        return f"{times}; {UNSAID}"
    if kind == NOT_SENT:
        return f"{count(failure['count'], 'input')} not sent, since {visible(failure['message'])}"
    person = ", ".join(f"{visible(n)} {visible(v)}" for n, v in failure["input"].items())
    return f"{times}, e.g. {visible(failure['message'])} for the input: {person}"


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
    reasons = {
        "the run ended early": early,
        how_it_ended(Ending.NOISE): noisy,
    }
    for reason, unsure in reasons.items():
        if unsure:
            yield f"{unsure} of {total}: the interval is wider than asked, because {reason}"
    for stopped in (Ending.BUDGET, Ending.INTERRUPTED):
        missing = [each for each in scores if not each.samples and each.stopped is stopped]
        if missing:
            reason = f"because {how_it_ended(stopped)}"
            names = some_of([*map(score_words, missing)], 8, between="; ", more="; {} more")
            yield f"{len(missing)} of {total}: not measured, {reason}: {names}"


def hidden_changes(scores: Sequence[Score], words: Wording = PLAIN) -> str | None:
    """What only both scores of a set show: equal rates that hide changed decisions."""
    causal = [each for each in scores if isinstance(each, CausalScore)]
    group = [each for each in scores if isinstance(each, GroupScore)]
    remarks = (
        masked(one, other, words)
        for one in causal
        for other in group
        if (one.output, one.population) == (other.output, other.population)
    )
    return next(filter(None, remarks), None)


def by_set(scores: Sequence[Score]) -> dict[tuple[str, ...], list[Score]]:
    """The scores of each set, in the order of asking."""
    sets: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        sets.setdefault(score.against, []).append(score)
    return sets


def lesser(scores: Sequence[Score]) -> list[Score]:
    """What rows show among themselves, of sets whose counterfactuals were generated as well."""
    whole = {each.against for each in scores if _is_causal(each, "generated")}
    return [each for each in scores if _is_causal(each, "within") and each.against in whole]


def _is_causal(score: Score, counterfactuals: str) -> bool:
    return score.measure == "causal" and score.counterfactuals == counterfactuals


PURPOSES = {
    "sampling": "sampling",
    "noise": "repeated to check consistency",
    "explanations": "explanations",
    "isolating": "given again after failures",
}


def account_text(result: Result) -> str:
    """All executions and what for: `686 executions: 566 sampling, 120 repeated to check …`."""
    account = result.spent
    text = count(account.total, "execution")
    parts = [f"{n:,} {words}" for name, words in PURPOSES.items() if (n := getattr(account, name))]
    if parts and account.total > account.sampling:
        text += f": {', '.join(parts)}"
    return text


def cost_text(result: Result) -> str:
    """What the result cost: `1,404 executions · 0.8 s · seed 42`."""
    return " · ".join([account_text(result), *circumstances(result)])


def confidence_briefly(result: Result) -> Iterator[str]:
    """How sure the intervals are, in a few words; nothing where nothing was measured."""
    parts: list[Score | SearchResult] = [*result.scores, *result.searches]
    known = [each for each in parts if isinstance(each, SearchResult) or not _is_unread(each)]
    sampled = [each for each in known if each.method == "sampled" and _is_measured(each)]
    if any(each.stopping is Stopping.PAPER for each in sampled):
        yield "not certified: the paper’s stopping rule"
    elif sampled:
        each = "" if len(sampled) == 1 else " each"
        together = " for all together" if (result.family or 1) > 1 else each
        yield f"{_level(sampled)}{together}"
    elif known and all(_is_measured(each) and each.conclusive for each in known):
        of_people = all(each.population != "inputs" for each in known)
        yield "exact for these rows, no statement about others" if of_people else "exact"


def _is_unread(score: Score) -> bool:
    return finding(score).kind == "unread"


def _is_measured(part: Score | SearchResult) -> bool:
    return isinstance(part, SearchResult) or part.samples > 0


NARROWER = 5.0  # times as narrow, and so about 25 times the runs


def narrower(result: Result) -> Iterator[str]:
    """How to have narrower intervals, where some are sampled as precisely as asked."""
    errors = [
        each.error
        for each in result.scores
        if each.method == "sampled" and each.samples and each.conclusive
    ]
    if errors:
        yield f"narrower: --error {max(errors) / NARROWER:.1g}"


def precision_chosen(result: Result) -> str | None:
    """How precise scores are, where that was chosen by what is cheap."""
    return next((f"{note}." for note in result.notes if note.code == AT_ONCE), None)


def cost_briefly(result: Result) -> Iterator[str]:
    """What it took: `1,199 runs`, `0.4 s`, `seed 12`."""
    yield count(result.spent.total, "run")
    yield from circumstances(result, brief=True)


def circumstances(result: Result, *, brief: bool = False) -> Iterator[str]:
    """What belongs to the number of executions: what was known before, the time, the seed."""
    if result.cache_hits and not (brief and result.spent.total):
        yield f"{result.cache_hits:,} answered from the cache"
    yield from tokens_used(result.timing)
    if "seconds" in result.timing:
        yield took(result.timing)
    yield f"seed {result.seed}"
