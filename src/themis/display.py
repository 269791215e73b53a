"""How does a result look in a terminal? Set by set, then what to know before believing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text

from themis.display_parts import DIM, WARNING, Sentence, ShellLine, indented, make_console
from themis.display_scores import show_score
from themis.display_words import count, duration, headline, masked, set_phrase, visible
from themis.results import CausalScore, GroupScore, Result, Score

__all__ = ["make_console", "render", "render_headlines", "render_result", "show_result"]


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
    """One sentence per score, and the failures."""
    console = make_console(file)
    sentences: list[RenderableType] = [Sentence(headline(score)) for score in result.scores]
    return render(iter([*sentences, *_failures(result.failures)]), console)


def show_result(
    result: Result, *, width: int, everything: bool = False
) -> Iterator[RenderableType]:
    """The parts of a result from top to bottom."""
    for against, scores in _by_set(result.scores).items():
        yield Rule(Text(set_phrase(against), "bold cyan"), align="left", style="cyan")
        for place, score in enumerate(scores):
            if place:
                yield ""
            yield from show_score(score, width=width, everything=everything)
        yield from _remark(scores)
        yield ""
    yield from _failures(result.failures)
    for note in result.notes:
        yield Sentence(note, WARNING, first="warning: ")
    yield from _inconclusive(result.scores)
    for note in result.timing.get("notes", ()):
        yield Sentence(visible(note), DIM, first="note: ")
    yield Sentence(_cost(result), DIM)


def _inconclusive(scores: tuple[Score, ...]) -> Iterator[RenderableType]:
    """Which scores say less than was asked, and why."""
    reasons = {
        "the run ended early": sum(score.stopped in ("budget", "interrupted") for score in scores),
        "the subject does not always decide the same": sum(s.stopped == "noise" for s in scores),
    }
    for reason, unsure in reasons.items():
        if unsure:
            yield Sentence(
                f"{unsure} of {count(len(scores), 'score')}: the interval is wider than asked, "
                f"because {reason}",
                WARNING,
                first="inconclusive: ",
            )


def _by_set(scores: tuple[Score, ...]) -> dict[tuple[str, ...], list[Score]]:
    sets: dict[tuple[str, ...], list[Score]] = {}
    for score in scores:
        sets.setdefault(score.against, []).append(score)
    return sets


def _remark(scores: list[Score]) -> Iterator[RenderableType]:
    """What only both scores together show."""
    causal = [each for each in scores if isinstance(each, CausalScore)]
    group = [each for each in scores if isinstance(each, GroupScore)]
    text = masked(causal[0], group[0]) if causal and group else None
    if text is not None:
        yield ""
        yield indented(Sentence(text, "bold yellow", first="! "))


def _failures(failures: Mapping[str, Any]) -> Iterator[RenderableType]:
    for kind, failure in failures.items():
        person = ", ".join(f"{visible(n)} {visible(v)}" for n, v in failure["input"].items())
        yield Sentence(
            f"{visible(kind)} {count(failure['count'], 'time')}, e.g. "
            f"{visible(failure['message'])} for the input: {person}",
            "red",
            first="failed: ",
        )
        if "reproduce" in failure:
            yield ShellLine(visible(failure["reproduce"]))


def _cost(result: Result) -> str:
    parts = [count(result.executions, "execution")]
    if result.cache_hits:
        parts.append(f"{result.cache_hits:,} answered from the cache")
    if "seconds" in result.timing:
        parts.append(duration(result.timing["seconds"]))
    return " · ".join([*parts, f"seed {result.seed}"])
