"""What a notebook shows: the blocks of a result as a page has them, and pictures as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

from themis.inputs.schema import Schema
from themis.results.hooks import Plot
from themis.results.model import FOUR_FIFTHS, GroupScore, Result, Score, SearchResult
from themis.results.parts import Group, Witness
from themis.results.withheld import is_told, withheld
from themis.settings import Settings
from themis.show.blocks import WHOLE, Axis, Block, Interval, Mark, Statement, Table
from themis.show.html import BLUE, Html, empty, letters, tag, upright
from themis.show.parts.cautions import caution_blocks, doubts
from themis.show.parts.scores import pair_table, score_part
from themis.show.parts.search import found_table, undecided_blocks
from themis.show.parts.summary import LEGEND, summaries, summary_table
from themis.show.reports.document import drawn
from themis.show.words.headlines import headline
from themis.show.words.naming import rate_text
from themis.show.words.scores import account_text, extremes
from themis.show.words.searches import guarantee, search_headline, set_counts
from themis.show.words.values import count, cut_name, ends_text, percent, set_text, visible
from themis.show.words.verdicts import measured_on, verdict
from themis.show.words.wording import PLAIN, Wording, brought, wording

SETS = 40  # sets shown of a search, and rows of a picture


def html_of(thing: Any) -> Html:
    """What a notebook shows of a result, a search, a score, a group or a witness."""
    return _box(_blocks(withheld(thing)))


@singledispatch
def _blocks(thing: Any) -> Iterator[Block]:
    raise TypeError(f"there is no table of {type(thing).__name__}")


@_blocks.register
def _(result: Result) -> Iterator[Block]:
    """The first screen of its page; a score, a search or a group of it shows what is behind."""
    words = wording(result)
    if result.scores and not result.searches:
        yield Statement(verdict(result).sentence, "headline")
    yield from (part for each in result.searches for part in _search(each, words))
    if result.scores:
        yield Statement(measured_on(result), "faint")
        yield summary_table(summaries(result), title="Differences found, by set")
        yield Statement(LEGEND, "faint")
    yield from caution_blocks(doubts(result))
    yield Statement(f"{account_text(result)} · seed {result.seed}", "faint")


@_blocks.register
def _(score: Score) -> Iterator[Block]:
    yield score_part(score, brought([score]))


@_blocks.register
def _(search: SearchResult) -> Iterator[Block]:
    yield from _search(search, brought(search.minimal_sets))


@_blocks.register
def _(group: Group) -> Iterator[Block]:
    ends = ends_text(group.low, group.high)
    shown = Interval(group.low, group.high, group.rate, ends)
    row = (PLAIN.label(group.values), shown, percent(group.rate), ends)
    yield Table("A group", ("", WHOLE, "", ""), [row])


@_blocks.register
def _(witness: Witness) -> Iterator[Block]:
    yield pair_table(witness, None, PLAIN)
    both = [name for name in witness.inputs[0] if name not in witness.differs_in]
    values = (f"{visible(name)} {visible(witness.inputs[0][name])}" for name in both)
    yield from [Statement(", ".join(values), "faint", "both")] * bool(both)


def audit_html(
    kind: str, schema: Schema, profile: Mapping[str, Any] | None, settings: Settings
) -> Html:
    """What a notebook shows of an audit: its subject, whence its inputs come, and the schema."""
    whence = "generated, each characteristic by its weights"
    if profile is not None:
        whence = f"drawn from {count(profile['used'], 'row')} of {profile['file']}"
    said = _box(
        [
            Statement(f"Audit of a subject of the kind {kind}", "headline"),
            Statement(f"Test inputs are {whence}."),
            Statement(f"{percent(settings.confidence)} confidence, error {settings.error:g}"),
        ]
    )
    return tag("div", said, Html(schema._repr_html_()))


def _search(search: SearchResult, words: Wording) -> Iterator[Block]:
    """One search: its headline, the minimal sets, what is open, and what is certain."""
    yield Statement(search_headline(search, words), "headline")
    scores = {score.against: score for score in search.minimal_sets if score.samples}
    if search.found:
        yield found_table(search, scores, most=SETS)
    yield from undecided_blocks(search, most=SETS)
    yield from (Statement(each, "faint") for each in (set_counts(search, words), guarantee(search)))
    yield from (Statement(str(note), "plain", "note") for note in search.notes)


def _box(blocks: Iterable[Block]) -> Html:
    return tag("div", drawn(blocks), style="margin:6px 0;line-height:1.4")


ENDS = 10  # groups of a picture, from either end


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
    measured = [each for each in search.minimal_sets if each.samples and is_told(each)][:SETS]
    limit = Mark(search.threshold, f"threshold {percent(search.threshold)}")
    return Plot(chart(list(map(_interval, measured)), search_headline(search), [limit]))


@_plot.register
def _(result: Result) -> Plot:
    rows = [_interval(each, f"{each.measure} ") for each in result.scores if is_told(each)][:SETS]
    return Plot(chart(rows, verdict(result).sentence))


def _interval(score: Score, before: str = "") -> Interval:
    return Interval(score.low, score.high, score.score, f"{before}{set_text(score.against)}")


WIDTH, LABELS, NUMBERS = 640, 190, 150  # pixels: all, left of the axis, right of it
LINE, TOP, BOTTOM = 22, 8, 26  # pixels: a row, above the rows, below them
LETTERS = 27  # of a label

Units = Callable[[float], str]


def chart(
    rows: Sequence[Interval],
    title: str,
    marks: Sequence[Mark] = (),
    *,
    axis: Axis | None = None,
    units: Units = percent,
) -> Html:
    """Rows of intervals above one axis, with their labels and numbers.

    Solid up to the lower end, light up to the upper end, a tick at the score.
    """
    reach = max([row.high for row in rows] + [mark.share for mark in marks], default=1.0)
    axis = axis or Axis.reaching(reach)
    bottom = TOP + LINE * len(rows)
    height = bottom + BOTTOM + (14 if marks else 0)  # names of marks stand below the numbers
    title = visible(title)
    return tag(
        "svg",
        tag("title", title),
        tag("g", *_ticks(axis, bottom, units)),
        *(_row(row, TOP + LINE * place, axis, units) for place, row in enumerate(rows)),
        *(part for mark in marks for part in _mark(mark, bottom, axis)),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=title,
        viewBox=f"0 0 {WIDTH} {height}",
        width="100%",
        style=f"max-width:{WIDTH}px",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )


def _x(axis: Axis, share: float) -> float:
    return round(LABELS + axis.part(share) * (WIDTH - LABELS - NUMBERS), 1)


def _ticks(axis: Axis, bottom: int, units: Units) -> Iterator[Html]:
    for at in (0.0, axis.end / 2, axis.end):
        x = _x(axis, at)
        yield upright(x, TOP, bottom + 4, stroke="currentColor", stroke_opacity=".25")
        yield letters(units(at).replace(".0 %", " %"), x, bottom + 17, "middle")


def _row(row: Interval, top: int, axis: Axis, units: Units) -> Html:
    start, low, high = (_x(axis, each) for each in (0.0, row.low, row.high))
    bars = [_bar(start, low - start, top), _bar(low, max(high - low, 1.0), top, fill_opacity=".45")]
    if row.point is not None:
        x = _x(axis, row.point)
        bars.append(upright(x, top + 3, top + 19, stroke="currentColor", stroke_width="2"))
    ends = f"{units(row.low)} – {units(row.high)}"
    numbers = units(row.point) if row.point is not None and row.low == row.high else ends
    return tag(
        "g",
        letters(cut_name(visible(row.label), LETTERS), LABELS - 8, top + 15, "end"),
        *bars,
        letters(numbers, WIDTH - NUMBERS + 8, top + 15, "start"),
    )


def _bar(x: float, width: float, top: int, **look: str) -> Html:
    return empty("rect", x=x, y=top + 5, width=round(width, 1), height=12, fill=BLUE, **look)


def _mark(mark: Mark, bottom: int, axis: Axis) -> Iterator[Html]:
    x = _x(axis, mark.share)
    yield upright(x, TOP - 4, bottom + 20, stroke="currentColor", stroke_dasharray="4 3")
    yield letters(mark.name, x, bottom + 33, "start" if x < LABELS + 90 else "middle")
