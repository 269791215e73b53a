"""What a notebook shows: static tables with inline styles, and pictures of intervals as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

from themis.inputs.schema import Schema
from themis.results.hooks import Plot
from themis.results.model import FOUR_FIFTHS, CausalScore, GroupScore, Result, Score, SearchResult
from themis.results.parts import Group, Witness
from themis.results.withheld import is_told, withheld
from themis.settings import Settings
from themis.show.html import Html, tag
from themis.show.intervals import WHOLE, Interval, Mark
from themis.show.svg import chart
from themis.show.words.explanations import (
    change_sentence,
    noise_warning,
    pairs_origin,
    placebo_sentence,
    region_sentence,
)
from themis.show.words.headlines import headline, score_text
from themis.show.words.scores import (
    UNSAID,
    account_text,
    by_set,
    extremes,
    hidden_changes,
    impact,
    method,
    seen,
)
from themis.show.words.searches import example, guarantee, search_headline, set_counts, set_text
from themis.show.words.units import rate_text
from themis.show.words.values import count, percent, told_apart, visible
from themis.show.words.verdicts import verdict
from themis.show.words.wording import PLAIN, Wording, brought, wording

WITNESSES = 2
CHANGES = 3
GROUPS = 5  # from either end of a table
SETS = 40  # sets shown of a search
BAR_PIXELS = 240

_FAINT = "opacity:.6"
_BOLD = "font-weight:bold"
_MARK = "background:#fc04"  # seen on light and on dark pages
_SHORT = 24  # characters of a cell that is not worth breaking


def html_of(thing: Any) -> Html:
    """What a notebook shows of a result, a search, a score, a group or a witness."""
    return _html_of(withheld(thing))


@singledispatch
def _html_of(thing: Any) -> Html:
    raise TypeError(f"there is no table of {type(thing).__name__}")


@_html_of.register
def _(result: Result) -> Html:
    """All scores of a result below each other."""
    noise = [noise_warning(result.noise)] if result.noise and result.noise.differing else []
    words = wording(result)
    hidden = filter(None, (hidden_changes(each, words) for each in by_set(result.scores).values()))
    failures = result.failures.items()
    several = len(result.scores) > 1 and not result.searches
    return _box(
        *([_line(f"{verdict(result).sentence}.", _BOLD)] if several else []),
        *(_search_box(each, words) for each in result.searches),
        *(_score_box(each, words) for each in result.scores),
        *(_line(f"warning: {note}") for note in (*hidden, *noise, *result.notes)),
        *(
            _line(f"failed: {kind}, {count(f['count'], 'time')}; {f['message'] or UNSAID}")
            for kind, f in failures
        ),
        _line(f"{account_text(result)} · seed {result.seed}", _FAINT),
    )


@_html_of.register
def _(score: Score) -> Html:
    return _score_box(score, brought([score]))


def audit_html(
    kind: str, schema: Schema, profile: Mapping[str, Any] | None, settings: Settings
) -> Html:
    """What a notebook shows of an audit: its subject, whence its inputs come, and the schema."""
    drawn = "generated, each characteristic by its weights"
    if profile is not None:
        drawn = f"drawn from {count(profile['used'], 'row')} of {profile['file']}"
    return _box(
        _line(f"Audit of a subject of the kind {kind}", _BOLD),
        _line(f"Test inputs are {drawn}."),
        _line(f"{percent(settings.confidence)} confidence, error {settings.error:g}", _FAINT),
        Html(schema._repr_html_()),
    )


def _score_box(score: Score, words: Wording) -> Html:
    """One score: its headline, its interval and what belongs to its kind."""
    parts: Iterable[Html] = ()
    if isinstance(score, CausalScore):
        parts = _causal_parts(score, words)
    elif isinstance(score, GroupScore):
        parts = _group_parts(score, words)
    return _box(
        _line(headline(score, words), _BOLD),
        _table([[score.measure, *_number(score, f"{score.score:.3f}")]]),
        _line(method(score, words), _FAINT),
        *parts,
        *(_line(f"note: {note}") for note in score.notes),
    )


@_html_of.register
def _(search: SearchResult) -> Html:
    return _search_box(search, brought(search.minimal_sets))


def _search_box(search: SearchResult, words: Wording) -> Html:
    """One search: its headline, the minimal sets with an example each, and what is certain."""
    parts = [_line(search_headline(search, words), _BOLD)]
    scores = {score.against: score for score in search.minimal_sets if score.samples}
    rows = [_search_row(names, scores.get(names), words) for names in search.found[:SETS]]
    if rows:
        parts.append(_table(rows))
    if len(search.found) > len(rows):
        parts.append(_line(f"… and {len(search.found) - len(rows):,} more"))
    if search.undecided:
        names = "; ".join(set_text(each) for each in search.undecided[:SETS])
        parts.append(_line(f"undecided: {names}"))
    parts += [_line(set_counts(search), _FAINT), _line(guarantee(search), _FAINT)]
    return _box(*parts, *(_line(f"note: {note}") for note in search.notes))


@_html_of.register
def _(group: Group) -> Html:
    ends = f"{percent(group.low)} – {percent(group.high)}"
    bar = _bar(group.low, group.high)
    return _box(_table([[PLAIN.label(group.values), bar, percent(group.rate), ends]]))


@_html_of.register
def _(witness: Witness) -> Html:
    return _box(_witness(witness, "decision"))


def _search_row(names: tuple[str, ...], score: Score | None, words: Wording) -> Sequence[Any]:
    if score is None:
        return [set_text(names), "not measured"]
    return [set_text(names), *_number(score, score_text(score)), example(score, words) or ""]


def _number(score: Score, text: str) -> Sequence[Any]:
    """How large a score is, with its bar, unless that would tell of few people."""
    return [text, _bar(score.low, score.high)] if is_told(score) else ["not shown", ""]


def _causal_parts(score: CausalScore, words: Wording) -> Iterator[Html]:
    if score.placebo is not None:
        yield _line(placebo_sentence(score, words))
    for harm in score.direction[:CHANGES]:
        of = words.tested(harm.contexts, score)
        yield _line(f"{change_sentence(harm, words, score.output)} (of {of})")
    yield from (_line(region_sentence(region, score, words)) for region in score.regions)
    yield from (_witness(each, score.output or "decision") for each in score.witnesses[:WITNESSES])
    if whose := pairs_origin(score):
        yield _line(f"These pairs: {whose}.", _FAINT)
    if score.placebo is not None and (score.direction or score.witnesses):
        yield _line("Changes by noise alone may be among these.", _FAINT)


def _witness(witness: Witness, output: str) -> Html:
    first, second = witness.inputs
    rows: list[Sequence[Any]] = []
    for name in first:
        cells = [visible(name), *told_apart([first[name], second[name]])]
        changed = name in witness.differs_in
        rows.append([tag("b", each, style=_MARK) for each in cells] if changed else cells)
    outputs = (visible(output), *told_apart(witness.outputs))
    return _table([*rows, [tag("b", each) for each in outputs]])


def _group_parts(score: GroupScore, words: Wording) -> Iterator[Html]:
    shown, hidden = extremes(score.groups, GROUPS)
    rows = [_group_row(score, group, words) for group in shown]
    if hidden:
        rows.insert(GROUPS, [f"… {hidden:,} more …"])
    yield _table(rows)
    yield from (_line(text) for text in (seen(score), impact(score)) if text is not None)


def _group_row(score: GroupScore, group: Group, words: Wording) -> Sequence[Any]:
    low, high = (rate_text(score, each) for each in (group.low, group.high))
    few = f"; too few {words.people}" * group.few
    ends = f"{'exact' if group.low == group.high else f'{low} – {high}'}{few}"
    tested = words.of_group(group, score)
    return [
        words.label(group.values),
        _bar(group.low, group.high),
        rate_text(score, group.rate),
        f"of {tested}",
        ends,
    ]


def _bar(low: float, high: float) -> Html:
    """A bar from 0 to 1: dark up to `low`, light up to `high`."""
    solid, light = round(BAR_PIXELS * low), round(BAR_PIXELS * (high - low))
    piece = "display:inline-block;height:10px"
    return tag(
        "span",
        tag("span", style=f"{piece};width:{solid}px;background:#27c;float:left"),
        tag("span", style=f"{piece};width:{light}px;background:#27c8;float:left"),
        style=f"{piece};width:{BAR_PIXELS}px;background:#8883",
    )


def _table(rows: Iterable[Sequence[Any]]) -> Html:
    body = (tag("tr", *map(_cell, row)) for row in rows)
    return tag("table", *body, style="border-collapse:collapse;margin:4px 0;color:inherit")


def _cell(value: Any) -> Html:
    whole = ";white-space:nowrap" if len(value) <= _SHORT else ""
    return tag("td", value, style=f"padding:1px 10px 1px 0;text-align:left;border:none{whole}")


def _line(text: str, style: str | None = None) -> Html:
    return tag("div", visible(text), style=style)


def _box(*content: Html) -> Html:
    return tag("div", *content, style="margin:6px 0;line-height:1.4")


ENDS = 10  # groups of a picture, from either end
ROWS = 40  # of a picture


def plot(thing: Any) -> Plot:
    """The picture of a score, a search or a result."""
    return _plot(withheld(thing))


@singledispatch
def _plot(thing: Any) -> Plot:
    raise TypeError(f"there is no picture of {type(thing).__name__}")


@_plot.register
def _(score: Score) -> Plot:
    return Plot(chart([_interval(score)] if is_told(score) else [], headline(score)))


@_plot.register
def _(score: GroupScore) -> Plot:
    """The groups' rates; the four-fifths line is four fifths of the highest."""
    shown, hidden = extremes(score.groups, ENDS)
    rows = [Interval(each.low, each.high, each.rate, PLAIN.label(each.values)) for each in shown]
    best = score.most_favoured
    marks = []
    if best is not None and score.impact_ratio is not None:
        marks = [Mark(FOUR_FIFTHS * best.rate, "four fifths of the highest")]
    title = headline(score) + (f"; {count(hidden, 'group')} left out" if hidden else "")
    units = partial(rate_text, score)  # of a number, those of the number
    return Plot(chart(rows, title, marks, axis=WHOLE, units=units))


@_plot.register
def _(search: SearchResult) -> Plot:
    measured = [each for each in search.minimal_sets if each.samples and is_told(each)][:ROWS]
    limit = Mark(search.threshold, f"threshold {percent(search.threshold)}")
    return Plot(chart(list(map(_interval, measured)), search_headline(search), [limit]))


@_plot.register
def _(result: Result) -> Plot:
    rows = [_interval(each, f"{each.measure} ") for each in result.scores if is_told(each)][:ROWS]
    return Plot(chart(rows, verdict(result).sentence))


def _interval(score: Score, before: str = "") -> Interval:
    return Interval(score.low, score.high, score.score, f"{before}{set_text(score.against)}")
