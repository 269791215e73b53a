"""What do several scores say together? The verdict, and all intervals on one axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import GroupScore, Score
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    IntervalBar,
    Sentence,
    axis_end,
    indented,
    short,
)
from themis.show.words.values import apart_text, compared, output_name, percent, set_phrase

ROWS = 20  # of the table


def show_overview(scores: Sequence[Score]) -> Iterator[RenderableType]:
    """The verdict in one sentence, then a line for each score."""
    yield Sentence(verdict(scores), HEADLINE)
    if any(score.samples for score in scores):
        yield indented(_table(scores))


def verdict(scores: Sequence[Score]) -> str:
    """What scores say together: on what each output depends, how much, how surely.

    Of causal and group scores the causal ones count.
    """
    causal = [score for score in scores if score.measure == "causal"]
    by_output: dict[str | None, list[Score]] = {}
    for score in causal or scores:
        by_output.setdefault(score.output, []).append(score)
    return ". ".join(_verdict(each) for each in by_output.values())


def _verdict(scores: Sequence[Score]) -> str:
    """The same for scores of one measure and one output."""
    words = _words(scores[0])
    certain = [each for each in scores if each.samples and each.low > 0]
    never = [each for each in scores if each.method == "exact" and each.samples and not each.high]
    unsure = [each for each in scores if each not in certain and each not in never]
    clauses = []  # what stands before and behind the noun
    if certain:
        clauses.append(("", f"{words.does} {_listed(map(_with_size, certain))}"))
    if unsure:
        bound = f" (at most {percent(most)})" if (most := max(s.high for s in unsure)) < 1 else ""
        clauses.append(("whether ", f"{words.does} {_any(unsure)} is not certain{bound}"))
    if never:
        clauses.append(("", f"{words.does_not} {_any(never)}"))
    nouns = (words.noun, words.again, words.again)
    return "; ".join(f"{a}{noun} {b}" for noun, (a, b) in zip(nouns, clauses, strict=False))


@dataclass(frozen=True)
class _Words:
    """A sentence on one thing, and the same again."""

    noun: str
    again: str
    does: str
    does_not: str


def _words(score: Score) -> _Words:
    if isinstance(score, GroupScore):
        noun = f"the {score.statistic}s of {compared(score).removeprefix('mean ')}"
        return _Words(noun, "they", "differ by", "do not differ by")
    return _Words(output_name(score), "it", "depends on", "does not depend on")


def _with_size(score: Score) -> str:
    low, size = percent(score.low), percent(score.score)
    if isinstance(score, GroupScore):
        low, size = apart_text(score, score.low), apart_text(score, score.score)
    return f"{set_phrase(score.against)} ({f'at least {low}' if score.lower_bound else size})"


def _any(scores: Sequence[Score]) -> str:
    return _listed((set_phrase(each.against) for each in scores), "or")


def _listed(parts: Iterable[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = parts
    return f"{', '.join(others)} {word} {last}" if others else last


def point(score: Score) -> str:
    """The score for a table; the groups' rates may be equal when the interval begins at 0."""
    if score.lower_bound:
        return f"≥ {percent(score.low)}"
    if score.measure == "group" and score.method == "sampled" and score.low == 0:
        return f"≤ {percent(score.high)}"
    return percent(score.score)


def interval_text(score: Score) -> Text:
    """The interval of a score, or that there is none."""
    if score.low == score.high:
        return short("exact", DIM)
    return short(f"{percent(score.low)} – {percent(score.high)}", DIM)


def _table(scores: Sequence[Score]) -> Table:
    known = [score for score in scores if score.samples]
    end = axis_end(max((score.high for score in known), default=1.0))
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=20)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, ratio=1, min_width=8)
    table.add_column(no_wrap=True, justify="right")
    heads = ("set", "measure", "score", f"0 to {100 * end:.0f} %", "interval")
    table.add_row(*(short(head, DIM) for head in heads))
    for score in known[:ROWS]:
        bar = IntervalBar(score.low, score.high, end, "red" if score.low > 0 else "green")
        name = set_phrase(score.against).removesuffix(" together")
        of = "" if score.output is None else f" → {output_name(score)}"
        table.add_row(short(f"{name}{of}"), score.measure, point(score), bar, interval_text(score))
    if len(known) > ROWS:
        table.add_row(short(f"… {len(known) - ROWS:,} more below", DIM))
    return table
