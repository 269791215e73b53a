"""How does one score look in a terminal? Its headline, its bars, and the people it happens to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from themis.results import model as results
from themis.results.model import CausalScore, GroupScore, Score
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    MARK,
    IntervalBar,
    Sentence,
    axis,
    axis_end,
    indented,
    short,
)
from themis.show.terminal.scores_display_people import show_witnesses
from themis.show.words.scores import placebo_sentence
from themis.show.words.values import (
    counted_people,
    extremes,
    headline,
    impact,
    label,
    method,
    percent,
    rate_text,
    region_sentence,
    seen,
    set_phrase,
)

CHANGES = 3  # directions of harm shown
ENDS = 5  # groups shown from either end


def show_score(score: Score, *, width: int, everything: bool = False) -> Iterator[RenderableType]:
    """The parts of one score, from its headline down."""
    yield Sentence(headline(score), HEADLINE, break_before=" (")
    if not score.samples:
        return  # an interval from 0 to 1 is all there is to draw, and the headline says why
    if isinstance(score, CausalScore):
        yield indented(_causal_details(score))
        yield from show_witnesses(score, width=width, everything=everything)
    elif isinstance(score, GroupScore):
        yield indented(_group_details(score, everything))
    for note in score.notes:
        yield indented(Sentence(note, "yellow", first="note: "))


def _causal_details(score: CausalScore) -> Group:
    shown = f"≥ {score.low:.3f}" if score.lower_bound else f"{score.score:.3f}"
    style = "red" if score.low > 0 else "green"
    bar = IntervalBar(score.low, score.high, axis_end(score.high), style)
    where = (Sentence(region_sentence(region)) for region in score.regions)
    noise = [] if score.placebo is None else [Sentence(placebo_sentence(score.placebo), "yellow")]
    drawn = axis(f"causal score {shown}", bar)
    return Group(drawn, Sentence(method(score), DIM), *noise, *_harm(score), *where)


def _harm(score: CausalScore) -> Iterator[RenderableType]:
    for harm in score.direction[:CHANGES]:
        change = f"{label(harm.change_from)} → {label(harm.change_to)}"
        yield Sentence(
            f"{change}: {percent(harm.lost)} lose the favourable decision, "
            f"{percent(harm.gained)} gain it"
        )
    left = len(score.direction) - CHANGES
    if left > 0:
        yield Sentence(f"… and {left} more changes that do harm", DIM)
    if score.direction:
        yield Sentence(_counted_on(score), DIM)


def _counted_on(score: CausalScore) -> str:
    """On whom the directions were counted; with more than two values, the flip rate too."""
    people = counted_people(score)
    if score.flip_rate is None or len(score.direction) == 1:
        return f"counted on {people}"
    phrase = set_phrase(score.against)
    return (
        f"flip rate {percent(score.flip_rate)}: so often one change of {phrase} changes the "
        f"decision (counted on {people.partition(' who ')[0]})"
    )


def _group_details(score: GroupScore, everything: bool) -> Group:
    parts: list[RenderableType] = []
    if score.groups:
        parts.append(rates_table(score, everything=everything))
    best, worst = score.most_favoured, score.least_favoured
    if best is not None and worst is not None and score.low > 0:
        text = f"most favoured: {label(best.values)}; least favoured: {label(worst.values)}"
        parts.append(Sentence(text))
    moved = seen(score)
    if moved is not None:
        parts.append(Sentence(moved))
    ratio = impact(score)
    if ratio is not None and len(score.groups) > 1:
        parts.append(Sentence(ratio))
    parts.append(Sentence(f"group score {score.score:.3f}; {method(score)}", DIM))
    return Group(*parts)


def rates_table(score: GroupScore, *, everything: bool = False) -> Table:
    """The groups by falling rate, each with its interval."""
    shown, hidden = extremes(score.groups, len(score.groups) if everything else ENDS)
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column(no_wrap=True, ratio=1)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    for place, group in enumerate(shown):
        if hidden and place == len(shown) - ENDS:
            table.add_row(short(f"… {hidden:,} more …", DIM))
        bar = IntervalBar(group.low, group.high, style="cyan")
        rate = rate_text(score, group.rate)
        table.add_row(short(label(group.values)), bar, rate, _ends(score, group))
    return table


def _ends(score: GroupScore, group: results.Group) -> Any:
    if group.few:
        return short("too few", MARK)
    if group.low == group.high:
        return ""
    return short(f"{rate_text(score, group.low)} – {rate_text(score, group.high)}", DIM)
