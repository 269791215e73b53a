"""Results in a terminal: the verdict, what may invalidate it, set by set; replays, differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO

from rich.console import RenderableType

from themis.results.comparison import Differences
from themis.results.model import Result, Score
from themis.results.parts import Naming
from themis.results.replays import Replay
from themis.show.blocks import Block, Part, Statement
from themis.show.parts.cautions import caution_blocks, doubts, endings, notes_of_parts
from themis.show.parts.comparisons import comparison_tables, headline_of, remarks
from themis.show.parts.outcomes import (
    error_blocks,
    errors_table,
    gaps_table,
    outcome_blocks,
    proxy_blocks,
)
from themis.show.parts.scores import score_part, scores_table
from themis.show.parts.summary import SetSummary, summaries
from themis.show.terminal.drawing import drawn
from themis.show.terminal.parts import DIM, Page, Sentence, make_console, render, rule
from themis.show.terminal.summary import Summary
from themis.show.words.comparisons import random_answers, replay_headline
from themis.show.words.explanations import probe_sentence
from themis.show.words.headlines import headline
from themis.show.words.proxies import by_proxied_set, proxy_sentences
from themis.show.words.scores import (
    account_text,
    by_set,
    circumstances,
    confidence_briefly,
    cost_briefly,
    cost_text,
    hidden_changes,
    how_sure_together,
    narrower,
    outputs_text,
    precision_chosen,
)
from themis.show.words.searches import search_headline, set_text, verdict_words
from themis.show.words.values import count, set_phrase, visible
from themis.show.words.verdicts import search_lines, source_text, verdict
from themis.show.words.wording import PLAIN, Wording, subject_title, wording

ROWS = 20  # of the table
SETS = 20  # unless all are asked for
TWO = 2  # outputs: a decision and its opposite


def render_quiet(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per check, search or score, and what may invalidate them."""
    said = map(Statement, _quiet(result))
    return render(drawn([*said, *brief_doubts(result)]), make_console(file))


def _quiet(result: Result) -> Iterator[str]:
    words = wording(result)
    if result.checks:
        yield from (f"{visible(each.name)}: {verdict_words(each)}" for each in result.checks)
    elif result.command == "audit":
        yield from map("{}.".format, [verdict(result).sentence, *search_lines(result, words)])
    elif result.searches:
        for search in result.searches:
            yield search_headline(search, words, "; ".join(map(set_text, search.found)))
    else:
        yield from (headline(score, words) for score in result.scores)


