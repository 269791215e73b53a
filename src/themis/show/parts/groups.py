"""Rates of groups, and their ratios to the highest: of scores, and those that were observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from themis.inputs.columns import SHARED
from themis.results.finding import idle_favour
from themis.results.model import FOUR_FIFTHS, GroupScore
from themis.results.outcomes import Category, CategoryTable, Observed
from themis.results.parts import Group
from themis.show.blocks import (
    Axis,
    Block,
    Cell,
    Content,
    Head,
    Interval,
    Mark,
    Number,
    Part,
    Statement,
    Table,
)
from themis.show.words.naming import output_noun, rate_text
from themis.show.words.scores import extremes, ratio_text
from themis.show.words.values import (
    Rounding,
    confidence_text,
    count,
    cut_text,
    ends_text,
    percent,
    set_phrase,
    set_text,
    some_of,
    visible,
)
from themis.show.words.wording import PLACES, Wording, is_drawn

FOUR_FIFTHS_LINE = "Dashed line: four fifths of the highest rate."
Place = Literal["below", "above", "unclear", "few"]
STANDINGS: Mapping[Place, str] = {
    "below": "below four fifths",
    "above": "above four fifths",
    "unclear": "unclear",
    "few": "few rows: not judged",
}
KINDS = {"below": "grave", "above": "calm", "unclear": "open", "few": "few"}


@dataclass(frozen=True)
class Ratio:
    """A group's rate by the highest rate. The ends hold whichever group has the highest rate."""

    ratio: float
    low: float
    high: float
    few: bool

    @property
    def place(self) -> Place:
        """Where it certainly lies; of a group with few rows nothing is said."""
        if self.few:
            return "few"
        if self.high < FOUR_FIFTHS:
            return "below"
        return "above" if self.low >= FOUR_FIFTHS else "unclear"


def ratios(score: GroupScore) -> list[Ratio] | None:
    """The impact ratio of each group; None where a ratio means nothing.

    The groups' intervals hold together, so these do as well. Where groups are unknown, any of
    them may have a higher rate.
    """
    judged = [group for group in score.groups if not group.few] or list(score.groups)
    best = max((group.rate for group in judged), default=0.0)
    if score.impact_ratio is None or score.statistic == "mean" or not best or idle_favour(score):
        return None
    highest = 1.0 if score.lower_bound else max(group.high for group in judged)
    surely = max(group.low for group in judged)
    return [
        Ratio(
            min(group.rate / best, 1.0),
            group.low / highest,
            min(group.high / surely, 1.0) if surely > 0 else 1.0,
            group.few,
        )
        for group in score.groups
    ]


def four_fifths_line(score: GroupScore) -> float | None:
    """The rate that is four fifths of the highest."""
    best = max((group.rate for group in score.groups if not group.few), default=0.0)
    return FOUR_FIFTHS * best if ratios(score) is not None and best else None


def group_table(score: GroupScore, words: Wording, *, most: int) -> Table:
    """The groups by falling rate, of many those at both ends, beside the four-fifths line."""
    shown, hidden = extremes(score.groups, most)
    line = four_fifths_line(score)
    marks = () if line is None else (Mark(line, "four fifths"),)
    places = list(map(id, score.groups))
    known = dict(zip(places, ratios(score) or [], strict=False))
    means = score.statistic == "mean"
    axis = Axis.reaching(max((each.high for each in shown), default=1.0))
    axis = Axis(axis.end, is_share=not means)
    heads: list[Head] = ["Group", axis, Number("Mean" if means else "Rate"), Number("Interval"),
                         Number("Draws" if is_drawn(score) else "Tested")]  # fmt: skip
    rows: list[Sequence[Content]] = [
        (
            Cell(words.label(each.values), few_words(each, words)),
            _interval(score, each, known.get(id(each)), axis, marks),
            rate_text(score, each.rate),
            rate_interval(score, each),
            _tested(each),
            *([ratio_cell(known[id(each)])] if known else []),
        )
        for each in shown
    ]
    return Table(
        f"Groups of {set_phrase(score.against)}",
        [*heads, *([Number("Impact ratio")] if known else [])],
        rows,
        count(hidden, "group between these is not shown", "groups between these are not shown")
        if hidden > 0
        else "",
    )


def rates_table(score: GroupScore, words: Wording, *, most: int) -> Table:
    """Nothing but the rates as bars: for where the whole table is further down."""
    whole = group_table(score, words, most=most)
    of = "" if score.output is None else f" of {output_noun(score)}"
    heads = [*whole.heads[:2], Number(f"{score.statistic.capitalize()}{of}")]
    line = "" if four_fifths_line(score) is None else FOUR_FIFTHS_LINE
    rows = [row[:3] for row in whole.rows]
    return Table(whole.title, heads, rows, ". ".join(filter(None, [whole.foot, line])), "bars")


