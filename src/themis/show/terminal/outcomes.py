"""Known outcomes and proxies in a terminal: tables of rates, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.outcomes import OutcomeGroup, Outcomes, Proxy, Rate
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    NUMBER,
    WARNING,
    Fitting,
    Sentence,
    grid,
    indented,
    short,
)
from themis.show.words.outcomes import (
    GAP_WORDS,
    NO_VERDICT,
    RATE_WORDS,
    about_outcomes,
    few_words,
    gap_difference,
    gap_groups,
    gap_ratio,
    outcomes_certainty,
    rate_ends,
    rate_words,
    undefined,
)
from themis.show.words.proxies import (
    PROXY_HEADS,
    proxies_certainty,
    proxy_row,
    proxy_sentences,
)
from themis.show.words.values import count, set_phrase
from themis.show.words.wording import Wording

HEADS = ("", "selected", "true pos.", "false pos.", "precision", "accuracy")
GROUPS = 12  # shown, unless all are asked for
NAME = 44  # letters of a group: two lines
WORD = 12  # letters that are not folded


def show_outcomes(
    outcomes: Outcomes, words: Wording, *, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of one table of known outcomes."""
    yield Sentence(about_outcomes(outcomes, words), HEADLINE)
    yield indented(_rates(outcomes, words, everything=everything))
    yield ""
    yield indented(_gaps(outcomes, words))
    for text in undefined(outcomes, words):
        yield indented(Sentence(text, WARNING, first="undefined: "))
    yield indented(Sentence(f"{outcomes_certainty(outcomes)} {NO_VERDICT}"))


def show_proxies(
    proxies: Sequence[Proxy], words: Wording, *, everything: bool = False
) -> Iterator[RenderableType]:
    """What may stand in for one set."""
    yield Sentence(f"What may stand in for {set_phrase(proxies[0].against)}", HEADLINE)
    rows = [proxy_row(each) for each in (proxies if everything else proxies[:GROUPS])]
    yield indented(_whole_numbers(PROXY_HEADS, rows))
    for text in proxy_sentences(proxies, words):
        yield indented(Sentence(f"{text}."))
    yield indented(Sentence(proxies_certainty(proxies)))


def _rates(outcomes: Outcomes, words: Wording, *, everything: bool) -> Fitting:
    """The rates of each group, below each other where they do not fit side by side."""
    shown = outcomes.groups if everything else outcomes.groups[:GROUPS]
    ends = everything and outcomes.confidence is not None
    hidden = outcomes.groups_total - len(shown)
    more = [short(f"… {count(hidden, 'more group')}", DIM)] if hidden else []
    lines = (line for group in shown for line in _group_lines(group, words, ends=ends))
    return Fitting(_rates_table(shown, words, more, ends=ends), (*lines, *more))


def _group_lines(group: OutcomeGroup, words: Wording, *, ends: bool) -> Iterator[RenderableType]:
    yield Sentence(f"{words.label(group.values, NAME)}, {_people(group)}")
    for name, rate in group.rates():
        parts = [few_words(rate), rate_ends(rate) if ends else ""]
        behind = ", ".join(filter(None, parts))
        text = f"{RATE_WORDS[name]} {rate_words(rate)}{f' ({behind})' if behind else ''}"
        yield indented(Sentence(text))


def _rates_table(
    shown: Sequence[OutcomeGroup], words: Wording, more: Sequence[Text], *, ends: bool
) -> Table:
    columns = zip(*([rate for _, rate in group.rates()] for group in shown), strict=True)
    numbers = [
        {**NUMBER, "no_wrap": False, "min_width": max(map(len, _texts(head, rates, ends=ends)))}
        for head, rates in zip(HEADS[1:], columns, strict=True)
    ]  # a number is never cut, a head may be folded
    table = grid({**FOLDED, "max_width": 22}, *numbers, gap=1)
    table.add_row(*(Text(head, DIM) for head in HEADS))
    for group in shown:
        rates = [rate for _, rate in group.rates()]
        table.add_row(Text(words.label(group.values, NAME)), *map(rate_words, rates))
        table.add_row(Text(_people(group), DIM), *(short(few_words(r), DIM) for r in rates))
        if ends:
            table.add_row("", *(short(rate_ends(each).removesuffix(" %"), DIM) for each in rates))
    for each in more:
        table.add_row(each)
    return table


def _texts(head: str, rates: Iterable[Rate], *, ends: bool) -> Iterator[str]:
    """What a column must have room for: its numbers, and each word of its head."""
    yield from head.split()
    for rate in rates:
        yield from (rate_words(rate), few_words(rate))
        yield from [rate_ends(rate).removesuffix(" %")] * ends


def _people(group: OutcomeGroup) -> str:
    return f"{group.positives:,} of {group.labelled:,} favourable"


def _gaps(outcomes: Outcomes, words: Wording) -> Fitting:
    heads = ("", "points apart", "ratio", "lowest – highest")
    rows = [
        (
            GAP_WORDS[gap.name],
            gap_difference(gap).replace(" points", ""),
            gap_ratio(gap),
            gap_groups(gap, words),
        )
        for gap in outcomes.gaps
    ]
    return _whole_numbers(heads, rows)


def _whole_numbers(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Fitting:
    """A table whose second and third column are numbers, and never cut; texts are folded.

    Where they have no room a line for each row.
    """
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in (1, 2)]
    numbers = [{**NUMBER, "min_width": width} for width in widths]
    longest = max((len(word) for row in rows for word in row[0].split()), default=0)
    first = {**FOLDED, "min_width": min(longest, WORD)}
    table = grid(first, *numbers, *[FOLDED] * (len(heads) - 3))
    table.add_row(*(Text(head, DIM) for head in heads))
    for row in rows:
        table.add_row(*map(Sentence, row))
    return Fitting(table, tuple(Sentence(_row_text(heads, row)) for row in rows))


def _row_text(heads: Sequence[str], row: Sequence[str]) -> str:
    """A row of a table in words: `precision: points apart 7.2, ratio 0.83`."""
    signs = (":" if "–" in head else "" for head in heads[1:])
    parts = zip(heads[1:], signs, row[1:], strict=True)
    cells = (f"{head}{sign} {cell}" for head, sign, cell in parts if cell)
    return f"{row[0]}: {', '.join(cells)}"
