"""Scores in a table on one axis, what stands behind each of them, and pairs of inputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from themis.results.finding import finding
from themis.results.model import CausalScore, ExcessScore, GroupScore, Result, Score
from themis.results.parts import Witness
from themis.results.withheld import is_told
from themis.show.blocks import (
    Axis,
    Block,
    Cell,
    Commands,
    Content,
    Fold,
    Head,
    Interval,
    Mark,
    Number,
    Part,
    Statement,
    Table,
)
from themis.show.parts.groups import group_table
from themis.show.words.explanations import (
    change_sentence,
    counted_people,
    crossing_sentence,
    directions_certainty,
    flip_rate_sentence,
    gained_text,
    joint_pair_sentence,
    joint_sentences,
    lost_text,
    other_changes_first,
    pairs_origin,
    placebo_sentence,
    region_sentence,
)
from themis.show.words.headlines import excess_sentences, headline, interval, point
from themis.show.words.naming import amount, ends_of, kind_words, output_name
from themis.show.words.scores import impact, method, seen
from themis.show.words.searches import protection
from themis.show.words.values import (
    LONGEST_NAME,
    count,
    cut_name,
    cut_text,
    ends_text,
    percent,
    set_text,
    set_with_followers,
    some_of,
    told_apart,
    visible,
)
from themis.show.words.wording import PLAIN, Wording, is_drawn

CHANGES = 3  # directions of harm in sentences
ENDS = 5  # groups shown from either end
WITNESSES = 2  # pairs of a score
ALL = 10_000
MEANINGS = {
    "causal": "The causal score (counterfactual flip rate) is the share of inputs for which the "
    "decision changes when only this is changed; for numbers that are compared by degrees, how "
    "much they change on average, as a share of their scale.",
    "excess": "The excess is how often the decision differs when only this is changed, minus how "
    "often it differs when the same input is asked again. It has a scale of its own: 5 points are "
    "a shift of 22 points for everybody, or a certain decision reversed for one in twenty.",
    "group": "The group score (statistical parity difference) is the largest difference between "
    "the groups’ rates of favourable decisions; for numbers, between their means.",
}


def protected_scores(result: Result, scores: Iterable[Score]) -> list[Score]:
    """The scores that were measured, sets of protected characteristics first."""
    measured = [each for each in scores if each.samples]
    return sorted(measured, key=lambda each: protection(result, each.against))


def score_name(score: Score) -> str:
    """The set of a score, and which output it is about where there are several."""
    name = cut_name(set_text(score.against), LONGEST_NAME)
    return name if score.output is None else f"{name}: {cut_text(visible(score.output))}"


def meanings(measures: Iterable[str]) -> str:
    """What the measured scores are."""
    known = set(measures)
    return " ".join(meaning for measure, meaning in MEANINGS.items() if measure in known)


def common_axis(scores: Iterable[Score], limits: Iterable[Mark] = ()) -> Axis:
    """One scale for all scores of a table."""
    ends = [each.high for each in scores if each.samples and is_told(each) and not each.lower_bound]
    ends += [each.score for each in scores if each.lower_bound and is_told(each)]
    return Axis.reaching(max([*ends, *(each.share for each in limits)], default=1.0))


def score_interval(score: Score, axis: Axis, marks: Sequence[Mark] = ()) -> Interval | str:
    """The interval of a score as a picture; nothing where that would tell of few people."""
    if not is_told(score):
        return ""
    bound = score.lower_bound
    return Interval(
        score.low,
        1.0 if bound else score.high,
        None if bound else score.score,
        f"{point(score)}, {interval(score)}",
        finding(score).state,
        axis,
        tuple(marks),
    )


def scores_table(
    scores: Sequence[Score],
    result: Result | None = None,
    *,
    title: str = "Scores with their intervals",
    foot: str = "",
) -> Table:
    """A row for each score on one axis, with the limits that it was measured against."""
    limits = {id(each): [] if result is None else limits_of(result, each) for each in scores}
    axis = common_axis(scores)
    heads: list[Head] = ["Set", "Measure", axis, Number("Score"), Number("Interval")]
    rows: list[Sequence[Content]] = [
        (
            score_name(each),
            kind_words(each),
            score_interval(each, axis, limits[id(each)]),
            point(each),
            interval(each),
        )
        for each in scores
    ]
    return Table(title, heads, rows, foot)


def described(table: Table, scores: Sequence[Score], words: Wording) -> Table:
    """A table of these scores that says how each was measured, below its name."""
    rows: list[Sequence[Content]] = [
        (Cell(str(row[0]), " · ".join([method(each, words), *details(each)])), *row[1:])
        for row, each in zip(table.rows, scores, strict=True)
    ]
    return Table(table.title, table.heads, rows, table.foot)


def details(score: Score) -> Iterator[str]:
    """How outputs differ and of whom a score is, where that needs saying."""
    is_rate = isinstance(score, GroupScore) and score.statistic == "rate"
    if isinstance(score, GroupScore):
        if not is_rate:
            yield "difference of means"
        elif score.favours is not None:
            yield f"favourable: {cut_text(visible(score.favours))}"
    elif score.distance != "exact":
        yield f"distance: {cut_text(visible(score.distance))}"
    if score.scale is not None and not is_rate:
        yield f"on a scale from {ends_of(score.scale)}"
    if is_drawn(score) and isinstance(score, GroupScore):
        yield "drawn from the profile"
    if score.population == "rows":
        yield "given rows"
    if score.counterfactuals == "within":
        yield "compared among the rows only"
    placebo = score.placebo if isinstance(score, CausalScore) else None
    if placebo is not None:
        yield (
            f"noise alone would give {percent(placebo.score)} "
            f"({ends_text(placebo.low, placebo.high)})"
        )


def limits_of(result: Result, score: Score) -> list[Mark]:
    """The limits that a score was measured against, and thresholds, the lowest first."""
    about = (score.measure, score.output)
    limits = {
        each.max_score
        for each in result.checks
        if (each.measure, each.output) == about and (each.search or each.against == score.against)
    }
    limits |= {s.threshold for s in result.searches if (s.measure, s.output) == about}
    return [Mark(each, amount(each, score)) for each in sorted(limits)]


def score_part(score: Score, words: Wording, *, everything: bool = False) -> Part:
    """One score: its headline, what stands behind it, and pairs."""
    blocks: list[Block] = []
    if score.samples:  # else the headline says why there is nothing
        blocks += score_blocks(score, words, groups=ALL if everything else ENDS)
        blocks += pairs_blocks(score, words, most=ALL if everything else WITNESSES)
    return Part(headline(score, words), blocks)


def pairs_blocks(score: Score, words: Wording, *, most: int = WITNESSES) -> Iterator[Block]:
    """Pairs that show a score; if all are asked for, how to see the first in a shell."""
    ranked = other_changes_first(score.witnesses) if isinstance(score, CausalScore) else []
    if not isinstance(score, CausalScore) or not ranked:
        return
    yield Statement(pairs_title(score))
    for pair in ranked[:most]:
        yield from pair_blocks(pair, score, words)
    if (hidden := len(ranked) - most) > 0:
        yield Statement(f"-v shows {count(hidden, 'more such pair')}", "faint")
    if most == ALL and ranked[0].reproduce:
        yield Statement("The first pair, in a shell:")
        yield Commands(ranked[0].reproduce)


def score_blocks(score: Score, words: Wording = PLAIN, *, groups: int) -> Iterator[Block]:
    """What stands behind a score: who loses and where, or the groups; then how it was measured."""
    if isinstance(score, CausalScore):
        yield from map(Statement, _directions(score, words))
        yield from map(Statement, joint_sentences(score, words))
        yield from (Statement(region_sentence(e, score, words)) for e in score.regions)
        if score.placebo is not None:
            noise = " Changes by noise alone may be among these."
            shows = noise if score.direction or score.witnesses else ""
            yield Statement(f"{placebo_sentence(score, words)}.{shows}", "warning")
    elif isinstance(score, ExcessScore):
        yield from map(Statement, excess_sentences(score, words))
    elif isinstance(score, GroupScore):
        if score.groups:
            yield group_table(score, words, most=groups)
        texts = [seen(score), impact(score) if len(score.groups) > 1 else None]
        yield from (Statement(each) for each in texts if each is not None)
    number = "not shown"
    if is_told(score):
        number = f"≥ {score.low:.3f}" if score.lower_bound else f"{score.score:.3f}"
    yield Statement(f"{score.measure} score {number}; {method(score, words)}", "faint")
    yield from (Statement(str(each), "warning", "note") for each in score.notes)


def _directions(score: CausalScore, words: Wording) -> Iterator[str]:
    """Who loses by which change, and on whom that was counted."""
    for harm in score.direction[:CHANGES]:
        yield change_sentence(harm, words, score.output)
    left = len(score.direction) - CHANGES
    if left > 0:
        yield f"… and {count(left, 'more change that does', 'more changes that do')} harm"
    if score.crossing is not None and finding(score).state != "calm":
        yield crossing_sentence(score.crossing, score, words)
    if not score.direction:
        return
    people = counted_people(score, words)
    if score.flip_rate is None or len(score.direction) == 1:
        yield f"counted on {people}{directions_certainty(score)}"
    else:
        yield (
            f"{flip_rate_sentence(score)} (counted on {people.partition(', ')[0]}"
            f"{directions_certainty(score)})"
        )


DIFFERENCES = 24  # rows of a pair
LINE = 4_000  # letters of an input


def pairs_title(score: CausalScore) -> str:
    """What the pairs of a score show: `Pairs who differ only in sex but get different …`."""
    what = f"{output_name(score).removeprefix('the ')}s"
    if score.output is not None:
        what = f"values of {output_name(score)}"
    whose = f" ({whose})" if (whose := pairs_origin(score)) else ""
    phrase = set_with_followers(score.against, score.followed)
    return f"Pairs who differ only in {phrase} but get different {what}{whose}:"


def pair_blocks(pair: Witness, score: CausalScore, words: Wording) -> Iterator[Block]:
    """Two inputs: in what they differ and what they get side by side, then what both have."""
    yield pair_table(pair, score.output, words)
    common = [name for name in pair.inputs[0] if name not in pair.differs_in]
    if common:
        both = [f"{visible(n)} {words.value(n, pair.inputs[0][n], LINE)}" for n in common]
        yield Statement(some_of(both, 12, more=", + {} more"), "faint", "both")
    if needs := joint_pair_sentence(pair, score, words):
        yield Statement(needs, "faint")


def pair_table(pair: Witness, output: str | None, words: Wording) -> Table:
    """A row for each difference, and one for what the two get."""
    rows: list[Sequence[Content]] = []
    for name in pair.differs_in[:DIFFERENCES]:
        values = [words.value(name, person[name], most=LINE) for person in pair.inputs]
        values = values if values[0] != values[1] else [visible(e[name]) for e in pair.inputs]
        rows.append((visible(name), *(Cell(e, state="changed") for e in told_apart(values))))
    if (hidden := len(pair.differs_in) - DIFFERENCES) > 0:
        rows.append((f"+ {hidden} more", "≠", "≠"))
    first, second = told_apart(pair.outputs)
    ends = (Cell(first, state="better"), Cell(second, state="worse"))
    rows.append((visible(output or "decision"), *ends))
    return Table("Two that differ", ("", "one", "the other"), rows, shape="pair")


def reproduction(pair: Witness) -> Iterator[Block]:
    """How to see it: lines for a shell, else the two inputs as the subject gets them."""
    whole = len(pair.inputs[0]) > len(pair.differs_in) or pair.rows is None
    if pair.reproduce and whole:
        yield Fold("Reproduce both in a shell", [Commands(pair.reproduce)])
    elif whole:
        inputs = [json.dumps(each, ensure_ascii=False)[:LINE] for each in pair.inputs]
        yield Fold("The two inputs", [Commands(inputs)])


def harm_table(score: CausalScore, words: Wording, *, most: int) -> Table:
    """Who loses by which change, the worst first."""
    shown = score.direction[:most]
    rows: list[Sequence[Content]] = [
        (words.label(e.change_from), words.label(e.change_to), lost_text(e), gained_text(e))
        for e in shown
    ]
    hidden = len(score.direction) - len(shown)
    return Table(
        f"Who loses by changes of {set_with_followers(score.against, score.followed)}",
        ("From", "To", Number("lose it"), Number("gain it")),
        rows,
        count(hidden, "more change does harm", "more changes do harm") if hidden else "",
        "plain",
    )
