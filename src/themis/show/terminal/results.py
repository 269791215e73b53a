"""Results in a terminal: scores, searches, checks, replays and differences; a limit in a test."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TypeAlias

from rich.console import RenderableType

from themis.results.comparison import Differences
from themis.results.model import CausalScore, CheckResult, ExcessScore, Result, Score, SearchResult
from themis.results.parts import Naming
from themis.results.replays import Replay
from themis.results.withheld import by_size
from themis.show.blocks import Block, Commands, Part, Statement
from themis.show.parts.cautions import caution_blocks, doubts, endings, notes_of_parts
from themis.show.parts.checks import accepted, check_details, checks_table, telling_score
from themis.show.parts.comparisons import (
    comparison_tables,
    headline_of,
    random_answers,
    remarks,
    replay_headline,
)
from themis.show.parts.outcomes import (
    by_proxied_set,
    errors_table,
    gaps_table,
    known_of_people,
    proxy_sentences,
)
from themis.show.parts.scores import ALL, pair_blocks, score_part, scores_table
from themis.show.parts.search import found_table, reasons_table, undecided_blocks
from themis.show.parts.summary import SetSummary, summaries
from themis.show.terminal.drawing import Page, Summary, drawn
from themis.show.terminal.parts import make_console, render, rule
from themis.show.words.explanations import example, harms, probe_sentence, telling_witness
from themis.show.words.headlines import few_remark, gap_text, headline, score_text
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
from themis.show.words.searches import (
    Names,
    checks_guarantee,
    guarantee,
    protected_first,
    scores_about,
    search_headline,
    set_counts,
    verdict_words,
)
from themis.show.words.values import count, decimals, set_phrase, set_text, visible
from themis.show.words.verdicts import search_lines, source_text, verdict
from themis.show.words.wording import PLAIN, Wording, brought, subject_title, wording

SETS = 20  # and lines of a table, unless all are asked for

Shown: TypeAlias = Block | RenderableType  # what a page of a terminal is made of


def render_quiet(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per check, search or score, and what may invalidate them."""
    blocks = [*map(Statement, _quiet(result)), *brief_doubts(result)]
    return render(drawn(blocks), make_console(file))


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


def show_result(result: Result, *, everything: bool = False) -> Iterator[Shown]:
    """What was tested, each set in a few lines, what may invalidate them, and what it took."""
    if everything:
        yield from _in_full(result)
        return
    words = wording(result)
    yield Statement(f"{subject_title(result)} · {source_text(result)}", "faint")
    yield ""
    yield from _sets(summaries(result))
    for search in search_lines(result, words):
        yield from ("", Statement(f"{search}."))
    for known in (each for each in result.outcomes if len(each.against) == 1):
        table = gaps_table(known, words, brief=True)
        yield from ("", Part(f"{set_phrase(known.against)}: known outcomes", [table]))
    for errors in (each for each in result.errors if len(each.against) == 1):
        table = errors_table(errors, words, len(errors.groups))
        yield from ("", Part(f"{set_phrase(errors.against)}: known numbers", [table]))
    for proxies in by_proxied_set([each for each in result.proxies if each.may_stand_in]):
        sentences = proxy_sentences(proxies, words)
        yield ""
        yield from (Statement(f"{each}.") for each in sentences)
    notes = caution_blocks(notes_of_parts(result))
    if doubtful := [*show_doubts(result), *notes, *run_notes(result)]:
        yield ""
        yield from doubtful
    yield ""
    yield from footer(result)


render_result = Page[Result](show_result)


def _sets(found: list[SetSummary]) -> Iterator[Shown]:
    """The sets, of very many those that differ first, and how many there are besides."""
    if len(found) <= SETS:
        yield Summary(found)
        return
    ranked = sorted(found, key=lambda each: each.state != "grave")
    yield Summary(ranked[:SETS])
    differing = sum(each.state == "grave" for each in ranked[SETS:])
    some = f", {differing:,} of them with a difference found" if differing else ""
    yield Statement(f"… and {count(len(ranked) - SETS, 'more set')}{some}: -v", "faint")


def footer(result: Result) -> Iterator[Block]:
    """How sure, what it took, and where there is more."""
    page = [] if result.command in ("audit", "demo") else ["page: -o report.html"]
    cost = [*confidence_briefly(result), *cost_briefly(result)]
    for parts in (cost, [*narrower(result), "details: -v", *page]):
        yield Statement(" · ".join(parts), "faint")


def _in_full(result: Result) -> Iterator[Shown]:
    """The verdict, what may invalidate it, set by set what stands behind it."""
    yield from _beginning(result)
    sets = [*by_set(result.scores), *(each.against for each in result.outcomes)]
    sets += [each.against for each in result.errors]
    for against in dict.fromkeys(sets):
        yield from ("", rule(set_phrase(against)), *_of_set(result, against))
    yield ""
    yield from (Statement(f"{each}.") for each in search_lines(result, wording(result)))
    yield from show_cost(result)