def few_words(group: Group, words: Wording) -> str:
    """That a group is too small to judge, if so."""
    return f"too few {words.people} to judge" if group.few else ""


def _interval(
    score: GroupScore, group: Group, ratio: Ratio | None, axis: Axis, marks: tuple[Mark, ...]
) -> Interval:
    label = f"{rate_text(score, group.rate)}, {rate_interval(score, group)}"
    kind = "few" if group.few else "calm" if ratio is None else KINDS[ratio.place]
    return Interval(group.low, group.high, group.rate, label, kind, axis, marks)


def _tested(group: Group) -> Cell:
    answers = "" if group.answers is None else f"{group.answers:,} with an output"
    return Cell(f"{group.samples:,}", answers)


def ratio_cell(ratio: Ratio) -> Cell:
    """A ratio, and that it is not certainly above the line."""
    if ratio.few:
        return Cell("–", STANDINGS["few"])
    above = ratio.ratio == 1.0 or ratio.place == "above"
    return Cell(ratio_text(ratio.ratio), "" if above else STANDINGS[ratio.place])


def rate_interval(score: GroupScore, group: Group) -> str:
    """The ends of a group's rate or mean."""
    return ends_text(group.low, group.high, partial(rate_text, score))


UNKNOWN = "unknown"
TOO_FEW = "too few to say"
NOTHING = "–"
RARE = 0.02  # of all: a category that an audit may leave out


def observed_blocks(
    observed: Observed, words: Wording, *, tables: int, most: int
) -> Iterator[Block]:
    """What is counted, how sure it is, and the tables: single characteristics, then pairs."""
    official = _official(words)
    yield Statement(counted_text(observed, words))
    for table in observed.tables[:tables]:
        yield Part(_title(table, observed), [_table(table, observed, official, words, most)])
    if (hidden := len(observed.tables) - tables) > 0:
        yield Statement(f"{count(hidden, 'more table')} not shown here")
    if observed.too_many:
        sets = "; ".join(map(set_phrase, observed.too_many))
        yield Statement(f"Not in these tables, since they have too many categories: {sets}.")
    yield Statement(unknown_and_rare(observed, words), "faint")


def _title(table: CategoryTable, observed: Observed) -> str:
    name = set_text(table.against)
    return name if observed.output is None else f"{name}: {cut_text(visible(observed.output))}"


def counted_text(observed: Observed, words: Wording) -> str:
    """Which inputs the tables count, and with which confidence their intervals hold."""
    what, fixed = words.counted(observed.inputs, observed.population), ""
    if observed.whole:
        where = f" {PLACES[observed.population]}" if observed.population in PLACES else ""
        what = f"all {what}{where}"
    else:
        drawn = count(observed.inputs, "draw from the profile", "draws from the profile")
        what = f"the same {what if observed.population == 'inputs' else drawn}"
        fixed = "Their number was fixed before the first was run."
    what = f"These tables count {what}, each with its own values, so their margins add up."
    own = "" if observed.whole else "Scores (part C) rest on samples of their own."
    parts = (what, fixed, _weights(observed), _certainty(observed), own)
    return " ".join(filter(None, parts))


def _weights(observed: Observed) -> str:
    return "Rates and shares are by weight, counts are not." if observed.weighted else ""


def _certainty(observed: Observed) -> str:
    """What the intervals mean, or why there are none."""
    if observed.noisy:
        return "The program does not always give the same decision, so no interval is given."
    if observed.statistic == "mean":
        return "The median is that of the same inputs, so no interval is given."
    if observed.confidence is not None:
        sure = f"all intervals hold together with {confidence_text(observed.confidence)}"
        if observed.whole:
            return f"Seen as a random sample of others, {sure}."
        return f"{sure[:1].upper()}{sure[1:]}, apart from those of the scores."
    return "Nothing is estimated." if observed.population == "inputs" else (
        "Weights are not numbers of people, so no interval is given."
    )  # fmt: skip


def _table(
    table: CategoryTable, observed: Observed, official: Wording, words: Wording, most: int
) -> Table:
    """The categories in the order of their values, and all of them together."""
    columns = _columns(observed)
    shown = table.categories[:most]
    rows: list[Sequence[Content]] = [
        (_name(each, official, words), *(column(each) for column in columns.values()))
        for each in shown
    ]
    every = (column(_all(observed)) for column in columns.values())
    rows.append(("All", *("" if each == NOTHING else each for each in every)))
    heads: list[Head] = ["Category", *map(Number, columns)]
    hidden = len(table.categories) - len(shown)
    more = count(hidden, "more category", "more categories")
    foot = f"{more} not shown here; all are in the JSON result" if hidden else ""
    return Table(f"Categories of {set_phrase(table.against)}", heads, rows, foot, "rates")


