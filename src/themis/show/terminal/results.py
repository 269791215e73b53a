"""How does a result look in a terminal? The verdict, what may void it, then set by set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text

from themis.results.model import Result, Score
from themis.show.terminal.parts import DIM, WARNING, Sentence, ShellLine, indented, make_console
from themis.show.terminal.results_display_overview import show_overview
from themis.show.terminal.scores import show_score
from themis.show.words.scores import noise_warning, probe_sentence
from themis.show.words.scores_display_result_words import (
    by_set,
    cost_text,
    failure_text,
    hidden_changes,
    inconclusive,
)
from themis.show.words.values import headline, set_phrase, visible

__all__ = [
    "make_console",
    "render",
    "render_headlines",
    "render_result",
    "show_cost",
    "show_doubts",
    "show_result",
]


def render(parts: Iterator[RenderableType], console: Console) -> str:
    """The text of these parts, with the escape codes that the console's terminal takes."""
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, ShellLine))
    lines = (line.rstrip() if line.isprintable() else line for line in capture.get().split("\n"))
    return "\n".join(lines)


def render_result(
    result: Result,
    *,
    file: IO[str] | None = None,
    width: int | None = None,
    everything: bool = False,
) -> str:
    """The whole result as text for a terminal or a file."""
    console = make_console(file, width=width)
    return render(show_result(result, width=console.width, everything=everything), console)


def render_headlines(result: Result, *, file: IO[str] | None = None) -> str:
    """One sentence per score, and what may void it."""
    console = make_console(file)
    sentences: list[RenderableType] = [Sentence(headline(score)) for score in result.scores]
    doubts = [*_failures(result.failures), *_noise(result), *_warnings(result)]
    return render(iter([*sentences, *doubts]), console)


def show_result(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of a result: the verdict, what may void it, set by set what is behind it."""
    sets = by_set(result.scores)
    doubts = show_doubts(result, everything=everything)
    if len(sets) > 1:
        yield from show_overview(result.scores)
        yield from doubts
        yield ""
    for against, scores in sets.items():
        yield Rule(Text(set_phrase(against), "bold cyan"), align="left", style="cyan")
        for place, score in enumerate(scores):
            if place:
                yield ""
            parts = show_score(score, width=width, everything=everything)
            yield next(parts)  # of one set, the headline is the verdict
            yield from doubts
            yield from parts
        yield from _remark(scores)
        yield ""
    yield from doubts
    yield from show_cost(result)


def show_doubts(result: Result, *, everything: bool = False) -> Iterator[RenderableType]:
    """What may void the verdict: failures, noise, odd outputs, runs that ended early."""
    yield from _failures(result.failures)
    yield from _noise(result, everything=everything)
    yield from _warnings(result)
    yield from _inconclusive(result.scores)


def _warnings(result: Result) -> Iterator[RenderableType]:
    for note in result.notes:
        yield Sentence(note, WARNING, first="warning: ")


def show_cost(result: Result) -> Iterator[RenderableType]:
    """The last lines: what it took."""
    for note in result.timing.get("notes", ()):
        yield Sentence(visible(note), DIM, first="note: ")
    yield Sentence(cost_text(result), DIM)


def _noise(result: Result, *, everything: bool = False) -> Iterator[RenderableType]:
    """How often the subject decides otherwise when it is run again, if it does."""
    if result.noise is not None and result.noise.differing:
        yield Sentence(noise_warning(result.noise), WARNING, first="warning: ")
    elif result.noise is not None and everything:
        yield Sentence(probe_sentence(result.noise), DIM)


def _inconclusive(scores: tuple[Score, ...]) -> Iterator[RenderableType]:
    for text in inconclusive(scores):
        yield Sentence(text, WARNING, first="inconclusive: ")


def _remark(scores: list[Score]) -> Iterator[RenderableType]:
    """What only both scores together show."""
    text = hidden_changes(scores)
    if text is not None:
        yield ""
        yield indented(Sentence(text, "bold yellow", first="! "))


def _failures(failures: Mapping[str, Any]) -> Iterator[RenderableType]:
    for kind, failure in failures.items():
        yield Sentence(failure_text(kind, failure), "red", first="failed: ")
        if "reproduce" in failure:
            yield ShellLine(visible(failure["reproduce"]))
