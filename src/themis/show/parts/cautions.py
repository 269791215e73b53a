"""All that weakens or invalidates a result, or is good to know before relying on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from themis.results.model import Result, Score
from themis.results.notes import AT_ONCE, Ending
from themis.settings import Stopping
from themis.show.blocks import Block, Commands, Statement
from themis.show.words.explanations import noise_remedy, noise_warning, probe_sentence
from themis.show.words.headlines import capital
from themis.show.words.notes import command_without, how_it_ended
from themis.show.words.scores import cut_off, failure_text, inconclusive
from themis.show.words.searches import left_open
from themis.show.words.values import count, set_phrase, some_of, visible

ALL_CLEAR = "No execution failed, nothing ended early, and there are no warnings."


@dataclass(frozen=True)
class Caution:
    """One thing to know before believing a result."""

    kind: str
    text: str
    commands: tuple[str, ...] = ()
    weakens: bool = True  # the verdict


def cautions(result: Result) -> list[Caution]:
    """All that weakens or invalidates a verdict, or is good to know, the worst first, each once."""
    sources = (_failed, _noise, _ended, _inconclusive, _notes, notes_of_parts, _unsure)
    return list({each.text: each for source in sources for each in source(result)}.values())


def doubts(result: Result) -> list[Caution]:
    """Those that headlines and scores do not have themselves: failures, noise, notes on the run."""
    return [*_failed(result), *_noise(result), *_notes(result)]


def endings(result: Result) -> list[Caution]:
    """What was not measured as precisely as asked, and that somebody interrupted it."""
    ending = cut_off(result) if result.stopped is Ending.INTERRUPTED else None
    early = [] if ending is None else [Caution("inconclusive", ending)]
    return [*early, *_inconclusive(result)]


def caution_blocks(found: Iterable[Caution], names: Iterable[str] = ()) -> Iterator[Block]:
    """Each caution as a sentence, with the commands that show or mend it."""
    for each in found:
        yield Statement(
            capital(each.text, names) if names else each.text,
            "warning" if each.weakens else "faint",
            each.kind,
        )
        if each.commands:
            yield Commands(each.commands)


def _failed(result: Result) -> Iterator[Caution]:
    for kind, failure in result.failures.items():
        lines = (failure["reproduce"],) if "reproduce" in failure else ()
        yield Caution("failed", failure_text(kind, failure), lines)


def _noise(result: Result) -> Iterator[Caution]:
    if result.noise is not None and result.noise.differing:
        yield Caution("noise", noise_warning(result.noise, noise_remedy(result)))


def _ended(result: Result) -> Iterator[Caution]:
    ending = cut_off(result)
    if ending is not None:
        yield Caution("ended early", ending)
    for search in result.searches:
        if search.stopped is not Ending.DONE:
            early = search.stopped.is_early or search.sets_open
            left = left_open(search)
            open_sets = f"; {left}" if early and left else ""
            yield Caution(
                "ended early" if early else "undecided",
                f"{search.measure} search: {how_it_ended(search.stopped)}{open_sets}",
            )
        elif search.undecided:
            yield Caution(
                "undecided",
                f"{search.measure} search: {count(len(search.undecided), 'combination')} undecided",
            )


def _inconclusive(result: Result) -> Iterator[Caution]:
    yield from (Caution("inconclusive", text) for text in inconclusive(result.scores))


def _notes(result: Result) -> Iterator[Caution]:
    for note in (each for each in result.notes if each.code != AT_ONCE):
        command = command_without(note, result)
        kind = "note" if note.is_harmless else "warning"
        lines = () if command is None else (command,)
        yield Caution(kind, visible(str(note)), lines, weakens=not note.is_harmless)


def notes_of_parts(result: Result) -> Iterator[Caution]:
    """What is noted of a search or of scores alone, and of which."""
    for search in result.searches:
        yield from (Caution("note", f"{search.measure} search: {note}") for note in search.notes)
    harmless = {str(note) for each in result.scores for note in each.notes if note.is_harmless}
    said, found = set(map(str, result.notes)), dict[str, list[Score]]()
    for score in result.scores:
        for note in score.notes if score.samples else ():  # of others it is said elsewhere
            if str(note) not in said:
                found.setdefault(str(note), []).append(score)
    for text, scores in found.items():
        about = f"{some_of([*dict.fromkeys(map(_name, scores))])}: {text}"
        yield Caution("note", about, weakens=text not in harmless)


def _unsure(result: Result) -> Iterator[Caution]:
    if Stopping.PAPER in result.rules:
        yield Caution(
            "not certified",
            "the paper's stopping rule was used: that the intervals hold is claimed by it, and "
            "not certified",
        )


def _name(score: Score) -> str:
    return f"{score.measure} score of {set_phrase(score.against)}"


def all_clear(result: Result) -> str:
    """That there are no cautions: only what the result says was looked for, and not found."""
    if result.noise is None:
        return ALL_CLEAR
    return f"{ALL_CLEAR} {capital(probe_sentence(result.noise))}."
