"""How does a score look in a notebook? Static tables: inline styles, no scripts, all escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from themis.results.model import (
    CausalScore,
    Group,
    GroupScore,
    Result,
    Score,
    SearchResult,
    Witness,
)
from themis.show.words.scores import (
    extremes,
    headline,
    impact,
    masked,
    method,
    noise_warning,
    placebo_sentence,
    rate_text,
    region_sentence,
    seen,
)
from themis.show.words.searches import example, guarantee, search_headline, set_counts, set_text
from themis.show.words.values import label, percent, visible

WITNESSES = 2
CHANGES = 3
ENDS = 5
SETS = 40  # sets shown of a search
BAR_PIXELS = 240

_CELL = "padding:1px 10px 1px 0;text-align:left;border:none"
_FAINT = "opacity:.6"
_MARK = "background:#fc04"  # seen on light and on dark pages
_SHORT = 24  # characters of a cell that is not worth breaking


def html_of(thing: Any) -> str:
    """What a notebook shows of a result, a search, a score, a group or a witness."""
    if isinstance(thing, Result):
        return result_html(thing)
    if isinstance(thing, SearchResult):
        return search_html(thing)
    if isinstance(thing, Score):
        return score_html(thing)
    if isinstance(thing, Group):
        ends = f"{percent(thing.low)} – {percent(thing.high)}"
        bar = _Html(_bar(thing.low, thing.high))
        return _box(_table([[label(thing.values), bar, percent(thing.rate), ends]]))
    assert isinstance(thing, Witness)
    return _box(_witness(thing, "decision"))


def result_html(result: Result) -> str:
    """All scores of a result below each other."""
    parts = [search_html(search) for search in result.searches]
    parts += [score_html(score) for score in result.scores]
    noise = [noise_warning(result.noise)] if result.noise and result.noise.differing else []
    parts += [_line(f"warning: {note}") for note in (*_remarks(result), *noise, *result.notes)]
    for kind, failure in result.failures.items():
        parts.append(_line(f"failed: {kind}, {failure['count']:,} times; {failure['message']}"))
    cost = f"{result.executions:,} executions · seed {result.seed}"
    return _box("".join([*parts, _line(cost, _FAINT)]))


def score_html(score: Score) -> str:
    """One score: its headline, its interval and what belongs to its kind."""
    parts = [f'<div style="font-weight:bold">{_text(headline(score))}</div>']
    parts.append(
        _table([[score.measure, f"{score.score:.3f}", _Html(_bar(score.low, score.high))]])
    )
    parts.append(_line(method(score), _FAINT))
    if isinstance(score, CausalScore):
        parts += _causal_parts(score)
    elif isinstance(score, GroupScore):
        parts += _group_parts(score)
    parts += [_line(f"note: {note}") for note in score.notes]
    return _box("".join(parts))


def search_html(search: SearchResult) -> str:
    """One search: its headline, the minimal sets with an example each, and what is certain."""
    parts = [f'<div style="font-weight:bold">{_text(search_headline(search))}</div>']
    scores = {score.against: score for score in search.minimal_sets if score.samples}
    rows = [_search_row(names, scores.get(names)) for names in search.found[:SETS]]
    if rows:
        parts.append(_table(rows))
    hidden = len(search.found) - len(rows)
    if hidden:
        parts.append(_line(f"… and {hidden:,} more"))
    if search.undecided:
        names = "; ".join(set_text(each) for each in search.undecided[:SETS])
        parts.append(_line(f"could not be decided: {names}"))
    parts += [_line(set_counts(search), _FAINT), _line(guarantee(search), _FAINT)]
    parts += [_line(f"note: {note}") for note in search.notes]
    return _box("".join(parts))


def _search_row(names: tuple[str, ...], score: Score | None) -> Sequence[Any]:
    if score is None:
        return [set_text(names), "not measured"]
    bar = _Html(_bar(score.low, score.high))
    return [set_text(names), percent(score.score), bar, example(score) or ""]


class _Html(str):
    """Text that is HTML already."""


def _causal_parts(score: CausalScore) -> Iterator[str]:
    if score.placebo is not None:
        yield _line(placebo_sentence(score.placebo))
    for harm in score.direction[:CHANGES]:
        yield _line(
            f"{label(harm.change_from)} → {label(harm.change_to)}: {percent(harm.lost)} lose the "
            f"favourable decision, {percent(harm.gained)} gain it"
        )
    for region in score.regions:
        yield _line(region_sentence(region))
    for witness in score.witnesses[:WITNESSES]:
        yield _witness(witness, score.output or "decision")


def _witness(witness: Witness, output: str) -> str:
    first, second = witness.inputs
    rows: list[Sequence[Any]] = []
    for name in first:
        cells = (name, first[name], second[name])
        rows.append([_marked(each) for each in cells] if name in witness.differs_in else cells)
    rows.append([_Html(f"<b>{_text(visible(each))}</b>") for each in (output, *witness.outputs)])
    return _table(rows)


def _marked(value: Any) -> _Html:
    return _Html(f'<b style="{_MARK}">{_text(visible(value))}</b>')


def _group_parts(score: GroupScore) -> Iterator[str]:
    shown, hidden = extremes(score.groups, ENDS)
    rows = [_group_row(score, group) for group in shown]
    if hidden:
        rows.insert(ENDS, [f"… {hidden:,} more …"])
    yield _table(rows)
    yield from (_line(text) for text in (seen(score), impact(score)) if text is not None)


def _group_row(score: GroupScore, group: Group) -> Sequence[Any]:
    return [
        label(group.values),
        _Html(_bar(group.low, group.high)),
        rate_text(score, group.rate),
        f"{rate_text(score, group.low)} – {rate_text(score, group.high)}"
        + "; too few people" * group.few,
    ]


def _remarks(result: Result) -> Iterator[str]:
    groups = {each.against: each for each in result.scores if isinstance(each, GroupScore)}
    for score in result.scores:
        if isinstance(score, CausalScore) and score.against in groups:
            text = masked(score, groups[score.against])
            if text is not None:
                yield text


def _bar(low: float, high: float) -> str:
    """A bar from 0 to 1: dark up to `low`, light up to `high`."""
    solid, light = round(BAR_PIXELS * low), round(BAR_PIXELS * (high - low))
    piece = "display:inline-block;height:10px"
    return (
        f'<span style="{piece};width:{BAR_PIXELS}px;background:#8883">'
        f'<span style="{piece};width:{solid}px;background:#27c;float:left"></span>'
        f'<span style="{piece};width:{light}px;background:#27c8;float:left"></span></span>'
    )


def _table(rows: Iterable[Sequence[Any]]) -> str:
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    style = "border-collapse:collapse;margin:4px 0;color:inherit"
    return f'<table style="{style}">{body}</table>'


def _cell(value: Any) -> str:
    text = value if isinstance(value, _Html) else _text(visible(value))
    whole = ";white-space:nowrap" if len(visible(value)) <= _SHORT else ""
    return f'<td style="{_CELL}{whole}">{text}</td>'


def _line(text: str, style: str = "") -> str:
    return f'<div style="{style}">{_text(visible(text))}</div>'


def _text(text: str) -> str:
    return escape(text, quote=True)


def _box(content: str) -> str:
    return f'<div style="margin:6px 0;line-height:1.4">{content}</div>'
