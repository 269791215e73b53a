"""Each score as one sentence that is true when it is read alone: what was observed, how sure.

The sentence of each kind of finding is in headlines.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from themis.inputs.columns import SHARED
from themis.results.finding import finding, idle_favour, is_settled
from themis.results.model import (
    ROUNDING,
    CausalScore,
    ExcessScore,
    GroupScore,
    Score,
    is_by_degrees,
)
from themis.results.parts import Group, Share
from themis.results.withheld import hidden_groups, is_told
from themis.show.words.naming import (
    apart_text,
    beyond,
    certainty,
    ends_of,
    how,
    in_units,
    output_name,
    output_noun,
    output_words,
    plain_set,
    score_words,
    sure,
    tolerance,
    where,
)
from themis.show.words.notes import how_it_ended
from themis.show.words.values import (
    Rounding,
    at_least,
    at_most,
    cut_name,
    ends_text,
    percent,
    plain_phrase,
    points,
    set_with_followers,
    visible,
    with_followers,
)
from themis.show.words.wording import PLAIN, Wording

TEMPLATES: dict[str, dict[str, tuple[str, str]]] = tomllib.loads(
    Path(__file__).with_name("headlines.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Headline:
    """What a score claims, and how sure that is; neither ends in a full stop."""

    claim: str
    sure: str = ""

    def __str__(self) -> str:
        return f"{self.claim} ({self.sure})" if self.sure else self.claim


def said(score: Score, words: Wording = PLAIN) -> Headline:
    """The score as a sentence that says what is measured, and what stands behind its number."""
    kind, told, parts = finding(score).kind, is_told(score), _parts(score, words)
    remark = ""
    if kind in TEMPLATES["every"]:
        claim, behind = TEMPLATES["every"][kind]
        behind = behind if told else ""
    else:
        table = TEMPLATES[parts.table]
        claim, behind = table.get(kind) or table["others"]
        remark = few_remark(score, words) if told else ""
    if kind in ("differs", "least") and isinstance(score, CausalScore) and score.placebo and told:
        remark += f"; noise alone may explain up to {percent(score.placebo.high, 'up')}"
    if any(note.code == "equal-but-for-spelling" for note in score.notes):
        remark += "; texts that differ only in spelling count as the same"
    return Headline(capital(f"{claim.format_map(parts)}{remark}"), behind.format_map(parts))


def headline(score: Score, words: Wording = PLAIN) -> str:
    """The same as one sentence."""
    return str(said(score, words))


def headline_parts(score: Score, words: Wording = PLAIN) -> tuple[str, str]:
    """The claim of a score, and what stands behind it as a sentence of its own, if anything."""
    text = said(score, words)
    return text.claim, f"{capital(text.sure)}." if text.sure else ""


def score_text(score: Score) -> str:
    """How large it is: `12.9 %`, `5.6 points`; `not shown` where that would tell of few people."""
    return in_units(score.score, score) if is_told(score) else "not shown"


def point(score: Score) -> str:
    """The score in a table, which is what was observed; of a lower bound, the bound."""
    if not is_told(score):
        return "–"
    if score.lower_bound:
        return f"≥ {in_units(score.low, score, 'down')}"
    return in_units(score.score, score)


def interval(score: Score) -> str:
    """The ends of a score in a table, their unit once: `1.4 – 11.4 %`, `exact`."""
    if not is_told(score):
        return "not shown"
    if score.lower_bound and score.low < score.high:
        return at_least(in_units(score.low, score, "down"))
    return ends_text(score.low, score.high, lambda end, to: in_units(end, score, to))


def capital(text: str, names: Iterable[str] = ()) -> str:
    """The text with a capital first letter, unless it begins with one of these names."""
    for shown in map(visible, names):
        if text.startswith(shown) and not text[len(shown) : len(shown) + 1].isalnum():
            return text
    return f"{text[:1].upper()}{text[1:]}"


def hidden_size(words: Wording = PLAIN) -> str:
    """That it is not shown how large a score is."""
    return f"how much is not shown, as that would tell of fewer than {SHARED} {words.people}"


def changes_text(
    score: CausalScore, share: str, words: Wording = PLAIN, *, past: bool = False
) -> str:
    """What changes, for whom or by how much: `for 2.0 % of test inputs the decision changes`."""
    name, whom = output_words(score), words.whom(score.population)
    verb = "changed" if past else "changes"
    if is_by_degrees(score):
        of = f" for {whom}" if words.their(score.population) else ""
        scale = "" if score.scale is None else f" of its scale from {ends_of(score.scale)}"
        return f"on average {name} {verb} by {share}{scale}{of}"
    return f"for {share} of {whom} {name} {verb}{beyond(score)}"


def compared(score: GroupScore, words: Wording = PLAIN) -> str:
    """What groups are compared by: `approval rates`, `means of limit`."""
    if score.statistic == "mean":
        return f"means of {output_name(score)}" if score.output else "mean outputs"
    if score.output is None:
        return words.rates
    return f"rates of favourable outputs of {output_name(score)}"


def idle_words(
    which: str, figures: str, output: str | None, words: Wording, about: str = ""
) -> str:
    """`no output was favourable, so that rates of '1' tell nothing: write favourable = [1]`."""
    remedy = words.remedies.get(output) or words.remedies.get(None, "")
    write = remedy if which == "no" else ""
    of = "" if output is None else f" of {cut_name(visible(output))}"
    return f"{which} output{of} was favourable, so {figures} say nothing{about}{write}"


# Groups of few people -----------------------------------------------------------------------
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


def few_remark(score: Score, words: Wording) -> str:
    """That a difference rests on groups of few people, and that means of few are not shown."""
    if not isinstance(score, GroupScore):
        return ""
    remark = ""
    if score.groups and rests_on_few(score):
        remark = f"; it rests on groups of too few {words.people} to judge"
    if hidden_groups(score):
        remark += f"; means of fewer than {SHARED} {words.people} are not shown"
    return remark


def differ_in_tests(score: GroupScore) -> bool:
    """Whether rates lie further apart than the score, as some are from fewer tests than others.

    Those can't be compared with the others: the score is of the groups that were tested longest.
    """
    rates = [each.rate for each in score.groups]
    is_sampled = score.method == "sampled" and len(rates) > 1 and is_told(score)
    return is_sampled and max(rates) - min(rates) > score.score + ROUNDING


# The fields of the templates ------------------------------------------------------------------
@dataclass(frozen=True)
class _Parts:
    """What the sentence of a score may name; each is made where it is asked for."""

    table: str
    made: dict[str, Callable[[], str]]

    def __getitem__(self, name: str) -> str:
        return self.made[name]()


def _parts(score: Score, words: Wording) -> _Parts:
    both: dict[str, Callable[[], str]] = {
        "which": lambda: score_words(score),
        "not_given": lambda: not_given([score]),
        "unfinished": lambda: (
            "" if score.conclusive else f": {how_it_ended(score.stopped)} before it was measured"
        ),
        "set": lambda: plain_set(score),
        "where": lambda: where(score),
        "how": lambda: how(score),
        "certain": lambda: certainty(score),
        "sure": lambda: sure(score),
        "hidden": lambda: hidden_size(words),
    }
    if isinstance(score, CausalScore):
        return _Parts(_table(score), both | _of_changes(score, words))
    if isinstance(score, ExcessScore):
        return _Parts("excess", both | _of_excess(score, words))
    assert isinstance(score, GroupScore)
    table = "group" if is_told(score) else "hidden-group"
    return _Parts(table, both | _of_groups(score, words))


def not_given(scores: Sequence[Score]) -> str:
    """That sets do not reach the program, and what scores of one measure are therefore."""
    names = list(dict.fromkeys(name for each in scores for name in each.against))
    is_no_input = "is not an input" if len(names) == 1 else "are not inputs"
    are = "score is" if len({each.against for each in scores}) == 1 else "scores are"
    measure = "excess" if isinstance(scores[0], ExcessScore) else "causal"
    why = f"{'its' if len(names) == 1 else 'their'} {measure} {are} 0 by construction"
    if isinstance(scores[0], GroupScore):
        why = "generated inputs have equal rates by construction, rows of people may not"
    return f"{plain_phrase(names)} {is_no_input} of this program: {why}"


def _table(score: CausalScore) -> str:
    within = score.counterfactuals == "within"
    if not is_told(score):
        return "hidden-within" if within else "hidden-causal"
    degrees = "-degrees" if is_by_degrees(score) else ""
    return f"within{degrees}" if within else "causal"


def _of_changes(score: CausalScore, words: Wording) -> dict[str, Callable[[], str]]:
    whom = words.whom(score.population)
    share = partial(changes_text, score, words=words)
    return {
        "name": lambda: output_words(score),
        "beyond": lambda: beyond(score),
        "share": lambda: percent(score.score),
        "most": lambda: f"{at_most(percent(score.high, 'up'))}, {certainty(score)}",
        "one": lambda: words.one(score.population),
        "whom": lambda: whom,
        "for_whom": lambda: "" if score.population == "inputs" else f" for {whom}",
        "tried": lambda: words.tested(score.samples, score),
        "unchanged": lambda: (
            f"changed{beyond(score)} for none of {words.tested(score.samples, score)}"
        ),
        "no_effect": lambda: _no_effect(score),
        "effect": lambda: share(percent(score.score)),
        "effect_past": lambda: share(percent(score.score), past=True),
        "effect_at_least": lambda: share(at_least(percent(score.low, "down"))),
        "when": lambda: _when(score, words),
        "when_past": lambda: _when(score, words, past=True),
        "set_with": lambda: set_with_followers(score.against, score.followed),
        "counterpart": lambda: _counterpart(score),
    }


def _no_effect(score: CausalScore) -> str:
    """`no effect of sex found`, with a tolerance `no effect of more than 50 found for sex`."""
    more, phrase = tolerance(score), plain_set(score)
    return f"no effect of {more} found for {phrase}" if more else f"no effect of {phrase} found"


def _when(score: CausalScore, words: Wording, *, past: bool = False) -> str:
    """`when only their sex is changed`; with others that follow, without `only`."""
    verb = ("was" if past else "is") if len(score.against) == 1 else ("were" if past else "are")
    only = "" if score.followed else "only "
    what = f"{words.their(score.population)}{plain_set(score)}"
    return f"when {only}{what} {verb} changed{_follow(score)}"


def _follow(score: CausalScore) -> str:
    return with_followers(score.against, score.followed)


def _counterpart(score: CausalScore) -> str:
    noun, by, comma = output_noun(score), beyond(score), "," if score.followed else ""
    but = f"whose {noun} differs{by}" if by else f"gets a different {noun}"
    changed = f"{set_with_followers(score.against, score.followed)}{comma}"
    return f"a counterpart among the rows that differs only in {changed} but {but}"


def _of_excess(score: ExcessScore, words: Wording) -> dict[str, Callable[[], str]]:
    return {
        "one": lambda: words.one(score.population),
        "tried": lambda: words.tested(score.samples, score),
        "most": lambda: f"{at_most(in_units(score.high, score, 'up'))}, {certainty(score)}",
        "again": lambda: asked_again(score, words),
        "more": lambda: f"{in_units(score.score, score)} more",
        "gap": lambda: f"; {text}" if (text := gap_text(score, words)) else "",
    }


def _of_groups(score: GroupScore, words: Wording) -> dict[str, Callable[[], str]]:
    none = "no difference found in"
    return {
        "figures": lambda: compared(score, words),
        "apart": lambda: _points(score, score.score),
        "at_least": lambda: at_least(_points(score, score.low, "down")),
        "seen": lambda: (
            f"differed by {_points(score, score.score)}" if score.score else "were equal"
        ),
        "gap": lambda: _gap(score),
        "no_difference": lambda: none if is_settled(score) else "undecided for",
        "idle": lambda: _idle(score, words),
        "between": lambda: _between(score, words),
        "for_all": lambda: _for_all(score, words),
    }


def _points(score: GroupScore, difference: float, to: Rounding = "near") -> str:
    return apart_text(score, difference, to).replace(" points", " percentage points")


def _gap(score: GroupScore) -> str:
    most = _points(score, score.high, "up")
    if score.method == "exact":  # and yet there is an interval
        return f"the gap may be as large as {most}"
    return f"a gap above {most} is ruled out"


def _idle(score: GroupScore, words: Wording) -> str:
    """That rates tell nothing, and what to write where that is known."""
    about = f" about {plain_set(score)}{where(score)}"
    which = idle_favour(score) or "no"
    return idle_words(which, compared(score, words), score.output, words, about)


def _between(score: GroupScore, words: Wording) -> str:
    """Between whom: `women and men`, or the lowest and highest of several groups."""
    worst, best = score.least_favoured, score.most_favoured
    assert worst is not None
    assert best is not None
    if len(score.groups) == 2:
        first, second = (worst, best) if worst is not best else score.groups
        return f"between {_both(first, second, words)}{where(score)}"
    several = f"{_several(score)}{where(score)}"
    if worst.rate == best.rate or differ_in_tests(score):
        return f"between {several}"
    return f"between {_both(worst, best, words)}, the lowest and highest of {several}"


def _for_all(score: GroupScore, words: Wording) -> str:
    if len(score.groups) == 2:
        first, second = score.groups
        return f"for {_both(first, second, words)}"
    return f"in all {_several(score)}"


def _both(first: Group, second: Group, words: Wording) -> str:
    return f"{words.label(first.values)} and {words.label(second.values)}"


def _several(score: GroupScore) -> str:
    """`3 groups of race`; where not all may be shown, that these are."""
    shown = " that are shown" if hidden_groups(score) else ""
    return f"{len(score.groups):,} groups of {plain_set(score)}{shown}"


# Excesses ---------------------------------------------------------------------------------
def asked_again(score: ExcessScore, words: Wording) -> str:
    """`asked twice, the decision differs for 12 % of test inputs; with another sex, for 19 %`."""
    within, across = (0.0 if e is None else e.score for e in (score.within, score.across))
    whom = words.whom(score.population)
    return (
        f"asked twice, {output_words(score)} differs for {percent(within)} of {whom}; "
        f"with another {plain_set(score)}{with_followers(score.against, score.followed)}, for "
        f"{percent(across)}"
    )


def gap_text(score: ExcessScore, words: Wording) -> str:
    """Whom the pair's change favours, if that is sure: `male is favoured 12.1 points more …`."""
    if score.gap is None or score.pair is None:
        return ""
    if score.gap.low <= 0 <= score.gap.high:
        one, other = _labels(score, words)
        return f"neither {one} nor {other} is clearly favoured"
    return _favour(score, words)


