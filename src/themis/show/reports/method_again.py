"""How is a result made again? The command that was given, else one that asks for the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from themis.results.model import Result, Score, SearchResult


@dataclass(frozen=True)
class Command:
    """A line for a shell; `recorded` if it is the one that was given."""

    line: str
    recorded: bool


def command_again(result: Result) -> Command:
    """The command that makes a result again."""
    given = (result.source or {}).get("command")
    if isinstance(given, str) and given:
        return Command(given, recorded=True)
    if isinstance(given, Sequence) and given:
        return Command(shlex.join(map(str, given)), recorded=True)
    return Command(shlex.join(["themis", *_words(result)]), recorded=False)


def _words(result: Result) -> Iterator[str]:
    yield result.command
    file = (result.source or {}).get("file")
    if isinstance(file, str):
        yield file
    if result.searches and not result.checks:
        yield from _search(result, result.searches)
    elif result.command == "score":
        yield from _scores(result.scores)
    elif result.scores and not result.checks:
        yield from _precision(result.scores[0])
    yield from ("--seed", str(result.seed))


def _search(result: Result, searches: Sequence[SearchResult]) -> Iterator[str]:
    first = searches[0]
    yield from ("--threshold", f"{first.threshold:g}", "--measure", _measure(searches))
    inputs = result.schema.get("inputs", {})
    if isinstance(inputs, Mapping) and tuple(inputs) != first.among:
        yield from ("--among", ",".join(first.among))
    if first.max_size < len(first.among):
        yield from ("--max-size", str(first.max_size))
    yield from _precision(first)


def _scores(scores: Sequence[Score]) -> Iterator[str]:
    for names in dict.fromkeys(each.against for each in scores):
        yield from ("--against", ",".join(names))
    if scores:
        yield from ("--measure", _measure(scores), *_precision(scores[0]))


def _measure(asked: Iterable[Score | SearchResult]) -> str:
    measures = {each.measure for each in asked}
    return "both" if len(measures) > 1 else measures.pop()


def _precision(asked: Score | SearchResult) -> Iterator[str]:
    yield from ("--confidence", f"{asked.confidence:.10g}", "--error", f"{asked.error:.10g}")
    if asked.stopping != "certified":
        yield from ("--stopping", asked.stopping)