def show_result(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """What was tested, each set in a few lines, what may invalidate them, and what it took."""
    if everything:
        yield from _in_full(result)
        return
    words = wording(result)
    yield Sentence(f"{subject_title(result)} · {source_text(result)}", DIM)
    yield ""
    yield from _sets(summaries(result))
    for search in search_lines(result, words):
        yield ""
        yield Sentence(f"{visible(search)}.")
    for known in (each for each in result.outcomes if len(each.against) == 1):
        yield ""
        title = f"{set_phrase(known.against)}: known outcomes"
        yield from drawn([Part(title, [gaps_table(known, words, brief=True)])])
    for errors in (each for each in result.errors if len(each.against) == 1):
        table = errors_table(errors, words, len(errors.groups))
        yield ""
        yield from drawn([Part(f"{set_phrase(errors.against)}: known numbers", [table])])
    for proxies in by_proxied_set([each for each in result.proxies if each.may_stand_in]):
        yield ""
        yield from (Sentence(f"{visible(each)}.") for each in proxy_sentences(proxies, words))
    if doubtful := [*show_doubts(result), *score_notes(result), *run_notes(result)]:
        yield ""
        yield from drawn(doubtful)
    yield ""
    yield from footer(result)


render_result = Page[Result](show_result)


def _sets(found: list[SetSummary]) -> Iterator[RenderableType]:
    """The sets, of very many those that differ first, and how many there are besides."""
    if len(found) <= SETS:
        yield Summary(found)
        return
    ranked = sorted(found, key=lambda each: each.state != "grave")
    yield Summary(ranked[:SETS])
    differing = sum(each.state == "grave" for each in ranked[SETS:])
    some = f", {differing:,} of them with a difference found" if differing else ""
    yield Sentence(f"… and {count(len(ranked) - SETS, 'more set')}{some}: -v", DIM)


def footer(result: Result) -> Iterator[RenderableType]:
    """How sure, what it took, and where there is more."""
    yield Sentence(" · ".join([*confidence_briefly(result), *cost_briefly(result)]), DIM)
    page = [] if result.command in ("audit", "demo") else ["page: -o report.html"]
    more = [*narrower(result), "details: -v", *page]
    yield Sentence(" · ".join(more), DIM)


def _in_full(result: Result) -> Iterator[RenderableType]:
    """The verdict, what may invalidate it, set by set what stands behind it."""
    yield from _beginning(result)
    sets = [*by_set(result.scores), *(each.against for each in result.outcomes)]
    sets += [each.against for each in result.errors]
    for against in dict.fromkeys(sets):
        yield ""
        yield rule(set_phrase(against))
        yield from drawn(_of_set(result, against))
    yield ""
    lines = search_lines(result, wording(result))
    yield from drawn(Statement(f"{each}.") for each in lines)
    yield from drawn(show_cost(result))


def _beginning(result: Result) -> Iterator[RenderableType]:
    """The verdict, on whom it is, what may invalidate it, and a line for each score."""
    one = result.scores[0] if len(result.scores) == 1 and result.data is None else None
    said = verdict(result).sentence if one is None else headline(one, wording(result))
    yield from drawn([Statement(said, "headline"), Statement(source_text(result), "faint")])
    yield from drawn(show_doubts(result, everything=True))
    yield from drawn(overview_table(result.scores))


def _of_set(result: Result, against: tuple[str, ...]) -> Iterator[Block]:
    """What is known of one set; of generated inputs beside given people the table says enough."""
    words = wording(result)
    scores = [each for each in result.scores if each.against == against]
    given = [each for each in scores if each.population != "inputs"]
    for score in given or scores:
        shown = score_part(score, words, everything=True)
        if len(result.scores) == 1 and result.data is None:  # its headline is the verdict
            yield from shown.blocks
        else:
            yield shown
    if (hidden := hidden_changes(scores, words)) is not None:
        yield Statement(hidden, "remark", "but")
    for known in (each for each in result.outcomes if each.against == against):
        blocks = [*outcome_blocks(known, words, most=len(known.groups))]
        yield Part(f"Known outcomes by {set_phrase(against)}", blocks)
    for errors in (each for each in result.errors if each.against == against):
        blocks = [*error_blocks(errors, words, most=len(errors.groups))]
        yield Part(f"Known numbers by {set_phrase(against)}", blocks)
    for proxies in by_proxied_set([each for each in result.proxies if each.against == against]):
        blocks = [*proxy_blocks(proxies, words, most=len(proxies))]
        yield Part(f"What may stand in for {set_phrase(against)}", blocks)


def overview_table(scores: Sequence[Score]) -> Iterator[Block]:
    """A line for each score that was measured, all bars on one scale."""
    known = [score for of_set in by_set(scores).values() for score in of_set if score.samples]
    more = f"{len(known) - ROWS:,} more below" if len(known) > ROWS else ""
    if known:
        yield scores_table(known[:ROWS], foot=more)


def show_doubts(result: Result, *, everything: bool = False) -> Iterator[Block]:
    """What may invalidate the verdict: failures, noise, odd outputs, runs that ended early."""
    yield from brief_doubts(result, everything=everything)
    yield from caution_blocks(endings(result))


def brief_doubts(result: Result, *, everything: bool = False) -> Iterator[Block]:
    """The same without what headlines say themselves."""
    if everything and result.noise is not None and not result.noise.differing:
        yield Statement(probe_sentence(result.noise), "faint")
    yield from caution_blocks(doubts(result))


def score_notes(result: Result) -> Iterator[Block]:
    """What is noted of scores, each once with those that it is about."""
    yield from caution_blocks(notes_of_parts(result))


def run_notes(result: Result) -> Iterator[Block]:
    """What is to be said of how the run went: answers of earlier runs, executors not used."""
    for note in result.timing.get("notes", ()):
        yield Statement(str(note), "faint", "note")


def show_cost(result: Result) -> Iterator[Block]:
    """The last lines: of what the confidence is, and what it took."""
    if (text := how_sure_together(result)) is not None:
        yield Statement(text)
    for each in result.outputs:
        if each.distinct > TWO:  # of two decisions the rates tell as much
            yield Statement(outputs_text(each), "faint")
    if (text := precision_chosen(result)) is not None:
        yield Statement(text, "faint")
    yield from run_notes(result)
    if result.spent.total == result.spent.sampling:
        yield Statement(cost_text(result), "faint")
        return
    yield Statement(account_text(result), "faint")
    yield Statement(" · ".join(circumstances(result)), "faint")


# Replays and differences ------------------------------------------------------------------
def render_replay_headline(replay: Replay, *, file: IO[str] | None = None) -> str:
    """What became of the tests, in one sentence; and in another, if it depends on chance."""
    said = (replay_headline(replay), random_answers(replay))
    return render([Sentence(each) for each in said if each], make_console(file))


def show_comparison(
    found: Replay | Differences, *, width: int, everything: bool, words: Wording = PLAIN
) -> Iterator[RenderableType]:
    """The verdict, what was compared, then what else there is to know."""
    yield from drawn([Statement(headline_of(found), "headline")])
    for part in comparison_tables(found, words, everything=everything):
        yield ""
        yield from drawn([part])
    yield ""
    yield from drawn(remarks(found))


def replay_page(naming: Naming) -> Page[Replay]:
    """The page of a replay in the words of its file."""
    return Page(partial(show_comparison, words=Wording(naming)))


render_differences = Page[Differences](show_comparison)