def _favour(score: ExcessScore, words: Wording) -> str:
    assert score.gap is not None
    ahead, behind = _labels(score, words)[:: 1 if score.gap.score >= 0 else -1]
    return f"{ahead} is favoured {points(abs(score.gap.score))} more often than {behind}"


def _labels(score: ExcessScore, words: Wording) -> list[str]:
    return [words.label(each) for each in score.pair or ()]


def excess_sentences(score: ExcessScore, words: Wording) -> Iterator[str]:
    """What an excess is the difference of, each with its ends, and how often inputs were asked."""
    if score.pair is None or score.within is None or score.across is None:
        return
    pair = " and ".join(words.label(each) for each in score.pair)
    yield (
        f"asked again, {output_words(score)} differs for {_with_ends(score.within)}; "
        f"between {pair}, for {_with_ends(score.across)}"
    )
    if score.gap is not None:
        sign = 1 if score.gap.score >= 0 else -1
        low, high = sorted((sign * score.gap.low, sign * score.gap.high))
        ends = f"{points(low, 'down').removesuffix(' points')} to {points(high, 'up')}"
        yield f"{_favour(score, words)} ({ends})".replace("(-", "(−")
    yield f"each input was asked {score.times} times"


def _with_ends(share: Share) -> str:
    ends = f"{percent(share.low, 'down').removesuffix(' %')} – {percent(share.high, 'up')}"
    return f"{percent(share.score)} ({ends})"
