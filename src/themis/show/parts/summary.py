"""Every set in a few lines: what differs, by how much, how sure, whom it hurts, an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from themis.inputs.columns import SHARED
from themis.results.finding import State, finding, idle_favour
from themis.results.model import CausalScore, ExcessScore, GroupScore, Result, Score, is_by_degrees
from themis.results.withheld import is_told
from themis.show.blocks import Cell, Content, Number, Table
from themis.show.words.explanations import example
from themis.show.words.headlines import (
    differ_in_tests,
    gap_text,
    interval,
    point,
    rests_on_few,
    shown_extremes,
)
from themis.show.words.naming import output_noun, rate_text
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import as_sample, by_set, hidden_changes, lesser, ratio_text
from themis.show.words.searches import protection
from themis.show.words.values import at_most, cut_name, ends_text, percent, set_text, visible
from themis.show.words.verdicts import adds
from themis.show.words.wording import PLACES, Wording, wording

MARKS: dict[State, str] = {"grave": "■", "calm": "○", "open": "△"}
LEGEND = "■ difference found · ○ none found · △ undecided"
REACHES = {"above": "yes", "below": "no", "unclear": "can’t tell"}


@dataclass(frozen=True)
class Line:
    """One number of a set; that of a score has a mark, the impact ratio none."""

    what: str
    value: str
    interval: str = ""
    detail: str = ""
    state: State | None = None

    @property
    def mark(self) -> str:
        """What stands before it, so that nothing is said by colour alone."""
        return "" if self.state is None else MARKS[self.state]


@dataclass(frozen=True)
class SetSummary:
    """A set, its numbers, one pair, and what its two scores say only together."""

    against: tuple[str, ...]
    protection: int  # 0: all of it is protected, 1: some of it, 2: nothing
    lines: Sequence[Line]
    example: str | None
    hidden: str | None

    @property
    def name(self) -> str:
        """The set as it is shown."""
        return set_text(self.against)

    @property
    def state(self) -> State:
        """The worst of its lines."""
        states = {each.state for each in self.lines}
        return next((each for each in ("grave", "open") if each in states), "calm")


def summaries(result: Result, scores: Sequence[Score] | None = None) -> list[SetSummary]:
    """Every set of these scores, those of protected characteristics first.

    What rows show among themselves is the lesser part of the same finding, and left to details.
    """
    words = wording(result)
    scores = result.scores if scores is None else scores
    scores = [each for each in scores if each not in lesser(scores)]
    sets = by_set(scores)
    found = [_summary(result, against, own, scores, words) for against, own in sets.items()]
    return sorted(found, key=lambda each: each.protection)


def _summary(
    result: Result,
    against: tuple[str, ...],
    scores: Sequence[Score],
    of_all: Sequence[Score],
    words: Wording,
) -> SetSummary:
    """A set; a pair is shown of one that says more than its parts."""
    telling = (each for each in scores if finding(each).state == "grave" and adds(each, of_all))
    shown = (example(each, words) for each in telling)
    return SetSummary(
        against,
        protection(result, against),
        [line for each in scores for line in score_lines(each, words)],
        next(filter(None, shown), None),
        hidden_changes(scores, words),
    )


def score_lines(score: Score, words: Wording) -> Iterator[Line]:
    """What a score says in a line, and its impact ratio in a second."""
    found = finding(score)
    what = _what(score)
    if (nothing := NOTHING.get(found.kind)) is not None:
        text = nothing.format(ended=how_it_ended(score.stopped), favour=idle_favour(score) or "no")
        yield Line(what, "–", "", text, found.state)
        return
    detail = _detail(score, words)
    yield Line(what, _shorter(point(score)), _ends(score), detail, found.state)
    if isinstance(score, GroupScore) and score.impact_ratio is not None:
        yield _ratio(score, words)


def _detail(score: Score, words: Wording) -> str:
    if isinstance(score, ExcessScore):
        return _beside(score, words)
    return _groups(score, words) if isinstance(score, GroupScore) else _losing(score, words)


NOTHING = {
    "unmeasured": "not measured: {ended}",
    "unread": "not an input: 0 by construction",
    "single": "nothing to compare",
    "alone": "one group alone has a decision",
    "idle": "{favour} output was favourable",
    "unknown": "unknown: executions failed",
}


def _what(score: Score) -> str:
    """What changes or differs, and among whom: `decision changes`, `rates differ in the rows`."""
    if isinstance(score, GroupScore):
        of = "" if score.output is None else f" of {cut_name(visible(score.output))}"
        text = f"{score.statistic}s{of} differ"
    elif isinstance(score, ExcessScore):
        text = f"{output_noun(score)} changes beyond chance"
    else:
        text = f"{output_noun(score)} changes{' by' if is_by_degrees(score) else ''}"
    if score.counterfactuals == "within":
        return f"{text.replace('changes', 'differs')} between rows"
    return f"{text} {PLACES[score.population]}" if score.population in PLACES else text


def _shorter(text: str) -> str:
    return text.replace(" points", " pts").replace(" point", " pt")


def _ends(score: Score) -> str:
    """Its interval without a unit, which stands before it: `1.4 – 11.4`, `at most 5.0`."""
    text = _shorter(interval(score))
    if is_told(score) and not score.lower_bound and score.low == 0 < score.high:
        text = at_most(text.partition(" – ")[2])
    return text.removesuffix(" %").removesuffix(" pts")


def _losing(score: Score, words: Wording) -> str:
    """Who loses by the first change: `male → female: 12 of 188 lose`; how much noise explains."""
    if not isinstance(score, CausalScore):
        return ""
    parts = []
    if score.direction and finding(score).state != "calm":
        harm = score.direction[0]
        change = " → ".join(words.label(e) for e in (harm.change_from, harm.change_to))
        counted = f"{percent(harm.lost)} lose, {percent(harm.gained)} gain"
        if harm.lost_count is not None and harm.gained_count is not None:
            both = f", {harm.gained_count:,} gain" if harm.gained_count else ""
            counted = f"{harm.lost_count:,} of {harm.contexts:,} lose{both}"
        parts.append(f"{change}: {counted}")
    if score.crossing is not None and finding(score).state != "calm":
        parts.append(f"{percent(score.crossing.share)} change between favourable and not")
    if score.placebo is not None:
        parts.append(f"noise alone gives {percent(score.placebo.high, 'up')} or less")
    return "; ".join(parts)


def _beside(score: ExcessScore, words: Wording) -> str:
    """`asked again 12.0 % differ, changed 19.0 %; male is favoured 7.1 points more often …`."""
    if score.within is None or score.across is None:
        return ""
    within, across = percent(score.within.score), percent(score.across.score)
    text = f"asked again {within} differ, changed {across}"
    gap = gap_text(score, words) if finding(score).state != "calm" else ""
    return f"{text}; {gap}" if gap else text


def _groups(score: GroupScore, words: Wording) -> str:
    """The highest and the lowest rate: `male 54.2 %, female 47.9 %`."""
    if differ_in_tests(score):  # the score compares others
        return ""
    extremes = shown_extremes(score)
    shown = [f"{words.label(each.values)} {rate_text(score, each.rate)}" for each in extremes]
    text = ", ".join(dict.fromkeys(shown))
    if not is_told(score):
        return f"would tell of fewer than {SHARED} {words.people}{_others(text)}"
    if not rests_on_few(score):
        return text
    few = f"rests on too few {words.people} to judge"
    return f"{few}: {text}" if any(each.few for each in extremes) else f"{few}{_others(text)}"


def _others(text: str) -> str:
    return f"; without them {text}" if text else ""


def _ratio(score: GroupScore, words: Wording) -> Line:
    """The impact ratio, and whether it reaches four fifths."""
    assert score.impact_ratio is not None
    low, high = score.impact_ratio_low, score.impact_ratio_high
    ends = ""
    if low is not None and high is not None:
        ends = ends_text(low, high, ratio_text)
    reaches = f"reaches 0.80? {REACHES[score.four_fifths]}{as_sample(score)}"
    if rests_on_few(score):
        reaches = f"too few {words.people} to judge"
    return Line("impact ratio", ratio_text(score.impact_ratio), ends, reaches)


def summary_table(sets: Sequence[SetSummary], *, title: str, foot: str = "") -> Table:
    """The same as a table, for media that draw their own columns; pairs are shown elsewhere."""
    rows: list[Sequence[Content]] = []
    for each in sets:
        for place, line in enumerate(each.lines):
            is_last = place == len(each.lines) - 1
            rows.append(
                (
                    "" if place else each.name,
                    Cell(f"{line.mark} {line.what}".strip(), state=line.state or "faint"),
                    line.value,
                    line.interval,
                    Cell(line.detail, f"but {each.hidden}" if each.hidden and is_last else ""),
                )
            )
    heads = ("Set", "Measure", Number("Observed"), Number("Interval"), "Who")
    return Table(title, heads, rows, foot, "summary")
