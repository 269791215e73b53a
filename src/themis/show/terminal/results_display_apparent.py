"""How do apparent scores look in a terminal? The rows and all inputs side by side, then details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from themis.results.model import GroupScore, Result, Score
from themis.show.terminal.parts import (
    DIM,
    HEADLINE,
    MARK,
    Sentence,
    grid,
    indented,
    make_console,
    short,
)
from themis.show.terminal.results import render, show_result
from themis.show.terminal.scores import show_score
from themis.show.words.scores_display_result_words import inconclusive
from themis.show.words.values import apart_text, count, percent, set_phrase, visible

IGNORED = 6  # columns named that the schema does not know


def render_apparent(
    result: Result,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """The whole result as text for a terminal or a file."""
    console = make_console(file, width=width)
    return render(show_apparent(result, width=console.width, everything=everything), console)


def show_apparent(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of a result from top to bottom."""
    data = result.data or {}
    yield Sentence(_rows_used(data), HEADLINE)
    yield from _columns(data)
    yield ""
    sets = dict.fromkeys(score.against for score in result.scores)
    for against in sets:
        scores = [score for score in result.scores if score.against == against]
        rows = [score for score in scores if score.population != "inputs"]
        yield Rule(Text(set_phrase(against), "bold cyan"), align="left", style="cyan")
        yield indented(_side_by_side(scores))
        if any(map(_has_few, rows)):
            yield indented(Sentence("* some of the groups have too few people to judge them", MARK))
        if len(rows) < len(scores):
            yield indented(Sentence(why_they_differ(data), DIM))
        for score in rows:
            yield ""
            yield from show_score(score, width=width, everything=everything)
        yield ""
    for text in inconclusive(result.scores):
        yield Sentence(text, MARK, first="inconclusive: ")
    yield from show_result(replace(result, scores=()), width=width, everything=everything)


def _rows_used(data: Mapping[str, Any]) -> str:
    """How many rows there were, and how many of them count."""
    text = f"{visible(data['file'])}: {count(data['rows'], 'row')}"
    if data["dropped"]:
        verb = "does" if data["dropped"] == 1 else "do"
        text += f", {data['dropped']:,} {verb} not fit, {data['used']:,} used"
    if data.get("weightless"):
        text += f", {data['weightless']:,} of weight 0"
    if data["distinct"] < data["used"]:
        text += f", {data['distinct']:,} different"
    return f"{text}, weighted by {visible(data['weights'])}" if "weights" in data else text


def why_they_differ(data: Mapping[str, Any]) -> str:
    """Why the score of rows is another than that of all inputs, in one sentence."""
    return (
        f"They may differ: the rows count people as they occur in {visible(data['file'])}, where "
        "characteristics go together; all inputs count every valid combination, whether anybody "
        "has it or not."
    )


def _columns(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    ignored = data["ignored"]
    if ignored:
        names = ", ".join(visible(name) for name in ignored[:IGNORED])
        more = f" and {len(ignored) - IGNORED} more" if len(ignored) > IGNORED else ""
        yield Sentence(f"columns that the schema does not know are ignored: {names}{more}", DIM)


def _side_by_side(scores: Sequence[Score]) -> Table:
    compared = any(score.population == "inputs" for score in scores)
    table = grid({}, {"justify": "right"}, {"justify": "right"})
    heads = ["", "these rows", *(["all inputs"] if compared else [])]
    table.add_row(*(short(head, DIM) for head in heads))
    of_rows = {_name(score): score for score in scores if score.population != "inputs"}
    of_all = {_name(score): score for score in scores if score.population == "inputs"}
    for name in {**of_rows, **of_all}:
        cells = [_number(each.get(name)) for each in ([of_rows, of_all] if compared else [of_rows])]
        table.add_row(short(name), *cells)
    return table


def _name(score: Score) -> str:
    """What a line of the table is about."""
    parts = [] if score.output is None else [visible(score.output)]
    if isinstance(score, GroupScore):
        parts.append("group, mean" if score.statistic == "mean" else "group")
    else:
        within = score.counterfactuals == "within"
        parts.append("causal, within the rows" if within else "causal, generated")
    return ": ".join(parts)


def _number(score: Score | None) -> Text:
    if score is None or not score.samples:
        return short("–", DIM)
    text = f"≥ {_said(score, score.low)}" if score.lower_bound else _said(score, score.score)
    if score.low < score.high and not score.lower_bound:
        low, high = (_said(score, end).removesuffix(" %") for end in (score.low, score.high))
        text += f" ({low.removesuffix(' points')} – {high.removesuffix(' points')})"
    return short(f"{text} *" if _has_few(score) else text, HEADLINE)


def _said(score: Score, number: float) -> str:
    return apart_text(score, number) if isinstance(score, GroupScore) else percent(number)


def _has_few(score: Score) -> bool:
    return isinstance(score, GroupScore) and any(group.few for group in score.groups)