def _beginning(result: Result) -> Iterator[Block]:
    """The verdict, on whom it is, what may invalidate it, and a line for each score."""
    one = result.scores[0] if len(result.scores) == 1 and result.data is None else None
    said = verdict(result).sentence if one is None else headline(one, wording(result))
    yield from (Statement(said, "headline"), Statement(source_text(result), "faint"))
    yield from show_doubts(result, everything=True)
    yield from overview_table(result.scores)


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
    yield from known_of_people(result, words, against)


def overview_table(scores: Sequence[Score]) -> Iterator[Block]:
    """A line for each score that was measured, all bars on one scale."""
    known = [score for of_set in by_set(scores).values() for score in of_set if score.samples]
    more = f"{len(known) - SETS:,} more below" if len(known) > SETS else ""
    if known:
        yield scores_table(known[:SETS], foot=more)


def show_doubts(result: Result, *, everything: bool = False) -> Iterator[Block]:
    """What may invalidate the verdict: failures, noise, odd outputs, runs that ended early."""
    yield from brief_doubts(result, everything=everything)
    yield from caution_blocks(endings(result))


def brief_doubts(result: Result, *, everything: bool = False) -> Iterator[Block]:
    """The same without what headlines say themselves."""
    if everything and result.noise is not None and not result.noise.differing:
        yield Statement(probe_sentence(result.noise), "faint")
    yield from caution_blocks(doubts(result))


def run_notes(result: Result) -> Iterator[Block]:
    """What is to be said of how the run went: answers of earlier runs, executors not used."""
    for note in result.timing.get("notes", ()):
        yield Statement(str(note), "faint", "note")


def show_cost(result: Result) -> Iterator[Block]:
    """The last lines: of what the confidence is, and what it took."""
    if (text := how_sure_together(result)) is not None:
        yield Statement(text)
    for each in result.outputs:
        if each.distinct > 2:  # of a decision and its opposite the rates tell as much
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
    return render(drawn(Statement(each) for each in said if each), make_console(file))


def show_comparison(
    found: Replay | Differences, *, everything: bool, words: Wording = PLAIN
) -> Iterator[Shown]:
    """The verdict, what was compared, then what else there is to know."""
    yield Statement(headline_of(found), "headline")
    for part in comparison_tables(found, words, everything=everything):
        yield from ("", part)
    yield from ("", *remarks(found))


def replay_page(naming: Naming) -> Page[Replay]:
    """The page of a replay in the words of its file."""
    return Page(partial(show_comparison, words=Wording(naming)))


render_differences = Page[Differences](show_comparison)

MOST = 40  # of a table
FIRST = 10  # sets of a search, unless all are asked for


def show_searches(result: Result, *, everything: bool = False) -> Iterator[Shown]:
    """The parts of the searches, then what to know before believing them."""
    doubts = [*show_doubts(result, everything=everything)]
    for search in map(protected_first(result), result.searches):
        if len(result.searches) > 1:
            yield rule(f"{search.measure} scores")
        yield Statement(search_headline(search, wording(result)), "headline")
        yield from doubts
        doubts = []
        yield from (_search_in_full if everything else _search_in_short)(search, result)
        yield ""
    if everything:
        yield from show_cost(result)
    else:
        yield from (*run_notes(result), *footer(result))


render_search = Page[Result](show_searches)


def _search_in_short(search: SearchResult, result: Result) -> Iterator[Block]:
    """The first sets with their numbers, one pair, what is undecided, and the counts."""
    scores = scores_about(result, search)
    if search.found:
        yield found_table(search, scores, most=FIRST)
    measured = (scores[each] for each in search.found if each in scores)
    pairs = (example(each, wording(result)) for each in measured)
    if pair := next(filter(None, pairs), None):
        yield Statement(f"example: {pair}", "faint")
    yield from _favoured(search, scores, wording(result))
    yield from undecided_blocks(search)
    yield Statement(set_counts(search, wording(result)), "faint")
    yield from (Statement(str(note), "warning", "note") for note in search.notes)


def _search_in_full(search: SearchResult, result: Result) -> Iterator[Block]:
    """One search: its sets, its people, what is open, what is certain."""
    scores, words = scores_about(result, search), wording(result)
    if search.found:
        yield found_table(search, scores, most=ALL)
    for score in (scores[each] for each in search.found if each in scores):
        if blocks := [*show_people(score, words, everything=True)]:
            yield Part(set_phrase(score.against), blocks)
    yield from _favoured(search, scores, words)
    yield from undecided_blocks(search, most=MOST)
    yield from (Statement(set_counts(search, words)), Statement(guarantee(search)))
    yield from (Statement(str(note), "warning", "note") for note in search.notes)
    yield reasons_table(search, most=MOST)