def _columns(observed: Observed) -> dict[str, Callable[[Category], Content]]:
    """What stands in each column; one without a figure is left out."""
    is_mean, has_ends = observed.statistic == "mean", observed.confidence is not None
    is_exact = observed.whole and observed.population == "inputs" and not observed.noisy
    is_judged = not is_mean and (has_ends or is_exact)
    columns: dict[str, Callable[[Category], Content] | None] = {
        "Counted": lambda each: f"{each.inputs:,}",
        "Share": (lambda each: percent(each.share)) if observed.weighted else None,
        "Above the median" if is_mean else "Favourable": lambda each: f"{each.favourable:,}",
        "No decision": (lambda each: f"{each.undecided:,}") if observed.undecided else None,
        "Scoring rate" if is_mean else "Selection rate": _rate,
        "Interval": (lambda each: _ends(each.low, each.high, percent, each)) if has_ends else None,
        "Impact ratio": partial(_ratio, is_judged=is_judged),
        "Ratio between": (lambda each: _ends(each.ratio_low, each.ratio_high, ratio_text, each))
        if has_ends
        else None,
    }
    return {name: each for name, each in columns.items() if each is not None}


def _rate(category: Category) -> str:
    if category.few:
        return TOO_FEW
    return NOTHING if category.rate is None else percent(category.rate)


def _ratio(category: Category, *, is_judged: bool) -> Content:
    """The ratio to the highest rate, and where it is, unless it is surely above four fifths."""
    if category.ratio is None:
        return NOTHING
    if not is_judged:
        return ratio_text(category.ratio)
    low, high = category.ratio_low, category.ratio_high
    low, high = (category.ratio if each is None else each for each in (low, high))
    return ratio_cell(Ratio(category.ratio, low, high, few=False))


def _ends(
    low: float | None,
    high: float | None,
    unit: Callable[[float, Rounding], str],
    category: Category,
) -> str:
    return NOTHING if low is None or high is None or category.few else ends_text(low, high, unit)


def _all(observed: Observed) -> Category:
    """Everybody who is counted; their rate by weight is that of no single table."""
    decided = observed.inputs - observed.undecided
    whole = observed.favourable / decided if decided and not observed.weighted else None
    return Category({}, observed.inputs, observed.favourable, observed.undecided, 1.0, whole)


def _name(category: Category, official: Wording, words: Wording) -> Cell:
    """What a category is called: officially, with the file's own word below; or that few are."""
    if not category.values:
        several = f"{category.together:,} categories" if category.together > 1 else "a category"
        return Cell(f"{several} of fewer than {SHARED} {words.people}")
    known = {name: UNKNOWN if v is None else v for name, v in category.values.items()}
    own, name = words.label(known), official.label(known)
    return Cell(name, own if own != name else "")


def _official(words: Wording) -> Wording:
    """The words with the names that the file has for categories of EEO-1."""
    naming = words.naming
    values = {
        name: {**naming.values.get(name, {}), **naming.eeo1.get(name, {})}
        for name in {*naming.values, *naming.eeo1}
    }
    return replace(words, naming=replace(naming, values=values))


def unknown_and_rare(observed: Observed, words: Wording) -> str:
    """How many inputs are of an unknown category, and which categories are rare."""
    whom = words.whom(observed.population)
    rare = [each for each in observed.categories() if not _is_unknown(each) and each.share < RARE]
    text = f"Of an unknown category: {_unknown(observed)}. "
    if not rare:
        return f"{text}No category has fewer than 2 % of {whom}."
    named = some_of([_name(each, words, words).text for each in rare], 12, between="; ")
    return (
        f"{text}Fewer than 2 % of {whom}: {named}. Local Law 144 lets an auditor leave such "
        "categories out of the impact ratios, with a reason (§ 5-301(d)); here those of too few to "
        "judge have no ratio, nor is any measured by them."
    )


def _unknown(observed: Observed) -> str:
    """`sex 5, race none`; of generated inputs that all have their values it is not applicable."""
    singles = [each for each in observed.tables if len(each.against) == 1]
    counts = {e.against[0]: sum(c.inputs for c in e.categories if _is_unknown(c)) for e in singles}
    if observed.population == "inputs" and not any(counts.values()):
        return "not applicable, since inputs are generated"
    each = ((name, f"{number:,}" if number else "none") for name, number in counts.items())
    return ", ".join(f"{visible(name)} {number}" for name, number in each)


def _is_unknown(category: Category) -> bool:
    return None in category.values.values()
