"""A whole result in a terminal: the verdict, what may invalidate it, then set by set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from themis.results.model import CausalScore, GroupScore, Result, Score
from themis.results.notes import Ending
from themis.results.withheld import is_told
from themis.show.intervals import Axis
from themis.show.terminal.outcomes import show_outcomes, show_proxies
from themis.show.terminal.parts import (
    DIM,
    FOLDED,
    HEADLINE,
    MARK,
    NUMBER,
    WARNING,
    IntervalBar,
    Page,
    Scale,
    Sentence,
    ShellLine,
    failures,
    grid,
    indented,
    make_console,
    render,
    rule,
    short,
)
from themis.show.terminal.scores import show_score
from themis.show.words.explanations import noise_warning, probe_sentence
from themis.show.words.headlines import headline, kind_words
from themis.show.words.input_notes import command_without
from themis.show.words.proxies import by_proxied_set
from themis.show.words.scores import (
    account_text,
    by_set,
    circumstances,
    cost_text,
    cut_off,
    hidden_changes,
    how_sure_together,
    inconclusive,
    lesser,
    rows_used,
)
from themis.show.words.units import in_units
from themis.show.words.values import set_phrase, visible
from themis.show.words.verdicts import overview, verdict
from themis.show.words.wording import Wording, wording

ROWS = 20  # of the table
NOT_THERE = "–"
NARROW = 72  # below this width tables of scores have no room for their numbers


def show_overview(scores: Sequence[Score], words: Wording, width: int) -> Iterator[RenderableType]:
    """The verdict in one sentence, then a line for each score."""
    yield Sentence(overview(scores, words), HEADLINE)
    if any(score.samples for score in scores):
        yield indented(scores_table(scores, width))


def point(score: Score) -> str:
    """The observed score for a table; of a lower bound, the bound."""
    if not is_told(score):
        return "–"
    if score.lower_bound:
        return f"≥ {in_units(score.low, score)}"
    observed = score.observed if isinstance(score, GroupScore) and score.low == 0 else None
    return in_units(score.score if observed is None else observed, score)


def interval_text(score: Score) -> Text:
    """The interval of a score, or that there is none."""
    if not is_told(score):
        return short("not shown")
    low, high = in_units(score.low, score), in_units(score.high, score)
    unit = "".join(high.rpartition(" ")[1:]) if " " in high else ""  # is written once
    return short("exact" if score.low == score.high else f"{low.removesuffix(unit)} – {high}")


def common_axis(scores: Sequence[Score]) -> Axis:
    """One scale for all scores of a page."""
    return Axis.reaching(max((e.high for e in scores if e.samples and is_told(e)), default=1.0))


def scores_table(scores: Sequence[Score], width: int) -> Table:
    """A line for each score that was measured, all bars on one scale; no bars where it is narrow.

    No number is cut.
    """
    known = [score for score in scores if score.samples]
    if width < NARROW:
        return _lines(known)
    axis = common_axis(known)
    scale = Scale((f"0 to {100 * axis.end:.0f} %",))
    heads = ("set", "measure", "score", scale, "interval")
    kind, bars = {**FOLDED, "max_width": 32}, {"ratio": 1, "min_width": 8}
    table = grid({"max_width": 20}, kind, NUMBER, bars, NUMBER, heads=heads, expand=True)
    for score in known[:ROWS]:
        bar: RenderableType = ""
        if is_told(score):
            bar = IntervalBar(score.low, score.high, axis, "red" if score.low > 0 else "green")
        name = set_phrase(score.against).removesuffix(" together")
        table.add_row(short(name), Text(kind_words(score)), point(score), bar, interval_text(score))
    if len(known) > ROWS:
        table.add_row(short(f"… {len(known) - ROWS:,} more below", DIM))
    return table


def _lines(scores: Sequence[Score]) -> Table:
    """The same as sentences."""
    table = grid(FOLDED)
    for score in scores[:ROWS]:
        name = set_phrase(score.against).removesuffix(" together")
        ends = interval_text(score).plain
        table.add_row(Sentence(f"{name}, {kind_words(score)}: {point(score)} ({ends})"))
    if len(scores) > ROWS:
        table.add_row(short(f"… {len(scores) - ROWS:,} more below", DIM))
    return table


def render_headlines(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per score, and what may invalidate it."""
    words = wording(result)
    sentences = (Sentence(headline(score, words)) for score in result.scores)
    return render([*sentences, *brief_doubts(result)], make_console(file))