def _favoured(
    search: SearchResult, scores: Mapping[Names, Score], words: Wording
) -> Iterator[Block]:
    """Beside an excess, which has a scale of its own: whom the change favours, and how often."""
    for names in search.found[:FIRST]:
        score = scores.get(names)
        if isinstance(score, ExcessScore) and (text := gap_text(score, words)):
            yield Statement(f"{set_text(names)}: {text}", "faint")


def show_people(
    score: Score, words: Wording = PLAIN, *, everything: bool = False
) -> Iterator[Block]:
    """Whom a set hurts: the direction, one pair of people, and how to see it in a shell."""
    for text in harms(score, most=3 if everything else 1, words=words):
        yield Statement(f"{text}{few_remark(score, words)}")
    witness = telling_witness(score)
    if witness is None or not isinstance(score, CausalScore):
        return
    yield from pair_blocks(witness, score, words)
    if everything and witness.reproduce:
        yield Commands(witness.reproduce)


DETAILED = ("violated", "not enough evidence")


def show_checks(result: Result, *, everything: bool) -> Iterator[Shown]:
    """The table of verdicts, then what is behind those that do not hold."""
    yield Statement(verdict(result).sentence, "headline")
    yield from brief_doubts(result, everything=everything)
    yield checks_table(result.checks)
    for kind in DETAILED:
        for each in (check for check in result.checks if check.verdict == kind):
            why = f": {each.reason}" if kind != "violated" and each.reason else ""
            title = f"{visible(each.name)}: {verdict_words(each)}{why}"
            yield from ("", Part(title, [*_details(each, result, everything=everything)]))
    yield from accepted(result.checks)
    yield from ("", Statement(checks_guarantee(result)), *show_cost(result))


render_checks = Page[Result](show_checks)


def _details(check: CheckResult, result: Result, *, everything: bool) -> Iterator[Block]:
    """The interval, the sets above a limit and whom one of them hurts."""
    yield from check_details(check, everything=everything)
    score = telling_score(check, result) if check.verdict == "violated" else None
    if score is not None:
        if check.search:
            yield Statement(f"{set_text(score.against)}: {score_text(score)}")
        yield from show_people(score, wording(result), everything=everything)


WIDTH = 72  # pytest puts eight characters before each line
SETS_OF_A_LIMIT = 3  # found sets that are shown


def limit_line(answer: CheckResult) -> str:
    """The verdict with its numbers, short enough for a list of failed tests."""
    if answer.search:
        return f"{visible(answer.name)}: {_found_above(answer)}"
    name = visible(answer.name).rpartition(" at most ")[0]
    if answer.score is None:
        return f"{name} at most {answer.max_score:g}: {verdict_words(answer)}, {answer.reason}"
    low, high = answer.low or 0.0, answer.high or 0.0
    ends = f"[{decimals(low, 3, 'down')}, {decimals(high, 3, 'up')}]" if low < high else "exact"
    measured = f"{name} {answer.score:.3f} {ends}"
    says = {"violated": "is above", "holds": "is at most"}.get(answer.verdict, "may be above")
    return f"{measured} {says} {answer.max_score:g}"


def limit_text(
    answer: CheckResult, outcome: Score | SearchResult | None, *, width: int = WIDTH
) -> str:
    """All that is known about a limit: its line, then the score and the people behind it."""
    text = render(drawn(_limit(answer, outcome)), make_console(io.StringIO(), width=width))
    return f"{limit_line(answer)}\n{text}".rstrip()


def _found_above(answer: CheckResult) -> str:
    if answer.verdict == "holds":
        return verdict_words(answer)
    sets = "; ".join(set_text(each) for each in answer.sets[:SETS_OF_A_LIMIT])
    more = "; …" if len(answer.sets) > SETS_OF_A_LIMIT else ""
    found = f"{count(len(answer.sets), 'minimal set')} found ({sets}{more})"
    if answer.verdict == "violated":
        return found
    return f"{verdict_words(answer)}, {found}" if answer.sets else verdict_words(answer)


def _limit(answer: CheckResult, outcome: Score | SearchResult | None) -> Iterator[Block]:
    if answer.reason:
        yield Statement(f"{verdict_words(answer)}: {answer.reason}")
    if isinstance(outcome, SearchResult):
        yield Statement(search_headline(outcome, brought(outcome.minimal_sets)))
        worst = sorted(outcome.minimal_sets, key=by_size)
        yield from (score_part(each, brought([each])) for each in worst[:SETS_OF_A_LIMIT])
        if len(worst) > SETS_OF_A_LIMIT:
            yield Statement(f"and {len(worst) - SETS_OF_A_LIMIT:,} more minimal sets")
        yield Statement(guarantee(outcome))
    elif outcome is not None and outcome.samples:
        yield score_part(outcome, brought([outcome]))
