"""One score in a terminal: its headline, its bars, and the people it happens to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from themis.results import parts
from themis.results.model import CausalScore, GroupScore, Score
from themis.results.parts import Witness
from themis.results.withheld import is_told
from themis.show.intervals import Axis
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    MARK,
    NUMBER,
    WARNING,
    Ends,
    IntervalBar,
    Sentence,
    ShellLine,
    drawn,
    grid,
    indented,
    short,
)
from themis.show.words.explanations import (
    change_sentence,
    counted_people,
    directions_certainty,
    flip_rate_sentence,
    joint_pair_sentence,
    joint_sentences,
    other_changes_first,
    pairs_origin,
    placebo_sentence,
    region_sentence,
)
from themis.show.words.headlines import headline, highest_of, output_name
from themis.show.words.scores import extremes, impact, method, seen
from themis.show.words.units import rate_text
from themis.show.words.values import (
    count,
    set_phrase,
    set_with_followers,
    told_apart,
    visible,
)
from themis.show.words.wording import PLAIN, Wording

WITNESSES = 2  # pairs of people shown, unless all are asked for
COMMON = 12  # characteristics shown in which the two people agree
NARROW = 70  # below this width one pair of people stands beside the names, else two


def show_witnesses(
    score: CausalScore, *, width: int, everything: bool = False, words: Wording = PLAIN
) -> Iterator[RenderableType]:
    """The witnesses, two people side by side, and how to see the first in a shell."""
    ranked = other_changes_first(score.witnesses)
    shown = ranked if everything else ranked[:WITNESSES]
    pairs = show_pairs(score, shown, width=width, everything=everything, words=words)
    yield from map(indented, pairs)
    hidden = len(score.witnesses) - len(shown)
    if hidden:
        more = count(hidden, "more such pair")
        yield indented(short(f"{more}: -v shows {'it' if hidden == 1 else 'them'}", DIM))
    if everything and shown and shown[0].reproduce:
        yield indented(Sentence("The first pair, in a shell:"))
        yield from (ShellLine(visible(line)) for line in shown[0].reproduce)


def show_pairs(
    score: CausalScore,
    pairs: Sequence[Witness],
    *,
    width: int,
    everything: bool = False,
    words: Wording = PLAIN,
) -> Iterator[RenderableType]:
    """Who the pairs of people are, then one or two of them in each table."""
    phrase = set_with_followers(score.against, score.followed)
    if pairs:
        yield ""
        whose = pairs_origin(score)
        whose = f" ({whose})" if whose else ""
        yield Sentence(f"Pairs who differ only in {phrase} but {they_get(score)}{whose}:")
    step = 1 if width < NARROW else 2
    for first in range(0, len(pairs), step):
        if first:
            yield ""
        some = pairs[first : first + step]
        yield pairs_table(some, width, everything=everything, output=score.output)
        yield from map(Sentence, joint_pairs(some, score, words))


def joint_pairs(pairs: Sequence[Witness], score: CausalScore, words: Wording) -> Iterator[str]:
    """Of which of these pairs no single change is enough."""
    for pair in pairs:
        if (text := joint_pair_sentence(pair, score, words)) is not None:
            yield text


def they_get(score: CausalScore) -> str:
    """What the two of a pair get."""
    what = f"{output_name(score).removeprefix('the ')}s"
    if score.output is not None:
        what = f"values of {output_name(score)}"
    if score.placebo is not None:
        return f"got different {what}, maybe by noise"
    return f"get different {what}"


def show_difference(
    witness: Witness, *, width: int, output: str | None = None
) -> Iterator[RenderableType]:
    """One pair in few lines: in what the two differ side by side, and what both have."""
    names = [name for name in witness.inputs[0] if name not in witness.differs_in]
    yield pairs_table([without(witness, names)], width, everything=True, output=output)
    both = [f"{set_phrase([n])} {set_phrase([visible(witness.inputs[0][n])])}" for n in names]
    if both:
        rest = f", + {len(both) - COMMON} more" if len(both) > COMMON else ""
        yield Sentence(f"{', '.join(both[:COMMON])}{rest}", DIM, first="both have ")


def without(witness: Witness, names: Sequence[str]) -> Witness:
    """The pair with these characteristics left out."""
    first, second = ({n: v for n, v in each.items() if n not in names} for each in witness.inputs)
    return replace(witness, inputs=(first, second))


def pairs_table(
    pairs: Sequence[Witness], width: int, *, everything: bool = False, output: str | None = None
) -> Table:
    """Pairs of people beside the names of their characteristics, then their decisions."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair.inputs[0]))
    changed = {name for pair in pairs for name in pair.differs_in}
    common = [name for name in names if name not in changed]
    hidden = set() if everything else set(common[COMMON:])
    named = min(max(len(visible(each)) for each in (*names, output or "decision")), 18)
    widest = max(8, ((width - named - 2) // len(pairs) - 7) // 2)
    columns: list[dict[str, Any]] = [{"max_width": named}]
    for _ in pairs:
        columns += [{"width": 1}, *({"max_width": widest, "min_width": 8} for _ in range(2))]
    table = grid(*columns)
    for name in (name for name in names if name not in hidden):
        cells = [_two(pair, name, widest) for pair in pairs]
        table.add_row(short(visible(name), MARK if name in changed else DIM), *_joined(cells))
    if hidden:
        same = [[short("=", DIM), short("=", DIM)] for _ in pairs]
        table.add_row(short(f"+ {len(hidden)} more", DIM), *_joined(same))
    outputs = [[_whole(each, HEADLINE) for each in told_apart(pair.outputs)] for pair in pairs]
    table.add_row(short(visible(output or "decision"), HEADLINE), *_joined(outputs))
    return table


def _two(pair: Witness, name: str, width: int) -> list[Text]:
    """One characteristic of two people; marked where they differ."""
    if name not in pair.inputs[0]:  # withheld: the two have the same value
        return [short("=", DIM), short("=", DIM)]
    first, second = told_apart([each[name] for each in pair.inputs])
    if name in pair.differs_in:
        mark = "‹" if max(map(len, second.split(" "))) + 2 > width else "‹ "  # on a line with it
        return [_whole(first, MARK), _whole(f"{mark}{second}", MARK)]
    return [short(first, DIM), short(second, DIM)]


def _whole(text: str, style: str) -> Text:
    """What two people differ in, on several lines where it is long: cut, it might look the same."""
    return Text(text, style, no_wrap=False, overflow="fold")


def _joined(cells: Sequence[Sequence[Text]]) -> Iterator[Text]:
    """The cells of all pairs, with a line before each pair."""
    for pair in cells:
        yield short("│", DIM)
        yield from pair


CHANGES = 3  # directions of harm shown
ENDS = 5  # groups shown from either end
LABEL = 36  # letters of a group's name
LEAST_BAR = 4  # columns of a bar


def show_score(
    score: Score,
    *,
    width: int,
    everything: bool = False,
    words: Wording = PLAIN,
    axis: Axis | None = None,
) -> Iterator[RenderableType]:
    """The parts of one score, from its headline down; `axis` is that of all scores of a page."""
    yield Sentence(headline(score, words), HEADLINE, break_before=" (")
    if not score.samples:
        return  # an interval from 0 to 1 is all there is to draw, and the headline says why
    if isinstance(score, CausalScore):
        yield indented(_causal_details(score, words, axis or Axis.reaching(score.high)))
        yield from show_witnesses(score, width=width, everything=everything, words=words)
    elif isinstance(score, GroupScore):
        yield indented(_group_details(score, everything, words, width))
    for note in score.notes:
        yield indented(Sentence(str(note), WARNING, first="note: "))


def _causal_details(score: CausalScore, words: Wording, axis: Axis) -> Group:
    shown = f"≥ {score.low:.3f}" if score.lower_bound else f"{score.score:.3f}"
    style = "red" if score.low > 0 else "green"
    bar = IntervalBar(score.low, score.high, axis, style)
    where = [Sentence(text) for text in joint_sentences(score, words)]
    where += [Sentence(region_sentence(region, score, words)) for region in score.regions]
    noise = []
    if score.placebo is not None:
        noise = [Sentence(placebo_sentence(score, words), WARNING)]
    picture = drawn(f"causal score {shown}", bar) if is_told(score) else Group()
    how = Sentence(method(score, words), DIM)
    return Group(picture, how, *noise, *_harm(score, words), *where)


def _harm(score: CausalScore, words: Wording) -> Iterator[RenderableType]:
    for harm in score.direction[:CHANGES]:
        yield Sentence(change_sentence(harm, words, score.output))
    left = len(score.direction) - CHANGES
    if left > 0:
        yield Sentence(
            f"… and {count(left, 'more change that does', 'more changes that do')} harm", DIM
        )
    if score.direction:
        yield Sentence(_counted_on(score, words), DIM)


def _counted_on(score: CausalScore, words: Wording) -> str:
    """On whom the directions were counted; with more than two values, the flip rate too."""
    people = counted_people(score, words)
    if score.flip_rate is None or len(score.direction) == 1:
        return f"counted on {people}{directions_certainty(score)}"
    return (
        f"{flip_rate_sentence(score)} (counted on {people.partition(', ')[0]}"
        f"{directions_certainty(score)})"
    )


def _group_details(score: GroupScore, everything: bool, words: Wording, width: int) -> Group:
    parts: list[RenderableType] = []
    if score.groups:
        parts.append(rates_table(score, width=width, everything=everything, words=words))
    best, worst = score.most_favoured, score.least_favoured
    texts = [seen(score), impact(score) if len(score.groups) > 1 else None]
    if best is not None and worst is not None and score.low > 0:
        favoured, last = words.label(best.values), words.label(worst.values)
        texts.insert(0, f"{highest_of(score)}: {favoured}; lowest: {last}")
    parts += [Sentence(text) for text in texts if text is not None]
    number = f"{score.score:.3f}" if is_told(score) else "not shown"
    return Group(*parts, Sentence(f"group score {number}; {method(score, words)}", DIM))


def rates_table(
    score: GroupScore, *, width: int, everything: bool = False, words: Wording = PLAIN
) -> Table:
    """The groups by falling rate, each with its interval and its number of tests."""
    shown, hidden = extremes(score.groups, len(score.groups) if everything else ENDS)
    labels = [words.label(group.values, most=LABEL) for group in shown]
    rates = [rate_text(score, group.rate) for group in shown]
    of = "among" if score.statistic == "mean" else "of"
    tested = [f"{of} {group.samples:,}" for group in shown]
    ends = [_ends(score, group) for group in shown]
    least = max((each.narrowest for each in ends if isinstance(each, Ends)), default=0)
    least = max(least, len("too")) if any(ends) else 0
    interval = [{**FOLDED, **NUMBER, "min_width": least}] * any(ends)  # folded, and never cut
    left = width - 10 - LEAST_BAR - max(map(len, rates)) - max(map(len, tested)) - least
    word = max(len(each) for label in labels for each in label.split(" "))  # better not broken
    bars = [{"ratio": 1, "width": LEAST_BAR}] * (left >= word)
    left = max(1, left if bars else left + LEAST_BAR + 2)
    if any(ends) and (not bars or (least == len("too") and left < word + len(" few"))):
        interval = [{**interval[0], "width": least}]
    name = {**FOLDED, "max_width": LABEL if bars else left, "min_width": min(word, left)}
    table = grid(name, *bars, NUMBER, NUMBER, *interval, expand=bool(bars))
    for place, group in enumerate(shown):
        if hidden and place == len(shown) - ENDS:
            table.add_row(short(f"… {hidden:,} more …", DIM))
        bar = [IntervalBar(group.low, group.high)] * len(bars)
        row = [rates[place], short(tested[place], DIM), *([ends[place]] * any(ends))]
        table.add_row(Text(labels[place]), *bar, *row)
    return table


def _ends(score: GroupScore, group: parts.Group) -> RenderableType:
    if group.few:
        return Text("too few", MARK)
    if group.low == group.high:
        return ""
    return Ends(rate_text(score, group.low), rate_text(score, group.high))