def show_result(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of a result: the verdict, what may invalidate it, set by set what is behind it."""
    sets, words, axis = by_set(result.scores), wording(result), common_axis(result.scores)
    doubts = show_doubts(result, everything=everything)
    if len(sets) > 1:
        yield from show_overview(result.scores, words, width)
        yield from doubts
        yield ""
    for against, scores in sets.items():
        yield rule(set_phrase(against))
        for place, score in enumerate(scores):
            if place:
                yield ""
            parts = show_score(score, width=width, everything=everything, words=words, axis=axis)
            yield next(parts)  # of one set, the headline is the verdict
            yield from doubts
            yield from parts
        yield from _remark(scores, words)
        yield ""
    yield from doubts
    yield from show_cost(result)


render_result = Page[Result](show_result)


def show_doubts(result: Result, *, everything: bool = False) -> Iterator[RenderableType]:
    """What may invalidate the verdict: failures, noise, odd outputs, runs that ended early."""
    yield from brief_doubts(result, everything=everything)
    ending = cut_off(result)
    if ending is not None and result.stopped is Ending.INTERRUPTED:
        yield Sentence(ending, WARNING, first="inconclusive: ")
    for text in inconclusive(result.scores):
        yield Sentence(text, WARNING, first="inconclusive: ")


def brief_doubts(result: Result, *, everything: bool = False) -> Iterator[RenderableType]:
    """The same without what headlines say themselves."""
    yield from failures(result.failures)
    if result.noise is not None and result.noise.differing:
        yield Sentence(noise_warning(result.noise), WARNING, first="warning: ")
    elif result.noise is not None and everything:
        yield Sentence(probe_sentence(result.noise), DIM)
    for note in result.notes:
        style, first = (DIM, "note: ") if note.is_harmless else (WARNING, "warning: ")
        yield Sentence(str(note), style, first=first)
        if (command := command_without(note, result)) is not None:
            yield ShellLine(visible(command))


def show_cost(result: Result) -> Iterator[RenderableType]:
    """The last lines: of what the confidence is, and what it took."""
    if (text := how_sure_together(result)) is not None:
        yield Sentence(text)
    for note in result.timing.get("notes", ()):
        yield Sentence(visible(str(note)), DIM, first="note: ")
    if result.spent.total == result.spent.sampling:
        yield Sentence(cost_text(result), DIM)
        return
    yield Sentence(account_text(result), DIM)
    yield Sentence(" · ".join(circumstances(result)), DIM)


def _remark(scores: list[Score], words: Wording) -> Iterator[RenderableType]:
    """What only both scores together show."""
    text = hidden_changes(scores, words)
    if text is not None:
        yield ""
        yield indented(Sentence(text, MARK, first="! "))


IGNORED = 6  # columns named that the schema does not know


def show_apparent(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of a result from top to bottom."""
    data, words, axis = result.data or {}, wording(result), common_axis(result.scores)
    outcomes = {(each.against, each.output): each for each in result.outcomes}
    yield Sentence(verdict(result).sentence, HEADLINE)
    yield Sentence(rows_used(data))
    yield from _columns(data)
    yield ""
    for against, scores in by_set(result.scores).items():
        rows = [score for score in scores if score.population != "inputs"]
        yield rule(set_phrase(against))
        yield indented(_side_by_side(scores, width))
        if any(map(_has_few, rows)):
            yield indented(
                Sentence(f"* some of the groups have too few {words.people} to judge", MARK)
            )
        if len(rows) < len(scores):
            yield indented(Sentence(why_they_differ(data), DIM))
        for score in rows:
            yield ""
            parts = show_score(score, width=width, everything=everything, words=words, axis=axis)
            if score in lesser(rows) and not everything:
                parts = _in_short(score, words)
            yield from parts
        yield ""
        for key in [key for key in outcomes if key[0] == against]:
            yield from show_outcomes(outcomes.pop(key), words, everything=everything)
            yield ""
        for proxies in by_proxied_set([e for e in result.proxies if e.against == against]):
            yield from show_proxies(proxies, words, everything=everything)
            yield ""
    for (against, _), each in outcomes.items():
        yield rule(set_phrase(against))
        yield from show_outcomes(each, words, everything=everything)
        yield ""
    for text in inconclusive(result.scores):
        yield Sentence(text, MARK, first="inconclusive: ")
    yield from show_doubts(replace(result, scores=()), everything=everything)
    yield from show_cost(result)


render_apparent = Page[Result](show_apparent)


def _in_short(score: Score, words: Wording) -> Iterator[RenderableType]:
    """What rows show among themselves: the lesser part of the same finding, without its pairs."""
    pairs = "; -v shows pairs" if isinstance(score, CausalScore) and score.witnesses else ""
    yield Sentence(f"{headline(score, words)}{pairs}")
    yield from (indented(Sentence(str(note), DIM, first="note: ")) for note in score.notes)


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


def _side_by_side(scores: Sequence[Score], width: int) -> Table:
    """The scores of the rows beside those of all inputs; as sentences where it is narrow."""
    compared = any(score.population == "inputs" for score in scores)
    whose = ["these rows", *(["all inputs"] if compared else [])]
    of_rows = {_name(score): score for score in scores if score.population != "inputs"}
    of_all = {_name(score): score for score in scores if score.population == "inputs"}
    lines = {
        name: [_number(each.get(name)) for each in ([of_rows, of_all] if compared else [of_rows])]
        for name in {**of_rows, **of_all}
    }
    columns = zip(*([short(name), *cells] for name, cells in lines.items()), strict=True)
    if 2 + sum(2 + max(each.cell_len for each in column) for column in columns) > width:
        return _beside(whose, lines)
    table = grid({}, NUMBER, NUMBER, heads=["", *whose])
    for name, cells in lines.items():
        table.add_row(short(name), *cells)
    return table


def _beside(whose: Sequence[str], lines: Mapping[str, Sequence[Text]]) -> Table:
    """The same as sentences."""
    table = grid(FOLDED)
    for name, cells in lines.items():
        known = [each for each in zip(whose, cells, strict=True) if each[1].plain != NOT_THERE]
        both = "; ".join(f"{place} {cell.plain}" for place, cell in known)
        table.add_row(Sentence(f"{name}: {both}"))
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
        return short(NOT_THERE, DIM)
    if not is_told(score):
        return short("not shown", DIM)
    text = f"≥ {in_units(score.low, score)}" if score.lower_bound else in_units(score.score, score)
    if score.low < score.high and not score.lower_bound:
        low, high = (in_units(end, score).removesuffix(" %") for end in (score.low, score.high))
        text += f" ({low.removesuffix(' points')} – {high.removesuffix(' points')})"
    return short(f"{text} *" if _has_few(score) else text, HEADLINE)


def _has_few(score: Score) -> bool:
    return isinstance(score, GroupScore) and any(group.few for group in score.groups)
